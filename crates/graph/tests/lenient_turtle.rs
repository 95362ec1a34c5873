//! Turtle and TriG with malformed terms and signs anywhere: a lenient load leaves out the triples
//! that contain them and no other, keeps the rest in its graph, and reports the places.
//!
//! Documents are random: lists of predicates and of objects, nested brackets, graphs, comments,
//! strings over several lines, all quotes. `SNOWMELT_SEED=n` (or `new`) makes others,
//! `SNOWMELT_ROUNDS=n` more of them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, Dataset, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use oxrdfio::{RdfFormat, RdfParser};
use snowmelt_database::OpenOptions;
use snowmelt_graph::load::{self, LoadError, LoadOptions, LoadReport, Source};
use snowmelt_graph::{DumpFormat, GraphDatabase};

const HEAD: &str = "@prefix e: <http://e/> . PREFIX f: <http://f/x#>\n@prefix : <http://g/> .\n";

/// Malformed objects, each on as many lines as it has line feeds.
const BAD_OBJECTS: [&[u8]; 30] = [
    b"<http://e/a b>",
    b"<http://e/x#a#b>",
    b"<http://e/\\u0020>",
    b"<http://e/\\q>",
    b"<http://e/{a}>",
    b"<relative>",
    b"\"x\"@zh-classical1",
    b"\"x\"@en_US",
    b"'x'@1",
    b"\"a\\qb\"",
    b"'a\\u12'",
    b"\"\\uD800\"@en",
    b"\"one line\nand another\"",
    b"'one line\nand another'@en",
    b"\"\"\"a long one\n. <http://e/not> <http://e/a> <http://e/triple> .\n\\q\"\"\"",
    b"'''a long one\n. e:not e:a 'triple' .\n\\q'''^^e:t",
    b"\"x\"^^<http://e/a b>",
    b"\"x\"^^none:t",
    b"\"x\"^^\"y\"",
    b"none:x",
    b"e:a/b",
    b"e:a|b",
    b"e:%4",
    b"f:\\b",
    b"1.2.3",
    b"1e",
    b"word",
    b"True",
    b"\"not \xff UTF-8\"",
    b"e:\xff",
];
const BAD_SUBJECTS: [&[u8]; 8] =
    [b"<http://e/a b>", b"\"text\"", b"'text'@en", b"\"text\"^^e:t", b"5", b"none:x", b"true", b"e:a=b"];
const BAD_PREDICATES: [&[u8]; 7] =
    [b"<http://e/#a#b>", b"\"text\"", b"_:b", b"-1.5", b"none:x", b"[ e:a 1 ; e:b ( 2 ) ]", b"()"];

/// A document under construction.
struct Maker {
    random: u64,
    has_graphs: bool,
    text: Vec<u8>,
    line: u64,
    blanks: u32,
    bad_percent: u64,
    graph: GraphName,
    kept: Vec<Quad>,
    left_out: Vec<u64>,
}

/// A term, or the line of a malformed one.
type Made<T> = Result<T, u64>;

impl Maker {
    fn new(seed: u64, has_graphs: bool, bad_percent: u64) -> Self {
        let mut maker = Maker {
            random: seed,
            has_graphs,
            text: Vec::new(),
            line: 1,
            blanks: 0,
            bad_percent,
            graph: GraphName::DefaultGraph,
            kept: Vec::new(),
            left_out: Vec::new(),
        };
        maker.write(HEAD.as_bytes());
        for _ in 0..12 {
            maker.block();
        }
        maker
    }

    fn below(&mut self, n: u64) -> u64 {
        snowmelt_base::random::lcg(&mut self.random);
        (self.random >> 33) % n
    }

    fn is_bad(&mut self) -> bool {
        self.below(100) < self.bad_percent
    }

    fn any<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn write(&mut self, text: &[u8]) {
        self.line += text.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.text.extend_from_slice(text);
    }

