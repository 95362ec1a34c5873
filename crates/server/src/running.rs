//! The requests that run now, each with the flag that cancels it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Value, json};
use snowmelt_graph::{Account, GraphView, WaitFor};

use crate::durations::{Durations, RequestKind};

/// Bytes of a text that are kept to be shown.
const TEXT_BYTES: usize = 16 << 10;

/// All of them.
#[derive(Default)]
pub struct Register {
    /// how long requests took that are over
    pub durations: Arc<Durations>,
    running: Mutex<BTreeMap<u64, Arc<Task>>>,
    next: AtomicU64,
}

/// A request that runs.
pub struct Task {
    pub number: u64,
    pub kind: RequestKind,
    /// the dataset of it; empty: the only one, or none
    pub dataset: String,
    /// the query or the update, if it is long its beginning
    pub text: String,
    pub cancel: Arc<AtomicBool>,
    /// rows of the answer so far
    pub rows: Arc<AtomicU64>,
    account: Arc<Account>,
    begun: Instant,
}

/// A running request's entry. Dropping it cancels and forgets the request: the client has left,
/// or the answer is over.
pub struct Running {
    register: Arc<Register>,
    pub task: Arc<Task>,
}

/// The asker of a change: its account, and whether it still wants the change.
pub struct Asker {
    pub account: Arc<Account>,
    /// graphs that are there for it
    pub view: Option<Arc<GraphView>>,
    pub cancel: Arc<AtomicBool>,
}

impl Register {
    /// One whose requests are timed together with those of another.
    pub fn timed_with(other: &Register) -> Self {
        Self { durations: Arc::clone(&other.durations), ..Self::default() }
    }

    /// Enters a request.
    pub fn enter(
        self: &Arc<Self>,
        kind: RequestKind,
        (dataset, text): (&str, &str),
        account: &Arc<Account>,
    ) -> Running {
        let task = Arc::new(Task {
            number: 1 + self.next.fetch_add(1, Ordering::Relaxed),
            kind,
            dataset: dataset.to_owned(),
            text: text[..text.floor_char_boundary(TEXT_BYTES)].to_owned(),
            cancel: Arc::default(),
            rows: Arc::default(),
            account: Arc::clone(account),
            begun: Instant::now(),
        });
        self.running.lock().expect("no holder panics").insert(task.number, Arc::clone(&task));
        Running { register: Arc::clone(self), task }
    }

    /// Asks every running request to stop.
    pub fn cancel_all(&self) {
        for task in self.tasks() {
            task.cancel.store(true, Ordering::Relaxed);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.running.lock().expect("no holder panics").len()
    }

    /// All of them, the oldest first.
    pub fn tasks(&self) -> Vec<Arc<Task>> {
        self.running.lock().expect("no holder panics").values().cloned().collect()
    }
}

impl Task {
    /// For people and programs.
    pub fn json(&self) -> Value {
        json!({
            "request": self.number,
            "kind": self.kind.name(),
            "dataset": self.dataset,
            "text": self.text,
            "seconds": self.begun.elapsed().as_secs_f64(),
            "rows": self.rows.load(Ordering::Relaxed),
            "activity": self.account.activity().to_string(),
            "waiting_for": self.account.sign().read().map(WaitFor::name),
            "is_cancelled": self.cancel.load(Ordering::Relaxed),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Task { number, kind, ref cancel, begun, .. } = *self.task;
        cancel.store(true, Ordering::Relaxed);
        self.register.durations.add(kind, begun.elapsed());
        self.register.running.lock().expect("no holder panics").remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_listed_until_they_end() {
        let (register, account) = (Arc::new(Register::default()), Account::alone());
        let long = "é".repeat(TEXT_BYTES);
        let [first, second] =
            ["ASK {}", &long].map(|text| register.enter(RequestKind::Query, ("", text), &account));
        first.task.rows.store(7, Ordering::Relaxed);
        let list = register.tasks();
        let shown = account.sign().show(WaitFor::Turn);
        assert_eq!(list[0].json()["waiting_for"], "the turn of the writers");
        drop(shown);
        assert_eq!(list[0].json()["waiting_for"], Value::Null);
        assert_eq!(list.iter().map(|task| task.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(
            (list[0].json()["rows"].clone(), list[0].json()["kind"].clone()),
            (7.into(), "query".into())
        );
        assert_eq!(list[1].text.len(), TEXT_BYTES);
        drop(first);
        assert!(list[0].cancel.load(Ordering::Relaxed) && register.len() == 1);
        register.cancel_all();
        assert!(second.task.cancel.load(Ordering::Relaxed));
    }
}
