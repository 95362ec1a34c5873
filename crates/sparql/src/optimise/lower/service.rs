//! SERVICE: asked for the values that stand beside it, or once for all it has.
//!
//! How much an endpoint has is not known. So what stands beside a SERVICE is joined first, and its
//! values are sent along, unless they are very many or there are none.

use std::sync::Arc;

use super::{Copies, Result, Subplan, Want, seeded};
use crate::algebra::{Node, Service, Slot, VarSet};
use crate::error::QueryError;
use crate::optimise::guess::{REMOTE_ROW_US, REMOTE_ROWS, REMOTE_TRIP_US, REMOTE_VALUE_US, REMOTE_VALUES};
use crate::optimise::{Estimate, OfVariable, Planner};
use crate::plan::{Cost, Op, SentValue, Src};

impl<'a> Planner<'a> {
    /// Rows of an endpoint that is asked for all it has.
    pub(in crate::optimise) fn service_estimate(&self, service: &Service) -> Estimate {
        let rows = service.most.map_or(REMOTE_ROWS, |most| most as f64);
        let mut vars: Vec<_> = service.scope().possible.iter().map(|v| OfVariable::whole(v, rows)).collect();
        vars.sort_unstable_by_key(|v| v.var);
        Estimate { rows, vars, sample: None }
    }

    /// The time of an endpoint for all it has.
    pub(in crate::optimise) fn service_cost(&self, service: &Service) -> f64 {
        let rows = service.most.map_or(REMOTE_ROWS, |most| most as f64);
        REMOTE_TRIP_US + rows * REMOTE_ROW_US
    }

    pub(super) fn service(
        &mut self,
        node: &'a Node,
        service: &Arc<Service>,
        input: Option<Subplan>,
        want: &Want,
    ) -> Result<Subplan> {
        if let Slot::Var(v) = service.endpoint
            && input.as_ref().is_none_or(|input| input.node.col(v).is_none())
        {
            let variable = self.algebra.names[v.0 as usize].clone();
            let why = "nothing beside it binds the variable";
            return Err(QueryError::ServiceName { variable, why });
        }
        match input {
            None => Ok(self.service_op(service, None, want)),
            Some(input) if self.sends(service, &input) => Ok(self.service_op(service, Some(input), want)),
            Some(input) => self.apart(node, Some(input), want),
        }
    }

    /// Whether values of the input are sent.
    fn sends(&self, service: &Service, input: &Subplan) -> bool {
        if service.endpoint.var().is_some() {
            return true;
        }
        let shared = input.vars().intersection(&service.vars());
        if shared.is_empty() {
            return false;
        }
        let values = input.estimate.combinations(&shared).max(1.0);
        let sent = (values / REMOTE_VALUES).ceil() * REMOTE_TRIP_US + values * REMOTE_VALUE_US;
        // a table of an endpoint's rows stays from seed to seed
        sent < self.service_cost(service) || (seeded(&input.node) && service.most.is_none())
    }

    fn service_op(&mut self, service: &Arc<Service>, input: Option<Subplan>, want: &Want) -> Subplan {
        let alone = self.service_estimate(service);
        let (mut keep, mut vars, mut sent, mut new) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut certain = service.scope().certain;
        let (mut estimate, mut cost) = (alone.clone(), Cost::from(self.service_cost(service)));
        if let Some(input) = &input {
            let column = |v| input.node.col(v);
            for (name, (_, v)) in service.names.iter().enumerate() {
                if let Some(col) = column(*v) {
                    let is_certain = service.certain.contains(*v);
                    sent.push(SentValue { name: name as u16, col, is_certain });
                }
            }
            let open: VarSet = service.vars().minus(&input.certain);
            let is_kept = |c: &u16| !open.contains(input.node.vars[usize::from(*c)]);
            keep = input.kept(&want.vars).into_iter().filter(is_kept).collect();
            vars = input.pick(&keep);
            certain = certain.union(&input.certain);
            estimate = input.estimate.join(&alone);
            let values = input.estimate.combinations(&service.vars()).max(1.0);
            let trips = (values / REMOTE_VALUES).ceil() * REMOTE_TRIP_US;
            cost = input.node.cost + trips + values * REMOTE_VALUE_US + estimate.rows * REMOTE_ROW_US;
        }
        for (name, (_, v)) in service.names.iter().enumerate() {
            let of_input = input.as_ref().filter(|input| input.certain.contains(*v));
            if want.vars.contains(*v) && of_input.and_then(|input| input.node.col(*v)).is_none() {
                new.push((name as u16, input.as_ref().and_then(|input| input.node.col(*v))));
                vars.push(*v);
            }
        }
        let endpoint = match (service.endpoint, &input) {
            (Slot::Var(v), Some(input)) => Src::Col(input.col(v)),
            (Slot::Const(c), _) => Src::Const(c),
            (Slot::Var(_), None) => unreachable!("a variable endpoint has an input"),
        };
        let op = Op::Service {
            input: input.map(|input| Box::new(input.node)),
            service: Arc::clone(service),
            endpoint,
            sent,
            keep,
            new,
            is_distinct: want.copies == Copies::Merge,
            stored: self.compared,
        };
        self.make(op, vars, estimate, certain, cost)
    }
}