    /// White space or a comment between two tokens.
    fn space(&mut self) {
        let space = self.any(&[
            &b" "[..],
            b" ",
            b" ",
            b"\n",
            b"\t",
            b" \n  ",
            b" # a comment, \"with ' <quotes ; and . signs\n",
            b"\r\n",
        ]);
        self.write(space);
    }

    /// Writes a malformed token; returns its line.
    fn bad<T>(&mut self, of: &[&[u8]]) -> Made<T> {
        let (line, text) = (self.line, self.any(of));
        self.write(text);
        Err(line)
    }

    fn block(&mut self) {
        if !self.has_graphs || self.below(3) == 0 {
            self.statement();
            self.write(b".");
            return self.space();
        }
        let name = self.any(&[
            ("", "<http://e/g1>"),
            ("GRAPH", "e:g2"),
            ("graph", "<http://e/g1>"),
            ("", "f:g3"),
            ("GRAPH", "_:gb"),
        ]);
        self.graph = match name.1 {
            "<http://e/g1>" => NamedNode::new_unchecked("http://e/g1").into(),
            "e:g2" => NamedNode::new_unchecked("http://e/g2").into(),
            "f:g3" => NamedNode::new_unchecked("http://f/x#g3").into(),
            _ => BlankNode::new_unchecked("gb").into(),
        };
        self.write(format!("{} {} {{", name.0, name.1).as_bytes());
        let statements = self.below(4);
        for i in 0..statements {
            self.statement();
            if i + 1 < statements || self.below(2) == 0 {
                self.write(b".");
            }
            self.space();
        }
        self.write(b"}");
        self.space();
        self.graph = GraphName::DefaultGraph;
    }

    fn statement(&mut self) {
        let kind = self.below(10);
        let subject = match kind {
            0 if self.is_bad() || self.is_bad() => self.bad(&BAD_SUBJECTS),
            1 => {
                let node = self.properties(2);
                if self.below(2) == 0 {
                    return self.space();
                }
                Ok(node)
            }
            2 => Ok(self.list(2)),
            3 => {
                self.write(b"[ ]");
                Ok(self.blank().into())
            }
            _ => self.subject(),
        };
        self.space();
        self.predicates(&subject, 2);
    }

    fn subject(&mut self) -> Made<NamedOrBlankNode> {
        if self.is_bad() && self.below(4) == 0 {
            return self.bad(&BAD_SUBJECTS);
        }
        Ok(self.resource())
    }

    fn resource(&mut self) -> NamedOrBlankNode {
        let n = self.below(5);
        let (text, iri) = match self.below(4) {
            0 => (format!("<http://e/s{n}>"), format!("http://e/s{n}")),
            1 => (format!("e:s{n}"), format!("http://e/s{n}")),
            2 => (format!("f:s.{n}"), format!("http://f/x#s.{n}")),
            _ => {
                self.write(format!("_:n{n}").as_bytes());
                return BlankNode::new_unchecked(format!("n{n}")).into();
            }
        };
        self.write(text.as_bytes());
        NamedNode::new_unchecked(iri).into()
    }

    fn blank(&mut self) -> BlankNode {
        self.blanks += 1;
        BlankNode::new_unchecked(format!("m{}", self.blanks))
    }

    /// Writes predicates and their objects, with `;` and `,`, sometimes one `;` too many.
    fn predicates(&mut self, subject: &Made<NamedOrBlankNode>, depth: u32) {
        let predicates = 1 + self.below(3);
        for p in 0..predicates {
            let predicate = self.predicate();
            self.space();
            let objects = 1 + self.below(3);
            for o in 0..objects {
                let object = self.object(depth);
                self.tell(subject, &predicate, object);
                if o + 1 < objects {
                    self.space();
                    self.write(b",");
                    self.space();
                }
            }
            self.space();
            if p + 1 < predicates || self.below(5) == 0 {
                self.write(b";");
                self.space();
            }
        }
    }

