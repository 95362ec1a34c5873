//! A naive evaluator: SPARQL by its definitions, with nested loops, for small data.
//!
//! EXISTS is what SPARQL 1.2 (18.6, "Evaluation Semantics") says: the pattern is evaluated with
//! the solution at hand as its *context*, and every group begins with that context instead of
//! nothing. That is `substitute` of SPARQL 1.1 without its holes: blank nodes stay themselves,
//! VALUES and sub-selects are defined, and MINUS inside EXISTS sees the outer bindings on both
//! of its sides. LATERAL is the same for the rows of its left side, but that a sub-select sees only
//! the names that it projects (SPARQL-dev proposal 6). spargebra's tree does not show where groups
//! begin; a leaf joined with the context is the same, as joining twice with one solution changes
//! nothing.
//!
//! Paths are evaluated as 18.4 of SPARQL 1.1 says, end by end: of zero steps between two variables
//! they have only nodes of the graph, from a term that term.
//!
//! A pattern inside a triple term matches part by part, on the terms as they are.
//!
//! Literals are integers and booleans only: expressions are then simple enough to be right at
//! sight.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode, Quad, Term};
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern, PropertyPathExpression,
    QueryDataset,
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
    Triple(Box<[Value; 3]>),
}

impl From<&Term> for Value {
    fn from(term: &Term) -> Self {
        match term {
            Term::BlankNode(b) => Self::Blank(b.as_str().to_owned()),
            Term::NamedNode(n) => n.into(),
            Term::Literal(l) => l.into(),
            Term::Triple(t) => {
                let subject = Term::from(t.subject.clone());
                Self::Triple(Box::new([(&subject).into(), (&t.predicate).into(), (&t.object).into()]))
            }
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
            Self::Triple(parts) => {
                let [subject, predicate, object] = parts.each_ref().map(Value::term);
                let (Ok(subject), Term::NamedNode(predicate)) = (subject.try_into(), predicate) else {
                    unreachable!("no such triple term is made")
                };
                oxrdf::Triple { subject, predicate, object }.into()
            }
        }
    }

    /// TRIPLE; None where RDF has no such term.
    fn triple(subject: Self, predicate: Self, object: Self) -> Option<Self> {
        let is_triple = matches!(subject, Self::Iri(_) | Self::Blank(_)) && matches!(predicate, Self::Iri(_));
        is_triple.then(|| Self::Triple(Box::new([subject, predicate, object])))
    }

