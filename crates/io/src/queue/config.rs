//! Settings of a queue: engine, policy, and their numbers.

use serde::{Deserialize, Serialize};

use crate::cost::{CostModel, CostSource};

/// The engine that carries requests out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// io_uring; falls back to `Threads`, with a notice, where it is not permitted.
    Uring,
    /// A pool of threads.
    Threads,
    /// POSIX asynchronous I/O: lists of control blocks (lio_listio), carried out by the C
    /// library's threads.
    PosixAio,
    /// The asking thread.
    Inline,
}

impl Engine {
    /// All of them.
    pub const ALL: [Engine; 4] = [Engine::Uring, Engine::Threads, Engine::PosixAio, Engine::Inline];

    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Engine::Uring => "uring",
            Engine::Threads => "threads",
            Engine::PosixAio => "posix-aio",
            Engine::Inline => "inline",
        }
    }
}

impl std::str::FromStr for Engine {
    type Err = String;
    fn from_str(name: &str) -> Result<Engine, String> {
        let named = Engine::ALL.into_iter().find(|engine| engine.as_str() == name);
        named.ok_or_else(|| {
            format!("no engine is called {name:?}: there are {}", list(Engine::ALL.map(Engine::as_str)))
        })
    }
}

/// The order in which waiting requests are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// First come, first served.
    Fifo,
    /// Sweeps over the offsets, from low to high.
    Elevator,
    /// Sorted batches, but a request that has waited too long comes first.
    Deadline,
    /// Sweeps, but the device waits a moment for the next request of the reader it has just
    /// served.
    Anticipatory,
    /// Clients take turns, each for a quantum of device time.
    Fair,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 5] =
        [Policy::Fifo, Policy::Elevator, Policy::Deadline, Policy::Anticipatory, Policy::Fair];

    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Policy::Fifo => "fifo",
            Policy::Elevator => "elevator",
            Policy::Deadline => "deadline",
            Policy::Anticipatory => "anticipatory",
            Policy::Fair => "fair",
        }
    }
}

impl std::str::FromStr for Policy {
    type Err = String;
    fn from_str(name: &str) -> Result<Policy, String> {
        let named = Policy::ALL.into_iter().find(|policy| policy.as_str() == name);
        named.ok_or_else(|| {
            format!("no queue is called {name:?}: there are {}", list(Policy::ALL.map(Policy::as_str)))
        })
    }
}

/// `a, b and c`.
fn list<const N: usize>(names: [&str; N]) -> String {
    let (last, others) = names.split_last().expect("there is at least one");
    format!("{} and {last}", others.join(", "))
}

/// The numbers of the policies. The defaults of the first five are those of the Linux
/// schedulers of the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tuning {
    /// Deadline: a read older than this is served next, in nanoseconds.
    pub read_expire_ns: u64,
    /// Deadline: the same for writes, in nanoseconds.
    pub write_expire_ns: u64,
    /// Deadline: device requests of a batch.
    pub batch: usize,
    /// Deadline: how often reads may go before writes that wait.
    pub writes_starved: u32,
    /// Anticipatory: how long the device waits for a reader's next request, in nanoseconds.
    pub anticipate_ns: u64,
    /// Anticipatory: how long it is waited for one reader while others wait, in nanoseconds.
    pub slice_ns: u64,
    /// Fair: device time of one turn, in nanoseconds; by default that of one longest request.
    pub quantum_ns: Option<u64>,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            read_expire_ns: 500_000_000,
            write_expire_ns: 5_000_000_000,
            batch: 16,
            writes_starved: 2,
            anticipate_ns: 6_700_000,
            slice_ns: 500_000_000,
            quantum_ns: None,
        }
    }
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
    pub engine: Engine,
    /// The order of waiting requests.
    pub policy: Policy,
    /// Costs of the device; by default what the device says of itself.
    pub cost: Option<CostModel>,
    /// Where `cost` is from.
    pub cost_source: CostSource,
    /// Costs are learned from the completions; `cost` is where that begins.
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
    /// The numbers of the policies.
    pub tuning: Tuning,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig {
            engine: Engine::Uring,
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
            tuning: Tuning::default(),
        }
    }
}
