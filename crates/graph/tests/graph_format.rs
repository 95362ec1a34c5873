//! Formats of the graph: in each, literals of all lengths are found, inserted, deleted and dumped
//! as a model predicts, and the database keeps its format through all changes. A database of format
//! 1 is made by writing its record before the first data.
//!
//! The seed is printed; `SNOWMELT_SEED` gives another one.

#[path = "support/world.rs"]
mod world;

use std::collections::{BTreeMap, HashSet};
use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use snowmelt_database::{OpenOptions, restore_backup};
use snowmelt_graph::dict::code::{Annotation, CodeSource, Codes, MAX_ANNOTATIONS, MAX_DECIMAL_DATATYPES};
use snowmelt_graph::dict::{RECORD_CODES, RECORD_META};
use snowmelt_graph::load::{Fill, LoadOptions, LoadSizes, Source, load, load_into};
use snowmelt_graph::{
    BlankNodes, GraphDatabase, GraphFormat, GraphMeta, Index, QuadBatch, Term, TermId, TermKind, TermRef,
};
use snowmelt_store::{PAGE_BYTES, RestoreAt};
use tempfile::TempDir;
use world::{INTEGER, Quad, Random, World, is_sound, line, over_seeds, quad, small};

/// Lengths at which the encoding changes, in one format or another.
const EDGES: [usize; 14] = [1, 7, 8, 63, 64, 65, 66, 128, 192, 255, 256, 257, 258, 600];
const LONGEST: usize = 600;

/// Enough memory for a load beside the database; with less, the load would insert.
fn options() -> OpenOptions {
    OpenOptions { memory_bytes: 512 << 20, ..world::options() }
}

/// Initial tables of languages and datatypes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tables {
    Empty,
    /// Later annotations are in the strings.
    Full,
}

/// An empty database of a format.
fn begun(path: &Path, format: GraphFormat, tables: Tables) -> Arc<GraphDatabase> {
    let database = GraphDatabase::create(path, &[], &options()).unwrap();
    let mut txn = database.database().store().begin().unwrap();
    txn.put_record(RECORD_META, 1, &GraphMeta { format, ..GraphMeta::default() }.to_bytes());
    if tables == Tables::Full {
        let mut codes = Codes::new();
        for n in 0..MAX_ANNOTATIONS {
            codes.annotation(Annotation::Language(&format!("x-{n}")));
        }
        for n in 0..MAX_DECIMAL_DATATYPES {
            codes.decimal_datatype(&format!("http://e.org/other/{n}"));
        }
        txn.put_record(RECORD_CODES, 1, &codes.to_bytes());
    }
    txn.append().unwrap().wait().unwrap();
    drop(database);
    GraphDatabase::open(path, &options()).unwrap()
}

fn format_of(database: &Arc<GraphDatabase>) -> GraphFormat {
    database.state().unwrap().meta().format
}

/// A literal of 1 to [`LONGEST`] bytes: a string of letters of one byte or two, with a language or
/// a datatype; a number kept as written; or an amount.
fn literal(random: &mut Random) -> Term {
    let bytes = match random.below(3) {
        0 => EDGES[random.below(EDGES.len())],
        _ => 1 + random.below(LONGEST),
    };
    let letter = ["a", "b", "c"][random.below(3)];
    let text = letter.repeat(bytes);
    match random.below(8) {
        0 | 1 => TermRef::string(&text).to_owned(),
        2 => TermRef::string(&("é".repeat(bytes / 2) + &letter.repeat(bytes % 2))).to_owned(),
        3 | 4 => TermRef::tagged(&text, ["de", "en"][random.below(2)]).to_owned(),
        5 => TermRef::typed(&text, "http://e.org/type").to_owned(),
        6 => TermRef::typed(&format!("{}7", "0".repeat(bytes - 1)), INTEGER).to_owned(),
        _ => TermRef::typed(&format!("{bytes}.5"), "http://e.org/money").to_owned(),
    }
}

fn quads(world: &mut World, many: usize) -> Vec<Quad> {
    let random = &mut world.random;
    let quad = |random: &mut Random| {
        let (subject, predicate, ..) = quad(random, 60);
        (subject, predicate, literal(random), None)
    };
    (0..many).map(|_| quad(random)).collect()
}

