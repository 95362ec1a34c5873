//! Random queries about EXISTS, for the naive evaluator.
//!
//! EXISTS stands wherever an expression may stand, its inside uses every form of pattern, and
//! all levels draw from the same few names, so that an inner OPTIONAL, MINUS, BIND, VALUES,
//! sub-select, GRAPH or path looks outside again and again. Kept out is only what the
//! definitions leave open: AS never names a variable that the solution at hand may have, and a
//! sub-select inside EXISTS has LIMIT only where nothing but its number of rows counts.

use oxrdf::{BlankNode, GraphName, Literal, NamedOrBlankNode, Quad, Term};

use crate::Questions;
use crate::choice::Choice;
use crate::generate::{PATHS, iri};

pub struct Exists {
    choice: Choice,
    fresh: u32,
    /// how many EXISTS are around
    depth: u32,
}

const NAMES: [&str; 5] = ["?a", "?b", "?c", "?d", "?e"];
const PREDICATES: [&str; 3] = ["p", "q", "r"];

impl Questions for Exists {
    fn new(seed: u64) -> Self {
        Self { choice: Choice::new(seed), fresh: 0, depth: 0 }
    }

    /// A few quads: nested loops are quick on them, and some patterns find nothing.
    fn graph(&mut self) -> Vec<Quad> {
        let size = self.choice.pick(&[4, 8, 12, 20]);
        let quad = |g: &mut Self| {
            let subject = if g.choice.chance(10) {
                NamedOrBlankNode::from(BlankNode::new_unchecked("n"))
            } else {
                iri(&format!("r{}", g.choice.up_to(4))).into()
            };
            let object = match g.choice.up_to(10) {
                0 => Term::from(BlankNode::new_unchecked("n")),
                1..=3 => Literal::from(i64::from(g.choice.up_to(3))).into(),
                _ => iri(&format!("r{}", g.choice.up_to(4))).into(),
            };
            let graph = match g.choice.up_to(6) {
                0 => GraphName::from(iri("g1")),
                1 => iri("g2").into(),
                _ => GraphName::DefaultGraph,
            };
            Quad::new(subject, iri(g.choice.pick(&PREDICATES)), object, graph)
        };
        (0..size).map(|_| quad(self)).collect()
    }

    /// A query.
    fn query(&mut self) -> String {
        (self.fresh, self.depth) = (0, 0);
        let group = self.group(2);
        let exists = self.exists(2);
        let vars = "?a ?b ?c ?d ?e";
        match self.choice.up_to(10) {
            0 => format!("ASK {{ {group} FILTER({exists}) }}"),
            1 => format!("SELECT {vars} ({} AS ?x) WHERE {{ {group} }}", self.around(&exists)),
            2 => {
                let v = self.name();
                format!("SELECT {v} (COUNT(*) AS ?x) WHERE {{ {group} }} GROUP BY {v} HAVING({exists})")
            }
            3 => {
                let v = self.name();
                let inside = self.around(&exists);
                let aggregate = self.choice.pick(&["COUNT", "COUNT", "SUM"]);
                format!("SELECT {v} ({aggregate}(IF({inside}, 1, 2)) AS ?x) WHERE {{ {group} }} GROUP BY {v}")
            }
            4 => format!("SELECT {vars} WHERE {{ {group} }} ORDER BY {}", self.around(&exists)),
            5 => format!("SELECT DISTINCT ?a ?b WHERE {{ {group} FILTER({exists}) }}"),
            _ => format!("SELECT {vars} WHERE {{ {group} FILTER({}) }}", self.around(&exists)),
        }
    }

    /// The inside of braces, with EXISTS in its filter.
    fn pattern(&mut self) -> String {
        (self.fresh, self.depth) = (0, 0);
        let (group, exists) = (self.group(2), self.exists(2));
        format!("{group} FILTER({})", self.around(&exists))
    }
}

impl Exists {
    /// EXISTS alone or in the middle of an expression.
    fn around(&mut self, exists: &str) -> String {
        match self.choice.up_to(8) {
            0 => format!("(!{exists})"),
            1 => format!("({exists} || {})", self.expression(1)),
            2 => format!("({exists} && {})", self.expression(1)),
            3 => format!("IF({exists}, {}, {})", self.expression(1), self.expression(1)),
            4 => format!("COALESCE({}, {exists})", self.expression(1)),
            5 => format!("({exists} = {})", self.exists(1)),
            _ => exists.to_owned(),
        }
    }

    fn exists(&mut self, depth: u32) -> String {
        let not = self.choice.pick(&["", "", "NOT "]);
        self.depth += 1;
        let inside = match self.choice.up_to(12) {
            0 => {
                // only whether there are that many rows
                let limit = self.choice.pick(&["LIMIT 1", "OFFSET 1", "LIMIT 2 OFFSET 1", "LIMIT 0"]);
                let distinct = self.choice.pick(&["", "DISTINCT "]);
                let (v, w) = (self.name(), self.name());
                format!("SELECT {distinct}{} WHERE {{ {} }} {limit}", both(v, w), self.group(depth - 1))
            }
            1 => self.select(depth - 1),
            _ => self.group(depth - 1),
        };
        self.depth -= 1;
        format!("{not}EXISTS {{ {inside} }}")
    }

