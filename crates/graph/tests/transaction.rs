//! Transactions compared with a model, a set of quads. Random inserts, deletes and clears; all
//! indexes are checked against each other after every commit; sessions must not change; aborted
//! transactions must leave nothing.
//!
//! The seed is printed; `SNOWMELT_SEED` gives another one.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use snowmelt_database::OpenOptions;
use snowmelt_graph::load::{LoadOptions, Source, load};
use snowmelt_graph::{
    BlankNodes, Document, DocumentReading, DumpFormat, GraphDatabase, GraphError, Graphs, Index, Interrupt,
    QuadBatch, Session, TermId, TermRef, Transaction, Tree,
};
use snowmelt_store::{Relocation, TupleTree};

/// Subject, predicate, object and graph in N-Quads notation; an empty graph is the default graph.
type Quad = [String; 4];
type Model = BTreeSet<Quad>;

/// splitmix64
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(snowmelt_base::random::GOLDEN);
        snowmelt_base::random::mix(self.0)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A quad out of few, so that it often exists; sometimes with new terms.
    fn quad(&mut self, round: u64) -> Quad {
        let subject = match self.below(10) {
            0 => format!("<http://new/{round}/{}>", self.below(1000)),
            _ => format!("<http://example.org/s/{}>", self.below(20)),
        };
        let predicate = format!("<http://example.org/p#{}>", self.below(4));
        let object = match self.below(7) {
            0 => self.below(30).to_string(),
            1 => format!("\"text {}\"@en", self.below(10)),
            2 => format!("\"{}\"", "long ".repeat(49 + self.below(5) as usize)),
            3 => format!("\"{}\"^^<http://example.org/type/{}>", self.below(9), self.below(3)),
            4 => format!("<http://example.org/s/{}>", self.below(20)),
            5 => format!("\"new {round} {}\"", self.below(1000)),
            _ => format!("\"short {}\"", self.below(40)),
        };
        let graph = match self.below(4) {
            0 => format!("<http://example.org/g{}>", self.below(3)),
            _ => String::new(),
        };
        let object = match object.parse::<u64>() {
            Ok(number) => format!("\"{number}\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
            Err(_) => object,
        };
        [subject, predicate, object, graph]
    }
}

fn options() -> OpenOptions {
    OpenOptions { memory_bytes: 64 << 20, direct: false, extent_pages: 8, ..OpenOptions::default() }
}

/// The term of its notation.
fn term(text: &str) -> TermRef<'_> {
    if let Some(iri) = text.strip_prefix('<') {
        return TermRef::Iri(iri.strip_suffix('>').expect("IRIs end"));
    }
    let end = text.rfind('"').expect("literals end");
    let lexical = &text[1..end];
    match &text[end + 1..] {
        "" => TermRef::string(lexical),
        tag if tag.starts_with('@') => TermRef::tagged(lexical, &tag[1..]),
        datatype => TermRef::typed(lexical, &datatype[3..datatype.len() - 1]),
    }
}

fn batch(quads: &[Quad]) -> QuadBatch {
    let mut batch = QuadBatch::new(0);
    for [s, p, o, g] in quads {
        let (s, p, o) = (batch.term(term(s)), batch.term(term(p)), batch.term(term(o)));
        let g = if g.is_empty() { batch.id(TermId::DEFAULT_GRAPH) } else { batch.term(term(g)) };
        batch.push([s, p, o, g]);
    }
    batch
}

/// The ids of the quads whose terms are all known.
fn ids(session: &mut Session, quads: &[Quad]) -> Vec<[TermId; 4]> {
    let mut known = Vec::new();
    for [s, p, o, g] in quads {
        let mut of = |text: &str| match text {
            "" => Some(TermId::DEFAULT_GRAPH),
            text => session.resolve_one(term(text)).unwrap(),
        };
        if let (Some(s), Some(p), Some(o), Some(g)) = (of(s), of(p), of(o), of(g)) {
            known.push([s, p, o, g]);
        }
    }
    known
}

