//! The quads of many subjects: their predicates by SP, then their rows by PSOG, both batched.

use snowmelt_store::{Keys, Matches};

use crate::error::Result;
use crate::index::Index;
use crate::session::Session;

/// Pairs of subject and predicate, and rows, held at a time.
const PART_ROWS: usize = 1 << 14;

/// Calls `f` with every quad (subject, predicate, object, graph) of the subjects, which ascend.
///
/// # Errors
/// Those of the store, damage, and those of `f`.
pub fn each_quad_of(
    session: &mut Session,
    subjects: &[u64],
    mut f: impl FnMut([u64; 4]) -> Result<()>,
) -> Result<()> {
    debug_assert!(subjects.is_sorted_by(|a, b| a < b), "subjects ascend");
    let columns = [subjects];
    let mut lookup = session.lookup(Index::Sp, Keys::new(&columns, None));
    let mut pairs = Matches::new(2, 1);
    while lookup.next(session, &mut pairs, PART_ROWS)? {
        let found = pairs.key.iter().zip(&pairs.cols[0]);
        let mut keys: Vec<(u64, u64)> = found.map(|(key, p)| (*p, subjects[*key as usize])).collect();
        keys.sort_unstable();
        each_quad_under(session, &keys, &mut f)?;
        pairs.clear();
    }
    Ok(())
}

/// The quads of sorted pairs of predicate and subject.
fn each_quad_under(
    session: &mut Session,
    keys: &[(u64, u64)],
    f: &mut impl FnMut([u64; 4]) -> Result<()>,
) -> Result<()> {
    debug_assert!(keys.is_sorted(), "pairs ascend");
    let (predicates, subjects): (Vec<u64>, Vec<u64>) = keys.iter().copied().unzip();
    let columns = [&predicates[..], &subjects[..]];
    let mut lookup = session.lookup(Index::Psog, Keys::new(&columns, None));
    let mut found = Matches::new(4, 2);
    while lookup.next(session, &mut found, PART_ROWS)? {
        for ((key, object), graph) in found.key.iter().zip(&found.cols[0]).zip(&found.cols[1]) {
            f([subjects[*key as usize], predicates[*key as usize], *object, *graph])?;
        }
        found.clear();
    }
    Ok(())
}
