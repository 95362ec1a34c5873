//! The price of texts: what a condition that needs them costs, and where in a join it is asked.
//!
//! A text is worked out once for each distinct term of a batch, whatever the rows. So a join that
//! only multiplies rows costs it nothing, and one that drops terms saves it theirs: a condition on
//! texts waits for those joins, and is asked before the others.

use super::{Result, Subplan};
use crate::algebra::join_key::{self, Keyed};
use crate::algebra::{AggregateExpression, Expression, Node, VarSet};
use crate::optimise::{Estimate, Planner, device_time};
use crate::plan::Cost;

/// Conditions that wait, with the steps of the join after which they are asked.
pub(super) type WaitingConditions = Vec<(usize, Expression)>;

impl<'a> Planner<'a> {
    /// The cost of the texts that a condition needs, for such rows.
    pub(super) fn text_cost(&self, condition: &Expression, of: &Estimate) -> Cost {
        let texts: f64 = condition.text_vars().iter().map(|v| of.distinct(v)).sum();
        Cost { cpu: texts * self.costs.text, io: device_time::texts(&self.costs.reads, texts) }
    }

    /// Numbers that aggregates take from texts become columns below the group: there several
    /// threads may work them out.
    pub(super) fn texts_below(&mut self, built: Subplan, aggregates: &mut [AggregateExpression]) -> Subplan {
        let is_number = |e: &Expression| {
            join_key::kind(e, &|_| None) == Some(Keyed::Integer)
                && join_key::gives_the_same(e)
                && !e.text_vars().is_empty()
        };
        let arguments = aggregates.iter_mut().filter_map(|a| a.argument.as_mut());
        let mut built = built;
        for argument in arguments.filter(|argument| is_number(argument)) {
            let var = self.fresh();
            let expr = std::mem::replace(argument, Expression::Var(var));
            built = self.computed(built, var, expr);
        }
        built
    }

    /// Takes those conditions out that are better asked after a later step of a join than the first
    /// that binds what they read.
    pub(super) fn take_waiting(
        &mut self,
        nodes: &'a [Node],
        order: &[usize],
        open: &mut Vec<Expression>,
        input: Option<&Subplan>,
    ) -> Result<WaitingConditions> {
        let mut waiting = WaitingConditions::new();
        if order.len() < 2 || open.iter().all(|c| c.text_vars().is_empty()) {
            return Ok(waiting);
        }
        let steps = self.estimates_of_steps(nodes, order, open, input)?;
        for condition in std::mem::take(open) {
            match self.best_step(&condition, &steps, nodes)? {
                Some(step) => waiting.push((step, condition)),
                None => open.push(condition),
            }
        }
        Ok(waiting)
    }

    /// Variables that are bound, and rows to expect, after each step; conditions on texts are left
    /// out.
    fn estimates_of_steps(
        &mut self,
        nodes: &'a [Node],
        order: &[usize],
        conditions: &[Expression],
        input: Option<&Subplan>,
    ) -> Result<Vec<(VarSet, Estimate)>> {
        let mut estimate = input.map_or_else(Estimate::unit, |input| input.estimate.clone());
        let mut bound = input.map(Subplan::vars).unwrap_or_default();
        let mut steps = Vec::with_capacity(order.len());
        for position in order {
            estimate = estimate.join(&self.estimate(&nodes[*position])?);
            let now = bound.union(&nodes[*position].scope().possible);
            for condition in conditions {
                let vars = condition.vars();
                if vars.is_subset(&now) && !vars.is_subset(&bound) && condition.text_vars().is_empty() {
                    estimate.rows *= self.selectivity(condition, nodes)?;
                }
            }
            bound = now;
            steps.push((bound.clone(), estimate.clone()));
        }
        Ok(steps)
    }

    /// The step after which a condition costs least; None where that is the first that can be.
    fn best_step(
        &mut self,
        condition: &Expression,
        steps: &[(VarSet, Estimate)],
        nodes: &'a [Node],
    ) -> Result<Option<usize>> {
        let vars = condition.vars();
        let Some(first) = steps.iter().position(|(bound, _)| vars.is_subset(bound)) else { return Ok(None) };
        if condition.text_vars().is_empty() || first + 1 == steps.len() {
            return Ok(None);
        }
        let passing = self.selectivity(condition, nodes)?;
        let (mut best, mut least, mut more_rows) = (first, f64::INFINITY, 0.0);
        for (step, (_, estimate)) in steps.iter().enumerate().skip(first) {
            if step > first {
                // rows that it would have dropped before
                more_rows += (1.0 - passing) * steps[step - 1].1.rows * self.costs.near_key;
                more_rows += (1.0 - passing) * estimate.rows * self.costs.row;
            }
            let cost = self.text_cost(condition, estimate).total() + more_rows;
            if cost < least {
                (best, least) = (step, cost);
            }
        }
        Ok((best > first).then_some(best))
    }
}
