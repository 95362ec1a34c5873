//! Databases written with the crate's encodings: resolving, decoding, counts, scans, dumps, checks
//! and damage.

mod support;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use proptest::prelude::*;
use snowmelt_graph::dict::Tree;
use snowmelt_graph::dict::code::{Annotation, Code, CodeSource, MAX_ANNOTATIONS};
use snowmelt_graph::*;
use snowmelt_store::Store;

use support::{Builder, Quad, build, database, options};

fn iri(name: impl std::fmt::Display) -> Term {
    Term::Iri(format!("http://a.example/{name}"))
}

fn string(lexical: &str) -> Term {
    TermRef::string(lexical).to_owned()
}

/// Quads with every kind of term, some of them long.
fn sample(count: usize) -> Vec<Quad> {
    let usd = "http://a.example/vocabulary#USD";
    (0..count)
        .map(|n| {
            let object = match n % 11 {
                0 => iri(format!("things/{}", n % 50)),
                1 => string(&format!("label of number {n}")),
                2 => TermRef::tagged(&"a long text of many words ".repeat(n % 500), "en").to_owned(),
                3 => TermRef::typed(&format!("{n}.50"), usd).to_owned(),
                4 => TermRef::typed(&n.to_string(), &format!("{XSD}integer")).to_owned(),
                5 => TermRef::typed(&format!("0{n}"), &format!("{XSD}integer")).to_owned(),
                6 => Term::Blank(format!("node{}", n % 9)),
                7 => TermRef::tagged("chat", if n % 2 == 0 { "fr" } else { "en" }).to_owned(),
                8 => TermRef::typed(&format!("2008-06-{:02}", n % 30 + 1), &format!("{XSD}date")).to_owned(),
                9 => TermRef::typed("opaque", &format!("http://a.example/type{}", n % 3)).to_owned(),
                _ => string(&"x".repeat(n % 20)),
            };
            let subject =
                if n % 7 == 0 { Term::Blank(format!("s{}", n / 14)) } else { iri(format!("s/{}", n / 5)) };
            let graph = (n % 4 == 0).then(|| iri(format!("graph{}", n % 3)));
            (subject, iri(format!("p#{}", n % 6)), object, graph)
        })
        .collect()
}

/// The terms of quads, except blank nodes, whose labels are not kept.
fn terms(quads: &[Quad]) -> Vec<Term> {
    let all = quads.iter().flat_map(|(s, p, o, g)| [Some(s), Some(p), Some(o), g.as_ref()]);
    let distinct: HashSet<&Term> = all.flatten().filter(|term| !matches!(term, Term::Blank(_))).collect();
    distinct.into_iter().cloned().collect()
}

/// Every term resolves to its id and decodes to itself, all at once and one by one.
fn assert_terms(db: &Arc<GraphDatabase>, builder: &mut Builder, terms: &[Term]) {
    let mut session = db.session().unwrap();
    let refs: Vec<TermRef> = terms.iter().map(Term::as_ref).collect();
    let ids: Vec<TermId> = session.resolve(&refs).unwrap().into_iter().map(Option::unwrap).collect();
    for (term, id) in terms.iter().zip(&ids) {
        assert_eq!(builder.id(term), *id, "{term}");
    }
    // Twice, backwards: each id has several places, out of order.
    let asked: Vec<TermId> = ids.iter().chain(&ids).rev().copied().collect();
    let mut decoded = vec![None; asked.len()];
    session.decode(&asked, |at, term| assert!(decoded[at].replace(term.to_owned()).is_none())).unwrap();
    for (term, decoded) in terms.iter().chain(terms).rev().zip(decoded) {
        assert_eq!(Some(term.clone()), decoded);
    }
    for (term, id) in terms.iter().zip(ids).take(50) {
        assert_eq!(session.decode_one(id).unwrap(), *term);
        assert_eq!(session.resolve_one(term.as_ref()).unwrap(), Some(id));
        if let TermRef::Literal { lang, datatype, .. } = term.as_ref() {
            assert_eq!((session.lang_of(id), session.datatype_of(id)), (lang, Some(datatype)));
        } else {
            assert_eq!(session.annotation_of(id), Carried::NotALiteral);
        }
    }
}

#[test]
fn terms_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let quads = sample(3000);
    let (db, mut builder) = database(dir.path(), &quads);
    assert_terms(&db, &mut builder, &terms(&quads));
    let mut session = db.session().unwrap();
    let mut blank = String::new();
    session.decode(&[TermId::blank(3)], |_, term| blank = term.to_string()).unwrap();
    assert_eq!(blank, "_:b3");
    assert_eq!(session.resolve_one(TermRef::Blank("b3")).unwrap(), Some(TermId::blank(3)));
    assert_eq!(session.resolve_one(TermRef::Blank("b999999")).unwrap(), None);
    assert_eq!(session.activity().pages, 0);
    session.decode_one(TermId::new(TermKind::Iri, 3)).unwrap();
    assert!(session.activity().pages > 0);
}