/// All quads, by a dump.
fn dump(db: &Arc<GraphDatabase>) -> Model {
    let mut out = Vec::new();
    db.dump(DumpFormat::NQuads, &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(parse).collect()
}

fn parse(line: &str) -> Quad {
    let line = line.strip_suffix(" .").expect("lines end in a dot");
    let (s, rest) = line.split_once(' ').unwrap();
    let (p, rest) = rest.split_once(' ').unwrap();
    let (o, g) = match rest.rsplit_once(" <") {
        Some((o, g)) if rest.ends_with('>') && !o.ends_with("^^") => (o, format!("<{g}")),
        _ => (rest, String::new()),
    };
    [s.to_owned(), p.to_owned(), o.to_owned(), g]
}

fn sound(db: &Arc<GraphDatabase>) {
    let report = db.check(&mut |_| {}).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
}

fn loaded(dir: &Path, quads: &Model) -> Arc<GraphDatabase> {
    let lines: Vec<String> = quads.iter().map(|[s, p, o, g]| format!("{s} {p} {o} {g} .\n")).collect();
    let read = Box::new(Cursor::new(lines.concat()));
    let load_options = LoadOptions { store: options(), ..LoadOptions::default() };
    let format = Some(oxrdfio::RdfFormat::NQuads);
    let sources = vec![Source::Reader { name: "model".into(), read }];
    load(dir, sources, &LoadOptions { format, ..load_options }, &(), &AtomicBool::new(false)).unwrap();
    GraphDatabase::open(dir, &options()).unwrap()
}

/// One random operation, on the transaction and on the model.
fn operation(random: &mut Random, round: u64, txn: &mut Transaction, model: &mut Model) {
    let many = |random: &mut Random| -> Vec<Quad> {
        let len = if random.below(5) == 0 { 2000 } else { 1 + random.below(20) };
        (0..len).map(|_| random.quad(round)).collect()
    };
    match random.below(20) {
        0 => {
            let graph = format!("<http://example.org/g{}>", random.below(3));
            let Some(id) = txn.session().resolve_one(term(&graph)).unwrap() else { return };
            let before = model.len();
            model.retain(|quad| quad[3] != graph);
            assert_eq!(
                txn.clear(Graphs::One(id), &AtomicBool::default()).unwrap().deleted,
                (before - model.len()) as u64
            );
        }
        1 => {
            model.retain(|quad| quad[3].is_empty());
            txn.clear(Graphs::Named, &AtomicBool::default()).unwrap();
        }
        2 if random.below(4) == 0 => {
            model.clear();
            txn.clear(Graphs::All, &AtomicBool::default()).unwrap();
        }
        3..=9 => {
            let quads = many(random);
            let known = ids(&mut txn.session(), &quads);
            let changed = txn.delete(&known).unwrap();
            let deleted = quads.iter().filter(|quad| model.remove(*quad)).count();
            assert_eq!((changed.deleted, changed.inserted), (deleted as u64, 0));
        }
        10 | 11 => {
            let (gone, come) = (many(random), many(random));
            let known = ids(&mut txn.session(), &gone);
            txn.change(&known, &batch(&come), &mut BlankNodes::default()).unwrap();
            model.retain(|quad| !gone.contains(quad));
            model.extend(come);
        }
        _ => {
            let quads = many(random);
            let changed = txn.insert(&batch(&quads), &mut BlankNodes::default()).unwrap();
            let inserted = quads.iter().filter(|quad| model.insert((*quad).clone())).count();
            assert_eq!((changed.inserted, changed.deleted), (inserted as u64, 0));
        }
    }
}

fn run(random: &mut Random, db: &Arc<GraphDatabase>, model: &mut Model, rounds: u64) {
    let mut held: Vec<(Session, u64)> = Vec::new();
    for round in 0..rounds {
        let mut txn = db.begin().unwrap();
        let mut next = model.clone();
        for _ in 0..1 + random.below(4) {
            operation(random, round, &mut txn, &mut next);
            let quads = txn.session().count(Index::Psog, &[], None).unwrap();
            assert_eq!(quads, next.len() as u64, "the transaction sees what it did");
        }
        let before = db.session().unwrap();
        if random.below(4) == 0 {
            drop(txn);
        } else {
            held.push((before, model.len() as u64));
            txn.commit().unwrap();
            *model = next;
        }
        assert_eq!(db.state().unwrap().quads(), model.len() as u64);
        for (session, quads) in &mut held {
            assert_eq!(session.count(Index::Posg, &[], None).unwrap(), *quads, "a session does not move");
        }
        if held.len() > 4 {
            held.remove(0);
        }
        if random.below(3) == 0 {
            assert_eq!(dump(db), *model);
            sound(db);
        }
    }
    assert_eq!(dump(db), *model);
    sound(db);
}

#[test]
fn random_changes_of_an_empty_database() {
    let mut random = Random(snowmelt_io::test_seed(1));
    let dir = tempfile::tempdir().unwrap();
    let db = GraphDatabase::create(dir.path(), &[], &options()).unwrap();
    run(&mut random, &db, &mut Model::new(), 25);
}

#[test]
fn random_changes_of_a_loaded_database() {
    let mut random = Random(snowmelt_io::test_seed(1));
    let dir = tempfile::tempdir().unwrap();
    let mut model: Model = (0..3000).map(|_| random.quad(99)).collect();
    let db = loaded(dir.path(), &model);
    run(&mut random, &db, &mut model, 25);
}

#[test]
fn blank_nodes_are_new_ones() {
    let dir = tempfile::tempdir().unwrap();
    let db = GraphDatabase::create(dir.path(), &[], &options()).unwrap();
    let text = "_:a <http://p> _:b . _:b <http://p> _:a .";
    let document = Document {
        name: "text",
        format: oxrdfio::RdfFormat::Turtle,
        base: None,
        graph: None,
        is_one_graph: false,
        reading: DocumentReading::default(),
    };
    for quads in [2, 4] {
        let mut txn = db.begin().unwrap();
        txn.insert_document(&document, text.as_bytes(), &AtomicBool::new(false)).unwrap();
        txn.commit().unwrap();
        assert_eq!(db.state().unwrap().quads(), quads);
    }
    assert_eq!(db.state().unwrap().meta().blank_nodes, 4);
    sound(&db);
}

#[test]
fn half_a_document_is_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = GraphDatabase::create(dir.path(), &[], &options()).unwrap();
    let mut txn = db.begin().unwrap();
    let document = Document {
        name: "text",
        format: oxrdfio::RdfFormat::Turtle,
        base: None,
        graph: None,
        is_one_graph: false,
        reading: DocumentReading::default(),
    };
    let text = "<http://a> <http://p> 1 .\n<http://a> <http://p> oops .";
    let error = txn.insert_document(&document, text.as_bytes(), &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().starts_with("text:2:"), "{error}");
    drop(txn);
    assert_eq!(db.state().unwrap().quads(), 0);
    sound(&db);
}

