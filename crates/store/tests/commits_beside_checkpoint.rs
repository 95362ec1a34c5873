//! Commits at a rate on simulated devices that have data and journal, in virtual time: beside a
//! checkpoint they take hardly longer than without one.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use snowmelt_io::{ClientTicket, Clock, Device, DeviceModel, FileBeside, QueueConfig, SimulatedDevice};
use snowmelt_store::{
    Background, BuildPlace, Checkpoints, DeviceWrap, JournalConfig, JournalStats, PageKind, ReadAhead, Seams,
    Store, StoreConfig, Waiter,
};
use support::{Random, TestTree, build_tree, config};

/// Pages of the tree, and how far those that a checkpoint has to write lie apart.
const PAGES: usize = 4800;
const APART: usize = 4;
const DIRTY: usize = PAGES / APART;

const SECOND: u64 = 1_000_000_000;

/// Threads that commit.
const THREADS: usize = 4;

/// A database whose journal says more than its stripe: as after a crash.
struct Bed {
    dir: tempfile::TempDir,
    tree: TestTree,
    /// Bound with which its journal is late: longer than five of eight parts.
    late_bytes: u64,
}

impl Bed {
    fn new() -> Bed {
        let dir = tempfile::tempdir().unwrap();
        let journal = JournalConfig { file_bytes: 1 << 20, ..held() };
        let c = StoreConfig {
            journal,
            seams: Seams { background: Background::Caller, ..Seams::default() },
            ..config(512, ReadAhead::none())
        };
        let store = Store::create(&dir.path().join("db"), &[], c.clone()).unwrap();
        let tree = build_tree(&store, "t", 1, PAGES as u64);
        let dirty: Vec<_> = (0..DIRTY).map(|n| tree.pages[n * APART]).collect();
        for part in dirty.chunks(20) {
            let mut txn = store.begin().unwrap();
            support::fill(&mut txn, tree.id, part, 2);
            txn.commit().unwrap();
        }
        let store = support::reopen(&dir.path().join("db"), store, c);
        let late_bytes = store.journal_stats().bytes_to_recover / 100 * 155;
        Bed { dir, tree, late_bytes }
    }

    /// A copy of the database: a run changes it.
    fn copy(&self) -> tempfile::TempDir {
        let to = tempfile::tempdir().unwrap();
        let (from, db) = (self.dir.path().join("db"), to.path().join("db"));
        std::fs::create_dir(&db).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), db.join(entry.file_name())).unwrap();
        }
        to
    }
}

/// A run of commits.
#[derive(Clone)]
struct Run {
    model: DeviceModel,
    /// Whether the credits of a volume end at the begin.
    is_spent: bool,
    commits_per_s: f64,
    seconds: u64,
    beside: Beside,
    /// Commits of the first seconds that do not count: a journal file is made for them.
    skipped_s: u64,
    journal: JournalConfig,
}

/// Work beside the commits, other than the checkpointer's.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    /// Trees are built.
    Load,
}

/// The outcome of a run.
#[derive(Debug)]
struct Outcome {
    commits: Vec<u64>,
    stats: JournalStats,
    open_ms: u64,
    /// Extents that a load wrote meanwhile.
    loaded: u64,
    /// From the begin to the end of the first checkpoint.
    checkpoint_ms: Option<u64>,
}

impl Outcome {
    fn percentile_us(&self, share: f64) -> u64 {
        let mut sorted = self.commits.clone();
        sorted.sort_unstable();
        sorted[((sorted.len() - 1) as f64 * share).ceil() as usize] / 1000
    }
}

