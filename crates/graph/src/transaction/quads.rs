//! Inserts quads into the indexes and deletes them.
//!
//! 1. PSOG takes all changes, sorted, in one pass, and reports which of them had an
//!    effect;
//! 2. those go to POSG, which must agree;
//! 3. the pairs of SP and OP follow: an added quad's pairs are inserted; a removed quad's pair
//!    is removed once the whole index has no row under it any more;
//! 4. GS comes last: a graph still has a subject if one of the subject's quads is in it, and
//!    SP, already updated, leads to these quads.
//!
//! Invariant: SP, OP and GS hold exactly the distinct pairs of the quads, at every commit.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use snowmelt_store::{Applied, Changes, Keys, Levels, TupleTree};

use crate::database::change_log::Change;
use crate::database::state::GraphState;
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::input::intern::position;
use crate::session::Session;
use crate::session::subject_quads::each_quad_of;
use crate::term::{TermId, TermKind};
use crate::transaction::Transaction;
use crate::transaction::quad_batch::QuadBatch;
use crate::transaction::terms::BlankNodes;

/// Result of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Quads that were not there before.
    pub inserted: u64,
    /// Quads that were there before.
    pub deleted: u64,
}

impl std::ops::AddAssign for Changed {
    fn add_assign(&mut self, other: Self) {
        self.inserted += other.inserted;
        self.deleted += other.deleted;
    }
}

/// A quad (subject, predicate, object, graph), and whether it was inserted or deleted.
type Effect = ([u64; 4], bool);

impl Transaction {
    /// Removes quads and adds those of a batch; a quad in both is there afterwards.
    ///
    /// # Errors
    /// Fails with errors of the store, damage included.
    pub fn change(
        &mut self,
        delete: &[[TermId; 4]],
        insert: &QuadBatch,
        blanks: &mut BlankNodes,
    ) -> Result<Changed> {
        if delete.is_empty() && insert.is_empty() {
            return Ok(Changed::default());
        }
        let inserted =
            if insert.is_empty() { Vec::new() } else { self.resolve_parsed(insert.parsed(), blanks)? };
        let deleted = delete.iter().map(|quad| (quad.map(|id| id.0), false));
        self.change_quads(deleted.chain(inserted.into_iter().map(|quad| (quad, true))).collect())
    }

    /// Adds the quads of a batch.
    ///
    /// # Errors
    /// Fails as [`Transaction::change`] does.
    pub fn insert(&mut self, batch: &QuadBatch, blanks: &mut BlankNodes) -> Result<Changed> {
        self.change(&[], batch, blanks)
    }

    /// Adds quads whose terms are stored.
    pub(crate) fn insert_ids(&mut self, quads: Vec<[u64; 4]>) -> Result<Changed> {
        self.change_quads(quads.into_iter().map(|quad| (quad, true)).collect())
    }

    /// Removes quads.
    ///
    /// # Errors
    /// Fails as [`Transaction::change`] does.
    pub fn delete(&mut self, quads: &[[TermId; 4]]) -> Result<Changed> {
        self.change_quads(quads.iter().map(|quad| (quad.map(|id| id.0), false)).collect())
    }

    fn change_quads(&mut self, mut changes: Vec<Effect>) -> Result<Changed> {
        debug_assert!(changes.iter().all(|(quad, _)| quad.iter().all(|id| position(*id).is_none())));
        if changes.is_empty() {
            return Ok(Changed::default());
        }
        // An insert sorts after a delete of the same quad, and wins.
        changes.sort_unstable_by_key(|(quad, insert)| (Index::Psog.row(*quad), *insert));
        let mut distinct: Vec<Effect> = Vec::with_capacity(changes.len());
        for change in changes {
            match distinct.last_mut() {
                Some(last) if last.0 == change.0 => *last = change,
                _ => distinct.push(change),
            }
        }
        let applied =
            self.apply(Index::Psog, distinct.iter().map(|(quad, insert)| (Index::Psog.row(*quad), *insert)))?;
        assert_eq!(applied.effective.len(), distinct.len(), "one answer per change");
        let mut kept = applied.effective.iter();
        distinct.retain(|_| *kept.next().expect("one answer per change"));
        if distinct.is_empty() {
            return Ok(Changed::default());
        }
        assert_eq!(
            applied.inserted + applied.deleted,
            distinct.len() as u64,
            "each change that counts is kept"
        );
        self.follow(
            Index::Posg,
            distinct.iter().map(|(quad, insert)| (Index::Posg.row(*quad), *insert)).collect(),
        )?;
        self.change_pairs(Index::Sp, &distinct)?;
        self.change_pairs(Index::Op, &distinct)?;
        self.change_pairs(Index::Gs, &distinct)?;
        self.note(&distinct, &applied);
        self.log(distinct.iter().map(|(quad, came)| Change::Quad(*quad, *came)));
        Ok(Changed { inserted: applied.inserted, deleted: applied.deleted })
    }

