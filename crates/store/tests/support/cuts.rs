//! The power-cut simulator: random transactions on a disk whose power is cut, against a model, from one seed in one thread.
//!
//! The model keeps every state since the last acknowledged commit. After each cut the database is opened again (perhaps with another cut
//! during that) and must be exactly one of these states: every acknowledged commit is there, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use snowmelt_io::PowerDisk;
use snowmelt_store::{
    Background, Changes, Columns, FileOpener, JournalConfig, PageId, PageKind, Pending, Plant, ReadAhead,
    Reader, ScanBounds, Snapshot, Store, StoreConfig, StoreError, Transaction, TreeId, TupleTree,
};

use crate::support::{self, Random};

/// What the database holds.
#[derive(Clone, Default, PartialEq)]
pub struct Model {
    /// Content of hand-made pages.
    pages: BTreeMap<PageId, (TreeId, Arc<Vec<u8>>)>,
    records: BTreeMap<String, Vec<u8>>,
    /// Rows of a tuple tree.
    rows: BTreeSet<(u64, u64)>,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub cuts: u64,
    pub commits: u64,
    pub opens: u64,
    pub checkpoints: u64,
    pub recycled: u64,
    pub recovered_commits: u64,
    pub spilled: u64,
}

const ROWS: &str = "rows";

/// One run.
pub struct Cuts<'a> {
    dir: &'a Path,
    disk: PowerDisk,
    random: Random,
    plant: Option<Plant>,
    /// The states the database may be in: the last acknowledged one first.
    states: Vec<Model>,
    commits: u64,
    pub tally: Tally,
}

/// An open database and what hangs on it.
struct Open {
    store: Arc<Store>,
    pending: Vec<Pending>,
    snapshots: Vec<(Snapshot, Model)>,
}

