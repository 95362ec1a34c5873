//! Numbers of every size and form, stored and computed, against a model that is exact: every
//! operator, function, cast and aggregate over them, filters that become ranges of ids, ORDER
//! BY, joins on equal values and on terms.
//!
//! `SNOWMELT_SEED=n` (or `new`) takes other numbers, `SNOWMELT_ROUNDS=n` more of them.

mod support;

#[path = "numbers/literals.rs"]
mod literals;
#[path = "numbers/model.rs"]
mod model;

use std::cmp::Ordering;

use oxrdf::{GraphName, NamedNode, Quad, Term};
use snowmelt_base::random::Random;

use literals::Literal;
use model::Number;
use support::answer::{Answer, Row};
use support::settings::{Fixture, Settings};

const PREFIXES: &str = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>";

fn xsd(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://www.w3.org/2001/XMLSchema#{name}"))
}

fn term((lexical, datatype): &Literal) -> Term {
    oxrdf::Literal::new_typed_literal(lexical, xsd(datatype)).into()
}

/// As a query writes it.
fn text((lexical, datatype): &Literal) -> String {
    format!("\"{lexical}\"^^xsd:{datatype}")
}

fn node(name: &str, number: usize) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/{name}{number}"))
}

fn quad(subject: NamedNode, predicate: &str, object: Term) -> Quad {
    let predicate = NamedNode::new_unchecked(format!("http://e/{predicate}"));
    Quad::new(subject, predicate, object, GraphName::DefaultGraph)
}

fn value(literal: &Literal) -> Option<Number> {
    model::read(&literal.0, literal.1)
}

/// Numbers in groups of this many.
const GROUP: usize = 7;

/// A database with a pool of literals: each an object of `:p`, `GROUP` of them objects of `:v`
/// of one subject, pairs of them `:a` and `:b` of one subject.
struct Numbers {
    random: Random,
    pool: Vec<Literal>,
    pairs: Vec<(usize, usize)>,
    fixture: Fixture,
    wrong: Vec<String>,
    asked: usize,
}

impl Numbers {
    fn new(seed: u64, count: usize, settings: &Settings) -> Self {
        let mut random = Random(seed);
        let pool = literals::pool(&mut random, count);
        let mut quads = Vec::new();
        for (i, literal) in pool.iter().enumerate() {
            quads.push(quad(node("s", i), "p", term(literal)));
            quads.push(quad(node("g", i / GROUP), "v", term(literal)));
        }
        let mut any = || random.below(count as u64) as usize;
        let pairs: Vec<_> = (0..count).map(|_| (any(), any())).collect();
        for (i, (a, b)) in pairs.iter().enumerate() {
            quads.push(quad(node("n", i), "a", term(&pool[*a])));
            quads.push(quad(node("n", i), "b", term(&pool[*b])));
        }
        let fixture = Fixture::open(&quads, settings);
        Self { random, pool, pairs, fixture, wrong: Vec::new(), asked: 0 }
    }

    fn rows(&mut self, query: &str) -> Vec<Row> {
        self.asked += 1;
        match self.fixture.answer(&format!("{PREFIXES} {query}"), None) {
            Ok(Answer::Solutions(solutions)) => solutions.rows,
            other => {
                self.wrong.push(format!("{query}: {other:?}"));
                Vec::new()
            }
        }
    }

    fn any(&mut self) -> Literal {
        let at = self.random.below(self.pool.len() as u64) as usize;
        self.pool[at].clone()
    }

    /// A literal that has a value.
    fn any_number(&mut self) -> (Literal, Number) {
        loop {
            let literal = self.any();
            if let Some(number) = value(&literal) {
                return (literal, number);
            }
        }
    }

    fn expect(&mut self, what: &str, actual: &[String], expected: &[String]) {
        if actual != expected {
            let missing: Vec<_> = expected.iter().filter(|e| !actual.contains(e)).take(4).collect();
            let extra: Vec<_> = actual.iter().filter(|a| !expected.contains(a)).take(4).collect();
            self.wrong.push(format!("{what}\n  missing {missing:?}\n  extra {extra:?}"));
        }
    }