    fn predicate(&mut self) -> Made<NamedNode> {
        if self.is_bad() && self.below(4) == 0 {
            return self.bad(&BAD_PREDICATES);
        }
        let n = self.below(3);
        let (text, iri) = match self.below(4) {
            0 => ("a".to_owned(), rdf::TYPE.as_str().to_owned()),
            1 => (format!("<http://e/p{n}>"), format!("http://e/p{n}")),
            2 => (format!(":p{n}"), format!("http://g/p{n}")),
            _ => (format!("e:p{n}"), format!("http://e/p{n}")),
        };
        self.write(text.as_bytes());
        Ok(NamedNode::new_unchecked(iri))
    }

    fn object(&mut self, depth: u32) -> Made<Term> {
        if self.is_bad() {
            return self.bad(&BAD_OBJECTS);
        }
        match self.below(if depth > 0 { 9 } else { 6 }) {
            6 => return Ok(self.properties(depth - 1).into()),
            7 => return Ok(self.list(depth - 1).into()),
            8 => {
                self.write(b"[]");
                return Ok(self.blank().into());
            }
            0 | 1 => return Ok(self.resource().into()),
            _ => {}
        }
        let typed =
            |value: &str, datatype: oxrdf::NamedNodeRef<'_>| Literal::new_typed_literal(value, datatype);
        let (text, literal) = match self.below(12) {
            0 => ("\"text with . ; , # <signs>\"", Literal::new_simple_literal("text with . ; , # <signs>")),
            1 => ("'it is \"so\"'", Literal::new_simple_literal("it is \"so\"")),
            2 => (
                "\"\"\"two\nlines, \"quoted\"\" and . [ ( { ends\"\"\"",
                Literal::new_simple_literal("two\nlines, \"quoted\"\" and . [ ( { ends"),
            ),
            3 => ("'''a\\'''b\n\\n'''", Literal::new_simple_literal("a'''b\n\n")),
            4 => ("\"x\"@en-GB", Literal::new_language_tagged_literal_unchecked("x", "en-gb")),
            5 => ("\"1\"^^<http://e/t>", typed("1", NamedNode::new_unchecked("http://e/t").as_ref())),
            6 => ("'1' ^^ e:t", typed("1", NamedNode::new_unchecked("http://e/t").as_ref())),
            7 => ("-1.50", typed("-1.50", xsd::DECIMAL)),
            8 => ("+.5e-3", typed("+.5e-3", xsd::DOUBLE)),
            9 => ("42", typed("42", xsd::INTEGER)),
            10 => ("true", typed("true", xsd::BOOLEAN)),
            _ => ("\"\"", Literal::new_simple_literal("")),
        };
        self.write(text.as_bytes());
        Ok(literal.into())
    }

    /// Writes `[ … ]` with contents.
    fn properties(&mut self, depth: u32) -> NamedOrBlankNode {
        let node = NamedOrBlankNode::from(self.blank());
        self.write(b"[");
        self.space();
        self.predicates(&Ok(node.clone()), depth.saturating_sub(1));
        self.write(b"]");
        node
    }

    /// Writes `( … )`.
    fn list(&mut self, depth: u32) -> NamedOrBlankNode {
        self.write(b"(");
        let members = self.below(4);
        let (mut first, mut last) = (None, None::<NamedOrBlankNode>);
        for _ in 0..members {
            self.space();
            let cell = NamedOrBlankNode::from(self.blank());
            let object = self.object(depth.saturating_sub(1));
            if let Some(last) = last {
                self.tell(&Ok(last), &Ok(rdf::REST.into_owned()), Ok(cell.clone().into()));
            }
            self.tell(&Ok(cell.clone()), &Ok(rdf::FIRST.into_owned()), object);
            first.get_or_insert(cell.clone());
            last = Some(cell);
        }
        self.space();
        self.write(b")");
        if let Some(last) = last {
            self.tell(&Ok(last), &Ok(rdf::REST.into_owned()), Ok(rdf::NIL.into_owned().into()));
        }
        first.unwrap_or(rdf::NIL.into_owned().into())
    }

