//! A server under attack by one client or by many at once, and its state afterwards.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::target::{BEYOND_BUDGET, Settings, Target};

const MIB: u64 = 1 << 20;

/// Clients of a storm.
pub const AT_ONCE: usize = 64;

/// How many send at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clients {
    One,
    Many,
}

/// Memory and time limit of a server, and the patience of its clients.
pub struct Bounds {
    pub memory_bytes: u64,
    pub timeout_s: u64,
    /// what an answer may take beyond the time its query may
    pub grace: Duration,
}

impl Bounds {
    /// Starts a server on a database.
    pub fn start(&self, db: PathBuf) -> Target {
        let target =
            Target::start(&Settings { db, memory_bytes: self.memory_bytes, timeout_s: self.timeout_s });
        let bound =
            if target.is_in_group() { "a memory cgroup" } else { "no cgroup: VmHWM alone is compared" };
        eprintln!("budget {} MiB, {bound}", self.memory_bytes / MIB);
        target
    }

    /// How long a client waits; among many, others come first.
    pub fn patience(&self, clients: Clients) -> Duration {
        let alone = Duration::from_secs(self.timeout_s) + self.grace;
        if clients == Clients::Many { alone * 3 } else { alone }
    }
}

/// The state of a server after an attack. One that died, or that something keeps busy, is started
/// again: that must not be held against the next case.
pub fn state_after(
    target: &mut Target,
    bounds: &Bounds,
    probe: impl Fn(&Target, Duration) -> Result<(), String>,
) -> Result<(), String> {
    let answered = probe(target, Duration::from_secs(5));
    let patience = Duration::from_millis(if answered.is_ok() { 0 } else { 500 });
    if let Some(error) = target.death(patience).or(answered.err()) {
        target.restart();
        return Err(error);
    }
    if let Some(panic) = target.new_panic() {
        return Err(format!("a thread of the server panicked: {panic}"));
    }
    let (peak, bound) = (target.peak(), bounds.memory_bytes + BEYOND_BUDGET);
    if peak > bound {
        return Err(format!("{} MiB resident, of {}", peak / MIB, bound / MIB));
    }
    Ok(())
}

/// Has [`AT_ONCE`] clients send all of these, while another client goes on asking. Returns the
/// faults.
pub fn storm<T: Sync>(
    all: &[T],
    send: impl Fn(&T) -> Result<(), String> + Sync,
    probe: impl Fn() -> Result<(), String> + Sync,
) -> Vec<String> {
    let (next, over, wrong) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(Vec::new()));
    let bystander = || {
        while !over.load(Ordering::SeqCst) {
            if let Err(error) = probe()
                && !error.contains(" 503 ")
            {
                wrong.lock().push(format!("a bystander: {error}"));
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let client = || {
        while let Some(one) = all.get(next.fetch_add(1, Ordering::SeqCst)) {
            wrong.lock().extend(send(one).err());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(bystander);
        let clients: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(client)).collect();
        clients.into_iter().for_each(|client| client.join().expect("clients do not panic"));
        over.store(true, Ordering::SeqCst);
    });
    wrong.into_inner()
}
