//! Settings of a load that `read` and `write` have in common: the distribution of its places, the
//! queue it goes through, its priority.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use snowmelt_io::{IoPriority, Pattern, Places, Policy};
use snowmelt_io_experiments::{PolicyName, TunedPolicy};

use crate::LabError;
use crate::machine::{BlockDevice, active_scheduler};
use crate::run::arguments::EngineName;
use crate::run::grid::grid;

/// How often places come; names of fio's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Each as often as any other.
    Uniform,
    /// By Zipf's law, with this exponent.
    Zipf(f64),
}

/// Above this, one place has all there is.
const MOST_THETA: f64 = 10.0;

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Distribution, String> {
        match text.split_once(':') {
            None if text == "random" || text == "uniform" => Ok(Distribution::Uniform),
            None if text == "zipf" => Err("with which exponent? write for example zipf:1.1".into()),
            Some(("zipf", theta)) => match theta.parse::<f64>() {
                Ok(theta) if theta > 0.0 && theta <= MOST_THETA => Ok(Distribution::Zipf(theta)),
                _ => Err(format!("theta is {theta:?}: use more than 0, and at most {MOST_THETA}")),
            },
            _ => Err(format!("no distribution is called '{text}': there are random and zipf:THETA")),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("random"),
            Distribution::Zipf(theta) => write!(f, "zipf:{theta}"),
        }
    }
}

impl Distribution {
    /// The places as they come by it.
    pub fn of(self, places: Places) -> Places {
        match self {
            Distribution::Uniform => places,
            Distribution::Zipf(theta) => places.by_zipf(theta),
        }
    }

    /// Its name, unless it is the usual one.
    pub fn unusual_name(self) -> Option<String> {
        (self != Distribution::Uniform).then(|| self.to_string())
    }
}

/// A queue of ours, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueChoice(Option<TunedPolicy>);

impl FromStr for QueueChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<QueueChoice, String> {
        if text == "none" {
            Ok(QueueChoice(None))
        } else {
            text.parse().map(|policy| QueueChoice(Some(policy)))
        }
    }
}

/// The settings, as lists of a command line.
#[derive(Debug, Clone, clap::Args)]
pub struct LoadArgs {
    /// How often random places come: random (each once before any comes twice) or zipf:THETA
    /// (some again and again, scattered over the file; fio: random_distribution).
    #[arg(
        long,
        alias = "random_distribution",
        value_delimiter = ',',
        value_name = "random|zipf:THETA",
        default_value = "random"
    )]
    pub random_distribution: Vec<Distribution>,
    /// Priority of the requests (fio: prioclass, prio; ionice): realtime, best-effort or idle, with
    /// a level of 0 (first) to 7: best-effort:7. Of the kernel's schedulers, mq-deadline and bfq
    /// look at it.
    #[arg(long, value_delimiter = ',', value_name = "CLASS[:LEVEL]")]
    ioprio: Vec<IoPriority>,
    /// Send the load through the engine's own queue, in this order, instead of below it
    /// (repeatable): fifo, elevator, deadline, anticipatory, fair, none; with numbers:
    /// deadline:read-expire=50,batch=4
    #[arg(long, value_name = "NAME[:KEY=VALUE]")]
    queue: Vec<QueueChoice>,
    /// Most requests that a --queue has at the device; the others of --depth wait in its order.
    /// Without, all are there, and the order has nothing to choose from.
    #[arg(long, value_name = "N", requires = "queue")]
    queue_depth: Option<u32>,
}

/// The kernel's schedulers that look at priorities.
const LOOK_AT_PRIORITIES: [&str; 2] = ["mq-deadline", "bfq"];

/// One combination of the settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// How often places come.
    pub distribution: Distribution,
    /// The queue's order; none goes below it.
    pub policy: Option<TunedPolicy>,
    /// Most requests at the device.
    pub queue_depth: Option<u32>,
    /// Priority; none leaves the process's.
    pub ioprio: Option<IoPriority>,
}