    /// Updates counts, and the assumptions that others make about the data.
    fn note(&mut self, effects: &[Effect], applied: &Applied) {
        // Triple terms count as literals: a plan may assume that all objects may be subjects.
        let literal = |quad: &[u64; 4]| !matches!(TermId(quad[2]).kind(), TermKind::Iri | TermKind::Blank);
        let with_literals =
            effects.iter().filter(|(quad, came)| *came && literal(quad)).map(|(q, _)| TermId(q[1]));
        self.literals.extend(with_literals);
        let named =
            |came: bool| effects.iter().any(|(q, c)| *c == came && TermId(q[3]) != TermId::DEFAULT_GRAPH);
        let (named_came, named_went) = (named(true), named(false));
        let state = self.state_mut();
        assert!(
            applied.deleted <= state.meta.quads + applied.inserted,
            "more quads are deleted than there are"
        );
        state.meta.quads = state.meta.quads + applied.inserted - applied.deleted;
        for index in [Index::Psog, Index::Posg] {
            let rows = state.index(index).map_or(0, |tree| tree.rows());
            assert_eq!(rows, state.meta.quads, "both whole indexes have every quad");
        }
        state.note_changed(applied.inserted + applied.deleted);
        match (named_came, named_went, state.plain.get()) {
            (true, _, _) => state.plain = false.into(),
            // Quads of the default graph alone do not change the answer.
            (false, false, Some(_)) => {}
            _ => state.plain = Default::default(),
        }
        state.meta.plain = state.plain.get() == Some(&true);
    }

    /// Applies sorted rows that must all be effective.
    fn follow(&mut self, index: Index, mut rows: Vec<([u64; 4], bool)>) -> Result<()> {
        rows.sort_unstable();
        let len = rows.len();
        let applied = self.apply(index, rows.into_iter())?;
        match applied.effective.iter().filter(|effective| !**effective).count() {
            0 => Ok(()),
            wrong => {
                let why = format!("{wrong} of {len} changes of psog do not fit it");
                Err(GraphError::record(index.name(), why))
            }
        }
    }

    fn apply(&mut self, index: Index, rows: impl Iterator<Item = ([u64; 4], bool)>) -> Result<Applied> {
        let arity = index.arity();
        let mut changes =
            Changes { cols: vec![Vec::with_capacity(rows.size_hint().0); arity], insert: Vec::new() };
        for (row, insert) in rows {
            changes.cols.iter_mut().zip(row).for_each(|(col, value)| col.push(value));
            changes.insert.push(insert);
        }
        debug_assert!(
            changes.cols.iter().all(|col| col.len() == changes.insert.len()),
            "a value in each column"
        );
        let suffix = self.suffix();
        let state: &mut GraphState = Arc::make_mut(&mut self.state);
        let slot = &mut state.indexes[index as usize];
        let tree = match slot {
            Some(tree) => tree,
            None => {
                let name = format!("{}{suffix}", index.name());
                slot.insert(TupleTree::create(self.txn.trees(), &name, arity)?)
            }
        };
        Ok(tree.apply(self.txn.trees(), &changes)?)
    }

