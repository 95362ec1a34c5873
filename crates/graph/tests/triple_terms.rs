//! Triple terms against a model: random ones within each other, inserted and deleted, loaded,
//! compacted, and read again after closing and after a kill.

#[path = "support/world.rs"]
mod world;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use oxrdfio::{RdfFormat, RdfParser};
use snowmelt_base::{Interrupt, test_seed};
use snowmelt_graph::dict::GraphFormat;
use snowmelt_graph::load::{Fill, LoadError, LoadOptions, LoadSizes, Source, load};
use snowmelt_graph::{
    BaseDirection, BlankNodes, Columns, CompactTerms, DumpFormat, GraphDatabase, GraphError, GraphView,
    Index, MOST_TRIPLE_LEVELS, NewerTerms, QuadBatch, RDF_DIR_LANG_STRING, RDF_LANG_STRING, Term, TermId,
    TermKind, TermRef, TripleIndex,
};
use snowmelt_store::{Changes, TupleTree};
use world::*;

fn with_triples(database: Arc<GraphDatabase>, seed: u64) -> World {
    World { levels: 3, range: 60, ..World::new(database, seed) }
}

/// The ids of the triple terms that are in quads, or within those.
fn live(database: &Arc<GraphDatabase>) -> BTreeSet<TermId> {
    let mut session = database.session().unwrap();
    let mut rows = Columns::new(2);
    let mut scan = session.scan(Index::Op, &[], None);
    while scan.next(&mut session, &mut rows, 1000).unwrap() {}
    let mut open: Vec<TermId> = rows.cols[0].iter().map(|id| TermId(*id)).collect();
    let mut live = BTreeSet::new();
    while let Some(id) = open.pop() {
        if id.kind() == TermKind::Triple && live.insert(id) {
            open.push(session.triples_of(&[id]).unwrap()[0][2]);
        }
    }
    live
}

#[test]
fn changes_are_as_the_model_says() {
    over_seeds(4, |seed| {
        let (dir, database) = database();
        let mut world = with_triples(database, seed);
        for _ in 0..25 {
            world.change();
        }
        world.is_right();
        let state = world.database.state().unwrap();
        assert!(state.triple_terms() > 20 && state.meta().format == GraphFormat::Four);
        let World { database, model, .. } = world;
        drop(database);
        let database = GraphDatabase::open(&dir.path().join("db"), &options()).unwrap();
        let mut world = World { model, ..with_triples(database, seed + 100) };
        world.is_right();
        (0..5).for_each(|_| world.change());
        world.clear_all();
        world.is_right();
        (0..5).for_each(|_| world.change());
        world.is_right();
    });
}

