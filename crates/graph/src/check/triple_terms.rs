//! The triple terms part of a check: the four trees hold the same terms, numbered without gaps, and
//! every term in them is one that may be there and is stored.

use crate::check::dict::wrong_id;
use crate::check::{CheckReport, Progress, Sum, check_tree};
use crate::database::state::GraphState;
use crate::error::Result;
use crate::index::Column;
use crate::index::triple::TripleIndex;
use crate::session::Session;
use crate::session::triple_terms::is_sound;
use crate::term::TermId;

pub(crate) fn check_triple_terms(
    session: &mut Session,
    report: &mut CheckReport,
    progress: Progress<'_>,
) -> Result<()> {
    let state = session.state.clone();
    let mut sums = [None; TripleIndex::ALL.len()];
    for index in TripleIndex::ALL {
        let mut sum = Sum::default();
        let mut problems = Vec::new();
        let done = check_tree(session, index.name(), state.triple(index), report, progress, |row, _| {
            let term = index.term([row[0], row[1], row[2], row[3]]);
            if index == TripleIndex::Id {
                problems.extend(wrong_row(&state, sum.rows, term));
            }
            sum.add(&term);
        })?;
        problems.into_iter().for_each(|problem| report.problem(problem));
        sums[index as usize] = done.then_some(sum);
    }
    for index in TripleIndex::ALL {
        if let (Some(all), Some(found)) = (sums[0], sums[index as usize])
            && all != found
        {
            report.problem(format!(
                "the triple terms of {} and {} do not agree: {} and {} rows",
                TripleIndex::Id.name(),
                index.name(),
                all.rows,
                found.rows
            ));
        }
    }
    Ok(())
}

/// The fault of the row at a place in the order of ids, if it has one.
fn wrong_row(state: &GraphState, place: u64, row: [u64; 4]) -> Option<String> {
    let [id, s, p, o] = row.map(TermId);
    let name = TripleIndex::Id.name();
    if id != TermId::triple(place) {
        return Some(format!("tree {name}: {id:?} at place {place}"));
    }
    if !is_sound(id, [s, p, o]) {
        return Some(format!("tree {name}: {id:?} has {s:?}, {p:?} and {o:?}, which make no triple term"));
    }
    let parts = [(s, Column::Subject), (p, Column::Predicate), (o, Column::Object)];
    let wrong = parts.into_iter().find_map(|(part, column)| Some((part, wrong_id(state, part, column)?)));
    wrong.map(|(part, why)| format!("tree {name}: {part:?} of {id:?} {why}"))
}
