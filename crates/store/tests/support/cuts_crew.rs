//! The power-cut simulator with threads: writers, a loader, a checkpointer, the store's
//! background work, readers and a backup use one database at a time, each in a real thread, and
//! the power goes in the midst.
//!
//! Time is virtual and watched: when all threads wait and nothing is due, or one waits for longer
//! than any work takes, that is a wrong answer that says who waits for what. In virtual time one of
//! the threads runs at a time. Each request to the disk takes a time that the seed decides
//! (`snowmelt_io::PowerDisk`), and while one waits for its request, or for another thread, the next
//! one runs. So what each does comes between any two requests of another, and a seed is a run. Now
//! and then it is not the power that goes but the process: then what was written stays, and is not
//! durable.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use snowmelt_io::{Clock, EventCount, PowerDisk};
use snowmelt_store::{Background, Plant, Seams, Snapshot, Store, StoreConfig, StoreError};

use super::copy::Copy;
use super::model::{Model, NUMBER, Wrong, number_in};
use super::{Stop, Tally, change, config, is_short, state_in};
use crate::support::Random;

/// One run.
pub struct Crew<'a> {
    dir: &'a Path,
    disk: PowerDisk,
    clock: Clock,
    random: Random,
    plant: Option<Plant>,
    past: Mutex<Past>,
    pub tally: Tally,
}

/// Common knowledge of the threads.
struct Past {
    /// All states since the database was opened, in the order of their commits.
    states: Vec<Model>,
    /// The first of them that it may still be in.
    acknowledged: usize,
    commits: u64,
    loads: u64,
    /// Backups finished, and cut.
    backups: (u64, u64),
    /// Giant transactions, and those of them that were dropped.
    giants: (u64, u64),
    /// The latest backup, until it was looked at after a cut.
    copy: Option<Copy>,
}

/// The longest that a thread may wait, in virtual time: nothing takes as long.
const PATIENCE_NS: u64 = 60_000_000_000;

/// Task of a thread.
#[derive(Clone, Copy, Debug)]
enum Role {
    Writer,
    Loader,
    /// Does what the store's own thread would do, where there is none.
    Background,
    Checkpointer,
    Reader,
    Backup,
}

/// Two of those that make files of the journal.
const CREW: [Role; 8] = [
    Role::Writer,
    Role::Writer,
    Role::Background,
    Role::Background,
    Role::Checkpointer,
    Role::Reader,
    Role::Loader,
    Role::Backup,
];