#[test]
fn absent_terms_have_no_id() {
    let dir = tempfile::tempdir().unwrap();
    let (db, _) = database(dir.path(), &sample(500));
    let mut session = db.session().unwrap();
    let integer = format!("{XSD}integer");
    let absent = [
        TermRef::Iri("http://a.example/absent"),
        TermRef::string("an absent label"),
        TermRef::tagged("chat", "de"),
        TermRef::tagged("chien", "fr"),
        TermRef::typed("label of number 1", "http://a.example/type1"),
        TermRef::typed("007", &integer),
        TermRef::typed("1.25", "http://a.example/EUR"),
    ];
    assert_eq!(session.resolve(&absent).unwrap(), [None; 7]);
    // Inline terms always have an id.
    assert!(session.resolve_one(TermRef::typed("123456", &integer)).unwrap().is_some());
}

#[test]
fn colliding_hashes_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let quads = sample(1000);
    let mut builder = Builder::default();
    builder.hash_bits = Some(2);
    quads.iter().for_each(|quad| builder.quad(quad));
    let db = build(dir.path(), &builder);
    assert_terms(&db, &mut builder, &terms(&quads));
    let mut session = db.session().unwrap();
    for n in 0..50 {
        assert_eq!(session.resolve_one(iri(format!("absent{n}")).as_ref()).unwrap(), None);
    }
    assert_eq!(db.check(&mut |_| {}).unwrap().problems, [""; 0]);
}

#[test]
fn annotations_without_a_code_stand_in_the_string() {
    let dir = tempfile::tempdir().unwrap();
    let mut builder = Builder::default();
    for n in 0..MAX_ANNOTATIONS {
        let code = builder.codes.annotation(Annotation::Language(&format!("x-{n}")));
        assert!(matches!(code, Code::Is(_)));
    }
    let quads = sample(600);
    quads.iter().for_each(|quad| builder.quad(quad));
    let db = build(dir.path(), &builder);
    let terms: Vec<Term> = terms(&quads);
    let mut session = db.session().unwrap();
    let refs: Vec<TermRef> = terms.iter().map(Term::as_ref).collect();
    let ids: Vec<TermId> = session.resolve(&refs).unwrap().into_iter().map(Option::unwrap).collect();
    let mut in_string = 0;
    let state = session.state().clone();
    session
        .decode(&ids, |at, term| {
            assert_eq!(term.to_owned(), terms[at]);
            in_string += u32::from(state.annotation_of(ids[at]) == Carried::InString);
        })
        .unwrap();
    assert!(in_string > 100);
    assert_eq!(db.check(&mut |_| {}).unwrap().problems, [""; 0]);
}

/// Announced terms are read ahead, and decoding finds them in memory. Read-ahead of extents is off,
/// since it would read them, too.
#[test]
fn announced_terms_are_read_ahead() {
    let dir = tempfile::tempdir().unwrap();
    let quads = sample(4000);
    let (db, mut builder) = database(dir.path(), &quads);
    drop(db);
    let ids: Vec<TermId> = terms(&quads).iter().map(|term| builder.id(term)).collect();
    let mut options = options();
    options.read_ahead.start_up = false;
    options.read_ahead.extent = false;
    let db = GraphDatabase::open(dir.path(), &options).unwrap();
    let mut session = db.session().unwrap();
    session.announce_terms(&ids).unwrap();
    let announced = session.activity();
    assert!(announced.spec_disk > 10, "{announced}");
    session.decode(&ids, |_, _| {}).unwrap();
    let more = session.activity().disk - announced.disk;
    assert!(more < announced.disk / 2, "{more} more after {announced}");
}

