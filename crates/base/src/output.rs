//! Standard output and standard error of a program, instead of `println!` and `eprintln!`, which
//! panic when the reader has gone or the disk is full.
//!
//! 1. [`Stdout`] is a writer. Its errors say that they are of standard output.
//! 2. [`say!`](crate::say) writes a line there and goes on, [`tell!`](crate::tell) one to standard
//!    error.
//! 3. The first failure of standard output is kept. A program asks for it at its end
//!    ([`end`]), and its exit status follows from it.
//!
//! The failure is one of the process, as standard output is.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, PoisonError};

static FAILED: Mutex<Option<StdoutFailure>> = Mutex::new(None);

/// Why something that was written to standard output did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StdoutFailure {
    /// The reader has gone, as `head` does: no error.
    ClosedPipe,
    /// Anything else, such as a full disk.
    Other(String),
}

/// Standard output. Unlike [`io::Stdout`] it keeps its first failure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().write(bytes).map_err(failed)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush().map_err(failed)
    }
}

/// Keeps a failure of standard output, and returns it with a text that names standard output.
pub fn failed(error: io::Error) -> io::Error {
    let failure = match error.kind() {
        ErrorKind::Interrupted => return error,
        ErrorKind::BrokenPipe => StdoutFailure::ClosedPipe,
        _ => StdoutFailure::Other(error.to_string()),
    };
    FAILED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
}

/// Writes what is still in the buffer of standard output. The first failure since the begin of the
/// process, if there was one.
pub fn end() -> Option<StdoutFailure> {
    // Its failure is kept.
    let _ = Stdout.flush();
    FAILED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The work of [`say!`](crate::say): a line on standard output.
pub fn say(line: fmt::Arguments<'_>) {
    // A failure is kept, and the program tells it at its end.
    let _ = writeln!(Stdout, "{line}");
}

/// The work of [`tell!`](crate::tell): a line on standard error, as text without control
/// characters.
pub fn tell(line: fmt::Arguments<'_>) {
    let line = format!("{}\n", crate::printable::lines(&line.to_string()));
    // Where standard error is lost, so is the place to say so.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Writes a line to standard output. After a failure the command goes on, since it may have changes
/// to undo or results to keep; its exit status reports the failure.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::output::say(format_args!($($text)*)) };
}

/// Writes a line to standard error. A failure is ignored.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => { $crate::output::tell(format_args!($($text)*)) };
}
