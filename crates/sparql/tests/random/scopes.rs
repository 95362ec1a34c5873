//! Random queries about scope and graphs, for the naive evaluator.
//!
//! All levels draw from the same four names, and no part must stand beside triples: so an inner
//! name equals an outer one that a sub-select hides, projects without binding it, or that an
//! OPTIONAL, VALUES or BIND leaves open; groups may be empty, graphs may not exist, names of graphs
//! come from data and paths may have no steps. `*` (SELECT and COUNT) makes every name count.
//!
//! Kept out is what may differ with right: which rows LIMIT keeps, and what a name means that AS
//! gives and the parser refuses (those queries are none).

use oxrdf::{BlankNode, GraphName, Literal, NamedOrBlankNode, Quad, Term};

use crate::Questions;
use crate::choice::Choice;
use crate::generate::iri;

pub struct Scopes {
    choice: Choice,
    fresh: u32,
}

const NAMES: [&str; 4] = ["?a", "?b", "?c", "?d"];
const PREDICATES: [&str; 3] = ["p", "q", "r"];

/// Of zero steps, of some, of one; a sequence hides its middle.
const PATHS: [&str; 10] = [
    "<http://e/p>*",
    "<http://e/p>?",
    "<http://e/q>+",
    "(<http://e/p>/<http://e/q>?)*",
    "(<http://e/p>?/<http://e/q>*)?",
    "<http://e/p>/<http://e/q>",
    "^<http://e/p>?",
    "<http://e/p>|^<http://e/q>",
    "(<http://e/p>|<http://e/q>)?",
    "!<http://e/p>",
];

impl Questions for Scopes {
    fn new(seed: u64) -> Self {
        Self { choice: Choice::new(seed), fresh: 0 }
    }

    /// A few quads, of which some speak about graphs.
    fn graph(&mut self) -> Vec<Quad> {
        let size = self.choice.pick(&[2, 5, 8, 12]);
        (0..size).map(|_| self.quad()).collect()
    }

    fn query(&mut self) -> String {
        self.fresh = 0;
        let group = format!("{}WHERE {{ {} }}", self.dataset(), self.group(3));
        let v = self.name();
        match self.choice.up_to(12) {
            0 => format!("ASK {group}"),
            1 => format!("SELECT DISTINCT * {group}"),
            2 | 3 => format!("SELECT (COUNT(DISTINCT *) AS ?n) {group}"),
            4 => format!("SELECT (COUNT(*) AS ?n) {group}"),
            5 => format!("SELECT {v} (COUNT(DISTINCT *) AS ?n) {group} GROUP BY {v}"),
            6 => format!("SELECT ?a ?z ?d {group}"),
            _ => format!("SELECT * {group}"),
        }
    }

    fn pattern(&mut self) -> String {
        self.fresh = 0;
        self.group(3)
    }
}

impl Scopes {
    fn quad(&mut self) -> Quad {
        let subject = match self.choice.up_to(8) {
            0 => NamedOrBlankNode::from(BlankNode::new_unchecked("n")),
            1 => iri("g1").into(),
            _ => iri(&format!("r{}", self.choice.up_to(3))).into(),
        };
        let object = match self.choice.up_to(8) {
            0 => Term::from(BlankNode::new_unchecked("n")),
            1 | 2 => Literal::from(i64::from(self.choice.up_to(2))).into(),
            3 => iri(self.choice.pick(&["g1", "g2", "none"])).into(),
            _ => iri(&format!("r{}", self.choice.up_to(3))).into(),
        };
        let graph = match self.choice.up_to(5) {
            0 => GraphName::from(iri("g1")),
            1 => iri("g2").into(),
            _ => GraphName::DefaultGraph,
        };
        Quad::new(subject, iri(self.choice.pick(&PREDICATES)), object, graph)
    }

    /// Now and then graphs of the query's own, of which some do not exist.
    fn dataset(&mut self) -> String {
        if self.choice.chance(80) {
            return String::new();
        }
        let graphs = self.choice.up_to(3) + 1;
        let clause = |g: &mut Self| {
            let named = g.choice.pick(&["", "NAMED "]);
            format!("FROM {named}<http://e/{}> ", g.choice.pick(&["g1", "g2", "none"]))
        };
        (0..graphs).map(|_| clause(self)).collect()
    }

    /// The inside of braces.
    fn group(&mut self, depth: u32) -> String {
        let parts = self.choice.pick(&[0, 1, 1, 2, 2, 3]);
        (0..parts).map(|_| self.element(depth)).collect::<Vec<_>>().join(" ")
    }

    fn element(&mut self, depth: u32) -> String {
        let less = depth.saturating_sub(1);
        match self.choice.up_to(if depth == 0 { 10 } else { 26 }) {
            0..=3 => self.triple(),
            4 => self.path(),
            5 => format!("FILTER({})", self.expression(1)),
            6 => self.values(),
            7 => self.bind(),
            8 => format!("GRAPH {} {{ {} }}", self.graph_name(), self.path()),
            9 => String::from("{ }"),
            10..=12 => format!("OPTIONAL {{ {} }}", self.group(less)),
            13 => format!("OPTIONAL {{ {} FILTER({}) }}", self.group(less), self.expression(1)),
            14..=16 => format!("MINUS {{ {} }}", self.group(less)),
            17 => format!("{{ {} }} UNION {{ {} }}", self.group(less), self.group(less)),
            18..=20 => format!("GRAPH {} {{ {} }}", self.graph_name(), self.group(less)),
            21..=23 => format!("{{ {} }}", self.select(less)),
            24 => format!("{{ {} }}", self.group(less)),
            _ => {
                let not = self.choice.pick(&["", "NOT "]);
                format!("FILTER {not}EXISTS {{ {} }}", self.group(less))
            }
        }
    }

