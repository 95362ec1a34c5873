//! The algebra of a query: what is asked, before it is decided how.
//!
//! The tree of a text is turned into [`Node`]s by [`translate`]: variables become dense numbers
//! with SPARQL's scopes already resolved (a variable hidden by a sub-select gets a number of
//! its own, a filter's variable that is not in scope becomes one that is never bound),
//! constants become numbered [`Const`]s so that one algebra serves all queries of one shape,
//! joins are flat, and EXISTS is a join of its own kind.
//!
//! Invariant: within one [`Algebra`] equal numbers mean the same variable everywhere.

pub(crate) mod bind;
pub(crate) mod consts;
mod existence;
mod expr;
pub(crate) mod join_key;
mod mentions;
pub(crate) mod names;
mod path;
mod scope;
mod service;
mod text_use;
pub(crate) mod translate;
mod vars;

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::bounds::with_room;

use consts::ConstTerm;
pub(crate) use expr::{
    AggregateExpression, BinaryOperator, Called, Expression, ExpressionText, Function, GroupFunction, Param,
    UnaryOperator,
};
pub(crate) use path::PropertyPath;
pub(crate) use scope::{Scope, bound_by};
pub(crate) use service::{Service, TextPiece};
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
    /// none: the pattern is of triple terms, and this is the term's own place
    TripleTerm(Slot),
}

/// One triple pattern in its graph, or the pattern of a triple term, whose parts are in no graph.
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

    /// Its place behind subject, predicate and object.
    pub fn graph_slot(&self) -> Option<Slot> {
        match self.g {
            GraphSlot::Default => None,
            GraphSlot::Named(slot) | GraphSlot::TripleTerm(slot) => Some(slot),
        }
    }

    /// The place of the term, where the pattern is of triple terms.
    pub fn triple_term(&self) -> Option<Slot> {
        if let GraphSlot::TripleTerm(slot) = self.g { Some(slot) } else { None }
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
        path: PropertyPath,
        o: Slot,
        g: GraphSlot,
    },
    /// the names of the named graphs; of a constant, one solution that binds nothing if it is one
    GraphNames(Slot),
    /// a pattern that an endpoint elsewhere answers
    Service(Arc<Service>),
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
    /// The source of its rows: the first node below that is more than a change of them.
    pub fn source(&self) -> &Node {
        let mut node = self;
        while let Node::Filter { inner, .. }
        | Node::Extend { inner, .. }
        | Node::Group { inner, .. }
        | Node::Distinct(inner)
        | Node::Reduced(inner)
        | Node::Sort { inner, .. }
        | Node::Slice { inner, .. }
        | Node::Project { inner, .. } = node
        {
            node = inner;
        }
        node
    }

    /// Its direct parts.
    pub fn parts(&self) -> Vec<&Node> {
        match self {
            Self::Unit
            | Self::Pattern(_)
            | Self::Path { .. }
            | Self::GraphNames(_)
            | Self::Service(_)
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
                aggregates.iter().filter_map(|(_, aggregate)| aggregate.argument.as_ref()).collect()
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
    /// a triple term, of whose parts one is no constant
    Triple(Box<[TemplateSlot; 3]>),
}

impl TemplateSlot {
    /// The variables in it.
    pub fn vars(&self) -> Vec<Var> {
        match self {
            Self::Var(v) => vec![*v],
            Self::Const(_) | Self::Blank(_) => Vec::new(),
            Self::Triple(parts) => parts.iter().flat_map(Self::vars).collect(),
        }
    }
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
    /// of each variable the name that the text has for it
    pub names: Vec<String>,
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

impl Algebra {
    /// Whether it calls BNODE(string), whose nodes are told apart by counting.
    pub fn names_blanks(&self) -> bool {
        let mut found = false;
        self.each_call(|function, args| {
            found |= function == Called::Keyword(Function::BNode) && !args.is_empty();
        });
        found
    }

    /// A variable that is never bound.
    pub fn never(&mut self) -> Var {
        let name = names::Internal::Never.name();
        let known = self.names.iter().position(|other| *other == name);
        let place = known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        Var(place as u32)
    }

    /// Whether some condition or value needs texts of the dictionary.
    pub fn needs_texts(&self) -> bool {
        let expressions = self.root.all().into_iter().flat_map(Node::expressions);
        expressions.into_iter().any(|expression| !expression.text_vars().is_empty())
    }

    /// Whether endpoints elsewhere have a part in its answer.
    pub fn asks_elsewhere(&self) -> bool {
        self.root.all().into_iter().any(|node| matches!(node, Node::Service(_)))
    }

    /// Calls `f` for each call of a function.
    pub fn each_call(&self, mut f: impl FnMut(Called<'_>, &[Expression])) {
        for expr in self.root.all().into_iter().flat_map(Node::expressions) {
            expr.visit(&mut |part| match part {
                Expression::Call(function, args) => f(Called::Keyword(*function), args),
                Expression::Custom(iri, args) => f(Called::Iri(iri), args),
                _ => {}
            });
        }
    }
}
