//! The power-cut simulator: random transactions, loads, backups on a disk whose power is cut,
//! against a model, from one seed in one thread.
//!
//! The model keeps every state since the last acknowledged commit. After each cut the database
//! is opened again (perhaps with another cut during that) and must be exactly one of these
//! states: every acknowledged commit is there, and nothing else is. A backup must be the one
//! state it was begun at, or, unfinished, no database.

use std::path::Path;
use std::sync::Arc;

use snowmelt_io::PowerDisk;
use snowmelt_store::{
    JournalConfig, Pending, Plant, Seams, Snapshot, Store, StoreConfig, StoreError, TempSpace,
};

use crate::support::{Random, tiny};
use copy::Copy;
use model::{Model, NUMBER, Wrong, number_in};

#[path = "cuts_change.rs"]
mod change;
#[path = "cuts_copy.rs"]
mod copy;
#[path = "cuts_crew.rs"]
pub mod crew;
#[path = "cuts_model.rs"]
mod model;

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub cuts: u64,
    /// Those of them where the process was killed and the power stayed.
    pub kills: u64,
    pub commits: u64,
    pub loads: u64,
    pub opens: u64,
    pub checkpoints: u64,
    pub recycled: u64,
    pub recovered_commits: u64,
    pub spilled: u64,
    /// Backups that were finished, and those that a cut ended.
    pub backups: u64,
    pub cut_backups: u64,
    /// Pieces that were put aside and read back.
    pub aside: u64,
    /// Transactions longer than the journal may be, and those of them that were dropped.
    pub giants: u64,
    pub dropped_giants: u64,
}

/// One run.
pub struct Cuts<'a> {
    dir: &'a Path,
    disk: PowerDisk,
    random: Random,
    plant: Option<Plant>,
    /// The states the database may be in: the last acknowledged one first.
    states: Vec<Model>,
    commits: u64,
    /// The latest backup, until it was looked at after a cut.
    copy: Option<Copy>,
    pub tally: Tally,
}

/// Settings of a small database on `disk`.
fn config(disk: &PowerDisk, random: &mut Random, plant: Option<Plant>) -> StoreConfig {
    let tiny = tiny(disk);
    StoreConfig {
        journal: JournalConfig {
            private_pages: Some(8 + random.below(40)),
            version_pages: Some(8 + random.below(60)),
            // Too little for most journals: pages are written back before the database opens.
            recovery_bytes: [None, Some(64 << 10)][random.below(2)],
            ..tiny.journal
        },
        seams: Seams { plant, ..tiny.seams },
        ..tiny
    }
}

/// The one of the possible states that a database is in after a cut.
fn state_in(snapshot: &Snapshot, possible: &[Model]) -> Result<Model, Wrong> {
    let n = number_in(snapshot);
    possible.iter().find(|m| m.number() == n).cloned().ok_or_else(|| {
        let known: Vec<u64> = possible.iter().map(Model::number).collect();
        format!("the database is at commit {n}, acknowledged or possible are {known:?}")
    })
}

/// An open database and what hangs on it.
struct Open {
    store: Arc<Store>,
    pending: Vec<Pending>,
    snapshots: Vec<(Snapshot, Model)>,
    aside: Option<Aside>,
}

/// Bytes that a query has put aside, with their places.
struct Aside {
    space: TempSpace,
    parts: Vec<(u64, Vec<u8>)>,
}