/// Data and journal on one simulated device.
fn on_one_device(model: &DeviceModel, is_spent: bool, clock: &Clock) -> (DeviceWrap, DeviceWrap) {
    /// Where the journal's files begin, each with so much room.
    const BEGIN: u64 = 1 << 30;
    const ROOM: u64 = 64 << 20;
    let device: Arc<Mutex<Option<Arc<SimulatedDevice>>>> = Arc::default();
    let (made, model, of_stripe, of_journal) = (device.clone(), model.clone(), clock.clone(), clock.clone());
    let stripes = DeviceWrap::new(move |_, file| {
        let device = Arc::new(SimulatedDevice::new(model.clone(), file, &of_stripe));
        if is_spent {
            device.spend_credits();
        }
        *made.lock() = Some(device.clone());
        Ok(device)
    });
    let journal = DeviceWrap::new(move |slot, file| {
        let device = device.lock().clone().expect("stripes are opened first");
        let begin = BEGIN + slot as u64 * ROOM;
        Ok(Arc::new(FileBeside::new(device, file, begin, &of_journal)) as Arc<dyn Device>)
    });
    (stripes, journal)
}

impl Run {
    fn with(&self, change: impl FnOnce(&mut JournalConfig)) -> Run {
        let mut run = self.clone();
        change(&mut run.journal);
        run
    }

    /// The journal of the bed is nearly too long.
    fn late(&self, bed: &Bed) -> Run {
        let file_bytes = 1 << 20;
        self.with(|j| {
            *j = JournalConfig {
                checkpoints: Checkpoints::Continuous,
                file_bytes,
                most_bytes: bed.late_bytes,
                ..j.clone()
            };
        })
    }

    fn open(&self, db: &Path, clock: &Clock) -> Arc<Store> {
        let (devices, journal_devices) = on_one_device(&self.model, self.is_spent, clock);
        let c = StoreConfig {
            journal: self.journal.clone(),
            queue: QueueConfig::default(),
            seams: Seams {
                devices: Some(devices),
                journal_devices: Some(journal_devices),
                background: Background::Participant,
                clock: clock.clone(),
                ..Seams::default()
            },
            ..config(4000, ReadAhead::none())
        };
        Store::open(db, c).unwrap()
    }

    fn go(&self, bed: &Bed) -> Outcome {
        let dir = bed.copy();
        let clock = Clock::virtual_time(4);
        // The clock stands still for this thread until those who commit take part in it.
        let in_time = clock.enter();
        let store = self.open(&dir.path().join("db"), &clock);
        let open_ms = clock.now_ns() / 1_000_000;
        let tickets = clock.reserve(THREADS + 2);
        let begun = clock.now_ns();
        drop(in_time);
        let outcome = self.commits(&store, &bed.tree, &clock, begun, tickets);
        let _in_time = clock.enter();
        drop(store);
        Outcome { open_ms, ..outcome }
    }

    /// Commits of some threads, each due at random times.
    fn commits(
        &self,
        store: &Arc<Store>,
        tree: &TestTree,
        clock: &Clock,
        begun: u64,
        tickets: Vec<ClientTicket>,
    ) -> Outcome {
        let end = begun + self.seconds * SECOND;
        let (taken, ended) = (Mutex::new(Vec::new()), Mutex::new(None));
        let (is_over, loaded) = (AtomicBool::new(false), AtomicU64::new(0));
        let mut tickets = tickets.into_iter();
        let watching = tickets.next().expect("one for the watcher");
        let loading = tickets.next().expect("one for the loader");
        std::thread::scope(|s| {
            s.spawn(|| {
                let _in_time = watching.enter();
                while clock.now_ns() < end {
                    if store.journal_stats().checkpoints > 0 {
                        *ended.lock() = Some((clock.now_ns() - begun) / 1_000_000);
                        return;
                    }
                    clock.sleep_ns(20_000_000);
                }
            });
            s.spawn(|| {
                let _in_time = loading.enter();
                if self.beside == Beside::Load {
                    load(store, &is_over, &loaded);
                }
            });
            for (i, ticket) in tickets.enumerate() {
                let (taken, is_over) = (&taken, &is_over);
                s.spawn(move || {
                    let _in_time = ticket.enter();
                    let mut random = Random::new(i as u64);
                    let mut due = begun as f64;
                    loop {
                        let unit = (random.below(1 << 20) + 1) as f64 / (1 << 20) as f64;
                        due += -unit.ln() * THREADS as f64 / self.commits_per_s * 1e9;
                        if due as u64 > end || clock.now_ns() > end {
                            is_over.store(true, Ordering::Relaxed);
                            return;
                        }
                        clock.sleep_ns((due as u64).saturating_sub(clock.now_ns()));
                        commit(store, tree, &mut random);
                        if due as u64 >= begun + self.skipped_s * SECOND {
                            taken.lock().push(clock.now_ns() - due as u64);
                        }
                    }
                });
            }
        });
        Outcome {
            commits: taken.into_inner(),
            stats: store.journal_stats(),
            open_ms: 0,
            loaded: loaded.into_inner(),
            checkpoint_ms: ended.into_inner(),
        }
    }
}

