//! The names of the policies, and their numbers.

use std::sync::Arc;

use serde::Serialize;
use snowmelt_io::{Order, OtherPolicy, Policy};

use crate::order::anticipatory::Anticipatory;
use crate::order::deadline::Deadline;
use crate::order::fair::Fair;
use crate::order::fifo::Fifo;
use crate::tuned_policy::TunedPolicy;

/// The order in which waiting requests are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    /// First come, first served.
    Fifo,
    /// Sweeps over the offsets, from low to high: the order of the database.
    Elevator,
    /// Sorted batches, but a request that has waited too long comes first.
    Deadline,
    /// Sweeps, but the device waits a moment for the next request of the reader it has just
    /// served.
    Anticipatory,
    /// Clients take turns, each for a quantum of device time.
    Fair,
}

impl PolicyName {
    /// All of them.
    pub const ALL: [PolicyName; 5] = [
        PolicyName::Fifo,
        PolicyName::Elevator,
        PolicyName::Deadline,
        PolicyName::Anticipatory,
        PolicyName::Fair,
    ];

    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            PolicyName::Fifo => "fifo",
            PolicyName::Elevator => "elevator",
            PolicyName::Deadline => "deadline",
            PolicyName::Anticipatory => "anticipatory",
            PolicyName::Fair => "fair",
        }
    }

    /// The policy with its usual numbers.
    pub fn policy(self) -> Policy {
        TunedPolicy::from(self).policy()
    }
}

impl std::str::FromStr for PolicyName {
    type Err = String;
    fn from_str(name: &str) -> Result<PolicyName, String> {
        let named = PolicyName::ALL.into_iter().find(|policy| policy.as_str() == name);
        named.ok_or_else(|| {
            let [others @ .., last] = PolicyName::ALL.map(PolicyName::as_str);
            format!("no queue is called {name:?}: there are {} and {last}", others.join(", "))
        })
    }
}

/// The numbers of the policies. The defaults of the first six are those of the Linux schedulers of
/// the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl From<PolicyName> for TunedPolicy {
    fn from(policy: PolicyName) -> TunedPolicy {
        TunedPolicy { policy, tuning: Tuning::default() }
    }
}

impl TunedPolicy {
    /// The policy, for the settings of a queue.
    pub fn policy(self) -> Policy {
        match self.policy {
            PolicyName::Elevator => Policy::Elevator,
            _ => Policy::Other(Arc::new(self)),
        }
    }
}

impl OtherPolicy for TunedPolicy {
    fn new_order(&self) -> Box<dyn Order> {
        match self.policy {
            PolicyName::Fifo => Box::new(Fifo::default()),
            PolicyName::Elevator => Box::new(snowmelt_io::Elevator::default()),
            PolicyName::Deadline => Box::new(Deadline::new(self.tuning)),
            PolicyName::Anticipatory => Box::new(Anticipatory::new(self.tuning)),
            PolicyName::Fair => Box::new(Fair::new(self.tuning.quantum_ns)),
        }
    }
}