#[test]
fn distinct_values_follow() {
    let dir = tempfile::tempdir().unwrap();
    let db = GraphDatabase::create(dir.path(), &[], &options()).unwrap();
    let quad = |s: u32, o: u32| -> Quad {
        [format!("<http://s/{s}>"), "<http://p>".into(), format!("<http://o/{o}>"), String::new()]
    };
    let quads: Vec<Quad> = (0..300).map(|i| quad(i % 100, i % 30)).collect();
    let mut txn = db.begin().unwrap();
    txn.insert(&batch(&quads), &mut BlankNodes::default()).unwrap();
    txn.commit().unwrap();
    let mut session = db.session().unwrap();
    let p = session.resolve_one(TermRef::Iri("http://p")).unwrap().unwrap();
    let distinct =
        |session: &Session| [Index::Psog, Index::Posg].map(|i| session.state().distinct_values(i, p));
    assert_eq!(distinct(&session), [Some(100), Some(30)]);
    let known = ids(
        &mut session,
        &quads[..100].iter().filter(|q| q[2] == "<http://o/0>").cloned().collect::<Vec<_>>(),
    );
    let mut txn = db.begin().unwrap();
    txn.delete(&known).unwrap();
    txn.commit().unwrap();
    let left: BTreeSet<String> = dump(&db).into_iter().map(|quad| quad[2].clone()).collect();
    assert_eq!(distinct(&db.session().unwrap())[1], Some(left.len() as u64));
}

