//! Repair of damaged quad indexes. PSOG and POSG hold the same quads, and SP, OP and GS follow from
//! these.
//!
//! 1. *read*: each of the five trees is read as far as possible. A tree is sound if its pages
//!    agree with each other and with its record in the catalog;
//! 2. *source*: the quads are those of a twin that lost no row. If both lost rows, they are the
//!    union of both; if both are whole and differ, those of the twin that agrees with the catalog
//!    and with its pairs;
//! 3. *rebuild*: if the source gives as many quads as the catalog counts, the damaged trees are
//!    rewritten from it, in one commit ([`crate::load::rebuild`]). Otherwise nothing is changed,
//!    and the report lists the losses: a database that fails to answer is better than one that
//!    answers with less.
//!
//! Trees of triple terms are rewritten from each other likewise, in a commit of their own
//! (`triple_terms`). The dictionary has no twin and is not repaired. Invariant: until the commit
//! the trees stay as they were; writers wait.

mod triple_terms;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use snowmelt_store::{LostRows, MAX_ARITY, StoreError, TupleTree};

use crate::check::Sum;
use crate::database::GraphDatabase;
use crate::database::state::GraphState;
use crate::error::GraphError;
use crate::index::Index;
use crate::index::triple::AnyIndex;
use crate::input::error::LoadError;
use crate::load::LoadProgress;
use crate::load::rebuild::{Rebuild, Rebuilt, TakeQuad};
use crate::session::Session;

/// Outcome of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// The damage, one line each.
    pub damage: Vec<String>,
    /// Trees that were rewritten.
    pub rebuilt: Vec<&'static str>,
    /// The lost quads, one line each. If there are any, nothing was changed.
    pub lost: Vec<String>,
}

/// A tree, read as far as possible.
struct Read {
    /// Rows as quads `[s, p, o, g]`, or as pairs.
    rows: Sum,
    /// For a tree of quads: its distinct leading pairs, as rows of SP or OP.
    pairs: Sum,
    lost: Vec<LostRows>,
    /// Why the tree is not sound, if it is not.
    fault: Option<String>,
}

/// Source of the quads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuadsFrom {
    One(Index),
    Both,
}

impl GraphDatabase {
    /// Rewrites damaged quad indexes, as far as the others determine their rows. Writers wait.
    ///
    /// # Errors
    /// Fails with errors of the store other than damage, such as a full disk. The database is then
    /// as it was.
    pub fn repair(
        self: &Arc<Self>,
        memory_bytes: u64,
        progress: &dyn LoadProgress,
        cancel: &AtomicBool,
    ) -> Result<RepairReport, LoadError> {
        let mut report = self.repair_quads(memory_bytes, progress, cancel)?;
        if report.lost.is_empty() {
            triple_terms::repair(self, memory_bytes, progress, cancel, &mut report)?;
        }
        Ok(report)
    }

    fn repair_quads(
        self: &Arc<Self>,
        memory_bytes: u64,
        progress: &dyn LoadProgress,
        cancel: &AtomicBool,
    ) -> Result<RepairReport, LoadError> {
        // The repair holds the writer's turn: nothing changes between reading and rewriting.
        let build = self.database().store().begin_build()?;
        let mut session = self.session()?;
        let state = session.state().clone();
        let mut found = Vec::new();
        for index in Index::ALL {
            found.push(read(&mut session, &state, index, cancel)?);
        }
        compare(&mut session, &state, &mut found, cancel)?;
        let mut report = RepairReport { damage: damage(&found), ..RepairReport::default() };
        if report.damage.is_empty() {
            return Ok(report);
        }
        let Some(source) = source(&found, state.quads()) else {
            report
                .lost
                .push("psog and posg do not hold the same quads, and nothing tells which is right".into());
            return Ok(report);
        };
        let indexes: Vec<AnyIndex> = to_rebuild(&found).into_iter().map(AnyIndex::from).collect();
        let rebuild =
            Rebuild { database: self, indexes: &indexes, memory_bytes, expected: state.quads(), cancel };
        let each = |take: &mut TakeQuad<'_>| each_quad(&mut session, &state, source, cancel, take);
        match rebuild.run(build, each, progress)? {
            Rebuilt::All => report.rebuilt = indexes.into_iter().map(AnyIndex::name).collect(),
            Rebuilt::TooFew(there) => {
                let missing = state.quads().saturating_sub(there);
                report
                    .lost
                    .push(format!("{missing} of {} quads are in no index that can be read", state.quads()));
                report.lost.extend(
                    found
                        .iter()
                        .zip(Index::ALL)
                        .take(2)
                        .flat_map(|(read, index)| read.lost.iter().map(move |lost| range(index, lost))),
                );
            }
        }
        Ok(report)
    }
}

