//! The scanner against oxttl, on lines made of right and wrong pieces.

use proptest::prelude::*;
use snowmelt_rdfxml::OddTerms;

use super::*;
use crate::input::intern::{Need, OwnAnnotation, position};
use crate::{Lexical, Term};

/// The term of a reference, from the chunk alone.
fn term(parsed: &Parsed, reference: Ref) -> Term {
    let Some(index) = position(reference) else {
        let id = TermId(reference);
        let mut lexical = Lexical::new();
        let text = lexical.write(id).expect("finished ids are inline");
        return TermRef::typed(text, id.fixed_datatype().expect("its datatype is fixed")).to_owned();
    };
    let local = &parsed.terms[index as usize];
    if local.need == Need::Number(crate::TermKind::Triple) {
        let [s, p, o] = parsed.triple(local).terms.map(|part| oxrdf::Term::from(&term(parsed, part)));
        let subject = match s {
            oxrdf::Term::NamedNode(node) => oxrdf::NamedOrBlankNode::from(node),
            oxrdf::Term::BlankNode(node) => node.into(),
            other => panic!("{other} is no subject"),
        };
        let oxrdf::Term::NamedNode(predicate) = p else { panic!("{p} is no predicate") };
        return Term::Triple(Box::new(oxrdf::Triple { subject, predicate, object: o }));
    }
    let text = std::str::from_utf8(parsed.bytes(local.lexical)).unwrap();
    match (local.need, &parsed.annotations[local.annotation as usize]) {
        (Need::Number(crate::TermKind::Iri), _) => TermRef::Iri(text).to_owned(),
        (Need::Number(crate::TermKind::Blank), _) => TermRef::Blank(text).to_owned(),
        (_, OwnAnnotation::Plain) => TermRef::string(text).to_owned(),
        (_, OwnAnnotation::Language(tag)) => TermRef::tagged(text, tag).to_owned(),
        (_, OwnAnnotation::Directed(tag, to)) => TermRef::directed(text, tag, *to).to_owned(),
        (_, OwnAnnotation::Datatype(iri)) => TermRef::typed(text, iri).to_owned(),
    }
}

fn parse(text: &[u8], quads: bool, lenient: bool) -> Parsed {
    let chunk = Parsed { text: text.to_vec(), ..Parsed::default() };
    parse_chunk(
        &mut Interner::new(),
        0,
        chunk,
        None,
        LineOptions { quads, lenient, odd_terms: OddTerms::Refused },
    )
}

fn quads_of(parsed: &Parsed) -> Vec<[Option<Term>; 4]> {
    let term = |r: Ref| (r != TermId::DEFAULT_GRAPH.0).then(|| term(parsed, r));
    parsed.rows.iter().map(|row| row.map(term)).collect()
}

