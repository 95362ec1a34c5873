//! The meters against what happened: against what the devices themselves counted, account by
//! account, wait by wait, and over resets.

mod support;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_io::{Class, Clock, DeviceModel, InPlace, IoEngine, QueueConfig, SimulatedDevice};
use snowmelt_store::{
    Account, Activity, Background, Checkpoints, DeviceWrap, JournalConfig, MeterScope, PAGE_BYTES, PageKind,
    Priority, ReadAhead, Reader, Report, Seams, Store, StoreConfig, TreeId, WaitLog, WaitStats, WishKind,
};
use support::{Random, TestTree, build_tree, config, page, reader, reopen};

const PAGES: u64 = 600;

/// Devices of a store, to be asked what they counted.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<Vec<Arc<SimulatedDevice>>>>);

impl Counting {
    fn config(&self, model: DeviceModel, frames: u64, read_ahead: ReadAhead, clock: &Clock) -> StoreConfig {
        let (devices, device_clock) = (self.0.clone(), clock.clone());
        StoreConfig {
            queue: QueueConfig { engine: IoEngine::Uring, ..QueueConfig::default() },
            seams: Seams {
                devices: Some(DeviceWrap::new(move |_, inner| {
                    let device = Arc::new(SimulatedDevice::new(model.clone(), inner, &device_clock));
                    devices.lock().push(device.clone());
                    Ok(device)
                })),
                clock: clock.clone(),
                background: Background::Caller,
                ..Seams::default()
            },
            ..config(frames, read_ahead)
        }
    }

    fn reset(&self) {
        self.0.lock().iter().for_each(|device| device.reset_counters());
    }

    /// Reads and their bytes, writes and theirs, of all devices.
    fn counted(&self) -> [u64; 4] {
        self.0.lock().iter().fold([0; 4], |sum, device| {
            let a = device.activity();
            assert_eq!(a.outstanding, 0, "the device is quiet");
            [sum[0] + a.reads, sum[1] + a.read_bytes, sum[2] + a.writes, sum[3] + a.written_bytes]
        })
    }
}

/// A database of two stripes on disk.
fn database(dir: &Path) -> TestTree {
    let stripes = ["a", "b"].map(|name| dir.join(name));
    let store = Store::create(&dir.join("db"), &stripes, config(64, ReadAhead::none())).unwrap();
    build_tree(&store, "t", 1, PAGES)
}

/// Requests to the devices and their bytes, of one class.
fn of_class(report: &Report, class: Class) -> (u64, u64) {
    report.devices.iter().fold((0, 0), |(requests, bytes), device| {
        let c = device.counters.class(class);
        (requests + c.device_requests, bytes + c.bytes + c.gap_bytes)
    })
}

/// Reads batches of pages at random, each wished for.
fn read(store: &Arc<Store>, tree: &TestTree, seed: u64, batches: usize) {
    let mut random = Random::new(seed);
    let mut r = reader(store);
    for _ in 0..batches {
        let mut batch: Vec<usize> = (0..32).map(|_| random.below(PAGES as usize)).collect();
        batch.sort_unstable();
        batch.dedup();
        for part in batch.chunks(r.wish_limit()) {
            let pages: Vec<_> = part.iter().map(|n| tree.pages[*n]).collect();
            r.wish(tree.id, &pages, WishKind::Planned);
            part.iter().for_each(|n| tree.check(&mut r, *n));
        }
    }
}

fn settle(clock: &Clock) {
    // Reads without a waiting reader come to their end.
    clock.sleep_ns(10_000_000_000);
}