/// Fails if the repair is to stop.
fn go_on(cancel: &AtomicBool) -> Result<(), StoreError> {
    if cancel.load(Ordering::Relaxed) { Err(StoreError::Stopped) } else { Ok(()) }
}

/// Reads a tree as far as possible.
fn read(
    session: &mut Session,
    state: &GraphState,
    index: Index,
    cancel: &AtomicBool,
) -> Result<Read, GraphError> {
    let mut found = Read { rows: Sum::default(), pairs: Sum::default(), lost: Vec::new(), fault: None };
    let Some(tree) = state.index(index) else { return Ok(found) };
    let mut last = None;
    found.lost = tree.salvage(&mut session.reader, &mut |columns| {
        go_on(cancel)?;
        for row in rows(columns) {
            match index {
                Index::Psog | Index::Posg => found.rows.add(&quad(index, row)),
                _ => found.rows.add(&row[..2]),
            }
            let pair = [row[1], row[0]];
            if last != Some(pair) {
                found.pairs.add(&pair);
                last = Some(pair);
            }
        }
        Ok(())
    })?;
    go_on(cancel)?;
    found.fault = fault_of(session, tree, &found.lost)?;
    Ok(found)
}

/// The reason why a tree is not sound, if it is not.
fn fault_of(
    session: &mut Session,
    tree: &TupleTree,
    lost: &[LostRows],
) -> Result<Option<String>, GraphError> {
    if let Some(lost) = lost.first() {
        return Ok(Some(lost.why.to_string()));
    }
    match tree.check(&mut session.reader) {
        Err(error) if error.is_damage() => Ok(Some(error.to_string())),
        other => Ok(other.map(|()| None)?),
    }
}

/// The rows of a leaf.
fn rows(columns: &[Vec<u64>; MAX_ARITY]) -> impl Iterator<Item = [u64; MAX_ARITY]> + '_ {
    let row = |at: usize| std::array::from_fn(|c| columns[c].get(at).copied().unwrap_or(0));
    (0..columns[0].len()).map(row)
}

/// A row of a twin as `[s, p, o, g]`.
fn quad(index: Index, row: [u64; 4]) -> [u64; 4] {
    let mut quad = [0; 4];
    index.columns().iter().zip(row).for_each(|(column, id)| quad[*column as usize] = id);
    quad
}

/// Compares the trees that are sound by themselves, and notes those that contradict the others.
fn compare(
    session: &mut Session,
    state: &GraphState,
    found: &mut [Read],
    cancel: &AtomicBool,
) -> Result<(), GraphError> {
    let is_sound = |found: &[Read], index: Index| found[index as usize].fault.is_none();
    let at = |index: Index| index as usize;
    let (psog, posg) = (at(Index::Psog), at(Index::Posg));
    if is_sound(found, Index::Psog) && is_sound(found, Index::Posg) && found[psog].rows != found[posg].rows {
        // Both are sound but differ: the one that agrees with the catalog and its pairs is right.
        let agrees = |twin: usize, pairs: Index| {
            found[twin].rows.rows == state.quads()
                && (!is_sound(found, pairs) || found[twin].pairs == found[at(pairs)].rows)
        };
        let wrong = match (agrees(psog, Index::Sp), agrees(posg, Index::Op)) {
            (true, false) => vec![posg],
            (false, true) => vec![psog],
            _ => vec![psog, posg],
        };
        for twin in wrong {
            found[twin].fault =
                Some(format!("tree {} has other quads than its twin", Index::ALL[twin].name()));
        }
    }
    for (twin, pairs) in [(Index::Psog, Index::Sp), (Index::Posg, Index::Op)] {
        if is_sound(found, twin) && is_sound(found, pairs) && found[at(twin)].pairs != found[at(pairs)].rows {
            let why = format!("tree {} has other pairs than {}", pairs.name(), twin.name());
            found[at(pairs)].fault = Some(why);
        }
    }
    if [Index::Psog, Index::Sp, Index::Gs].into_iter().all(|index| is_sound(found, index)) {
        let gs = &mut found[at(Index::Gs)];
        let told = &mut |_| match go_on(cancel) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        if crate::check::graph_subjects(session, told)? != gs.rows {
            gs.fault = Some("tree gs has other pairs than psog".to_owned());
        }
    }
    Ok(())
}

