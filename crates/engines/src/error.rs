//! Errors about engines: which one, where, and the remedy.

use std::path::{Path, PathBuf};

/// An error of an engine or of its adapter.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There is no adapter of that name.
    #[error("no engine is called {name:?}; there are {known}; your own is given as --adapter FILE")]
    Unknown {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// An adapter file is wrong.
    #[error("{file}, line {line}: {why}")]
    Adapter {
        /// Its path, or its name where it is built in.
        file: String,
        /// Counted from 1.
        line: usize,
        /// The fault, with the key.
        why: String,
    },
    /// Something the engine needs is not installed.
    #[error("{engine} is not installed ({missing}); install it: {install}")]
    Missing {
        /// The engine.
        engine: String,
        /// The part that is missing.
        missing: String,
        /// The commands that install it.
        install: String,
    },
    /// It is installed, in another version than the adapter is for.
    #[error("{engine} {found} is installed, and the laboratory needs {wanted}; install it: {install}")]
    Version {
        /// The engine.
        engine: String,
        /// The version that was found.
        found: String,
        /// The versions that can be used.
        wanted: String,
        /// The commands that install it.
        install: String,
    },
    /// It is installed and does not run.
    #[error("{engine} is installed and cannot be used ({why}); install it anew: {install}")]
    Unusable {
        /// The engine.
        engine: String,
        /// Its own words.
        why: String,
        /// The commands that install it.
        install: String,
    },
    /// Its port is taken.
    #[error(
        "port {port} of 127.0.0.1 is in use, {engine} cannot be started on it; \
         `ss -ltnp 'sport = :{port}'` shows by what; name another with --port, or none for a free one"
    )]
    PortInUse {
        /// The engine.
        engine: String,
        /// The port.
        port: u16,
    },
    /// A server ended instead of becoming ready.
    #[error("{engine} ended while it was started ({status}){log}")]
    Ended {
        /// The engine.
        engine: String,
        /// How it ended.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// A server did not become ready in time; it was stopped.
    #[error("{engine} was not ready after {seconds} s ({probe}) and was stopped{log}")]
    NotReady {
        /// The engine.
        engine: String,
        /// Its time limit.
        seconds: u64,
        /// The looks that were made.
        probe: String,
        /// The end of its log.
        log: String,
    },
    /// A server did not end in time; it was killed.
    #[error("{engine} did not stop within {seconds} s and was killed{log}")]
    StopHung {
        /// The engine.
        engine: String,
        /// Its time limit.
        seconds: u64,
        /// The end of its log.
        log: String,
    },
    /// A command failed.
    #[error("{engine}: `{command}` failed ({status}){log}")]
    Command {
        /// The engine.
        engine: String,
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// The end of its output.
        log: String,
    },
    /// The adapter does not say how to do something.
    #[error("the adapter of {engine} has no {what}")]
    Cannot {
        /// The engine.
        engine: String,
        /// The missing key.
        what: String,
    },
    /// The operating system failed.
    #[error("cannot {doing}: {error}")]
    System {
        /// Verb and object.
        doing: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The journal of what is to be undone failed.
    #[error(transparent)]
    Undo(#[from] snowmelt_lab::undo::UndoError),
    /// A signal came.
    #[error("interrupted")]
    Interrupted,
}

impl EngineError {
    /// An error while doing something to a file.
    pub(crate) fn file(verb: &str, path: &Path, error: impl Into<std::io::Error>) -> Self {
        Self::System { doing: format!("{verb} {}", path.display()), error: error.into() }
    }
}

/// The end of a log file as part of an error: its name and last lines, or nothing.
pub(crate) fn log_tail(path: &Path) -> String {
    const LINES: usize = 12;
    const BYTES: usize = 4000;
    let Ok(bytes) = std::fs::read(path) else { return String::new() };
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(BYTES)..]).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    if last.is_empty() {
        return format!("; its log {} is empty", path.display());
    }
    format!("; the end of its log {}:\n  {}", path.display(), last.join("\n  "))
}

/// The folder of a path, for files that are named relative to it.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert_eq!(log_tail(&path), "");
        std::fs::write(&path, "").unwrap();
        assert!(log_tail(&path).ends_with("is empty"));
        let text: String = (0..1000).map(|i| format!("line {i}\n")).collect();
        std::fs::write(&path, text).unwrap();
        let tail = log_tail(&path);
        assert!(
            tail.contains("line 988\n  ") && tail.ends_with("line 999") && !tail.contains("line 987"),
            "{tail}"
        );
    }
}