    fn tell(&mut self, s: &Made<NamedOrBlankNode>, p: &Made<NamedNode>, o: Made<Term>) {
        match (s, p, o) {
            (Err(line), _, _) | (Ok(_), Err(line), _) => self.left_out.push(*line),
            (Ok(_), Ok(_), Err(line)) => self.left_out.push(line),
            (Ok(s), Ok(p), Ok(o)) => {
                self.kept.push(Quad::new(s.clone(), p.clone(), o, self.graph.clone()));
            }
        }
    }
}

fn run(db: &Path, text: &[u8], format: RdfFormat, lenient: bool) -> Result<LoadReport, LoadError> {
    let options = LoadOptions {
        format: Some(format),
        threads: 2,
        lenient,
        lenient_most: 1.0,
        ..LoadOptions::default()
    };
    let read = Box::new(std::io::Cursor::new(text.to_vec()));
    let source = Source::Reader { name: "text".to_owned(), read };
    load::load(db, vec![source], &options, &(), &AtomicBool::new(false))
}

/// The quads, with canonical names of blank nodes.
fn canonical(quads: impl IntoIterator<Item = Quad>) -> Vec<String> {
    let mut dataset: Dataset = quads.into_iter().collect();
    dataset.canonicalize(CanonicalizationAlgorithm::Unstable);
    let mut lines: Vec<String> = dataset.iter().map(|quad| quad.to_string()).collect();
    lines.sort();
    lines
}

fn stored(db: &Path) -> Vec<String> {
    let database = GraphDatabase::open(db, &OpenOptions::default()).unwrap();
    let mut out = Vec::new();
    database.dump(DumpFormat::NQuads, &mut out).unwrap();
    canonical(RdfParser::from_format(RdfFormat::NQuads).for_slice(&out).map(Result::unwrap))
}

