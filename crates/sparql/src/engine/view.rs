//! Queries on a part of the graphs: the dataset of a query, cut to what its user may see.
//!
//! A view becomes the dataset of the query, as FROM and FROM NAMED would: an answer is made of
//! the rows of these graphs, and a count is theirs. Plans are made with counts of all graphs,
//! which is why they are not shown under a view.

use std::sync::Arc;

use oxrdf::NamedNode;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use snowmelt_graph::{GraphError, GraphView, LabelSecret, Veil};

use crate::algebra::consts::{ConstTerm, GroundTerm};
use crate::algebra::{Algebra, Const, Dataset};
use crate::bounds::Limits;
use crate::error::QueryError;
use crate::exec::source::GraphSource;

/// Views whose graphs are remembered.
const VIEWS: usize = 64;

/// The named graphs of a view, as of some state.
#[derive(Clone)]
pub(super) struct VisibleGraphs {
    pub view: Arc<GraphView>,
    named: Arc<[String]>,
    /// equal for equal lists; a part of the keys of caches
    pub number: u64,
}

/// The graphs of views, as of the newest states that were asked for.
#[derive(Default)]
pub(super) struct Views {
    /// hides the labels of blank nodes
    secret: LabelSecret,
    known: Mutex<FxHashMap<Arc<GraphView>, (u64, VisibleGraphs)>>,
    next: std::sync::atomic::AtomicU64,
}

impl Views {
    /// The veil that hides all graphs but those of a view.
    pub fn veil(&self, view: &Arc<GraphView>) -> Arc<Veil> {
        Veil::new(view, &self.secret)
    }

    /// The graphs of a view, as the session sees them.
    pub fn visible(
        &self,
        view: &Arc<GraphView>,
        source: &mut GraphSource,
        limits: &Limits,
    ) -> Result<VisibleGraphs, QueryError> {
        let txn = source.txn();
        let before = self.known.lock().get(view).cloned();
        if let Some((_, graphs)) = before.as_ref().filter(|(of, _)| *of == txn) {
            return Ok(graphs.clone());
        }
        let mut graphs = VisibleGraphs::resolve(view, source, limits)?;
        graphs.number = match &before {
            Some((_, before)) if before.named == graphs.named => before.number,
            _ => self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1,
        };
        let mut known = self.known.lock();
        if known.len() >= VIEWS && !known.contains_key(view) {
            known.clear();
        }
        known.insert(view.clone(), (txn, graphs.clone()));
        Ok(graphs)
    }
}

impl VisibleGraphs {
    /// Looks up the graphs of a view; does not remember them.
    pub fn resolve(
        view: &Arc<GraphView>,
        source: &mut GraphSource,
        limits: &Limits,
    ) -> Result<Self, QueryError> {
        let graphs = source.session.graphs_of(view, limits).map_err(|error| match error {
            GraphError::Stopped => limits.check().err().map_or(QueryError::Cancelled, QueryError::from),
            other => other.into(),
        })?;
        Ok(Self { view: view.clone(), named: graphs.into_iter().map(|(_, name)| name).collect(), number: 0 })
    }

    /// Cuts the dataset of a query to the view.
    pub fn restrict(&self, algebra: &mut Algebra) {
        let seen = |list: &[Const], consts: &[ConstTerm]| {
            let is_seen = |c: &&Const| match &consts[c.0 as usize] {
                ConstTerm::Fixed(GroundTerm::Iri(iri)) => self.view.has(Some(iri.as_str())),
                _ => false,
            };
            list.iter().filter(is_seen).copied().collect::<Vec<_>>()
        };
        let default = match &algebra.dataset.default {
            Some(list) => Some(seen(list, &algebra.consts)),
            None if self.view.has_default() => None,
            None => Some(Vec::new()),
        };
        let named = match &algebra.dataset.named {
            Some(list) => seen(list, &algebra.consts),
            None => graph_consts(&mut algebra.consts, &self.named),
        };
        algebra.dataset = Dataset::new(default, Some(named));
    }
}

/// The constants of graphs, added where they are new.
pub(super) fn graph_consts(consts: &mut Vec<ConstTerm>, graphs: &[String]) -> Vec<Const> {
    let mut places: FxHashMap<ConstTerm, usize> =
        consts.iter().enumerate().map(|(at, term)| (term.clone(), at)).collect();
    let number = |graph: &String| {
        let term = ConstTerm::Fixed(GroundTerm::Iri(NamedNode::new_unchecked(graph.clone())));
        let at = *places.entry(term).or_insert_with_key(|term| {
            consts.push(term.clone());
            consts.len() - 1
        });
        Const(at as u32)
    };
    graphs.iter().map(number).collect()
}

/// Whether a text may name graphs in its patterns: a view tells them apart by their names, so that
/// these cannot be parameters of its shape.
pub(super) fn names_graphs(text: &str) -> bool {
    // An escape may stand for any letter.
    let is_word = |at: &[u8]| at.eq_ignore_ascii_case(b"graph");
    text.contains('\\') || text.as_bytes().windows(5).any(is_word)
}
