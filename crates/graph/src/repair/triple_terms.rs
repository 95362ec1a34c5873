//! Repair of damaged trees of triple terms: all four hold the same rows, so any of them that is
//! sound gives the others.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::{RepairReport, fault_of, go_on, rows};
use crate::check::Sum;
use crate::database::GraphDatabase;
use crate::error::GraphError;
use crate::index::triple::{AnyIndex, TripleIndex};
use crate::input::error::LoadError;
use crate::load::LoadProgress;
use crate::load::rebuild::{Rebuild, Rebuilt, TakeQuad};
use crate::session::Session;

/// Rewrites damaged trees of triple terms from a sound one, in one commit. Writers wait.
pub(super) fn repair(
    database: &Arc<GraphDatabase>,
    memory_bytes: u64,
    progress: &dyn LoadProgress,
    cancel: &AtomicBool,
    report: &mut RepairReport,
) -> Result<(), LoadError> {
    let build = database.database().store().begin_build()?;
    let mut session = database.session()?;
    let expected = session.state().triple_terms();
    if expected == 0 {
        return Ok(());
    }
    let mut sums = Vec::new();
    let mut faults = Vec::new();
    for index in TripleIndex::ALL {
        let mut sum = Sum::default();
        let fault = read(&mut session, index, cancel, &mut |term| {
            sum.add(&term);
            Ok(())
        })?;
        sums.push(sum);
        faults.push(fault);
    }
    // Of trees that are sound by themselves, one that differs from the others is not.
    let is_sound = |index: &TripleIndex| {
        let at = *index as usize;
        let twins = |other: &TripleIndex| {
            faults[*other as usize].is_none() && sums[*other as usize] == sums[at] && other != index
        };
        faults[at].is_none()
            && sums[at].rows == expected
            && (TripleIndex::ALL.iter().any(twins) || faults.iter().flatten().count() == 3)
    };
    let sound = TripleIndex::ALL.into_iter().find(is_sound);
    let damaged: Vec<TripleIndex> = match sound {
        Some(sound) => {
            let right = sums[sound as usize];
            let differs =
                |index: &TripleIndex| faults[*index as usize].is_some() || sums[*index as usize] != right;
            TripleIndex::ALL.into_iter().filter(differs).collect()
        }
        None => TripleIndex::ALL.to_vec(),
    };
    if damaged.is_empty() {
        return Ok(());
    }
    report.damage.extend(damaged.iter().map(|index| match &faults[*index as usize] {
        Some(fault) => fault.clone(),
        None => format!("tree {} has other triple terms than the others", index.name()),
    }));
    let Some(sound) = sound else {
        report.lost.push("no tree of triple terms can be read whole".into());
        return Ok(());
    };
    let indexes: Vec<AnyIndex> = damaged.iter().map(|index| (*index).into()).collect();
    let rebuild = Rebuild { database, indexes: &indexes, memory_bytes, expected, cancel };
    let each = |take: &mut TakeQuad<'_>| read(&mut session, sound, cancel, take).map(drop);
    if rebuild.run(build, each, progress)? == Rebuilt::All {
        report.rebuilt.extend(indexes.into_iter().map(AnyIndex::name));
    }
    Ok(())
}

/// Hands on the triple terms (id, subject, predicate, object) of a tree, as far as it can be read;
/// returns why it is not sound.
fn read(
    session: &mut Session,
    index: TripleIndex,
    cancel: &AtomicBool,
    take: &mut TakeQuad<'_>,
) -> Result<Option<String>, LoadError> {
    let state = session.state().clone();
    let Some(tree) = state.triple(index) else { return Ok(None) };
    let mut failed = None;
    let lost = tree
        .salvage(&mut session.reader, &mut |columns| {
            go_on(cancel)?;
            for row in rows(columns) {
                if failed.is_none() {
                    failed = take(index.term(row)).err();
                }
            }
            Ok(())
        })
        .map_err(GraphError::from)?;
    match failed {
        Some(error) => Err(error),
        None => Ok(fault_of(session, tree, &lost)?),
    }
}
