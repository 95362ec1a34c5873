//! The extension module `snowmelt._native`: Snowmelt's façade for Python.
//!
//! | modules | |
//! |---|---|
//! | `terms`, `statements`, `formats` | values: terms, triples, quads, formats |
//! | `convert` | Python values as terms, and back |
//! | `handle`, `interrupt`, `labels` | an open database; work without the GIL that Ctrl-C ends; labels of blank nodes |
//! | `database`, `transaction`, `store` | the classes that programs open |
//! | `functions` | callables that queries call |
//! | `question`, `results`, `columns` | queries and their answers; as Arrow |
//! | `streams`, `rdf_xml`, `documents` | files and file-like objects; parse and serialize |
//!
//! No lock is held while Python code may run or the GIL is waited for, except through `try_lock`:
//! a thread that waits for a lock with the GIL would stop the one that holds the lock.

#![forbid(unsafe_code)]

mod columns;
#[cfg(feature = "command")]
mod command;
mod convert;
mod database;
mod documents;
mod errors;
mod formats;
mod functions;
mod handle;
mod interrupt;
mod labels;
mod parts;
mod question;
mod rdf_xml;
mod reading;
mod results;
mod statements;
mod store;
mod streams;
mod terms;
mod transaction;
mod value_class;

/// Snowmelt for Python; the package `snowmelt` exports what is public.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::database::{PyChanges, PyDatabase, PyLoaded};
    #[pymodule_export]
    use crate::documents::{PyQuadParser, parse, serialize};
    #[pymodule_export]
    use crate::formats::{PyQueryResultsFormat, PyRdfFormat};
    #[pymodule_export]
    use crate::results::{PyQuads, PyQueryBoolean, PyQuerySolution, PyQuerySolutions, PyQueryTriples};
    #[pymodule_export]
    use crate::statements::PyQuad;
    #[pymodule_export]
    use crate::store::PyStore;
    #[pymodule_export]
    use crate::terms::{PyBlankNode, PyDefaultGraph, PyLiteral, PyNamedNode, PyTriple, PyVariable};
    #[pymodule_export]
    use crate::transaction::PyTransaction;

    #[cfg(feature = "command")]
    #[pymodule_export]
    use crate::command::run_command;

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name that Python gives it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
