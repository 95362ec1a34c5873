//! The algebra, operator by operator, to a plan.
//!
//! `lower(node, input, want)` plans `Join(input, node)`: where that gives the same answer the
//! input flows into the node, so that its bindings become keys of look-ups; elsewhere the node
//! is planned on its own and hash-joined. [`Want`] says which columns must come out, and
//! whether copies of a row count: columns that are not wanted are dropped as early as possible,
//! and under DISTINCT rows that became equal are merged then.
//!
//! | file | operators |
//! |---|---|
//! | `join` | patterns and what is joined with them, in the order of [`super::order`] |
//! | `keyed` | joins on computed keys |
//! | `fold` | visits whose rows come as one |
//! | `leaf` | one step of a join: a pattern, a path, the names of graphs |
//! | `hash` | hash joins, MINUS, UNION |
//! | `found` | OPTIONAL, EXISTS and MINUS of a pattern, by look-ups |
//! | `nested` | OPTIONAL and EXISTS, run for each batch of the left side |
//! | `service` | endpoints elsewhere |
//! | `correlated` | right sides that are evaluated for the rows of the left |
//! | `extreme` | EXISTS by order: the likeliest match before all |
//! | `row` | BIND and FILTER |
//! | `texts` | the price of texts, and the step of a join that pays it |
//! | `without` | groups of a product without some of its pairs |
//! | `block` | GROUP BY, ORDER BY, LIMIT, DISTINCT |

mod block;
mod correlated;
mod extreme;
mod fold;
mod found;
mod hash;
mod join;
mod keyed;
mod leaf;
mod nested;
mod row;
mod service;
mod texts;
mod without;

use super::estimate::joined;
use super::guess::bounded;
use super::{Estimate, Planner};
use crate::algebra::{ApplyKind, ExistsKind, Expression, Form, Node, Var, VarSet};
use crate::error::QueryError;
use crate::plan::{Copies, Cost, JoinKind, Op, PlanNode, children};
use correlated::contexts;

/// A part of a plan, with what is known of its rows.
pub(super) struct Subplan {
    pub node: PlanNode,
    /// columns never unbound
    pub certain: VarSet,
    /// columns of weights: they stay, wanted or not
    pub weights: VarSet,
    pub estimate: Estimate,
}

impl Subplan {
    fn vars(&self) -> VarSet {
        self.node.vars.iter().copied().collect()
    }

    fn col(&self, v: Var) -> u16 {
        self.node.col(v).expect("asked for a variable of its own")
    }

    /// The columns of those variables it has.
    fn cols(&self, of: &VarSet) -> Vec<u16> {
        (0..self.node.vars.len() as u16).filter(|c| of.contains(self.node.vars[*c as usize])).collect()
    }

    /// Those, and the weights.
    fn kept(&self, of: &VarSet) -> Vec<u16> {
        if self.weights.is_empty() { self.cols(of) } else { self.cols(&of.union(&self.weights)) }
    }

    fn pick(&self, cols: &[u16]) -> Vec<Var> {
        cols.iter().map(|c| self.node.vars[*c as usize]).collect()
    }
}

/// Demands of the operators above on a node's rows.
#[derive(Clone, Debug)]
pub(super) struct Want {
    /// the columns that must come out
    pub vars: VarSet,
    pub copies: Copies,
}

impl Want {
    fn new(vars: VarSet, copies: Copies) -> Self {
        Self { vars, copies }
    }

    /// Further columns.
    fn with(&self, more: &VarSet) -> Self {
        self.with_only(self.vars.union(more))
    }

    /// Other columns.
    fn with_only(&self, vars: VarSet) -> Self {
        Self { vars, copies: self.copies }
    }
}

type Result<T> = std::result::Result<T, QueryError>;

impl<'a> Planner<'a> {
    pub(super) fn root(&mut self, output: &[Var]) -> Result<PlanNode> {
        // ASK needs one row
        let copies = if matches!(self.algebra.form, Form::Ask) { Copies::Merge } else { Copies::Count };
        let want = Want::new(output.iter().copied().collect(), copies);
        let built = self.lower(&self.algebra.root, None, &want)?;
        assert!(self.contexts.is_empty(), "a context ends with its right side");
        let root = self.exactly(built, output).node;
        assert_eq!(root.vars, output, "the root puts out the query's variables in their order");
        Ok(root)
    }

    fn make(
        &mut self,
        op: Op,
        vars: Vec<Var>,
        estimate: Estimate,
        certain: VarSet,
        cost: impl Into<Cost>,
    ) -> Subplan {
        let (rows, cost) = (bounded(estimate.rows), cost.into().map(bounded));
        let estimate = Estimate { rows, ..estimate };
        let id = self.nodes;
        self.nodes += 1;
        let contexts = contexts(&op);
        let weights = vars.iter().copied().filter(|v| self.weights.contains(*v)).collect();
        Subplan {
            node: PlanNode { id, vars, rows, cost, contexts, join: None, op },
            certain,
            weights,
            estimate,
        }
    }

    /// These columns in this order; unbound where there is none.
    fn exactly(&mut self, built: Subplan, vars: &[Var]) -> Subplan {
        if built.node.vars == vars {
            return built;
        }
        let cols = vars.iter().map(|v| built.node.col(*v)).collect();
        let (estimate, certain, cost) = (built.estimate.clone(), built.certain.clone(), built.node.cost);
        self.make(Op::Project { input: Box::new(built.node), cols }, vars.to_vec(), estimate, certain, cost)
    }

    /// Without the columns that are not needed.
    fn trim(&mut self, built: Subplan, need: &VarSet) -> Subplan {
        let wanted = built.pick(&built.kept(need));
        self.exactly(built, &wanted)
    }