/// Copies the files of an open database: what a kill leaves.
fn killed(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn a_kill_loses_no_triple_term() {
    over_seeds(2, |seed| {
        let (dir, database) = database();
        let mut world = with_triples(database, seed);
        let quads = world.quads(20);
        world.insert(quads);
        for round in 0..8 {
            (0..3).for_each(|_| world.change());
            let copy = dir.path().join(format!("killed-{round}"));
            killed(&dir.path().join("db"), &copy);
            let database = GraphDatabase::open(&copy, &options()).unwrap();
            World { model: world.model.clone(), ..with_triples(database, seed) }.is_right();
        }
    });
}

#[test]
fn compaction_keeps_what_is_in_live_triple_terms() {
    over_seeds(3, |seed| {
        let (_dir, database) = database();
        let mut world = with_triples(database, seed);
        for round in 0..6 {
            world.range = 60 + 200 * round;
            let quads = world.quads(300);
            world.insert(quads);
            world.insert_blank();
            world.delete(250);
        }
        let (before, alive) = (world.database.state().unwrap().triple_terms(), live(&world.database).len());
        assert!(before > alive as u64, "some are dead");
        world.compact();
        world.is_right();
        let after = world.database.state().unwrap().triple_terms();
        assert_eq!((after, live(&world.database).len()), (alive as u64, alive));
        (0..10).for_each(|_| world.change());
        world.is_right();
        // Nothing is left of them when all are dead.
        world.clear_all();
        world.range = 60;
        world.levels = 0;
        let quads = world.quads(50);
        world.insert(quads);
        world.compact();
        assert_eq!(world.database.state().unwrap().triple_terms(), 0);
        world.is_right();
    });
}

/// Commits beside a compaction reach the new trees, blank nodes in triple terms with their numbers.
#[test]
fn compaction_takes_in_later_commits() {
    let (_dir, database) = database();
    let mut world = with_triples(database.clone(), test_seed(5));
    (0..12).for_each(|_| world.change());
    world.insert_blank();
    let world = std::sync::Mutex::new(world);
    let mut told = 0;
    let done = database.compact(&small(), |step| {
        if let snowmelt_graph::CompactStep::Rewriting { .. } = step {
            told += 1;
            if told % 3 == 1 && told < 40 {
                let mut world = world.lock().unwrap();
                world.change();
                world.insert_blank();
            }
        }
        ControlFlow::Continue(())
    });
    done.unwrap();
    assert!(told > 5, "{told} steps");
    world.into_inner().unwrap().is_right();
}

fn load_options(sizes: LoadSizes) -> LoadOptions {
    LoadOptions { store: options(), threads: 2, sizes, ..LoadOptions::default() }
}

/// A table of terms that is soon full, so that most terms wait, and small runs.
fn tight() -> LoadSizes {
    LoadSizes {
        chunk_bytes: Some(4 << 10),
        batch_rows: Some(200),
        run_bytes: Some(8 << 10),
        table_bytes: Some(8 << 10),
        part_terms: Some(500),
        fan_in: Some(4),
    }
}

fn loaded(path: &Path, lines: &BTreeSet<String>, options: &LoadOptions) {
    let text = lines.iter().fold(String::new(), |text, line| text + line + "\n");
    let source = Source::Reader { name: "lines.nq".into(), read: Box::new(std::io::Cursor::new(text)) };
    let options = LoadOptions { format: Some(RdfFormat::NQuads), ..options.clone() };
    load(path, vec![source], &options, &(), &AtomicBool::new(false)).unwrap();
}

/// Lines of a model without blank nodes, whose labels a load does not keep.
fn plain_lines(world: &mut World, many: usize) -> BTreeSet<String> {
    world.quads(many).iter().map(line).collect()
}

#[test]
fn loads_are_as_the_model_says() {
    over_seeds(3, |seed| {
        let (dir, database) = database();
        let mut world = with_triples(database, seed);
        world.range = 400;
        let (first, second) = (plain_lines(&mut world, 3000), plain_lines(&mut world, 3000));
        let all: BTreeSet<String> = first.union(&second).cloned().collect();
        for (name, sizes) in [("wide", LoadSizes::default()), ("tight", tight())] {
            for fill in [Fill::Merge, Fill::Insert] {
                let path = dir.path().join(format!("{name}-{fill:?}"));
                loaded(&path, &first, &load_options(sizes));
                let options = LoadOptions { fill: Some(fill), ..load_options(sizes) };
                loaded(&path, &second, &options);
                let database = GraphDatabase::open(&path, &world::options()).unwrap();
                assert!(lines(&database) == all, "{name}, {fill:?}");
                is_sound(&database);
                assert_eq!(database.state().unwrap().triple_terms(), live(&database).len() as u64);
                assert_eq!(database.state().unwrap().meta().format, GraphFormat::Four);
            }
        }
    });
}

/// Equal input gives equal trees, whatever the memory.
#[test]
fn numbers_do_not_depend_on_memory() {
    let (dir, database) = database();
    let mut world = with_triples(database, test_seed(3));
    world.range = 400;
    let lines = plain_lines(&mut world, 2000);
    let rows = [LoadSizes::default(), tight()].map(|sizes| {
        let path = dir.path().join(format!("{:?}", sizes.table_bytes));
        loaded(&path, &lines, &load_options(sizes));
        let database = GraphDatabase::open(&path, &options()).unwrap();
        let mut session = database.session().unwrap();
        let mut rows = Columns::new(TripleIndex::ARITY);
        let mut scan = session.scan(TripleIndex::Pos, &[], None);
        while scan.next(&mut session, &mut rows, 1000).unwrap() {}
        rows.cols
    });
    assert!(rows[0][0].len() > 500 && rows[0] == rows[1]);
}

#[test]
fn patterns_within_triple_terms_are_ranges() {
    let (_dir, database) = database();
    let mut world = with_triples(database, test_seed(9));
    let quads = world.quads(400);
    world.insert(quads);
    let mut session = world.database.session().unwrap();
    let all: Vec<TermId> = (0..session.state().triple_terms()).map(TermId::triple).collect();
    let rows = session.triples_of(&all).unwrap();
    assert_eq!(session.find_triples(&rows).unwrap(), all.iter().map(|id| Some(*id)).collect::<Vec<_>>());
    let [s, p, o] = rows[rows.len() / 2];
    for (index, prefix) in [
        (TripleIndex::Spo, vec![s]),
        (TripleIndex::Spo, vec![s, p]),
        (TripleIndex::Pos, vec![p]),
        (TripleIndex::Pos, vec![p, o]),
        (TripleIndex::Osp, vec![o]),
        (TripleIndex::Osp, vec![o, s]),
    ] {
        let row = |id: &TermId, [s, p, o]: &[TermId; 3]| index.row([id.0, s.0, p.0, o.0]);
        let fits = |row: &[u64; 4]| row.iter().zip(&prefix).all(|(value, id)| *value == id.0);
        let want: BTreeSet<[u64; 4]> =
            all.iter().zip(&rows).map(|(id, terms)| row(id, terms)).filter(fits).collect();
        assert_eq!(session.count(index, &prefix, None).unwrap(), want.len() as u64);
        let mut found = Columns::new(TripleIndex::ARITY);
        let mut scan = session.scan(index, &prefix, None);
        while scan.next(&mut session, &mut found, 100).unwrap() {}
        let got = (0..found.rows).map(|row| [0, 1, 2, 3].map(|c| found.cols[c][row])).collect();
        assert_eq!(want, got, "{index:?} {prefix:?}");
    }
}

#[test]
fn dumps_are_read_back() {
    let (_dir, database) = database();
    let mut world = with_triples(database, test_seed(2));
    (0..15).for_each(|_| world.change());
    let of = |format, text: &[u8]| -> BTreeSet<String> {
        let parser = RdfParser::from_format(format).for_slice(text);
        parser.map(|quad| quad.unwrap().to_string()).collect()
    };
    let dump = |format| {
        let mut out = Vec::new();
        world.database.dump(format, &mut out).unwrap();
        out
    };
    let want = of(RdfFormat::NQuads, &dump(DumpFormat::NQuads));
    assert_eq!(want, of(RdfFormat::TriG, &dump(DumpFormat::TriG)));
    let triples = of(RdfFormat::NTriples, &dump(DumpFormat::NTriples));
    assert_eq!(triples, of(RdfFormat::Turtle, &dump(DumpFormat::Turtle)));
    let refused = world.database.dump(DumpFormat::JsonLd, &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, GraphError::NotInJsonLd), "{refused}");
}

