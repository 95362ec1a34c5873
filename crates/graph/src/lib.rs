//! RDF on trees: term ids, dictionary, quad indexes, load, dump.
//!
//! Each folder uses those above it and none below:
//!
//! | folder | what it is |
//! |---|---|
//! | `term` | ids of terms: numbers, dates and short strings are in the id itself |
//! | `dict` | numbers of all other terms, codes of languages and datatypes, prefixes of IRIs |
//! | `index` | the orders of quads, and counts of distinct values |
//! | `database` | an open graph and the records of its state |
//! | `session` | one state for one thread: rows, terms, statistics, dump |
//! | `check` | every page, every tree, the indexes against each other |
//! | `input` | from the bytes of an RDF document to batches of terms and rows |
//! | `transaction` | changes: quads, terms, documents, whole graphs, order of leaves |
//! | `load` | many documents at once: sorted outside memory, trees built bottom-up |
//! | `repair` | damaged indexes rewritten from sound ones |
//! | `compact` | trees rewritten without dead terms, leaves in order, space given back |

mod check;
mod compact;
mod database;
pub mod dict;
mod error;
mod index;
mod input;
mod interrupt;
pub mod load;
mod namespaces;
mod progress;
mod repair;
mod session;
mod term;
mod transaction;

// Rows of trees, as sessions return them.
pub use snowmelt_store::{Columns, Keys, Levels, Matches, MergeKeys, Relocated, ScanPlace};

pub use check::{CheckProgress, CheckReport};
pub use compact::{CompactOptions, CompactStep, CompactTerms, Compacted, TermsCompacted};
pub use database::classes::IdClass;
pub use database::state::{Carried, GraphState};
pub use database::{GraphDatabase, tree_names};
pub use dict::{GraphFormat, GraphMeta, Tree};
pub use error::{GraphError, Result};
pub use index::statistics::GraphStatistics;
pub use index::statistics::degrees::{DegreeCounts, Degrees};
pub use index::statistics::predicate_sets::{PredicateSets, RestOfSubjects};
pub use index::triple::{AnyIndex, TripleIndex};
pub use index::value_counts::ValueCounts;
pub use index::{Column, Index};
#[doc(hidden)]
pub use input::fuzz;
pub use interrupt::Interrupt;
pub use namespaces::{MOST_NAMESPACES, NamespaceFault, Namespaces, RECORD_NAMESPACES};
pub use progress::{ChangePhase, ChangeProgress, ChangeWatch};
pub use repair::RepairReport;
pub use session::decode::TermSink;
pub use session::dump::DumpFormat;
pub use session::newer_terms::NewerTerms;
pub use session::statistics_report::{EndReport, PredicateReport, SetReport, StatisticsReport};
pub use session::stats::{Stats, Terms, TreeSize};
pub use session::subject_quads::each_quad_of;
pub use session::summary::{Part as SummaryPart, Summary};
pub use session::triple_terms::TripleIds;
pub use session::veil::{LabelSecret, Veil};
pub use session::view::GraphView;
pub use session::{Lookup, LookupWay, MergeWay, Scan, ScanPieces, Session};
pub use term::inline::{
    Inline, decimal_like, encode, from_boolean, from_date, from_date_time, from_derived, from_double,
    from_float, from_integer, from_micros, is_comparable_datatype, short_string,
};
pub use term::layout::{
    DECIMAL, FIRST_REGISTERED, RDF_DIR_LANG_STRING, RDF_LANG_STRING, SHORT_STRING_BYTES, XSD, XSD_STRING,
};
pub use term::lexical::{InlineValue, Lexical, ShortString};
pub use term::number::{InlineNumber, MICROS};
pub use term::range::{
    CompareOp, CompareValue, IdRanges, compare_instants, id_ranges_for_comparison, ids_of_kind,
};
pub use term::{
    BaseDirection, MOST_TRIPLE_LEVELS, NUMBER_BITS, PAYLOAD_BITS, Term, TermId, TermKind, TermRef,
    UNDETERMINED, split_direction, triple_bytes, triple_levels, untagged_name,
};
pub use transaction::Transaction;
pub use transaction::clear::Graphs;
pub use transaction::document::{Document, DocumentReading};
pub use transaction::quad_batch::{BatchTerm, QuadBatch};
pub use transaction::quads::Changed;
pub use transaction::staged::Staged;
pub use transaction::terms::BlankNodes;
pub use transaction::whole_graph::{ChangeFor, GraphDocument, GraphStored, GraphWrite, StageInto};
