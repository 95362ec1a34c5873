//! Keeps a session on some of the graphs from revealing the others by its cost or by labels.
//!
//! 1. *A hidden name costs the same as an unknown one.* The dictionary reads one string also for a
//!    term that it does not have. A name outside the view that names a graph, and is in no quad
//!    otherwise, counts as unknown. Finding that out takes four counts, so for a name that is
//!    unknown anyway the same counts are taken of some other IRI.
//! 2. *Labels of blank nodes reveal no number.* The numbers are in the order of creation, over all
//!    graphs; a veiled session shows a hash of the number under a secret.
//!
//! A term that is in quads of hidden graphs, as subject, predicate or object, is known: the cost of
//! a query on it depends on these quads.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::error::Result;
use crate::index::Index;
use crate::session::Session;
use crate::session::view::GraphView;
use crate::term::{TermId, TermRef};

/// The secret of labels. A node has the same label in all sessions that share it.
#[derive(Clone, Debug, Default)]
pub struct LabelSecret([RandomState; 2]);

/// A view, and the secret for the labels of blank nodes.
#[derive(Debug)]
pub struct Veil {
    view: Arc<GraphView>,
    secret: LabelSecret,
}

impl Veil {
    /// The veil of a view.
    pub fn new(view: &Arc<GraphView>, secret: &LabelSecret) -> Arc<Self> {
        Arc::new(Self { view: view.clone(), secret: secret.clone() })
    }

    /// The label of a blank node.
    pub(crate) fn label<'a>(&self, number: u64, out: &'a mut String) -> &'a str {
        let [high, low] = self.secret.0.each_ref().map(|half| half.hash_one(number));
        out.clear();
        write!(out, "h{high:016x}{low:016x}").expect("writing to a string");
        out
    }

    /// Whether a term may name a graph that is hidden from the user.
    fn may_hide(&self, term: &TermRef<'_>) -> bool {
        matches!(term, TermRef::Iri(iri) if !self.view.has(Some(iri)))
    }
}

impl Session {
    /// This session behind the veil, which reveals nothing of the hidden graphs.
    #[must_use]
    pub fn veiled(mut self, veil: &Arc<Veil>) -> Session {
        self.veil = Some(veil.clone());
        self
    }

    /// Makes names unknown that name hidden graphs and occur nowhere else. `others` holds for
    /// each term the id of some other one.
    pub(super) fn hide(
        &mut self,
        veil: &Veil,
        terms: &[TermRef<'_>],
        others: &[Option<TermId>],
        found: &mut [Option<TermId>],
    ) -> Result<()> {
        for at in (0..terms.len()).filter(|at| veil.may_hide(&terms[*at])) {
            let Some(probe) = found[at].or(others[at]) else { continue };
            let is_graph = self.count(Index::Gs, &[probe], None)? > 0;
            if found[at].is_some() && !is_graph {
                continue;
            }
            let mut quads = 0;
            for index in [Index::Sp, Index::Op, Index::Psog] {
                quads += self.count(index, &[probe], None)?;
            }
            found[at] = found[at].filter(|_| quads > 0);
        }
        Ok(())
    }
}
