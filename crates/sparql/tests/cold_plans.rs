//! Queries on data that is not in memory, on simulated devices in virtual time: plans
//! that reckon with what must be read, and scans that follow each other.
//!
//! Plans: few items are of a kind, some thousand have a code, all others have codes of their
//! own. Warm, it is cheapest to look up the code of each item of the kind. Cold, that visits
//! leaves all over the codes by item, while the items of one code lie together.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_database::OpenOptions;
use snowmelt_graph::load::{LoadOptions, Source, format_named, load};
use snowmelt_graph::{GraphDatabase, Index};
use snowmelt_io::{Clock, DeviceModel, SimulatedDevice};
use snowmelt_sparql::{PlanCosts, QueryEngine, QueryOptions};
use snowmelt_store::{Background, DeviceWrap, ReadAhead, Seams, StoreConfig};

const ITEMS: u64 = 600_000;
const OF_THE_KIND: u64 = 300;
const WITH_THE_CODE: u64 = 3_000;

const QUERY: &str = "SELECT ?x { ?x <e:kind> 1 . ?x <e:code> 7 }";

/// Spreads numbers.
fn mix(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 8
}

fn data() -> String {
    use std::fmt::Write;
    let integer = "http://www.w3.org/2001/XMLSchema#integer";
    let mut text = String::new();
    for i in 0..ITEMS {
        let code = if mix(i).is_multiple_of(ITEMS / WITH_THE_CODE) { 7 } else { 1_000_000 + mix(i) };
        writeln!(text, "<e:item{i}> <e:code> \"{code}\"^^<{integer}> .").unwrap();
        if mix(i + 1).is_multiple_of(ITEMS / OF_THE_KIND) {
            writeln!(text, "<e:item{i}> <e:kind> \"1\"^^<{integer}> .").unwrap();
        }
    }
    text
}

fn database(path: &Path) {
    let options = LoadOptions { format: Some(format_named("nt").unwrap()), ..LoadOptions::default() };
    let read = Box::new(std::io::Cursor::new(data().into_bytes()));
    let source = Source::Reader { name: "items".into(), read };
    load(path, vec![source], &options, &(), &AtomicBool::new(false)).unwrap();
}

fn open(path: &Path, model: &DeviceModel, clock: &Clock) -> QueryEngine {
    open_with(path, model, clock, 128 << 20)
}

fn open_with(path: &Path, model: &DeviceModel, clock: &Clock, pool_bytes: u64) -> QueryEngine {
    let (model, in_time_of) = (model.clone(), clock.clone());
    let config = OpenOptions {
        read_ahead: ReadAhead { planned: true, scan: true, ..ReadAhead::none() },
        memory_bytes: 512 << 20,
        pool_bytes: Some(pool_bytes),
        seams: Seams {
            devices: Some(DeviceWrap::new(move |_, file| {
                Ok(Arc::new(SimulatedDevice::new(model.clone(), file, &in_time_of)))
            })),
            clock: clock.clone(),
            background: Background::Caller,
            ..Seams::default()
        },
        ..StoreConfig::default()
    };
    QueryEngine::new(GraphDatabase::open(path, &config).unwrap())
}

fn options(costs: PlanCosts) -> QueryOptions {
    QueryOptions { costs, threads: 1, ..QueryOptions::default() }
}

/// Rows, pages read and microseconds of a query, its planning included.
fn run(engine: &QueryEngine, clock: &Clock, costs: PlanCosts) -> (u64, u64, u64) {
    let _in_time = clock.enter();
    let (begun, before) = (clock.now_ns(), engine.activity().disk);
    let mut result = engine.query(QUERY, &options(costs)).unwrap();
    let mut rows = 0;
    while let Some(batch) = result.next_batch().unwrap() {
        rows += batch.rows as u64;
    }
    drop(result);
    (rows, engine.activity().disk - before, (clock.now_ns() - begun) / 1000)
}

fn read_everything(engine: &QueryEngine) {
    let mut session = engine.graph().session().unwrap();
    for index in Index::ALL {
        let mut scan = session.scan(index, &[], None);
        let mut columns = snowmelt_graph::Columns::new(index.arity());
        while scan.next(&mut session, &mut columns, 1 << 16).unwrap() {
            columns = snowmelt_graph::Columns::new(index.arity());
        }
    }
}

/// The plan of the first query of an open database, and what that query took.
fn cold(path: &Path, model: &DeviceModel, costs: PlanCosts) -> (String, (u64, u64, u64)) {
    let opened = || {
        let clock = Clock::virtual_time(1);
        (open(path, model, &clock), clock)
    };
    let plan = {
        let (engine, clock) = opened();
        plan(&engine, &clock, costs)
    };
    let (engine, clock) = opened();
    (plan, run(&engine, &clock, costs))
}