#[test]
fn counts_scans_and_lookups_are_those_of_the_quads() {
    let dir = tempfile::tempdir().unwrap();
    let (db, builder) = database(dir.path(), &sample(5000));
    let mut session = db.session().unwrap();
    for index in Index::ALL {
        let rows = builder.rows(index);
        let mut columns = Columns::new(index.arity());
        let mut scan = session.scan(index, &[], None);
        while scan.next(&mut session, &mut columns, 77).unwrap() {}
        let scanned: Vec<Vec<u64>> =
            (0..columns.rows).map(|at| columns.cols.iter().map(|column| column[at]).collect()).collect();
        assert_eq!(scanned, rows.iter().cloned().collect::<Vec<_>>());
        let first: BTreeSet<u64> = rows.iter().map(|row| row[0]).collect();
        for &value in first.iter().take(20) {
            let range = (0, rows.iter().next().unwrap()[1]);
            let within = rows.iter().filter(|row| row[0] == value && row[1] <= range.1).count() as u64;
            assert_eq!(session.count(index, &[TermId(value)], Some(range)).unwrap(), within);
            let all = rows.iter().filter(|row| row[0] == value).count() as u64;
            assert_eq!(session.count(index, &[TermId(value)], None).unwrap(), all);
        }
        let keys: Vec<u64> = first.into_iter().step_by(3).collect();
        let columns = [&keys[..]];
        session.announce(&[(index, Keys::new(&columns, None))], Levels::Leaves).unwrap();
        let mut lookup = session.lookup(index, Keys::new(&columns, None));
        let mut matches = Matches::new(index.arity(), 1);
        while lookup.next(&mut session, &mut matches, 50).unwrap() {}
        let wanted = rows.iter().filter(|row| keys.contains(&row[0])).count();
        assert_eq!(matches.key.len(), wanted);
    }
}

#[test]
fn statistics_are_those_of_the_quads() {
    let dir = tempfile::tempdir().unwrap();
    let quads = sample(2000);
    let (db, builder) = database(dir.path(), &quads);
    let stats = db.stats().unwrap();
    let distinct =
        |column: usize| builder.quads.iter().map(|quad| quad[column]).collect::<HashSet<_>>().len() as u64;
    assert_eq!(stats.quads, builder.quads.len() as u64);
    assert_eq!(
        [stats.subjects, stats.predicates, stats.objects, stats.graphs],
        [distinct(0), distinct(1), distinct(2), distinct(3)]
    );
    let iris = terms(&quads).iter().filter(|term| matches!(term, Term::Iri(_))).count() as u64;
    assert_eq!((stats.terms.iris, stats.terms.decimal_datatypes), (iris, 1));
    let pairs: u64 = stats.objects_by_kind.values().sum();
    assert_eq!(pairs, builder.rows(Index::Op).len() as u64);
    assert!(stats.trees.iter().any(|tree| tree.name == "psog" && tree.rows == stats.quads && tree.pages > 1));
    assert_eq!(stats.bytes, stats.trees.iter().map(|tree| tree.bytes).sum::<u64>());
    assert!(stats.bytes_per_quad > stats.bytes_per_quad_without_literals);
    assert!(stats.to_string().contains("psog"));
}

#[test]
fn an_empty_database_is_an_empty_graph() {
    let dir = tempfile::tempdir().unwrap();
    let db = GraphDatabase::create(dir.path(), &[], &options()).unwrap();
    let mut session = db.session().unwrap();
    assert_eq!(
        session.resolve(&[TermRef::Iri("http://a/"), TermRef::string("long enough")]).unwrap(),
        [None, None]
    );
    assert_eq!(session.count(Index::Psog, &[], None).unwrap(), 0);
    assert!(!session.scan(Index::Sp, &[], None).next(&mut session, &mut Columns::new(2), 10).unwrap());
    assert!(session.decode_one(TermId::new(TermKind::Iri, 0)).is_err());
    assert!(db.check(&mut |_| {}).unwrap().is_sound());
    assert_eq!(db.stats().unwrap().bytes_per_quad, 0.0);
    assert_eq!(db.dump(DumpFormat::NQuads, &mut Vec::new()).unwrap(), 0);
}

#[test]
fn ids_of_no_term_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let (db, _) = database(dir.path(), &sample(100));
    let mut session = db.session().unwrap();
    for id in [
        TermId::UNDEF,
        TermId::DEFAULT_GRAPH,
        TermId::new(TermKind::Local, 1),
        TermId::new(TermKind::Iri, 1 << 40),
        TermId::coded(TermKind::Literal, 999, 0),
        TermId::new(TermKind::Decimal, 200 << 52),
    ] {
        assert!(session.decode_one(id).is_err(), "{id:?}");
    }
    assert!(session.decode_one(TermId::new(TermKind::Iri, 0)).is_ok());
}

fn parse(bytes: &[u8], format: oxrdfio::RdfFormat) -> BTreeSet<String> {
    let quads = oxrdfio::RdfParser::from_format(format).for_slice(bytes);
    quads.map(|quad| quad.unwrap().to_string()).collect()
}