fn rounds(default: u64) -> u64 {
    std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn check(seed: u64, has_graphs: bool, bad_percent: u64) {
    let format = if has_graphs { RdfFormat::TriG } else { RdfFormat::Turtle };
    let made = Maker::new(seed, has_graphs, bad_percent);
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("db");
    let text = String::from_utf8_lossy(&made.text).into_owned();
    let expected = canonical(made.kept);
    if made.left_out.is_empty() {
        let strict = folder.path().join("strict");
        run(&strict, &made.text, format, false).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(stored(&strict) == expected, "seed {seed} {format}, strictly:\n{text}");
    }
    let report = run(&db, &made.text, format, true).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let actual = stored(&db);
    let missing: Vec<_> = expected.iter().filter(|quad| !actual.contains(quad)).take(3).collect();
    let extra: Vec<_> = actual.iter().filter(|quad| !expected.contains(quad)).take(3).collect();
    assert!(actual == expected, "seed {seed} {format}: missing {missing:#?} extra {extra:#?}\n{text}");
    let mut lines: Vec<u64> = report.left_out.iter().map(|left_out| left_out.line).collect();
    let mut expected = made.left_out;
    assert_eq!(report.skipped, expected.len() as u64, "seed {seed}: {:#?}\n{text}", report.left_out);
    if expected.len() <= lines.len() {
        lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(lines, expected, "seed {seed}: {:#?}\n{text}", report.left_out);
    }
}

#[test]
fn a_term_that_cannot_be_read_costs_its_triples_alone() {
    let seed = snowmelt_io::test_seed(1);
    for round in 0..rounds(32) {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(round);
        check(seed, round % 2 == 0, [0, 3, 15, 40][round as usize / 2 % 4]);
    }
}

/// Signs, quotes and letters to insert at random places.
const STRAYS: [&[u8]; 22] = [
    b".", b";", b",", b"[", b"]", b"(", b")", b"<", b">", b"\"", b"'", b"^^", b"^", b"\\", b"|", b"\xff",
    b":", b"@", b"@en", b"x", b"\n\"", b"# ",
];

/// The tokens of a statement with a distinct subject, each with the space before it.
fn tokens(maker: &mut Maker, number: u64) -> Vec<Vec<u8>> {
    let mut tokens: Vec<Vec<u8>> = vec![format!("<http://e/s{number}>").into_bytes()];
    let predicates = 1 + maker.below(3);
    for p in 0..predicates {
        tokens.push(format!(" e:p{p}").into_bytes());
        let object = maker.any(&[
            &["1"][..],
            &["e:o", ",", "<http://e/x>"],
            &["\"text\"", "@en"],
            &["'text'", "^^", "e:t"],
            &["[", "e:q", "\"x\"", "]"],
            &["(", "1", "e:o", ")"],
            &["\"a . b ; c\""],
        ]);
        tokens.extend(object.iter().map(|token| format!(" {token}").into_bytes()));
        tokens.push(if p + 1 < predicates { b" ;\n ".to_vec() } else { b" .\n".to_vec() });
    }
    tokens
}

/// Inserts or removes a token.
fn damage(maker: &mut Maker, tokens: &mut Vec<Vec<u8>>) {
    let at = maker.below(tokens.len() as u64) as usize;
    if maker.below(2) == 0 {
        let stray = maker.any(&STRAYS);
        tokens.insert(at + 1, [b" ", stray].concat());
    } else {
        tokens.remove(at);
    }
}

/// The quads of undamaged subjects, without the names of blank nodes.
fn unhurt(db: &Path, hurt: u64) -> Vec<String> {
    let is_of = |quad: &String, number: u64| quad.starts_with(&format!("<http://e/s{number}> "));
    let without_labels = |quad: String| {
        let tokens = quad.split(' ').map(|token| if token.starts_with("_:") { "_:" } else { token });
        tokens.collect::<Vec<_>>().join(" ")
    };
    let mut quads = stored(db);
    // the text after a lost subject belongs to another one
    quads.retain(|q| q.starts_with("<http://e/s") && !is_of(q, hurt) && !is_of(q, hurt + 1));
    quads.into_iter().map(without_labels).collect()
}

#[test]
fn a_sign_too_many_or_too_few_costs_its_statement_alone() {
    const STATEMENTS: u64 = 12;
    let seed = snowmelt_io::test_seed(1);
    for round in 0..rounds(60) {
        let mut maker = Maker::new(seed.wrapping_mul(1_000_003).wrapping_add(round), false, 0);
        let has_graphs = round % 2 == 0;
        let hurt = maker.below(STATEMENTS);
        let mut text = b"@prefix e: <http://e/> .\n".to_vec();
        let mut sound = text.clone();
        for number in 0..STATEMENTS {
            let mut tokens = tokens(&mut maker, number);
            let begin: &[u8] = if has_graphs && number % 3 == 0 { b"GRAPH e:g {\n" } else { b"" };
            let end: &[u8] = if has_graphs && number % 3 == 2 { b"}\n" } else { b"" };
            // the next statement may be lost with it
            if number != hurt && number != hurt + 1 {
                sound.extend([begin, &tokens.concat(), end].concat());
            } else {
                sound.extend([begin, end].concat());
            }
            if number == hurt {
                damage(&mut maker, &mut tokens);
            }
            text.extend([begin, &tokens.concat(), end].concat());
        }
        let format = if has_graphs { RdfFormat::TriG } else { RdfFormat::Turtle };
        let folder = tempfile::tempdir().unwrap();
        let (db, whole) = (folder.path().join("db"), folder.path().join("whole"));
        let shown = String::from_utf8_lossy(&text).into_owned();
        run(&db, &text, format, true).unwrap_or_else(|e| panic!("round {round}: {e}\n{shown}"));
        run(&whole, &sound, format, false).unwrap_or_else(|e| panic!("round {round}: {e}"));
        let (mut actual, mut expected) = (unhurt(&db, hurt), unhurt(&whole, hurt));
        actual.sort();
        expected.sort();
        let missing: Vec<_> = expected.iter().filter(|quad| !actual.contains(quad)).take(3).collect();
        let extra: Vec<_> = actual.iter().filter(|quad| !expected.contains(quad)).take(3).collect();
        assert!(
            actual == expected,
            "seed {seed} round {round}: missing {missing:#?} extra {extra:#?}\n{shown}"
        );
    }
}