    /// The subjects whose number satisfies a filter over `?o` are those whose value is `kept`.
    fn check_filter(&mut self, filter: &str, kept: impl Fn(&Number) -> bool) {
        let query = format!("SELECT ?o {{ ?s :p ?o FILTER({filter}) }}");
        let rows = self.rows(&query);
        let mut actual: Vec<String> = rows.iter().map(|row| show(row[0].as_ref())).collect();
        let stays = |literal: &&Literal| value(literal).is_some_and(|v| kept(&v));
        let mut expected: Vec<String> =
            self.pool.iter().filter(stays).map(|l| show(Some(&term(l)))).collect();
        actual.sort();
        expected.sort();
        self.expect(&query, &actual, &expected);
    }

    fn filters(&mut self) {
        let (literal, constant) = self.any_number();
        let of = text(&literal);
        let order = |v: &Number| model::compare(v, &constant);
        self.check_filter(&format!("?o < {of}"), |v| order(v) == Some(Ordering::Less));
        self.check_filter(&format!("{of} > ?o"), |v| order(v) == Some(Ordering::Less));
        self.check_filter(&format!("?o <= {of}"), |v| order(v).is_some_and(Ordering::is_le));
        self.check_filter(&format!("?o > {of}"), |v| order(v) == Some(Ordering::Greater));
        self.check_filter(&format!("?o >= {of}"), |v| order(v).is_some_and(Ordering::is_ge));
        self.check_filter(&format!("?o = {of}"), |v| order(v) == Some(Ordering::Equal));
        self.check_filter(&format!("?o != {of}"), |v| order(v) != Some(Ordering::Equal));
        self.check_filter(&format!("!(?o < {of})"), |v| order(v) != Some(Ordering::Less));
        self.check_filter(&format!("!(?o >= {of})"), |v| !order(v).is_some_and(Ordering::is_ge));
        let (other, upper) = self.any_number();
        let between = format!("?o > {of} && ?o <= {}", text(&other));
        self.check_filter(&between, |v| {
            order(v) == Some(Ordering::Greater) && model::compare(v, &upper).is_some_and(Ordering::is_le)
        });
        for count in [3, 12] {
            let list: Vec<_> = (0..count).map(|_| self.any_number()).collect();
            let texts: Vec<String> = list.iter().map(|(literal, _)| text(literal)).collect();
            self.check_filter(&format!("?o IN ({})", texts.join(", ")), |v| {
                list.iter().any(|(_, member)| model::compare(v, member) == Some(Ordering::Equal))
            });
        }
    }

    fn truth(&mut self) {
        self.check_filter("?o", Number::is_true);
        self.check_filter("isNumeric(?o)", |_| true);
        self.check_filter("xsd:boolean(?o)", Number::is_true);
    }

    fn order(&mut self) {
        for (direction, down) in [("ASC", false), ("DESC", true)] {
            for limit in ["", "LIMIT 10"] {
                let query = format!(
                    "SELECT ?o {{ ?s :p ?o FILTER(isNumeric(?o)) }} ORDER BY {direction}(?o) {limit}"
                );
                let numbers = self.numbers(&query);
                for (i, (a, before)) in numbers.iter().enumerate() {
                    for (b, after) in &numbers[i + 1..] {
                        let fits = if down {
                            model::may_precede(after, before)
                        } else {
                            model::may_precede(before, after)
                        };
                        if !fits {
                            self.wrong.push(format!("{query}: {a} before {b}"));
                            return;
                        }
                    }
                }
            }
        }
    }

    /// The numbers of a query's first column.
    fn numbers(&mut self, query: &str) -> Vec<(String, Number)> {
        let rows = self.rows(query);
        rows.iter().filter_map(|row| Some((show(row[0].as_ref()), number(row[0].as_ref()?)?))).collect()
    }

    fn aggregates(&mut self) {
        let query = "SELECT ?s (MIN(?o) AS ?a) (MAX(?o) AS ?b) (SUM(?o) AS ?c) (AVG(?o) AS ?d) \
            (COUNT(DISTINCT ?o) AS ?e) { ?s :v ?o FILTER(isNumeric(?o)) } GROUP BY ?s";
        let rows = self.rows(query);
        for row in rows {
            let name = show(row[0].as_ref());
            let at: usize =
                name.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a group's number");
            let end = (at * GROUP + GROUP).min(self.pool.len());
            let members: Vec<Number> = self.pool[at * GROUP..end].iter().filter_map(value).collect();
            if let Err(why) = check_group(&row, &members) {
                self.wrong.push(format!("group {at}, {why}: {:?}", &self.pool[at * GROUP..end]));
            }
        }
    }