/// Every class, alone and together: what the queues say is what the devices got.
#[test]
fn requests_and_bytes_are_those_of_the_devices() {
    let none = ReadAhead::none();
    let planned = ReadAhead { planned: true, ..ReadAhead::none() };
    let extents = ReadAhead { start_up: true, ..ReadAhead::none() };
    for model in [DeviceModel::wide_slow(), DeviceModel::hdd()] {
        for (rules, classes) in [
            (none.clone(), &[Class::Demand][..]),
            (planned.clone(), &[Class::Demand, Class::Planned]),
            (extents.clone(), &[Class::Demand, Class::Planned, Class::Speculative]),
            (
                ReadAhead { planned: true, ..extents.clone() },
                &[Class::Demand, Class::Planned, Class::Speculative],
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let tree = database(dir.path());
            let (clock, devices) = (Clock::virtual_time(2), Counting::default());
            let _in_time = clock.enter();
            let c = devices.config(model.clone(), 200, rules, &clock);
            let store = Store::open(&dir.path().join("db"), c).unwrap();
            devices.reset();
            read(&store, &tree, 7, 8);
            settle(&clock);
            let report = store.report();
            let of = |class| of_class(&report, class);
            let sum = classes.iter().map(|class| of(*class)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            let [reads, read_bytes, writes, _] = devices.counted();
            assert!(reads > 0);
            assert_eq!((reads, read_bytes), sum, "{model:?}, {classes:?}");
            assert_eq!((writes, of(Class::WriteBack).0), (0, 0), "nothing was written");
            if classes.len() == 1 {
                let demanded = report.activity.disk;
                assert_eq!(of(Class::Demand), (demanded, demanded * 8192), "page by page");
            }
        }
    }
}

#[test]
fn what_is_written_back_is_what_the_devices_got() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    let (clock, devices) = (Clock::virtual_time(2), Counting::default());
    let _in_time = clock.enter();
    let c = devices.config(DeviceModel::wide_slow(), 200, ReadAhead::none(), &clock);
    let store = Store::open(&dir.path().join("db"), c).unwrap();
    change(&store, &tree, 40);
    let dirty = |report: &Report| report.trees.iter().find(|t| t.name == "t").map(|t| t.dirty);
    let report = store.report();
    assert_eq!(dirty(&report), Some(40));
    assert_eq!(report.trees.iter().map(|t| t.dirty).sum::<u64>(), report.journal.versioned_pages);
    devices.reset();
    store.reset_meters();
    assert!(store.checkpoint().unwrap());
    let report = store.report();
    let [_, _, writes, bytes] = devices.counted();
    assert!(writes > 0 && bytes >= 40 * 8192);
    assert_eq!(of_class(&report, Class::WriteBack), (writes, bytes));
    assert_eq!(dirty(&report), Some(0), "all is on its stripe");
}

/// Changes the first `n` pages of the tree in one transaction.
fn change(store: &Arc<Store>, tree: &TestTree, n: usize) {
    let mut txn = store.begin().unwrap();
    for (at, id) in tree.pages.iter().take(n).enumerate() {
        let changed = page(2, at as u64);
        let private = txn.page_mut(tree.id, *id).unwrap();
        private.set_header(PageKind::TupleLeaf, 0, 1);
        private.body_mut().copy_from_slice(changed.body());
    }
    txn.commit().unwrap();
}

fn sum(activities: impl IntoIterator<Item = Activity>) -> Activity {
    activities.into_iter().fold(Activity::default(), |mut sum, activity| {
        sum += activity;
        sum
    })
}

fn charged(store: &Arc<Store>, account: &Arc<Account>) -> Reader {
    let mut r = reader(store);
    r.charge_to(account);
    r
}

#[test]
fn accounts_are_all_together() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    let store = Store::open(&dir.path().join("db"), config(200, ReadAhead::auto())).unwrap();
    let (queries, loads) = (store.account("http query"), store.account("load"));
    let connection = Account::alone();
    let own = Account::within(&queries, std::slice::from_ref(&connection));
    let threads: Vec<_> = [&own, &queries, &loads].into_iter().cloned().enumerate().collect();
    std::thread::scope(|s| {
        for (t, account) in threads {
            let (store, tree) = (&store, &tree);
            s.spawn(move || {
                for round in 0..20 {
                    let mut r = charged(store, &account);
                    (0..100).for_each(|n| tree.check(&mut r, (n * 7 + t * 31 + round) % PAGES as usize));
                }
            });
        }
    });
    (0..9).for_each(|n| tree.check(&mut reader(&store), n));
    let report = store.report();
    assert_eq!(sum(report.accounts.iter().map(|a| a.activity)), report.activity);
    let of = |name: &str| report.accounts.iter().find(|a| a.name == name).unwrap().activity.pages;
    assert_eq!([of("http query"), of("load"), of("other")], [4000, 2000, 9]);
    assert_eq!((connection.activity(), own.activity().pages), (own.activity(), 2000));
}

#[test]
fn a_transaction_reads_on_behalf_of_its_account() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    let store = Store::open(&dir.path().join("db"), config(200, ReadAhead::none())).unwrap();
    let account = store.account("http update");
    let mut txn = store.begin().unwrap();
    txn.charge_to(&account);
    txn.page_mut(tree.id, tree.pages[3]).unwrap();
    drop(txn.reader().page(tree.id, tree.pages[4]).unwrap());
    drop(txn);
    assert_eq!((account.activity().disk, store.activity().disk), (2, 2));
}

/// Where a log is written to.
#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Nanoseconds of milliseconds with six digits.
fn ns(ms: &str) -> u64 {
    ms.replace('.', "").parse().unwrap()
}

