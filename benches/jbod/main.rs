//! Four disks of their own against stripe sets of them (E5): `cargo run --release
//! -p snowmelt-benches --example jbod [-- FILE.svg]`.
//!
//! Four tables lie on four disks: each on a disk of its own (JBOD, by placement), or on all of them
//! in stripe sets that are fine (extents of 64 KiB) or coarse (2 MiB, 16 MiB), or on one RAID 0 of
//! the four, in chunks of 64 KiB. Queries that scan whole tables, and lookups of single pages, come
//! from cold; the time until all are done is virtual, and so the same on any machine. Only scans
//! read ahead. So the size of an extent is the size of the set's pieces, without an effect on
//! guesses.
//!
//! The disk is that of the experiment (10 000 rpm, 38 MB/s). Tables have 64 MiB instead of 2 GB, so
//! the disk's capacity is cut in the same proportion, which keeps the seeks as long.

mod picture;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use snowmelt_io::{Clock, DeviceModel, QueueConfig, RaidModel, SimulatedDevice};
use snowmelt_store::{
    Background, DeviceWrap, PageBuf, PageId, PageKind, ReadAhead, Reader, Seams, Store, StoreConfig, TreeId,
    Waited, WishKind,
};

const DISKS: usize = 4;
/// Pages of each of the four tables.
const PAGES: usize = 8192;
/// Times that the experiment's tables are longer.
const SHRUNK: u64 = 32;
/// Frames of the pool: half of the tables.
const FRAMES: u64 = (DISKS * PAGES / 2) as u64;
/// Processor time of a page.
const PAGE_NS: u64 = 20_000;
/// Lookups of each client that looks up.
const LOOKUPS: usize = 400;

type Table = (TreeId, Vec<PageId>);

/// Where the tables lie.
struct Layout {
    name: &'static str,
    extent_pages: u32,
    /// Stripes of the database; 1 for the array.
    stripes: usize,
    is_placed: bool,
}

const LAYOUTS: [Layout; 5] = [
    Layout { name: "JBOD, a table on each disk", extent_pages: 256, stripes: DISKS, is_placed: true },
    Layout { name: "stripe set, 64 KiB", extent_pages: 8, stripes: DISKS, is_placed: false },
    Layout { name: "stripe set, 2 MiB", extent_pages: 256, stripes: DISKS, is_placed: false },
    Layout { name: "stripe set, 16 MiB", extent_pages: 2048, stripes: DISKS, is_placed: false },
    Layout { name: "RAID 0, chunks of 64 KiB", extent_pages: 256, stripes: 1, is_placed: false },
];

/// A client of a load.
#[derive(Clone, Copy)]
enum Client {
    /// Scans a table.
    Scan(usize),
    /// Looks up pages of a table, of all in turn if none is named.
    LookUp(Option<usize>),
}

/// Loads, and their clients.
fn loads() -> Vec<(&'static str, Vec<Client>)> {
    let scans = |tables: &[usize]| tables.iter().map(|table| Client::Scan(*table)).collect::<Vec<_>>();
    let lookups = |table, n| vec![Client::LookUp(table); n];
    vec![
        ("1 query scans a table", scans(&[0])),
        ("4 queries scan a table each", scans(&[0, 1, 2, 3])),
        ("4 queries scan the same table", scans(&[0; 4])),
        ("8 queries scan, 2 on each table", scans(&[0, 1, 2, 3, 0, 1, 2, 3])),
        (
            "3 queries scan, 4 clients look up in the fourth table",
            [scans(&[0, 1, 2]), lookups(Some(3), 4)].concat(),
        ),
        ("16 clients look up in all tables", lookups(None, 16)),
    ]
}

fn main() {
    let picture = std::env::args().nth(1).map(PathBuf::from);
    let dir = tempfile::tempdir().expect("a directory for the example");
    let loads = loads();
    let mut seconds = vec![Vec::new(); loads.len()];
    for (number, layout) in LAYOUTS.iter().enumerate() {
        let db = dir.path().join(number.to_string());
        std::fs::create_dir(&db).expect("a directory for the example");
        let tables = build(&db, layout);
        for (of_load, (_, clients)) in seconds.iter_mut().zip(&loads) {
            of_load.push(run(&db, layout, &tables, clients));
        }
        std::fs::remove_dir_all(&db).expect("the database just made");
    }
    print(&loads, &seconds);
    if let Some(path) = picture {
        let layouts = LAYOUTS.each_ref().map(|layout| layout.name);
        let titles: Vec<&str> = loads.iter().map(|(title, _)| *title).collect();
        std::fs::write(&path, picture::draw(&layouts, &titles, &seconds)).expect("the picture is written");
    }
}

fn print(loads: &[(&str, Vec<Client>)], seconds: &[Vec<f64>]) {
    print!("{:<55}", "seconds");
    LAYOUTS.iter().for_each(|layout| print!(" {:>27}", layout.name));
    println!();
    for ((title, _), row) in loads.iter().zip(seconds) {
        print!("{title:<55}");
        row.iter().for_each(|s| print!(" {s:>27.2}"));
        println!();
    }
}

