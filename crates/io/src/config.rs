//! Settings of a queue: engine, policy, and their numbers.

use serde::{Deserialize, Serialize, Serializer};

use crate::cost::{CostModel, CostSource};
use crate::engine::{StartEngine, inline, threads, uring};
use crate::queue::order::Policy;

/// The engine that carries requests out.
#[derive(Debug, Clone, Copy)]
pub enum IoEngine {
    /// io_uring; falls back to `Threads`, with a notice, where it is not permitted.
    Uring,
    /// A pool of threads.
    Threads,
    /// The asking thread.
    Inline,
    /// An engine of another crate.
    Other(&'static dyn StartEngine),
}

impl IoEngine {
    /// The engines of this crate.
    pub const ALL: [IoEngine; 3] = [IoEngine::Uring, IoEngine::Threads, IoEngine::Inline];

    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        self.starter().name()
    }

    /// The code that starts it.
    pub(crate) fn starter(self) -> &'static dyn StartEngine {
        match self {
            IoEngine::Uring => &uring::Uring,
            IoEngine::Threads => &threads::Threads,
            IoEngine::Inline => &inline::Inline,
            IoEngine::Other(engine) => engine,
        }
    }
}

/// Engines of one name are the same.
impl PartialEq for IoEngine {
    fn eq(&self, other: &IoEngine) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for IoEngine {}

/// As its name.
impl Serialize for IoEngine {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl std::str::FromStr for IoEngine {
    type Err = String;
    fn from_str(name: &str) -> Result<IoEngine, String> {
        let named = IoEngine::ALL.into_iter().find(|engine| engine.as_str() == name);
        named.ok_or_else(|| {
            format!("no engine is called {name:?}: there are {}", list(IoEngine::ALL.map(IoEngine::as_str)))
        })
    }
}

/// `a, b and c`.
fn list<const N: usize>(names: [&str; N]) -> String {
    let (last, others) = names.split_last().expect("there is at least one");
    format!("{} and {last}", others.join(", "))
}

/// Where a lone read with a waiting reader is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InPlace {
    /// As the cost model says: see [`CostModel::in_place`].
    #[default]
    Auto,
    /// In the thread that waits, past the queue.
    On,
    /// Through the queue, in its order.
    Off,
}

impl InPlace {
    /// All of them.
    pub const ALL: [InPlace; 3] = [InPlace::Auto, InPlace::On, InPlace::Off];

    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            InPlace::Auto => "auto",
            InPlace::On => "on",
            InPlace::Off => "off",
        }
    }
}

impl std::str::FromStr for InPlace {
    type Err = String;
    fn from_str(name: &str) -> Result<InPlace, String> {
        let named = InPlace::ALL.into_iter().find(|in_place| in_place.as_str() == name);
        named.ok_or_else(|| format!("use {}", list(InPlace::ALL.map(InPlace::as_str))))
    }
}

/// Settings of a queue. `None` means: as the cost model says.
#[derive(Debug, Clone)]
pub struct QueueConfig {
    /// The engine that carries requests out.
    pub engine: IoEngine,
    /// The order of waiting requests.
    pub policy: Policy,
    /// Costs of the device; by default what the device says of itself.
    pub cost: Option<CostModel>,
    /// Source of `cost`.
    pub cost_source: CostSource,
    /// Whether costs are learned from completions, beginning with `cost`.
    pub learns: bool,
    /// Most device requests outstanding.
    pub depth: Option<u32>,
    /// Longest gap to read through, in bytes.
    pub gap_bytes: Option<u64>,
    /// Where lone reads with a waiting reader are carried out.
    pub in_place: InPlace,
    /// Longest merged device request, in bytes (default 2 MiB).
    pub max_request_bytes: u64,
    /// Newcomers one sweep of the elevator takes.
    pub fairness: usize,
    /// How often a lower class is passed over before it is served.
    pub patience: u32,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig {
            engine: IoEngine::Uring,
            policy: Policy::Elevator,
            cost: None,
            cost_source: CostSource::Set,
            learns: true,
            depth: None,
            gap_bytes: None,
            in_place: InPlace::Auto,
            max_request_bytes: 2 << 20,
            fairness: 1024,
            patience: 64,
        }
    }
}
