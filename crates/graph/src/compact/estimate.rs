//! Estimates how many terms of the dictionary are dead, from a sample of a few hundred lookups.
//!
//! The rows of a hash tree are in the order of their hashes, which is independent of the quads.
//! So rows at even distances of hashes are a fair sample of the terms.

use std::sync::Arc;

use snowmelt_store::{Columns, ScanBounds};

use crate::database::GraphDatabase;
use crate::dict::Tree;
use crate::dict::code::PLAIN;
use crate::error::Result;
use crate::index::Index;
use crate::index::triple::TripleIndex;
use crate::session::Session;
use crate::term::{TermId, TermKind};

/// Terms sampled per tree; a tree with fewer is read whole.
const SAMPLE: u64 = 128;

/// Pages of the dictionary, and the pages taken by dead terms.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeadTerms {
    pages: f64,
    dead: f64,
}

impl DeadTerms {
    /// Percentage of the pages taken by dead terms.
    pub(super) fn percent(self) -> f64 {
        100.0 * (1.0 - self.live_share())
    }

    /// Share of the pages taken by live terms.
    pub(super) fn live_share(self) -> f64 {
        if self.pages > 0.0 { 1.0 - self.dead / self.pages } else { 1.0 }
    }
}

impl GraphDatabase {
    /// Estimates the dead terms.
    pub(super) fn dead_terms(self: &Arc<Self>) -> Result<DeadTerms> {
        let mut session = self.session()?;
        let state = session.state().clone();
        let mut dead = DeadTerms::default();
        for tree in Tree::ALL {
            let (Some(strings), Some(hashes)) = (state.strings(tree), state.hashes(tree)) else { continue };
            let pages = (strings.pages() + self.pages_of(hashes.id())) as f64;
            let sample = sample(&mut session, tree)?;
            let mut live = 0;
            for (number, code) in &sample {
                live += u64::from(is_live(&mut session, tree, *number, *code)?);
            }
            dead.pages += pages;
            if !sample.is_empty() {
                dead.dead += pages * (1.0 - live as f64 / sample.len() as f64);
            }
        }
        Ok(dead)
    }
}

/// Numbers and codes of some terms of a tree.
fn sample(session: &mut Session, tree: Tree) -> Result<Vec<(u64, u16)>> {
    let state = session.state().clone();
    let Some(hashes) = state.hashes(tree) else { return Ok(Vec::new()) };
    let mut rows = Columns::new(tree.hash_arity());
    if hashes.rows() <= SAMPLE {
        let mut scan = hashes.scan(ScanBounds::default());
        while scan.next(session.reader(), &mut rows, SAMPLE as usize)? {}
    } else {
        let greatest = u64::MAX >> (64 - u32::from(state.meta().hash_bits));
        for at in 0..SAMPLE {
            let from = (u128::from(greatest) * u128::from(2 * at + 1) / u128::from(2 * SAMPLE)) as u64;
            let mut scan = hashes.scan(ScanBounds { prefix: &[], range: Some((from, u64::MAX)) });
            scan.next(session.reader(), &mut rows, 1)?;
        }
    }
    let code = |row: usize| rows.cols.get(2).map_or(0, |codes| codes[row] as u16);
    Ok((0..rows.rows).map(|row| (rows.cols[1][row], code(row))).collect())
}

/// Whether a term is in a quad or in a triple term.
fn is_live(session: &mut Session, tree: Tree, number: u64, code: u16) -> Result<bool> {
    let kinds: &[TermKind] = match tree {
        Tree::Iri => &[TermKind::Iri],
        Tree::Literal if code == PLAIN => &[TermKind::String],
        Tree::Literal => &[TermKind::Literal, TermKind::Value],
        Tree::Text => &[TermKind::Text],
    };
    let places: &[Index] = match tree {
        Tree::Iri => &[Index::Sp, Index::Op, Index::Gs, Index::Psog],
        Tree::Literal | Tree::Text => &[Index::Op],
    };
    // A triple term may be dead, too: this is an estimate.
    let within: &[TripleIndex] = match tree {
        Tree::Iri => &[TripleIndex::Spo, TripleIndex::Pos, TripleIndex::Osp],
        Tree::Literal | Tree::Text => &[TripleIndex::Osp],
    };
    for kind in kinds {
        let id = TermId::dictionary(*kind, code, number);
        for index in places {
            if session.count(*index, &[id], None)? > 0 {
                return Ok(true);
            }
        }
        for index in within {
            if session.count(*index, &[id], None)? > 0 {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
