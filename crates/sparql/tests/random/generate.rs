//! Random graphs and queries from one seed.
//!
//! The vocabulary is tiny, so that patterns meet: a dozen resources, five predicates, a few
//! literals of each type, three graphs. Queries are text, built from the grammar top down with
//! a budget that shrinks with depth.

use crate::choice::Choice;
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};

pub struct Generator {
    choice: Choice,
    /// variables of the query being made
    vars: Vec<String>,
    fresh: u32,
    tail: String,
}

/// A query, its ORDER BY, LIMIT and OFFSET apart.
pub struct Query {
    pub body: String,
    pub tail: String,
}

const PREDICATES: [&str; 5] = ["p", "q", "r", "label", "value"];

/// Paths of queries of both kinds.
pub const PATHS: [&str; 5] =
    ["<http://e/p>/<http://e/q>", "^<http://e/p>", "<http://e/p>+", "<http://e/q>*", "<http://e/p>?"];

pub fn iri(local: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/{local}"))
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Generator { choice: Choice::new(seed), vars: Vec::new(), fresh: 0, tail: String::new() }
    }

    /// Between a handful and a few hundred quads.
    pub fn graph(&mut self) -> Vec<Quad> {
        let size = self.choice.pick(&[5, 30, 100, 200]);
        let mut quads = Vec::new();
        for _ in 0..size {
            let subject: NamedOrBlankNode =
                if self.choice.chance(8) { self.blank().into() } else { self.resource().into() };
            let predicate = self.choice.pick(&PREDICATES);
            let object = match predicate {
                "label" | "value" => self.literal().into(),
                _ if self.choice.chance(10) => self.literal().into(),
                _ if self.choice.chance(8) => self.blank().into(),
                _ => Term::from(self.resource()),
            };
            let graph = match self.choice.within(0..10) {
                0 => iri("g1").into(),
                1 => iri("g2").into(),
                _ => GraphName::DefaultGraph,
            };
            quads.push(Quad::new(subject, iri(predicate), object, graph));
        }
        quads
    }

    fn resource(&mut self) -> NamedNode {
        let n = self.choice.within(0..12);
        iri(&format!("r{n}"))
    }

    fn blank(&mut self) -> BlankNode {
        let n = self.choice.within(0..4);
        BlankNode::new_unchecked(format!("x{n}"))
    }

    /// No doubles, floats or booleans: oxigraph rewrites the text of the first two and does not
    /// order the last; they come from casts and comparisons.
    fn literal(&mut self) -> Literal {
        let n = self.choice.within(-3..12);
        match self.choice.within(0..12) {
            0..=3 => Literal::from(n),
            4..=6 => Literal::new_typed_literal(format!("{n}.5"), xsd::DECIMAL),
            7 => Literal::new_typed_literal(format!("20{:02}-05-17T10:00:00", n + 5), xsd::DATE_TIME),
            8 => Literal::new_language_tagged_literal_unchecked(
                format!("text {n}"),
                self.choice.pick(&["en", "de", "en-gb"]),
            ),
            9 => Literal::new_typed_literal(format!("{n}"), iri("type")),
            10 => Literal::from(format!("a longer string, number {n}")),
            _ => Literal::from(self.choice.pick(&["", "a", "b", "ab", "abc"])),
        }
    }

    /// A query.
    pub fn query(&mut self) -> Query {
        self.vars.clear();
        self.fresh = 0;
        self.tail.clear();
        let body = self.body();
        Query { body, tail: std::mem::take(&mut self.tail) }
    }

    fn body(&mut self) -> String {
        match self.choice.within(0..12) {
            0 => format!("ASK {{ {} }}", self.group(3)),
            1 => {
                let pattern = self.group(3);
                let triples: Vec<String> = (0..self.choice.within(1..3))
                    .map(|_| format!("{} <http://e/made> {}", self.some_var(), self.some_var()))
                    .collect();
                format!("CONSTRUCT {{ {} }} WHERE {{ {pattern} }}", triples.join(" . "))
            }
            2 | 3 => self.grouped_select(3),
            _ => self.select(3),
        }
    }

    fn select(&mut self, depth: u32) -> String {
        let pattern = self.group(depth);
        let modifier = self.choice.pick(&["", "", "DISTINCT ", "DISTINCT ", "REDUCED "]);
        // How many rows REDUCED keeps is open.
        let modifier = if modifier == "REDUCED " { "" } else { modifier };
        let mut vars: Vec<String> = self.vars.clone();
        vars.sort();
        vars.dedup();
        vars.truncate(self.choice.within(1..=6));
        if vars.is_empty() {
            vars.push("?none".to_owned());
        }
        let mut head = vars.join(" ");
        if self.choice.chance(25) {
            self.fresh += 1;
            head += &format!(" ({} AS ?e{})", self.expression(2), self.fresh);
        }
        self.tail = self.order_and_limit(&vars);
        format!("SELECT {modifier}{head} WHERE {{ {pattern} }}")
    }

    fn order_and_limit(&mut self, vars: &[String]) -> String {
        let mut tail = String::new();
        if self.choice.chance(30) {
            tail += " ORDER BY";
            for v in vars.iter().take(3) {
                let key = match self.choice.within(0..4) {
                    0 => format!(" DESC({v})"),
                    1 => format!(" STR({v})"),
                    _ => format!(" {v}"),
                };
                tail += &key;
            }
        }
        if self.choice.chance(20) {
            tail += &format!(" LIMIT {}", self.choice.within(0..8));
            if self.choice.chance(50) {
                tail += &format!(" OFFSET {}", self.choice.within(0..5));
            }
        }
        tail
    }

    fn grouped_select(&mut self, depth: u32) -> String {
        let pattern = self.group(depth);
        let key = self.some_var();
        let arg = self.some_var();
        let arg = if self.choice.chance(30) { self.expression(1) } else { arg };
        let distinct = self.choice.pick(&["", "", "DISTINCT "]);
        let aggregate = match self.choice.within(0..7) {
            0 => format!("COUNT({distinct}*)"),
            // Values that are errors are not counted, which oxigraph does not do for expressions.
            1 => format!("COUNT({distinct}{})", self.some_var()),
            2 => format!("SUM({distinct}{arg})"),
            3 => format!("AVG({distinct}{arg})"),
            // Of mixed types any may come first: numbers have one order.
            4 if self.choice.chance(50) => format!("MIN({distinct}xsd:double({arg}))"),
            5 if self.choice.chance(50) => format!("MAX({distinct}xsd:double({arg}))"),
            4 => format!("MIN({distinct}COALESCE({}, \"b\"))", self.text()),
            5 => format!("MAX({distinct}COALESCE(STR({}), \"b\"))", self.plain()),
            _ => format!("COUNT({distinct}COALESCE({arg}, 0))"),
        };
        let prefix = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> ";
        if self.choice.chance(20) {
            return format!("{prefix}SELECT ({aggregate} AS ?n) WHERE {{ {pattern} }}");
        }
        let having = if self.choice.chance(25) { " HAVING (COUNT(*) > 1)" } else { "" };
        format!("{prefix}SELECT {key} ({aggregate} AS ?n) WHERE {{ {pattern} }} GROUP BY {key}{having}")
    }

    /// The inside of braces.
    fn group(&mut self, depth: u32) -> String {
        let mut parts = Vec::new();
        for _ in 0..self.choice.within(1..=3) {
            parts.push(self.triples());
        }
        if depth > 0 {
            for _ in 0..self.choice.within(0..=2) {
                parts.push(self.element(depth - 1));
            }
        }
        if self.choice.chance(15) {
            let at = self.choice.within(0..=parts.len());
            let part = self.element(depth.saturating_sub(1));
            parts.insert(at, part);
        }
        parts.join(" ")
    }

    fn element(&mut self, depth: u32) -> String {
        match self.choice.within(0..15) {
            0 | 1 => format!("OPTIONAL {{ {} }}", self.group(depth)),
            2 => {
                let (a, b) = (self.group(depth), self.group(depth));
                format!("{{ {a} }} UNION {{ {b} }}")
            }
            3 => format!("MINUS {{ {} }}", self.scoped(depth)),
            4 => format!("FILTER({})", self.text_condition()),
            5 | 6 => format!("FILTER({})", self.expression(2)),
            7 => {
                let not = self.choice.pick(&["", "NOT "]);
                format!("FILTER {not}EXISTS {{ {} }}", self.scoped(depth))
            }
            8 => {
                let expression = self.expression(2);
                self.fresh += 1;
                let var = format!("?b{}", self.fresh);
                self.vars.push(var.clone());
                format!("BIND({expression} AS {var})")
            }
            9 => self.values(),
            10 => {
                let graph = if self.choice.chance(50) {
                    self.var()
                } else {
                    self.choice.pick(&["<http://e/g1>", "<http://e/g2>"]).to_owned()
                };
                format!("GRAPH {graph} {{ {} }}", self.group(depth.min(1)))
            }
            11 => self.sub_select(depth),
            12 => format!("{{ {} }}", self.group(depth)),
            13 => self.path(),
            _ => format!("OPTIONAL {{ {} FILTER({}) }}", self.group(0), self.expression(1)),
        }
    }

    /// A group whose variables do not get out.
    fn scoped(&mut self, depth: u32) -> String {
        let before = self.vars.len();
        let group = self.group(depth);
        self.vars.truncate(before.max(1));
        group
    }

    fn sub_select(&mut self, depth: u32) -> String {
        let outside = self.vars.clone();
        let inner = self.group(depth.min(1));
        let mut vars: Vec<String> =
            self.vars.iter().filter(|v| inner.contains(v.as_str())).cloned().collect();
        vars.sort();
        vars.dedup();
        vars.truncate(self.choice.within(1..=3));
        if vars.is_empty() {
            vars.push("?none".to_owned());
        }
        self.vars = outside;
        self.vars.extend(vars.iter().cloned());
        let distinct = self.choice.pick(&["", "DISTINCT "]);
        format!("{{ SELECT {distinct}{} WHERE {{ {inner} }} }}", vars.join(" "))
    }

    fn values(&mut self) -> String {
        let (a, b) = (self.var(), self.var());
        let cell = |g: &mut Self| match g.choice.within(0..4) {
            0 => "UNDEF".to_owned(),
            1 => g.literal().to_string(),
            _ => g.resource().to_string(),
        };
        let rows = self.choice.within(1..4);
        if a == b {
            let cells: Vec<String> = (0..rows).map(|_| cell(self)).collect();
            return format!("VALUES {a} {{ {} }}", cells.join(" "));
        }
        let cells: Vec<String> = (0..rows).map(|_| format!("({} {})", cell(self), cell(self))).collect();
        format!("VALUES ({a} {b}) {{ {} }}", cells.join(" "))
    }

    /// Not `p|q`: the standard keeps a pair that both have twice, oxigraph once. No term at the
    /// end of a path of zero steps: by the standard (and its tests) such a path matches it
    /// whether or not the graph has it, in oxigraph only if it does.
    fn path(&mut self) -> String {
        let own = [
            "(<http://e/p>/<http://e/q>)+",
            "!(<http://e/p>|<http://e/label>)",
            "(<http://e/p>|^<http://e/r>)+",
        ];
        let path = self.choice.pick(&[&PATHS[..], &own].concat());
        let (s, o) =
            if path.ends_with(['*', '?']) { (self.var(), self.var()) } else { (self.node(), self.node()) };
        format!("{s} {path} {o} .")
    }

    fn triples(&mut self) -> String {
        let subject = self.node();
        let mut text = String::new();
        for _ in 0..self.choice.within(1..=2) {
            let predicate = if self.choice.chance(10) {
                self.var()
            } else {
                format!("<http://e/{}>", self.choice.pick(&PREDICATES))
            };
            let object = if self.choice.chance(12) { self.literal().to_string() } else { self.node() };
            text += &format!("{subject} {predicate} {object} . ");
        }
        text
    }

    fn node(&mut self) -> String {
        if self.choice.chance(25) { self.resource().to_string() } else { self.var() }
    }

    /// A variable, old or new.
    fn var(&mut self) -> String {
        let var = format!("?v{}", self.choice.within(0..6));
        self.vars.push(var.clone());
        var
    }

    /// A variable of the query, if it has one.
    fn some_var(&mut self) -> String {
        match self.choice.some(&self.vars) {
            Some(var) => var.clone(),
            None => "?none".to_owned(),
        }
    }

    /// A variable of a pattern (computed ones have other names), or a literal: no boolean, no
    /// double.
    fn plain(&mut self) -> String {
        let vars: Vec<String> = self.vars.iter().filter(|v| v.starts_with("?v")).cloned().collect();
        match self.choice.some(&vars) {
            Some(var) if self.choice.within(0..4) > 0 => var.clone(),
            _ => self.literal().to_string(),
        }
    }

    /// Something that may be ordered: numbers, strings, dates, errors.
    fn operand(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.plain();
        }
        match self.choice.within(0..6) {
            0 | 1 => {
                let op = self.choice.pick(&["+", "-", "*", "/"]);
                format!("({} {op} {})", self.operand(depth - 1), self.operand(depth - 1))
            }
            2 => format!("{}({})", self.cast(), self.operand(depth - 1)),
            3 => format!("{}(STR({}))", self.cast(), self.plain()),
            4 => {
                let f = self.choice.pick(&["ABS", "CEIL", "FLOOR", "ROUND", "STRLEN", "UCASE"]);
                format!("{f}({})", self.operand(depth - 1))
            }
            _ => self.plain(),
        }
    }

    /// A string without language.
    fn text(&mut self) -> String {
        let text = format!("STR({})", self.plain());
        match self.choice.within(0..6) {
            0 => format!("LCASE({text})"),
            1 => format!("STRBEFORE({text}, \" \")"),
            2 => format!("STRAFTER({text}, \"a\")"),
            3 => format!("CONCAT({text}, \"b\")"),
            _ => text,
        }
    }

    /// An equality of texts, which may join two sides, a search, or a long list.
    fn text_condition(&mut self) -> String {
        match self.choice.within(0..8) {
            0..=2 => format!("{} = {}", self.text(), self.text()),
            3 => format!("{} = {}", self.plain(), self.text()),
            4 => format!("CONTAINS({}, \"b\") || STRLEN({}) > 20", self.text(), self.text()),
            5 => format!("!REGEX({}, \"[1-4a]$\", \"i\")", self.text()),
            _ => {
                let mut list: Vec<String> = (0..9).map(|_| self.literal().to_string()).collect();
                list.push(self.resource().to_string());
                let not = self.choice.pick(&["", "NOT "]);
                let value = if self.choice.chance(50) { self.text() } else { self.plain() };
                format!("{value} {not}IN ({})", list.join(", "))
            }
        }
    }

    fn cast(&mut self) -> &'static str {
        self.choice.pick(&[
            "<http://www.w3.org/2001/XMLSchema#integer>",
            "<http://www.w3.org/2001/XMLSchema#decimal>",
            "<http://www.w3.org/2001/XMLSchema#double>",
            "<http://www.w3.org/2001/XMLSchema#float>",
        ])
    }

    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 {
            return match self.choice.within(0..4) {
                0 => self.literal().to_string(),
                1 => self.resource().to_string(),
                _ => self.some_var(),
            };
        }
        match self.choice.within(0..23) {
            0 | 1 => format!("({} = {})", self.expression(depth - 1), self.expression(depth - 1)),
            2 => format!("({} != {})", self.expression(depth - 1), self.expression(depth - 1)),
            3 | 4 => {
                let op = self.choice.pick(&["<", "<=", ">", ">="]);
                format!("({} {op} {})", self.operand(depth - 1), self.operand(depth - 1))
            }
            5 => format!("({} && {})", self.expression(depth - 1), self.expression(depth - 1)),
            6 => format!("({} || {})", self.expression(depth - 1), self.expression(depth - 1)),
            7 => format!("(!({}))", self.expression(depth - 1)),
            8 => self.operand(depth),
            9 => format!("BOUND({})", self.some_var()),
            10 => {
                let (condition, yes) = (self.expression(depth - 1), self.expression(depth - 1));
                format!("IF({condition}, {yes}, {})", self.expression(depth - 1))
            }
            11 => format!("COALESCE({}, {})", self.expression(depth - 1), self.expression(depth - 1)),
            12 => {
                let list = (self.expression(0), self.expression(0));
                format!("({} IN ({}, {}))", self.expression(depth - 1), list.0, list.1)
            }
            13 => format!("STR({})", self.plain()),
            14 => format!("DATATYPE({})", self.expression(depth - 1)),
            15 => format!("LANG({})", self.expression(depth - 1)),
            16 => format!("LANGMATCHES(LANG({}), \"EN\")", self.expression(depth - 1)),
            17 => format!("REGEX(STR({}), \"[1-4a]$\")", self.plain()),
            18 => {
                let f = self.choice.pick(&["ISIRI", "ISLITERAL", "ISNUMERIC", "ISBLANK", "MD5", "LCASE"]);
                format!("{f}({})", self.expression(depth - 1))
            }
            19 => {
                let f = self.choice.pick(&[
                    "STRSTARTS",
                    "CONTAINS",
                    "STRENDS",
                    "STRBEFORE",
                    "STRAFTER",
                    "CONCAT",
                    "SAMETERM",
                ]);
                format!("{f}({}, {})", self.expression(depth - 1), self.expression(depth - 1))
            }
            20 => format!("<http://www.w3.org/2001/XMLSchema#string>({})", self.plain()),
            21 => format!("<http://www.w3.org/2001/XMLSchema#boolean>({})", self.expression(depth - 1)),
            _ => format!("YEAR({})", self.expression(depth - 1)),
        }
    }
}
