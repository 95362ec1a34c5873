//! Admission control: so many queries and so many changes are under way, others wait for a slot.
//!
//! Changes wait for each other; with slots of their own they do not keep queries out.

use std::time::Duration;

use serde_json::{Value, json};
use snowmelt_database::meters::Samples;

use super::answers::{Failure, Why};
use crate::limits::ServerLimits;
use crate::slots::{Slot, Slots};

/// The slots of a server.
pub struct Admission {
    queries: Slots,
    changes: Slots,
    /// the longest that a request waits
    wait: Duration,
}

impl Admission {
    /// As many slots as the limits say, all free.
    pub fn new(limits: &ServerLimits) -> Self {
        Self { queries: Slots::new(limits.queries), changes: Slots::new(limits.changes), wait: limits.wait }
    }

    /// A slot for a query, once one is free.
    pub async fn query(&self) -> Result<Slot, Failure> {
        self.take(&self.queries, "queries", "--queries").await
    }

    /// A slot for a change, once one is free.
    pub async fn change(&self) -> Result<Slot, Failure> {
        self.take(&self.changes, "changes", "--changes").await
    }

    /// A place for a query that may wait for endpoints, before it begins.
    pub async fn waiting_place(&self, places: &Slots) -> Result<Slot, Failure> {
        self.take(places, "queries that ask endpoints", "--memory").await
    }

    async fn take(&self, slots: &Slots, what: &'static str, switch: &'static str) -> Result<Slot, Failure> {
        let busy = || Why::Busy { what, all: slots.all(), switch, wait: self.wait };
        slots.take(self.wait).await.ok_or_else(|| busy().into())
    }

    /// The slots, and the waits for them.
    pub fn json(&self) -> Value {
        let of = |slots: &Slots| {
            let (waited, time) = slots.waited();
            json!({ "all": slots.all(), "waited": waited, "waited_s": time.as_secs_f64() })
        };
        json!({ "queries": of(&self.queries), "changes": of(&self.changes) })
    }

    /// The waits as meters.
    pub fn sample(&self, samples: &mut Samples) {
        for (kind, slots) in [("queries", &self.queries), ("changes", &self.changes)] {
            let (waited, time) = slots.waited();
            samples.labelled("kind", kind, |samples| {
                samples.count("turns.*.waited", "requests", waited);
                samples.count("turns.*.waited_s", "s", time.as_secs_f64());
            });
        }
    }
}