/// A wrong answer.
pub type Wrong = String;

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
            tally: Tally::default(),
        }
    }

    fn config(&mut self) -> StoreConfig {
        let disk = self.disk.clone();
        StoreConfig {
            extent_pages: 8,
            memory_bytes: 64 << 20,
            pool_bytes: Some(64 * 8192),
            read_ahead: ReadAhead::none(),
            background: Background::Caller,
            files: Some(FileOpener::new(move |path, access| disk.open(path, access))),
            close_ms: 1_000_000,
            plant: self.plant,
            journal: JournalConfig {
                file_bytes: 64 << 10,
                part_bytes: 16 << 10,
                diff_bytes: 4 << 10,
                private_pages: Some(8 + self.random.below(40)),
                version_pages: Some(8 + self.random.below(60)),
                checkpoint_bytes: 32 << 10,
                // Nothing depends on the time: a seed is a run.
                checkpoint_s: 1_000_000,
                most_bytes: 512 << 10,
                ..JournalConfig::default()
            },
            ..StoreConfig::default()
        }
    }

    /// Runs until the power was cut `cuts` times.
    pub fn run(&mut self, cuts: u64) -> Result<(), Wrong> {
        let config = self.config();
        let stripes = [self.dir.join("a"), self.dir.join("b")];
        let store = Store::create(self.dir, &stripes, config).map_err(|e| format!("create: {e}"))?;
        self.disk.sync_names();
        let mut open = Some(Open { store, pending: Vec::new(), snapshots: Vec::new() });
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

    /// Opens the database, perhaps with a cut meanwhile, and compares it. `None` when the cut came first.
    fn reopen(&mut self) -> Result<Option<Open>, Wrong> {
        let config = self.config();
        if self.random.below(3) == 0 {
            self.disk.cut_in(self.random.below(6) as u64);
        } else {
            self.disk.cut_in(u64::MAX / 2);
        }
        self.tally.opens += 1;
        let store = match Store::open(self.dir, config) {
            Ok(store) => store,
            Err(_) if self.disk.is_off() => {
                self.tally.cuts += 1;
                self.disk.power_on();
                return Ok(None);
            }
            Err(e) => return Err(format!("open: {e}")),
        };
        self.tally.recovered_commits += store.recovery().commits;
        let snapshot = store.snapshot();
        let n = snapshot.record("n").map_or(0, |b| u64::from_le_bytes((*b).try_into().expect("eight bytes")));
        let number =
            |m: &Model| m.records.get("n").map_or(0, |b| u64::from_le_bytes(b[..].try_into().unwrap()));
        let Some(at) = self.states.iter().position(|m| number(m) == n) else {
            let known: Vec<u64> = self.states.iter().map(number).collect();
            return Err(format!("the database is at commit {n}, acknowledged or possible are {known:?}"));
        };
        let state = self.states[at].clone();
        compare(&store, &snapshot, &state)?;
        self.states = vec![state];
        self.commits = self.commits.max(n);
        Ok(Some(Open { store, pending: Vec::new(), snapshots: Vec::new() }))
    }

    fn work(&mut self, db: &mut Open) -> Result<(), Stop> {
        for _ in 0..5 + self.random.below(60) {
            match self.random.below(20) {
                0..=8 => self.transaction(db, Size::Small)?,
                9 => self.transaction(db, Size::Large)?,
                10 => self.build(db)?,
                11 | 12 => drop(db.store.checkpoint()?),
                13 | 14 => drop((0..self.random.below(8)).map(|_| db.store.step()).max()),
                15 if db.snapshots.len() < 3 && db.pending.is_empty() => {
                    let state = self.states.last().expect("there is a state").clone();
                    db.snapshots.push((db.store.snapshot(), state));
                }
                16 if !db.snapshots.is_empty() => {
                    drop(db.snapshots.swap_remove(self.random.below(db.snapshots.len())));
                }
                17 => self.acknowledge(db)?,
                _ => self.look_back(db)?,
            }
            if self.disk.is_off() {
                return Err(Stop::Store(StoreError::BuildBusy));
            }
        }
        self.acknowledge(db)
    }

    /// A snapshot still sees its state.
    fn look_back(&mut self, db: &Open) -> Result<(), Stop> {
        if let Some((snapshot, model)) = db.snapshots.first() {
            compare(&db.store, snapshot, model)
                .map_err(|e| self.or_off(format!("an older snapshot: {e}")))?;
        }
        Ok(())
    }

    fn or_off(&self, why: Wrong) -> Stop {
        if self.disk.is_off() { Stop::Store(StoreError::BuildBusy) } else { Stop::Wrong(why) }
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
        let mut next = self.states.last().expect("there is a state").clone();
        let changes = match size {
            Size::Small => 1 + self.random.below(5),
            Size::Large => 20 + self.random.below(120),
        };
        for _ in 0..changes {
            self.change(&mut txn, &mut next)?;
        }
        if self.random.below(8) == 0 {
            return Ok(());
        }
        self.commits += 1;
        next.records.insert("n".into(), self.commits.to_le_bytes().to_vec());
        txn.put_record("n", 1, &self.commits.to_le_bytes());
        self.states.push(next);
        db.pending.push(txn.append()?);
        if self.random.below(3) > 0 { self.acknowledge(db) } else { Ok(()) }
    }

    fn change(&mut self, txn: &mut Transaction, next: &mut Model) -> Result<(), Stop> {
        let some = next.pages.iter().nth(self.random.below(next.pages.len().max(1)));
        let some = some.map(|(p, (tree, bytes))| (*p, *tree, bytes.clone()));
        match (self.random.below(16), some) {
            (0, _) | (_, None) => {
                let name = format!("tree {}", self.random.below(3));
                let catalog = txn.snapshot();
                let old = catalog.catalog().trees.iter().find(|(_, n)| **n == name).map(|(id, _)| *id);
                next.pages.retain(|_, (tree, _)| Some(*tree) != old);
                let tree = txn.new_tree(&name);
                let page = txn.allocate(tree, None)?;
                self.fill(txn, next, tree, page)?;
            }
            (1..=4, Some((page, tree, _))) => self.fill(txn, next, tree, page)?,
            (5..=8, Some((page, tree, bytes))) => {
                let mut bytes = (*bytes).clone();
                let at = self.random.below(bytes.len() - 8);
                bytes[at..at + 8].copy_from_slice(&self.random.next().to_le_bytes());
                put(txn, next, tree, page, bytes)?;
            }
            (9 | 10, Some((near, tree, _))) => {
                let page = txn.allocate(tree, Some(near))?;
                self.fill(txn, next, tree, page)?;
            }
            (11, Some((page, tree, _))) => {
                txn.release(tree, page);
                next.pages.remove(&page);
            }
            (12, _) => {
                let name = format!("record {}", self.random.below(4));
                let bytes: Vec<u8> =
                    (0..self.random.below(40)).map(|i| i as u8 ^ self.random.next() as u8).collect();
                txn.put_record(&name, 1, &bytes);
                next.records.insert(name, bytes);
            }
            _ => self.rows(txn, next)?,
        }
        Ok(())
    }

    fn fill(
        &mut self,
        txn: &mut Transaction,
        next: &mut Model,
        tree: TreeId,
        page: PageId,
    ) -> Result<(), Stop> {
        let seed = self.random.next();
        let mut random = Random::new(seed);
        // Some compress, some do not.
        let mask = if seed.is_multiple_of(3) { 0x0101_0101_0101_0101 } else { u64::MAX };
        let bytes = (0..1020).flat_map(|_| (random.next() & mask).to_le_bytes()).collect();
        put(txn, next, tree, page, bytes)
    }

    /// Inserts and deletes rows of a tuple tree.
    fn rows(&mut self, txn: &mut Transaction, next: &mut Model) -> Result<(), Stop> {
        let mut tree = match txn.record(ROWS) {
            Some(bytes) => TupleTree::from_bytes(&bytes)?,
            None => TupleTree::create(txn, ROWS, 2)?,
        };
        let n = 1 + self.random.below(50);
        let rows: BTreeSet<(u64, u64)> =
            (0..n).map(|_| (self.random.below(40) as u64, self.random.below(200) as u64)).collect();
        let insert: Vec<bool> = rows.iter().map(|_| self.random.below(3) > 0).collect();
        let cols = vec![rows.iter().map(|r| r.0).collect(), rows.iter().map(|r| r.1).collect()];
        tree.apply(txn, &Changes { cols, insert: insert.clone() })?;
        txn.put_record(ROWS, 1, &tree.to_bytes());
        next.records.remove(ROWS);
        for (row, insert) in rows.into_iter().zip(insert) {
            if insert {
                next.rows.insert(row)
            } else {
                next.rows.remove(&row)
            };
        }
        Ok(())
    }

    /// Replaces a tree in bulk.
    fn build(&mut self, db: &mut Open) -> Result<(), Stop> {
        self.acknowledge(db)?;
        let mut next = self.states.last().expect("there is a state").clone();
        let build = db.store.begin_build()?;
        let name = format!("tree {}", self.random.below(3));
        let old = db.store.catalog_all().trees.iter().find(|(_, n)| **n == name).map(|(id, _)| *id);
        next.pages.retain(|_, (tree, _)| Some(*tree) != old);
        let mut writer = build.new_tree(&name);
        for _ in 0..self.random.below(30) {
            let seed = self.random.next();
            let mut page = support::page(seed, 1);
            let bytes = Arc::new(page.body().to_vec());
            let id = writer.append(&mut page)?;
            next.pages.insert(id, (writer.id(), bytes));
        }
        writer.finish()?;
        if self.random.below(4) == 0 {
            return Ok(());
        }
        self.commits += 1;
        next.records.insert("n".into(), self.commits.to_le_bytes().to_vec());
        build.put_record("n", 1, &self.commits.to_le_bytes());
        self.states.push(next);
        build.commit()?;
        self.states.drain(..self.states.len() - 1);
        db.pending.clear();
        Ok(())
    }
}