/// Large batches in random order scatter leaves. Leaves written anyway are put in order on the way,
/// the rest by `relocate`, and the quads stay.
#[test]
fn scattered_leaves_are_moved_and_stay_what_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let db = GraphDatabase::create(&dir.path().join("db"), &[], &options()).unwrap();
    let mut random = Random(7);
    let mut model = Model::new();
    for _ in 0..4 {
        let quads: Vec<Quad> = (0..6000)
            .map(|_| {
                let number = random.below(1 << 40);
                let subject = format!("<http://example.org/s/{}>", random.below(50_000));
                let object = format!("\"{number}\"^^<http://www.w3.org/2001/XMLSchema#integer>");
                [subject, format!("<http://example.org/p#{}>", random.below(3)), object, String::new()]
            })
            .collect();
        let mut txn = db.begin().unwrap();
        txn.insert(&batch(&quads), &mut BlankNodes::default()).unwrap();
        txn.commit().unwrap();
        model.extend(quads);
        sound(&db);
    }
    // More quads, in small transactions, which move no leaves.
    for _ in 0..60 {
        let quads: Vec<Quad> = (0..300)
            .map(|_| {
                let subject = format!("<http://example.org/s/{}>", random.below(50_000));
                [
                    subject,
                    "<http://example.org/p#1>".into(),
                    format!("\"x {}\"", random.below(9)),
                    String::new(),
                ]
            })
            .collect();
        let mut txn = db.begin().unwrap();
        txn.insert(&batch(&quads), &mut BlankNodes::default()).unwrap();
        txn.commit().unwrap();
        model.extend(quads);
    }
    let mut parts = Vec::new();
    let moved = db.relocate(|leaves| parts.push(leaves)).unwrap();
    assert!(moved.leaves > 50 && parts.last() == Some(&moved.leaves), "{moved:?}, {parts:?}");
    assert_eq!(db.relocate(|_| ()).unwrap().subtrees, 0, "what is in order stays");
    sound(&db);
    assert!(dump(&db) == model);
    // Pages left behind belong to no tree: most pages of the trees' extents are in use.
    let extents = db.database().store().extents().into_iter().filter(|(_, e)| e.tree.is_some());
    let used = extents.map(|(_, e)| (0..8).filter(|i| e.is_allocated(*i)).count()).collect::<Vec<_>>();
    let pages = used.iter().sum::<usize>();
    assert!(pages * 10 > used.len() * 8 * 6, "{pages} pages in {} extents of 8", used.len());
    drop(db);
    let db = GraphDatabase::open(&dir.path().join("db"), &options()).unwrap();
    assert!(dump(&db) == model);
}

/// How far the leaves of a tree are from key order.
fn disorder(db: &Arc<GraphDatabase>, tree: Option<&TupleTree>) -> f64 {
    let tree = tree.unwrap();
    assert!(tree.leaves() > 10, "{} leaves are too few to be out of order", tree.leaves());
    let mut txn = db.database().store().begin().unwrap();
    tree.disorder(&mut txn).unwrap()
}

/// Large batches order the indexes that they write anyway. No query asks for neighbouring hashes:
/// the hash trees stay scattered until `relocate` orders all trees.
#[test]
fn large_batches_order_the_indexes_and_leave_the_hashes_alone() {
    let dir = tempfile::tempdir().unwrap();
    let db = GraphDatabase::create(dir.path(), &[], &options()).unwrap();
    let mut random = Random(11);
    for round in 0..4 {
        // New subjects, with hashes everywhere; objects out of order, so that each batch changes
        // all leaves of POSG and OP.
        let quads: Vec<Quad> = (0..10_000)
            .map(|i| {
                let object =
                    format!("\"{}\"^^<http://www.w3.org/2001/XMLSchema#integer>", random.below(1 << 40));
                let subject = format!("<http://example.org/s/{round}/{i}>");
                [subject, "<http://example.org/p>".into(), object, String::new()]
            })
            .collect();
        let mut txn = db.begin().unwrap();
        txn.insert(&batch(&quads), &mut BlankNodes::default()).unwrap();
        txn.commit().unwrap();
    }
    let least = Relocation::default().disorder;
    let state = db.state().unwrap();
    for index in [Index::Posg, Index::Op] {
        let found = disorder(&db, state.index(index));
        assert!(found < least, "{index:?}: {found:.2}");
    }
    let found = disorder(&db, state.hashes(Tree::Iri));
    assert!(found >= least, "hashes: {found:.2}");
    db.relocate(|_| ()).unwrap();
    let found = disorder(&db, db.state().unwrap().hashes(Tree::Iri));
    assert!(found < least, "hashes, moved: {found:.2}");
}

/// An interrupt that is set from the second question on.
#[derive(Default)]
struct AtTheSecond(AtomicU32);

impl Interrupt for AtTheSecond {
    fn is_set(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) > 0
    }
}

#[test]
fn emptying_a_large_graph_can_be_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let quad =
        |i: u32, graph: &str| [format!("<urn:s{i}>"), "<urn:p>".into(), "<urn:o>".into(), graph.into()];
    let quads: Model = (0..10_000).map(|i| quad(i, "<urn:g>")).chain([quad(0, "")]).collect();
    let db = loaded(&dir.path().join("db"), &quads);
    let mut txn = db.begin().unwrap();
    let graph = txn.session().resolve_one(term("<urn:g>")).unwrap().unwrap();
    let asked = AtTheSecond::default();
    let cleared = txn.clear(Graphs::One(graph), &asked);
    assert!(matches!(cleared, Err(GraphError::Stopped)), "{cleared:?}");
    drop(txn);
    assert_eq!(db.session().unwrap().count(Index::Gs, &[graph], None).unwrap(), 10_000);
}