    /// A sub-select without its braces: it may hide what is bound and show what is not.
    fn select(&mut self, depth: u32) -> String {
        let group = self.group(depth);
        let (v, w) = (self.name(), self.name());
        let both = if v == w { v.to_owned() } else { format!("{v} {w}") };
        let x = self.new_name();
        match self.choice.up_to(12) {
            9 => format!("SELECT {both} WHERE {{ {group} }} {}", self.values()),
            // a key's own name is in no scope below
            10 => {
                self.fresh += 1;
                let (key, y) = (self.expression(1), format!("?y{}", self.fresh));
                format!("SELECT {y} (COUNT(DISTINCT {v}) AS {x}) WHERE {{ {group} }} GROUP BY ({key} AS {y})")
            }
            11 => format!("SELECT {v} WHERE {{ {group} }} GROUP BY {v} HAVING(COUNT(DISTINCT *) > 1)"),
            0 => format!("SELECT * WHERE {{ {group} }}"),
            1 => format!("SELECT DISTINCT {both} WHERE {{ {group} }}"),
            2 => format!("SELECT (COUNT(DISTINCT *) AS {x}) WHERE {{ {group} }}"),
            3 => format!("SELECT (COUNT(*) AS {x}) WHERE {{ {group} }}"),
            4 => format!("SELECT {v} (COUNT({w}) AS {x}) WHERE {{ {group} }} GROUP BY {v}"),
            5 => format!("SELECT {v} WHERE {{ {group} }} GROUP BY {both}"),
            6 => format!("SELECT {v} ({} AS {x}) WHERE {{ {group} }}", self.expression(1)),
            7 => {
                format!("SELECT {both} WHERE {{ {group} }} {}", self.choice.pick(&["LIMIT 0", "ORDER BY ?a"]))
            }
            _ => format!("SELECT {both} WHERE {{ {group} }}"),
        }
    }

    fn bind(&mut self) -> String {
        let (expression, name) = (self.expression(1), self.new_name());
        format!("BIND({expression} AS {name})")
    }

    /// A name for AS: of all levels, or of this place alone.
    fn new_name(&mut self) -> String {
        if self.choice.chance(50) {
            return self.name().to_owned();
        }
        self.fresh += 1;
        format!("?x{}", self.fresh)
    }

    fn values(&mut self) -> String {
        let (v, w) = (self.name(), self.name());
        let rows = self.choice.up_to(3);
        let cell = |g: &mut Self| if g.choice.chance(25) { "UNDEF".to_owned() } else { g.constant() };
        if v == w {
            let cells: Vec<String> = (0..rows).map(|_| cell(self)).collect();
            return format!("VALUES {v} {{ {} }}", cells.join(" "));
        }
        let cells: Vec<String> = (0..rows).map(|_| format!("({} {})", cell(self), cell(self))).collect();
        format!("VALUES ({v} {w}) {{ {} }}", cells.join(" "))
    }

    fn triple(&mut self) -> String {
        let predicate = if self.choice.chance(8) {
            self.name().to_owned()
        } else {
            format!("<http://e/{}>", self.choice.pick(&PREDICATES))
        };
        let subject = if self.choice.chance(8) { "[]".to_owned() } else { self.node() };
        format!("{subject} {predicate} {} .", self.node())
    }

    fn path(&mut self) -> String {
        let path = self.choice.pick(&PATHS);
        format!("{} {path} {} .", self.node(), self.node())
    }

    fn name(&mut self) -> &'static str {
        self.choice.pick(&NAMES)
    }

    fn node(&mut self) -> String {
        if self.choice.chance(20) { self.constant() } else { self.name().to_owned() }
    }

    fn graph_name(&mut self) -> &'static str {
        self.choice.pick(&["?a", "?b", "?c", "?g", "<http://e/g1>", "<http://e/none>"])
    }

    fn constant(&mut self) -> String {
        match self.choice.up_to(6) {
            0 | 1 => self.choice.up_to(2).to_string(),
            2 => format!("<http://e/{}>", self.choice.pick(&["g1", "g2", "none"])),
            _ => format!("<http://e/r{}>", self.choice.up_to(3)),
        }
    }

    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 {
            return if self.choice.chance(75) { self.name().to_owned() } else { self.constant() };
        }
        let (v, less) = (self.name(), depth - 1);
        match self.choice.up_to(8) {
            0 => format!("(SAMETERM({v}, {}))", self.expression(0)),
            1 => format!("({v} = {})", self.name()),
            2 | 3 => format!("BOUND({v})"),
            4 => format!("(!BOUND({v}))"),
            5 => format!("COALESCE({v}, {})", self.expression(less)),
            6 => format!("({v} != {})", self.expression(less)),
            _ => self.expression(less),
        }
    }
}
