//! Star prefetch, planned: which look-ups can be announced together.
//!
//! A look-up whose key variables are known before an earlier operator runs is announced there,
//! with that operator's own keys: all trees of a star are then read level by level at one depth
//! of I/O. Not across operators that are expected to drop most rows (announcing for rows that
//! die reads pages for nothing), unless there are few of them.

use rustc_hash::FxHashMap;
use snowmelt_graph::AnyIndex;

use crate::algebra::{Var, VarSet};
use crate::bounds::Limits;
use crate::error::QueryError;
use crate::plan::{Op, PlanNode, Src, children, children_mut};

/// So few keys are announced even if most of their rows are expected to be dropped: a depth of
/// I/O costs more than their pages.
const FEW_KEYS: f64 = 64.0;

/// A key part by variable, so that it can be found in another operator's input.
#[derive(Clone, Copy)]
enum KeyPart {
    Is(Src),
    Var(Var),
}

struct PlannedLookup<'a> {
    id: usize,
    /// the variables known before it
    input: &'a [Var],
    known: VarSet,
    rows_in: f64,
    index: AnyIndex,
    key: Vec<KeyPart>,
}

type Stars = FxHashMap<usize, Vec<(AnyIndex, Vec<Src>)>>;

/// Fills in the stars of all look-ups.
///
/// # Errors
/// When the query must stop.
pub(super) fn announce(root: &mut PlanNode, limits: &Limits) -> Result<(), QueryError> {
    let mut seen = Vec::new();
    collect(root, &mut seen);
    let mut stars = Stars::default();
    for (later, look) in seen.iter().enumerate() {
        limits.check()?;
        let first = seen[..later].iter().find(|early| {
            early.rows_in > 0.0
                && (look.rows_in >= 0.5 * early.rows_in || early.rows_in <= FEW_KEYS)
                && is_known(&look.key, &early.known)
        });
        if let Some(early) = first
            && let Some(key) = number(&look.key, early.input)
        {
            stars.entry(early.id).or_default().push((look.index, key));
        }
    }
    assign(root, &mut stars);
    assert!(stars.is_empty(), "each star belongs to a look-up of the plan");
    Ok(())
}

/// Whether a key has variables, and all are known.
fn is_known(key: &[KeyPart], known: &VarSet) -> bool {
    let mut vars =
        key.iter().filter_map(|part| if let KeyPart::Var(v) = part { Some(*v) } else { None }).peekable();
    vars.peek().is_some() && vars.all(|v| known.contains(v))
}

fn number(key: &[KeyPart], input: &[Var]) -> Option<Vec<Src>> {
    let mut any = false;
    let parts = key.iter().map(|part| match part {
        KeyPart::Is(src) => Some(*src),
        KeyPart::Var(v) => {
            any = true;
            input.iter().position(|x| x == v).map(|c| Src::Col(c as u16))
        }
    });
    let parts: Option<Vec<Src>> = parts.collect();
    parts.filter(|_| any)
}

/// The look-ups in the order they run.
fn collect<'a>(node: &'a PlanNode, seen: &mut Vec<PlannedLookup<'a>>) {
    match &node.op {
        Op::Lookup { input, access, .. } => {
            collect(input, seen);
            let key = access.key.iter().map(|src| match src {
                Src::Col(c) => KeyPart::Var(input.vars[*c as usize]),
                other => KeyPart::Is(*other),
            });
            seen.push(PlannedLookup {
                id: node.id,
                input: &input.vars,
                known: input.vars.iter().copied().collect(),
                rows_in: input.rows,
                index: access.index,
                key: key.collect(),
            });
        }
        other => children(other).into_iter().for_each(|c| collect(c, seen)),
    }
}

fn assign(node: &mut PlanNode, stars: &mut Stars) {
    if let Op::Lookup { star, .. } = &mut node.op {
        *star = stars.remove(&node.id).unwrap_or_default();
    }
    children_mut(&mut node.op).into_iter().for_each(|c| assign(c, stars));
}
