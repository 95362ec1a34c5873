//! A naive evaluator: SPARQL by its definitions, with nested loops, for small data.
//!
//! EXISTS is what SPARQL 1.2 (18.6, "Evaluation Semantics") says: the pattern is evaluated with
//! the solution at hand as its *context*, and every group begins with that context instead of
//! nothing. That is `substitute` of SPARQL 1.1 without its holes: blank nodes stay themselves,
//! VALUES and sub-selects are defined, and MINUS inside EXISTS sees the outer bindings on both
//! of its sides. spargebra's tree does not show where groups begin; a leaf joined with the
//! context is the same, as joining twice with one solution changes nothing.
//!
//! Literals are integers and booleans only: expressions are then simple enough to be right at
//! sight.

use std::collections::{BTreeMap, BTreeSet};

use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, Quad, Term};
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern, PropertyPathExpression,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};
use spargebra::{Query, SparqlParser};

use crate::support::answer::{Answer, Row, Solutions};

/// A term of the small vocabulary.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Value {
    Blank(String),
    Iri(String),
    Integer(i64),
    Boolean(bool),
}

impl From<&Term> for Value {
    fn from(term: &Term) -> Self {
        match term {
            Term::BlankNode(b) => Self::Blank(b.as_str().to_owned()),
            Term::NamedNode(n) => n.into(),
            Term::Literal(l) => l.into(),
        }
    }
}

impl From<&NamedNode> for Value {
    fn from(iri: &NamedNode) -> Self {
        Self::Iri(iri.as_str().to_owned())
    }
}

impl From<&Literal> for Value {
    fn from(l: &Literal) -> Self {
        match l.datatype() {
            xsd::INTEGER => Self::Integer(l.value().parse().expect("an integer")),
            xsd::BOOLEAN => Self::Boolean(l.value() == "true"),
            other => unreachable!("the generator makes no {other}"),
        }
    }
}

impl Value {
    fn term(&self) -> Term {
        match self {
            Self::Blank(b) => oxrdf::BlankNode::new_unchecked(b.clone()).into(),
            Self::Iri(i) => NamedNode::new_unchecked(i.clone()).into(),
            Self::Integer(n) => Literal::from(*n).into(),
            Self::Boolean(b) => Literal::from(*b).into(),
        }
    }

    fn integer(&self) -> Option<i64> {
        if let Self::Integer(n) = self { Some(*n) } else { None }
    }

    /// The effective boolean value; None is an error.
    fn truth(&self) -> Option<bool> {
        match self {
            Self::Boolean(b) => Some(*b),
            Self::Integer(n) => Some(*n != 0),
            _ => None,
        }
    }

    /// Pairs that `<` compares: numbers with numbers, booleans with booleans. A term of another
    /// kind is not below itself, which `<=` needs (17.3 defines it by `=`) and which for `<` is
    /// lenient.
    fn below(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => Some(a < b),
            (Self::Boolean(a), Self::Boolean(b)) => Some(a < b),
            (a, b) => (a == b).then_some(false),
        }
    }

    fn is_literal(&self) -> bool {
        matches!(self, Self::Integer(_) | Self::Boolean(_))
    }
}

type Solution = BTreeMap<String, Value>;

/// The graph being looked at: the default graph or a named one.
type Graph<'a> = Option<&'a NamedNode>;

/// Small data.
pub struct Naive {
    quads: BTreeSet<(Option<NamedNode>, Value, Value, Value)>,
}

/// The answer to a query; Err says what is not implemented here.
pub fn answer(naive: &Naive, text: &str) -> Result<Answer, String> {
    let query = SparqlParser::new().parse_query(text).map_err(|e| e.to_string())?;
    match query {
        Query::Select { pattern, .. } => {
            let vars = projected(&pattern)?;
            let row = |s: &Solution| vars.iter().map(|v| s.get(v).map(Value::term)).collect::<Row>();
            let rows = naive.eval(&pattern, None, &Solution::new()).iter().map(row).collect();
            Ok(Answer::Solutions(Solutions { vars, rows }))
        }
        Query::Ask { pattern, .. } => {
            Ok(Answer::Boolean(!naive.eval(&pattern, None, &Solution::new()).is_empty()))
        }
        _ => Err("only SELECT and ASK".to_owned()),
    }
}