fn put(
    txn: &mut Transaction,
    next: &mut Model,
    tree: TreeId,
    page: PageId,
    bytes: Vec<u8>,
) -> Result<(), Stop> {
    let p = txn.page_mut(tree, page)?;
    p.set_header(PageKind::TupleLeaf, 0, 1);
    p.body_mut().copy_from_slice(&bytes);
    next.pages.insert(page, (tree, Arc::new(bytes)));
    Ok(())
}

/// The whole state as a snapshot sees it, against the model.
fn compare(store: &Arc<Store>, snapshot: &Snapshot, model: &Model) -> Result<(), Wrong> {
    let mut reader = Reader::new(store, snapshot.clone());
    for (page, (tree, bytes)) in &model.pages {
        let got = reader.page(*tree, *page).map_err(|e| format!("page {page}: {e}"))?;
        if got[32..] != bytes[..] {
            return Err(format!("page {page} of tree {} has another content", tree.0));
        }
    }
    for (name, bytes) in &model.records {
        if snapshot.record(name).as_deref() != Some(bytes) {
            return Err(format!("record {name:?} has another content"));
        }
    }
    let Some(record) = snapshot.record(ROWS) else {
        return if model.rows.is_empty() { Ok(()) } else { Err("the rows are gone".into()) };
    };
    let tree = TupleTree::from_bytes(&record).map_err(|e| format!("rows: {e}"))?;
    let rows = all_rows(&tree, &mut reader).map_err(|e| format!("rows: {e}"))?;
    if rows.iter().copied().eq(model.rows.iter().copied()) {
        Ok(())
    } else {
        Err("the rows are others".into())
    }
}

fn all_rows(tree: &TupleTree, reader: &mut Reader) -> Result<Vec<(u64, u64)>, StoreError> {
    let mut scan = tree.scan(ScanBounds::default());
    let (mut rows, mut out) = (Vec::new(), Columns::new(2));
    while scan.next(reader, &mut out, 4096)? {
        rows.extend((0..out.rows).map(|i| (out.cols[0][i], out.cols[1][i])));
        out.clear();
    }
    Ok(rows)
}

enum Size {
    Small,
    Large,
}

enum Stop {
    Store(StoreError),
    Wrong(Wrong),
}

impl From<StoreError> for Stop {
    fn from(e: StoreError) -> Stop {
        Stop::Store(e)
    }
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.cuts += other.cuts;
        self.commits += other.commits;
        self.opens += other.opens;
        self.checkpoints += other.checkpoints;
        self.recycled += other.recycled;
        self.recovered_commits += other.recovered_commits;
        self.spilled += other.spilled;
    }
}