fn plan(engine: &QueryEngine, clock: &Clock, costs: PlanCosts) -> String {
    let _in_time = clock.enter();
    engine.explain(QUERY, &options(costs)).unwrap()
}

/// Looks up the code of each item of the kind.
fn looks_codes_up(plan: &str) -> bool {
    plan.contains("lookup PSOG[…e:code") && plan.contains("scan POSG[…e:kind")
}

/// Reads the items of the code, where they lie together.
fn scans_the_code(plan: &str) -> bool {
    plan.contains("scan POSG[…e:code") && !plan.contains("lookup PSOG[…e:code")
}

#[test]
fn a_cold_plan_is_another_one_and_shorter() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    database(&path);
    for model in [DeviceModel::wide_slow(), DeviceModel::hdd()] {
        let (cold_plan, (rows, read, us)) = cold(&path, &model, PlanCosts::Device);
        let (warm_plan, (same, more, longer)) = cold(&path, &model, PlanCosts::Warm);
        eprintln!("{us} µs and {read} pages with\n{cold_plan}{longer} µs and {more} pages with\n{warm_plan}");
        assert!(scans_the_code(&cold_plan), "{cold_plan}");
        assert!(cold_plan.contains("PSOG cold, POSG cold") && cold_plan.contains(" + io≈"), "{cold_plan}");
        assert!(looks_codes_up(&warm_plan) && !warm_plan.contains("io≈"), "{warm_plan}");
        assert!(rows > 0 && rows == same, "{rows} and {same} rows");
        assert!(more > 5 * read, "{more} pages as if warm, {read} planned for the device");
        assert!(4 * longer > 5 * us, "{longer} µs as if warm, {us} µs planned for the device");
    }
}

#[test]
fn a_plan_made_cold_is_not_used_warm() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    database(&path);
    let clock = Clock::virtual_time(1);
    let engine = open(&path, &DeviceModel::wide_slow(), &clock);
    let cold = plan(&engine, &clock, PlanCosts::Device);
    assert!(scans_the_code(&cold), "{cold}");
    let (rows, ..) = run(&engine, &clock, PlanCosts::Device);
    {
        let _in_time = clock.enter();
        read_everything(&engine);
    }
    let warm = plan(&engine, &clock, PlanCosts::Device);
    assert_eq!(warm, plan(&engine, &clock, PlanCosts::Warm), "all is in memory");
    assert!(looks_codes_up(&warm), "{warm}");
    assert_eq!(run(&engine, &clock, PlanCosts::Device), (rows, 0, 0));
}

/// Two queries go through the same predicate, the second from when the first is about a fifth
/// of the way; the pool holds half of it.
#[test]
fn two_scans_read_little_more_than_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    database(&path);
    const SUM: &str = "SELECT (SUM(?c) AS ?sum) (SAMPLE(?x) AS ?any) { ?x <e:code> ?c }";
    let pages = {
        let engine = open(&path, &DeviceModel::hdd(), &Clock::virtual_time(1));
        engine.graph().state().unwrap().index(Index::Psog).unwrap().leaves()
    };
    let sum = |engine: &QueryEngine| {
        let mut rows = Vec::new();
        engine
            .query(SUM, &options(PlanCosts::Device))
            .unwrap()
            .for_each(|row| rows.push(format!("{row:?}")))
            .unwrap();
        rows
    };
    let alone = {
        let clock = Clock::virtual_time(2);
        let engine = open_with(&path, &DeviceModel::hdd(), &clock, pages / 2 * 8192);
        let _in_time = clock.enter();
        (sum(&engine), engine.activity().disk, clock.now_ns())
    };
    let clock = Clock::virtual_time(2);
    let engine = open_with(&path, &DeviceModel::hdd(), &clock, pages / 2 * 8192);
    let tickets = clock.reserve(2);
    std::thread::scope(|scope| {
        for (i, ticket) in tickets.into_iter().enumerate() {
            let (engine, clock, alone) = (&engine, &clock, &alone);
            scope.spawn(move || {
                let _in_time = ticket.enter();
                if i == 0 {
                    assert_eq!(sum(engine), alone.0);
                } else {
                    clock.sleep_ns(alone.2 / 5);
                    let analysis = engine.analyze(SUM, &options(PlanCosts::Device)).unwrap();
                    assert!(analysis.contains("shared with 1, joined at"), "{analysis}");
                    eprintln!("{analysis}");
                    assert!(analysis.contains(&format!("| rows {ITEMS} ")), "{analysis}");
                }
            });
        }
    });
    let read = engine.activity().disk;
    eprintln!("{pages} leaves: {} pages read by one scan, {read} by two", alone.1);
    assert_eq!(engine.shared_scans(), (2, 1), "one of two scans joined the other");
    assert!(4 * read < 5 * alone.1 + 4 * pages / 5, "{read} pages by two scans, {} by one", alone.1);
}
