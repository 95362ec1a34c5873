//! SERVICE between databases in this process: answers, questions, and what goes wrong.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use oxrdf::{GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use oxrdfio::{RdfFormat, RdfParser};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use snowmelt_sparql::{
    QueryError, RemoteAnswer, RemoteDocument, RemoteEndpoints, RemoteFault, RemoteFaultKind, RemotePart,
    RemoteQuestion, RemoteTotals, RemoteUse,
};

use support::answer::{self, Answer, Solutions};
use support::endpoints::{Database, InProcess, fault};
use support::settings::{Fixture, Settings};

const HERE: &str = "http://here/";
const THERE: &str = "http://there/";

fn quads(turtle: &str) -> Vec<Quad> {
    let text = format!("@prefix : <http://e/> . {turtle}");
    let parser = RdfParser::from_format(RdfFormat::TriG).rename_blank_nodes();
    parser.for_slice(text.as_bytes()).map(|quad| quad.expect("our own data")).collect()
}

fn database(turtle: &str) -> Fixture {
    Fixture::open(&quads(turtle), &Settings::default())
}

fn text(body: &str) -> String {
    format!("PREFIX : <http://e/> {body}")
}

/// Rows as lines, sorted; blank nodes have no names.
fn lines(answer: Answer) -> Vec<String> {
    let Answer::Solutions(Solutions { rows, .. }) = answer else { panic!("{answer:?} has no rows") };
    let cell = |cell: &Option<Term>| match cell {
        None => "-".to_owned(),
        Some(Term::NamedNode(node)) => node.as_str().rsplit('/').next().unwrap_or_default().to_owned(),
        Some(Term::BlankNode(_)) => "_".to_owned(),
        Some(Term::Literal(literal)) => literal.value().to_owned(),
        Some(term @ Term::Triple(_)) => term.to_string().replace("<http://e/", "<"),
    };
    let mut lines: Vec<String> =
        rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" ")).collect();
    lines.sort();
    lines
}

/// A database here, and one there.
struct Two {
    here: Fixture,
    endpoints: InProcess,
}

impl Two {
    fn new(here: &str, there: &str) -> Self {
        Self::on(here, InProcess::new(vec![(THERE.to_owned(), database(there))]))
    }

    fn on(here: &str, endpoints: InProcess) -> Self {
        Self { here: database(here).asking(endpoints.remote()), endpoints }
    }

    fn ask(&self, query: &str) -> Result<Vec<String>, QueryError> {
        self.here.answer(&text(query), None).map(lines)
    }

