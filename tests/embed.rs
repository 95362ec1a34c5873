//! The library as a program uses it: the promises of its documentation, tested from the outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use snowmelt::{
    BlankNode, Database, Error, Format, FromTerm, GraphName, Literal, NamedNode, Quad, Row, Rows, Term,
    Transaction, Triples,
};

const PEOPLE: &str = "INSERT DATA {
    <urn:ann> <urn:name> 'Ann' ; <urn:age> 30 ; <urn:knows> <urn:bob> , [ <urn:name> 'Nobody' ] .
    <urn:bob> <urn:name> 'Bob'@en ; <urn:score> 1.5 ; <urn:is> true }";

fn people() -> Database {
    let db = Database::options().memory(256 << 20).in_memory().unwrap();
    db.update(PEOPLE).unwrap();
    db
}

fn iri(text: &str) -> NamedNode {
    NamedNode::new(text).unwrap()
}

#[test]
fn handles_are_shared_and_sent() {
    fn send_and_sync<T: Send + Sync + 'static>() {}
    fn send<T: Send + 'static>() {}
    send_and_sync::<Database>();
    send_and_sync::<Error>();
    send_and_sync::<Row>();
    send::<Rows>();
    send::<Triples>();
    send::<Transaction>();
}

#[test]
fn values_come_as_they_are_asked_for() {
    let db = people();
    let one = |text: &str| db.query(text).unwrap().next().unwrap().unwrap();
    let row = one(
        "SELECT ?n ?a ?s ?b ?x { ?p <urn:name> ?n ; <urn:age> ?a . <urn:bob> <urn:score> ?s ; <urn:is> ?b }",
    );
    assert_eq!(row.columns(), ["n", "a", "s", "b", "x"]);
    assert_eq!(row.get::<String>("n").unwrap(), "Ann");
    assert_eq!((row.get::<i64>("a").unwrap(), row.get::<u32>("a").unwrap()), (30, 30));
    assert_eq!(row.get::<f64>("a").unwrap(), 30.0);
    assert_eq!(row.get::<f64>("s").unwrap(), 1.5);
    assert!(row.get::<bool>("b").unwrap());
    assert_eq!(row.get::<Option<String>>("x").unwrap(), None);
    assert_eq!(row.get::<Option<i64>>("a").unwrap(), Some(30));
    assert_eq!(row["n"], Literal::from("Ann").into());
    assert_eq!(row.iter().filter(|(_, term)| term.is_none()).count(), 1);
    let said = |why: Result<i64, Error>| why.unwrap_err().to_string();
    assert_eq!(said(row.get("n")), "column n: \"Ann\" is not an integer of 64 bits");
    assert_eq!(said(row.get("x")), "column x: it is unbound in this row; read it as an Option");
    assert_eq!(said(row.get("y")), "column y: no such column; there are: n, a, s, b, x");
    let tagged = one("SELECT ?n { <urn:bob> <urn:name> ?n }");
    assert_eq!(tagged.get::<Literal>("n").unwrap().language(), Some("en"));
    assert!(NamedNode::from_term(tagged.term("n")).is_err());
}

#[test]
fn every_form_of_query_has_rows() {
    let db = people();
    let rows = |text: &str| db.query(text).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    for (text, answer) in [("ASK { ?s ?p ?o }", true), ("ASK { ?s <urn:none> ?o }", false)] {
        let answers = rows(text);
        assert_eq!((answers.len(), answers[0].get::<bool>("answer").unwrap()), (1, answer));
        assert_eq!(db.ask(text).unwrap(), answer);
    }
    let triples = rows("CONSTRUCT { ?o <urn:of> ?s } { ?s <urn:knows> ?o }");
    assert_eq!(triples.len(), 2);
    assert_eq!(triples[0]["predicate"], iri("urn:of").into());
    assert!(matches!(db.ask("SELECT * { ?s ?p ?o }"), Err(Error::Form { expected: "ASK", found: "SELECT" })));
    assert!(matches!(db.construct("ASK { }").map(drop), Err(Error::Form { .. })));
    assert_eq!(db.construct("DESCRIBE <urn:bob>").unwrap().count(), 3);
}

#[test]
fn rows_stop_early_and_fail() {
    let db = Database::options().memory(256 << 20).in_memory().unwrap();
    let text: String = (0..3000).map(|n| format!("<urn:s> <urn:p> {n} .\n")).collect();
    db.loader().reader("numbers", std::io::Cursor::new(text)).format(Format::Turtle).run().unwrap();
    let product = "SELECT * { ?s ?p ?a . ?s ?p ?b . ?s ?p ?c }";
    assert_eq!(db.query(product).unwrap().take(5).filter(Result::is_ok).count(), 5);
    let flag = Arc::new(AtomicBool::new(false));
    let mut rows = db.prepare(product).cancel(flag.clone()).query().unwrap();
    assert!(rows.next().unwrap().is_ok());
    flag.store(true, Ordering::Relaxed);
    let error = rows.find_map(Result::err).expect("it is cancelled long before its end");
    assert!(matches!(error, Error::Cancelled));
    assert!(rows.next().is_none(), "nothing comes after an error");
    let count = "SELECT (COUNT(*) AS ?n) { ?s ?p ?a . ?s ?p ?b . ?s ?p ?c FILTER(?a * ?b = ?c + 0.5) }";
    let late = db.prepare(count).timeout(Duration::from_millis(50)).query();
    let late = late.and_then(|mut rows| rows.next().unwrap());
    assert!(matches!(late, Err(Error::Timeout(_))), "{late:?}");
}

