//! The algebra of a query: what is asked, before it is decided how.
//!
//! spargebra's tree is turned into [`Node`]s by [`translate`]: variables become dense numbers
//! with SPARQL's scopes already resolved (a variable hidden by a sub-select gets a number of
//! its own, a filter's variable that is not in scope becomes one that is never bound),
//! constants become numbered [`Const`]s so that one algebra serves all queries of one shape,
//! joins are flat, and EXISTS is a join of its own kind.
//!
//! Invariant: within one [`Algebra`] equal numbers mean the same variable everywhere.

mod existence;
mod mentions;
pub(crate) mod names;
mod scope;
pub(crate) mod translate;
mod vars;

use rustc_hash::{FxHashMap, FxHashSet};
use spargebra::algebra::{AggregateExpression, Expression, Function, PropertyPathExpression};
use spargebra::term::Variable;

use crate::bounds::with_room;
use crate::text::parameter::ConstTerm;

pub(crate) use scope::Scope;
pub(crate) use vars::VarSet;

/// A variable's number within one query.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Var(pub u32);

/// A constant's number within one query.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Const(pub u32);

/// A place in a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Slot {
    Var(Var),
    Const(Const),
}

impl Slot {
    pub fn var(self) -> Option<Var> {
        match self {
            Self::Var(v) => Some(v),
            Self::Const(_) => None,
        }
    }
}

/// Which graphs a pattern looks at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum GraphSlot {
    /// the query's default graph
    Default,
    /// one named graph, or each in turn
    Named(Slot),
}

/// One triple pattern in its graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pattern {
    pub s: Slot,
    pub p: Slot,
    pub o: Slot,
    pub g: GraphSlot,
}

impl Pattern {
    /// Its distinct variables.
    pub fn vars(&self) -> VarSet {
        let mut set = VarSet::default();
        for slot in [Some(self.s), Some(self.p), Some(self.o), self.graph_slot()].into_iter().flatten() {
            if let Slot::Var(v) = slot {
                set.insert(v);
            }
        }
        set
    }

    pub fn graph_slot(&self) -> Option<Slot> {
        match self.g {
            GraphSlot::Default => None,
            GraphSlot::Named(slot) => Some(slot),
        }
    }
}

/// The fate of a left row, by the matches on the right side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExistsKind {
    /// kept when there is a match
    Semi,
    /// kept when there is none
    Anti,
    /// kept, with a boolean in this variable
    Mark(Var),
}

/// The fate of a left row, by the matches of the right side evaluated for that row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ApplyKind {
    /// extended by each match, or kept as it is
    Left,
    Exists(ExistsKind),
}

/// A variable of the rows that a right side is evaluated for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ContextVar {
    /// its number outside
    pub of: Var,
    /// its number in this place: a sub-select that hides the name has one of its own
    pub here: Var,
    pub certain: bool,
}

/// A sort key.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct SortKey {
    pub expr: Expression,
    pub descending: bool,
}