    /// The inside of braces. Now and then there are no triples at all: everything then comes
    /// from outside.
    fn group(&mut self, depth: u32) -> String {
        let mut parts = Vec::new();
        if self.depth == 0 || self.choice.chance(80) {
            parts.push(self.triple());
        }
        for _ in 0..self.choice.pick(&[0, 1, 1, 2]) {
            parts.push(self.element(depth));
        }
        if self.choice.chance(20) {
            let part = self.triple();
            parts.insert(self.choice.within(0..=parts.len()), part);
        }
        parts.join(" ")
    }

    fn element(&mut self, depth: u32) -> String {
        let less = depth.saturating_sub(1);
        match self.choice.up_to(if depth == 0 { 6 } else { 17 }) {
            0 => self.triple(),
            1 => self.path(),
            2 | 3 => format!("FILTER({})", self.expression(2)),
            4 => self.values(),
            5 => {
                self.fresh += 1;
                format!("BIND({} AS ?x{})", self.expression(1), self.fresh)
            }
            6..=8 => format!("OPTIONAL {{ {} }}", self.group(less)),
            9 => format!("OPTIONAL {{ {} FILTER({}) }}", self.group(less), self.expression(1)),
            10 => {
                let exists = self.exists(depth);
                format!("OPTIONAL {{ {} FILTER({}) }}", self.group(less), self.around(&exists))
            }
            11 | 12 => format!("MINUS {{ {} }}", self.group(less)),
            13 => format!("{{ {} }} UNION {{ {} }}", self.group(less), self.group(less)),
            14 => {
                let graph = self.choice.pick(&["?a", "?b", "?g", "<http://e/g1>"]);
                format!("GRAPH {graph} {{ {} }}", self.group(less))
            }
            15 => format!("{{ {} }}", self.select(less)),
            _ => {
                let exists = self.exists(depth);
                format!("FILTER({})", self.around(&exists))
            }
        }
    }

    /// A sub-select without its braces: it shows some of its variables and hides the others.
    fn select(&mut self, depth: u32) -> String {
        let group = self.group(depth);
        let (v, w) = (self.name(), self.name());
        self.fresh += 1;
        let x = format!("?x{}", self.fresh);
        match self.choice.up_to(6) {
            0 => format!("SELECT {v} (COUNT({w}) AS {x}) WHERE {{ {group} }} GROUP BY {v}"),
            1 => format!("SELECT (COUNT(*) AS {x}) WHERE {{ {group} }}"),
            2 => format!(
                "SELECT {v} WHERE {{ {group} }} GROUP BY {v} HAVING(COUNT(*) > {})",
                self.choice.pick(&["1", "?a", "?b"])
            ),
            3 => format!("SELECT {v} ({} AS {x}) WHERE {{ {group} }}", self.expression(1)),
            4 => format!("SELECT DISTINCT {} WHERE {{ {group} }}", both(v, w)),
            _ => format!("SELECT {} WHERE {{ {group} }}", both(v, w)),
        }
    }

    fn values(&mut self) -> String {
        let (v, rows) = (self.name(), self.choice.within(1..4));
        let cells: Vec<String> = (0..rows)
            .map(|_| if self.choice.chance(20) { "UNDEF".to_owned() } else { self.constant() })
            .collect();
        format!("VALUES {v} {{ {} }}", cells.join(" "))
    }

    fn triple(&mut self) -> String {
        let predicate = if self.choice.chance(8) {
            self.name().to_owned()
        } else {
            format!("<http://e/{}>", self.choice.pick(&PREDICATES))
        };
        let object = if self.choice.chance(10) { self.choice.up_to(3).to_string() } else { self.node() };
        format!("{} {predicate} {object} .", self.node())
    }

    fn path(&mut self) -> String {
        let own = ["!<http://e/p>", "(<http://e/p>|^<http://e/q>)*"];
        let path = self.choice.pick(&[&PATHS[..], &own].concat());
        format!("{} {path} {} .", self.node(), self.node())
    }

    fn name(&mut self) -> &'static str {
        self.choice.pick(&NAMES)
    }

    fn node(&mut self) -> String {
        if self.choice.chance(20) {
            format!("<http://e/r{}>", self.choice.up_to(4))
        } else {
            self.name().to_owned()
        }
    }

    fn constant(&mut self) -> String {
        if self.choice.chance(30) {
            self.choice.up_to(3).to_string()
        } else {
            format!("<http://e/r{}>", self.choice.up_to(4))
        }
    }

    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 {
            return if self.choice.chance(75) { self.name().to_owned() } else { self.constant() };
        }
        let (v, less) = (self.name(), depth - 1);
        match self.choice.up_to(12) {
            0 | 1 => format!("(SAMETERM({v}, {}))", self.expression(0)),
            2 => format!("({v} = {})", self.name()),
            3 => format!("({v} != {})", self.expression(0)),
            4 => format!("({} < {})", self.expression(less), self.expression(less)),
            5 => format!("({v} + {})", self.expression(less)),
            6 | 7 => format!("BOUND({v})"),
            8 => format!("(!{})", self.expression(less)),
            9 => format!("({} || {})", self.expression(less), self.expression(less)),
            10 => format!("COALESCE({v}, {})", self.expression(less)),
            _ => format!("ISIRI({v})"),
        }
    }
}

/// Two names, once if they are one.
fn both(v: &str, w: &str) -> String {
    if v == w { v.to_owned() } else { format!("{v} {w}") }
}
