//! Commands of the laboratory that need a database: a scan of an index, transactions beside a scan.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use snowmelt_graph::load::{LoadOptions, Source, load};
use snowmelt_graph::{DumpFormat, GraphDatabase};

fn lab(dir: &Path, line: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_snowmelt-lab")).current_dir(dir).args(line).output().unwrap()
}

fn ok(dir: &Path, line: &[&str]) -> String {
    let output = lab(dir, line);
    assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The number before a word: leaves, pages.
fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(&format!(" {word}")).next().unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("no number of {word} in {text}"))
}

#[test]
fn a_scan_of_an_index_reads_the_index_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (db, data) = (dir.path().join("db"), dir.path().join("data.nt"));
    ok(dir.path(), &["bsbm", "generate", "--products", "200", "-o", "data.nt"]);
    let source = Source::from_arg(data.to_str().unwrap());
    load(&db, vec![source], &LoadOptions::default(), &(), &AtomicBool::new(false)).unwrap();
    let scan = || {
        let said = ok(dir.path(), &["scan-index", "db", "psog"]);
        (number_before(&said, "leaves"), number_before(&said, "pages read"))
    };
    let (leaves, pages) = scan();
    assert!((leaves..=leaves + 3).contains(&pages), "{pages} pages for {leaves} leaves");
    // Everything is read, and remembered for the next start.
    let database = GraphDatabase::open(&db, &Default::default()).unwrap();
    database.dump(DumpFormat::NQuads, &mut Vec::new()).unwrap();
    drop(database);
    assert!(db.join("warm").exists(), "the pages in memory are listed");
    assert_eq!(scan(), (leaves, pages));
}

#[test]
fn transactions_beside_a_scan_are_measured_and_their_books_balance() {
    // A folder that the account of PostgreSQL can enter.
    let dir = tempfile::Builder::new().prefix("oltp").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir(dir.path().join("disk")).unwrap();
    let line = [
        "oltp",
        "disk",
        "--scale",
        "1",
        "--clients",
        "2",
        "--seconds",
        "1",
        "--repeat",
        "1",
        "--size",
        "8m",
        "--wait",
        "--out",
        "run",
    ];
    let output = lab(dir.path(), &line);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let skips = ["no block device", "nothing was measured", "refuses O_DIRECT", "cannot enter"];
    if !output.status.success() && skips.iter().any(|why| said.contains(why)) {
        return println!("skipped: {said}");
    }
    assert!(output.status.success(), "{said}");
    let text = std::fs::read_to_string(dir.path().join("run/phases.jsonl")).unwrap();
    let phases: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!phases.is_empty() && phases.len().is_multiple_of(3), "{text}");
    for phase in &phases {
        let name = phase["phase"].as_str().unwrap();
        let has = |field: &str| phase[field].as_f64().is_some_and(|number| number > 0.0);
        assert_eq!((has("per_s"), has("scan_mb_per_s")), (name != "scan", name != "transactions"), "{phase}");
        let latency = &phase["latency"];
        assert_eq!(latency["count"], phase["transactions"], "{phase}");
        assert!(name == "scan" || latency["p50_ns"].as_u64() <= latency["p99_ns"].as_u64(), "{phase}");
    }
    let page = std::fs::read_to_string(dir.path().join("run/report.html")).unwrap();
    let measured = |engine: &str| phases.iter().any(|phase| phase["engine"] == engine);
    for (engine, title) in [("postgresql", "PostgreSQL"), ("snowmelt", "Snowmelt")] {
        assert!(measured(engine) || page.contains(&format!("Left out: {title}")), "{engine}: {said}");
    }
    assert_eq!(std::fs::read_dir(dir.path().join("disk")).unwrap().count(), 0, "all is removed");
    let refused = lab(dir.path(), &["oltp", "disk", "--engines", "duckdb", "--wait", "--out", "other"]);
    assert!(!refused.status.success());
}
