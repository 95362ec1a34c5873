//! The physical plan: a tree of operators with every column position fixed.
//!
//! A plan belongs to a shape, not to a query: constants are numbers ([`Const`]) looked up in
//! the running query's table, expressions have numbers of parameters. It is immutable and shared
//! by all queries of the shape.
//!
//! *Seeds.* The right side of OPTIONAL and EXISTS, and the branches of a UNION, are plans whose
//! first leaf is [`Op::Seed`]: they are run once per batch of the left side, which enters
//! there. So whatever an inner pattern shares with the outside is a bound key for its look-ups.
//! A seed carries, where rows must be told apart afterwards, a column of row numbers.
//!
//! *Contexts.* Where the right side of EXISTS notices what it is evaluated for in more places
//! than its first, the same rows are an [`Op::Context`] in each of them. What depends on a
//! context is computed anew for the next.

mod columns;
mod cost;
mod inputs;
mod learned;
pub(crate) mod ranged;
mod reads;
mod sound;

use std::sync::Arc;

use snowmelt_graph::{AnyIndex, TermId};

use crate::algebra::{
    AggregateExpression, Const, ExistsKind, Expression, PropertyPath, Service, SortKey, Var, VarSet,
};
use crate::bounds::{plan_stack_bytes, with_room};

pub(crate) use columns::{INDEXES, columns_of, index_place};
pub(crate) use cost::Cost;
pub(crate) use inputs::{children, children_mut};
pub(crate) use learned::{JoinKey, Learned, Surprise, element};
pub(crate) use reads::{IndexPages, Reads, Residency, is_at_hand};

/// An operator with what the optimiser expects of it.
#[derive(Debug)]
pub(crate) struct PlanNode {
    /// position in the plan, for counters
    pub id: usize,
    /// the variables of its columns
    pub vars: Vec<Var>,
    /// expected rows
    pub rows: f64,
    /// expected cost, inputs included
    pub cost: Cost,
    /// the contexts from further up that it reads, by their row numbers' variables
    pub contexts: VarSet,
    /// the join that its rows are those of, where that is watched
    pub join: Option<JoinKey>,
    pub op: Op,
}

impl PlanNode {
    /// The column of a variable.
    /// Whether it does what another does, as far as the operators and their columns tell.
    pub fn works_as(&self, other: &Self) -> bool {
        let (mine, theirs) = (children(&self.op), children(&other.op));
        std::mem::discriminant(&self.op) == std::mem::discriminant(&other.op)
            && self.vars == other.vars
            && mine.len() == theirs.len()
            && mine.iter().zip(theirs).all(|(a, b)| a.works_as(b))
    }

    pub fn col(&self, v: Var) -> Option<u16> {
        self.vars.iter().position(|x| *x == v).map(|i| i as u16)
    }
}

/// Where a key comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Src {
    Const(Const),
    Fixed(TermId),
    /// a column of the input
    Col(u16),
}

/// A condition on an index row beyond its key.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Test {
    /// equals a constant or a column of the input
    Equals(Src),
    /// equals another of the columns after the key
    SameAs(u8),
    /// a named graph
    NotDefaultGraph,
    /// one of the graphs of the dataset
    OneOf(Vec<Const>),
}

/// Conditions on a variable that is a column of a scanned index: only the ranges of ids that may
/// satisfy them are read.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Bounds {
    /// all hold of each row that is put out; see [`ranged::ranged`]
    pub conditions: Vec<Expression>,
    pub var: Var,
    /// the column behind the key, or the one after that, where each value of the former is visited
    pub column: u8,
}

/// Whether it matters how often a row comes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Copies {
    /// DISTINCT, EXISTS or the like is above: copies may be merged
    Merge,
    /// each copy counts; those of a row may come as one that says how many it stands for, its
    /// *weight*, in a column of its own
    Weigh,
    /// each copy counts and comes
    Count,
}

/// One visit to one index.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Access {
    pub index: AnyIndex,
    /// the leading columns
    pub key: Vec<Src>,
    /// the column after the key is the graph, and only the default graph is wanted
    pub default_graph: bool,
    /// only for scans
    pub bounds: Option<Bounds>,
    /// on the columns after the key, counted from 0
    pub tests: Vec<(u8, Test)>,
    /// the columns after the key that are put out
    pub new: Vec<u8>,
    /// several graphs are read as one: rows that differ in the graph alone count once
    pub merge_graphs: bool,
    /// other than [`Copies::Count`]: rows that follow each other and are equal in what is put
    /// out come as one, [`Copies::Weigh`] with how many they are in a last column
    pub copies: Copies,
}

impl Access {
    /// Columns that it puts out.
    pub fn width(&self) -> usize {
        self.new.len() + usize::from(self.copies == Copies::Weigh)
    }

    /// Whether a scan only counts rows, as far as its conditions are sure.
    pub fn counts(&self) -> bool {
        let of_each = self.bounds.as_ref().is_some_and(|bounds| bounds.column > 0);
        let is_known = self.new.is_empty() || (of_each && self.new == [0]);
        self.copies != Copies::Count && self.tests.is_empty() && is_known
    }