#[test]
fn waits_by_class_and_in_the_log_are_those_of_the_activity() {
    for model in [DeviceModel::wide_slow(), DeviceModel::hdd()] {
        let dir = tempfile::tempdir().unwrap();
        let tree = database(dir.path());
        let (clock, devices) = (Clock::virtual_time(2), Counting::default());
        let rules = ReadAhead { start_up: true, planned: true, ..ReadAhead::none() };
        let c = devices.config(model, 200, rules, &clock);
        let store = Store::open(&dir.path().join("db"), c).unwrap();
        let text = Text::default();
        let log = Arc::new(WaitLog::new(&clock, Box::new(text.clone())));
        let account = Account::prioritized(&store.account("query"), &[], Priority::Normal, Some(log.clone()));
        let tickets = clock.reserve(3);
        std::thread::scope(|s| {
            for (t, ticket) in tickets.into_iter().enumerate() {
                let (store, tree, account) = (&store, &tree, &account);
                s.spawn(move || {
                    let _in_time = ticket.enter();
                    let mut r = charged(store, account);
                    for batch in 0..10 {
                        let first = (batch * 97 + t * 5) % 500;
                        let pages: Vec<_> = (0..20).map(|n| tree.pages[first + n * 4]).collect();
                        r.wish(tree.id, &pages, WishKind::Planned);
                        (0..20).for_each(|n| tree.check(&mut r, first + n * 4));
                        tree.check(&mut r, (batch * 53 + t * 11) % 600);
                    }
                });
            }
        });
        log.finish().unwrap();
        let report = store.report();
        let did = account.activity();
        assert_eq!(did, report.activity);

        let mut waited = report.journal_waits;
        report.devices.iter().flat_map(|device| device.waits).for_each(|class| waited += class);
        let own = did.disk - did.spec_disk;
        assert_eq!(waited, WaitStats { blocked: did.waits + own, wait_ns: did.wait_ns });
        assert!(did.waits > 0 && own > 0, "{did:?}");

        let text = String::from_utf8(text.0.lock().clone()).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split('\t').collect()).collect();
        assert_eq!(lines.len() as u64, waited.blocked);
        assert_eq!(lines.iter().map(|line| ns(line[1])).sum::<u64>(), did.wait_ns);
        for class in Class::ALL {
            let of = |w: &WaitStats| (w.blocked, w.wait_ns);
            let counted: Vec<_> = report.devices.iter().map(|d| of(&d.waits[class as usize])).collect();
            let logged = (0..2).map(|stripe: usize| {
                let of = lines.iter().filter(|l| l[2] == class.name() && l[6] == stripe.to_string());
                of.fold((0, 0), |(n, sum), line| (n + 1, sum + ns(line[1])))
            });
            assert_eq!(counted, logged.collect::<Vec<_>>(), "{class:?}");
        }
        assert!(lines.iter().all(|line| line[3] == "t" && line[5] != "0"), "{text}");
        let planned: Vec<u64> =
            lines.iter().filter(|line| line[2] == "planned").map(|line| line[5].parse().unwrap()).collect();
        assert!(planned.iter().any(|pages| *pages > 1), "a batch has many pages: {planned:?}");
    }
}

/// One reader wishes for many pages, another one looks at single ones meanwhile.
#[test]
fn who_looks_at_a_page_waits_less_beside_a_low_priority() {
    let waited_ns = |priority| {
        let dir = tempfile::tempdir().unwrap();
        let tree = database(dir.path());
        let (clock, devices) = (Clock::virtual_time(2), Counting::default());
        let rules = ReadAhead { planned: true, ..ReadAhead::none() };
        let mut c = devices.config(DeviceModel::wide_slow(), 800, rules, &clock);
        (c.queue.gap_bytes, c.queue.in_place) = (Some(0), InPlace::Off);
        let store = Store::open(&dir.path().join("db"), c).unwrap();
        let account = |priority| Account::prioritized(&store.account("query"), &[], priority, None);
        let (report, look) = (account(priority), account(Priority::Normal));
        let _in_time = clock.reserve(1).remove(0).enter();
        let mut reader = charged(&store, &report);
        let spread: Vec<_> = (0..150).map(|n| tree.pages[n * 4]).collect();
        assert_eq!(reader.wish(tree.id, &spread, WishKind::Planned), 150);
        let mut looks = charged(&store, &look);
        (0..20).for_each(|n| tree.check(&mut looks, (n * 29) % 150 * 4 + 1));
        drop(looks);
        settle(&clock);
        tree.check(&mut reader, 3);
        drop(reader);
        let at_the_end = store.report();
        let of = |class| of_class(&at_the_end, class).1 / PAGE_BYTES as u64;
        let by_class = [Class::Demand, Class::Planned, Class::Speculative].map(of);
        (look.activity().wait_ns, by_class)
    };
    let [high, normal, low] = Priority::ALL.map(waited_ns);
    assert!(low.0 < normal.0 && normal.0 < high.0, "{high:?} {normal:?} {low:?}");
    let looked = 20;
    assert_eq!(high.1, [looked + 151, 0, 0], "planned pages are of the class of demand");
    assert_eq!(normal.1, [looked + 1, 150, 0]);
    assert_eq!(low.1, [looked, 1, 150], "what it waits for is planned, what it plans a guess");
}

