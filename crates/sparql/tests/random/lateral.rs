//! Random queries with LATERAL, for the naive evaluator.
//!
//! LATERAL stands wherever a pattern may stand, also within OPTIONAL, UNION, MINUS, GRAPH, EXISTS,
//! sub-selects and other LATERALs, and all levels draw from the same few names: so its inside looks
//! at what the left side binds, may bind, or does not, and sub-selects hide names of the left side.
//! Rows that LIMIT may choose from are equal.

use oxrdf::{BlankNode, GraphName, Literal, NamedOrBlankNode, Quad, Term};

use crate::Questions;
use crate::choice::Choice;
use crate::generate::{PATHS, iri};

pub struct Lateral {
    choice: Choice,
    fresh: u32,
}

const NAMES: [&str; 5] = ["?a", "?b", "?c", "?d", "?e"];
const PREDICATES: [&str; 3] = ["p", "q", "r"];

impl Questions for Lateral {
    fn new(seed: u64) -> Self {
        Self { choice: Choice::new(seed), fresh: 0 }
    }

    fn graph(&mut self) -> Vec<Quad> {
        let size = self.choice.pick(&[4, 8, 12, 20]);
        (0..size).map(|_| self.quad()).collect()
    }

    fn query(&mut self) -> String {
        let pattern = self.pattern();
        let v = self.name();
        match self.choice.up_to(8) {
            0 => format!("ASK {{ {pattern} }}"),
            1 => format!("SELECT {v} (COUNT(*) AS ?n) WHERE {{ {pattern} }} GROUP BY {v}"),
            2 => format!("SELECT (COUNT(DISTINCT *) AS ?n) WHERE {{ {pattern} }}"),
            3 => format!("SELECT DISTINCT ?a ?b WHERE {{ {pattern} }}"),
            _ => format!("SELECT * WHERE {{ {pattern} }}"),
        }
    }

    fn pattern(&mut self) -> String {
        self.fresh = 0;
        let (group, lateral, after) = (self.group(1), self.lateral(2), self.group(1));
        if self.choice.up_to(3) == 0 {
            format!("{group} {lateral} {after}")
        } else {
            format!("{group} {lateral}")
        }
    }
}

impl Lateral {
    fn name(&mut self) -> &'static str {
        self.choice.pick(&NAMES)
    }

    fn predicate(&mut self) -> String {
        format!("<http://e/{}>", self.choice.pick(&PREDICATES))
    }

    fn quad(&mut self) -> Quad {
        let subject = match self.choice.up_to(10) {
            0 => NamedOrBlankNode::from(BlankNode::new_unchecked("n")),
            _ => iri(&format!("r{}", self.choice.up_to(4))).into(),
        };
        let object = match self.choice.up_to(10) {
            0 => Term::from(BlankNode::new_unchecked("n")),
            1..=3 => Literal::from(i64::from(self.choice.up_to(3))).into(),
            _ => iri(&format!("r{}", self.choice.up_to(4))).into(),
        };
        let graph = match self.choice.up_to(6) {
            0 => GraphName::from(iri("g1")),
            1 => iri("g2").into(),
            _ => GraphName::DefaultGraph,
        };
        Quad::new(subject, iri(self.choice.pick(&PREDICATES)), object, graph)
    }

    fn triple(&mut self) -> String {
        let (s, p) = (self.name(), self.predicate());
        match self.choice.up_to(8) {
            0 => format!("{s} {p} <http://e/r{}> .", self.choice.up_to(4)),
            1 => format!("{s} {} {} .", self.name(), self.name()),
            2 => format!("{s} {} {} .", self.choice.pick(&PATHS), self.name()),
            3 => format!("_:n{} {p} {s} .", self.fresh()),
            _ => format!("{s} {p} {} .", self.name()),
        }
    }

    fn fresh(&mut self) -> u32 {
        self.fresh += 1;
        self.fresh
    }

    /// The inside of braces.
    fn group(&mut self, depth: u32) -> String {
        let mut parts: Vec<String> = (0..self.choice.up_to(3)).map(|_| self.triple()).collect();
        for _ in 0..self.choice.up_to(3) {
            parts.push(self.element(depth));
        }
        parts.join(" ")
    }

    fn element(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.triple();
        }
        let inside = depth - 1;
        match self.choice.up_to(13) {
            0..=2 => self.lateral(inside),
            3 => format!("OPTIONAL {{ {} }}", self.group(inside)),
            4 => format!("OPTIONAL {{ {} FILTER({}) }}", self.triple(), self.expression()),
            5 => format!("FILTER({})", self.expression()),
            6 => format!("{{ {} }}", self.group(inside)),
            7 => format!("{{ {} }} UNION {{ {} }}", self.group(inside), self.group(inside)),
            8 => format!("MINUS {{ {} }}", self.group(inside)),
            9 => format!("BIND({} AS ?f{})", self.expression(), self.fresh()),
            10 => {
                let graph = self.choice.pick(&["<http://e/g1>", "?a", "?e"]);
                format!("GRAPH {graph} {{ {} }}", self.group(inside))
            }
            11 => format!("FILTER EXISTS {{ {} }}", self.group(inside)),
            _ => self.sub_select(inside),
        }
    }

    fn lateral(&mut self, depth: u32) -> String {
        match self.choice.up_to(6) {
            0 => format!("LATERAL {{ {} }}", self.sub_select_inside(depth)),
            1 => {
                // each solution before it has the name
                let (v, p, q) = (self.name(), self.predicate(), self.predicate());
                let (at, many) = (self.fresh(), self.choice.up_to(3));
                let rows = format!(
                    "SELECT {v} WHERE {{ {v} {q} ?h{at} }} LIMIT {many} OFFSET {}",
                    self.choice.up_to(2)
                );
                format!("{v} {p} {} LATERAL {{ {rows} }}", self.name())
            }
            2 => {
                let (v, at) = (self.name(), self.fresh());
                format!(
                    "LATERAL {{ SELECT {v} (COUNT(*) AS ?f{at}) WHERE {{ {} }} GROUP BY {v} }}",
                    self.group(depth)
                )
            }
            3 => format!("LATERAL {{ {} FILTER({}) }}", self.group(depth), self.expression()),
            _ => format!("LATERAL {{ {} }}", self.group(depth)),
        }
    }

    fn sub_select(&mut self, depth: u32) -> String {
        format!("{{ {} }}", self.sub_select_inside(depth))
    }

    fn sub_select_inside(&mut self, depth: u32) -> String {
        let (group, a, b) = (self.group(depth), self.name(), self.name());
        match self.choice.up_to(4) {
            0 => format!("SELECT (COUNT(*) AS ?f{}) WHERE {{ {group} }}", self.fresh()),
            1 if a != b => format!("SELECT DISTINCT {a} {b} WHERE {{ {group} }}"),
            _ => format!("SELECT {a} WHERE {{ {group} }}"),
        }
    }

    fn expression(&mut self) -> String {
        let (a, b) = (self.name(), self.name());
        match self.choice.up_to(6) {
            0 => format!("BOUND({a})"),
            1 => format!("!BOUND({a})"),
            2 => format!("{a} < 2"),
            3 => format!("COALESCE({a}, {b}) = {b}"),
            4 => format!("EXISTS {{ {a} {} {b} }}", self.predicate()),
            _ => format!("{a} = {b}"),
        }
    }
}
