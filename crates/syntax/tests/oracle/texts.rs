//! Texts made from the grammars and from the suites, and changed at random.

use std::path::Path;

use snowmelt_base::random::xorshift_star;
use snowmelt_grammar::{Grammar, Site, languages};

use super::compare::Language;

pub struct Texts {
    random: u64,
    grammars: Vec<(Language, Grammar, Vec<Site>)>,
    suite: Vec<(Language, String)>,
}

/// Parts that are put in.
const PARTS: &[&str] = &[
    "?x",
    "$y",
    "<u:a>",
    "<b>",
    "e:p",
    "_:b",
    "a",
    "'s'",
    "\"t\"@en",
    "1",
    "-1",
    "+2.5",
    "1e3",
    "true",
    "()",
    "[]",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ".",
    ";",
    ",",
    "*",
    "+",
    "-",
    "/",
    "|",
    "||",
    "&&",
    "!",
    "!=",
    "=",
    "<",
    ">",
    "<=",
    "^",
    "^^",
    "?",
    "SELECT",
    "WHERE",
    "OPTIONAL",
    "UNION",
    "MINUS",
    "GRAPH",
    "FILTER",
    "BIND",
    "AS",
    "VALUES",
    "UNDEF",
    "NOT",
    "EXISTS",
    "IN",
    "GROUP BY",
    "HAVING",
    "ORDER BY",
    "LIMIT",
    "OFFSET",
    "DISTINCT",
    "COUNT(*)",
    "SUM(?x)",
    "STR(?x)",
    "IF(",
    "BOUND(?x)",
    "COALESCE(",
    "CONCAT(",
    "INSERT",
    "DELETE",
    "DATA",
    "WITH",
    "USING",
    "FROM",
    "NAMED",
    "SERVICE",
    "SILENT",
    "BASE",
    "PREFIX",
    "(?x + 1 AS ?z)",
    "FILTER(?x > 1)",
    "BIND(1 AS ?q)",
    "OPTIONAL { ?x ?y ?z }",
    "{ SELECT ?x { ?x a ?y } }",
    "?s ?p ?o .",
    "VALUES ?v { 1 2 }",
    "# c\n",
    " ",
    "\n",
    "FILTER NOT EXISTS { ?x ?y _:b }",
    "<< ?a ?b ?c >>",
    "<<( ?a ?b ?c )>>",
    "~",
    "{| a ?x |}",
];

impl Texts {
    pub fn new(seed: u64, suites: Option<&Path>) -> Self {
        let of = |name: &str| if name == "update" { Language::Update } else { Language::Query };
        let both = languages().into_iter().filter(|language| matches!(language.name, "query" | "update"));
        let grammars = both.map(|language| {
            let sites = language.grammar.sites();
            (of(language.name), language.grammar, sites)
        });
        let mut files = Vec::new();
        if let Some(suites) = suites {
            super::files(suites, &mut files);
        }
        let suite = files.iter().filter_map(|path| {
            let text = std::fs::read_to_string(path).ok()?;
            (text.len() < 2000).then(|| (super::language(path), text))
        });
        Self { random: seed.max(1), grammars: grammars.collect(), suite: suite.collect() }
    }

    fn pick(&mut self, n: usize) -> usize {
        (xorshift_star(&mut self.random) >> 33) as usize % n.max(1)
    }

    /// A text that is valid, mostly.
    fn plain(&mut self) -> (Language, String) {
        let kind = self.pick(4);
        if kind == 0 && !self.suite.is_empty() {
            let at = self.pick(self.suite.len());
            return self.suite[at].clone();
        }
        let (which, levels) = (self.pick(self.grammars.len()), 1 + self.pick(6));
        let (language, grammar, sites) = &self.grammars[which];
        // Rare, since it goes over the whole grammar.
        let is_mixed = kind == 1 && xorshift_star(&mut self.random).is_multiple_of(8);
        if is_mixed && let Some(text) = grammar.mixed(&mut self.random, levels) {
            return (*language, text);
        }
        let at = (xorshift_star(&mut self.random) >> 33) as usize % sites.len();
        (*language, sites[at].document(levels))
    }

    /// The next text; every fourth is as it was made.
    pub fn next(&mut self) -> (Language, String) {
        let (language, text) = self.plain();
        if self.pick(4) == 0 {
            return (language, text);
        }
        let mut parts = split(&text);
        for _ in 0..1 + self.pick(3) {
            let at = self.pick(parts.len() + 1);
            match self.pick(6) {
                0 if at < parts.len() => drop(parts.remove(at)),
                1 if at < parts.len() => parts.insert(at, parts[at].clone()),
                2 if at + 2 < parts.len() => parts.swap(at, at + 2),
                3 => {
                    let (_, other) = self.plain();
                    let other = split(&other);
                    let from = self.pick(other.len());
                    let to = (from + 1 + self.pick(6)).min(other.len());
                    let end = (at + self.pick(4)).min(parts.len());
                    drop(parts.splice(at..end, other[from..to].iter().cloned()));
                }
                _ => {
                    let part = PARTS[self.pick(PARTS.len())];
                    parts.insert(at, format!(" {part} "));
                }
            }
        }
        (language, parts.concat())
    }
}

/// Words, blanks and signs.
fn split(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let kind =
        |c: char| if c.is_alphanumeric() || "?$_:".contains(c) { 1 } else { u8::from(c.is_whitespace()) * 2 };
    let mut last = 0;
    for c in text.chars() {
        let this = kind(c);
        match parts.last_mut().filter(|_| this == last && this > 0) {
            Some(part) => part.push(c),
            None => parts.push(c.to_string()),
        }
        last = this;
    }
    parts
}