    fn rows(&self, query: &str) -> Vec<String> {
        self.ask(query).unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    fn error(&self, query: &str) -> String {
        self.ask(query).expect_err(query).to_string()
    }
}

#[test]
fn values_that_stand_beside_it_are_sent_along_once() {
    let two = Two::new(
        ":a :p :x . :b :p :x . :c :p :y . :d :p \"z\"@en , 01 , _:blank .",
        ":x :q 1 , 2 . :y :q 3 . :w :q 4 . :v :r \"z\"@en , 01 .",
    );
    let rows = two.rows("SELECT ?s ?v { ?s :p ?o SERVICE <http://there/> { ?o :q ?v } }");
    assert_eq!(rows, ["a 1", "a 2", "b 1", "b 2", "c 3"]);
    let asked = two.endpoints.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    let sent = &asked[0].text;
    assert_eq!(sent.matches("<http://e/x>").count(), 1, "{sent}");
    assert!(!sent.contains("_:"), "a blank node means nothing there: {sent}");
    assert!(sent.starts_with("SELECT ?row ?v WHERE { VALUES ( ?row ?o ) {"), "{sent}");
    let rows = two.rows("SELECT ?s ?v { ?s :p ?o SERVICE <http://there/> { ?v :r ?o } }");
    assert_eq!(rows, ["d v", "d v"], "literals, as they are written");
}

#[test]
fn a_service_alone_is_asked_once() {
    let two = Two::new(":a :p :x , :y .", ":x :q 1 , 2 , 3 , 4 , 5 , 6 , 7 , 8 .");
    assert_eq!(two.rows("SELECT ?v { SERVICE <http://there/> { ?o :q ?v } }").len(), 8);
    assert_eq!(two.endpoints.asked()[0].text.matches("VALUES").count(), 0);
    let rows = two.rows("SELECT ?o ?v { :a :p ?o SERVICE <http://there/> { ?other :q ?v } }");
    assert_eq!((rows.len(), two.endpoints.asked().len()), (16, 1), "it shares nothing");
    let rows = two.rows("SELECT (COUNT(*) AS ?n) { SERVICE <http://there/> { ?o :q ?v } }");
    assert_eq!(rows, ["8"]);
    assert_eq!(two.endpoints.asked()[0].variables, ["row"], "no value is needed");
    assert_eq!(two.rows("SELECT ?v { SERVICE <http://there/> { ?o :q ?v } } LIMIT 2").len(), 2);
    let answer = two.here.answer(&text("ASK { SERVICE <http://there/> { ?o :q 5 } }"), None).unwrap();
    assert!(matches!(answer, Answer::Boolean(true)), "{answer:?}");
}

#[test]
fn constants_of_the_text_are_those_of_the_query() {
    let two = Two::new(":a :p :x .", ":x :q 1 , 2 .");
    // texts of one shape, which share their plan
    for (value, rows) in [("1", 1), ("2", 1), ("3", 0), ("\"\\n\"", 0)] {
        let query = format!(
            "SELECT ?o {{ <http://e/a> <http://e/p> ?o SERVICE <http://there/> {{ ?o <http://e/q> {value} }} }}"
        );
        assert_eq!(two.rows(&query).len(), rows, "{query}");
    }
    let base = "BASE <http://e/> SELECT ?o { SERVICE <http://there/> { ?o <q> 1 } }";
    assert_eq!(two.here.answer(base, None).map(lines).unwrap(), ["x"]);
}

#[test]
fn more_values_go_in_several_questions() {
    let here: String = (0..1000).map(|n| format!(":s{n} :p :o{n} . ")).collect();
    let there: String = (0..1000).map(|n| format!(":o{n} :q {n} . ")).collect();
    let two = Two::new(&here, &there);
    let rows = two.rows("SELECT ?s ?v { ?s :p ?o SERVICE <http://there/> { ?o :q ?v } }");
    assert_eq!(rows.len(), 1000);
    assert!((0..1000).all(|n| rows.binary_search(&format!("s{n} {n}")).is_ok()));
    let sizes: Vec<usize> =
        two.endpoints.asked().iter().map(|asked| asked.text.matches("<http://e/o").count()).collect();
    // an answer takes as long for more values, so there are more
    assert!(sizes[..2] == [64, 256] && sizes.len() <= 5, "{sizes:?}");
    assert_eq!(sizes.iter().sum::<usize>(), 1000);
}

#[test]
fn a_question_that_is_too_long_is_asked_in_parts() {
    let here: String = (0..200).map(|n| format!(":s :p :o{n} . ")).collect();
    let there: String = (0..200).map(|n| format!(":o{n} :q {n} . ")).collect();
    let endpoints = InProcess::troubled(vec![(THERE.to_owned(), database(&there).into())], |question| {
        let values = question.text.matches("<http://e/o").count();
        (values > 20).then(|| fault(RemoteFaultKind::TooLong, "it answered 413"))
    });
    let two = Two::on(&here, endpoints);
    let rows = two.rows("SELECT ?v { ?s :p ?o SERVICE <http://there/> { ?o :q ?v } }");
    assert_eq!(rows.len(), 200);
}

#[test]
fn what_may_be_unbound_is_compatible() {
    let two =
        Two::new(":a :p 1 ; :o :x . :b :p 2 . :c :p 3 ; :o _:here .", ":x :q 1 . :y :q 2 . :z :r 9 ; :q 5 .");
    // ?o of b is unbound: all there; that of c is a blank node: nothing there
    let rows =
        two.rows("SELECT ?s ?o ?v { ?s :p ?n OPTIONAL { ?s :o ?o } SERVICE <http://there/> { ?o :q ?v } }");
    assert_eq!(rows, ["a x 1", "b x 1", "b y 2", "b z 5"]);
    // the pattern may leave ?o open
    let rows = two.rows(
        "SELECT ?s ?o ?v { ?s :p ?n OPTIONAL { ?s :o ?o } \
         SERVICE <http://there/> { ?t :q ?v OPTIONAL { ?t :r ?m . BIND(?t AS ?o) } } }",
    );
    let expected = ["a x 1", "a x 2", "b - 1", "b - 2", "b z 5", "c _ 1", "c _ 2"];
    assert_eq!(rows, expected);
}

#[test]
fn blank_nodes_of_answers_are_new_ones() {
    let two = Two::new(":a :p :x , :y . _:b :p :z .", ":x :q _:b1 . :y :q _:b1 . _:b2 :p :z .");
    let query =
        "SELECT ?s ?b { ?s :p ?o SERVICE <http://there/> { ?o :q ?b } SERVICE <http://there/> { ?o :q ?b } }";
    assert!(two.rows(query).is_empty(), "two answers have no blank node in common");
    let same = "SELECT ?o ?b { SERVICE <http://there/> { ?o :q ?b . ?o2 :q ?b FILTER(?o != ?o2) } }";
    assert_eq!(two.rows(same), ["x _", "y _"], "one has");
    let joined = "SELECT ?b { ?b :p :z SERVICE <http://there/> { ?b :p :z } }";
    assert!(two.rows(joined).is_empty(), "and none is one of here");
    let Answer::Solutions(all) =
        two.here.answer(&text("SELECT ?b { SERVICE <http://there/> { ?o :q ?b } }"), None).unwrap()
    else {
        panic!("rows")
    };
    assert_eq!(all.rows[0], all.rows[1], "within an answer a label is one node");
}

/// Endpoints of another engine: ours does not look into triple terms yet.
#[test]
fn triple_terms_are_sent_and_come_back() {
    let there = ":r1 :reifies <<( :a :p :b )>> . :r2 :reifies <<( :x :p <<( :y :q \"z\"@en--ltr )>> )>> .
        :r3 :reifies <<( _:n :p <<( :a :p _:n )>> )>> . _:n :is 1 .";
    let endpoints = InProcess::new(vec![(THERE.to_owned(), Database::oxigraph(&quads(there)))]);
    let two = Two::on(
        ":s1 :says <<( :a :p :b )>> . :s2 :says <<( :x :p <<( :y :q \"z\"@en--ltr )>> )>> .
         :s3 :says <<( :a :p _:here )>> , <<( :a :p <<( _:here :p :b )>> )>> . :s4 :says :a .",
        endpoints,
    );
    let rows = two.rows("SELECT ?s ?r { ?s :says ?t SERVICE <http://there/> { ?r :reifies ?t } }");
    assert_eq!(rows, ["s1 r1", "s2 r2"]);
    let sent = &two.endpoints.asked()[0].text;
    let deep = "<<( <http://e/x> <http://e/p> <<( <http://e/y> <http://e/q> \"z\"@en--ltr )>> )>>";
    assert!(sent.contains("<<( <http://e/a> <http://e/p> <http://e/b> )>>"), "{sent}");
    assert!(sent.contains(deep) && !sent.contains("_:"), "{sent}");
    // a pattern that looks into them, with a constant that differs between texts of the shape
    for (subject, objects) in [(":a", "b"), (":x", "<<( <y> <q> \"z\"@en--ltr )>>")] {
        let looks =
            format!("SELECT ?o {{ SERVICE <http://there/> {{ ?r :reifies <<( {subject} :p ?o )>> }} }}");
        assert_eq!(two.rows(&looks), [objects]);
    }
    let values = "SELECT ?r { SERVICE <http://there/> { VALUES ?t { <<( :a :p :b )>> } ?r :reifies ?t } }";
    assert_eq!(two.rows(values), ["r1"]);
    // what came is what is here, where it is
    let comes = "SELECT ?s ?t { SERVICE <http://there/> { ?r :reifies ?t } ?s :says ?t }";
    assert_eq!(
        two.rows(comes),
        ["s1 <<( <a> <p> <b> )>>", "s2 <<( <x> <p> <<( <y> <q> \"z\"@en--ltr )>> )>>"]
    );
}

#[test]
fn blank_nodes_in_triple_terms_are_those_of_their_answer() {
    let there = ":r :reifies <<( _:n :p <<( :a :p _:n )>> )>> . _:n :is 1 .";
    let endpoints = InProcess::new(vec![(THERE.to_owned(), Database::oxigraph(&quads(there)))]);
    let two = Two::on(":a :p :b .", endpoints);
    let query = "SELECT ?t ?n { SERVICE <http://there/> { ?r :reifies ?t . ?n :is 1 } }";
    let Answer::Solutions(all) = two.here.answer(&text(query), None).unwrap() else { panic!("rows") };
    let [Some(Term::Triple(outer)), Some(Term::BlankNode(node))] = &all.rows[0][..] else {
        panic!("{all:?}")
    };
    let Term::Triple(inner) = &outer.object else { panic!("{outer}") };
    assert_eq!((&outer.subject, &inner.object), (&node.clone().into(), &node.clone().into()));
    let twice =
        "SELECT ?t { SERVICE <http://there/> { ?r :reifies ?t } SERVICE <http://there/> { ?q :reifies ?t } }";
    assert!(two.rows(twice).is_empty(), "two answers have no blank node in common");
}

/// They become variables, which meet none of the text's own and are not counted.
#[test]
fn blank_nodes_of_the_pattern_are_not_variables_of_the_text() {
    let two = Two::new(":a :p :x .", ":x :q 1 . :y :q 2 ; :r :z . :w :r :z , :v .");
    let inside =
        |pattern: &str| two.rows(&format!("SELECT ?o {{ SERVICE <http://there/> {{ {pattern} }} }}"));
    for label in ["b", "0", "a.b"] {
        for name in ["blank_b", "blank0", "blank_0", "blank_a_b"] {
            let pattern = format!("_:{label} :q ?o . ?{name} :r :v");
            assert_eq!(inside(&pattern), ["1", "2"], "{pattern}");
        }
    }
    assert_eq!(inside("_:a.b :q ?o . _:a_b :r :v"), ["1", "2"], "two blank nodes");
    assert_eq!(inside("_:b :q ?o . _:b :r :z"), ["2"], "one");
    let count = |select: &str, pattern: &str| {
        inside(&format!("{{ SELECT ({select} AS ?o) {{ {pattern} }} }}")).join(" ")
    };
    assert_eq!(count("COUNT(DISTINCT *)", "_:b :r ?z"), "2");
    assert_eq!(count("COUNT(DISTINCT *)", "_:b :r _:z"), "1");
    assert_eq!(count("COUNT(*)", "_:b :r ?z"), "3");
    assert_eq!(
        count("?n", "{ SELECT (COUNT(DISTINCT *) AS ?n) (SUM(?v) AS ?m) { _:b :q ?v ; :r _:c } }"),
        "1"
    );
    let distinct = "SELECT ?o { SERVICE <http://there/> { { SELECT DISTINCT * { _:b :r _:c } } ?s :q ?o } }";
    assert_eq!(two.rows(distinct), ["1", "2"]);
}

/// An endpoint does not know the solution around an EXISTS. What a join afterwards cannot make up
/// for is refused.
#[test]
fn exists_around_a_service_reads_what_it_joins() {
    let two = Two::new(":a :p :x ; :n 1 . :b :p :y ; :n 5 .", ":x :q 3 . :y :q 4 .");
    let of = |pattern: &str| {
        let exists = format!("FILTER EXISTS {{ SERVICE <http://there/> {{ {pattern} }} }}");
        two.ask(&format!("SELECT ?s {{ ?s :p ?o ; :n ?n {exists} }}"))
    };
    assert_eq!(of("?o :q ?v FILTER(?v > 3)").unwrap(), ["b"]);
    assert_eq!(of("{ ?o :q 3 } UNION { ?o :q 7 }").unwrap(), ["a"]);
    assert_eq!(of("?other :q 3").unwrap(), ["a", "b"]);
    for refused in [
        "?o :q ?v FILTER(?v > ?n)",
        "?o :q ?v BIND(?n + 1 AS ?m) FILTER(?m = ?v)",
        "?o :q ?v OPTIONAL { ?v :r ?n }",
        "?o :q ?v { SELECT ?v { ?x :q ?v } ORDER BY ?v LIMIT 1 } FILTER EXISTS { ?o :q ?n }",
    ] {
        let told = of(refused).expect_err(refused).to_string();
        assert!(told.contains("SERVICE in EXISTS") && told.contains("?n"), "{refused}: {told}");
    }
    // here, both sides of a MINUS bind what the solution around binds
    assert_eq!(of("?o :q ?v MINUS { ?o :q 3 }").unwrap(), ["b"]);
    for refused in [
        "?o :q ?v MINUS { ?x :q 3 }",
        "?o :q ?v FILTER EXISTS { ?x :q ?y MINUS { OPTIONAL { ?x :q ?z } } }",
        "?o :q ?v { SELECT ?v { ?x :q ?v MINUS { ?y :q 3 } } }",
        "?o :q ?v SERVICE <http://there/> { ?v :q ?x MINUS { ?y :q 3 } }",
    ] {
        let told = of(refused).expect_err(refused).to_string();
        assert!(told.contains("a SERVICE in EXISTS with a MINUS"), "{refused}: {told}");
    }
}

#[test]
fn triple_terms_of_too_many_levels_are_a_fault() {
    let nested = |levels: usize| {
        let begin = "<<( :a :p ".repeat(levels);
        let endpoints = quads(&format!(":r :reifies {begin} :b {} .", " )>>".repeat(levels)));
        let endpoints = InProcess::new(vec![(THERE.to_owned(), Database::oxigraph(&endpoints))]);
        Two::on("", endpoints).ask("SELECT ?t { SERVICE <http://there/> { ?r :reifies ?t } }")
    };
    assert_eq!(nested(64).unwrap().len(), 1);
    let told = nested(65).unwrap_err().to_string();
    assert_eq!(told, "SERVICE <http://there/>: a triple term of its answer has more than 64 levels");
}

#[test]
fn optional_exists_and_minus_have_services() {
    let two = Two::new(":a :p :x . :b :p :y . :c :p :z .", ":x :q 1 . :z :q 3 , 4 .");
    let rows = |query: &str| two.rows(query);
    assert_eq!(
        rows("SELECT ?s ?v { ?s :p ?o OPTIONAL { SERVICE <http://there/> { ?o :q ?v } } }"),
        ["a 1", "b -", "c 3", "c 4"]
    );
    assert_eq!(
        rows("SELECT ?s ?v { ?s :p ?o OPTIONAL { SERVICE <http://there/> { ?o :q ?v } FILTER(?v > 3) } }"),
        ["a -", "b -", "c 4"]
    );
    let asks_whether = "SELECT ?s { ?s :p ?o FILTER EXISTS { SERVICE <http://there/> { ?o :q ?v } } }";
    two.endpoints.asked();
    assert_eq!(rows(asks_whether), ["a", "c"]);
    let asked = two.endpoints.asked();
    assert!(asked[0].text.starts_with("SELECT DISTINCT ?row WHERE"), "{}", asked[0].text);
    assert_eq!(
        rows("SELECT ?s { ?s :p ?o FILTER NOT EXISTS { SERVICE <http://there/> { ?o :q ?v } } }"),
        ["b"]
    );
    assert_eq!(rows("SELECT ?s { ?s :p ?o MINUS { SERVICE <http://there/> { ?o :q ?v } } }"), ["b"]);
    assert_eq!(
        rows("SELECT ?s ?v { ?s :p ?o { SERVICE <http://there/> { ?o :q ?v } } UNION { BIND(0 AS ?v) } }"),
        ["a 0", "a 1", "b 0", "c 0", "c 3", "c 4"]
    );
    assert_eq!(
        rows(
            "SELECT ?s ?n { ?s :p ?o SERVICE <http://there/> { SELECT ?o (COUNT(?v) AS ?n) { ?o :q ?v } GROUP BY ?o } }"
        ),
        ["a 1", "c 2"]
    );
}

#[test]
fn an_endpoint_may_be_a_value() {
    let endpoints = InProcess::new(vec![
        (HERE.to_owned(), database(":x :q 1 . :y :q 2 .")),
        (THERE.to_owned(), database(":x :q 3 . :z :q 4 .")),
    ]);
    let two = Two::on(
        ":a :at <http://here/> , <http://there/> ; :p :x . :b :at <http://there/> ; :p :z .",
        endpoints,
    );
    let query = "SELECT ?s ?v { SERVICE ?e { ?o :q ?v } ?s :at ?e ; :p ?o }";
    assert_eq!(two.rows(query), ["a 1", "a 3", "b 4"]);
    let mut endpoints: Vec<String> = two.endpoints.asked().into_iter().map(|asked| asked.endpoint).collect();
    endpoints.sort();
    assert_eq!(endpoints, [HERE, THERE], "one question for each");
    let apart = "SELECT ?e ?o ?v { VALUES ?e { <http://here/> <http://there/> } SERVICE ?e { ?o :q ?v } }";
    assert_eq!(two.rows(apart).len(), 4);
    let unbound = two.error("SELECT * { ?s :p ?o SERVICE ?e { ?o :q ?v } }");
    assert_eq!(unbound, "SERVICE ?e: nothing beside it binds the variable");
    let literal = two.error("SELECT * { VALUES ?e { 1 } SERVICE ?e { ?o :q ?v } }");
    assert_eq!(literal, "SERVICE ?e: a value of it is no IRI");
    let open = "SELECT * { VALUES (?e ?o) { (UNDEF :x) (<http://here/> :y) } SERVICE ?e { ?o :q ?v } }";
    assert_eq!(two.error(open), "SERVICE ?e: a solution leaves the variable unbound");
    let silent = two.rows(&open.replace("SELECT *", "SELECT ?o ?v").replace("SERVICE", "SERVICE SILENT"));
    assert_eq!(silent, ["x -", "y 2"]);
}

#[test]
fn silent_passes_over_what_fails() {
    let two = Two::new(":a :p :x . :b :p :y .", ":x :q 1 .");
    let query = "SELECT ?s ?v { ?s :p ?o SERVICE SILENT <http://nowhere/> { ?o :q ?v } }";
    assert_eq!(two.rows(query), ["a -", "b -"]);
    let loud = two.error(&query.replace("SILENT ", ""));
    assert_eq!(loud, "SERVICE <http://nowhere/>: it is none of those that may be asked");
    let good = query.replace("nowhere", "there");
    assert_eq!(two.rows(&good), ["a 1"]);
    let alone = "SELECT ?v { SERVICE SILENT <http://nowhere/> { ?o :q ?v } }";
    assert_eq!(two.rows(alone), ["-"], "one solution that binds nothing");
    let none = database("").answer(&text(alone), None).map(lines).unwrap();
    assert_eq!(none, ["-"], "also where none may be asked");
    // an answer that breaks off is none
    let there = || vec![(THERE.to_owned(), database(":x :q 1 , 2 , 3 , 4 , 5 .").into())];
    let breaks = |_: &_| Some(fault(RemoteFaultKind::Failed, "after five rows it broke off"));
    let two = Two::on(":a :p :x .", InProcess::troubled(there(), breaks));
    assert_eq!(two.rows(&good), ["a -"]);
    let error = two.error(&good.replace("SILENT ", ""));
    assert_eq!(error, "SERVICE <http://there/>: after five rows it broke off");
}

/// An endpoint whose rows have many columns and no values, a few bytes each where they are sent.
#[derive(Debug)]
struct Unbound {
    rows: usize,
    /// rows of a part
    part: usize,
    /// parts without rows before them
    empty: usize,
    /// the answer breaks off after them
    breaks: bool,
}

impl Unbound {
    fn remote(rows: usize, breaks: bool) -> Option<Arc<dyn RemoteEndpoints>> {
        Some(Arc::new(Self { rows, part: 100, empty: 0, breaks }))
    }
}

/// Rows of an answer still to come.
struct UnboundRows {
    of: Unbound,
    columns: usize,
}

impl RemoteAnswer for UnboundRows {
    fn next(&mut self, _: Duration) -> Result<RemotePart, RemoteFault> {
        let of = &mut self.of;
        if of.empty > 0 {
            of.empty -= 1;
            return Ok(RemotePart::Rows(Vec::new()));
        }
        let rows = of.rows.min(of.part);
        of.rows -= rows;
        match rows {
            0 if of.breaks => Err(fault(RemoteFaultKind::Failed, "it broke off")),
            0 => Ok(RemotePart::End(RemoteUse::default())),
            rows => Ok(RemotePart::Rows(vec![vec![None; self.columns]; rows])),
        }
    }
}

impl RemoteEndpoints for Unbound {
    fn select(&self, question: RemoteQuestion) -> Result<Box<dyn RemoteAnswer>, RemoteFault> {
        let columns = question.variables.len();
        Ok(Box::new(UnboundRows { of: Self { ..*self }, columns }))
    }