/// Writes extents of trees that are not kept.
fn load(store: &Arc<Store>, is_over: &AtomicBool, loaded: &AtomicU64) {
    while !is_over.load(Ordering::Relaxed) {
        let build =
            store.begin_build_beside(1, " new", BuildPlace::Front, &Waiter::PATIENT).unwrap().unwrap();
        let mut tree = build.new_tree("loaded");
        for n in 0..800 {
            tree.append(&mut support::page(3, n)).unwrap();
            if n % 8 == 7 {
                loaded.fetch_add(1, Ordering::Relaxed);
            }
            if is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// Some bytes of a page that no checkpoint has to write yet, of a few hundred.
fn commit(store: &Arc<Store>, tree: &TestTree, random: &mut Random) {
    let mut txn = store.begin().unwrap();
    let page = tree.pages[random.below(400) * APART + 1];
    let p = txn.page_mut(tree.id, page).unwrap();
    p.set_header(PageKind::TupleLeaf, 0, 1);
    let at = random.below(900) * 8;
    p.body_mut()[at..at + 8].copy_from_slice(&random.next().to_le_bytes());
    txn.commit().unwrap();
}

fn held() -> JournalConfig {
    JournalConfig { checkpoints: Checkpoints::Held, version_pages: Some(10_000), ..JournalConfig::default() }
}

const SLOWEST: &str = "st1-500 without credits";

/// Devices, and commits per second that leave each of them most of its time.
fn devices() -> Vec<(&'static str, Run)> {
    let run = |name: &str, is_spent, commits_per_s| Run {
        model: DeviceModel::named(name).unwrap(),
        is_spent,
        commits_per_s,
        seconds: 12,
        beside: Beside::Nothing,
        skipped_s: 0,
        journal: held(),
    };
    vec![
        ("e3", run("e3", false, 50.0)),
        ("gp3", run("gp3", false, 100.0)),
        ("gp2-100 without credits", run("gp2-100", true, 20.0)),
        ("azure-p10 without credits", run("azure-p10", true, 40.0)),
        ("wide-slow", run("wide-slow", false, 50.0)),
        ("ssd", run("ssd", false, 200.0)),
        ("nvme", run("nvme", false, 200.0)),
        ("hdd", run("hdd", false, 10.0)),
        ("hdd-7200", run("hdd-7200", false, 10.0)),
        (SLOWEST, run("st1-500", true, 1.0)),
    ]
}

/// Fails when commits of `with` took more than twice as long as those of `without`, in the worst
/// of a hundred.
fn compare(what: &str, [without, with]: [&Outcome; 2]) -> Option<String> {
    let [base, beside] = [without, with].map(|run| run.percentile_us(0.99));
    let ratio = beside as f64 / base as f64;
    eprintln!(
        "{what}: p50 {} and {} µs, p99 {base} and {beside} µs ({ratio:.2}), {} pages written back, a checkpoint \
         ended after {:?} ms",
        without.percentile_us(0.5),
        with.percentile_us(0.5),
        with.stats.written_back,
        with.checkpoint_ms,
    );
    (ratio > 2.0).then(|| format!("{what}: {ratio:.2}"))
}

#[test]
fn commits_hardly_wait_for_a_checkpoint() {
    snowmelt_io::set_notice(|_| {});
    let bed = Bed::new();
    let mut wrong = Vec::new();
    for (name, without) in devices() {
        let alone = without.go(&bed);
        let usual = without.with(|j| (j.checkpoints, j.checkpoint_s) = (Checkpoints::Continuous, 3));
        for (what, run) in [("at its usual pace", usual), ("late", without.late(&bed))] {
            if (name, what) == (SLOWEST, "late") {
                // Its twenty writes a second do not keep up with the journal and with commits.
                continue;
            }
            let with = run.go(&bed);
            assert!(with.stats.written_back > 50, "{name}, {what}: {:?}", with.stats);
            wrong.extend(compare(&format!("{name}, {what}"), [&alone, &with]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Extents of a load or a compaction are long writes.
#[test]
fn commits_hardly_wait_for_a_load() {
    snowmelt_io::set_notice(|_| {});
    let bed = Bed::new();
    let mut wrong = Vec::new();
    for (name, without) in devices() {
        // Fast ones write more in this time than a test has room for.
        if !["e3", "gp3", "gp2-100 without credits", "wide-slow"].contains(&name) {
            continue;
        }
        let without = Run { seconds: 6, skipped_s: 1, ..without };
        let alone = without.go(&bed);
        let with = Run { beside: Beside::Load, ..without }.go(&bed);
        assert!(with.loaded > 0, "{name}: the load goes on");
        wrong.extend(compare(&format!("{name}, {} extents loaded", with.loaded), [&alone, &with]));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The floor of the pace: transactions commit one after the other, and writing back keeps up with
/// the journal.
#[test]
fn a_checkpoint_ends_however_much_is_committed() {
    snowmelt_io::set_notice(|_| {});
    let bed = Bed::new();
    for (name, run) in devices() {
        // Fast ones commit more than a test has time for, and one that allows twenty writes a
        // second is not done in this time.
        if !["e3", "gp2-100 without credits", "wide-slow"].contains(&name) {
            continue;
        }
        let run = Run { commits_per_s: 1e5, ..run };
        let run = run.late(&bed);
        let end = run.go(&bed);
        let stats = &end.stats;
        eprintln!(
            "{name}: {} commits, {} checkpoints, the first after {:?} ms, {} waits for room",
            stats.commits, stats.checkpoints, end.checkpoint_ms, stats.room_waits.count
        );
        assert!(stats.checkpoints >= 1 && stats.bytes_to_recover <= bed.late_bytes, "{name}: {stats:?}");
        assert!(stats.commits > 200, "{name}: {stats:?}");
    }
}

/// After a crash no caller waits for the redo, and without commits the redo has the device.
#[test]
fn a_slow_volume_opens_at_once_after_a_crash() {
    snowmelt_io::set_notice(|_| {});
    let bed = Bed::new();
    let (_, run) = devices().swap_remove(0);
    let run = run.late(&bed);
    let quiet = Run { commits_per_s: 0.01, ..run.clone() }.go(&bed);
    let busy = run.go(&bed);
    eprintln!(
        "e3: open after {} ms, first commit {} µs, redo over after {:?} ms beside commits, {:?} ms without",
        busy.open_ms,
        busy.commits[0] / 1000,
        busy.checkpoint_ms,
        quiet.checkpoint_ms,
    );
    // 16 MB at 125 MiB/s; 1200 pages at 700 writes a second.
    assert!(busy.open_ms < 1000, "{} ms", busy.open_ms);
    assert!(
        busy.commits[0] < 150_000_000,
        "the first commit waits for a short file only: {} ns",
        busy.commits[0]
    );
    assert!(quiet.checkpoint_ms.is_some_and(|ms| ms < 5000), "{:?} ms", quiet.checkpoint_ms);
    assert!(busy.checkpoint_ms.is_some_and(|ms| ms < 10_000), "{:?} ms", busy.checkpoint_ms);
}