    /// Updates the pairs of an index for inserted and deleted quads.
    fn change_pairs(&mut self, index: Index, effects: &[Effect]) -> Result<()> {
        let pair = |quad: &[u64; 4]| {
            let row = index.row(*quad);
            [row[0], row[1]]
        };
        let distinct = |came: bool| {
            let mut pairs: Vec<[u64; 2]> =
                effects.iter().filter(|e| e.1 == came).map(|e| pair(&e.0)).collect();
            pairs.sort_unstable();
            pairs.dedup();
            pairs
        };
        let came = distinct(true);
        let mut gone = distinct(false);
        gone.retain(|pair| came.binary_search(pair).is_err());
        if !gone.is_empty() {
            let mut session = self.session();
            gone = match index {
                Index::Sp => without_rows(&mut session, Index::Psog, gone)?,
                Index::Op => without_rows(&mut session, Index::Posg, gone)?,
                _ => {
                    let default = |e: &Effect| TermId(e.0[3]) == TermId::DEFAULT_GRAPH;
                    let alone = session.is_plain()? && effects.iter().all(default);
                    without_quads(&mut session, gone, alone)?
                }
            };
        }
        let row = |pair: [u64; 2], came: bool| ([pair[0], pair[1], 0, 0], came);
        let mut rows: Vec<_> =
            came.into_iter().map(|p| row(p, true)).chain(gone.into_iter().map(|p| row(p, false))).collect();
        rows.sort_unstable();
        debug_assert!(rows.is_sorted_by(|a, b| a.0 < b.0), "a pair comes or goes, not both");
        let applied = self.apply(index, rows.iter().copied())?;
        self.count_values(index, &rows, &applied);
        Ok(())
    }

    /// Updates the distinct subjects and objects of predicates for inserted and deleted pairs.
    fn count_values(&mut self, index: Index, rows: &[([u64; 4], bool)], applied: &Applied) {
        let whole = match index {
            Index::Sp => Index::Psog,
            Index::Op => Index::Posg,
            _ => return,
        };
        let state = self.state_mut();
        let values = Arc::make_mut(&mut state.values[whole as usize]);
        assert_eq!(rows.len(), applied.effective.len(), "one answer per change");
        for ((row, came), _) in rows.iter().zip(&applied.effective).filter(|(_, effective)| **effective) {
            values.change(row[1], *came);
            state.values_drift = state.values_drift.saturating_add(1);
        }
    }
}

/// Selects the pairs (x, predicate) under which `index`, which begins with predicate and x,
/// has no row.
fn without_rows(session: &mut Session, index: Index, pairs: Vec<[u64; 2]>) -> Result<Vec<[u64; 2]>> {
    let mut keys = pairs;
    keys.sort_unstable_by_key(|[x, predicate]| (*predicate, *x));
    let columns = [1, 0].map(|c| keys.iter().map(|key| key[c]).collect::<Vec<u64>>());
    session.announce(&[(index, Keys::new(&[&columns[0], &columns[1]], None))], Levels::Leaves)?;
    let mut gone = Vec::new();
    for [x, predicate] in keys {
        if session.count(index, &[TermId(predicate), TermId(x)], None)? == 0 {
            gone.push([x, predicate]);
        }
    }
    gone.sort_unstable();
    Ok(gone)
}

/// Selects the pairs (graph, subject) that have no quad. `alone`: all quads are in the
/// default graph.
fn without_quads(session: &mut Session, pairs: Vec<[u64; 2]>, alone: bool) -> Result<Vec<[u64; 2]>> {
    let mut subjects: Vec<u64> = pairs.iter().map(|pair| pair[1]).collect();
    subjects.sort_unstable();
    subjects.dedup();
    let mut left = FxHashSet::default();
    if alone {
        for subject in subjects {
            if session.count(Index::Sp, &[TermId(subject)], None)? > 0 {
                left.insert([TermId::DEFAULT_GRAPH.0, subject]);
            }
        }
    } else {
        let wanted: FxHashSet<[u64; 2]> = pairs.iter().copied().collect();
        each_quad_of(session, &subjects, |[s, _, _, g]| {
            if wanted.contains(&[g, s]) {
                left.insert([g, s]);
            }
            Ok(())
        })?;
    }
    Ok(pairs.into_iter().filter(|pair| !left.contains(pair)).collect())
}