/// oxttl's reading of every line by itself: its quads, or `None` when anything is wrong.
fn oracle(text: &[u8], quads: bool) -> Vec<Option<Vec<[Option<Term>; 4]>>> {
    let mut lines: Vec<&[u8]> = text.split(|&b| b == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    let row = |q: oxrdf::Quad| {
        let graph = match q.graph_name {
            oxrdf::GraphName::NamedNode(n) => Some(Term::from(oxrdf::Term::from(n))),
            oxrdf::GraphName::BlankNode(n) => Some(Term::from(oxrdf::Term::from(n))),
            oxrdf::GraphName::DefaultGraph => None,
        };
        let subject = oxrdf::Term::from(q.subject);
        let predicate = oxrdf::Term::from(q.predicate);
        [Some(subject.into()), Some(predicate.into()), Some(q.object.into()), graph]
    };
    let parse = |line: &[u8]| -> Option<Vec<_>> {
        if quads {
            NQuadsParser::new().for_slice(line).map(|q| q.ok().map(row)).collect()
        } else {
            let default = oxrdf::GraphName::DefaultGraph;
            let triples = NTriplesParser::new().for_slice(line);
            triples.map(|t| t.ok().map(|t| row(t.in_graph(default.clone())))).collect()
        }
    };
    lines.into_iter().map(parse).collect()
}

fn check(text: &[u8], quads: bool) {
    let lines = oracle(text, quads);
    let good: Vec<_> = lines.iter().flatten().flatten().cloned().collect();
    let parsed = parse(text, quads, true);
    assert_eq!(quads_of(&parsed), good, "{:?}", String::from_utf8_lossy(text));
    assert_eq!(parsed.skipped, lines.iter().filter(|l| l.is_none()).count() as u64);
    assert_eq!((parsed.lines, parsed.fault.clone()), (lines.len() as u64, None));
    let strict = parse(text, quads, false);
    let first_bad = lines.iter().position(|l| l.is_none());
    assert_eq!(strict.fault.map(|f| f.line), first_bad.map(|l| l as u64));
}

/// Pieces of lines, right and wrong.
const PIECES: &[&str] = &[
    "<http://a.example/s>",
    "<http://a.example/s>",
    "<http://a.example/p#x>",
    "<urn:isbn:1>",
    "<http://a/%41?q=[1]>",
    "<http://a/\u{e9}>",
    "<http://a/\\u00e9>",
    "<relative>",
    "<http://a/ b>",
    "<http://a/#b#c>",
    "<http://a:99999x/>",
    "<http://[::1]/>",
    "<>",
    "<http://a/",
    "_:a",
    "_:b-1",
    "_:b.c",
    "_:-",
    "_:é",
    "_:",
    "_:1",
    "\"\"",
    "\"plain\"",
    "\"longer than seven bytes\"",
    "\"é\"",
    "\"a\\nb\"",
    "\"a\\\"b\"",
    "\"\\u00e9\\U0001F600\"",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\uD800\"",
    "\"open",
    "\"tab\there\"",
    "\"back\\\\\"",
    "\"cr\rhere\"",
    "@en",
    "@EN-gb",
    "@de-1996",
    "@x-y",
    "@",
    "@e",
    "@en-",
    "@abcdefghij",
    "@en-abcdefghijk",
    "^^<http://www.w3.org/2001/XMLSchema#integer>",
    "^^<http://www.w3.org/2001/XMLSchema#string>",
    "^^<http://a.example/usd>",
    "^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
    "^^<bad>",
    "^^x",
    "^",
    "\"12\"",
    "\"-0012\"",
    "\"1.50\"",
    "\"2008-01-02\"^^<http://www.w3.org/2001/XMLSchema#date>",
    ".",
    ".",
    ".",
    " ",
    " ",
    " ",
    "\t",
    "# comment",
    "#",
    "\r",
    "<<(",
    ")>>",
    "<<( _:a <http://a.example/p#x> \"longer than seven bytes\" )>>",
    "<<(<http://a.example/s><urn:isbn:1><<( <urn:isbn:1> <urn:isbn:1> \"12\"@en--ltr )>>)>>",
    "<< <urn:isbn:1> <urn:isbn:1> <urn:isbn:1> >>",
    "@en--rtl",
    "@EN-gb--ltr",
    "@en--LTR",
    "@en--",
    "^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString>",
    "a",
    "'x'",
    "\u{0}",
    "\u{feff}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn reads_what_oxttl_reads(
        lines in prop::collection::vec(prop::collection::vec(prop::sample::select(PIECES), 0..12), 0..6),
        quads: bool,
        last: bool,
    ) {
        let mut text = lines.iter().map(|l| l.concat()).collect::<Vec<_>>().join("\n");
        if last && !text.is_empty() { text.push('\n'); }
        check(text.as_bytes(), quads);
    }

    /// Mostly right lines: every shape of term in every place.
    #[test]
    fn reads_whole_statements(
        lines in prop::collection::vec((
            prop::sample::select(&PIECES[..21]), prop::sample::select(&PIECES[..8]),
            prop::sample::select(PIECES), prop::sample::select(PIECES), prop::sample::select(PIECES),
            prop::sample::select(&[" ", "", "\t", "  "][..]),
            prop::sample::select(&[".", " .", " . # c", ".#c\r", "..", ""][..])), 1..8),
        quads: bool,
    ) {
        let text: String = lines.iter()
            .map(|(s, p, o, t, g, b, end)| format!("{s}{b}{p}{b}{o}{t}{b}{g}{end}\n")).collect();
        check(text.as_bytes(), quads);
    }
}

#[test]
fn not_utf8() {
    for text in [
        &b"<http://a/s> <http://a/p> \"\xff\" .\n"[..],
        b"<http://a/\xff> <http://a/p> \"x\" .\n",
        b"# \xff\n<http://a/s> <http://a/p> \"x\" .\n",
        b"<http://a/s> <http://a/p> _:\xff .\n",
    ] {
        check(text, false);
    }
}

/// A carriage return ends a comment; what follows counts, also at the very end.
#[test]
fn comments_end_at_carriage_returns() {
    for text in
        ["# c\r.", "# c\r.\n", "# c\r", "# c\r\n", "# c\r\r\n", "# c\r<http://a/s> <http://a/p> \"x\" ."]
    {
        check(text.as_bytes(), false);
    }
}

#[test]
fn says_where() {
    let parsed = parse(b"\n<http://a/s> <http://a/p> <http://a/o> .\n<http://a/s> p \"x\" .\n", false, false);
    let fault = parsed.fault.unwrap();
    assert_eq!((fault.line, fault.column), (2, 14), "{}", fault.message);
}

#[test]
fn repeated_terms_are_one() {
    let text = b"<http://a/s> <http://a/p> \"a text beyond inline\" .\n<http://a/s> <http://a/p> \"a text\\u0020beyond inline\" .\n";
    let parsed = parse(text, false, false);
    // Two spellings, one term: the same name for the whole load.
    assert_eq!(parsed.terms.len(), 4);
    assert_eq!(parsed.terms[2].hash, parsed.terms[3].hash);
    assert_ne!(parsed.terms[0].hash, parsed.terms[1].hash);
}

#[test]
fn versions_are_lines_of_their_own() {
    for version in ["VERSION \"1.2\"", " VERSION\t\"1.2-basic\"  # c", "VERSION \"1.1\"\r"] {
        let text = format!("{version}\n<http://a/s> <http://a/p> <http://a/o> .\n");
        let parsed = parse(text.as_bytes(), false, false);
        assert_eq!((parsed.rows.len(), parsed.lines, parsed.fault), (1, 2, None), "{version}");
    }
    for wrong in ["VERSION 1.2", "VERSION \"1.2", "VERSION \"1.2\" .", "version \"1.2\"", "VERSION '1.2'"] {
        assert!(parse(wrong.as_bytes(), false, false).fault.is_some(), "{wrong}");
    }
}
