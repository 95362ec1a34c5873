//! The names of the policies.

use serde::Serialize;

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