fn source(quads: &[Quad]) -> Source {
    let text: String = quads.iter().map(|quad| line(quad) + "\n").collect();
    Source::Reader { name: "made.nq".into(), read: Box::new(Cursor::new(text)) }
}

/// Sizes that cover every path: terms wait, too.
fn load_options(fill: Fill) -> LoadOptions {
    let sizes = LoadSizes {
        chunk_bytes: Some(4 << 10),
        table_bytes: Some(1 << 10),
        part_terms: Some(100),
        ..small().sizes
    };
    LoadOptions {
        fill: Some(fill),
        threads: 2,
        store: options(),
        sizes,
        format: Some(oxrdfio::RdfFormat::NQuads),
        ..LoadOptions::default()
    }
}

/// The ids of the model's literals.
fn ids(world: &World) -> BTreeMap<String, TermId> {
    let terms: HashSet<&Term> = world.model.values().map(|(_, _, object, _)| object).collect();
    let refs: Vec<TermRef<'_>> = terms.iter().map(|term| term.as_ref()).collect();
    let found = world.database.session().unwrap().resolve(&refs).unwrap();
    let named = |(term, id): (&Term, Option<TermId>)| {
        (term.to_string(), id.unwrap_or_else(|| panic!("{term} has no id")))
    };
    terms.into_iter().zip(found).map(named).collect()
}

/// Checks that the model's literals are found in the tree of their length, and no others in quads.
fn is_right(world: &mut World, format: GraphFormat) {
    world.is_right();
    assert_eq!(format_of(&world.database), format);
    let known = ids(world);
    let mut session = world.database.session().unwrap();
    let objects: HashSet<Term> = world.model.values().map(|(_, _, object, _)| object.clone()).collect();
    for term in &objects {
        let id = known[&term.to_string()];
        let TermRef::Literal { lexical, datatype, .. } = term.as_ref() else { unreachable!("all are") };
        let is_text = lexical.len() > format.short_bytes() && datatype != INTEGER;
        assert_eq!(id.kind() == TermKind::Text, is_text, "{} bytes: {id:?}", lexical.len());
        assert!(session.count(Index::Op, &[id], None).unwrap() > 0);
        assert_eq!(session.decode_one(id).unwrap(), *term);
    }
    for _ in 0..40 {
        let term = literal(&mut world.random);
        let found = session.resolve_one(term.as_ref()).unwrap();
        let pairs = found.map_or(0, |id| session.count(Index::Op, &[id], None).unwrap());
        assert_eq!(pairs > 0, objects.contains(&term), "{term}");
    }
}

fn load_more(world: &mut World, fill: Fill) {
    let (before, dictionary) = (ids(world), world.database.state().unwrap().dictionary());
    let quads = quads(world, 150);
    load_into(&world.database, vec![source(&quads)], &load_options(fill), &(), &AtomicBool::new(false))
        .unwrap();
    world.model.extend(quads.into_iter().map(|quad| (line(&quad), quad)));
    let is_built = world.database.state().unwrap().dictionary() != dictionary;
    assert_eq!(is_built, fill == Fill::Merge, "{fill:?}");
    let after = ids(world);
    assert!(before.iter().all(|(term, id)| after[term] == *id), "old terms keep their ids");
}

/// Compacts beside commits, which are replayed to the next generation.
fn compact(world: &mut World) {
    let database = world.database.clone();
    thread::scope(|scope| {
        let compaction =
            scope.spawn(move || database.compact(&small(), |_| ControlFlow::Continue(())).unwrap());
        for _ in 0..5 {
            let quads = quads(world, 20);
            world.insert(quads);
            world.delete(10);
        }
        compaction.join().unwrap();
    });
}

fn change(world: &mut World) {
    match world.random.below(6) {
        0 => world.delete(100),
        1 => load_more(world, Fill::Merge),
        2 => load_more(world, Fill::Insert),
        3 => compact(world),
        _ => {
            let quads = quads(world, 80);
            world.insert(quads);
        }
    }
}