/// An operator of the algebra. Bags of solutions in, a bag of solutions out.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Node {
    /// one solution that binds nothing
    Unit,
    Pattern(Pattern),
    Path {
        s: Slot,
        path: PropertyPathExpression,
        o: Slot,
        g: GraphSlot,
    },
    /// the names of the named graphs; of a constant, one solution that binds nothing if it is one
    GraphNames(Slot),
    /// inside the right side of the [`Node::Apply`] of the same `row`: the rows it is evaluated
    /// for
    Context {
        row: Var,
        vars: Vec<ContextVar>,
    },
    /// two or more
    Join(Vec<Node>),
    LeftJoin {
        left: Box<Node>,
        right: Box<Node>,
        conditions: Vec<Expression>,
    },
    /// compatible rows meet; `conditions` see both sides
    Exists {
        left: Box<Node>,
        right: Box<Node>,
        conditions: Vec<Expression>,
        kind: ExistsKind,
    },
    /// `right` is evaluated for the rows of `left`, its contexts. Each distinct context has a
    /// number, `row`; a right row carries the number of the context that it matches
    Apply {
        left: Box<Node>,
        right: Box<Node>,
        row: Var,
        /// what the contexts have of the left side
        vars: VarSet,
        kind: ApplyKind,
    },
    /// rows that have nothing but `apart` in common do not meet
    Minus {
        left: Box<Node>,
        right: Box<Node>,
        apart: VarSet,
    },
    Union(Vec<Node>),
    /// a conjunction
    Filter {
        inner: Box<Node>,
        conditions: Vec<Expression>,
    },
    Extend {
        inner: Box<Node>,
        var: Var,
        expr: Expression,
    },
    Values {
        vars: Vec<Var>,
        rows: Vec<Vec<Option<Const>>>,
    },
    Group {
        inner: Box<Node>,
        keys: Vec<Var>,
        aggregates: Vec<(Var, AggregateExpression)>,
        /// the visible variables of its solutions, by which COUNT(DISTINCT *) tells them apart
        visible: VarSet,
    },
    Distinct(Box<Node>),
    Reduced(Box<Node>),
    Sort {
        inner: Box<Node>,
        keys: Vec<SortKey>,
    },
    /// of the rows of each combination of `per`
    Slice {
        inner: Box<Node>,
        offset: u64,
        limit: Option<u64>,
        per: Vec<Var>,
    },
    /// hides all variables but these
    Project {
        inner: Box<Node>,
        vars: Vec<Var>,
    },
}

impl Node {
    /// Its direct parts.
    pub fn parts(&self) -> Vec<&Node> {
        match self {
            Self::Unit
            | Self::Pattern(_)
            | Self::Path { .. }
            | Self::GraphNames(_)
            | Self::Context { .. }
            | Self::Values { .. } => Vec::new(),
            Self::Join(nodes) | Self::Union(nodes) => nodes.iter().collect(),
            Self::LeftJoin { left, right, .. }
            | Self::Exists { left, right, .. }
            | Self::Apply { left, right, .. }
            | Self::Minus { left, right, .. } => vec![left, right],
            Self::Filter { inner, .. }
            | Self::Extend { inner, .. }
            | Self::Group { inner, .. }
            | Self::Distinct(inner)
            | Self::Reduced(inner)
            | Self::Sort { inner, .. }
            | Self::Slice { inner, .. }
            | Self::Project { inner, .. } => vec![inner],
        }
    }

    /// Itself and all it is made of, in the order of the text.
    pub fn all(&self) -> Vec<&Node> {
        let (mut all, mut open) = (Vec::new(), vec![self]);
        while let Some(node) = open.pop() {
            all.push(node);
            open.extend(node.parts().into_iter().rev());
        }
        all
    }

