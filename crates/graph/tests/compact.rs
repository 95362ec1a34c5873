//! Reclaiming terms without quads: answers stay, dead terms go, files shrink, beside writers and
//! readers; interruptions leave everything as it was.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use snowmelt_base::test_seed;
use snowmelt_graph::load::{LoadOptions, LoadSizes, Source, load};
use snowmelt_graph::{
    BlankNodes, CompactOptions, CompactStep, CompactTerms, Database, DumpFormat, GraphError, Index,
    OpenOptions, QuadBatch, Term, TermId, TermRef, TermsCompacted,
};
use tempfile::TempDir;

/// splitmix64
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(snowmelt_base::random::GOLDEN);
        (snowmelt_base::random::mix(self.0) % n as u64) as usize
    }
}

/// Subject, predicate, object, and a graph or the default one.
type Quad = (Term, Term, Term, Option<Term>);

fn options() -> OpenOptions {
    OpenOptions { memory_bytes: 256 << 20, extent_pages: 8, direct: false, ..OpenOptions::default() }
}

fn database() -> (TempDir, Arc<Database>) {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::create(&dir.path().join("db"), &[], &options()).unwrap();
    (dir, database)
}

fn small() -> CompactOptions {
    let sizes = LoadSizes { batch_rows: Some(300), run_bytes: Some(8 << 10), fan_in: Some(4), ..LoadSizes::default() };
    CompactOptions { terms: CompactTerms::Always, threads: 2, sizes, renew_rows: Some(700) }
}

fn compact(database: &Arc<Database>, options: &CompactOptions) -> TermsCompacted {
    database.compact(options, |_| ControlFlow::Continue(())).unwrap().terms
}

fn iri(text: String) -> Term {
    Term::Iri(text)
}

/// A term of each kind: short, long and tagged strings, numbers that are inline and others, of
/// datatypes with codes.
fn object(random: &mut Random, n: usize) -> Term {
    let m = random.below(n);
    match random.below(9) {
        0 => TermRef::string(&format!("a string of the number {m}")).to_owned(),
        1 => TermRef::tagged(&format!("Wort {m}"), ["de", "en", "fr"][m % 3]).to_owned(),
        2 => TermRef::string(&format!("{m} {}", "and so on ".repeat(8 + m % 30))).to_owned(),
        3 => TermRef::typed(&m.to_string(), "http://www.w3.org/2001/XMLSchema#integer").to_owned(),
        4 => TermRef::typed(&format!("0{m}"), "http://www.w3.org/2001/XMLSchema#integer").to_owned(),
        5 => TermRef::typed(&format!("{m}.25"), &format!("http://e.org/money/{}", m % 7)).to_owned(),
        6 => TermRef::typed(&format!("unlike {m}"), &format!("http://e.org/type/{}", m % 11)).to_owned(),
        _ => iri(format!("http://e.org/{}/{m}", m % 5)),
    }
}

fn quad(random: &mut Random, n: usize) -> Quad {
    let subject = iri(format!("http://e.org/s/{}", random.below(n)));
    let predicate = iri(format!("http://e.org/p#{}", random.below(9)));
    let graph = (random.below(4) == 0).then(|| iri(format!("http://e.org/g/{}", random.below(6))));
    (subject, predicate, object(random, n), graph)
}

fn insert(database: &Arc<Database>, quads: &[Quad]) {
    let mut txn = database.begin().unwrap();
    let mut batch = QuadBatch::new(0);
    for (s, p, o, g) in quads {
        let [s, p, o] = [s, p, o].map(|t| batch.term(t.as_ref()));
        let g = g.as_ref().map_or(batch.id(TermId::DEFAULT_GRAPH), |g| batch.term(g.as_ref()));
        batch.push([s, p, o, g]);
    }
    txn.insert(&batch, &mut BlankNodes::default()).unwrap();
    txn.commit().unwrap();
}

fn delete(database: &Arc<Database>, quads: &[Quad]) {
    let mut txn = database.begin().unwrap();
    let mut session = txn.session();
    let mut ids = Vec::new();
    for (s, p, o, g) in quads {
        let found = session.resolve(&[s.as_ref(), p.as_ref(), o.as_ref()]).unwrap();
        let g = match g {
            Some(g) => session.resolve_one(g.as_ref()).unwrap(),
            None => Some(TermId::DEFAULT_GRAPH),
        };
        ids.push([found[0].unwrap(), found[1].unwrap(), found[2].unwrap(), g.unwrap()]);
    }
    drop(session);
    txn.delete(&ids).unwrap();
    txn.commit().unwrap();
}

