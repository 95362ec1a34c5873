//! Operators row by row: BIND and FILTER.

use super::{Result, Subplan, Want, flows, joined};
use crate::algebra::{Expression, Node, Var, VarSet, bound_by};
use crate::optimise::{Estimate, Planner};
use crate::plan::{Cost, Op};

impl<'a> Planner<'a> {
    /// BIND: a value for a variable.
    pub(super) fn extend(
        &mut self,
        node: &'a Node,
        inner: &'a Node,
        var: Var,
        expr: &Expression,
        input: Option<Subplan>,
        want: &Want,
    ) -> Result<Subplan> {
        let reads = expr.vars();
        let clash = input.as_ref().is_some_and(|i| i.vars().contains(var));
        let scope = inner.scope();
        if clash || !flows(&input, &reads, &scope.certain, Some(&scope.possible)) {
            return self.apart(node, input, want);
        }
        if !want.vars.contains(var) {
            return self.lower(inner, input, want);
        }
        let built = self.lower(inner, input, &want.with(&reads))?;
        let mut wanted = want.vars.clone();
        wanted.remove(var);
        let keep = built.kept(&wanted);
        let mut vars = built.pick(&keep);
        vars.push(var);
        let mut certain = built.certain.clone();
        let is_certain = match expr {
            Expression::Var(v) => certain.contains(*v),
            other => other.is_constant(),
        };
        if is_certain {
            certain.insert(var);
        }
        let mut estimate = built.estimate.clone();
        let cost = built.node.cost + estimate.rows * self.costs.row + self.text_cost(expr, &estimate);
        estimate.set_computed(var, expr);
        self.computed_on_sample(&mut estimate, var, expr)?;
        Ok(self.make(
            Op::Extend { input: Box::new(built.node), expr: expr.clone(), keep, stored: self.compared },
            vars,
            estimate,
            certain,
            cost,
        ))
    }

    /// One more column, which the planner needs.
    pub(super) fn computed(&mut self, built: Subplan, var: Var, expr: Expression) -> Subplan {
        let keep: Vec<u16> = (0..built.node.vars.len() as u16).collect();
        let mut vars = built.node.vars.clone();
        vars.push(var);
        let (estimate, certain) = (built.estimate.clone(), built.certain.clone());
        let cost = built.node.cost + estimate.rows * self.costs.row + self.text_cost(&expr, &estimate);
        let op = Op::Extend { input: Box::new(built.node), expr, keep, stored: false };
        self.make(op, vars, estimate, certain, cost)
    }

    /// FILTER: around a join its conditions are asked as early as they can be.
    pub(super) fn conditioned(
        &mut self,
        node: &'a Node,
        inner: &'a Node,
        conditions: &'a [Expression],
        input: Option<Subplan>,
        want: &Want,
    ) -> Result<Subplan> {
        match inner {
            Node::Join(nodes) => self.join_group(nodes, conditions, input, want),
            Node::Pattern(_) | Node::Unit => {
                self.join_group(std::slice::from_ref(inner), conditions, input, want)
            }
            _ => {
                let (reads, scope) = (self.reads(conditions), inner.scope());
                if !flows(&input, &reads, &scope.certain, Some(&scope.possible)) {
                    return self.apart(node, input, want);
                }
                let built = self.lower(inner, input, &want.with(&reads))?;
                self.filter(built, conditions.to_vec(), &want.vars, joined(inner))
            }
        }
    }

    pub(super) fn filter(
        &mut self,
        built: Subplan,
        conditions: Vec<Expression>,
        need: &VarSet,
        over: &[Node],
    ) -> Result<Subplan> {
        let mut estimate = built.estimate.clone();
        for c in &conditions {
            self.filtered(&mut estimate, c, over)?;
        }
        Ok(self.filter_op(built, conditions, need, estimate))
    }

    /// A filter, given what to expect of it.
    pub(super) fn filter_op(
        &mut self,
        built: Subplan,
        conditions: Vec<Expression>,
        need: &VarSet,
        estimate: Estimate,
    ) -> Subplan {
        let keep = built.kept(need);
        let vars = built.pick(&keep);
        let work = built.node.cost + built.estimate.rows * self.costs.row * conditions.len() as f64;
        let texts = conditions.iter().map(|c| self.text_cost(c, &built.estimate)).sum::<Cost>();
        let cost = work + texts;
        let certain = built.certain.union(&bound_by(&conditions).intersection(&built.vars()));
        self.make(Op::Filter { input: Box::new(built.node), conditions, keep }, vars, estimate, certain, cost)
    }
}
