//! From algebra to plan.
//!
//! [`lower`] walks the algebra and chooses operators; the order of joins comes from [`order`]
//! (dynamic programming, then greedy), on the estimates of [`estimate`] (exact counts where
//! constants allow), and [`access`] turns a triple pattern into visits to indexes.
//!
//! Costs are microseconds of a warm core ([`Costs`]) and of a device ([`device_time`]). Device
//! time is that of the pages that are expected to be absent, and nothing where all is in memory:
//! a plan is made for a state of memory ([`Reads`]), and kept for queries that meet the same.
//! Which pages a run must really wait for is known only when it runs: the operators then
//! announce their reads together ([`star`]).

mod access;
mod device_time;
mod estimate;
mod greedy;
mod guess;
mod lower;
mod memo;
mod order;
mod path;
mod problem;
mod sample;
mod star;
mod tried;
mod walked;

use snowmelt_graph::{AnyIndex, CompareOp, Index, TermId};

use crate::algebra::{Algebra, Const, Expression, Node, Var, VarSet};
use crate::bounds::Limits;
use crate::error::QueryError;
use crate::plan::{Cost, GraphScope, Learned, Plan, Reads};

use device_time::Reach;
use memo::{Estimates, Nodes};

pub(crate) use estimate::{Estimate, OfVariable};

/// Questions of the optimiser about the data. The constants are those of the query that the plan is
/// made for first.
pub(crate) trait Statistics {
    /// The stored id of a constant; `None` when the data does not have it.
    fn id(&mut self, c: Const) -> Option<TermId>;
    /// Exact number of index rows under a prefix.
    fn count(&mut self, index: AnyIndex, prefix: &[TermId]) -> Result<u64, QueryError>;
    /// Exact number of rows of POSG under a predicate whose object satisfies a comparison
    /// (those to check included).
    fn count_compared(
        &mut self,
        predicate: TermId,
        op: CompareOp,
        with: Const,
    ) -> Result<Option<u64>, QueryError>;
    /// Rows, distinct subjects and distinct objects of a predicate.
    fn predicate(&mut self, predicate: TermId) -> Result<PredicateStatistics, QueryError>;
    /// The share of a predicate's objects that are subjects of it, too.
    fn onward(&mut self, predicate: TermId) -> Result<f64, QueryError>;
    /// Rows of an index under a prefix, by their places there.
    fn rows_at(
        &mut self,
        index: Index,
        prefix: &[TermId],
        places: &[u64],
    ) -> Result<Vec<Vec<u64>>, QueryError>;
    /// Subjects that have all of some predicates, which ascend, in all graphs together; `None`
    /// where that was not counted.
    fn subjects_with(&mut self, predicates: &[TermId]) -> Option<f64>;
    /// Exact number of index rows under a prefix, for a sample.
    fn count_for_sample(&mut self, index: Index, prefix: &[TermId]) -> Result<u64, QueryError>;
    /// The rows for which a condition holds; `None` where that cannot be tried.
    fn passing(&mut self, condition: &Expression, rows: Rows<'_>) -> Option<Vec<u32>>;
    /// The value of an expression for each row; `None` where that cannot be tried.
    fn computed(&mut self, expr: &Expression, rows: Rows<'_>) -> Option<Vec<TermId>>;
    /// The whole database.
    fn totals(&mut self) -> Totals;
}

/// Rows by the variables of their columns.
pub(crate) type Rows<'r> = (&'r [Var], &'r [Vec<TermId>]);

/// Counts of a predicate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PredicateStatistics {
    pub rows: f64,
    pub subjects: f64,
    pub objects: f64,
}

/// Counts of the database.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub quads: f64,
    pub subjects: f64,
    pub predicates: f64,
    pub objects: f64,
    /// of triple terms: how many there are, and different subjects, predicates and objects of them
    pub triple_terms: [f64; 4],
}

/// The cost model: microseconds per unit of work, measured on BSBM at 10 M triples, warm; and
/// device time of what is absent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// descent to a leaf for a key far from the one before
    pub key: f64,
    /// step to a key on the same leaf
    pub near_key: f64,
    /// a row put out
    pub row: f64,
    /// a row read in a scan
    pub scan_row: f64,
    /// a row put into or looked up in a hash table
    pub hash_row: f64,
    /// a text of the dictionary, read in its order, and a function of it
    pub text: f64,
    /// an operator's start
    pub operator: f64,
    /// index rows on a page
    pub rows_per_page: f64,
    /// a block of a leaf that a merge unpacks
    pub block: f64,
    /// a block that a merge passes, or unpacks
    pub passed_block: f64,
    /// residency of the indexes, and the device
    pub reads: Reads,
}

