//! How long a warm session takes per decoded term and per resolved constant:
//! `cargo run --release -p snowmelt-benches --example decode`. Checks its answers first.

#[path = "../crates/graph/tests/support/mod.rs"]
mod support;

use std::hint::black_box;

use snowmelt_database::OpenOptions;
use snowmelt_graph::{GraphDatabase, Term, TermId, TermRef, XSD};

use support::Builder;

/// Terms of each sort.
const TERMS: usize = 200_000;
/// Terms decoded at a time, as a query does.
const BATCH: usize = 50;

fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = OpenOptions { memory_bytes: 1 << 30, ..OpenOptions::default() };
    let instances = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/";
    let sorts: [(&str, Vec<Term>); 5] = [
        ("IRI", terms(|n| Term::Iri(format!("{instances}dataFromVendor{}/Offer{n}", n / 2000)))),
        ("label", terms(|n| TermRef::string(&format!("boxed closefitting benzoates {n}")).to_owned())),
        (
            "text",
            terms(|n| {
                TermRef::tagged(&format!("{n} pessimists speechlessness ").repeat(20), "en").to_owned()
            }),
        ),
        ("integer", terms(|n| TermRef::typed(&n.to_string(), &format!("{XSD}integer")).to_owned())),
        ("USD", terms(|n| TermRef::typed(&format!("{n}.50"), "http://a.example/USD").to_owned())),
    ];
    let mut builder = Builder::default();
    let ids: Vec<Vec<TermId>> =
        sorts.iter().map(|(_, terms)| terms.iter().map(|term| builder.id(term)).collect()).collect();
    let store = snowmelt_store::Store::create(dir.path(), &[], options.clone()).expect("a store");
    builder.write(&store, |_| {});
    drop(store);
    let db = GraphDatabase::open(dir.path(), &options).expect("the database");
    let mut session = db.session().unwrap();

    for ((name, terms), ids) in sorts.iter().zip(&ids) {
        session.decode(ids, |at, term| assert_eq!(term, terms[at].as_ref())).expect("decoded");
        let near: Vec<Vec<TermId>> = ids.chunks(BATCH).map(<[_]>::to_vec).collect();
        let far: Vec<Vec<TermId>> = (0..ids.len() / BATCH)
            .map(|n| (0..BATCH).map(|k| ids[scatter(n * BATCH + k)]).collect())
            .collect();
        let constants: Vec<TermRef> = (0..20_000).map(|n| terms[scatter(n)].as_ref()).collect();
        let warm = session.resolve(&constants).expect("resolved");
        assert!(warm.iter().enumerate().all(|(n, id)| *id == Some(ids[scatter(n)])));
        let near = per_term(&near, |batch| decode(&mut session, batch));
        let far = per_term(&far, |batch| decode(&mut session, batch));
        let one = per_term(&constants.chunks(1).map(<[_]>::to_vec).collect::<Vec<_>>(), |batch| {
            black_box(session.resolve(batch).expect("resolved"));
        });
        let five = per_term(&constants.chunks(5).map(<[_]>::to_vec).collect::<Vec<_>>(), |batch| {
            black_box(session.resolve(batch).expect("resolved"));
        });
        println!(
            "{name:8} decode, neighbours {near:6.0} ns   scattered {far:6.0} ns   resolve, alone {one:6.0} ns   by five {five:6.0} ns"
        );
    }
}

fn terms(make: impl Fn(usize) -> Term) -> Vec<Term> {
    (0..TERMS).map(make).collect()
}

fn scatter(n: usize) -> usize {
    n * 7_919 % TERMS
}

fn decode(session: &mut snowmelt_graph::Session, batch: &[TermId]) {
    let mut bytes = 0;
    let count = |_, term: TermRef<'_>| {
        bytes += match term {
            TermRef::Iri(text) | TermRef::Blank(text) => text.len(),
            TermRef::Literal { lexical, .. } => lexical.len(),
            TermRef::Triple(_) => 0,
        }
    };
    session.decode(batch, count).expect("decoded");
    black_box(bytes);
}

/// Nanoseconds of processor time per term, the best of a number of rounds.
fn per_term<T>(batches: &[Vec<T>], mut work: impl FnMut(&Vec<T>)) -> f64 {
    let terms: usize = batches.iter().map(Vec::len).sum();
    let rounds = (0..5).map(|_| {
        let begin = processor_ns();
        let mut done = 0;
        // The kernel counts in ticks of some milliseconds.
        while processor_ns() - begin < 100_000_000 {
            batches.iter().for_each(&mut work);
            done += terms;
        }
        (processor_ns() - begin) as f64 / done as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}

/// Processor time of this thread: other programs on the machine would spoil the time of day.
fn processor_ns() -> u64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    times.split(' ').next().and_then(|time| time.parse().ok()).expect("a number of nanoseconds")
}
