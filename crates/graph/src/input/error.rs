//! Errors of loads and documents.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use snowmelt_store::StoreError;

use super::left_out::LeftOut;
use crate::error::GraphError;

/// The reason why a load stopped. Nothing has been loaded when one of these is returned.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The input does not follow the grammar of its format.
    #[error("{file}:{line}:{column}: {message}")]
    Syntax {
        /// The file, or `-` for standard input.
        file: String,
        /// Line, from 1.
        line: u64,
        /// Column in characters, from 1; 0 when the parser does not say.
        column: u64,
        /// The fault.
        message: String,
        /// The setting that could let the input be read.
        setting: Option<DocumentSetting>,
    },
    /// The input cannot be read.
    #[error("cannot read {file}: {source}")]
    Input {
        /// The file, or `-` for standard input.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// A lenient load would leave out more statements than allowed.
    #[error(
        "{count} of {all} statements cannot be read, more than {:.3} %; nothing was loaded",
        100.0 * most
    )]
    TooManyLeftOut {
        /// Statements that cannot be read.
        count: u64,
        /// Statements of all inputs, these included.
        all: u64,
        /// The share that may be left out.
        most: f64,
        /// The first of them.
        listed: Vec<LeftOut>,
    },
    /// A file is of a kind that is not RDF.
    #[error("{file} is {kind}; {advice}")]
    Foreign {
        /// The file, or `-` for standard input.
        file: String,
        /// Its kind, as a noun.
        kind: &'static str,
        /// The next step for the user.
        advice: &'static str,
    },
    /// An option is not usable.
    #[error("{option}: {message}")]
    Option {
        /// The option.
        option: LoadOption,
        /// The fault.
        message: String,
    },
    /// The device of the database has no space left for temporary files.
    #[error("{path}: disk full while loading; free some space and start the load again")]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// A temporary file failed.
    #[error("temporary file {path}: {source}")]
    Temp {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The graph failed.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The caller asked to stop.
    #[error("load cancelled; the database is as it was")]
    Cancelled,
}

/// Settings that keep a document from being read; another value may let it be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DocumentSetting {
    /// Bytes of a term: [`snowmelt_store::StoreConfig::longest_string_bytes`].
    LongestTerm,
    /// The memory budget.
    Memory,
    /// The contexts that JSON-LD may name.
    Contexts,
}

/// The reason why the guard stops handing bytes to a parser; wrapped in the [`io::Error`] of
/// [`LoadError::Input`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GuardError {
    /// A term may continue on the next line.
    #[error("a term or line has more than {most} bytes, the longest allowed")]
    TooLong { most: usize },
    #[error("the document nests more than {most} levels, the limit")]
    TooDeep { most: usize },
    #[error("the document has more than {most} bytes when decompressed, the limit")]
    TooMuch { most: u64 },
    #[error("triple terms nest more than {most} levels, the limit")]
    NestedTriples { most: usize },
}

impl From<GuardError> for io::Error {
    fn from(error: GuardError) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// Options of loads and documents that a caller can get wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadOption {
    /// The graph that triples go to.
    Graph,
    /// The base IRI.
    Base,
    /// The format.
    Format,
    /// The memory budget.
    Memory,
}

impl fmt::Display for LoadOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Graph => "graph",
            Self::Base => "base",
            Self::Format => "format",
            Self::Memory => "memory",
        })
    }
}

impl LoadError {
    /// True when the input is at fault: it cannot be read, or does not follow its format.
    pub fn is_of_input(&self) -> bool {
        let is_of_input = matches!(
            self,
            LoadError::Syntax { .. }
                | LoadError::Input { .. }
                | LoadError::TooManyLeftOut { .. }
                | LoadError::Foreign { .. }
        );
        is_of_input && !self.is_of_memory()
    }

    /// True when memory did not suffice.
    pub fn is_of_memory(&self) -> bool {
        match self {
            LoadError::Graph(error) => error.is_of_memory(),
            LoadError::Store(error) => matches!(error, StoreError::Memory { .. }),
            // A reader of a format says where it was.
            LoadError::Syntax { setting, .. } => *setting == Some(DocumentSetting::Memory),
            // The guard before a parser has no other way to say it.
            LoadError::Input { source, .. } => {
                let inner = source.get_ref().and_then(|inner| inner.downcast_ref::<StoreError>());
                matches!(inner, Some(StoreError::Memory { .. }))
            }
            _ => false,
        }
    }

    /// The setting that could let the input be read.
    pub fn setting(&self) -> Option<DocumentSetting> {
        match self {
            LoadError::Syntax { setting, .. } => *setting,
            LoadError::Input { .. } if self.is_of_memory() => Some(DocumentSetting::Memory),
            LoadError::Input { source, .. } => match source.get_ref()?.downcast_ref()? {
                GuardError::TooLong { .. } => Some(DocumentSetting::LongestTerm),
                GuardError::TooDeep { .. }
                | GuardError::TooMuch { .. }
                | GuardError::NestedTriples { .. } => None,
            },
            _ => None,
        }
    }

    /// Whether a device is full.
    pub fn is_of_room(&self) -> bool {
        match self {
            LoadError::DiskFull { .. } => true,
            LoadError::Graph(error) => error.is_of_room(),
            LoadError::Store(error) => matches!(error, StoreError::Full { .. }),
            _ => false,
        }
    }

    /// The error of a temporary file; a full disk has a variant of its own.
    pub(crate) fn temp(path: &Path, source: io::Error) -> LoadError {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                LoadError::DiskFull { path }
            }
            _ => LoadError::Temp { path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server answers the one with "try again", and the other with "mend it".
    #[test]
    fn a_want_of_memory_is_no_fault_of_the_document() {
        let error = |setting| LoadError::Syntax {
            file: "input".into(),
            line: 1,
            column: 1,
            message: "a fault".into(),
            setting,
        };
        let settings = [None, Some(DocumentSetting::LongestTerm), Some(DocumentSetting::Memory)];
        let of_input = settings.map(|setting| error(setting).is_of_input());
        assert_eq!(of_input, [true, true, false]);
        assert_eq!(settings.map(|setting| error(setting).is_of_memory()), [false, false, true]);
    }
}
