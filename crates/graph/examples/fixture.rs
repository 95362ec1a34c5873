//! Writes the databases that tests of later releases open: `cargo run -p snowmelt-graph
//! --example fixture -- FILE`.
//!
//! FILE gets two small databases of the present file format with the same history (a load,
//! random inserts and deletes, a graph cleared, a second load): `closed` was closed, `crashed`
//! is a copy made while it was open, with commits in its journal that were never written back.
//! Beside each is what it holds, as sorted N-Quads. Made once for each file format, before the
//! next one: see crates/graph/tests/fixtures/README.md.

#[path = "../tests/support/archive.rs"]
mod archive;

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_database::OpenOptions;
use snowmelt_graph::load::{Fill, LoadOptions, Source, load};
use snowmelt_graph::{DumpFormat, GraphDatabase, Graphs, TermRef};
use snowmelt_store::{Checkpoints, JournalConfig};

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let file = std::env::args().nth(1).ok_or("fixture FILE")?;
    let work = std::env::temp_dir().join(format!("snowmelt-fixture-{}", std::process::id()));
    let out = work.join("out");
    for (name, checkpoints) in [("closed", Checkpoints::Continuous), ("crashed", Checkpoints::Held)] {
        let dir = work.join(name);
        let db = history(&dir, checkpoints)?;
        let expected = dump(&db)?;
        if name == "closed" {
            drop(db);
            copy(&dir, &out.join(name))?;
        } else {
            copy(&dir, &out.join(name))?;
            drop(db);
        }
        std::fs::write(out.join(format!("{name}.nq")), expected)?;
    }
    std::fs::write(file, archive::pack(&out)?)?;
    std::fs::remove_dir_all(&work)?;
    Ok(())
}

fn options(checkpoints: Checkpoints) -> OpenOptions {
    let journal = JournalConfig { file_bytes: 128 << 10, checkpoints, ..JournalConfig::default() };
    OpenOptions { memory_bytes: 64 << 20, direct: false, extent_pages: 8, journal, ..OpenOptions::default() }
}

fn history(dir: &Path, checkpoints: Checkpoints) -> Result<Arc<GraphDatabase>, Failed> {
    std::fs::create_dir_all(dir)?;
    let store = options(Checkpoints::Continuous);
    for part in [0..1500, 1000..2000] {
        let lines: String = part.map(|n| line(n, "loaded")).collect();
        let sources = vec![Source::Reader { name: "fixture".into(), read: Box::new(Cursor::new(lines)) }];
        let (format, fill) = (Some(oxrdfio::RdfFormat::NQuads), Some(Fill::Merge));
        let load_options = LoadOptions { format, fill, store: store.clone(), ..LoadOptions::default() };
        load(dir, sources, &load_options, &(), &AtomicBool::new(false))?;
    }
    let db = GraphDatabase::open(dir, &options(checkpoints))?;
    for round in 0..12 {
        let mut txn = db.begin()?;
        let lines: String = (0..40).map(|n| line(round * 1000 + n * 7, "changed")).collect();
        let source = Source::Reader { name: "fixture".into(), read: Box::new(Cursor::new(lines)) };
        txn.insert_source(source, Some(oxrdfio::RdfFormat::NQuads), None, None, &AtomicBool::new(false))?;
        if round == 8 {
            let graph = txn.session().resolve_one(TermRef::Iri("http://example.org/g2"))?;
            txn.clear(Graphs::One(graph.ok_or("a graph of the load")?), &AtomicBool::default())?;
        }
        txn.commit()?;
    }
    Ok(db)
}

/// Quad `n`, with a term of every kind now and then.
fn line(n: u64, word: &str) -> String {
    let object = match n % 6 {
        0 => format!("<http://example.org/s/{}>", n % 77),
        1 => format!("\"{}\"^^<http://www.w3.org/2001/XMLSchema#integer>", n * 31),
        2 => format!("\"a {word} text, number {n}\"@en"),
        3 => format!("\"{}\"", "a long text of many words ".repeat(3 + n as usize % 40)),
        4 => format!("\"{n}.5\"^^<http://example.org/type/{}>", n % 3),
        _ => format!("\"{word} {n}\""),
    };
    let graph = if n.is_multiple_of(4) { format!(" <http://example.org/g{}>", n % 3) } else { String::new() };
    format!("<http://example.org/s/{}> <http://example.org/p#{}> {object}{graph} .\n", n / 5, n % 7)
}

/// The contents of the database, as sorted lines.
fn dump(db: &Arc<GraphDatabase>) -> Result<String, Failed> {
    let mut out = Vec::new();
    db.dump(DumpFormat::NQuads, &mut out)?;
    let mut lines: Vec<&str> = std::str::from_utf8(&out)?.lines().collect();
    lines.sort_unstable();
    Ok(lines.join("\n"))
}

fn copy(from: &Path, to: &Path) -> Result<(), Failed> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() != "lock" {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