/// The database, closed and opened again.
fn reopened(world: World, path: &Path) -> World {
    let World { database, model, random, range, name, levels } = world;
    drop(database);
    World { database: GraphDatabase::open(path, &options()).unwrap(), model, random, range, name, levels }
}

/// The database, closed, loaded into and opened again.
fn loaded(mut world: World, path: &Path) -> World {
    let quads = quads(&mut world, 150);
    let World { database, mut model, random, range, name, levels } = world;
    drop(database);
    load(path, vec![source(&quads)], &load_options(Fill::Merge), &(), &AtomicBool::new(false)).unwrap();
    model.extend(quads.into_iter().map(|quad| (line(&quad), quad)));
    World { database: GraphDatabase::open(path, &options()).unwrap(), model, random, range, name, levels }
}

fn restored(world: &World) -> (TempDir, Arc<GraphDatabase>) {
    let dir = tempfile::tempdir().unwrap();
    let (set, path) = (dir.path().join("set"), dir.path().join("db"));
    std::fs::create_dir(&set).unwrap();
    world.database.database().backup_to_set(&set, |_| ControlFlow::Continue(())).unwrap();
    restore_backup(&set, RestoreAt::Newest, &path, &[], &options(), |_| ControlFlow::Continue(())).unwrap();
    let database = GraphDatabase::open(&path, &options()).unwrap();
    (dir, database)
}

fn keeps_its_format(format: GraphFormat, tables: Tables, seed: u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut world = World::new(begun(&path, format, tables), seed);
    let first = quads(&mut world, 300);
    world.insert(first);
    is_right(&mut world, format);
    for _ in 0..6 {
        change(&mut world);
        is_right(&mut world, format);
    }
    world = reopened(world, &path);
    is_right(&mut world, format);
    world.delete(300);
    let steps: [fn(&mut World); 3] =
        [compact, |world| load_more(world, Fill::Merge), |world| load_more(world, Fill::Insert)];
    for step in steps {
        step(&mut world);
        is_right(&mut world, format);
        world = reopened(world, &path);
        is_right(&mut world, format);
    }
    world = loaded(world, &path);
    is_right(&mut world, format);
    let (_dir, copy) = restored(&world);
    let mut copy = World { database: copy, model: world.model.clone(), ..World::new(world.database, seed) };
    change(&mut copy);
    is_right(&mut copy, format);
}

#[test]
fn every_format_is_kept_and_right() {
    over_seeds(4, |seed| {
        for format in GraphFormat::ALL {
            keeps_its_format(format, Tables::Empty, seed);
        }
    });
}

#[test]
fn annotations_in_the_strings_do_not_count() {
    over_seeds(2, |seed| {
        for format in GraphFormat::ALL {
            keeps_its_format(format, Tables::Full, seed);
        }
    });
}

/// Fills the pages of a tree with zeros.
fn damage(path: &Path, tree: &str) {
    let database = GraphDatabase::open(path, &options()).unwrap();
    database.database().store().checkpoint().unwrap();
    let names = database.database().store().catalog_all().trees;
    let pages = u64::from(database.database().store().geometry().extent_pages);
    let extents = database.database().store().extents();
    let is_of_tree = |id| names.get(&id).is_some_and(|name| name == tree);
    let of_tree = extents.iter().filter(|(_, extent)| extent.tree.is_some_and(is_of_tree));
    let starts: Vec<usize> = of_tree.map(|(extent, _)| (extent * pages) as usize * PAGE_BYTES).collect();
    assert!(!starts.is_empty());
    drop(database);
    let stripe = path.join("stripe-0");
    let mut bytes = std::fs::read(&stripe).unwrap();
    for start in starts {
        let end = bytes.len().min(start + pages as usize * PAGE_BYTES);
        bytes[start..end].fill(0);
    }
    std::fs::write(stripe, bytes).unwrap();
}