fn projected(pattern: &GraphPattern) -> Result<Vec<String>, String> {
    match pattern {
        GraphPattern::Project { variables, .. } => {
            Ok(variables.iter().map(|v| v.as_str().to_owned()).collect())
        }
        GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. } => projected(inner),
        other => Err(format!("no projection: {other}")),
    }
}

fn merge(a: &Solution, b: &Solution) -> Option<Solution> {
    let compatible = b.iter().all(|(v, t)| a.get(v).is_none_or(|other| other == t));
    compatible.then(|| a.iter().chain(b).map(|(v, t)| (v.clone(), t.clone())).collect())
}

fn join(left: &[Solution], right: &[Solution]) -> Vec<Solution> {
    left.iter().flat_map(|a| right.iter().filter_map(|b| merge(a, b))).collect()
}

impl Naive {
    pub fn new(quads: &[Quad]) -> Self {
        let name = |q: &Quad| match &q.graph_name {
            oxrdf::GraphName::NamedNode(n) => Some(n.clone()),
            _ => None,
        };
        let quads = quads.iter().map(|q| {
            (name(q), (&Term::from(q.subject.clone())).into(), (&q.predicate).into(), (&q.object).into())
        });
        Self { quads: quads.collect() }
    }

    fn graphs(&self) -> BTreeSet<NamedNode> {
        self.quads.iter().filter_map(|q| q.0.clone()).collect()
    }

