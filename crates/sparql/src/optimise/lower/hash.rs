//! Hash joins, MINUS, and UNION.

use super::correlated::swaps;
use super::{Result, Subplan, Want};
use crate::algebra::{ExistsKind, Node, Var, VarSet};
use crate::optimise::guess::HAS_MATCH;
use crate::optimise::{Estimate, Planner};
use crate::plan::{Copies, Cost, JoinKind, Op};

impl<'a> Planner<'a> {
    /// A hash join on all common columns. Inner joins build on the smaller side.
    pub(super) fn hash(&mut self, left: Subplan, right: Subplan, kind: JoinKind, need: &VarSet) -> Subplan {
        assert!(kind != JoinKind::Left, "a hash join loses left rows without a match");
        let (left, right) = match kind {
            // the seed is new for each run; a table built on it would be too
            JoinKind::Inner if swaps(&left, &right) => (right, left),
            _ => (left, right),
        };
        let shared = left.vars().intersection(&right.vars());
        let loose = !shared.is_subset(&left.certain.intersection(&right.certain));
        assert!(
            !matches!(kind, JoinKind::Exists(ExistsKind::Mark(v)) if left.vars().contains(v)),
            "a mark is a variable of its own"
        );
        let on = shared.iter().map(|v| (left.col(v), right.col(v))).collect();
        let mut keep_left = left.kept(need);
        let mut keep_right = Vec::new();
        let mut certain = left.certain.clone();
        let mut estimate = left.estimate.clone();
        if matches!(kind, JoinKind::Inner | JoinKind::Left) {
            estimate = left.estimate.join(&right.estimate);
            if kind == JoinKind::Inner {
                certain = certain.union(&right.certain);
            } else {
                estimate.rows = estimate.rows.max(left.estimate.rows);
            }
            // a common variable that the left may leave open is taken from the pair
            let of_left = left.vars();
            let from_right = |v: Var| !of_left.contains(v) || (loose && !left.certain.contains(v));
            keep_left.retain(|c| {
                !from_right(left.node.vars[*c as usize])
                    || right.node.col(left.node.vars[*c as usize]).is_none()
            });
            for (c, v) in right.node.vars.iter().enumerate() {
                if (need.contains(*v) && from_right(*v)) || right.weights.contains(*v) {
                    keep_right.push((c as u16, left.node.col(*v)));
                }
            }
        } else {
            estimate = estimate.scaled(HAS_MATCH);
        }
        let mut vars = left.pick(&keep_left);
        vars.extend(keep_right.iter().map(|(c, _)| right.node.vars[*c as usize]));
        if let JoinKind::Exists(ExistsKind::Mark(v)) = kind {
            vars.push(v);
            certain.insert(v);
        }
        let cost = left.node.cost
            + right.node.cost
            + self.costs.hash(right.estimate.rows, left.estimate.rows, estimate.rows);
        let op = Op::Hash {
            left: Box::new(left.node),
            right: Box::new(right.node),
            on,
            loose,
            apart: Vec::new(),
            kind,
            keep_left,
            keep_right,
        };
        self.make(op, vars, estimate, certain, cost)
    }

    /// MINUS. Where both sides bind all that they have in common, that is an anti-join.
    #[inline(never)]
    pub(super) fn minus_of(
        &mut self,
        left: &'a Node,
        right: &'a Node,
        apart: &VarSet,
        shared: &VarSet,
        input: Option<Subplan>,
        want: &Want,
    ) -> Result<Subplan> {
        let both = left.scope().certain.intersection(&right.scope().certain);
        let is_anti_join = apart.is_empty() && !shared.is_empty() && shared.is_subset(&both);
        let left = self.lower(left, input, &want.with(shared))?;
        if is_anti_join {
            return self.exists(left, right, &[], ExistsKind::Anti, shared, want);
        }
        let right = self.lower(right, None, &Want::new(shared.clone(), Copies::Merge))?;
        Ok(self.minus(left, right, apart, &want.vars))
    }

    fn minus(&mut self, left: Subplan, right: Subplan, apart: &VarSet, need: &VarSet) -> Subplan {
        let shared = left.vars().intersection(&right.vars());
        // rows that have nothing in common never meet
        if shared.is_subset(apart) {
            return self.trim(left, need);
        }
        let on_apart = shared.intersection(apart);
        let mut built = self.hash(left, right, JoinKind::Minus, need);
        if let Op::Hash { left, on, loose, apart, .. } = &mut built.node.op {
            let at = on.iter().enumerate().filter(|(_, p)| on_apart.contains(left.vars[p.0 as usize]));
            *apart = at.map(|(i, _)| i as u16).collect();
            // only there it is looked at
            *loose |= !apart.is_empty();
        }
        built
    }

    pub(super) fn union(
        &mut self,
        nodes: &'a [Node],
        input: Option<Subplan>,
        want: &Want,
    ) -> Result<Subplan> {
        let mut branches = Vec::with_capacity(nodes.len());
        for node in nodes {
            let seed = input.as_ref().map(|i| {
                self.make(Op::Seed, i.node.vars.clone(), i.estimate.clone(), i.certain.clone(), 0.0)
            });
            branches.push(self.lower(node, seed, want)?);
        }
        let (mut vars, mut seen): (Vec<Var>, _) = (Vec::new(), VarSet::default());
        for v in branches.iter().flat_map(|b| &b.node.vars) {
            if !seen.contains(*v) {
                seen.insert(*v);
                vars.push(*v);
            }
        }
        let live = branches.iter().filter(|b| !matches!(b.node.op, Op::Nothing));
        let certain = live
            .map(|b| b.certain.intersection(&b.vars()))
            .reduce(|a, b| a.intersection(&b))
            .unwrap_or_default();
        let mut estimate = Estimate::default();
        branches.iter().for_each(|b| estimate.add(&b.estimate));
        let of_input = input.as_ref().map_or_else(Cost::default, |i| i.node.cost);
        let cost = of_input + branches.iter().map(|b| b.node.cost).sum::<Cost>();
        let branches = branches.into_iter().map(|b| {
            let from = vars.iter().map(|v| b.node.col(*v)).collect();
            (b.node, from)
        });
        let op = Op::Union { branches: branches.collect(), input: input.map(|i| Box::new(i.node)) };
        Ok(self.make(op, vars, estimate, certain, cost))
    }
}
