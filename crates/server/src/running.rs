//! The requests that run now, each with the flag that cancels it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use snowmelt_database::{Account, WaitFor};
use snowmelt_graph::{ChangeFor, ChangeProgress, GraphView};

use crate::durations::{Durations, RequestKind};

/// Bytes of a text that are kept to be shown.
const TEXT_BYTES: usize = 16 << 10;

/// How often a waiting request checks whether it was asked to stop.
pub const LOOK: Duration = Duration::from_millis(50);

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
    /// the query or the update, if it is long its beginning; of one that comes in, what is known
    text: Mutex<String>,
    pub cancel: Arc<AtomicBool>,
    /// of a change
    pub progress: Arc<ChangeProgress>,
    /// rows of the answer so far
    pub rows: Arc<AtomicU64>,
    account: Arc<Account>,
    begun: Instant,
    /// when it got its slot, if it had to wait for its body before that
    worked: OnceLock<Instant>,
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
    pub progress: Arc<ChangeProgress>,
}

impl Asker {
    /// Its account, interrupt and progress in the form that the database takes.
    pub fn wanted(&self) -> ChangeFor<'_> {
        ChangeFor { account: &self.account, interrupt: &*self.cancel, progress: &self.progress }
    }
}

impl Register {
    /// A register whose requests are timed together with those of another one.
    pub fn timed_with(other: &Register) -> Self {
        Self { durations: Arc::clone(&other.durations), ..Self::default() }
    }

    /// Enters a request.
    pub fn enter(
        self: &Arc<Self>,
        kind: RequestKind,
        dataset: &str,
        text: &str,
        account: &Arc<Account>,
    ) -> Running {
        let task = Arc::new(Task {
            number: 1 + self.next.fetch_add(1, Ordering::Relaxed),
            kind,
            dataset: dataset.to_owned(),
            text: Mutex::new(begin_of(text)),
            progress: Arc::default(),
            worked: OnceLock::new(),
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

fn begin_of(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_BYTES)].to_owned()
}

impl Task {
    /// The text, as far as it is known.
    pub fn text(&self) -> String {
        self.text.lock().expect("no holder panics").clone()
    }

    /// The text is known by now.
    pub fn tell(&self, text: &str) {
        *self.text.lock().expect("no holder panics") = begin_of(text);
    }

    /// Notes that the work has begun, from which its time is counted.
    pub fn works(&self) {
        let _ = self.worked.set(Instant::now());
    }

    /// Whether it was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Ends when it is asked to stop.
    pub async fn cancelled(&self) {
        while !self.is_cancelled() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// For people and programs.
    pub fn json(&self) -> Value {
        let progress = self.progress.now();
        json!({
            "request": self.number,
            "kind": self.kind.name(),
            "dataset": self.dataset,
            "text": self.text(),
            "phase": progress.map(|(phase, _)| phase.name()),
            "done": progress.map(|(_, done)| done),
            "seconds": self.begun.elapsed().as_secs_f64(),
            "rows": self.rows.load(Ordering::Relaxed),
            "activity": self.account.activity().to_string(),
            "waiting_for": self.account.sign().read().map(WaitFor::name),
            "is_cancelled": self.is_cancelled(),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Task { number, kind, ref cancel, begun, ref worked, .. } = *self.task;
        cancel.store(true, Ordering::Relaxed);
        self.register.durations.add(kind, worked.get().unwrap_or(&begun).elapsed());
        self.register.running.lock().expect("no holder panics").remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmelt_graph::ChangePhase;

    #[test]
    fn requests_are_listed_until_they_end() {
        let (register, account) = (Arc::new(Register::default()), Account::alone());
        let long = "é".repeat(TEXT_BYTES);
        let [first, second] =
            ["ASK {}", &long].map(|text| register.enter(RequestKind::Query, "", text, &account));
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
        assert_eq!(list[1].text().len(), TEXT_BYTES);
        assert!(list[1].json()["phase"].is_null());
        list[1].progress.enter(ChangePhase::Reading);
        list[1].progress.add(5);
        let told = list[1].json();
        assert_eq!((&told["phase"], &told["done"]), (&"reading".into(), &5.into()));
        drop(first);
        assert!(list[0].cancel.load(Ordering::Relaxed) && register.len() == 1);
        register.cancel_all();
        assert!(second.task.cancel.load(Ordering::Relaxed));
    }
}