    fn unit(&mut self) -> Subplan {
        self.make(Op::Unit, Vec::new(), Estimate::unit(), VarSet::default(), 0.0)
    }

    fn nothing(&mut self) -> Subplan {
        self.make(Op::Nothing, Vec::new(), Estimate::default(), VarSet::default(), 0.0)
    }

    pub(super) fn lower(&mut self, node: &'a Node, input: Option<Subplan>, want: &Want) -> Result<Subplan> {
        // what only passes through these is printed, not compared
        let passes = matches!(
            node,
            Node::Extend { .. }
                | Node::Project { .. }
                | Node::Sort { .. }
                | Node::Slice { .. }
                | Node::Group { .. }
        );
        self.limits.check()?;
        let want = &Want { copies: self.copies(want.copies), ..want.clone() };
        let (before, contexts) = (self.compared, self.contexts.len());
        self.compared |= !passes;
        let built = self.lower_node(node, input, want);
        assert_eq!(self.contexts.len(), contexts, "a node sees the contexts around it");
        self.compared = before;
        built
    }

    fn lower_node(&mut self, node: &'a Node, input: Option<Subplan>, want: &Want) -> Result<Subplan> {
        match node {
            Node::Unit => Ok(match input {
                Some(input) => self.trim(input, &want.vars),
                None => self.unit(),
            }),
            Node::Pattern(_)
            | Node::Path { .. }
            | Node::GraphNames(_)
            | Node::Context { .. }
            | Node::Values { .. } => self.join_group(std::slice::from_ref(node), &[], input, want),
            Node::Service(service) => self.service(node, service, input, want),
            Node::Join(nodes) => self.join_group(nodes, &[], input, want),
            Node::Filter { inner, conditions } => self.conditioned(node, inner, conditions, input, want),
            Node::Extend { inner, var, expr } => self.extend(node, inner, *var, expr, input, want),
            Node::LeftJoin { left, right, conditions } => {
                self.optional(node, left, right, conditions, input, want)
            }
            Node::Exists { left, right: _, conditions: _, kind: ExistsKind::Mark(mark) }
            | Node::Apply { left, kind: ApplyKind::Exists(ExistsKind::Mark(mark)), .. }
                if !want.vars.contains(*mark) =>
            {
                self.lower(left, input, want)
            }
            Node::Exists { left, right, conditions, kind } => {
                let reads = right.scope().possible.union(&self.reads(conditions));
                if !flows(&input, &reads, &left.scope().certain, None) {
                    return self.apart(node, input, want);
                }
                let left = self.lower(left, input, &want.with(&reads))?;
                self.exists(left, right, conditions, *kind, &reads, want)
            }
            Node::Apply { left, right, row, vars, kind } => {
                let reads = match kind {
                    ApplyKind::Left => vars.union(&right.scope().possible),
                    ApplyKind::Exists(_) => vars.clone(),
                };
                if !flows(&input, &reads, &left.scope().certain, None) {
                    return self.apart(node, input, want);
                }
                let left = self.lower(left, input, &want.with(&reads))?;
                self.correlated(left, right, *row, vars, *kind, want)
            }
            Node::Minus { left, right, apart } => {
                let (of_left, of_right) = (left.scope(), right.scope());
                let shared = of_left.possible.intersection(&of_right.possible);
                if !flows(&input, &of_right.possible, &of_left.certain, None) {
                    return self.apart(node, input, want);
                }
                self.minus_of(left, right, apart, &shared, input, want)
            }
            Node::Union(nodes) => self.union(nodes, input, want),
            Node::Project { inner, vars } => {
                // hidden variables have numbers of their own, so the input may flow past
                let shown: VarSet = vars.iter().copied().collect();
                let outside = input.as_ref().map(Subplan::vars).unwrap_or_default();
                self.lower(inner, input, &want.with_only(want.vars.intersection(&shown.union(&outside))))
            }
            Node::Reduced(inner) => self.lower(inner, input, want),
            Node::Distinct(_) | Node::Sort { .. } | Node::Slice { .. } | Node::Group { .. } => match input {
                Some(_) => self.apart(node, input, want),
                None => self.block(node, want),
            },
        }
    }

    /// Demands on the copies of a row, where `copies` is enough for the operators above.
    fn copies(&self, copies: Copies) -> Copies {
        if self.copies_differ { Copies::Count } else { copies }
    }

    /// Plans the node on its own and joins.
    fn apart(&mut self, node: &'a Node, input: Option<Subplan>, want: &Want) -> Result<Subplan> {
        let Some(input) = input else { return self.lower(node, None, want) };
        let inside = want.vars.union(&input.vars()).intersection(&node.scope().possible);
        let built = self.lower(node, None, &want.with_only(inside))?;
        Ok(self.hash(input, built, JoinKind::Inner, &want.vars))
    }

    fn reads(&self, conditions: &[Expression]) -> VarSet {
        conditions.iter().fold(VarSet::default(), |a, c| a.union(&c.vars()))
    }
}

/// Whether an input may flow into a node that reads `reads` at a place where only `certain` is
/// sure to be bound the same: what the input binds must be bound there too. Or it must be unknown
/// to the node altogether (an outer variable of EXISTS or of an OPTIONAL's condition), where
/// `known` says that such variables are meant.
fn flows(input: &Option<Subplan>, reads: &VarSet, certain: &VarSet, known: Option<&VarSet>) -> bool {
    input.as_ref().is_none_or(|i| {
        let shared = i.vars().intersection(reads);
        shared.iter().all(|v| certain.contains(v) || known.is_some_and(|known| !known.contains(v)))
    })
}

/// Whether a plan starts with a seed.
fn seeded(node: &PlanNode) -> bool {
    matches!(node.op, Op::Seed) || children(&node.op).first().is_some_and(|c| seeded(c))
}