    /// SUBJECT, PREDICATE or OBJECT, by number.
    fn component(&self, part: usize) -> Option<Self> {
        if let Self::Triple(parts) = self { Some(parts[part].clone()) } else { None }
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
}

type Solution = BTreeMap<String, Value>;

/// The solution that a pattern is evaluated for.
#[derive(Clone, Default)]
struct Context {
    solution: Solution,
    /// it is of a LATERAL
    is_lateral: bool,
}

/// The graph being looked at: the default graph or a named one.
type Graph<'a> = Option<&'a NamedNode>;

/// Small data.
pub struct Naive {
    quads: BTreeSet<(Option<NamedNode>, Value, Value, Value)>,
    /// pairs of solutions that may still be looked at
    left: Cell<usize>,
}

/// Pairs of solutions that one query may look at.
const MOST_PAIRS: usize = 1 << 20;

/// The answer to a query; Err says what is not implemented here.
pub fn answer(naive: &Naive, text: &str) -> Result<Answer, String> {
    let query = SparqlParser::new().parse_query(text).map_err(|e| e.to_string())?;
    answer_query(naive, query)
}

fn answer_query(naive: &Naive, query: Query) -> Result<Answer, String> {
    let seen = query.dataset().map(|dataset| naive.seen_by(dataset));
    let naive = seen.as_ref().unwrap_or(naive);
    naive.left.set(MOST_PAIRS);
    let answer = match query {
        Query::Select { pattern, .. } => {
            let vars = projected(&pattern)?;
            let row = |s: &Solution| vars.iter().map(|v| s.get(v).map(Value::term)).collect::<Row>();
            let rows = naive.eval(&pattern, None, &Context::default()).iter().map(row).collect();
            Answer::Solutions(Solutions { vars, rows })
        }
        Query::Ask { pattern, .. } => {
            Answer::Boolean(!naive.eval(&pattern, None, &Context::default()).is_empty())
        }
        _ => return Err("only SELECT and ASK".to_owned()),
    };
    if naive.left.get() == 0 { Err("too much for nested loops".to_owned()) } else { Ok(answer) }
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

impl Naive {
    pub fn new(quads: &[Quad]) -> Self {
        let name = |q: &Quad| match &q.graph_name {
            oxrdf::GraphName::NamedNode(n) => Some(n.clone()),
            _ => None,
        };
        let quads = quads.iter().map(|q| {
            (name(q), (&Term::from(q.subject.clone())).into(), (&q.predicate).into(), (&q.object).into())
        });
        Self { quads: quads.collect(), left: Cell::new(0) }
    }

    /// The data as FROM and FROM NAMED have it. A graph of no quads is none.
    fn seen_by(&self, dataset: &QueryDataset) -> Naive {
        let merged = self.quads.iter().filter(|q| q.0.as_ref().is_some_and(|g| dataset.default.contains(g)));
        let merged = merged.map(|q| (None, q.1.clone(), q.2.clone(), q.3.clone()));
        let named = dataset.named.iter().flatten();
        let named = named.flat_map(|name| self.quads.iter().filter(move |q| q.0.as_ref() == Some(name)));
        Naive { quads: merged.chain(named.cloned()).collect(), left: Cell::new(0) }
    }

    /// Whether that many pairs may be looked at.
    fn spend(&self, pairs: usize) -> bool {
        self.left.set(self.left.get().saturating_sub(pairs));
        self.left.get() > 0
    }

    fn join(&self, left: &[Solution], right: &[Solution]) -> Vec<Solution> {
        if !self.spend(left.len() * right.len()) {
            return Vec::new();
        }
        left.iter().flat_map(|a| right.iter().filter_map(|b| merge(a, b))).collect()
    }

    fn graphs(&self) -> BTreeSet<NamedNode> {
        self.quads.iter().filter_map(|q| q.0.clone()).collect()
    }

    fn triples<'a>(&'a self, g: Graph<'a>) -> impl Iterator<Item = (&'a Value, &'a Value, &'a Value)> {
        self.quads.iter().filter(move |q| q.0.as_ref() == g).map(|q| (&q.1, &q.2, &q.3))
    }

    fn eval(&self, pattern: &GraphPattern, g: Graph<'_>, context: &Context) -> Vec<Solution> {
        use GraphPattern as P;
        let eval = |p: &GraphPattern| self.eval(p, g, context);
        match pattern {
            P::Bgp { patterns } => self.bgp(patterns, g, context),
            P::Path { subject, path, object } => self.path(subject, path, object, g, context),
            P::Join { left, right } => self.join(&eval(left), &eval(right)),
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
            P::Lateral { left, right } => {
                let each = |s: Solution| {
                    let context = Context { solution: named(&s), is_lateral: true };
                    let found = self.join(std::slice::from_ref(&s), &self.eval(right, g, &context));
                    if self.spend(1) { found } else { Vec::new() }
                };
                eval(left).into_iter().flat_map(each).collect()
            }
            P::Minus { left, right } => {
                let (left, right) = (eval(left), eval(right));
                if !self.spend(left.len() * right.len()) {
                    return Vec::new();
                }
                let gone = |s: &Solution| {
                    right.iter().any(|r| merge(s, r).is_some() && r.keys().any(|v| s.contains_key(v)))
                };
                left.into_iter().filter(|s| !gone(s)).collect()
            }
            P::Values { variables, bindings } => {
                let term = |t: &GroundTerm| -> Value { (&Term::from(t.clone())).into() };
                let row = |row: &Vec<Option<GroundTerm>>| -> Solution {
                    let cells = variables.iter().zip(row);
                    cells.filter_map(|(v, t)| Some((v.as_str().to_owned(), term(t.as_ref()?)))).collect()
                };
                self.join(
                    std::slice::from_ref(&context.solution),
                    &bindings.iter().map(row).collect::<Vec<_>>(),
                )
            }
            P::OrderBy { inner, .. } | P::Reduced { inner } => eval(inner),
            // what it hides of the context is there again in the group around
            P::Project { inner, variables } => {
                let is_shown = |name: &String| variables.iter().any(|v| v.as_str() == name);
                let shown = |s: Solution| s.into_iter().filter(|(name, _)| is_shown(name)).collect();
                let back = |s: Solution| merge(&context.solution, &s).expect("each solution has the context");
                let mut inside = context.clone();
                inside.solution.retain(|name, _| !context.is_lateral || is_shown(name));
                self.eval(inner, g, &inside).into_iter().map(shown).map(back).collect()
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

    fn bgp(&self, patterns: &[TriplePattern], g: Graph<'_>, context: &Context) -> Vec<Solution> {
        let mut found = vec![context.solution.clone()];
        for p in patterns {
            let predicate = predicate_pattern(&p.predicate);
            let mut next = Vec::new();
            if !self.spend(found.len() * self.quads.len()) {
                return next;
            }
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
        context: &Context,
    ) -> Vec<Solution> {
        let pairs = self.reach(&constant(s), path, &constant(o), g);
        pairs.iter().filter_map(|(a, b)| bind(bind(context.solution.clone(), s, a)?, o, b)).collect()
    }

    fn nodes(&self, g: Graph<'_>) -> BTreeSet<Value> {
        self.triples(g).flat_map(|(s, _, o)| [s.clone(), o.clone()]).collect()
    }

    /// eval(Path(X, path, Y)): pairs of what X and Y are, given what is known of them.
    fn reach(
        &self,
        x: &Option<Value>,
        path: &PropertyPathExpression,
        y: &Option<Value>,
        g: Graph<'_>,
    ) -> Vec<(Value, Value)> {
        use PropertyPathExpression as P;
        let fits = |known: &Option<Value>, value: &Value| known.as_ref().is_none_or(|k| k == value);
        let edges = |is: &dyn Fn(&Value) -> bool| {
            let of = self.triples(g).filter(|t| is(t.1) && fits(x, t.0) && fits(y, t.2));
            of.map(|(s, _, o)| (s.clone(), o.clone())).collect()
        };
        match path {
            P::NamedNode(p) => edges(&|t| Value::from(p) == *t),
            P::NegatedPropertySet(not) => edges(&|t| !not.iter().any(|n| Value::from(n) == *t)),
            P::Reverse(p) => self.reach(y, p, x, g).into_iter().map(|(a, b)| (b, a)).collect(),
            P::Sequence(a, b) => {
                let (first, second) = (self.reach(x, a, &None, g), self.reach(&None, b, y, g));
                let joined = first.iter().flat_map(|(x, m)| {
                    second.iter().filter(move |(n, _)| m == n).map(move |(_, y)| (x.clone(), y.clone()))
                });
                joined.collect()
            }
            P::Alternative(a, b) => [self.reach(x, a, y, g), self.reach(x, b, y, g)].concat(),
            P::ZeroOrOne(p) => {
                let mut set: BTreeSet<_> = self.reach(x, p, y, g).into_iter().collect();
                set.extend(self.zero_steps(x, y, g));
                set.into_iter().collect()
            }
            P::OneOrMore(p) => self.steps(x, p, y, g).into_iter().collect(),
            P::ZeroOrMore(p) => {
                let mut set = self.steps(x, p, y, g);
                set.extend(self.zero_steps(x, y, g));
                set.into_iter().collect()
            }
        }
    }

    /// A term to itself; of two variables, each node of the graph to itself.
    fn zero_steps(&self, x: &Option<Value>, y: &Option<Value>, g: Graph<'_>) -> Vec<(Value, Value)> {
        let same = |n: &Value| (n.clone(), n.clone());
        match (x, y) {
            (Some(x), Some(y)) if x != y => Vec::new(),
            (Some(n), _) | (_, Some(n)) => vec![same(n)],
            (None, None) => self.nodes(g).iter().map(same).collect(),
        }
    }

    /// Pairs with one step or more between them, once each.
    fn steps(
        &self,
        x: &Option<Value>,
        path: &PropertyPathExpression,
        y: &Option<Value>,
        g: Graph<'_>,
    ) -> BTreeSet<(Value, Value)> {
        if x.is_none() && y.is_some() {
            let back = PropertyPathExpression::Reverse(Box::new(path.clone()));
            return self.steps(y, &back, x, g).into_iter().map(|(a, b)| (b, a)).collect();
        }
        let starts = x.clone().map_or_else(|| self.nodes(g), |x| [x].into());
        let mut found = BTreeSet::new();
        for start in starts {
            let (mut seen, mut open) = (BTreeSet::new(), vec![start.clone()]);
            while let Some(node) = open.pop() {
                let next = self.reach(&Some(node), path, &None, g).into_iter().map(|pair| pair.1);
                open.extend(next.filter(|n| seen.insert(n.clone())));
            }
            let ends = seen.into_iter().filter(|end| y.as_ref().is_none_or(|y| y == end));
            found.extend(ends.map(|end| (start.clone(), end)));
        }
        found
    }

    fn graph(&self, name: &NamedNodePattern, inner: &GraphPattern, context: &Context) -> Vec<Solution> {
        let all = self.graphs();
        match name {
            NamedNodePattern::NamedNode(n) if all.contains(n) => self.eval(inner, Some(n), context),
            NamedNodePattern::NamedNode(_) => Vec::new(),
            NamedNodePattern::Variable(v) => {
                let of = |n: &NamedNode| {
                    let name = [(v.as_str().to_owned(), n.into())].into();
                    self.join(&self.eval(inner, Some(n), context), &[name])
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
        if !self.spend(left.len() * right.len()) {
            return found;
        }
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
        context: &Context,
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
            let mut solution = merge(&context.solution, &key).expect("each row has the context");
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
            AggregateExpression::CountSolutions { .. } => {
                let distinct: BTreeSet<Solution> = rows.iter().map(|row| named(row)).collect();
                Some(Value::Integer(distinct.len() as i64))
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
            E::Exists(p) => Value::Boolean({
                let context = Context { solution: named(s), is_lateral: false };
                !self.eval(p, g, &context).is_empty()
            }),
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
            // integers and booleans are known to share no value
            E::Equal(a, b) => Value::Boolean(value(a)? == value(b)?),
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
            E::FunctionCall(Function::IsTriple, list) => {
                Value::Boolean(matches!(value(&list[0])?, Value::Triple(_)))
            }
            E::FunctionCall(Function::Triple, list) => {
                Value::triple(value(&list[0])?, value(&list[1])?, value(&list[2])?)?
            }
            E::FunctionCall(Function::Subject, list) => value(&list[0])?.component(0)?,
            E::FunctionCall(Function::Predicate, list) => value(&list[0])?.component(1)?,
            E::FunctionCall(Function::Object, list) => value(&list[0])?.component(2)?,
            other => unreachable!("the generator makes no {other}"),
        })
    }
}

/// A solution by the standard: blank nodes of a pattern and steps of a path are no variables.
fn named(solution: &Solution) -> Solution {
    let cells = solution.iter().filter(|(name, _)| !name.starts_with("_:"));
    cells.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn constant(pattern: &TermPattern) -> Option<Value> {
    match pattern {
        TermPattern::NamedNode(n) => Some(n.into()),
        TermPattern::Literal(l) => Some(l.into()),
        TermPattern::Triple(triple) => {
            let NamedNodePattern::NamedNode(predicate) = &triple.predicate else { return None };
            Value::triple(constant(&triple.subject)?, predicate.into(), constant(&triple.object)?)
        }
        TermPattern::Variable(_) | TermPattern::BlankNode(_) => None,
    }
}

fn predicate_pattern(predicate: &NamedNodePattern) -> TermPattern {
    match predicate {
        NamedNodePattern::NamedNode(n) => TermPattern::NamedNode(n.clone()),
        NamedNodePattern::Variable(v) => TermPattern::Variable(v.clone()),
    }
}

/// A solution with one more place of a pattern matched.
fn bind(mut solution: Solution, pattern: &TermPattern, term: &Value) -> Option<Solution> {
    let name = match pattern {
        TermPattern::Variable(v) => v.as_str().to_owned(),
        // the steps of a path
        TermPattern::BlankNode(b) => b.to_string(),
        TermPattern::Triple(triple) => {
            let Value::Triple(parts) = term else { return None };
            let solution = bind(solution, &triple.subject, &parts[0])?;
            let solution = bind(solution, &predicate_pattern(&triple.predicate), &parts[1])?;
            return bind(solution, &triple.object, &parts[2]);
        }
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
