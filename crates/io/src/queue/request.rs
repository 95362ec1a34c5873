//! Requests to a device, and the listener for their completions.

use serde::{Deserialize, Serialize};

use crate::error::IoError;
use crate::memory::buffer::RawBuf;

/// Purpose of a request, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The journal: a commit waits for it.
    Journal,
    /// A reader waits for these bytes.
    Demand,
    /// Bytes that will certainly be needed.
    Planned,
    /// A query waits for what it has put aside: a run of a sort, a part of a join.
    SpillRead,
    /// Bytes that may be needed.
    Speculative,
    /// A query puts aside what does not fit into its memory.
    SpillWrite,
    /// Written back when there is nothing better to do.
    WriteBack,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 7;
    /// All of them, the most urgent first.
    pub const ALL: [Class; Class::COUNT] = [
        Class::Journal,
        Class::Demand,
        Class::Planned,
        Class::SpillRead,
        Class::Speculative,
        Class::SpillWrite,
        Class::WriteBack,
    ];

    /// Name in tables, metrics and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Class::Journal => "journal",
            Class::Demand => "demand",
            Class::Planned => "planned",
            Class::SpillRead => "spill-read",
            Class::Speculative => "speculative",
            Class::SpillWrite => "spill-write",
            Class::WriteBack => "write-back",
        }
    }

    /// The priority that the kernel's scheduler sees (ioprio_set(2)): class *best effort*, which
    /// needs no privilege, at level 0 (first) to 7. Only mq-deadline and bfq look at it.
    pub(crate) fn ioprio(self) -> u16 {
        const BEST_EFFORT: u16 = 2 << 13;
        let level = match self {
            Class::Journal => 0,
            Class::Demand => 1,
            Class::Planned => 3,
            Class::SpillRead => 4,
            Class::Speculative => 5,
            Class::SpillWrite => 6,
            Class::WriteBack => 7,
        };
        BEST_EFFORT | level
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_classes_is_the_kernels_too() {
        for (at, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, at);
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
        }
        assert!(Class::ALL.windows(2).all(|w| w[0].ioprio() < w[1].ioprio()), "an urgent class goes first");
        assert_eq!(Class::WriteBack.ioprio() >> 13, 2, "best effort: idle requests may never be served");
    }
}