    /// Expressions of two numbers, over stored ones and over constants.
    fn operators(&mut self) {
        for op in ['+', '-', '*', '/'] {
            let expected = |a: &Number, b: &Number| model::arithmetic(op, a, b).map(|v| v.literal());
            self.check_pairs(&format!("?a {op} ?b"), expected);
        }
        for (op, holds) in
            [("<", Ordering::is_lt as fn(Ordering) -> bool), (">=", Ordering::is_ge), ("=", Ordering::is_eq)]
        {
            self.check_pairs(&format!("?a {op} ?b"), |a, b| {
                Some((model::compare(a, b).is_some_and(holds).to_string(), "boolean"))
            });
        }
        for function in ["ABS", "CEIL", "FLOOR", "ROUND", "-"] {
            self.check_pairs(&format!("{function}(?a)"), |a, _| Some(model::unary(function, a).literal()));
        }
        for to in ["integer", "decimal", "float", "double"] {
            self.check_pairs(&format!("xsd:{to}(?a)"), |a, _| model::cast(to, a).map(|v| v.literal()));
        }
        let exact_text = |v: &Number| v.exact().map(|_| v.literal().0);
        self.check_pairs("IF(DATATYPE(?a + 0) IN (xsd:integer, xsd:decimal), STR(?a + 0), 1/0)", |a, _| {
            exact_text(a).map(|text| (text, "string"))
        });
    }

    fn check_pairs(&mut self, expression: &str, of: impl Fn(&Number, &Number) -> Option<Literal>) {
        let expected = |numbers: &Self, i: usize| {
            let (a, b) = numbers.pairs[i];
            let result = of(&value(&numbers.pool[a])?, &value(&numbers.pool[b])?)?;
            Some(show(Some(&term(&result))))
        };
        let query = format!(
            "SELECT ?s ({expression} AS ?x) {{ ?s :a ?a ; :b ?b FILTER(isNumeric(?a) && isNumeric(?b)) }}"
        );
        for row in self.rows(&query) {
            let name = show(row[0].as_ref());
            let at: usize =
                name.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a pair's number");
            let actual = row[1].as_ref().map(|x| show(Some(x)));
            if actual != expected(self, at) {
                let (a, b) = self.pairs[at];
                let pair = (text(&self.pool[a]), text(&self.pool[b]));
                self.wrong
                    .push(format!("{expression} of {pair:?} is {actual:?}, not {:?}", expected(self, at)));
            }
        }
        let at = self.random.below(self.pairs.len() as u64) as usize;
        let (a, b) = self.pairs[at];
        let (a, b) = (self.pool[a].clone(), self.pool[b].clone());
        if value(&a).is_none() || value(&b).is_none() {
            return;
        }
        let query =
            format!("SELECT ({expression} AS ?x) {{}}").replace("?a", &text(&a)).replace("?b", &text(&b));
        for row in self.rows(&query) {
            let actual = row[0].as_ref().map(|x| show(Some(x)));
            if actual != expected(self, at) {
                self.wrong.push(format!("{query} gives {actual:?}, not {:?}", expected(self, at)));
            }
        }
    }

    /// Joins: on values by a filter, on terms by a variable.
    fn joins(&mut self) {
        let values: Vec<Number> = self.pool.iter().filter_map(value).collect();
        for (op, holds) in [("=", Ordering::is_eq as fn(Ordering) -> bool), ("<", Ordering::is_lt)] {
            let pairs = values.iter().flat_map(|a| values.iter().map(move |b| (a, b)));
            let expected = pairs.filter(|(a, b)| model::compare(a, b).is_some_and(holds)).count();
            let query = format!(
                "SELECT (COUNT(*) AS ?n) {{ ?s :p ?a FILTER(isNumeric(?a)) ?t :p ?b FILTER(isNumeric(?b)) FILTER(?a {op} ?b) }}"
            );
            let actual: Vec<String> = self.rows(&query).iter().map(|row| show(row[0].as_ref())).collect();
            self.expect(&query, &actual, &[show(Some(&term(&(expected.to_string(), "integer"))))]);
        }
        let (a, b) = (self.any_number().1, self.any_number().1);
        if let (Some((a, _)), Some(sum)) =
            (model::cast("integer", &a).and_then(|v| v.exact()), model::cast("integer", &b))
        {
            let (sum, _) = sum.exact().expect("an integer");
            let stored = |v: &num_bigint::BigInt| (v.to_string(), "integer");
            let query = format!("SELECT ?o {{ BIND({a} + ({}) AS ?o) ?s :p ?o }}", &sum - &a);
            let expected: Vec<String> =
                self.pool.iter().filter(|l| **l == stored(&sum)).map(|l| show(Some(&term(l)))).collect();
            let actual: Vec<String> = self.rows(&query).iter().map(|row| show(row[0].as_ref())).collect();
            self.expect(&query, &actual, &expected);
        }
        let literal = self.any();
        let query = format!("SELECT ?o {{ VALUES ?o {{ {} }} ?s :p ?o }}", text(&literal));
        let actual: Vec<String> = self.rows(&query).iter().map(|row| show(row[0].as_ref())).collect();
        self.expect(&query, &actual, &[show(Some(&term(&literal)))]);
        let query = "SELECT (COUNT(DISTINCT ?o) AS ?n) (COUNT(*) AS ?m) { ?s :p ?o }";
        let count = show(Some(&term(&(self.pool.len().to_string(), "integer"))));
        let actual: Vec<String> = self.rows(query).iter().flatten().map(|n| show(n.as_ref())).collect();
        self.expect(query, &actual, &[count.clone(), count]);
    }
}