    /// The expressions of this operator itself.
    fn expressions(&self) -> Vec<&Expression> {
        match self {
            Self::LeftJoin { conditions, .. }
            | Self::Exists { conditions, .. }
            | Self::Filter { conditions, .. } => conditions.iter().collect(),
            Self::Extend { expr, .. } => vec![expr],
            Self::Sort { keys, .. } => keys.iter().map(|key| &key.expr).collect(),
            Self::Group { aggregates, .. } => {
                aggregates.iter().filter_map(|(_, aggregate)| argument(aggregate)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The form of the answer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Form {
    Select(Vec<Var>),
    Ask,
    /// triples per solution; a blank node of the template is fresh for each solution
    Construct(Vec<[TemplateSlot; 3]>),
    /// descriptions of the values of these variables and, if there is any solution, of these
    /// constants
    Describe(Vec<Var>, Vec<Const>),
}

/// A place in a CONSTRUCT template.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum TemplateSlot {
    Var(Var),
    Const(Const),
    /// the n-th blank node of the template
    Blank(u32),
}

/// The graphs a query sees. `None`: the stored default graph, and all named graphs.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Dataset {
    pub default: Option<Vec<Const>>,
    pub named: Option<Vec<Const>>,
}

impl Dataset {
    /// A graph that is listed twice is one graph.
    pub fn new(default: Option<Vec<Const>>, named: Option<Vec<Const>>) -> Self {
        let distinct = |mut list: Vec<Const>| {
            let mut seen = FxHashSet::default();
            list.retain(|graph| seen.insert(*graph));
            list
        };
        Self { default: default.map(distinct), named: named.map(distinct) }
    }
}

/// A whole query of one shape.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Algebra {
    pub form: Form,
    pub root: Node,
    pub dataset: Dataset,
    /// a unique name per variable; expressions use it
    pub names: Vec<Variable>,
    /// their numbers
    pub numbers: FxHashMap<Variable, Var>,
    pub consts: Vec<ConstTerm>,
    pub base: Option<String>,
    /// stack bytes that going over it takes
    pub room: usize,
}

impl Drop for Algebra {
    fn drop(&mut self) {
        let root = std::mem::replace(&mut self.root, Node::Unit);
        with_room(self.room, || drop(root));
    }
}

/// The argument of an aggregate; COUNT(*) has none.
fn argument(aggregate: &AggregateExpression) -> Option<&Expression> {
    match aggregate {
        AggregateExpression::FunctionCall { expr, .. } => Some(expr),
        AggregateExpression::CountSolutions { .. } => None,
    }
}

impl Algebra {
    /// Whether it calls BNODE(string), whose nodes are told apart by counting.
    pub fn names_blanks(&self) -> bool {
        self.calls(|function, args| *function == Function::BNode && !args.is_empty())
    }

    fn calls(&self, is_it: impl Fn(&Function, &[Expression]) -> bool) -> bool {
        let mut found = false;
        self.each_call(|function, args| found |= is_it(function, args));
        found
    }

    /// Calls `f` for each call of a function.
    pub fn each_call(&self, mut f: impl FnMut(&Function, &[Expression])) {
        for expr in self.root.all().into_iter().flat_map(Node::expressions) {
            visit(expr, &mut |part| {
                if let Expression::FunctionCall(function, args) = part {
                    f(function, args);
                }
            });
        }
    }

    /// The number behind a name of an expression.
    pub fn var(&self, name: &Variable) -> Option<Var> {
        self.numbers.get(name).copied()
    }

    /// The variables an expression reads (EXISTS has been taken out before).
    pub fn vars_of(&self, expr: &Expression) -> VarSet {
        let mut set = VarSet::default();
        visit(expr, &mut |e| {
            if let Expression::Variable(v) | Expression::Bound(v) = e {
                set.extend(self.var(v));
            }
        });
        set
    }
}

/// Calls `f` for the expression and all its parts, not entering EXISTS.
pub(crate) fn visit<'a>(expr: &'a Expression, f: &mut impl FnMut(&'a Expression)) {
    use Expression as E;
    f(expr);
    match expr {
        E::Or(..) => chained(expr, or).into_iter().for_each(|e| visit(e, f)),
        E::And(..) => chained(expr, and).into_iter().for_each(|e| visit(e, f)),
        E::Equal(a, b)
        | E::SameTerm(a, b)
        | E::Greater(a, b)
        | E::GreaterOrEqual(a, b)
        | E::Less(a, b)
        | E::LessOrEqual(a, b)
        | E::Add(a, b)
        | E::Subtract(a, b)
        | E::Multiply(a, b)
        | E::Divide(a, b) => {
            visit(a, f);
            visit(b, f);
        }
        E::UnaryPlus(a) | E::UnaryMinus(a) | E::Not(a) => visit(a, f),
        E::If(a, b, c) => {
            visit(a, f);
            visit(b, f);
            visit(c, f);
        }
        E::In(a, list) => {
            visit(a, f);
            list.iter().for_each(|e| visit(e, f));
        }
        E::Coalesce(list) | E::FunctionCall(_, list) => list.iter().for_each(|e| visit(e, f)),
        E::NamedNode(_) | E::Literal(_) | E::Variable(_) | E::Bound(_) | E::Exists(_) => {}
    }
}

/// The two sides of `||`.
pub(crate) fn or(e: &Expression) -> Option<(&Expression, &Expression)> {
    if let Expression::Or(a, b) = e { Some((a, b)) } else { None }
}

/// The two sides of `&&`.
pub(crate) fn and(e: &Expression) -> Option<(&Expression, &Expression)> {
    if let Expression::And(a, b) = e { Some((a, b)) } else { None }
}

/// The parts that one connective joins, in order. A loop: the parser makes of a thousand parts
/// a tree of a thousand levels.
pub(crate) fn chained(
    expr: &Expression,
    sides: fn(&Expression) -> Option<(&Expression, &Expression)>,
) -> Vec<&Expression> {
    let (mut parts, mut open) = (Vec::new(), vec![expr]);
    while let Some(e) = open.pop() {
        match sides(e) {
            Some((a, b)) => open.extend([b, a]),
            None => parts.push(e),
        }
    }
    parts
}

/// Joins parts by an associative connective in as few levels as there can be.
fn balanced(
    mut parts: Vec<Expression>,
    make: fn(Box<Expression>, Box<Expression>) -> Expression,
) -> Expression {
    while parts.len() > 1 {
        let mut half = Vec::with_capacity(parts.len().div_ceil(2));
        let mut open = parts.into_iter();
        while let Some(a) = open.next() {
            half.push(match open.next() {
                Some(b) => make(Box::new(a), Box::new(b)),
                None => a,
            });
        }
        parts = half;
    }
    parts.pop().expect("a connective has parts")
}

/// The expression with each part passed through `f`, leaves first; of a chain of `||` or
/// `&&` the parts and the whole. EXISTS is handed to `f` whole.
pub(crate) fn map<Err>(
    expr: &Expression,
    f: &mut impl FnMut(Expression) -> Result<Expression, Err>,
) -> Result<Expression, Err> {
    use Expression as E;
    macro_rules! two {
        ($variant:ident, $a:expr, $b:expr) => {
            E::$variant(Box::new(map($a, f)?), Box::new(map($b, f)?))
        };
    }
    let mapped = match expr {
        E::Or(..) => {
            let parts = chained(expr, or).into_iter().map(|e| map(e, f)).collect::<Result<_, _>>()?;
            balanced(parts, E::Or)
        }
        E::And(..) => {
            let parts = chained(expr, and).into_iter().map(|e| map(e, f)).collect::<Result<_, _>>()?;
            balanced(parts, E::And)
        }
        E::Equal(a, b) => two!(Equal, a, b),
        E::SameTerm(a, b) => two!(SameTerm, a, b),
        E::Greater(a, b) => two!(Greater, a, b),
        E::GreaterOrEqual(a, b) => two!(GreaterOrEqual, a, b),
        E::Less(a, b) => two!(Less, a, b),
        E::LessOrEqual(a, b) => two!(LessOrEqual, a, b),
        E::Add(a, b) => two!(Add, a, b),
        E::Subtract(a, b) => two!(Subtract, a, b),
        E::Multiply(a, b) => two!(Multiply, a, b),
        E::Divide(a, b) => two!(Divide, a, b),
        E::UnaryPlus(a) => E::UnaryPlus(Box::new(map(a, f)?)),
        E::UnaryMinus(a) => E::UnaryMinus(Box::new(map(a, f)?)),
        E::Not(a) => E::Not(Box::new(map(a, f)?)),
        E::If(a, b, c) => E::If(Box::new(map(a, f)?), Box::new(map(b, f)?), Box::new(map(c, f)?)),
        E::In(a, list) => E::In(Box::new(map(a, f)?), map_all(list, f)?),
        E::Coalesce(list) => E::Coalesce(map_all(list, f)?),
        E::FunctionCall(function, list) => E::FunctionCall(function.clone(), map_all(list, f)?),
        E::NamedNode(_) | E::Literal(_) | E::Variable(_) | E::Bound(_) | E::Exists(_) => expr.clone(),
    };
    f(mapped)
}

fn map_all<Err>(
    list: &[Expression],
    f: &mut impl FnMut(Expression) -> Result<Expression, Err>,
) -> Result<Vec<Expression>, Err> {
    list.iter().map(|e| map(e, f)).collect()
}