/// The disk of the experiment, as much smaller as the tables are.
fn disk() -> DeviceModel {
    let DeviceModel::Disk(disk) = DeviceModel::hdd_10k() else { unreachable!("it is a disk") };
    let capacity_bytes = disk.capacity_bytes / SHRUNK;
    DeviceModel::Disk(snowmelt_io::DiskModel { capacity_bytes, ..disk })
}

fn stripes(db: &Path, layout: &Layout) -> Vec<PathBuf> {
    (0..layout.stripes).map(|i| db.join(format!("disk-{i}"))).collect()
}

fn build(db: &Path, layout: &Layout) -> Vec<Table> {
    let placement = if layout.is_placed { "t0=0,t1=1,t2=2,t3=3" } else { "" };
    let config = StoreConfig {
        memory_bytes: 256 << 20,
        extent_pages: layout.extent_pages,
        placement: placement.parse().expect("a placement"),
        read_ahead: ReadAhead::none(),
        ..StoreConfig::default()
    };
    let store = Store::create(&db.join("db"), &stripes(db, layout), config).expect("a new store");
    let build = store.begin_build().expect("nobody else builds");
    let mut page = PageBuf::new();
    page.set_header(PageKind::TupleLeaf, 0, 0);
    let mut writers: Vec<_> =
        (0..DISKS).map(|i| (build.new_tree(&format!("t{i}")), Vec::with_capacity(PAGES))).collect();
    // The tables grow side by side, as a load of all of them does.
    for _ in 0..PAGES {
        for (writer, pages) in &mut writers {
            pages.push(writer.append(&mut page).expect("room on the device"));
        }
    }
    let finish = |(writer, pages): (snowmelt_store::TreeWriter, Vec<PageId>)| {
        (writer.finish().expect("room on the device"), pages)
    };
    let tables = writers.into_iter().map(finish).collect();
    build.commit().expect("room on the device");
    tables
}

/// Seconds until all clients are done.
fn run(db: &Path, layout: &Layout, tables: &[Table], clients: &[Client]) -> f64 {
    let clock = Clock::virtual_time(clients.len().max(2));
    let device_clock = clock.clone();
    let model = match layout.stripes {
        1 => {
            let (member, members) = (Box::new(disk()), DISKS as u32);
            DeviceModel::Raid0(RaidModel { member, members, chunk_bytes: 64 << 10 })
        }
        _ => disk(),
    };
    let devices = DeviceWrap::new(move |_, file| {
        Ok(Arc::new(SimulatedDevice::new(model.clone(), file, &device_clock)))
    });
    let config = StoreConfig {
        memory_bytes: 1 << 30,
        pool_bytes: Some(FRAMES * 8192),
        direct: false,
        read_ahead: ReadAhead::parse("scan").expect("a rule"),
        queue: QueueConfig::default(),
        seams: Seams {
            devices: Some(devices),
            background: Background::Caller,
            clock: clock.clone(),
            ..Seams::default()
        },
        ..StoreConfig::default()
    };
    let store = Store::open(&db.join("db"), config).expect("the store just built");
    let (begun, number) = (clock.now_ns(), AtomicUsize::new(0));
    std::thread::scope(|s| {
        for (client, ticket) in clients.iter().zip(clock.reserve(clients.len())) {
            let (store, clock, number) = (&store, &clock, &number);
            s.spawn(move || {
                let _in_time = ticket.enter();
                let mut r = Reader::new(store, store.snapshot());
                match client {
                    Client::Scan(table) => scan(&mut r, clock, &tables[*table]),
                    Client::LookUp(table) => {
                        look_up(&mut r, clock, tables, *table, number.fetch_add(1, Relaxed) as u64)
                    }
                }
            });
        }
    });
    (clock.now_ns() - begun) as f64 / 1e9
}

fn scan(r: &mut Reader, clock: &Clock, (tree, pages): &Table) {
    let mut ahead = r.scan_ahead();
    let mut to_come: std::collections::VecDeque<PageId> = pages.iter().copied().collect();
    while let Some(leaf) = to_come.pop_front() {
        ahead.advanced();
        let before = (r.meters.waits, r.meters.disk - r.meters.spec_disk);
        drop(r.page(*tree, leaf).expect("a sound page"));
        let now = (r.meters.waits, r.meters.disk - r.meters.spec_disk);
        ahead.visited(leaf, if now == before { Waited::No } else { Waited::Yes });
        r.wish(*tree, &ahead.wishes(&to_come), WishKind::Scan);
        clock.charge_cpu(PAGE_NS);
    }
}

fn look_up(r: &mut Reader, clock: &Clock, tables: &[Table], table: Option<usize>, seed: u64) {
    let mut random = snowmelt_base::random::Random(seed + 1);
    for n in 0..LOOKUPS {
        let (tree, pages) = &tables[table.unwrap_or(n % tables.len())];
        drop(r.page(*tree, pages[random.below(PAGES as u64) as usize]).expect("a sound page"));
        clock.charge_cpu(PAGE_NS);
    }
}
