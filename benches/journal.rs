//! Cost of commits of one quad in the journal, by pattern of change, and where the bytes go.
//!
//!     cargo run --release -p snowmelt-benches --example journal -- \
//!         DB [COMMITS] [default|held|MIB,SECONDS] [QUADS]
//!
//! DB is a database of the Berlin SPARQL Benchmark; it is changed. Each pattern is COMMITS (default
//! 20 000) commits of QUADS (default 1) quads each, after the database was opened anew: *new* gives
//! a new subject a new literal, *literal* an existing subject a new literal, *link* links existing
//! subjects, *delete* takes quads of existing subjects. Subjects are spread over all. With *held*
//! there are no checkpoints, with MIB,SECONDS one after that much journal or time.
//!
//! *appended* are bytes of records; *written* are bytes of the blocks written to the files. The
//! last block of a commit is written again by the next one.

use std::sync::Arc;
use std::time::Instant;

use snowmelt_database::OpenOptions;
use snowmelt_graph::{BlankNodes, DumpFormat, GraphDatabase, QuadBatch, TermId, TermRef};
use snowmelt_store::{JournalConfig, JournalStats};

type Failed = Box<dyn std::error::Error>;

const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const COMMENT: &str = "http://www.w3.org/2000/01/rdf-schema#comment";
const SEE_ALSO: &str = "http://www.w3.org/2000/01/rdf-schema#seeAlso";

fn main() -> Result<(), Failed> {
    let args: Vec<String> = std::env::args().collect();
    let dir = args.get(1).ok_or("journal DB [COMMITS] [default|held|MIB,SECONDS] [QUADS]")?;
    let commits: usize = args.get(2).map_or(Ok(20_000), |n| n.parse())?;
    let journal = match args.get(3).map(String::as_str) {
        None | Some("default") => JournalConfig::default(),
        Some("held") => JournalConfig {
            checkpoint_bytes: u64::MAX,
            checkpoint_s: u64::MAX / 2_000_000_000,
            most_bytes: u64::MAX,
            ..JournalConfig::default()
        },
        Some(sizes) => {
            let (mib, seconds) = sizes.split_once(',').ok_or("MIB,SECONDS")?;
            JournalConfig {
                checkpoint_bytes: mib.parse::<u64>()? << 20,
                checkpoint_s: seconds.parse()?,
                ..JournalConfig::default()
            }
        }
    };
    let quads: usize = args.get(4).map_or(Ok(1), |n| n.parse())?;
    let options = OpenOptions { journal, ..OpenOptions::default() };
    let pairs = typed(&GraphDatabase::open(dir.as_ref(), &options)?)?;
    println!("{} subjects with a type", pairs.len());
    for pattern in ["new", "literal", "link", "delete"] {
        let db = GraphDatabase::open(dir.as_ref(), &options)?;
        run(&db, pattern, commits, quads, &pairs)?;
    }
    Ok(())
}

/// Subjects and their types.
fn typed(db: &Arc<GraphDatabase>) -> Result<Vec<(String, String)>, Failed> {
    let mut out = Vec::new();
    db.dump(DumpFormat::NTriples, &mut out)?;
    let between = format!("> <{TYPE}> <");
    let pair = |line: &str| {
        let (s, o) = line.split_once(&between)?;
        Some((s.strip_prefix('<')?.to_owned(), o.strip_suffix("> .")?.to_owned()))
    };
    Ok(std::str::from_utf8(&out)?.lines().filter_map(pair).collect())
}

fn run(
    db: &Arc<GraphDatabase>,
    pattern: &str,
    commits: usize,
    quads: usize,
    pairs: &[(String, String)],
) -> Result<(), Failed> {
    let store = db.database().store();
    let (begin, begun) = (store.journal_stats(), Instant::now());
    let (mut first, mut half) = (begin.clone(), begin.clone());
    store.reset_meters();
    let mut spread = 0usize;
    for commit in 0..commits {
        match commit {
            1000 => first = store.journal_stats(),
            c if c == commits / 2 => half = store.journal_stats(),
            _ => {}
        }
        let (mut insert, mut delete) = (QuadBatch::new(0), Vec::new());
        let mut txn = db.begin()?;
        for i in 0..quads {
            // A large odd step visits all subjects, never two close ones in turn.
            spread = (spread + 2_654_435_761) % pairs.len();
            let ((s, o), n) = (&pairs[spread], commit * quads + i);
            let mut add = |s: &str, p: &str, o: TermRef<'_>| {
                let [s, p, o] = [TermRef::Iri(s), TermRef::Iri(p), o].map(|term| insert.term(term));
                let g = insert.id(TermId::DEFAULT_GRAPH);
                insert.push([s, p, o, g]);
            };
            match pattern {
                "new" => {
                    let s = format!("http://example.org/instances/item{n}");
                    add(&s, COMMENT, TermRef::string(&format!("a remark on item {n}")));
                }
                "literal" => add(s, COMMENT, TermRef::string(&format!("a further remark, number {n}"))),
                "link" => add(s, SEE_ALSO, TermRef::Iri(&pairs[(spread + 7919 * (n + 1)) % pairs.len()].0)),
                _ => {
                    let mut session = txn.session();
                    let mut id = |iri: &str| session.resolve_one(TermRef::Iri(iri));
                    if let (Some(s), Some(p), Some(o)) = (id(s)?, id(TYPE)?, id(o)?) {
                        delete.push([s, p, o, TermId::DEFAULT_GRAPH]);
                    }
                }
            }
        }
        txn.change(&delete, &insert, &mut BlankNodes::default())?;
        txn.commit()?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let end = store.journal_stats();
    let each = |a: &JournalStats, b: &JournalStats, of: fn(&JournalStats) -> u64| {
        (of(b) - of(a)) as f64 / ((b.commits - a.commits).max(1) as f64 * quads as f64)
    };
    let appended = |s: &JournalStats| s.appended_bytes;
    println!(
        "{pattern}: {} commits of {quads}, {:.0}/s, {} checkpoints; journal bytes a quad: \
         appended {:.0} (the first 1000 commits {:.0}, the second half {:.0}), written {:.0}",
        end.commits - begin.commits,
        commits as f64 / seconds,
        end.checkpoints - begin.checkpoints,
        each(&begin, &end, appended),
        each(&begin, &first, appended),
        each(&half, &end, appended),
        each(&begin, &end, |s| s.written_bytes),
    );
    println!(
        "  before compression {:.0}, of these catalog and extents {:.0}; by tree, a quad:",
        each(&begin, &end, |s| s.payload_bytes),
        each(&begin, &end, |s| s.catalog_bytes),
    );
    let per = |n: u64| n as f64 / (commits * quads) as f64;
    for tree in store.tree_stats() {
        let (name, j) = (tree.name, tree.journaled);
        if j.images + j.diffs > 0 {
            println!(
                "  {name:>16}: {:.4} images of {:.0} bytes = {:.0}; {:.2} diffs of {:.1} bytes = {:.0}",
                per(j.images),
                j.image_bytes as f64 / j.images.max(1) as f64,
                per(j.image_bytes),
                per(j.diffs),
                j.diff_bytes as f64 / j.diffs.max(1) as f64,
                per(j.diff_bytes),
            );
        }
    }
    Ok(())
}