/// A load as results tell it, with the other settings of a cell; names as fio's where it has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadFields {
    /// The order of a queue of ours, when the load goes through one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Most requests that the queue has at the device, where that is less than `iodepth`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
    /// `zipf:THETA`; empty when every place comes as often as any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub random_distribution: Option<String>,
    /// 1 realtime, 2 best effort, 3 idle; empty when the priority was left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prioclass: Option<u8>,
    /// Level of the priority, from 0 (first) to 7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prio: Option<u8>,
}

impl LoadFields {
    /// The queue in words: `fifo (2 at the device)`.
    pub fn queue_words(&self) -> Option<String> {
        let at_device = self.queue_depth.map_or(String::new(), |most| format!(" ({most} at the device)"));
        Some(format!("{}{at_device}", self.queue.as_ref()?))
    }

    /// The priority in words: `ioprio best-effort:7`.
    pub fn priority_words(&self) -> Option<String> {
        match (self.prioclass?, self.prio.unwrap_or(0)) {
            (1, level) => Some(format!("ioprio realtime:{level}")),
            (2, level) => Some(format!("ioprio best-effort:{level}")),
            _ => Some("ioprio idle".into()),
        }
    }
}

impl Load {
    /// As results tell it.
    pub fn fields(&self) -> LoadFields {
        LoadFields {
            queue: self.policy.map(|policy| policy.to_string()),
            queue_depth: self.queue_depth,
            random_distribution: self.distribution.unusual_name(),
            prioclass: self.ioprio.map(IoPriority::class),
            prio: self.ioprio.map(IoPriority::level),
        }
    }

    /// The load of a program that has no wishes.
    pub const USUAL: Load =
        Load { distribution: Distribution::Uniform, policy: None, queue_depth: None, ioprio: None };

    /// The queue's order for a job.
    pub fn job_policy(&self) -> Policy {
        self.policy.unwrap_or_else(|| PolicyName::Fifo.into()).policy()
    }

    /// The engine, behind the queue if there is one.
    pub fn engine(&self, engine: EngineName) -> EngineName {
        if self.policy.is_some() { engine.queued() } else { engine }
    }

    /// Why its priority may be without effect on a device as it is set now, if so.
    pub fn without_effect(&self, device: &BlockDevice) -> Option<String> {
        self.ioprio?;
        let line = std::fs::read_to_string(device.sys().join("queue/scheduler")).ok()?;
        let now = active_scheduler(&line);
        let looks = LOOK_AT_PRIORITIES.contains(&now);
        (!looks)
            .then(|| format!("the scheduler {now} does not look at priorities: only a drive itself could"))
    }

    /// Why there is no such load in this pattern, by the `engine` that was asked for and at this
    /// depth, if so.
    pub fn impossible(&self, pattern: Pattern, engine: EngineName, depth: u32) -> Option<String> {
        if self.policy.is_some() && engine.goes_below_queues() {
            return Some(format!("a queue has no {}: it is left out with --queue", engine.name()));
        }
        if self.distribution != Distribution::Uniform && pattern != Pattern::Random {
            let name = self.distribution;
            return Some(format!(
                "{name} draws places at random: no {name} with a --pattern that sets their order"
            ));
        }
        if self.ioprio.is_some() && self.policy.is_some() {
            return Some(
                "a --queue gives its requests priorities by their class: no --ioprio with it".into(),
            );
        }
        if self.ioprio.is_some() && engine.is_posix_aio() {
            return Some("the C library's threads carry out POSIX AIO: no --ioprio with posix-aio".into());
        }
        let most = self.queue_depth.filter(|most| *most >= depth)?;
        Some(format!(
            "at most {depth} requests are outstanding: --queue-depth {most} makes none of them wait"
        ))
    }
}