fn line((s, p, o, g): &Quad) -> String {
    let graph = g.as_ref().map_or(String::new(), |g| format!(" {}", g.as_ref()));
    format!("{} {} {}{graph} .", s.as_ref(), p.as_ref(), o.as_ref())
}

fn lines(database: &Arc<Database>) -> BTreeSet<String> {
    let mut out = Vec::new();
    database.dump(DumpFormat::NQuads, &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

fn model(quads: &BTreeSet<String>) -> BTreeSet<String> {
    quads.clone()
}

/// Terms that are in the dictionary, and those that should be.
fn terms(database: &Arc<Database>) -> (u64, u64) {
    let mut session = database.session().unwrap();
    let mut live = BTreeSet::new();
    for index in [Index::Sp, Index::Op, Index::Gs] {
        let mut rows = snowmelt_graph::Columns::new(2);
        let mut scan = session.scan(index, &[], None);
        while scan.next(&mut session, &mut rows, 1000).unwrap() {}
        live.extend(rows.cols.iter().flatten().map(|id| TermId(*id)).filter(|id| id.kind().is_dictionary()));
    }
    (session.state().terms(), live.len() as u64)
}

fn is_sound(database: &Arc<Database>) {
    let report = database.check(&mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:#?}", report.problems);
}

/// Bytes of a fresh load of what the database holds.
fn fresh_bytes(database: &Arc<Database>) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fresh.nq");
    let mut file = std::fs::File::create(&path).unwrap();
    database.dump(DumpFormat::NQuads, &mut file).unwrap();
    let options = LoadOptions { store: options(), threads: 2, ..LoadOptions::default() };
    load(&dir.path().join("db"), vec![Source::File(path)], &options, &(), &AtomicBool::new(false)).unwrap();
    stripe_bytes(&dir.path().join("db"))
}

fn stripe_bytes(dir: &Path) -> u64 {
    std::fs::metadata(dir.join("stripe-0")).unwrap().len()
}

/// Inserts and deletes at random; what is left.
fn churn(database: &Arc<Database>, random: &mut Random, rounds: usize) -> Vec<Quad> {
    let mut there: Vec<Quad> = Vec::new();
    for round in 0..rounds {
        let many: Vec<Quad> = (0..400).map(|_| quad(random, 300 + 900 * round)).collect();
        insert(database, &many);
        there.extend(many);
        there.sort_by_key(line);
        there.dedup();
        let gone: Vec<Quad> = (0..there.len() * 2 / 3).map(|_| there.swap_remove(random.below(there.len()))).collect();
        delete(database, &gone);
    }
    there
}

#[test]
fn dead_terms_go_and_answers_stay() {
    let first = test_seed(11);
    for seed in first..first + 3 {
        eprintln!("SNOWMELT_SEED={seed}");
        let random = &mut Random(seed);
        let (dir, database) = database();
        let there = churn(&database, random, 8);
        let want: BTreeSet<String> = there.iter().map(line).collect();
        assert_eq!(lines(&database), want);
        let (before, live) = terms(&database);
        assert!(before > 2 * live, "{before} terms for {live}");
        let old = database.session().unwrap();
        let reclaimed = compact(&database, &small());
        let TermsCompacted::Reclaimed { before: told, after, .. } = reclaimed else { panic!("{reclaimed:?}") };
        assert_eq!((told, after), (before, live));
        assert_eq!(terms(&database), (live, live));
        assert_eq!(lines(&database), want);
        is_sound(&database);
        // A reader from before reads on.
        let mut out = Vec::new();
        old.dump(DumpFormat::NQuads, &mut out, &AtomicBool::new(false)).unwrap();
        let seen: BTreeSet<String> = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(seen, want);
        // Its trees took the room: without it the next one gives that back.
        compact(&database, &small());
        let (size, fresh) = (stripe_bytes(&dir.path().join("db")), fresh_bytes(&database));
        assert!(size * 10 <= fresh * 11, "{size} bytes, a fresh load has {fresh}");
        // And it is used on.
        insert(&database, &there[..there.len() / 2]);
        assert_eq!(lines(&database), want);
        delete(&database, &there[..there.len() / 2]);
        drop(database);
        let database = Database::open(&dir.path().join("db"), &options()).unwrap();
        let want: BTreeSet<String> = there[there.len() / 2..].iter().map(line).collect();
        assert_eq!(lines(&database), want);
        is_sound(&database);
    }
}