fn show(term: Option<&Term>) -> String {
    term.map_or_else(|| "-".to_owned(), |t| t.to_string().replace("http://www.w3.org/2001/XMLSchema#", ""))
}

fn number(term: &Term) -> Option<Number> {
    let Term::Literal(literal) = term else { return None };
    model::read(literal.value(), literal.datatype().as_str().rsplit_once('#')?.1)
}

/// MIN, MAX, SUM, AVG and COUNT(DISTINCT) of the members of a group.
fn check_group(row: &Row, members: &[Number]) -> Result<(), String> {
    let cell = |i: usize| row[i].as_ref().and_then(number).ok_or(format!("column {i} has no number"));
    let (least, greatest) = (cell(1)?, cell(2)?);
    if let Some(m) = members.iter().find(|m| !model::may_precede(&least, m)) {
        return Err(format!("MIN {least:?} is not below {m:?}"));
    }
    if let Some(m) = members.iter().find(|m| !model::may_precede(m, &greatest)) {
        return Err(format!("MAX {greatest:?} is not above {m:?}"));
    }
    if show(row[5].as_ref()) != show(Some(&term(&(members.len().to_string(), "integer")))) {
        return Err("not as many distinct numbers".to_owned());
    }
    // sums of doubles depend on the order of their parts
    if members.iter().any(|m| m.exact().is_none()) {
        return Ok(());
    }
    let zero = model::read("0", "integer").expect("a number");
    let sum = members.iter().fold(zero, |a, b| model::arithmetic('+', &a, b).expect("exact"));
    let count = model::read(&members.len().to_string(), "integer").expect("a number");
    let mean = model::arithmetic('/', &sum, &count).expect("there are members");
    for (i, expected) in [(3, sum), (4, mean)] {
        let expected = show(Some(&term(&expected.literal())));
        if show(row[i].as_ref()) != expected {
            return Err(format!("column {i} is {}, not {expected}", show(row[i].as_ref())));
        }
    }
    Ok(())
}

fn run(settings: &[Settings], default_rounds: u64, filters: usize) {
    let seed = snowmelt_io::test_seed(1);
    let rounds = std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(default_rounds);
    let (mut asked, mut wrong) = (0, Vec::new());
    for round in 0..rounds {
        let settings = &settings[round as usize % settings.len()];
        let mut numbers = Numbers::new(seed.wrapping_mul(1_000_003).wrapping_add(round), 140, settings);
        (0..filters).for_each(|_| numbers.filters());
        numbers.truth();
        numbers.order();
        numbers.aggregates();
        numbers.operators();
        numbers.joins();
        asked += numbers.asked;
        wrong.extend(numbers.wrong.into_iter().map(|why| format!("round {round}, {}: {why}", settings.name)));
    }
    eprintln!("{asked} queries");
    wrong.sort_by_key(String::len); // the shortest first
    let shown = wrong[..wrong.len().min(12)].join("\n");
    assert!(wrong.is_empty(), "SNOWMELT_SEED={seed}: {} of {asked} answers are wrong:\n{shown}", wrong.len());
}

#[test]
fn numbers_of_all_sizes() {
    run(&[Settings::default()], 12, 8);
}

#[test]
fn numbers_of_all_sizes_under_hostile_settings() {
    run(&Settings::hostile(), 11, 2);
}
