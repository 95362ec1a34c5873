//! RDF on trees: term ids, dictionary, quad indexes, load, dump.

mod check;
mod check_dict;
mod check_trees;
mod database;
pub mod dict;
pub mod dict_code;
pub mod dict_prefix;
mod dump;
mod error;
mod index;
mod interrupt;
pub mod load;
mod quad_batch;
mod relocate;
mod session;
mod session_decode;
mod session_resolve;
mod state;
mod stats;
mod subject_quads;
mod term;
mod term_civil;
mod term_inline;
mod term_lexical;
mod term_range;
mod transaction;
mod transaction_clear;
mod transaction_document;
mod transaction_quads;
mod transaction_terms;
mod value_counts;

pub use check::{CheckProgress, CheckReport};
pub use database::{Database, OpenOptions};
pub use dict::{GraphMeta, Tree};
pub use dump::DumpFormat;
pub use error::{GraphError, Result};
pub use index::{Column, Index};
pub use interrupt::Interrupt;
#[doc(hidden)]
pub use load::fuzz;
pub use quad_batch::{BatchTerm, QuadBatch};
pub use session::{Lookup, LookupWay, Scan, Session};
pub use snowmelt_store::{
    Activity, Charge, Columns, Committed, Keys, Levels, Matches, MemoryBudget, Pending, Relocated,
    Reservation,
};
pub use state::{Carried, GraphState};
pub use stats::{Stats, Terms, TreeSize};
pub use subject_quads::each_quad_of;
pub use term::{Kind, NUMBER_BITS, PAYLOAD_BITS, Term, TermId, TermRef};
pub use term_inline::{
    DECIMAL, FIRST_REGISTERED, Inline, RDF_LANG_STRING, SHORT_STRING_BYTES, XSD, XSD_STRING, decimal_like,
    encode, from_boolean, from_date, from_date_time, from_derived, from_double, from_float, from_integer,
    from_micros, is_comparable_datatype, short_string,
};
pub use term_lexical::{InlineValue, Lexical, ShortString};
pub use term_range::{
    CompareOp, CompareValue, IdRanges, compare_instants, id_ranges_for_comparison, ids_of_kind,
};
pub use transaction::Transaction;
pub use transaction_clear::Graphs;
pub use transaction_document::{Document, check_source};
pub use transaction_quads::Changed;
pub use transaction_terms::BlankNodes;
pub use value_counts::ValueCounts;