/// Programs before took literals of datatypes that only tagged texts have. What is in a database is
/// written so that it can be loaded.
#[test]
fn untagged_texts_of_before_are_dumped_as_undetermined() {
    let (_dir, database) = database();
    let mut batch = QuadBatch::new(0);
    let [s, p] = ["u:s", "u:p"].map(|iri| batch.term(TermRef::Iri(iri)));
    let graph = batch.id(TermId::DEFAULT_GRAPH);
    for (n, datatype) in [RDF_LANG_STRING, RDF_DIR_LANG_STRING].into_iter().enumerate() {
        let object = batch.term(TermRef::typed(&format!("text {n}"), datatype));
        batch.push([s, p, object, graph]);
        if n == 0 {
            let inner = batch.triple([s, p, object]);
            let outer = batch.triple([s, p, inner]);
            batch.push([s, p, outer, graph]);
        }
    }
    let mut txn = database.begin().unwrap();
    txn.insert(&batch, &mut BlankNodes::default()).unwrap();
    txn.commit().unwrap();
    let und = |n: usize| format!("\"text {n}\"@und");
    let nested = |n| format!("<<( <u:s> <u:p> <<( <u:s> <u:p> {} )>> )>>", und(n));
    let want: BTreeSet<String> =
        [und(0), nested(0), und(1)].iter().map(|object| format!("<u:s> <u:p> {object}")).collect();
    for (dump, rdf) in [
        (DumpFormat::NQuads, RdfFormat::NQuads),
        (DumpFormat::NTriples, RdfFormat::NTriples),
        (DumpFormat::Turtle, RdfFormat::Turtle),
        (DumpFormat::TriG, RdfFormat::TriG),
    ] {
        let mut out = Vec::new();
        database.dump(dump, &mut out).unwrap();
        let read = RdfParser::from_format(rdf).for_slice(&out).map(|quad| quad.unwrap().to_string());
        assert_eq!(read.collect::<BTreeSet<String>>(), want, "{dump:?}");
    }
}