    fn triples<'a>(&'a self, g: Graph<'a>) -> impl Iterator<Item = (&'a Value, &'a Value, &'a Value)> {
        self.quads.iter().filter(move |q| q.0.as_ref() == g).map(|q| (&q.1, &q.2, &q.3))
    }

    fn eval(&self, pattern: &GraphPattern, g: Graph<'_>, context: &Solution) -> Vec<Solution> {
        use GraphPattern as P;
        let eval = |p: &GraphPattern| self.eval(p, g, context);
        match pattern {
            P::Bgp { patterns } => self.bgp(patterns, g, context),
            P::Path { subject, path, object } => self.path(subject, path, object, g, context),
            P::Join { left, right } => join(&eval(left), &eval(right)),
            P::LeftJoin { left, right, expression } => {
                self.left_join(&eval(left), &eval(right), expression.as_ref(), g)
            }
            P::Filter { expr, inner } => eval(inner).into_iter().filter(|s| self.holds(expr, s, g)).collect(),
            P::Union { left, right } => [eval(left), eval(right)].concat(),
            P::Graph { name, inner } => self.graph(name, inner, context),
            P::Extend { inner, variable, expression } => {
                let extend = |s: Solution| match self.value(expression, &s, g) {
                    // a variable of the context keeps its value: the new one must be the same
                    Some(t) => merge(&s, &[(variable.as_str().to_owned(), t)].into()),
                    None => Some(s),
                };
                eval(inner).into_iter().filter_map(extend).collect()
            }
            P::Minus { left, right } => {
                let right = eval(right);
                let gone = |s: &Solution| {
                    right.iter().any(|r| merge(s, r).is_some() && r.keys().any(|v| s.contains_key(v)))
                };
                eval(left).into_iter().filter(|s| !gone(s)).collect()
            }
            P::Values { variables, bindings } => {
                let term = |t: &GroundTerm| -> Value {
                    match t {
                        GroundTerm::NamedNode(n) => n.into(),
                        GroundTerm::Literal(l) => l.into(),
                    }
                };
                let row = |row: &Vec<Option<GroundTerm>>| -> Solution {
                    let cells = variables.iter().zip(row);
                    cells.filter_map(|(v, t)| Some((v.as_str().to_owned(), term(t.as_ref()?)))).collect()
                };
                join(std::slice::from_ref(context), &bindings.iter().map(row).collect::<Vec<_>>())
            }
            P::OrderBy { inner, .. } | P::Reduced { inner } => eval(inner),
            P::Project { inner, variables } => {
                let keep = |s: Solution| {
                    s.into_iter().filter(|(v, _)| variables.iter().any(|x| x.as_str() == v)).collect()
                };
                eval(inner).into_iter().map(keep).collect()
            }
            P::Distinct { inner } => eval(inner).into_iter().collect::<BTreeSet<_>>().into_iter().collect(),
            P::Slice { inner, start, length } => {
                eval(inner).into_iter().skip(*start).take(length.unwrap_or(usize::MAX)).collect()
            }
            P::Group { inner, variables, aggregates } => {
                let keys: Vec<&str> = variables.iter().map(|v| v.as_str()).collect();
                self.group(&eval(inner), &keys, aggregates, g, context)
            }
            other => unreachable!("the generator makes no {other}"),
        }
    }

    fn bgp(&self, patterns: &[TriplePattern], g: Graph<'_>, context: &Solution) -> Vec<Solution> {
        let mut found = vec![context.clone()];
        for p in patterns {
            let predicate = match &p.predicate {
                NamedNodePattern::NamedNode(n) => TermPattern::NamedNode(n.clone()),
                NamedNodePattern::Variable(v) => TermPattern::Variable(v.clone()),
            };
            let mut next = Vec::new();
            for solution in &found {
                for (s, t, o) in self.triples(g) {
                    let bound = bind(solution.clone(), &p.subject, s)
                        .and_then(|x| bind(x, &predicate, t))
                        .and_then(|x| bind(x, &p.object, o));
                    next.extend(bound);
                }
            }
            found = next;
        }
        found
    }

    fn path(
        &self,
        s: &TermPattern,
        path: &PropertyPathExpression,
        o: &TermPattern,
        g: Graph<'_>,
        context: &Solution,
    ) -> Vec<Solution> {
        let mut nodes: BTreeSet<Value> =
            self.triples(g).flat_map(|(s, _, o)| [s.clone(), o.clone()]).collect();
        nodes.extend([s, o].into_iter().filter_map(constant));
        let pairs = self.pairs(path, &nodes, g);
        pairs.iter().filter_map(|(a, b)| bind(bind(context.clone(), s, a)?, o, b)).collect()
    }

    /// The pairs a path connects; those of a closure once each.
    fn pairs(
        &self,
        path: &PropertyPathExpression,
        nodes: &BTreeSet<Value>,
        g: Graph<'_>,
    ) -> Vec<(Value, Value)> {
        use PropertyPathExpression as P;
        let zero = || nodes.iter().map(|n| (n.clone(), n.clone()));
        match path {
            P::NamedNode(p) => {
                let p = Value::from(p);
                let of = self.triples(g).filter(|t| *t.1 == p);
                of.map(|(s, _, o)| (s.clone(), o.clone())).collect()
            }
            P::NegatedPropertySet(not) => {
                let of = self.triples(g).filter(|t| !not.iter().any(|n| Value::from(n) == *t.1));
                of.map(|(s, _, o)| (s.clone(), o.clone())).collect()
            }
            P::Reverse(p) => self.pairs(p, nodes, g).into_iter().map(|(a, b)| (b, a)).collect(),
            P::Sequence(a, b) => {
                let second = self.pairs(b, nodes, g);
                let first = self.pairs(a, nodes, g);
                let joined = first.iter().flat_map(|(x, m)| {
                    second.iter().filter(move |(n, _)| m == n).map(move |(_, y)| (x.clone(), y.clone()))
                });
                joined.collect()
            }
            P::Alternative(a, b) => [self.pairs(a, nodes, g), self.pairs(b, nodes, g)].concat(),
            P::ZeroOrOne(p) => {
                let set: BTreeSet<_> = self.pairs(p, nodes, g).into_iter().chain(zero()).collect();
                set.into_iter().collect()
            }
            P::OneOrMore(p) => closure(&self.pairs(p, nodes, g)).into_iter().collect(),
            P::ZeroOrMore(p) => {
                let mut set = closure(&self.pairs(p, nodes, g));
                set.extend(zero());
                set.into_iter().collect()
            }
        }
    }

    fn graph(&self, name: &NamedNodePattern, inner: &GraphPattern, context: &Solution) -> Vec<Solution> {
        let all = self.graphs();
        match name {
            NamedNodePattern::NamedNode(n) if all.contains(n) => self.eval(inner, Some(n), context),
            NamedNodePattern::NamedNode(_) => Vec::new(),
            NamedNodePattern::Variable(v) => {
                let of = |n: &NamedNode| {
                    let name = [(v.as_str().to_owned(), n.into())].into();
                    join(&self.eval(inner, Some(n), context), &[name])
                };
                all.iter().flat_map(of).collect()
            }
        }
    }

    fn left_join(
        &self,
        left: &[Solution],
        right: &[Solution],
        condition: Option<&Expression>,
        g: Graph<'_>,
    ) -> Vec<Solution> {
        let mut found = Vec::new();
        for a in left {
            let pairs = right.iter().filter_map(|b| merge(a, b));
            let matches: Vec<_> = pairs.filter(|s| condition.is_none_or(|c| self.holds(c, s, g))).collect();
            if matches.is_empty() {
                found.push(a.clone());
            }
            found.extend(matches);
        }
        found
    }

    /// Keys and aggregates. What HAVING names besides is sampled by the definition; here only
    /// the context's can be meant.
    fn group(
        &self,
        rows: &[Solution],
        keys: &[&str],
        aggregates: &[(spargebra::term::Variable, AggregateExpression)],
        g: Graph<'_>,
        context: &Solution,
    ) -> Vec<Solution> {
        let mut groups: BTreeMap<Solution, Vec<&Solution>> = BTreeMap::new();
        if keys.is_empty() {
            groups.insert(Solution::new(), Vec::new());
        }
        for row in rows {
            let key = row.iter().filter(|(v, _)| keys.contains(&v.as_str()));
            let key = key.map(|(v, t)| (v.clone(), t.clone())).collect();
            groups.entry(key).or_default().push(row);
        }
        let mut found = Vec::new();
        for (key, rows) in groups {
            let mut solution = merge(context, &key).expect("each row has the context");
            for (v, aggregate) in aggregates {
                if let Some(term) = self.aggregate(aggregate, &rows, g) {
                    solution.insert(v.as_str().to_owned(), term);
                }
            }
            found.push(solution);
        }
        found
    }

    fn aggregate(&self, a: &AggregateExpression, rows: &[&Solution], g: Graph<'_>) -> Option<Value> {
        match a {
            AggregateExpression::CountSolutions { distinct: false } => {
                Some(Value::Integer(rows.len() as i64))
            }
            AggregateExpression::FunctionCall { name, expr, distinct } => {
                let mut values: Vec<Option<Value>> = rows.iter().map(|r| self.value(expr, r, g)).collect();
                if *distinct {
                    values = values.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
                }
                match name {
                    AggregateFunction::Count => Some(Value::Integer(values.iter().flatten().count() as i64)),
                    AggregateFunction::Sum => {
                        let sum = values.iter().map(|v| v.as_ref()?.integer()).sum::<Option<i64>>()?;
                        Some(Value::Integer(sum))
                    }
                    other => unreachable!("the generator makes no {other:?}"),
                }
            }
            other => unreachable!("the generator makes no {other:?}"),
        }
    }

    fn holds(&self, condition: &Expression, s: &Solution, g: Graph<'_>) -> bool {
        self.value(condition, s, g).as_ref().and_then(Value::truth) == Some(true)
    }

    /// The value of an expression; None is an error.
    fn value(&self, e: &Expression, s: &Solution, g: Graph<'_>) -> Option<Value> {
        use Expression as E;
        let value = |e: &Expression| self.value(e, s, g);
        let ebv = |e: &Expression| value(e).as_ref().and_then(Value::truth);
        let number = |e: &Expression| value(e).as_ref().and_then(Value::integer);
        Some(match e {
            E::NamedNode(n) => n.into(),
            E::Literal(l) => l.into(),
            E::Variable(v) => s.get(v.as_str())?.clone(),
            E::Bound(v) => Value::Boolean(s.contains_key(v.as_str())),
            E::Exists(p) => Value::Boolean(!self.eval(p, g, s).is_empty()),
            E::Or(a, b) => Value::Boolean(match (ebv(a), ebv(b)) {
                (Some(true), _) | (_, Some(true)) => true,
                (Some(false), Some(false)) => false,
                _ => return None,
            }),
            E::And(a, b) => Value::Boolean(match (ebv(a), ebv(b)) {
                (Some(false), _) | (_, Some(false)) => false,
                (Some(true), Some(true)) => true,
                _ => return None,
            }),
            E::Not(a) => Value::Boolean(!ebv(a)?),
            E::SameTerm(a, b) => Value::Boolean(value(a)? == value(b)?),
            E::Equal(a, b) => {
                let (a, b) = (value(a)?, value(b)?);
                // of literals of different types it is not known
                if a.is_literal() && b.is_literal() && a.integer().is_some() != b.integer().is_some() {
                    return None;
                }
                Value::Boolean(a == b)
            }
            E::Less(a, b) => Value::Boolean(value(a)?.below(&value(b)?)?),
            E::Greater(a, b) => Value::Boolean(value(b)?.below(&value(a)?)?),
            E::Add(a, b) => Value::Integer(number(a)? + number(b)?),
            E::If(a, b, c) => value(if ebv(a)? { b } else { c })?,
            E::Coalesce(list) => list.iter().find_map(value)?,
            E::FunctionCall(Function::IsIri, list) => {
                Value::Boolean(matches!(value(&list[0])?, Value::Iri(_)))
            }
            E::FunctionCall(Function::IsBlank, list) => {
                Value::Boolean(matches!(value(&list[0])?, Value::Blank(_)))
            }
            other => unreachable!("the generator makes no {other}"),
        })
    }
}