    fn document(&self, _: &str, _: Box<dyn Fn() -> bool + Send>) -> Result<RemoteDocument, RemoteFault> {
        Err(fault(RemoteFaultKind::Failed, "there are no documents"))
    }

    fn narrowed(&self, _: &[String]) -> Arc<dyn RemoteEndpoints> {
        Arc::new(Self { ..*self })
    }

    fn totals(&self) -> Vec<RemoteTotals> {
        Vec::new()
    }
}

/// Rows that wait for the end of their answer are the query's memory, and so many bytes at most.
#[test]
fn rows_that_are_kept_back_are_counted() {
    let values: String = (0..50).map(|n| format!("?a{n} :p ?b{n} . ")).collect();
    let most = |silent: &str, rows: usize, breaks: bool, memory: usize| {
        let query = text(&format!("SELECT * {{ SERVICE {silent} <http://there/> {{ {values} }} }}"));
        let here = database(":a :p :x .").asking(Unbound::remote(rows, breaks));
        here.counted(&query, Some(memory))
    };
    let (loud, large) = (most("", 50_000, false, 64 << 20), most("SILENT", 50_000, false, 64 << 20));
    let (loud, large) = (loud.unwrap(), large.unwrap());
    assert_eq!((loud.rows, large.rows), (50_000, 50_000));
    let kept = large.most_bytes - loud.most_bytes;
    assert!((3 << 20..5 << 20).contains(&kept), "{kept} bytes were held for 40 MB that came");
    // few bytes are kept back where there are few
    let small = most("SILENT", 50_000, false, 2 << 20).unwrap();
    assert!(small.rows == 50_000 && small.most_bytes <= 2 << 20, "{small:?}");
    assert_eq!(most("SILENT", 4000, true, 64 << 20).unwrap().rows, 1, "3.2 MB are taken back");
    let told = most("SILENT", 50_000, true, 64 << 20).unwrap_err().to_string();
    assert_eq!(told, "SERVICE <http://there/>: it broke off");
}

/// A part is memory of its own, beside its rows.
#[test]
fn small_parts_that_are_kept_back_are_counted() {
    let query =
        |silent: &str| text(&format!("SELECT * {{ SERVICE {silent} <http://there/> {{ ?a :p :b }} }}"));
    let most = |silent: &str, of: Unbound| {
        let here = database(":a :p :x .").asking(Some(Arc::new(of)));
        here.counted(&query(silent), Some(64 << 20)).unwrap()
    };
    let small = || Unbound { rows: 50_000, part: 1, empty: 0, breaks: false };
    let kept = most("SILENT", small()).most_bytes - most("", small()).most_bytes;
    assert!((3 << 20..5 << 20).contains(&kept), "{kept} bytes were held for 50,000 parts");
    let empty = Unbound { rows: 1, part: 1, empty: 200_000, breaks: true };
    assert_eq!(most("SILENT", empty).rows, 1, "parts without rows are not kept");
}

#[test]
fn without_endpoints_it_is_refused_before_anything_is_read() {
    let here = database(":a :p :x .");
    let error =
        here.answer(&text("SELECT * { ?s :p ?o SERVICE <http://there/> { ?o :q ?v } }"), None).unwrap_err();
    assert!(
        matches!(&error, QueryError::Service { fault, .. } if fault.kind == RemoteFaultKind::NoneAllowed)
    );
    assert_eq!(error.to_string(), "SERVICE <http://there/>: no endpoint may be asked");
}

#[test]
fn a_pattern_does_not_see_the_numbers() {
    let endpoints = InProcess::new(vec![(THERE.to_owned(), database(":x :q 1 ."))]);
    let two = Two::on(":a :p :x .", endpoints);
    let query = "SELECT ?v { ?s :p ?o SERVICE <http://there/> { ?o :q ?v FILTER(BOUND(?row)) } }";
    assert!(two.rows(query).is_empty());
    assert!(two.endpoints.asked()[0].variables.contains(&"row_".to_owned()));
}

#[test]
fn updates_ask_endpoints_too() {
    let endpoints = InProcess::new(vec![(THERE.to_owned(), database(":x :q 1 , 2 . :y :q 3 ."))]);
    let here = database(":a :p :x .").asking(endpoints.remote());
    here.update(&text("INSERT { ?s :has ?v } WHERE { ?s :p ?o SERVICE <http://there/> { ?o :q ?v } }"), None)
        .unwrap();
    assert_eq!(here.answer(&text("SELECT ?v { :a :has ?v }"), None).map(lines).unwrap(), ["1", "2"]);
    let error = here.update("LOAD <http://there/data.ttl>", None).unwrap_err().to_string();
    assert_eq!(error, "LOAD <http://there/data.ttl>: there are no documents");
    here.update("LOAD SILENT <http://there/data.ttl>", None).unwrap();
    let refused = database("").update("LOAD <http://there/data.ttl>", None).unwrap_err().to_string();
    assert_eq!(refused, "LOAD <http://there/data.ttl>: no endpoint may be asked");
}

/// An endpoint that sends a row now and then, and has no end.
#[derive(Clone, Debug, Default)]
struct Dripping {
    /// questions
    asked: Arc<AtomicUsize>,
    /// answers that were waited for
    waited: Arc<AtomicUsize>,
}

/// One of its answers.
struct Drips {
    of: Dripping,
    is_first: bool,
}

impl RemoteAnswer for Drips {
    fn next(&mut self, wait: Duration) -> Result<RemotePart, RemoteFault> {
        self.of.waited.fetch_add(usize::from(std::mem::take(&mut self.is_first)), Relaxed);
        std::thread::sleep(wait.min(Duration::from_millis(5)));
        Ok(RemotePart::Rows(vec![vec![Some(Literal::from(1).into())]]))
    }
}

impl RemoteEndpoints for Dripping {
    fn select(&self, _: RemoteQuestion) -> Result<Box<dyn RemoteAnswer>, RemoteFault> {
        self.asked.fetch_add(1, Relaxed);
        Ok(Box::new(Drips { of: self.clone(), is_first: true }))
    }

