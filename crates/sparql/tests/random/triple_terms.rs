//! Random queries about triple terms, for the naive evaluator: patterns inside them of which any
//! part may be known, triple terms within triple terms, the functions that make them and take them
//! apart, and all of that where what a part is depends on something else (OPTIONAL, MINUS, EXISTS,
//! sub-selects, GRAPH, paths).
//!
//! Names are few, so that a name in a triple term is mostly one of the patterns around it, too.

use oxrdf::{BlankNode, GraphName, Literal, NamedOrBlankNode, Quad, Term, Triple};

use crate::Questions;
use crate::choice::Choice;
use crate::generate::iri;

pub struct TripleTerms {
    choice: Choice,
    fresh: u32,
}

const NAMES: [&str; 5] = ["?a", "?b", "?c", "?d", "?e"];
const PREDICATES: [&str; 2] = ["p", "q"];

impl Questions for TripleTerms {
    fn new(seed: u64) -> Self {
        Self { choice: Choice::new(seed), fresh: 0 }
    }

    fn graph(&mut self) -> Vec<Quad> {
        let size = self.choice.pick(&[3, 8, 15, 25]);
        (0..size).map(|_| self.quad()).collect()
    }

    fn query(&mut self) -> String {
        self.fresh = 0;
        let group = format!("WHERE {{ {} }}", self.group(2));
        let v = self.name();
        match self.choice.up_to(10) {
            0 => format!("ASK {group}"),
            1 => format!("SELECT DISTINCT * {group}"),
            2 => format!("SELECT DISTINCT {v} {group}"),
            3 => format!("SELECT (COUNT(DISTINCT *) AS ?n) {group}"),
            4 => format!("SELECT {v} (COUNT(*) AS ?n) {group} GROUP BY {v}"),
            5 => format!("SELECT (COUNT(DISTINCT {v}) AS ?n) {group}"),
            6 => format!("SELECT * {group} ORDER BY {v}"),
            _ => format!("SELECT * {group}"),
        }
    }

    fn pattern(&mut self) -> String {
        self.fresh = 0;
        self.group(2)
    }
}

impl TripleTerms {
    fn quad(&mut self) -> Quad {
        let graph = match self.choice.up_to(5) {
            0 => GraphName::from(iri("g1")),
            _ => GraphName::DefaultGraph,
        };
        let triple = self.triple(2);
        Quad::new(triple.subject, triple.predicate, triple.object, graph)
    }

    fn triple(&mut self, levels: u32) -> Triple {
        let subject = match self.choice.up_to(6) {
            0 => NamedOrBlankNode::from(BlankNode::new_unchecked("n")),
            _ => iri(&format!("r{}", self.choice.up_to(3))).into(),
        };
        let object = match self.choice.up_to(if levels > 0 { 9 } else { 4 }) {
            0 => Term::from(BlankNode::new_unchecked("n")),
            1 => Literal::from(i64::from(self.choice.up_to(2))).into(),
            2 | 3 => iri(&format!("r{}", self.choice.up_to(3))).into(),
            _ => self.triple(levels - 1).into(),
        };
        Triple::new(subject, iri(self.choice.pick(&PREDICATES)), object)
    }

    /// The inside of braces.
    fn group(&mut self, depth: u32) -> String {
        let parts = self.choice.pick(&[1, 1, 2, 2, 3]);
        (0..parts).map(|_| self.element(depth)).collect::<Vec<_>>().join(" ")
    }

    fn element(&mut self, depth: u32) -> String {
        let less = depth.saturating_sub(1);
        match self.choice.up_to(if depth == 0 { 11 } else { 22 }) {
            0..=5 => format!("{} {} {} .", self.subject(), self.predicate(), self.object(2)),
            6 => format!("FILTER({})", self.condition()),
            7 => self.values(),
            8 => {
                self.fresh += 1;
                let var = if self.choice.up_to(3) == 0 {
                    self.name().to_owned()
                } else {
                    format!("?b{}", self.fresh)
                };
                format!("BIND({} AS {var})", self.term(2))
            }
            9 => {
                let path = self.choice.pick(&[
                    "<http://e/p>*",
                    "<http://e/q>?",
                    "<http://e/p>/<http://e/q>",
                    "^<http://e/p>",
                ]);
                format!("{} {path} {} .", self.subject(), self.object(1))
            }
            10 => format!(
                "GRAPH {} {{ {} }}",
                self.choice.pick(&["?a", "?g", "<http://e/g1>"]),
                self.element(0)
            ),
            11..=13 => format!("OPTIONAL {{ {} }}", self.group(less)),
            14 => format!("OPTIONAL {{ {} FILTER({}) }}", self.group(less), self.condition()),
            15 | 16 => format!("MINUS {{ {} }}", self.group(less)),
            17 => format!("{{ {} }} UNION {{ {} }}", self.group(less), self.group(less)),
            18 => {
                let (a, b) = (self.name(), self.name());
                let distinct = self.choice.pick(&["", "DISTINCT "]);
                format!("{{ SELECT {distinct}{a} {b} WHERE {{ {} }} }}", self.group(less))
            }
            19 => format!("{{ {} }}", self.group(less)),
            _ => {
                let not = self.choice.pick(&["", "NOT "]);
                format!("FILTER {not}EXISTS {{ {} }}", self.group(less))
            }
        }
    }