impl<'a> Crew<'a> {
    /// A run of `seed` whose lock file lies in `dir`.
    pub fn new(dir: &'a Path, seed: u64, plant: Option<Plant>) -> Crew<'a> {
        let clock = Clock::virtual_time(2);
        let past = Past {
            states: vec![Model::default()],
            acknowledged: 0,
            commits: 0,
            loads: 0,
            backups: (0, 0),
            giants: (0, 0),
            copy: None,
        };
        Crew {
            dir,
            disk: PowerDisk::in_time(seed, &clock),
            clock,
            random: Random::new(seed),
            plant,
            past: Mutex::new(past),
            tally: Tally::default(),
        }
    }

    /// Digest of the disk's requests, in their order: equal for equal runs.
    pub fn digest(&self) -> u64 {
        self.disk.digest()
    }

    fn config(&mut self) -> StoreConfig {
        let clock = self.clock.clone();
        let background = [Background::Caller, Background::Participant][self.random.below(2)];
        let config = config(&self.disk, &mut self.random, self.plant);
        StoreConfig { seams: Seams { clock, background, ..config.seams }, ..config }
    }

    /// Runs until the power was cut, or the process killed, `cuts` times.
    pub fn run(&mut self, cuts: u64) -> Result<(), Wrong> {
        let clock = self.clock.clone();
        clock.watch(PATIENCE_NS);
        let done = catch_unwind(AssertUnwindSafe(|| {
            let _taking_part = clock.enter();
            self.run_in_time(cuts)
        }));
        match (clock.take_standstill(), done) {
            (Some(report), _) => Err(report.to_string()),
            (None, Ok(done)) => done,
            (None, Err(panic)) => resume_unwind(panic),
        }
    }

    fn run_in_time(&mut self, cuts: u64) -> Result<(), Wrong> {
        let config = self.config();
        let stripes = [self.dir.join("a"), self.dir.join("b")];
        let store = Store::create(self.dir, &stripes, config).map_err(|e| format!("create: {e}"))?;
        self.disk.sync_names();
        let mut open = Some(store);
        while self.tally.cuts < cuts {
            let opened = match open.take() {
                Some(store) => Some(store),
                None => self.reopen()?,
            };
            let Some(store) = opened else { continue };
            let steps = match self.random.below(4) {
                0 => self.random.below(40),
                1 => self.random.below(1000),
                _ => self.random.below(300),
            };
            self.disk.cut_in(steps as u64);
            self.work(&store)?;
            // The bug that keeps the journal long is to be found by the threads that wait for it.
            if !self.disk.is_off() && self.plant != Some(Plant::KeepDeadJournal) {
                self.all_is_given_back(&store)?;
            }
            self.count(&store);
            drop(store);
            self.after_cut();
        }
        Ok(())
    }

    /// The crew has ended: a checkpoint leaves nothing in the journal.
    fn all_is_given_back(&self, store: &Store) -> Result<(), Wrong> {
        let done = store.checkpoint();
        match done {
            Ok(true) => is_short(store).or_else(|why| if self.disk.is_off() { Ok(()) } else { Err(why) }),
            _ if self.disk.is_off() => Ok(()),
            Ok(false) => Err("nobody reads, and a checkpoint leaves something".into()),
            Err(e) => Err(format!("an error without a cause: {e}")),
        }
    }

    fn after_cut(&mut self) {
        if !self.disk.is_off() {
            return;
        }
        self.tally.cuts += 1;
        if self.random.below(5) == 0 {
            self.tally.kills += 1;
            self.disk.restore_power();
        } else {
            self.disk.power_on();
        }
    }

    fn count(&mut self, store: &Arc<Store>) {
        let stats = store.journal_stats();
        self.tally.checkpoints += stats.checkpoints;
        self.tally.recycled += stats.recycled;
        self.tally.commits += stats.commits;
        self.tally.spilled += stats.records - stats.commits.min(stats.records);
        let mut past = self.past.lock();
        let (backups, cut_backups) = std::mem::take(&mut past.backups);
        self.tally.loads += std::mem::take(&mut past.loads);
        let (giants, dropped) = std::mem::take(&mut past.giants);
        self.tally.giants += giants;
        self.tally.dropped_giants += dropped;
        self.tally.backups += backups;
        self.tally.cut_backups += cut_backups;
    }

    /// Opens the database, perhaps with a cut meanwhile, and compares it. `None` when the cut
    /// came first.
    fn reopen(&mut self) -> Result<Option<Arc<Store>>, Wrong> {
        let config = self.config();
        let cut = if self.random.below(3) == 0 { self.random.below(6) as u64 } else { u64::MAX / 2 };
        self.disk.cut_in(cut);
        self.tally.opens += 1;
        let opened = Store::open(self.dir, config);
        if self.disk.is_off() {
            // The open may have succeeded: a cut that met only the reserve is no error.
            self.after_cut();
            return Ok(None);
        }
        let store = opened.map_err(|e| format!("open: {e}"))?;
        self.tally.recovered_commits += store.recovery().commits;
        let snapshot = store.snapshot();
        let past = self.past.get_mut();
        let state = state_in(&snapshot, &past.states[past.acknowledged..])?;
        self.disk.cut_in(u64::MAX / 2);
        state.compare(&store, &snapshot)?;
        let past = self.past.get_mut();
        past.commits = past.commits.max(state.number());
        (past.states, past.acknowledged) = (vec![state], 0);
        if let Some(copy) = past.copy.take() {
            copy.check(self.config())?;
        }
        Ok(Some(store))
    }

    /// Has all of the crew work until they are done or the power is off.
    fn work(&mut self, store: &Arc<Store>) -> Result<(), Wrong> {
        let seeds: Vec<u64> = CREW.iter().map(|_| self.random.next()).collect();
        let tickets = self.clock.reserve(CREW.len());
        let (this, clock) = (&*self, self.clock.clone());
        let (over, all_over) = (AtomicUsize::new(0), EventCount::named(&clock, "the end of the crew"));
        let ends: Vec<Result<(), Stop>> = std::thread::scope(|scope| {
            let each = CREW.iter().zip(seeds).zip(tickets);
            let threads: Vec<_> = each
                .map(|((role, seed), ticket)| {
                    let (over, all_over) = (&over, &all_over);
                    let run = move || {
                        let _taking_part = ticket.enter();
                        let end = this.play(*role, store, &mut Random::new(seed));
                        over.fetch_add(1, Ordering::SeqCst);
                        all_over.notify_all();
                        end
                    };
                    let named = std::thread::Builder::new().name(format!("{role:?}"));
                    named.spawn_scoped(scope, run).expect("there is room for a thread")
                })
                .collect();
            all_over.wait_until(|| over.load(Ordering::SeqCst) == CREW.len());
            threads.into_iter().map(|t| t.join().expect("nobody panics")).collect()
        });
        let mut past = self.past.lock();
        if let Past { copy: Some(copy), states, .. } = &mut *past {
            copy.states = states.clone();
        }
        for end in ends {
            match end {
                Ok(()) => {}
                Err(Stop::Wrong(why)) => return Err(why),
                Err(Stop::Store(e)) if !self.disk.is_off() => {
                    return Err(format!("an error without a cause: {e}"));
                }
                Err(Stop::Store(_)) => {}
            }
        }
        Ok(())
    }

    fn play(&self, role: Role, store: &Arc<Store>, random: &mut Random) -> Result<(), Stop> {
        for _ in 0..5 + random.below(25) {
            if self.disk.is_off() {
                return Ok(());
            }
            let pause = random.below(20_000) as u64;
            match role {
                Role::Writer => {
                    for _ in 0..1 + random.below(3) {
                        self.transaction(store, random)?;
                    }
                    continue;
                }
                Role::Loader if random.below(4) == 0 => self.load(store, random)?,
                Role::Background if store.config().seams.background == Background::Caller => {
                    (0..random.below(8)).for_each(|_| _ = store.step());
                }
                Role::Checkpointer => drop(store.checkpoint()?),
                Role::Reader => self.read(store, random)?,
                Role::Backup if random.below(8) == 0 => self.backup(store, random)?,
                _ => {}
            }
            self.clock.sleep_ns(pause);
        }
        Ok(())
    }

    fn transaction(&self, store: &Arc<Store>, random: &mut Random) -> Result<(), Stop> {
        let mut txn = store.begin()?;
        // No other thread may commit until this transaction is appended or dropped.
        let (mut next, commit) = self.next();
        if random.below(60) == 0 {
            change::giant(random, &mut txn, &mut next)?;
            let drops = random.below(2) == 0;
            let mut past = self.past.lock();
            past.giants.0 += 1;
            past.giants.1 += u64::from(drops);
            if drops {
                return Ok(());
            }
        }
        let changes = if random.below(12) == 0 { 20 + random.below(60) } else { 1 + random.below(5) };
        for _ in 0..changes {
            change::change(random, &mut txn, &mut next)?;
        }
        if random.below(8) == 0 {
            return Ok(());
        }
        txn.put_record(NUMBER, 1, &change::number(&mut next, commit));
        self.past.lock().states.push(next);
        let pending = txn.append().map_err(|e| self.refused(commit, e))?;
        // A commit that is not waited for is made durable by others.
        if random.below(4) > 0 {
            pending.wait()?;
            self.acknowledge(commit);
        }
        Ok(())
    }

    /// A commit that failed is no state, unless its outcome is unknown: a thread that begins before
    /// the store is given up builds on the state before.
    fn refused(&self, commit: u64, error: StoreError) -> Stop {
        if !matches!(error, StoreError::OutcomeUnknown { .. }) {
            self.past.lock().states.retain(|m| m.number() != commit);
        }
        error.into()
    }

    /// The newest state and the number of the next commit.
    fn next(&self) -> (Model, u64) {
        let mut past = self.past.lock();
        past.commits += 1;
        (past.states.last().expect("there is a state").clone(), past.commits)
    }

    fn acknowledge(&self, commit: u64) {
        let mut past = self.past.lock();
        let at = past.states.iter().rposition(|m| m.number() == commit).expect("it was pushed");
        past.acknowledged = past.acknowledged.max(at);
    }

    fn load(&self, store: &Arc<Store>, random: &mut Random) -> Result<(), Stop> {
        let build = store.begin_build()?;
        let (mut next, commit) = self.next();
        // A load looks at what is visible.
        while number_in(&store.snapshot()) != next.number() && !self.disk.is_off() {
            store.step();
        }
        let Some(build) = change::load(random, build, store, &mut next, commit)? else { return Ok(()) };
        self.past.lock().states.push(next);
        build.commit().map_err(|e| self.refused(commit, e))?;
        self.acknowledge(commit);
        self.past.lock().loads += 1;
        Ok(())
    }

    /// A snapshot sees one whole state, no older than what was acknowledged before, and still
    /// does when others went on.
    fn read(&self, store: &Arc<Store>, random: &mut Random) -> Result<(), Stop> {
        let oldest = self.past.lock().acknowledged;
        let snapshot = store.snapshot();
        for _ in 0..1 + random.below(3) {
            self.compare(store, &snapshot, oldest).map_err(|e| self.or_off(format!("a snapshot: {e}")))?;
        }
        Ok(())
    }

    fn compare(&self, store: &Arc<Store>, snapshot: &Snapshot, oldest: usize) -> Result<(), Wrong> {
        let n = number_in(snapshot);
        let known = self.past.lock().states[oldest..].iter().find(|m| m.number() == n).cloned();
        let state = known.ok_or_else(|| format!("it is of commit {n}"))?;
        state.compare(store, snapshot)
    }

    fn or_off(&self, why: Wrong) -> Stop {
        if self.disk.is_off() { Stop::off() } else { Stop::Wrong(why) }
    }

    /// Copies the newest state; it is looked at after the next cut.
    fn backup(&self, store: &Store, random: &mut Random) -> Result<(), Stop> {
        let mut copy = Copy::new(&self.disk, self.dir, Vec::new());
        let made = copy.make(store, 1 + random.below(2));
        let mut past = self.past.lock();
        past.copy = Some(copy);
        past.backups.0 += u64::from(made.is_ok());
        past.backups.1 += u64::from(made.is_err());
        Ok(made?)
    }
}