    fn document(&self, _: &str, _: Box<dyn Fn() -> bool + Send>) -> Result<RemoteDocument, RemoteFault> {
        Err(fault(RemoteFaultKind::Failed, "there are no documents"))
    }

    fn narrowed(&self, _: &[String]) -> Arc<dyn RemoteEndpoints> {
        Arc::new(self.clone())
    }

    fn totals(&self) -> Vec<RemoteTotals> {
        Vec::new()
    }
}

/// Other updates wait while one waits for endpoints: not for long, however many operations it has.
#[test]
fn an_update_waits_for_endpoints_for_so_long() {
    let dripping = Dripping::default();
    let here = database(":a :p :x .").asking(Some(Arc::new(dripping.clone())));
    let done = || (dripping.asked.swap(0, Relaxed), dripping.waited.swap(0, Relaxed));
    let insert = |silent: &str| {
        format!("INSERT {{ :a :has ?v }} WHERE {{ SERVICE {silent} <http://there/> {{ ?o :q ?v }} }}")
    };
    let begun = std::time::Instant::now();
    let longest = Duration::from_millis(200);
    let told = here.update_waiting(&text(&insert("")), longest).map(drop).unwrap_err().to_string();
    let late = "the update has waited for endpoints for 200ms, and others for the update";
    assert_eq!(told, format!("SERVICE <http://there/>: {late}"));
    assert_eq!(done(), (1, 1));
    let many = vec![insert("SILENT"); 50].join(" ; ");
    here.update_waiting(&text(&format!("PREFIX : <http://e/> {many}")), longest).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?} for 50 operations", begun.elapsed());
    assert_eq!(done(), (1, 1), "later ones are not asked any more");
    let two = "INSERT { :a :has ?v } WHERE { VALUES ?e { <http://a/> <http://b/> } SERVICE SILENT ?e { ?o :q ?v } }";
    here.update_waiting(&text(two), longest).unwrap();
    assert_eq!(done(), (2, 1), "what was asked at the same time is not waited for");
    assert_eq!(here.quads().len(), 1, "nothing was inserted");
}