#[test]
fn a_repair_keeps_the_format() {
    snowmelt_io::set_notice(|_| {});
    for format in GraphFormat::ALL {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let mut world = World::new(begun(&path, format, Tables::Empty), 3);
        let first = quads(&mut world, 300);
        world.insert(first);
        let World { database, model, .. } = world;
        drop(database);
        damage(&path, "posg");
        let database = GraphDatabase::open(&path, &options()).unwrap();
        let report = database.repair(64 << 20, &(), &AtomicBool::new(false)).unwrap();
        assert!(report.rebuilt.contains(&"posg") && report.lost.is_empty(), "{report:?}");
        let mut world = World { model, ..World::new(database, 3) };
        is_right(&mut world, format);
        change(&mut world);
        is_right(&mut reopened(world, &path), format);
    }
}

/// A load into a database without quads does not depend on earlier contents: it writes the newest
/// format. Documents that were parsed before it adopt that format, too.
#[test]
fn an_emptied_database_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let mut world = World::new(begun(&path, GraphFormat::One, Tables::Empty), 5);
    let first = quads(&mut world, 300);
    world.insert(first);
    world.clear_all();
    is_right(&mut world, GraphFormat::One);
    let mut staged = snowmelt_graph::Staged::new(&world.database, None);
    let late = quads(&mut world, 200);
    let document = snowmelt_graph::Document {
        name: "made.nq",
        format: oxrdfio::RdfFormat::NQuads,
        base: None,
        graph: None,
        is_one_graph: false,
        reading: Default::default(),
    };
    let text: String = late.iter().map(|quad| line(quad) + "\n").collect();
    let (cancel, progress) = (AtomicBool::new(false), snowmelt_graph::ChangeProgress::default());
    staged.add(&document, Box::new(Cursor::new(text)), &cancel, &progress).unwrap();

    let loaded = quads(&mut world, 300);
    load_into(&world.database, vec![source(&loaded)], &load_options(Fill::Merge), &(), &cancel).unwrap();
    world.model.extend(loaded.into_iter().map(|quad| (line(&quad), quad)));
    is_right(&mut world, GraphFormat::Two);
    let mut txn = world.database.begin().unwrap();
    txn.insert_staged(staged, &cancel, &progress).unwrap();
    txn.commit().unwrap();
    world.model.extend(late.into_iter().map(|quad| (line(&quad), quad)));
    is_right(&mut world, GraphFormat::Two);
    is_right(&mut reopened(world, &path), GraphFormat::Two);
}

/// A database with terms but without quads, to which another layer wrote before.
fn with_terms_only(path: &Path) -> Arc<GraphDatabase> {
    let database = GraphDatabase::create(path, &[], &options()).unwrap();
    let mut txn = database.database().store().begin().unwrap();
    txn.put_record("other", 7, b"what a neighbour keeps");
    txn.append().unwrap().wait().unwrap();
    let mut txn = database.begin().unwrap();
    let mut batch = QuadBatch::new(0);
    let text = "a".repeat(100);
    let terms = [TermRef::Iri("urn:s"), TermRef::Iri("urn:p"), TermRef::string(&text)];
    let [s, p, o] = terms.map(|term| batch.term(term));
    batch.push([s, p, o, batch.id(TermId::DEFAULT_GRAPH)]);
    txn.insert(&batch, &mut BlankNodes::default()).unwrap();
    let [s, p, o] = terms.map(|term| txn.session().resolve_one(term).unwrap().unwrap());
    txn.delete(&[[s, p, o, TermId::DEFAULT_GRAPH]]).unwrap();
    txn.commit().unwrap();
    drop(database);
    GraphDatabase::open(path, &options()).unwrap()
}

#[test]
fn the_first_terms_come_with_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let database = with_terms_only(&path);
    assert_eq!((database.state().unwrap().quads(), database.state().unwrap().terms()), (0, 3));
    assert!(database.database().store().catalog(RECORD_META).is_some());
    assert_eq!(format_of(&database), GraphFormat::default());
    is_sound(&database);
    // Programs of format 1 left the record out.
    let mut txn = database.database().store().begin().unwrap();
    txn.drop_record(RECORD_META);
    txn.append().unwrap().wait().unwrap();
    drop(database);
    assert_eq!(format_of(&GraphDatabase::open(&path, &options()).unwrap()), GraphFormat::One);
}
