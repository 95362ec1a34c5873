//! Errors of the graph layer.

use std::path::PathBuf;

use snowmelt_store::StoreError;
use thiserror::Error;

use crate::term::TermId;

/// Result of this crate.
pub type Result<T, E = GraphError> = std::result::Result<T, E>;

/// An error of the graph layer.
#[derive(Debug, Error)]
pub enum GraphError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An id to be decoded stands for no stored term.
    #[error("{id:?} is not a term of the database")]
    NotATerm {
        /// The id.
        id: TermId,
    },
    /// A quad has a term where it cannot be: an index is damaged.
    #[error("a quad has {id:?} as subject, predicate or graph")]
    Misplaced {
        /// The id.
        id: TermId,
    },
    /// A term is longer than the limit.
    #[error("a term has {bytes} bytes, and the longest allowed has {most}")]
    TermTooLong {
        /// Its bytes.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// Triple terms are within each other too many times.
    #[error("triple terms nest more than {most} levels, the limit")]
    TooDeep {
        /// The limit.
        most: usize,
    },
    /// These terms make no triple term.
    #[error("no triple term has {subject:?}, {predicate:?} and {object:?} as subject, predicate and object")]
    NoTriple {
        /// The subject: an IRI or blank node.
        subject: TermId,
        /// The predicate: an IRI.
        predicate: TermId,
        /// The object: any stored term.
        object: TermId,
    },
    /// A triple term cannot be written as JSON-LD.
    #[error("JSON-LD has no triple terms, and the graph has some: N-Quads and TriG have them")]
    NotInJsonLd,
    /// A dump could not be written.
    #[error("cannot write the dump: {0}")]
    Write(#[source] std::io::Error),
    /// The graph is of a newer format.
    #[error(
        "the graph is of format {found}, this program reads formats 1 to {newest}; use a program that reads it, or dump with that and load again"
    )]
    Format {
        /// Format of the graph.
        found: u32,
        /// The newest one that is known.
        newest: u32,
    },
    /// A catalog record is damaged.
    #[error("catalog record {name}: {why}")]
    Record {
        /// The record.
        name: &'static str,
        /// The fault.
        why: String,
    },
    /// The caller asked the work to stop.
    #[error("stopped before the end, as asked")]
    Stopped,
    /// There is too little room on the disk for a new generation of the trees.
    #[error(
        "rewriting the terms needs {needed} bytes of room on the disk, and {free} are free; nothing was changed"
    )]
    NoRoom {
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// Changes made during a rewrite could not be kept for it.
    #[error(
        "there was no room to keep what was changed while the terms were rewritten; they are as they were"
    )]
    ChangesLost,
    /// Another compaction rewrites the trees.
    #[error("another compaction of this database is under way")]
    CompactBusy,
    /// A temporary file of a rewrite failed.
    #[error("temporary file {path}: {source}")]
    Temp {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A dictionary string cannot be read.
    #[error("dictionary tree {tree}, string {number}: {why}")]
    Dictionary {
        /// Name of the tree.
        tree: &'static str,
        /// Number of the string.
        number: u64,
        /// The fault.
        why: String,
    },
}

impl GraphError {
    /// Whether the memory budget was used up.
    pub fn is_of_memory(&self) -> bool {
        matches!(self, GraphError::Store(StoreError::Memory { .. }))
    }

    /// True when the data are not what was written.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Store(error) => error.is_damage(),
            Self::Misplaced { .. } | Self::Record { .. } | Self::Dictionary { .. } => true,
            _ => false,
        }
    }

    /// True when a device is full.
    pub fn is_of_room(&self) -> bool {
        matches!(self, Self::Store(StoreError::Full { .. }))
    }

    /// True when something with this name already exists.
    pub fn is_of_what_exists(&self) -> bool {
        match self {
            GraphError::Store(StoreError::Exists { .. }) => true,
            GraphError::Store(StoreError::File { cause, .. }) => {
                cause.kind() == std::io::ErrorKind::AlreadyExists
            }
            _ => false,
        }
    }

    pub(crate) fn record(name: &'static str, why: impl Into<String>) -> Self {
        GraphError::Record { name, why: why.into() }
    }
}