#[test]
fn a_plan_tells_what_was_asked() {
    let two = Two::new(":a :p :x .", ":x :q 1 , 2 .");
    let plan = two.here.analyze(&text("SELECT * { ?s :p ?o SERVICE <http://there/> { ?o :q ?v } }")).unwrap();
    assert!(plan.contains("service <http://there/> for ?o → ?v"), "{plan}");
    assert!(plan.contains("<http://there/>: 1 requests 2 rows 10 bytes 100.000ms"), "{plan}");
    let alone = two.here.analyze(&text("SELECT ?v { SERVICE SILENT <http://there/> { ?o :q ?v } }")).unwrap();
    assert!(alone.contains("service silent <http://there/> once → ?v"), "{alone}");
}

/// Random data in two parts by its predicates, and questions over both.
struct Parted {
    rng: StdRng,
    variables: usize,
}

const LOCAL: [&str; 2] = ["p", "q"];
const REMOTE: [&str; 2] = ["r", "s"];

impl Parted {
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        *of.choose(&mut self.rng).expect("not empty")
    }

    fn node(&mut self) -> NamedNode {
        let n = self.rng.random_range(0..10);
        NamedNode::new_unchecked(format!("http://e/r{n}"))
    }

    /// Blank nodes would be one node in the whole, and two in the parts.
    fn graph(&mut self) -> Vec<Quad> {
        let size = self.pick(&[5, 40, 150]);
        let quad = |this: &mut Self| {
            let predicate = this.pick(&[LOCAL, REMOTE].concat());
            let object: Term = match this.rng.random_range(0..4) {
                0 => Literal::from(this.rng.random_range(0..6)).into(),
                1 => Literal::new_language_tagged_literal_unchecked(
                    format!("t\"{}", this.rng.random_range(0..3)),
                    "en",
                )
                .into(),
                _ => this.node().into(),
            };
            let predicate = NamedNode::new_unchecked(format!("http://e/{predicate}"));
            Quad::new(NamedOrBlankNode::from(this.node()), predicate, object, GraphName::DefaultGraph)
        };
        (0..size).map(|_| quad(self)).collect()
    }

    fn variable(&mut self) -> String {
        format!("?v{}", self.rng.random_range(0..self.variables))
    }

    fn term(&mut self) -> String {
        match self.rng.random_range(0..10) {
            0 => self.node().to_string(),
            1 => self.rng.random_range(0..6).to_string(),
            _ => self.variable(),
        }
    }

    fn triples(&mut self, predicates: &[&str]) -> String {
        let triple = |this: &mut Self| {
            let subject =
                if this.rng.random_range(0..8) == 0 { this.node().to_string() } else { this.variable() };
            let predicate = this.pick(predicates);
            format!("{subject} <http://e/{predicate}> {} . ", this.term())
        };
        (0..self.rng.random_range(1..3)).map(|_| triple(self)).collect()
    }

    /// A pattern that is answered elsewhere in one text, and here in the other.
    fn elsewhere(&mut self, is_plain: bool) -> [String; 2] {
        let mut inner = self.triples(&REMOTE);
        match if is_plain { 9 } else { self.rng.random_range(0..6) } {
            0 => inner = format!("{inner} OPTIONAL {{ {} }} ", self.triples(&REMOTE)),
            1 => inner = format!("{inner} FILTER({} != {}) ", self.variable(), self.term()),
            2 => inner = format!("{{ {inner} }} UNION {{ {} }} ", self.triples(&REMOTE)),
            3 => inner = format!("{{ SELECT DISTINCT {} {{ {inner} }} }} ", self.variable()),
            _ => {}
        }
        [format!("SERVICE <{THERE}> {{ {inner} }} "), format!("{{ {inner} }} ")]
    }

    fn query(&mut self) -> [String; 2] {
        self.variables = self.rng.random_range(2..5);
        let mut texts = [String::new(), String::new()];
        let both = |texts: &mut [String; 2], add: [String; 2]| {
            texts.iter_mut().zip(add).for_each(|(text, add)| text.push_str(&add));
        };
        for _ in 0..self.rng.random_range(1..4) {
            let add = match self.rng.random_range(0..8) {
                0..=2 => {
                    let triples = self.triples(&LOCAL);
                    [triples.clone(), triples]
                }
                3 => {
                    let triples = format!("OPTIONAL {{ {} }} ", self.triples(&LOCAL));
                    [triples.clone(), triples]
                }
                4 => self.elsewhere(false).map(|text| format!("OPTIONAL {{ {text} }} ")),
                5 => self.elsewhere(false).map(|text| format!("MINUS {{ {text} }} ")),
                _ => self.elsewhere(false),
            };
            both(&mut texts, add);
        }
        if self.rng.random_range(0..4) == 0 {
            let not = self.pick(&["", "NOT "]);
            // here, groups inside EXISTS see the solution at hand
            both(&mut texts, self.elsewhere(true).map(|text| format!("FILTER {not}EXISTS {{ {text} }} ")));
        }
        let distinct = self.pick(&["", "DISTINCT "]);
        let vars: String = (0..self.variables).map(|n| format!("?v{n} ")).collect();
        texts.map(|text| format!("SELECT {distinct}{vars}{{ {text} }}"))
    }
}