impl<'a> Cuts<'a> {
    /// A run of `seed` whose lock file lies in `dir`.
    pub fn new(dir: &'a Path, seed: u64, plant: Option<Plant>) -> Cuts<'a> {
        Cuts {
            dir,
            disk: PowerDisk::new(seed),
            random: Random::new(seed),
            plant,
            states: vec![Model::default()],
            commits: 0,
            copy: None,
            tally: Tally::default(),
        }
    }

    /// Digest of the disk's requests, in their order: equal for equal runs.
    pub fn digest(&self) -> u64 {
        self.disk.digest()
    }

    fn config(&mut self) -> StoreConfig {
        config(&self.disk, &mut self.random, self.plant)
    }

    /// Runs until the power was cut `cuts` times.
    pub fn run(&mut self, cuts: u64) -> Result<(), Wrong> {
        let config = self.config();
        let stripes = [self.dir.join("a"), self.dir.join("b")];
        let store = Store::create(self.dir, &stripes, config).map_err(|e| format!("create: {e}"))?;
        self.disk.sync_names();
        let mut open = Some(Open { store, pending: Vec::new(), snapshots: Vec::new(), aside: None });
        while self.tally.cuts < cuts {
            let opened = match open.take() {
                Some(db) => Some(db),
                None => self.reopen()?,
            };
            let Some(mut db) = opened else { continue };
            let steps = match self.random.below(4) {
                0 => self.random.below(20),
                1 => self.random.below(600),
                _ => self.random.below(150),
            };
            self.disk.cut_in(steps as u64);
            match self.work(&mut db) {
                Ok(()) => {}
                Err(Stop::Wrong(why)) => return Err(why),
                Err(Stop::Store(e)) if !self.disk.is_off() => {
                    return Err(format!("an error without a cause: {e}"));
                }
                Err(Stop::Store(_)) => {}
            }
            self.count(&db.store);
            drop(db);
            if self.disk.is_off() {
                self.tally.cuts += 1;
                self.disk.power_on();
            }
        }
        Ok(())
    }

    fn count(&mut self, store: &Arc<Store>) {
        let stats = store.journal_stats();
        self.tally.checkpoints += stats.checkpoints;
        self.tally.recycled += stats.recycled;
        self.tally.commits += stats.commits;
        self.tally.spilled += stats.records - stats.commits.min(stats.records);
    }

    /// Opens the database, perhaps with a cut meanwhile, and compares it. `None` when the cut
    /// came first.
    fn reopen(&mut self) -> Result<Option<Open>, Wrong> {
        let config = self.config();
        if self.random.below(3) == 0 {
            self.disk.cut_in(self.random.below(6) as u64);
        } else {
            self.disk.cut_in(u64::MAX / 2);
        }
        self.tally.opens += 1;
        let opened = Store::open(self.dir, config);
        if self.disk.is_off() {
            // The open may have succeeded: a cut that met only the reserve is no error.
            self.tally.cuts += 1;
            self.disk.power_on();
            return Ok(None);
        }
        let store = opened.map_err(|e| format!("open: {e}"))?;
        self.tally.recovered_commits += store.recovery().commits;
        let snapshot = store.snapshot();
        let state = state_in(&snapshot, &self.states)?;
        state.compare(&store, &snapshot)?;
        let mut damage = None;
        store.check_pages(|e| damage = Some(e), |_| {});
        if let Some(e) = damage {
            return Err(format!("a check after a cut found: {e}"));
        }
        self.commits = self.commits.max(state.number());
        self.states = vec![state];
        if let Some(copy) = self.copy.take() {
            self.disk.cut_in(u64::MAX / 2);
            let config = self.config();
            copy.check(config)?;
        }
        Ok(Some(Open { store, pending: Vec::new(), snapshots: Vec::new(), aside: None }))
    }

    fn work(&mut self, db: &mut Open) -> Result<(), Stop> {
        for _ in 0..5 + self.random.below(60) {
            match self.random.below(24) {
                0..=8 => self.transaction(db, Size::Small)?,
                9 => self.transaction(db, Size::Large)?,
                10 => self.load(db)?,
                11 | 12 => self.checkpoint(db)?,
                13 | 14 => drop((0..self.random.below(8)).map(|_| db.store.step()).max()),
                15 if db.snapshots.len() < 3 && db.pending.is_empty() => {
                    let state = self.newest().clone();
                    db.snapshots.push((db.store.snapshot(), state));
                }
                16 if !db.snapshots.is_empty() => {
                    drop(db.snapshots.swap_remove(self.random.below(db.snapshots.len())));
                }
                17 => self.acknowledge(db)?,
                18 => self.backup(&db.store)?,
                21 => self.put_aside(db)?,
                23 if self.random.below(4) == 0 => self.transaction(db, Size::Giant)?,
                22 => db.aside = None,
                _ => self.look_back(db)?,
            }
            if self.disk.is_off() {
                return Err(Stop::off());
            }
        }
        self.acknowledge(db)
    }

    /// Writes back; then the journal holds only what readers need.
    fn checkpoint(&mut self, db: &Open) -> Result<(), Stop> {
        let is_all_back = db.store.checkpoint()?;
        if is_all_back && db.snapshots.is_empty() {
            is_short(&db.store).map_err(|why| self.or_off(why))?;
        }
        Ok(())
    }

    fn newest(&self) -> &Model {
        self.states.last().expect("there is a state")
    }

    /// A query puts bytes aside, and finds what it has put aside before.
    fn put_aside(&mut self, db: &mut Open) -> Result<(), Stop> {
        if db.aside.is_none() {
            db.aside = Some(Aside { space: db.store.temp_space()?, parts: Vec::new() });
        }
        let Aside { space, parts } = db.aside.as_mut().expect("just made");
        for _ in 0..self.random.below(12) {
            let byte = self.random.below(256) as u8;
            let bytes = vec![byte; 1 + self.random.below(20_000)];
            parts.push((space.append(&[&bytes])?, bytes));
        }
        for (at, bytes) in parts {
            if *space.read(*at, bytes.len())? != bytes[..] {
                return Err(Stop::Wrong(format!("what was put aside at {at} came back otherwise")));
            }
            self.tally.aside += 1;
        }
        Ok(())
    }

    /// A snapshot still sees its state.
    fn look_back(&mut self, db: &Open) -> Result<(), Stop> {
        if let Some((snapshot, model)) = db.snapshots.first() {
            model.compare(&db.store, snapshot).map_err(|e| self.or_off(format!("an older snapshot: {e}")))?;
        }
        Ok(())
    }

    fn or_off(&self, why: Wrong) -> Stop {
        if self.disk.is_off() { Stop::off() } else { Stop::Wrong(why) }
    }

    fn acknowledge(&mut self, db: &mut Open) -> Result<(), Stop> {
        let Some(last) = db.pending.pop() else { return Ok(()) };
        last.wait()?;
        self.states.drain(..self.states.len() - 1);
        // Those before it are durable with it.
        for p in db.pending.drain(..) {
            p.wait()?;
        }
        Ok(())
    }

    fn transaction(&mut self, db: &mut Open, size: Size) -> Result<(), Stop> {
        let mut txn = db.store.begin()?;
        let mut next = self.newest().clone();
        let changes = match size {
            Size::Small => 1 + self.random.below(5),
            Size::Large => 20 + self.random.below(120),
            Size::Giant => {
                change::giant(&mut self.random, &mut txn, &mut next)?;
                self.tally.giants += 1;
                if self.random.below(2) == 0 {
                    self.tally.dropped_giants += 1;
                    return Ok(());
                }
                0
            }
        };
        for _ in 0..changes {
            change::change(&mut self.random, &mut txn, &mut next)?;
        }
        if self.random.below(30) == 0 {
            // The backup has none of the changes, which are not committed yet.
            self.backup(&db.store)?;
        }
        if self.random.below(8) == 0 {
            return Ok(());
        }
        self.commits += 1;
        txn.put_record(NUMBER, 1, &change::number(&mut next, self.commits));
        self.states.push(next);
        db.pending.push(txn.append()?);
        if self.random.below(3) > 0 { self.acknowledge(db) } else { Ok(()) }
    }

    /// Writes trees in bulk.
    fn load(&mut self, db: &mut Open) -> Result<(), Stop> {
        self.acknowledge(db)?;
        let mut next = self.newest().clone();
        self.commits += 1;
        let build = db.store.begin_build()?;
        let Some(build) = change::load(&mut self.random, build, &db.store, &mut next, self.commits)? else {
            return Ok(());
        };
        self.states.push(next);
        build.commit()?;
        self.states.drain(..self.states.len() - 1);
        db.pending.clear();
        self.tally.loads += 1;
        Ok(())
    }

    /// Copies the newest state, and looks at the copy now and after the next cut.
    fn backup(&mut self, store: &Store) -> Result<(), Stop> {
        let copy = Copy::new(&self.disk, self.dir, vec![self.newest().clone()]);
        let stripes = 1 + self.random.below(2);
        let made = self.copy.insert(copy).make(store, stripes);
        self.tally.cut_backups += u64::from(made.is_err());
        made?;
        self.tally.backups += 1;
        if self.random.below(4) == 0 {
            let config = self.config();
            let checked = self.copy.as_ref().expect("just made").check(config);
            checked.map_err(|e| self.or_off(e))?;
        }
        Ok(())
    }
}

enum Size {
    Small,
    Large,
    Giant,
}

/// Once everything is written back, the journal is no longer than the file under way.
fn is_short(store: &Store) -> Result<(), Wrong> {
    let (stats, most) = (store.journal_stats(), store.config().journal.file_bytes);
    match stats.bytes_to_recover {
        bytes if bytes > most => {
            Err(format!("everything is written back, and {bytes} bytes of the journal are kept: {stats:?}"))
        }
        _ => Ok(()),
    }
}

enum Stop {
    Store(StoreError),
    Wrong(Wrong),
}

impl Stop {
    /// The power is off.
    fn off() -> Stop {
        Stop::Store(StoreError::BuildBusy)
    }
}

impl From<StoreError> for Stop {
    fn from(e: StoreError) -> Stop {
        Stop::Store(e)
    }
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.cuts += other.cuts;
        self.kills += other.kills;
        self.commits += other.commits;
        self.loads += other.loads;
        self.opens += other.opens;
        self.checkpoints += other.checkpoints;
        self.recycled += other.recycled;
        self.recovered_commits += other.recovered_commits;
        self.spilled += other.spilled;
        self.backups += other.backups;
        self.cut_backups += other.cut_backups;
        self.aside += other.aside;
        self.giants += other.giants;
        self.dropped_giants += other.dropped_giants;
    }
}