    fn name(&mut self) -> &'static str {
        self.choice.pick(&NAMES)
    }

    fn resource(&mut self) -> String {
        format!("<http://e/r{}>", self.choice.up_to(3))
    }

    fn subject(&mut self) -> String {
        match self.choice.up_to(8) {
            0 | 1 => self.resource(),
            2 => "_:x".replace(
                'x',
                &format!("x{}", {
                    self.fresh += 1;
                    self.fresh
                }),
            ),
            _ => self.name().to_owned(),
        }
    }

    fn predicate(&mut self) -> String {
        match self.choice.up_to(4) {
            0 => self.name().to_owned(),
            _ => format!("<http://e/{}>", self.choice.pick(&PREDICATES)),
        }
    }

    /// An object, mostly a triple term.
    fn object(&mut self, levels: u32) -> String {
        match self.choice.up_to(if levels > 0 { 9 } else { 4 }) {
            0 => self.choice.up_to(2).to_string(),
            1 => self.resource(),
            2 | 3 => self.name().to_owned(),
            _ => format!("<<( {} {} {} )>>", self.subject(), self.predicate(), self.object(levels - 1)),
        }
    }

    /// A term of an expression.
    fn term(&mut self, depth: u32) -> String {
        match self.choice.up_to(if depth == 0 { 4 } else { 11 }) {
            0 => self.choice.up_to(2).to_string(),
            1 => self.resource(),
            2 | 3 => self.name().to_owned(),
            4..=6 => {
                let f = self.choice.pick(&["SUBJECT", "PREDICATE", "OBJECT"]);
                format!("{f}({})", self.term(depth - 1))
            }
            7 | 8 => {
                let predicate = match self.choice.up_to(4) {
                    0 => self.term(depth - 1),
                    _ => format!("<http://e/{}>", self.choice.pick(&PREDICATES)),
                };
                format!("TRIPLE({}, {predicate}, {})", self.term(depth - 1), self.term(depth - 1))
            }
            9 => format!("<<( {} <http://e/p> {} )>>", self.name(), self.name()),
            _ => format!("IF({}, {}, {})", self.condition(), self.term(0), self.term(depth - 1)),
        }
    }

    fn condition(&mut self) -> String {
        match self.choice.up_to(7) {
            0 => format!("isTRIPLE({})", self.term(1)),
            1 => format!("sameTerm({}, {})", self.term(2), self.term(1)),
            2 => format!("BOUND({})", self.name()),
            3 => format!("!({} = {})", self.term(1), self.term(1)),
            4 => format!("isBLANK({})", self.term(1)),
            _ => format!("({} = {})", self.term(2), self.term(1)),
        }
    }

    fn values(&mut self) -> String {
        let rows = self.choice.up_to(3) + 1;
        let cells: Vec<String> = (0..rows).map(|_| self.cell()).collect();
        format!("VALUES {} {{ {} }}", self.name(), cells.join(" "))
    }

    fn cell(&mut self) -> String {
        match self.choice.up_to(5) {
            0 => "UNDEF".to_owned(),
            1 => self.resource(),
            _ => {
                let (s, p) = (self.resource(), self.choice.pick(&PREDICATES));
                let object = match self.choice.up_to(3) {
                    0 => self.choice.up_to(2).to_string(),
                    1 => format!("<<( {} <http://e/q> {} )>>", self.resource(), self.resource()),
                    _ => self.resource(),
                };
                format!("<<( {s} <http://e/{p}> {object} )>>")
            }
        }
    }
}