#[test]
fn a_query_sees_one_state() {
    let db = people();
    let mut rows = db.query("SELECT ?s ?o { ?s <urn:name> ?o }").unwrap();
    db.update("DELETE WHERE { ?s <urn:name> ?o }").unwrap();
    assert_eq!(rows.by_ref().count(), 3);
    assert_eq!(db.query("SELECT ?s ?o { ?s <urn:name> ?o }").unwrap().count(), 0);
    assert!(rows.activity().seq >= 3);
}

#[test]
fn a_transaction_is_whole() {
    let db = people();
    let quads = || db.stats().unwrap().quads;
    let before = quads();
    let undone: Result<(), Error> = db.transaction(|tx| {
        tx.update("DELETE WHERE { ?s ?p ?o }")?;
        assert!(!tx.ask("ASK { ?s ?p ?o }")?);
        Err(Error::Cancelled)
    });
    assert!(matches!(undone, Err(Error::Cancelled)));
    assert_eq!(quads(), before);
    // a step that fails dooms it, even where the program goes on
    let doomed: Result<(), Error> = db.transaction(|tx| {
        tx.update("INSERT DATA { <urn:x> <urn:p> 1 }")?;
        assert!(tx.update("CREATE GRAPH <urn:g> ; nonsense").is_err());
        assert!(matches!(tx.update("INSERT DATA { <urn:x> <urn:p> 2 }"), Err(Error::TransactionFailed)));
        Ok(())
    });
    assert!(matches!(doomed, Err(Error::TransactionFailed)));
    assert_eq!(quads(), before);
    // and where it panics and the program goes on
    let doomed: Result<(), Error> = db.transaction(|tx| {
        tx.update("INSERT DATA { <urn:x> <urn:p> 1 }")?;
        let iri = |name: &str| NamedNode::new(name).unwrap();
        let one = Quad::new(iri("urn:y"), iri("urn:p"), iri("urn:z"), GraphName::DefaultGraph);
        let quads = std::iter::once(one).chain(std::iter::from_fn(|| panic!("of the program")));
        let step = std::panic::AssertUnwindSafe(|| tx.insert(quads));
        assert!(std::panic::catch_unwind(step).is_err());
        Ok(())
    });
    assert!(matches!(doomed, Err(Error::TransactionFailed)));
    assert_eq!(quads(), before);
    let count: i64 = db
        .transaction(|tx| {
            tx.update("INSERT DATA { <urn:x> <urn:p> 1 }")?;
            tx.prepare("INSERT { ?s <urn:p> ?n } WHERE { }").bind("s", iri("urn:x")).bind("n", 2).update()?;
            let mut rows = tx.query("SELECT (COUNT(*) AS ?n) { <urn:x> <urn:p> ?o }")?;
            rows.next().expect("a count has a row")?.get("n")
        })
        .unwrap();
    assert_eq!((count, quads()), (2, before + 2));
}

#[test]
fn blank_nodes_of_answers_are_those_nodes() {
    let db = people();
    let row = db.query("SELECT ?b { ?b <urn:name> 'Nobody' }").unwrap().next().unwrap().unwrap();
    let node: BlankNode = row.get("b").unwrap();
    let quad = |subject: BlankNode, object: i64| {
        Quad::new(subject, iri("urn:age"), Literal::from(object), GraphName::DefaultGraph)
    };
    let new = BlankNode::default();
    db.transaction(|tx| tx.insert([quad(node.clone(), 1), quad(new.clone(), 2), quad(new, 3)])).unwrap();
    assert!(db.ask("ASK { ?b <urn:name> 'Nobody' ; <urn:age> 1 }").unwrap());
    assert!(db.ask("ASK { ?b <urn:age> 2 , 3 FILTER NOT EXISTS { ?b <urn:name> ?n } }").unwrap());
    assert_eq!(db.transaction(|tx| tx.remove([quad(node.clone(), 1), quad(node, 7)])).unwrap(), 1);
}

#[test]
fn graphs_are_kept() {
    let db = Database::in_memory().unwrap();
    let quad = |graph: GraphName| Quad::new(iri("urn:a"), iri("urn:p"), iri("urn:b"), graph);
    let named = || GraphName::from(iri("urn:g"));
    let inserted = db
        .transaction(|tx| tx.insert([quad(named()), quad(GraphName::DefaultGraph), quad(named())]))
        .unwrap();
    assert_eq!(inserted, 2);
    assert_eq!(db.query("SELECT * { GRAPH ?g { ?s ?p ?o } }").unwrap().count(), 1);
    assert_eq!(db.transaction(|tx| tx.remove([quad(named())])).unwrap(), 1);
    assert_eq!(db.stats().unwrap().quads, 1);
}