impl LoadArgs {
    /// Every combination.
    pub fn all(&self) -> Vec<Load> {
        let policies: Vec<Option<TunedPolicy>> =
            if self.queue.is_empty() { vec![None] } else { self.queue.iter().map(|queue| queue.0).collect() };
        let priorities: Vec<Option<IoPriority>> =
            if self.ioprio.is_empty() { vec![None] } else { self.ioprio.iter().copied().map(Some).collect() };
        grid([self.random_distribution.len(), policies.len(), priorities.len()])
            .map(|[distribution, policy, priority]| Load {
                distribution: self.random_distribution[distribution],
                policy: policies[policy],
                queue_depth: self.queue_depth.filter(|_| policies[policy].is_some()),
                ioprio: priorities[priority],
            })
            .collect()
    }

    /// True when a queue of ours is asked for.
    pub fn has_queue(&self) -> bool {
        self.queue.iter().any(|choice| choice.0.is_some())
    }

    /// Refuses what no cell could be run with.
    ///
    /// # Errors
    /// A depth of nothing; several orders that nothing could tell apart.
    pub fn check(&self) -> Result<(), LabError> {
        if self.queue_depth.is_some_and(|depth| depth == 0 || depth > 4096) {
            return Err(LabError::Argument("--queue-depth must be between 1 and 4096".into()));
        }
        let orders = self.queue.iter().filter(|queue| queue.0.is_some()).count();
        if orders > 1 && self.queue_depth.is_none() {
            return Err(LabError::Argument(
                "several orders of a --queue are alike while nothing waits in it: say with --queue-depth how many \
                 requests may be at the device, fewer than --depth"
                    .into(),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: LoadArgs,
    }

    fn args(line: &str) -> LoadArgs {
        Cli::parse_from(std::iter::once("load").chain(line.split_whitespace())).args
    }

    #[test]
    fn distributions_have_fio_s_names() {
        for text in ["random", "zipf:1.1", "zipf:1", "zipf:0.99"] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
        for (text, says) in [
            ("zipf", "zipf:1.1"),
            ("zipf:0", "more than 0"),
            ("zipf:nan", "more than 0"),
            ("pareto:0.2", "there are random and zipf:THETA"),
        ] {
            let error = text.parse::<Distribution>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn every_combination_is_a_load_and_those_without_effect_are_none() {
        let all =
            args("--random-distribution random,zipf:1.1 --queue none --queue elevator --queue-depth 2").all();
        assert_eq!(all.len(), 4);
        assert_eq!(all.iter().filter(|load| load.policy.is_none()).count(), 2);
        assert!(all.iter().all(|load| load.queue_depth.is_some() == load.policy.is_some()));
        let why = |line: &str, pattern: Pattern, engine: &str, depth: u32| {
            let load = args(line).all()[0];
            load.impossible(pattern, engine.parse().unwrap(), depth).unwrap_or_default()
        };
        assert_eq!(why("--random-distribution zipf:1", Pattern::Random, "uring", 8), "");
        assert!(
            why("--random-distribution zipf:1", Pattern::Sequential, "uring", 8).contains("no zipf:1 with")
        );
        assert!(
            why("--queue fair --queue-depth 8", Pattern::Random, "uring", 8).contains("none of them wait")
        );
        assert_eq!(why("--queue fair --queue-depth 7", Pattern::Random, "uring", 8), "");
        assert!(why("--queue fair --ioprio idle", Pattern::Random, "uring", 8).contains("no --ioprio"));
        assert!(why("--queue fair", Pattern::Random, "mmap", 1).contains("has no mmap"));
        assert!(why("--ioprio idle", Pattern::Random, "posix-aio", 8).contains("posix-aio"));
    }

    #[test]
    fn orders_that_nothing_tells_apart_are_refused() {
        assert!(args("--queue elevator --queue none").check().is_ok());
        let error = args("--queue elevator --queue fifo").check().unwrap_err().to_string();
        assert!(error.contains("--queue-depth"), "{error}");
        assert!(args("--queue elevator --queue fifo --queue-depth 4").check().is_ok());
        assert!(args("--queue fifo --queue-depth 0").check().is_err());
        assert!(Cli::try_parse_from(["load", "--queue-depth", "3"]).is_err());
    }
}
