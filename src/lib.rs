//! Snowmelt is an embedded graph database: RDF data, SPARQL queries and updates, in one directory.
//! It plans its reads, so that it is at full speed seconds after a cold start and works on data far
//! larger than memory.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # std::env::set_current_dir(&dir)?;
//! # std::fs::write("people.ttl", "<urn:ann> <urn:name> 'Ann' ; <urn:knows> <urn:bob> .")?;
//! let db = snowmelt::Database::create("people.db")?; // or ::open, ::in_memory
//! db.load("people.ttl")?;
//! for row in db.query("SELECT ?name { ?s <urn:name> ?name }")? {
//!     println!("{}", row?["name"]);
//! }
//! db.update("DELETE WHERE { <urn:ann> ?p ?o }")?;
//! # Ok(())
//! # }
//! ```
//!
//! * A [`Database`] is a handle: cheap to clone, shared by threads. One process at a time has a
//!   database open for writing; with [`Options::read_only`], any number read it.
//! * [`Database::query`] gives [`Rows`], an iterator that reads as it is asked and can fail at any
//!   row. A query sees one state from its first row to its last, whatever is committed meanwhile.
//! * [`Database::prepare`] takes a query or update with parameters by name
//!   ([`Prepared::bind`]), limits and a base IRI. Its plan is kept for the next call.
//! * [`Database::update`] is one transaction: durable when it returns, or nothing has changed.
//!   [`Database::transaction`] makes one of several steps.
//! * [`Prepared::function`] and [`Options::function`] bring functions of the program along, as
//!   closures on terms.
//! * [`Database::load`] reads N-Triples, N-Quads, Turtle, TriG, RDF/XML and JSON-LD, plain or
//!   compressed, in bulk; [`Database::loader`] has the options.
//! * [`Rows::activity`] and [`Database::meters`] tell where reads went.
//!
//! Terms, triples and quads are those of the [`oxrdf`] crate, re-exported here. Errors are one
//! type, [`Error`], whose variants a program can act on.
//!
//! The crates behind this one (`snowmelt-store`, `snowmelt-graph`, `snowmelt-sparql`, …) are its
//! implementation: their interfaces change without notice.

#![forbid(unsafe_code)]

mod database;
mod error;
mod functions;
mod load;
mod open;
mod options;
mod prepared;
mod quads;
mod rows;
mod transaction;
mod value;

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use database::Database;
pub use error::{Error, Result, SyntaxFaults};
pub use load::{Format, LoadProgress, Loaded, Loader};
pub use options::Options;
pub use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term, Triple};
pub use prepared::Prepared;
pub use quads::{QuadPattern, Quads};
pub use rows::{Answer, Row, Rows, Triples};
pub use snowmelt_database::Priority;
pub use snowmelt_database::meters::{Activity, Report as Meters};
pub use snowmelt_graph::{CheckReport, Stats};
pub use snowmelt_sparql::DescribeForm;
pub use transaction::{Changes, Transaction};
pub use value::{FromTerm, IntoTerm};