fn check_parts(settings: &Settings, rounds: u64, queries: u64) {
    let seed = snowmelt_io::test_seed(1);
    let mut wrong = Vec::new();
    let mut rows = 0;
    for round in 0..rounds {
        let rng = StdRng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let mut parted = Parted { rng, variables: 2 };
        let all = parted.graph();
        let is_local =
            |quad: &&Quad| LOCAL.iter().any(|p| quad.predicate.as_str().ends_with(&format!("/{p}")));
        let local: Vec<Quad> = all.iter().filter(is_local).cloned().collect();
        let remote: Vec<Quad> = all.iter().filter(|quad| !is_local(quad)).cloned().collect();
        // every other time another engine is asked
        let there = match round % 2 {
            0 => Fixture::open(&remote, &Settings::default()).into(),
            _ => Database::oxigraph(&remote),
        };
        let endpoints = InProcess::new(vec![(THERE.to_owned(), there)]);
        let here = Fixture::open(&local, settings).asking(endpoints.remote());
        let whole = Fixture::open(&all, &Settings::default());
        for _ in 0..queries {
            let [parts, one] = parted.query();
            let expected = whole.answer(&one, None).unwrap_or_else(|e| panic!("{one}: {e}"));
            let same = here.answer(&parts, None).map_err(|e| e.to_string()).and_then(|actual| {
                if let Answer::Solutions(solutions) = &actual {
                    rows += solutions.rows.len();
                }
                answer::same(&actual, &expected)
            });
            if let Err(why) = same {
                wrong.push(format!("round {round}, {}: {why}\n{parts}\n{one}\n", settings.name));
            }
        }
    }
    wrong.sort_by_key(String::len); // the shortest first
    let shown = wrong[..wrong.len().min(3)].join("\n");
    assert!(wrong.is_empty(), "SNOWMELT_SEED={seed}: {} answers are wrong:\n{shown}", wrong.len());
    assert!(rows > 100, "only {rows} rows");
}

#[test]
fn parts_give_the_answers_of_the_whole() {
    let rounds = std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    check_parts(&Settings::default(), rounds, 40);
}

#[test]
fn parts_give_the_answers_of_the_whole_in_small_batches() {
    for batch_rows in [Some(1), Some(3)] {
        check_parts(&Settings { batch_rows, ..Settings::default() }, 6, 30);
    }
}
