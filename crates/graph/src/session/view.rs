//! The graphs that a user may see.

use std::collections::HashSet;

use snowmelt_store::Columns;

use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::term::{TermId, TermRef};

/// Name of the default graph in lists of graphs.
const DEFAULT: &str = "default";

/// The graphs visible to a user: the default graph or not, and those whose names begin with one of
/// some prefixes. All others are hidden as if they did not exist, graphs named by blank nodes
/// included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GraphView {
    default: bool,
    prefixes: Vec<String>,
}

impl GraphView {
    /// The graphs of a list of IRI prefixes; the word `default` stands for the default graph.
    pub fn new<T: AsRef<str>>(list: &[T]) -> Self {
        let mut prefixes: Vec<String> = list.iter().map(|item| item.as_ref().to_owned()).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        let all = prefixes.len();
        prefixes.retain(|item| item != DEFAULT);
        Self { default: prefixes.len() < all, prefixes }
    }

    /// Whether the default graph is visible.
    pub fn has_default(&self) -> bool {
        self.default
    }

    /// Whether a graph is visible, if it has quads; `None` is the default graph.
    pub fn has(&self, graph: Option<&str>) -> bool {
        match graph {
            None => self.default,
            Some(iri) => self.prefixes.iter().any(|prefix| iri.starts_with(prefix)),
        }
    }
}

impl Session {
    /// The named graphs, in the order of their ids; one access to GS for each.
    ///
    /// # Errors
    /// Fails if GS cannot be read, and with [`GraphError::Stopped`] if interrupted.
    pub fn named_graphs(&mut self, interrupt: &dyn Interrupt) -> Result<Vec<TermId>> {
        let mut names = Vec::new();
        let mut from = TermId::DEFAULT_GRAPH.0 + 1;
        loop {
            if interrupt.is_set() {
                return Err(GraphError::Stopped);
            }
            let mut scan = self.scan(Index::Gs, &[], Some((from, u64::MAX)));
            let mut columns = Columns::new(2);
            if !scan.next(self, &mut columns, 1)? {
                return Ok(names);
            }
            let graph = columns.cols[0][0];
            assert!(graph >= from, "a scan begins where it was told");
            names.push(TermId(graph));
            from = graph + 1;
        }
    }

    /// The named graphs of a view, with their names.
    ///
    /// # Errors
    /// Fails if GS or the dictionary cannot be read, and with [`GraphError::Stopped`] if
    /// interrupted.
    pub fn graphs_of(
        &mut self,
        view: &GraphView,
        interrupt: &dyn Interrupt,
    ) -> Result<Vec<(TermId, String)>> {
        let ids = self.named_graphs(interrupt)?;
        let mut graphs = Vec::new();
        self.decode(&ids, |at, term| match term {
            TermRef::Iri(iri) if view.has(Some(iri)) => graphs.push((ids[at], iri.to_owned())),
            _ => {}
        })?;
        graphs.sort_unstable();
        Ok(graphs)
    }

    /// The graphs that are seen, the default graph among them; `None`: all.
    pub(crate) fn seen_graphs(
        &mut self,
        view: Option<&GraphView>,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<HashSet<TermId>>> {
        let Some(view) = view else { return Ok(None) };
        let named = self.graphs_of(view, interrupt)?.into_iter().map(|(id, _)| id);
        Ok(Some(named.chain(view.has_default().then_some(TermId::DEFAULT_GRAPH)).collect()))
    }
}
