//! Errors of devices: which device, which bytes, and why.

use std::fmt;
use std::sync::Arc;

/// The operation that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Opening it.
    Open,
    /// Reading bytes.
    Read,
    /// Writing bytes.
    Write,
    /// Making written bytes durable.
    Sync,
    /// Asking for or changing its length.
    Length,
    /// Setting up the engine that serves it.
    Engine,
    /// Giving its requests a priority.
    Priority,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Open => "open",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Sync => "sync",
            Operation::Length => "length",
            Operation::Engine => "engine",
            Operation::Priority => "I/O priority",
        })
    }
}

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IoErrorKind {
    /// The device ended, or stopped, before all bytes were moved.
    #[error("only {got} bytes were moved (end of file?)")]
    Short {
        /// Bytes that were moved.
        got: u64,
    },
    /// The operating system's error number.
    #[error("{}", std::io::Error::from_raw_os_error(*errno))]
    Os {
        /// As in errno(3).
        errno: i32,
    },
    /// The queue was closed before the request was begun.
    #[error("the queue is closed")]
    Closed,
    /// An offset or buffer that the device cannot take (O_DIRECT alignment).
    #[error("not aligned to {offset} bytes on the device and {memory} in memory")]
    Unaligned {
        /// Alignment of offsets and lengths, in bytes.
        offset: usize,
        /// Alignment of buffers, in bytes.
        memory: usize,
    },
    /// An object store did not give the bytes, in words.
    #[error("{0}")]
    Remote(String),
    /// A description (device model, profile, path) that cannot be used, in words.
    #[error("{0}")]
    Invalid(String),
}

/// An input or output error with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct IoError {
    /// Name of the device; the path when it is a file.
    pub device: Arc<str>,
    /// The operation.
    pub operation: Operation,
    /// First byte, from the start of the device.
    pub offset: u64,
    /// Bytes asked for.
    pub len: u64,
    /// The cause.
    pub kind: IoErrorKind,
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IoError { device, operation, offset, len, kind } = self;
        match operation {
            Operation::Read | Operation::Write if *len > 0 => {
                write!(f, "{device}: {operation} of {len} bytes at offset {offset}: {kind}")
            }
            _ => write!(f, "{device}: {operation}: {kind}"),
        }
    }
}

impl IoError {
    /// An error of the operating system.
    pub fn os(
        device: &Arc<str>,
        operation: Operation,
        offset: u64,
        len: u64,
        error: &std::io::Error,
    ) -> IoError {
        let kind = match error.raw_os_error() {
            Some(errno) => IoErrorKind::Os { errno },
            None => IoErrorKind::Invalid(error.to_string()),
        };
        IoError { device: device.clone(), operation, offset, len, kind }
    }

    /// A transfer that ended early.
    pub fn short(device: &Arc<str>, operation: Operation, offset: u64, len: u64, got: u64) -> IoError {
        IoError { device: device.clone(), operation, offset, len, kind: IoErrorKind::Short { got } }
    }

    /// Something that cannot be used, in words.
    pub fn invalid(device: &Arc<str>, operation: Operation, why: impl Into<String>) -> IoError {
        IoError {
            device: device.clone(),
            operation,
            offset: 0,
            len: 0,
            kind: IoErrorKind::Invalid(why.into()),
        }
    }

    /// The operating system's error number, when there is one.
    pub fn errno(&self) -> Option<i32> {
        match self.kind {
            IoErrorKind::Os { errno } => Some(errno),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_device_place_and_cause() {
        let device: Arc<str> = "/data/stripe0".into();
        let short = IoError::short(&device, Operation::Read, 8192, 4096, 512);
        assert_eq!(
            short.to_string(),
            "/data/stripe0: read of 4096 bytes at offset 8192: only 512 bytes were moved (end of file?)"
        );
        let denied = std::io::Error::from_raw_os_error(13);
        let denied = IoError::os(&device, Operation::Open, 0, 0, &denied);
        assert_eq!(denied.to_string(), "/data/stripe0: open: Permission denied (os error 13)");
    }
}