    /// Whether a scan passes over equal rows without reading them all.
    pub fn leaps(&self) -> bool {
        let one_by_one = self.bounds.as_ref().is_some_and(|bounds| bounds.column > 0);
        self.copies != Copies::Count
            && self.new.len() < 2
            && self.tests.iter().all(|(c, _)| *c == 0)
            && !one_by_one
    }
}

/// How rows of two inputs meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JoinKind {
    Inner,
    Left,
    Minus,
    Exists(ExistsKind),
}

impl JoinKind {
    /// Whether right rows with the same keys are as good as one of them.
    pub fn asks_only_whether(self) -> bool {
        matches!(self, Self::Minus | Self::Exists(_))
    }
}

/// Output of a look-up for an input row and the index rows that it finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Finds {
    /// the input row with each
    Rows,
    /// the same, or the input row alone where there is none
    Optional,
    /// the input row, by whether there is one
    Whether(ExistsKind),
}

#[derive(Debug)]
pub(crate) enum Op {
    /// the batch a seeded plan is run for
    Seed,
    /// the rows that a right side is evaluated for; `None`: unbound
    Context {
        row: Var,
        cols: Vec<Option<u16>>,
    },
    /// one row without columns
    Unit,
    /// no row
    Nothing,
    /// index rows under constants
    Scan {
        access: Access,
    },
    /// index rows for each input row; puts out `keep` of the input, then the new columns, then
    /// the weight if its visit has one
    Lookup {
        input: Box<PlanNode>,
        access: Access,
        finds: Finds,
        keep: Vec<u16>,
        /// conditions on the new columns alone, of which `emit` go on
        conditions: Vec<Expression>,
        /// the variables of the new columns
        new: Vec<Var>,
        emit: Vec<u16>,
        /// further visits whose keys are known here: their pages are announced together with
        /// this one's
        star: Vec<(AnyIndex, Vec<Src>)>,
    },
    /// the right side is built into a table, the left probes it; no keys: the product
    Hash {
        left: Box<PlanNode>,
        right: Box<PlanNode>,
        on: Vec<(u16, u16)>,
        /// columns may be unbound: rows are compared one by one as SPARQL's compatible
        loose: bool,
        /// for MINUS, of `on`: to have only these in common is to be disjoint
        apart: Vec<u16>,
        kind: JoinKind,
        keep_left: Vec<u16>,
        /// with the left column that stands in where this one is unbound
        keep_right: Vec<(u16, Option<u16>)>,
    },
    /// the right side is run for each batch of the left, seeded with `seed` of its columns and
    /// the row number; or these are the context of that variable
    Nested {
        left: Box<PlanNode>,
        right: Box<PlanNode>,
        seed: Vec<u16>,
        context: Option<Var>,
        /// the right side's column of row numbers
        row: u16,
        kind: JoinKind,
        keep_left: Vec<u16>,
        /// as in a hash join
        keep_right: Vec<(u16, Option<u16>)>,
    },
    Filter {
        input: Box<PlanNode>,
        conditions: Vec<Expression>,
        keep: Vec<u16>,
    },
    /// `keep` of the input, then the value; `stored`: local terms are looked up, because ids
    /// will be compared
    Extend {
        input: Box<PlanNode>,
        expr: Expression,
        keep: Vec<u16>,
        stored: bool,
    },
    Values {
        rows: Vec<Vec<Option<Const>>>,
    },
    /// the names of the named graphs; with a constant: whether it is one
    GraphNames {
        graph: Option<Const>,
        of: Option<Vec<Const>>,
    },
    /// per branch, where each column comes from; with an input each branch is seeded with its
    /// batches
    Union {
        input: Option<Box<PlanNode>>,
        branches: Vec<(PlanNode, Vec<Option<u16>>)>,
    },
    /// the keys, then the aggregates; a row stands for as many as the product of its weights;
    /// `stored` as for Extend
    Group {
        input: Box<PlanNode>,
        keys: Vec<u16>,
        /// what COUNT(DISTINCT *) tells solutions apart by
        visible: Vec<u16>,
        weights: Vec<u16>,
        aggregates: Vec<AggregateExpression>,
        stored: bool,
    },
    /// the groups of all pairs of a row of `left` and a row of `right` whose values in the columns
    /// `on` are no row of `pairs`: `keys` are of `left`, arguments of `right`
    GroupWithout {
        right: Box<PlanNode>,
        pairs: Box<PlanNode>,
        left: Box<PlanNode>,
        on: (u16, u16),
        keys: Vec<u16>,
        left_weights: Vec<u16>,
        right_weights: Vec<u16>,
        aggregates: Vec<AggregateExpression>,
        stored: bool,
    },
    /// `keys` of the input, then the product of `weights`: rows of a batch that are equal in the
    /// keys become one, whose weight is the sum of theirs
    Fold {
        input: Box<PlanNode>,
        keys: Vec<u16>,
        weights: Vec<u16>,
    },
    /// `keep` of the input, each row as often as the product of its weights, but up to `most` times
    Repeat {
        input: Box<PlanNode>,
        keep: Vec<u16>,
        weights: Vec<u16>,
        most: u64,
    },
    /// how many different values the one column of its input has, which come in order
    CountValues {
        input: Box<PlanNode>,
    },
    /// `optional`: only there to make later work less; gives up where it finds little to drop
    Distinct {
        input: Box<PlanNode>,
        optional: bool,
    },
    Sort {
        input: Box<PlanNode>,
        keys: Vec<SortKey>,
        limit: Option<u64>,
        keep: Vec<u16>,
    },
    /// of the rows of each combination of `per`
    Slice {
        input: Box<PlanNode>,
        offset: u64,
        limit: Option<u64>,
        per: Vec<u16>,
    },
    /// columns in another order; `None`: unbound
    Project {
        input: Box<PlanNode>,
        cols: Vec<Option<u16>>,
    },
    /// an endpoint is asked for the values of its input, or, without one, once; puts out `keep`
    /// of the input, then the new columns
    Service {
        input: Option<Box<PlanNode>>,
        service: Arc<Service>,
        endpoint: Src,
        /// columns whose values are sent
        sent: Vec<SentValue>,
        keep: Vec<u16>,
        /// names by their places, with the input's column that comes first where it is bound
        new: Vec<(u16, Option<u16>)>,
        /// copies of a row do not count
        is_distinct: bool,
        /// as for Extend
        stored: bool,
    },
    /// `same`: both ends are new and one variable
    Path {
        input: Box<PlanNode>,
        from: PathEnd,
        path: PropertyPath,
        to: PathEnd,
        graph: PathGraph,
        same: bool,
        keep: Vec<u16>,
    },
}