/// Rows of a leaf that are unpacked together.
const ROWS_PER_BLOCK: f64 = 128.0;

impl Default for Costs {
    fn default() -> Self {
        Self {
            key: 0.5,
            near_key: 0.2,
            row: 0.01,
            scan_row: 0.003,
            hash_row: 0.03,
            text: 0.3,
            operator: 0.5,
            rows_per_page: 700.0,
            block: 0.12,
            passed_block: 0.013,
            reads: Reads::none(),
        }
    }
}

impl Costs {
    /// `keys` sorted look-ups within reach that find `found` rows of `rows`.
    pub fn lookup(&self, keys: f64, rows: f64, found: f64, reach: Reach) -> Cost {
        let pages = (rows / self.rows_per_page).max(1.0);
        // expected distinct leaves of that many keys
        let leaves = pages * (1.0 - (-keys / pages).exp());
        let one_by_one = leaves * self.key + keys * self.near_key;
        // dense keys are merged: blocks of leaves that hold a key are unpacked, others passed
        let blocks = (rows / ROWS_PER_BLOCK).max(1.0);
        let unpacked = blocks * (1.0 - (-keys / blocks).exp());
        let merged = self.key + unpacked * self.block + blocks * self.passed_block + keys * self.row;
        let work = self.operator + one_by_one.min(merged) + found * self.row;
        Cost { cpu: work, io: device_time::lookup(&self.reads, reach, keys, found) }
    }

    pub fn scan(&self, rows: f64, index: AnyIndex) -> Cost {
        let work = self.operator + self.key + rows * self.scan_row;
        Cost { cpu: work, io: device_time::scan(&self.reads, index, rows) }
    }

    pub fn hash(&self, build: f64, probe: f64, found: f64) -> f64 {
        self.operator + (build + probe) * self.hash_row + found * self.row
    }
}

/// A plan builds on this, beside the algebra and the data.
pub(crate) struct Basis {
    pub scope: GraphScope,
    /// some expression gives another result for each solution
    pub copies_differ: bool,
    pub reads: Reads,
    pub learned: Learned,
}

/// Plans an algebra that has been rewritten.
pub(crate) fn plan(
    algebra: &Algebra,
    statistics: &mut dyn Statistics,
    output: &[Var],
    basis: Basis,
    limits: &Limits,
) -> Result<Plan, QueryError> {
    let Basis { scope, copies_differ, reads, learned } = basis;
    let made = Nodes::default();
    let mut planner = Planner {
        algebra,
        made: &made,
        statistics,
        scope,
        costs: Costs { reads, ..Costs::default() },
        nodes: 0,
        fresh: algebra.names.len() as u32,
        compared: false,
        estimates: Estimates::default(),
        contexts: Vec::new(),
        weights: VarSet::default(),
        copies_differ,
        looks: tried::LOOKS,
        learned: &learned,
        all_joined: estimate::joined(algebra.root.source()),
        limits,
    };
    let mut root = planner.root(output)?;
    star::announce(&mut root, limits)?;
    let nodes = planner.nodes;
    Ok(Plan::new(root, nodes, algebra.room, reads, learned))
}

struct Planner<'a> {
    algebra: &'a Algebra,
    /// nodes made here, beside the algebra's
    made: &'a Nodes,
    statistics: &'a mut dyn Statistics,
    scope: GraphScope,
    costs: Costs,
    nodes: usize,
    /// the next variable that no expression names (row numbers)
    fresh: u32,
    /// whether computed ids may be compared with stored ones
    compared: bool,
    estimates: Estimates<'a>,
    /// the contexts around: the variable of their row numbers, their columns, what to expect of
    /// them
    contexts: Vec<(Var, Vec<Var>, Estimate)>,
    /// variables of columns that hold weights ([`crate::plan::Copies::Weigh`])
    weights: VarSet,
    /// some expression gives another result for each solution: none may stand for several
    copies_differ: bool,
    /// descents that samples may still take
    looks: usize,
    /// rows of joins that were met
    learned: &'a Learned,
    /// the nodes of the join that nothing else is joined with
    all_joined: &'a [Node],
    /// when to stop
    limits: &'a Limits,
}

impl Planner<'_> {
    fn fresh(&mut self) -> Var {
        self.fresh += 1;
        Var(self.fresh - 1)
    }

    /// A variable for a column of weights.
    fn fresh_weight(&mut self) -> Var {
        let weight = self.fresh();
        self.weights.insert(weight);
        weight
    }
}