#[test]
fn dumps_hold_all_quads() {
    let dir = tempfile::tempdir().unwrap();
    let (db, builder) = database(dir.path(), &sample(3000));
    let mut session = db.session().unwrap();
    let mut expected = BTreeSet::new();
    let mut triples = BTreeSet::new();
    for quad in &builder.quads {
        let [s, p, o] = [quad[0], quad[1], quad[2]].map(|id| session.decode_one(TermId(id)).unwrap());
        let triple = format!("{s} {p} {o}");
        expected.insert(match TermId(quad[3]) {
            TermId::DEFAULT_GRAPH => triple.clone(),
            graph => format!("{triple} {}", session.decode_one(graph).unwrap()),
        });
        triples.insert(triple);
    }
    for (format, parser) in [
        (DumpFormat::NQuads, oxrdfio::RdfFormat::NQuads),
        (DumpFormat::TriG, oxrdfio::RdfFormat::TriG),
        (DumpFormat::NTriples, oxrdfio::RdfFormat::NTriples),
        (DumpFormat::Turtle, oxrdfio::RdfFormat::Turtle),
    ] {
        let mut out = Vec::new();
        assert_eq!(db.dump(format, &mut out).unwrap(), db.state().unwrap().quads());
        // Parsed blank nodes keep their labels in N-Triples and N-Quads; the others are checked
        // by their number.
        let dumped = parse(&out, parser);
        let expected = if format.has_graphs() { &expected } else { &triples };
        let named = |lines: &BTreeSet<String>| -> BTreeSet<String> {
            lines.iter().filter(|line| !line.contains("_:")).cloned().collect()
        };
        assert_eq!(named(&dumped), named(expected), "{format:?}");
        assert_eq!(dumped.len(), expected.len(), "{format:?}");
        assert_eq!(
            String::from_utf8(out).unwrap().contains("@prefix rdf:"),
            matches!(format, DumpFormat::Turtle | DumpFormat::TriG)
        );
    }
}

#[test]
fn a_sound_database_has_no_problems() {
    let dir = tempfile::tempdir().unwrap();
    let (db, builder) = database(dir.path(), &sample(4000));
    let mut steps = BTreeSet::new();
    let report = db.check(&mut |progress| steps.extend([progress.step])).unwrap();
    assert_eq!(report.problems, [""; 0]);
    assert!(report.is_sound() && report.pages > 20 && report.strings > 500);
    assert!(report.rows > 2 * builder.quads.len() as u64);
    assert!(steps.contains("extents") && steps.contains("iri") && steps.contains("graphs"));
}

/// The problems of a database with spoiled rows, or the error of opening it.
fn problems(
    builder: &Builder,
    change: impl FnOnce(&mut std::collections::BTreeMap<Index, BTreeSet<Vec<u64>>>),
) -> String {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &[], options()).unwrap();
    builder.write(&store, change);
    drop(store);
    match GraphDatabase::open(dir.path(), &options()) {
        Ok(db) => db.check(&mut |_| {}).unwrap().problems.join("\n"),
        Err(error) => format!("does not open: {error}"),
    }
}

fn filled() -> Builder {
    let mut builder = Builder::default();
    sample(300).iter().for_each(|quad| builder.quad(quad));
    builder
}

#[test]
fn checks_find_indexes_that_disagree() {
    let builder = filled();
    for index in Index::ALL {
        let found = problems(&builder, |indexes| {
            let rows = indexes.get_mut(&index).unwrap();
            let middle = rows.iter().nth(rows.len() / 2).unwrap().clone();
            assert!(rows.remove(&middle));
        });
        let refused = index.arity() == 4 && found.starts_with("does not open");
        assert!(refused || found.contains("do not agree"), "{index:?} without a row: {found}");
        let found = problems(&builder, |indexes| {
            let rows = indexes.get_mut(&index).unwrap();
            let mut row = rows.iter().nth(rows.len() / 2).unwrap().clone();
            rows.remove(&row);
            *row.last_mut().unwrap() ^= 1 << 3;
            rows.insert(row);
        });
        assert!(found.contains("do not agree"), "{index:?} with another row: {found}");
    }
}

#[test]
fn a_missing_tree_is_not_an_empty_one() {
    for index in &Index::ALL[1..] {
        let found = problems(&filled(), |indexes| drop(indexes.remove(index)));
        assert!(found.contains(&format!("catalog record {}: it has 0 rows", index.name())), "{found}");
    }
}