/// The format changes with the first term of RDF 1.2 and not before.
#[test]
fn only_terms_of_rdf_1_2_change_the_format() {
    let of = |object: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        loaded(
            &path,
            &BTreeSet::from([format!("<u:s> <u:p> {object} .")]),
            &load_options(LoadSizes::default()),
        );
        let loaded = GraphDatabase::open(&path, &options()).unwrap().state().unwrap().meta().format;
        let (_dir, database) = database();
        let mut txn = database.begin().unwrap();
        txn.insert_source(
            Source::Reader {
                name: "o".into(),
                read: Box::new(std::io::Cursor::new(format!("<u:s> <u:p> {object} ."))),
            },
            Some(RdfFormat::NTriples),
            None,
            None,
            &AtomicBool::new(false),
        )
        .unwrap();
        txn.commit().unwrap();
        is_sound(&database);
        (loaded, database.state().unwrap().meta().format)
    };
    assert_eq!(of("\"x\"@en"), (GraphFormat::Two, GraphFormat::Two));
    assert_eq!(of("\"x\"@en--ltr"), (GraphFormat::Four, GraphFormat::Four));
    assert_eq!(of("<<( <u:s> <u:p> 	<u:o> )>>"), (GraphFormat::Four, GraphFormat::Four));
}

/// A term of so many levels, in the notation of N-Triples and Turtle.
fn nested(levels: usize) -> String {
    format!("{}<u:o>{}", "<<( <u:s> <u:p> ".repeat(levels), " )>>".repeat(levels))
}

fn in_xml(levels: usize) -> String {
    let open = "<p rdf:parseType='Triple'><rdf:Description rdf:about='u:s'>".repeat(levels);
    let close = "</rdf:Description></p>".repeat(levels);
    format!(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='u:' rdf:version='1.2'>\
         <rdf:Description rdf:about='u:s'>{open}<p rdf:resource='u:o'/>{close}</rdf:Description></rdf:RDF>"
    )
}

#[test]
fn levels_are_limited_in_every_format() {
    let read = |format, text: String| -> Result<u64, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let source = Source::Reader { name: "deep".into(), read: Box::new(std::io::Cursor::new(text)) };
        let options = LoadOptions { format: Some(format), ..load_options(LoadSizes::default()) };
        match load(&path, vec![source], &options, &(), &AtomicBool::new(false)) {
            Ok(_) => {
                let database = GraphDatabase::open(&path, &world::options()).unwrap();
                is_sound(&database);
                assert_eq!(lines(&database).len(), 1);
                Ok(database.state().unwrap().triple_terms())
            }
            Err(error @ (LoadError::Syntax { .. } | LoadError::Input { .. })) => Err(error.to_string()),
            Err(error) => panic!("{error}"),
        }
    };
    let line = |levels| format!("<u:s> <u:p> {} .", nested(levels));
    let most = MOST_TRIPLE_LEVELS;
    for format in [RdfFormat::NTriples, RdfFormat::NQuads, RdfFormat::Turtle, RdfFormat::TriG] {
        assert_eq!(read(format, line(most)), Ok(most as u64), "{format:?}");
        for levels in [most + 1, 10_000] {
            let refused = read(format, line(levels)).unwrap_err();
            assert!(refused.contains("nest more than 64 levels"), "{format:?}: {refused}");
        }
    }
    assert_eq!(read(RdfFormat::RdfXml, in_xml(most)), Ok(most as u64));
    for levels in [most + 1, 10_000] {
        let refused = read(RdfFormat::RdfXml, in_xml(levels)).unwrap_err();
        assert!(refused.contains("nest more than 64 levels"), "{refused}");
    }
    // A reified triple adds a level to its object.
    let refused = read(RdfFormat::Turtle, format!("<< <u:s> <u:p> {} >> .", nested(most))).unwrap_err();
    assert!(refused.contains("nest more than 64 levels"), "{refused}");
}