#[test]
fn a_version_in_the_journal_is_waited_for_there() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    // Few versions are kept in memory.
    let journal =
        JournalConfig { checkpoints: Checkpoints::Held, version_pages: Some(8), ..JournalConfig::default() };
    let c = StoreConfig {
        journal,
        seams: Seams { background: Background::Caller, ..Seams::default() },
        ..config(200, ReadAhead::none())
    };
    let store = Store::open(&dir.path().join("db"), c.clone()).unwrap();
    change(&store, &tree, 40);
    let store = reopen(&dir.path().join("db"), store, c);
    let mut r = reader(&store);
    (0..40).for_each(|n| drop(r.page(tree.id, tree.pages[n]).unwrap()));
    drop(r);
    let report = store.report();
    assert_eq!(report.journal_waits.wait_ns, report.activity.wait_ns, "{report}");
    assert!(report.journal_waits.blocked > 0, "{report}");
}

#[test]
fn nothing_from_before_a_reset_is_counted_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let tree = database(dir.path());
    let store = Store::open(&dir.path().join("db"), config(400, ReadAhead::none())).unwrap();
    let account = store.account("load");
    let mut r = charged(&store, &account);
    (0..50).for_each(|n| tree.check(&mut r, n));
    store.reset(&MeterScope::All).unwrap();
    tree.check(&mut r, 50);
    drop(r);
    let report = store.report();
    assert_eq!((report.activity.disk, account.activity().disk, report.pages_read()), (1, 1, 1));
    assert_eq!(of_class(&report, Class::Demand), (1, 8192));
    let waits: u64 = report.devices.iter().map(|d| d.waits[Class::Demand as usize].blocked).sum();
    assert_eq!(waits, 1);
    // An account's own: the others go on.
    let mut r = charged(&store, &account);
    tree.check(&mut r, 51);
    store.reset(&MeterScope::Account("load".into())).unwrap();
    tree.check(&mut r, 52);
    drop(r);
    assert_eq!((store.activity().disk, account.activity().disk), (3, 1));
    let error = store.reset(&MeterScope::Account("loads".into())).unwrap_err().to_string();
    assert!(error.contains("loads") && error.contains("other, load"), "{error}");
}

/// Pages read ahead before a reset of their tree are used after it; those of others are counted.
#[test]
fn the_fate_of_what_a_tree_had_read_is_forgotten_with_its_counters() {
    let dir = tempfile::tempdir().unwrap();
    let planned = ReadAhead { planned: true, ..ReadAhead::none() };
    let store = Store::create(dir.path(), &[], config(400, planned)).unwrap();
    let trees = [build_tree(&store, "a", 1, 80), build_tree(&store, "b", 2, 80)];
    let mut r = reader(&store);
    let wish = |r: &mut Reader, tree: &TestTree, range: std::ops::Range<usize>| {
        r.wish(tree.id, &tree.pages[range], WishKind::Planned)
    };
    let wished = trees.each_ref().map(|tree| wish(&mut r, tree, 0..40));
    assert_eq!(wished, [40, 40]);
    store.reset(&MeterScope::Tree("a".into())).unwrap();
    assert_eq!(wish(&mut r, &trees[0], 40..50), 10);
    for tree in &trees {
        (0..80).for_each(|n| tree.check(&mut r, n));
    }
    drop(r);
    let of = |tree: TreeId| store.tree_stats().into_iter().find(|t| t.tree == tree.0).unwrap();
    let [a, b] = trees.each_ref().map(|tree| of(tree.id));
    assert_eq!((a.ahead_total().issued, a.ahead_total().used), (10, 10), "{a:?}");
    assert_eq!((b.ahead_total().issued, b.ahead_total().used), (40, 40), "{b:?}");
    assert_eq!((a.reads, b.reads), (40, 80), "those before are not counted");
    assert_eq!((a.resident, b.resident), (80, 80), "what is in memory is as it was");
    assert!(store.reset(&MeterScope::Tree("c".into())).is_err());
}