fn damage(found: &[Read]) -> Vec<String> {
    found.iter().filter_map(|read| read.fault.clone()).collect()
}

/// The quads that the damaged trees are written from.
fn source(found: &[Read], quads: u64) -> Option<QuadsFrom> {
    let [psog, posg] = [Index::Psog, Index::Posg].map(|index| &found[index as usize]);
    // Rows that an inner node leaves out are noticed only by their number.
    let is_whole = |twin: &Read| twin.lost.is_empty() && twin.rows.rows == quads;
    match (psog, posg) {
        (Read { fault: None, .. }, _) => Some(QuadsFrom::One(Index::Psog)),
        (_, Read { fault: None, .. }) => Some(QuadsFrom::One(Index::Posg)),
        // Neither lost a row, but they differ.
        (psog, posg) if is_whole(psog) && is_whole(posg) && psog.rows != posg.rows => None,
        (psog, _) if is_whole(psog) => Some(QuadsFrom::One(Index::Psog)),
        (_, posg) if is_whole(posg) => Some(QuadsFrom::One(Index::Posg)),
        _ => Some(QuadsFrom::Both),
    }
}

/// Trees to rewrite: the damaged ones, and all pairs if a twin is damaged, since the pairs were not
/// compared with it.
fn to_rebuild(found: &[Read]) -> Vec<Index> {
    let is_damaged = |index: &Index| found[*index as usize].fault.is_some();
    let a_twin_is = is_damaged(&Index::Psog) || is_damaged(&Index::Posg);
    let all = Index::ALL.into_iter();
    all.filter(|index| is_damaged(index) || (a_twin_is && index.arity() == 2)).collect()
}

fn each_quad(
    session: &mut Session,
    state: &GraphState,
    source: QuadsFrom,
    cancel: &AtomicBool,
    take: &mut TakeQuad<'_>,
) -> Result<(), LoadError> {
    let twins = match source {
        QuadsFrom::One(index) => vec![index],
        QuadsFrom::Both => vec![Index::Psog, Index::Posg],
    };
    let mut failed = None;
    for index in twins {
        let Some(tree) = state.index(index) else { continue };
        let read = tree.salvage(&mut session.reader, &mut |columns| {
            go_on(cancel)?;
            for row in rows(columns) {
                if failed.is_none() {
                    failed = take(quad(index, row)).err();
                }
            }
            Ok(())
        });
        read.map_err(GraphError::from)?;
    }
    failed.map_or(Ok(()), Err)
}

/// A range of rows, in words.
fn range(index: Index, lost: &LostRows) -> String {
    struct Row<'a>(Index, &'a [u64; MAX_ARITY]);
    impl fmt::Display for Row<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let ids = self.1[..self.0.arity()].iter().map(|id| format!("{id:#x}"));
            f.write_str(&ids.collect::<Vec<_>>().join(" "))
        }
    }
    let from = lost.from.as_ref().map_or("the first row".into(), |row| Row(index, row).to_string());
    let below = lost.below.as_ref().map_or("the last row".into(), |row| Row(index, row).to_string());
    format!("{}: rows from {from} up to {below}: {}", index.name(), lost.why)
}