/// A column of the input that is sent to an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SentValue {
    /// its name's place
    pub name: u16,
    pub col: u16,
    /// each solution of the endpoint binds it
    pub is_certain: bool,
}

/// An end of a property path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PathEnd {
    Is(Src),
    /// a new column
    New,
}

/// The graphs a path runs in.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum PathGraph {
    Default,
    Is(Src),
    /// each named graph, put out as a new column after the ends
    Each,
}

/// A whole plan.
#[derive(Debug)]
pub(crate) struct Plan {
    pub root: PlanNode,
    /// how many operators: `PlanNode::id` is below it
    pub nodes: usize,
    /// the columns of all of them together
    pub columns: usize,
    /// stack bytes that running it takes
    pub room: usize,
    /// its assumptions about reads
    pub reads: Reads,
    /// what runs of plans before it found out
    pub learned: Learned,
    /// bytes that operators are expected to gather, each
    gathered: Vec<f64>,
}

impl Plan {
    /// A plan of an algebra over which to go takes `text_room`.
    pub fn new(root: PlanNode, nodes: usize, text_room: usize, reads: Reads, learned: Learned) -> Self {
        let (mut levels, mut columns, mut open) = (0, 0, vec![(&root, 1)]);
        let mut gathered = Vec::new();
        while let Some((node, level)) = open.pop() {
            levels = levels.max(level);
            columns += node.vars.len();
            gathered.extend(gathered_bytes(node));
            open.extend(children(&node.op).into_iter().map(|c| (c, level + 1)));
        }
        let room = plan_stack_bytes(text_room, levels);
        with_room(room, || sound::assert_sound(&root, nodes));
        Self { root, nodes, columns, room, reads, learned, gathered }
    }

    /// Operators that are expected to gather more than so many bytes.
    pub fn gathering(&self, bytes: usize) -> usize {
        self.gathered.iter().filter(|gathered| **gathered > bytes as f64).count()
    }
}

/// Bytes that an operator gathers before it puts rows out, at most, as far as the sizes of its
/// inputs are right.
fn gathered_bytes(node: &PlanNode) -> Option<f64> {
    /// Of a row, beside its values: hash, key, place.
    const BESIDE: usize = 64;
    let of = |rows: f64, columns: usize| Some(rows * (columns * size_of::<TermId>() + BESIDE) as f64);
    match &node.op {
        Op::Group { input, .. } => of(input.rows, node.vars.len()),
        Op::GroupWithout { right, pairs, .. } => of(2.0 * right.rows + pairs.rows, node.vars.len()),
        Op::Distinct { input, optional: false } => of(input.rows, node.vars.len()),
        Op::Sort { input, limit, .. } => {
            let kept = limit.map_or(f64::INFINITY, |limit| 2.0 * limit as f64);
            of(input.rows.min(kept), node.vars.len())
        }
        Op::Hash { right, .. } => of(right.rows, right.vars.len()),
        Op::Path { .. } => of(node.rows, node.vars.len()),
        _ => None,
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        let op = std::mem::replace(&mut self.root.op, Op::Nothing);
        with_room(self.room, || drop(op));
    }
}

/// Meaning of "the default graph" and "the named graphs" for a query.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct GraphScope {
    /// graphs merged into the default graph; `None`: the stored one
    pub default: Option<Vec<Const>>,
    /// `None`: all
    pub named: Option<Vec<Const>>,
    /// the database has no named graph: no operator need look at the graph column
    pub plain: bool,
}