fn constant(pattern: &TermPattern) -> Option<Value> {
    match pattern {
        TermPattern::NamedNode(n) => Some(n.into()),
        TermPattern::Literal(l) => Some(l.into()),
        _ => None,
    }
}

/// A solution with one more place of a pattern matched.
fn bind(mut solution: Solution, pattern: &TermPattern, term: &Value) -> Option<Solution> {
    let name = match pattern {
        TermPattern::Variable(v) => v.as_str().to_owned(),
        // the steps of a path
        TermPattern::BlankNode(b) => b.to_string(),
        _ => return (constant(pattern)? == *term).then_some(solution),
    };
    match solution.get(&name) {
        Some(known) if known != term => None,
        Some(_) => Some(solution),
        None => {
            solution.insert(name, term.clone());
            Some(solution)
        }
    }
}

fn closure(pairs: &[(Value, Value)]) -> BTreeSet<(Value, Value)> {
    let mut all: BTreeSet<(Value, Value)> = pairs.iter().cloned().collect();
    loop {
        let longer = all.iter().flat_map(|(a, m)| {
            pairs.iter().filter(move |(n, _)| m == n).map(move |(_, b)| (a.clone(), b.clone()))
        });
        let longer: Vec<_> = longer.filter(|p| !all.contains(p)).collect();
        if longer.is_empty() {
            return all;
        }
        all.extend(longer);
    }
}