/// Levels count through stored terms, too.
#[test]
fn levels_are_limited_in_steps() {
    let (_dir, database) = database();
    let mut object = TermRef::Iri("u:o").to_owned();
    let mut id = None;
    for level in 1..=MOST_TRIPLE_LEVELS + 1 {
        let mut txn = database.begin().unwrap();
        let mut batch = QuadBatch::new(0);
        let [s, p] = ["u:s", "u:p"].map(|iri| batch.term(TermRef::Iri(iri)));
        let o = match id {
            Some(id) => batch.id(id),
            None => batch.term(TermRef::Iri("u:o")),
        };
        let triple = batch.triple([s, p, o]);
        batch.push([s, p, triple, batch.id(TermId::DEFAULT_GRAPH)]);
        let inserted = txn.insert(&batch, &mut BlankNodes::default());
        if level > MOST_TRIPLE_LEVELS {
            let refused = inserted.unwrap_err();
            assert!(matches!(refused, GraphError::TooDeep { most: MOST_TRIPLE_LEVELS }), "{refused}");
            continue;
        }
        inserted.unwrap();
        txn.commit().unwrap();
        object = triple_of(&object);
        id = database.session().unwrap().resolve_one(object.as_ref()).unwrap();
        assert!(id.is_some_and(|id| id.kind() == TermKind::Triple), "level {level}");
        assert_eq!(database.session().unwrap().decode_one(id.unwrap()).unwrap(), object);
    }
    is_sound(&database);
    assert_eq!(database.state().unwrap().triple_terms(), MOST_TRIPLE_LEVELS as u64);
}

/// Also where the codes of annotations are used up, so that ids do not tell of directions.
#[test]
fn newer_terms_are_found_by_their_places() {
    let (_dir, database) = database();
    let insert = |objects: &[TermRef<'_>], graph: &str| {
        let mut batch = QuadBatch::new(0);
        let [s, p, g] = ["u:s", "u:p", graph].map(|iri| batch.term(TermRef::Iri(iri)));
        for object in objects {
            let object = batch.term(*object);
            batch.push([s, p, object, g]);
        }
        let mut txn = database.begin().unwrap();
        txn.insert(&batch, &mut BlankNodes::default()).unwrap();
        txn.commit().unwrap();
    };
    let view = GraphView::new(&["u:seen"]);
    let has = |terms, view: Option<&GraphView>| {
        database.session().unwrap().has_newer_terms(terms, view, &AtomicBool::new(false)).unwrap()
    };
    let found =
        || [NewerTerms::Triples, NewerTerms::All].map(|terms| [has(terms, None), has(terms, Some(&view))]);
    let tags: Vec<String> = (0..5000).map(|n| format!("x-a{n}")).collect();
    let tagged: Vec<TermRef<'_>> = tags.iter().map(|tag| TermRef::tagged("text", tag)).collect();
    insert(&tagged, "u:seen");
    insert(&tagged, "u:hidden");
    assert_eq!(found(), [[false, false], [false, false]]);
    let directed = TermRef::directed("text", "x-another", BaseDirection::Ltr);
    insert(&[directed], "u:hidden");
    assert_eq!(found(), [[false, false], [true, false]]);
    insert(&[directed], "u:seen");
    assert_eq!(found(), [[false, false], [true, true]]);
    let triple = triple_of(&iri("u:o".to_owned()));
    insert(&[triple.as_ref()], "u:hidden");
    assert_eq!(found(), [[true, false], [true, true]]);
    insert(&[triple.as_ref()], "u:seen");
    assert_eq!(found(), [[true, true], [true, true]]);
}

/// Counts how often it is asked, and ends the work once that is too often.
struct Asked {
    times: AtomicUsize,
    most: usize,
}

impl Interrupt for Asked {
    fn is_set(&self) -> bool {
        self.times.fetch_add(1, Relaxed) >= self.most
    }
}

