//! A rung of the ladder of writes: its settings and its name.

use serde::{Deserialize, Serialize};

use crate::run::load::LoadFields;
use crate::size;

/// When written bytes are made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncPolicy {
    /// After every write.
    Each,
    /// After every portion, as large as a journal file.
    Journal,
    /// Once, at the end.
    End,
    /// By another thread, after each portion, while writing goes on.
    Background,
}

impl SyncPolicy {
    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            SyncPolicy::Each => "each",
            SyncPolicy::Journal => "journal",
            SyncPolicy::End => "end",
            SyncPolicy::Background => "background",
        }
    }
}

impl std::str::FromStr for SyncPolicy {
    type Err = String;
    fn from_str(text: &str) -> Result<SyncPolicy, String> {
        let all = [SyncPolicy::Each, SyncPolicy::Journal, SyncPolicy::End, SyncPolicy::Background];
        all.into_iter().find(|policy| policy.as_str() == text).ok_or_else(|| {
            format!("no policy is called '{text}': there are each, journal, end and background")
        })
    }
}

/// Settings of a rung; names as fio's where it has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// `randwrite`.
    pub rw: String,
    /// The engine that writes.
    pub ioengine: String,
    /// Bytes of the file, where files of several sizes were made, or a sparse one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Nothing of the file is written before the rung is: its places have to be found room for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
    /// The queue, the distribution and the priority.
    #[serde(flatten)]
    pub load: LoadFields,
    /// Its blocks are stamped, read back and verified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify: bool,
    /// Bytes per write.
    pub bs: u64,
    /// Writes outstanding.
    pub iodepth: u32,
    /// Past the page cache.
    pub direct: bool,
    /// The places of a portion are read ahead before it is written.
    pub prefetch: bool,
    /// When it is synced.
    pub sync: SyncPolicy,
    /// The device's scheduler, as asked; empty when it was left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
}

/// A rung in a few words.
pub fn name_of(rung: &Rung) -> String {
    let mut name = format!("{} {}", rung.ioengine, if rung.direct { "direct" } else { "buffered" });
    if rung.iodepth > 1 {
        name += &format!(" depth {}", rung.iodepth);
    }
    if rung.bs != 4096 {
        name += &format!(" {}", size::exact(rung.bs));
    }
    if rung.prefetch {
        name += ", prefetch";
    }
    name += &rung.load.queue_words().map_or(String::new(), |queue| format!(", queue {queue}"));
    name += &rung.load.random_distribution.as_ref().map_or(String::new(), |law| format!(", {law}"));
    name += &rung.load.priority_words().map_or(String::new(), |priority| format!(", {priority}"));
    if rung.verify {
        name += ", verify";
    }
    name += &format!(", sync {}", rung.sync.as_str());
    name += &rung.size.map_or(String::new(), |bytes| format!(", file of {}", size::exact(bytes)));
    if rung.sparse {
        name += ", sparse";
    }
    if let Some(scheduler) = &rung.scheduler {
        name += &format!(", scheduler {scheduler}");
    }
    name
}
