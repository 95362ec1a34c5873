//! Random paths, for the naive evaluator: closures of sequences, inverses and alternatives, within
//! each other, walked from either end, between two variables or two terms, in graphs too.

use oxrdf::{GraphName, Quad};

use crate::Questions;
use crate::choice::Choice;
use crate::generate::iri;

pub struct Paths {
    choice: Choice,
}

const PREDICATES: [&str; 3] = ["p", "q", "r"];

impl Questions for Paths {
    fn new(seed: u64) -> Self {
        Self { choice: Choice::new(seed) }
    }

    /// Enough edges for paths of several steps, and for circles.
    fn graph(&mut self) -> Vec<Quad> {
        let size = self.choice.pick(&[6, 12, 20]);
        (0..size).map(|_| self.quad()).collect()
    }

    fn query(&mut self) -> String {
        let pattern = self.pattern();
        match self.choice.up_to(5) {
            0 => format!("ASK {{ {pattern} }}"),
            1 => format!("SELECT DISTINCT ?a ?b ?c WHERE {{ {pattern} }}"),
            _ => format!("SELECT ?a ?b ?c WHERE {{ {pattern} }}"),
        }
    }

    fn pattern(&mut self) -> String {
        let mut parts = vec![self.path_between_ends()];
        match self.choice.up_to(5) {
            0 => parts.push(self.path_between_ends()),
            1 => parts.push(format!("{} <http://e/{}> {} .", self.end(), self.predicate(), self.end())),
            _ => {}
        }
        let all = parts.join(" ");
        match self.choice.up_to(4) {
            0 => format!("GRAPH <http://e/g1> {{ {all} }}"),
            1 => format!("GRAPH ?g {{ {all} }}"),
            _ => all,
        }
    }
}

impl Paths {
    fn predicate(&mut self) -> &'static str {
        self.choice.pick(&PREDICATES)
    }

    fn quad(&mut self) -> Quad {
        let [subject, object] = [(); 2].map(|()| iri(&format!("r{}", self.choice.up_to(6))));
        let graph = match self.choice.up_to(4) {
            0 => GraphName::from(iri("g1")),
            1 => iri("g2").into(),
            _ => GraphName::DefaultGraph,
        };
        let predicate = iri(self.predicate());
        Quad::new(subject, predicate, object, graph)
    }

    fn end(&mut self) -> String {
        match self.choice.up_to(3) {
            0 => format!("<http://e/r{}>", self.choice.up_to(7)),
            _ => self.choice.pick(&["?a", "?b", "?c"]).to_owned(),
        }
    }

    fn path_between_ends(&mut self) -> String {
        let (s, path, o) = (self.end(), self.path(3), self.end());
        format!("{s} {path} {o} .")
    }

    fn path(&mut self, depth: u32) -> String {
        if depth == 0 {
            return format!("<http://e/{}>", self.predicate());
        }
        match self.choice.up_to(9) {
            0..=2 => format!("({} / {})", self.path(depth - 1), self.path(depth - 1)),
            3 => format!("({} | {})", self.path(depth - 1), self.path(depth - 1)),
            4 => format!("(^{})", self.path(depth - 1)),
            5 => format!("({})*", self.path(depth - 1)),
            6 => format!("({})+", self.path(depth - 1)),
            7 => format!("({})?", self.path(depth - 1)),
            _ => format!("!(<http://e/{}>|^<http://e/{}>)", self.predicate(), self.predicate()),
        }
    }
}
