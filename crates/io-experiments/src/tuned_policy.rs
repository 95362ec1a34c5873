//! A policy with its numbers: the maker of orders, and as text: `deadline:read-expire=100,batch=8`.
//!
//! Each policy has keys of its own; times are milliseconds and may have decimals. What is left
//! out is as in [`Tuning::default`].

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use snowmelt_io::{Elevator, Order, OtherPolicy, Policy};

use crate::order::anticipatory::Anticipatory;
use crate::order::deadline::Deadline;
use crate::order::fair::Fair;
use crate::order::fifo::Fifo;
use crate::policy_name::PolicyName;
use crate::tuning::Tuning;

/// A policy and its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunedPolicy {
    /// The policy.
    pub policy: PolicyName,
    /// Its numbers; those of the other policies are the defaults.
    pub tuning: Tuning,
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
            PolicyName::Elevator => Box::new(Elevator::default()),
            PolicyName::Deadline => Box::new(Deadline::new(self.tuning)),
            PolicyName::Anticipatory => Box::new(Anticipatory::new(self.tuning)),
            PolicyName::Fair => Box::new(Fair::new(self.tuning.quantum_ns)),
        }
    }
}

impl PolicyName {
    /// The policy with its usual numbers.
    pub fn policy(self) -> Policy {
        TunedPolicy::from(self).policy()
    }
}

/// Longest time of a key, in milliseconds.
const MOST_MS: f64 = 600_000.0;
/// Most requests, or times, of a key.
const MOST_COUNT: usize = 10_000;

/// The keys of a policy.
fn keys(policy: PolicyName) -> &'static [&'static str] {
    match policy {
        PolicyName::Fifo | PolicyName::Elevator => &[],
        PolicyName::Deadline => &["read-expire", "write-expire", "batch", "writes-starved"],
        PolicyName::Anticipatory => &["anticipate", "slice"],
        PolicyName::Fair => &["quantum"],
    }
}

impl FromStr for TunedPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<TunedPolicy, String> {
        let (name, settings) = match text.split_once(':') {
            Some((name, settings)) => (name, settings.split(',').collect()),
            None => (text, Vec::new()),
        };
        let policy: PolicyName = name.parse()?;
        let mut tuning = Tuning::default();
        for setting in settings {
            let (key, value) = setting
                .split_once('=')
                .ok_or_else(|| format!("{setting:?} is no setting: write KEY=VALUE"))?;
            set(policy, &mut tuning, key.trim(), value.trim())?;
        }
        Ok(TunedPolicy { policy, tuning })
    }
}

fn set(policy: PolicyName, tuning: &mut Tuning, key: &str, value: &str) -> Result<(), String> {
    let keys = keys(policy);
    if !keys.contains(&key) {
        let name = policy.as_str();
        return Err(match keys {
            [] => format!("the queue {name} has no key {key:?}: it has none"),
            keys => format!("the queue {name} has no key {key:?}: it has {}", keys.join(", ")),
        });
    }
    match key {
        "read-expire" => tuning.read_expire_ns = time_ns(key, value)?,
        "write-expire" => tuning.write_expire_ns = time_ns(key, value)?,
        "batch" => tuning.batch = count(key, value, 1)?,
        "writes-starved" => tuning.writes_starved = count(key, value, 0)? as u32,
        "anticipate" => tuning.anticipate_ns = time_ns(key, value)?,
        "slice" => tuning.slice_ns = time_ns(key, value)?,
        "quantum" => tuning.quantum_ns = Some(time_ns(key, value)?.max(1)),
        other => unreachable!("{other} is none of the keys"),
    }
    Ok(())
}

fn time_ns(key: &str, value: &str) -> Result<u64, String> {
    match value.parse::<f64>() {
        Ok(ms) if (0.0..=MOST_MS).contains(&ms) => Ok((ms * 1e6).round() as u64),
        _ => Err(format!("{key} is {value:?}: use 0 to {MOST_MS} milliseconds")),
    }
}

fn count(key: &str, value: &str, least: usize) -> Result<usize, String> {
    match value.parse::<usize>() {
        Ok(n) if (least..=MOST_COUNT).contains(&n) => Ok(n),
        _ => Err(format!("{key} is {value:?}: use {least} to {MOST_COUNT}")),
    }
}

impl fmt::Display for TunedPolicy {
    /// The text from which it is parsed, with only the numbers that differ from the defaults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.policy.as_str())?;
        let (is, usual) = (&self.tuning, Tuning::default());
        let ms = |ns: u64| (ns as f64 / 1e6).to_string();
        let of = |key: &str| match key {
            "read-expire" => (is.read_expire_ns != usual.read_expire_ns, ms(is.read_expire_ns)),
            "write-expire" => (is.write_expire_ns != usual.write_expire_ns, ms(is.write_expire_ns)),
            "batch" => (is.batch != usual.batch, is.batch.to_string()),
            "writes-starved" => (is.writes_starved != usual.writes_starved, is.writes_starved.to_string()),
            "anticipate" => (is.anticipate_ns != usual.anticipate_ns, ms(is.anticipate_ns)),
            "slice" => (is.slice_ns != usual.slice_ns, ms(is.slice_ns)),
            "quantum" => (is.quantum_ns.is_some(), ms(is.quantum_ns.unwrap_or_default())),
            other => unreachable!("{other} is none of the keys"),
        };
        let mut sign = ':';
        for key in keys(self.policy) {
            if let (true, value) = of(key) {
                write!(f, "{sign}{key}={value}")?;
                sign = ',';
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_name() {
        let text = "deadline:read-expire=100,write-expire=2000.5,batch=8,writes-starved=0";
        let parsed: TunedPolicy = text.parse().unwrap();
        let tuning = Tuning {
            read_expire_ns: 100_000_000,
            write_expire_ns: 2_000_500_000,
            batch: 8,
            writes_starved: 0,
            ..Tuning::default()
        };
        assert_eq!(parsed, TunedPolicy { policy: PolicyName::Deadline, tuning });
        assert_eq!(parsed.to_string(), text);
        for text in ["fifo", "elevator", "anticipatory:anticipate=0,slice=20", "fair:quantum=0.25"] {
            assert_eq!(text.parse::<TunedPolicy>().unwrap().to_string(), text);
        }
        let fair: TunedPolicy = "fair:quantum=0.25".parse().unwrap();
        assert_eq!(fair.tuning.quantum_ns, Some(250_000));
    }

    #[test]
    fn errors_name_keys_and_bounds() {
        for (text, parts) in [
            ("noop", ["noop", "fifo, elevator"]),
            ("elevator:batch=3", ["elevator", "none"]),
            ("fair:slice=3", ["slice", "quantum"]),
            ("deadline:batch=0", ["batch", "1 to 10000"]),
            ("deadline:read-expire=-1", ["read-expire", "0 to 600000 milliseconds"]),
            ("deadline:read-expire=NaN", ["read-expire", "0 to 600000 milliseconds"]),
            ("anticipatory:slice", ["slice", "KEY=VALUE"]),
        ] {
            let error = text.parse::<TunedPolicy>().expect_err(text);
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }
}
