//! Shares of functions in a profile, and their changes from one scale to the next.

use std::collections::{BTreeMap, BTreeSet};

use snowmelt_base::text_table::TextTable;
use snowmelt_lab::functions::{FunctionChange, FunctionShare, HEAD, changes, row};

use super::flame::{Stacks, short};
use super::{Profile, ScaleRun};

/// Functions in the text.
const SHOWN: usize = 20;

/// The functions of a profile, those that run most themselves first.
pub(super) fn shares(profile: &str, stacks: &Stacks) -> Vec<FunctionShare> {
    let all: u64 = stacks.values().sum();
    let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (stack, samples) in stacks {
        // The outermost is the thread's name.
        let called = &stack[1.min(stack.len())..];
        if let Some(own) = called.last() {
            counts.entry(own).or_default().0 += samples;
        }
        // One that calls itself is on the stack once.
        let distinct: BTreeSet<&str> = called.iter().map(String::as_str).collect();
        distinct.into_iter().for_each(|name| counts.entry(name).or_default().1 += samples);
    }
    let share = |(function, (own, on_stack)): (&str, (u64, u64))| FunctionShare {
        profile: profile.to_owned(),
        samples: all,
        function: function.to_owned(),
        own: own as f64 / all.max(1) as f64,
        with_callees: on_stack as f64 / all.max(1) as f64,
    };
    let mut shares: Vec<FunctionShare> = counts.into_iter().map(share).collect();
    shares.sort_by(|a, b| b.own.total_cmp(&a.own));
    shares
}

/// The changes of functions' shares from each scale to the next, where both have a profile: the
/// products of both, and the functions whose own share changed most first.
pub fn function_changes(runs: &[ScaleRun]) -> Vec<(u32, u32, Vec<FunctionChange>)> {
    let of = |run: &'_ ScaleRun| match &run.profile {
        Some(Profile::Functions(shares)) => Some(shares.clone()),
        _ => None,
    };
    let pair = |pair: &[ScaleRun]| {
        Some((pair[0].products, pair[1].products, changes(&of(&pair[0])?, &of(&pair[1])?)))
    };
    runs.windows(2).filter_map(pair).collect()
}

/// The same as tables of text.
pub fn function_text(changed: &[(u32, u32, Vec<FunctionChange>)]) -> String {
    let mut out = String::new();
    for (from, to, changes) in changed {
        let head: Vec<&str> = ["function"].into_iter().chain(HEAD).collect();
        let mut table = TextTable::new(&head);
        for change in changes.iter().take(SHOWN) {
            table.row([cut(short(&change.function))].into_iter().chain(row(change)).collect());
        }
        out.push_str(&format!("\nfunctions, from {from} to {to} products\n{}", table.render()));
    }
    out
}

/// A name that leaves room for the figures beside it.
fn cut(name: &str) -> String {
    const MOST: usize = 60;
    match name.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_own_and_with_callees() {
        let stack = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let stacks = Stacks::from([
            (stack(&["thread", "run", "compare"]), 30),
            (stack(&["thread", "run", "run"]), 10),
            (stack(&["other", "run"]), 60),
        ]);
        let shares = shares("p", &stacks);
        let found: Vec<(&str, f64, f64)> =
            shares.iter().map(|s| (s.function.as_str(), s.own, s.with_callees)).collect();
        assert_eq!(found, [("run", 0.7, 1.0), ("compare", 0.3, 0.3)]);
        assert_eq!((shares[0].samples, shares[0].profile.as_str()), (100, "p"));
    }

    #[test]
    fn changes_are_told_with_both_shares() {
        let share = |own| FunctionShare {
            profile: "p".into(),
            samples: 1000,
            function: "snowmelt_sparql::exec::compare".into(),
            own,
            with_callees: own,
        };
        let changed = vec![(100, 1000, changes(&[share(0.10)], &[share(0.31)]))];
        let text = function_text(&changed);
        assert!(text.contains("from 100 to 1000 products"), "{text}");
        let line = text.lines().find(|line| line.contains("exec::compare")).unwrap();
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>(),
            ["exec::compare", "10.0", "31.0", "+21.0", "10.0", "31.0", "yes"]
        );
    }
}