/// One triple term may be in very many quads that are not seen.
#[test]
fn a_search_for_newer_terms_can_be_ended_within_a_term() {
    let (_dir, database) = database();
    let triple = triple_of(&iri("u:o".to_owned()));
    let insert = |subjects: std::ops::Range<usize>| {
        let mut batch = QuadBatch::new(0);
        let [p, g] = ["u:p", "u:hidden"].map(|iri| batch.term(TermRef::Iri(iri)));
        let object = batch.term(triple.as_ref());
        for n in subjects {
            let s = batch.term(TermRef::Iri(&format!("u:{n}")));
            batch.push([s, p, object, g]);
        }
        let mut txn = database.begin().unwrap();
        txn.insert(&batch, &mut BlankNodes::default()).unwrap();
        txn.commit().unwrap();
    };
    let search = |most: usize| {
        let asked = Asked { times: AtomicUsize::new(0), most };
        let view = GraphView::new(&["u:seen"]);
        let found = database.session().unwrap().has_newer_terms(NewerTerms::Triples, Some(&view), &asked);
        (found, asked.times.into_inner())
    };
    insert(0..10);
    let (found, few) = search(usize::MAX);
    assert!(!found.unwrap());
    insert(10..50_000);
    let (found, many) = search(usize::MAX);
    assert!(!found.unwrap());
    assert!(many >= few + 2, "asked {few} times, and then {many} times");
    assert!(matches!(search(many - 1).0, Err(GraphError::Stopped)));
}

fn triple_of(object: &Term) -> Term {
    let [s, p] = ["u:s", "u:p"].map(|text| iri(text.to_owned()));
    triple(&s, &p, object)
}

/// A load without terms of RDF 1.2 leaves no trees of triple terms, nor does one into a database
/// whose triple terms are all dead.
#[test]
fn without_triple_terms_there_are_no_trees() {
    let (dir, database) = database();
    let mut world = with_triples(database, test_seed(4));
    let quads = world.quads(100);
    world.insert(quads);
    world.clear_all();
    drop(world);
    let path = dir.path().join("db");
    loaded(&path, &BTreeSet::from(["<u:s> <u:p> <u:o> .".to_owned()]), &load_options(LoadSizes::default()));
    let database = GraphDatabase::open(&path, &options()).unwrap();
    assert_eq!(database.state().unwrap().triple_terms(), 0);
    is_sound(&database);
    nothing_is_left(&database);
    assert_eq!(CompactTerms::default(), CompactTerms::Auto);
}

/// Puts another subject into the first row of an order.
fn spoil(database: &Arc<GraphDatabase>, index: TripleIndex) {
    let mut session = database.session().unwrap();
    let mut rows = Columns::new(TripleIndex::ARITY);
    let mut scan = session.scan(index, &[], None);
    while scan.next(&mut session, &mut rows, 1000).unwrap() {}
    let row = |at: usize| [0, 1, 2, 3].map(|c| rows.cols[c][at]);
    let [id, subject, p, o] = index.term(row(0));
    let other = (0..rows.rows).map(|at| index.term(row(at))[1]).find(|other| *other != subject).unwrap();
    let mut changes = [(row(0), false), (index.row([id, other, p, o]), true)];
    changes.sort_unstable();
    let cols = (0..4).map(|c| changes.iter().map(|(row, _)| row[c]).collect()).collect();
    let insert = changes.iter().map(|(_, insert)| *insert).collect();
    let mut txn = database.database().store().begin().unwrap();
    let mut tree = TupleTree::from_bytes(&txn.record(index.name()).unwrap()).unwrap();
    tree.apply(&mut txn, &Changes { cols, insert }).unwrap();
    txn.put_record(index.name(), 1, &tree.to_bytes());
    txn.commit().unwrap();
}

#[test]
fn orders_that_differ_are_found_and_repaired() {
    for index in TripleIndex::ALL {
        let (dir, database) = database();
        let mut world = with_triples(database, test_seed(6));
        let quads = world.quads(200);
        world.insert(quads);
        let want = world.want();
        spoil(&world.database, index);
        drop(world);
        let database = GraphDatabase::open(&dir.path().join("db"), &options()).unwrap();
        let report = database.check(&mut |_| {}).unwrap();
        assert!(report.problems.iter().any(|problem| problem.contains(index.name())), "{report:?}");
        let repaired = database.repair(64 << 20, &(), &AtomicBool::new(false)).unwrap();
        assert_eq!((repaired.rebuilt, repaired.lost.len()), (vec![index.name()], 0), "{:?}", repaired.damage);
        drop(database);
        let database = GraphDatabase::open(&dir.path().join("db"), &options()).unwrap();
        is_sound(&database);
        assert_eq!(lines(&database), want);
    }
}