#[test]
fn checks_find_ids_of_no_term() {
    let builder = filled();
    for (id, column) in [
        (TermId::new(TermKind::Iri, 1 << 20), 2),
        (TermId::new(TermKind::Boolean, 5), 2),
        (TermId::coded(TermKind::Literal, 700, 1), 2),
        (TermId::blank(1 << 30), 0),
        (TermId::new(TermKind::Integer, 7), 0),
        (TermId::new(TermKind::Local, 7), 2),
        (TermId::UNDEF, 3),
        (TermId::blank(0), 1),
    ] {
        let mut quad = *builder.quads.iter().nth(100).unwrap();
        quad[column] = id.0;
        let found = problems(&builder, |indexes| {
            for (index, rows) in indexes {
                rows.insert(index.row(quad)[..index.arity()].to_vec());
            }
        });
        assert!(found.contains(&format!("{id:?}")), "{id:?}: {found}");
        assert!(!found.contains("agree"), "{found}");
    }
}

#[test]
fn checks_find_wrong_hashes() {
    for tree in Tree::ALL {
        for change in 0..4 {
            let mut builder = filled();
            let rows = builder.hashes(tree);
            let row = *rows.iter().nth(rows.len() / 2).unwrap();
            rows.remove(&row);
            match change {
                0 => drop(rows.insert([row[0] + 1, row[1], row[2]])),
                1 => drop(rows.insert([row[0], row[1] + 1, row[2]])),
                2 if tree != Tree::Iri => drop(rows.insert([row[0], row[1], row[2] ^ 1])),
                _ => {}
            }
            let found = problems(&builder, |_| {});
            assert!(found.contains(tree.name()), "{tree:?}, change {change}: {found}");
        }
    }
}

/// Flips a bit in a page of each tree in turn: every read gives the right answer or an error that
/// names the page, and the check names the page.
#[test]
fn damaged_pages_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let quads = sample(2000);
    drop(database(dir.path(), &quads));
    let file = dir.path().join(snowmelt_store::DEFAULT_STRIPE);
    let sound = std::fs::read(&file).unwrap();
    let terms = terms(&quads);
    let refs: Vec<TermRef> = terms.iter().map(Term::as_ref).collect();
    let mut named = 0;
    for page in (0..sound.len() / 8192).step_by(3) {
        let mut bytes = sound.clone();
        bytes[page * 8192 + 4000] ^= 4;
        std::fs::write(&file, &bytes).unwrap();
        let Ok(db) = GraphDatabase::open(dir.path(), &options()) else { continue };
        let mut session = db.session().unwrap();
        let resolved = session.resolve(&refs);
        if let Ok(ids) = &resolved {
            let ids: Vec<TermId> = ids.iter().map(|id| id.unwrap()).collect();
            match session.decode(&ids, |at, term| assert_eq!(term, refs[at])) {
                Ok(()) => {}
                Err(error) => assert!(error.to_string().contains("damaged"), "{error}"),
            }
        }
        let report = db.check(&mut |_| {}).unwrap();
        let is_written = db.database().store().extents().iter().any(|(extent, map)| {
            let place = page as u64 / 8;
            *extent == place && map.tree.is_some() && map.is_written(page as u32 % 8)
        });
        assert_eq!(!report.is_sound(), is_written, "page {page}: {:?}", report.problems);
        named += u32::from(report.problems.iter().any(|problem| problem.contains(&format!("page {page} "))));
        assert!(report.is_sound() || report.problems[0].contains(&format!("page {page} ")));
    }
    assert!(named > 5);
}

fn any_term() -> impl Strategy<Value = Term> {
    let datatype = prop_oneof![
        Just(XSD_STRING.to_owned()),
        prop::sample::select(vec!["integer", "decimal", "double", "date", "boolean", "anyURI"])
            .prop_map(|name| format!("{XSD}{name}")),
        "http://a/[a-c]",
    ];
    let lexical =
        prop_oneof!["-?[0-9]{1,4}(\\.[0-9]{1,3})?", "\\PC{0,20}", "[a-c ]{50,80}", "[a-c]{3000,9000}"];
    prop_oneof![
        "http://[a-c]/\\PC{0,8}[/#][a-z]{0,9}".prop_map(Term::Iri),
        (lexical.clone(), "[a-c]{2}").prop_map(|(lexical, lang)| TermRef::tagged(&lexical, &lang).to_owned()),
        (lexical, datatype).prop_map(|(lexical, datatype)| TermRef::typed(&lexical, &datatype).to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn any_terms_come_back(objects in prop::collection::vec(any_term(), 1..200)) {
        let dir = tempfile::tempdir().unwrap();
        let quads: Vec<Quad> = objects.iter().map(|object| (iri("s"), iri("p"), object.clone(), None)).collect();
        let (db, mut builder) = database(dir.path(), &quads);
        assert_terms(&db, &mut builder, &terms(&quads));
        prop_assert_eq!(db.check(&mut |_| {}).unwrap().problems, [""; 0]);
    }
}
