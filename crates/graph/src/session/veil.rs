//! Secrets that a session on some of the graphs must not tell by its cost or its labels.
//!
//! 1. *A name costs what any unknown name costs.* The dictionary reads one string for a term that
//!    it does not have, too. A name outside the view that is a graph's and in no quad besides is
//!    unknown; to find that out, four counts are taken of it, and of some other IRI for a name that
//!    is unknown anyway.
//! 2. *Labels of blank nodes do not count.* They are numbers in the order of coming, of all graphs;
//!    a session tells a hash of them under a secret.
//!
//! A term that is in quads of hidden graphs, as subject, predicate or object, is known: what a
//! query on it costs depends on them.

use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::error::Result;
use crate::index::Index;
use crate::session::Session;
use crate::session::view::GraphView;
use crate::term::{TermId, TermRef};

/// The secret of labels. Nodes have the same labels in all sessions that share it.
#[derive(Clone, Debug, Default)]
pub struct LabelSecret([RandomState; 2]);

/// A view, and the secret that blank nodes are shown under.
#[derive(Debug)]
pub struct Veil {
    view: Arc<GraphView>,
    secret: LabelSecret,
}

impl Veil {
    /// Of a view.
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

    /// Whether a term may be the name of a graph that is not there for the user.
    fn may_hide(&self, term: &TermRef<'_>) -> bool {
        matches!(term, TermRef::Iri(iri) if !self.view.has(Some(iri)))
    }
}

impl Session {
    /// This session behind the veil: it tells nothing of the graphs the veil hides.
    #[must_use]
    pub fn veiled(mut self, veil: &Arc<Veil>) -> Session {
        self.veil = Some(veil.clone());
        self
    }

    /// Makes names unknown that are of hidden graphs and nothing else. `others` are some ids of
    /// terms that were not found.
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
