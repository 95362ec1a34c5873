//! Requests to a device, and the listener for their completions.

use serde::{Deserialize, Serialize};

use crate::error::IoError;
use crate::memory::buffer::RawBuf;

/// Purpose of a request, in order of priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The journal: a commit waits for it.
    Journal,
    /// A reader waits for these bytes.
    Demand,
    /// They will certainly be needed.
    Planned,
    /// They may be needed.
    Speculative,
    /// Written back when there is nothing better to do.
    WriteBack,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 5;
    /// All of them, the most urgent first.
    pub const ALL: [Class; Class::COUNT] =
        [Class::Journal, Class::Demand, Class::Planned, Class::Speculative, Class::WriteBack];
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// First byte on the device.
    pub offset: u64,
    /// Memory, length and direction.
    pub buf: RawBuf,
    /// Purpose, which gives the priority.
    pub class: Class,
    /// Given back at completion; any number below 2^63.
    pub tag: u64,
}

/// Receives completions.
pub trait Sink: Send + Sync {
    /// The request submitted with `tag` is over, and its memory the caller's again. Called once
    /// per request, from any thread, also from within `submit`; must be short and must not
    /// wait.
    fn complete(&self, tag: u64, result: Result<(), IoError>);
}