#[test]
fn a_directory_keeps_what_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("people.db");
    let small = || Database::options().memory(256 << 20);
    assert!(matches!(Database::open(&path), Err(Error::NotADatabase { .. })));
    let db = small().create(&path).unwrap();
    db.update(PEOPLE).unwrap();
    assert!(matches!(small().create(&path), Err(Error::Exists { .. })));
    assert!(matches!(small().open(&path), Err(Error::Locked { .. })));
    let copy = dir.path().join("copy.db");
    db.backup(&copy).unwrap();
    drop(db);
    for path in [&path, &copy] {
        let db = small().read_only(true).open(path).unwrap();
        assert_eq!(db.query("SELECT * { ?s ?p ?o }").unwrap().count(), 8);
        assert!(matches!(db.update("CLEAR ALL"), Err(Error::ReadOnly { .. })));
        assert!(db.check().unwrap().is_sound());
    }
    assert!(matches!(people().backup(dir.path().join("none")), Err(Error::InMemory)));
}

#[test]
fn loads_say_where_they_failed_and_change_nothing() {
    let db = people();
    let before = db.stats().unwrap().quads;
    let text: &[u8] = b"<urn:a> <urn:p> 1 .\n<urn:b> <urn:p> .\n";
    let failed = db.loader().reader("made up", text).format(Format::Turtle).run().unwrap_err();
    assert!(matches!(&failed, Error::Document { name, line: 2, .. } if name == "made up"), "{failed}");
    assert!(matches!(db.load("no such file.ttl"), Err(Error::Input { .. })));
    assert_eq!(db.stats().unwrap().quads, before);
    let lenient = db.loader().reader("made up", &b"nonsense\n<urn:a> <urn:p> <urn:b> .\n"[..]);
    let loaded = lenient.format(Format::NTriples).lenient(true).graph("urn:g").run().unwrap();
    assert_eq!((loaded.statements, loaded.skipped, loaded.quads), (1, 1, before + 1));
}

#[test]
fn threads_write_and_read_together() {
    let db = Database::options().memory(256 << 20).in_memory().unwrap();
    thread::scope(|scope| {
        for writer in 0..3 {
            let db = &db;
            scope.spawn(move || {
                for n in 0..20 {
                    let text = "INSERT { ?s <urn:n> ?n } WHERE { }";
                    let subject = iri(&format!("urn:{writer}"));
                    db.prepare(text).bind("s", subject).bind("n", n).update().unwrap();
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let rows = db.query("SELECT ?n { ?s <urn:n> ?n }").unwrap();
                    assert!(rows.map(|row| row.unwrap().get::<i64>("n").unwrap()).all(|n| n < 20));
                }
            });
        }
    });
    assert_eq!(db.query("SELECT * { ?s <urn:n> ?n }").unwrap().count(), 60);
}

#[test]
fn errors_are_of_the_caller_or_the_world() {
    let db = people();
    let Err(error @ Error::Syntax { line: 1, .. }) = db.query("SELECT * { ?é foaf:name ?o }").map(drop)
    else {
        panic!("a prefix is not declared")
    };
    let told = "line 1, column 15: the prefix foaf: is not declared; \
                begin with PREFIX foaf: <http://xmlns.com/foaf/0.1/>";
    assert_eq!(error.to_string(), told);
    let Error::Syntax { faults, .. } = error else { unreachable!() };
    let shown = |mark: usize| format!("{told}\n  SELECT * {{ ?é foaf:name ?o }}\n{:mark$}^^^^^", "");
    assert_eq!(faults.to_string(), shown(16));
    // declarations before a text are not a part of it
    let head = "PREFIX ex: <urn:> ";
    let text = "SELECT * { ?é ex:name ?o } LIMT 3";
    let Err(error) = db.query(&format!("{head}{text}")).map(drop) else { panic!("LIMT") };
    let Error::Syntax { line, column, faults, .. } = error.without_head(head, text) else { panic!("syntax") };
    assert_eq!((line, column), (1, 28));
    let shown = faults.to_string();
    assert!(
        shown.contains("is LIMIT meant?\n  SELECT * {") && shown.ends_with(&format!("\n{:29}^^^^", "")),
        "{shown}"
    );
    let blank = db.prepare("SELECT * { ?s ?p ?o }").bind("s", BlankNode::default()).query().map(drop);
    assert!(matches!(blank, Err(Error::Parameter { .. })));
    assert!(matches!(Database::options().read_ahead("sometimes"), Err(Error::Setting { .. })));
    let term: Term = Literal::from("x").into();
    assert_eq!(db.prepare("SELECT * { ?s ?p ?o }").bind("s", term).query().unwrap().count(), 0);
}
