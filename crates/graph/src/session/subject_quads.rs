//! The quads of many subjects: their predicates by SP, then their rows by PSOG, both batched.

use snowmelt_store::{Keys, Matches};

use crate::error::Result;
use crate::index::Index;
use crate::session::Session;
use crate::session::pairs::Pairs;

/// Pairs of subject and predicate, and rows, held in memory at a time.
const PART_ROWS: usize = 1 << 14;

/// Calls `f` with every quad (subject, predicate, object, graph) of the subjects, given ascending.
///
/// # Errors
/// Fails with errors of the store, damage included, and with errors of `f`.
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
        let keys = Pairs::new(found.map(|(key, p)| (*p, subjects[*key as usize])).collect());
        each_quad_under(session, &keys, &mut f)?;
        pairs.clear();
    }
    Ok(())
}

fn each_quad_under(
    session: &mut Session,
    keys: &Pairs,
    f: &mut impl FnMut([u64; 4]) -> Result<()>,
) -> Result<()> {
    keys.each_part(session, PART_ROWS, |_, quads| {
        for quad in quads {
            f(quad)?;
        }
        Ok(())
    })
}
