//! Terms of RDF 1.2 among the quads that a session sees.
//!
//! In the order of objects, triple terms stand together, and so do literals of one annotation: rows
//! of OP in these places are read and no others. Pairs of object and predicate know no graph. So
//! where only some graphs are seen, the quads of the pairs are looked up.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use snowmelt_store::{Columns, Keys, Matches};

use crate::dict::code::IN_STRING;
use crate::error::{GraphError, Result};
use crate::index::Index;
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::session::view::GraphView;
use crate::term::{NUMBER_BITS, TermId, TermKind, TermRef};

/// Pairs looked at together.
const PART_ROWS: usize = 1 << 14;

/// Terms that RDF 1.1 does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NewerTerms {
    /// Triple terms.
    Triples,
    /// Triple terms, and literals with a base direction.
    All,
}

/// Ids of objects, the first and the last, and whether only some of these are of such terms.
type Place = (RangeInclusive<u64>, bool);

impl Session {
    /// Whether some quad that the session sees has such a term. A view limits that to its graphs.
    ///
    /// # Errors
    /// Fails if the indexes or the dictionary cannot be read, and with [`GraphError::Stopped`] if
    /// interrupted.
    pub fn has_newer_terms(
        &mut self,
        terms: NewerTerms,
        view: Option<&GraphView>,
        interrupt: &dyn Interrupt,
    ) -> Result<bool> {
        if !self.state.meta().format.has_rdf_12() {
            return Ok(false);
        }
        let graphs = self.seen_graphs(view, interrupt)?;
        for (objects, is_some) in self.places_of(terms) {
            let mut scan = self.scan(Index::Op, &[], Some((*objects.start(), *objects.end())));
            let mut pairs = Columns::new(2);
            while scan.next(self, &mut pairs, PART_ROWS)? {
                if interrupt.is_set() {
                    return Err(GraphError::Stopped);
                }
                let found = pairs.cols[1].iter().copied().zip(pairs.cols[0].iter().copied()).collect();
                let found = if is_some { self.directed(found)? } else { found };
                if self.is_one_seen(found, graphs.as_ref(), interrupt)? {
                    return Ok(true);
                }
                pairs.clear();
            }
        }
        Ok(false)
    }

    /// The places of such terms in the order of objects.
    fn places_of(&self, terms: NewerTerms) -> Vec<Place> {
        let triples = TermId::triple(0).0..=TermId::triple(TermKind::Triple.most_payload()).0;
        let mut places = vec![(triples, false)];
        if terms == NewerTerms::All {
            let codes = self.state.codes();
            let directed = codes.annotation_codes().filter(|code| {
                codes.annotation_of(*code).is_some_and(|annotation| annotation.direction().is_some())
            });
            for code in std::iter::once(IN_STRING).chain(directed) {
                for kind in [TermKind::Literal, TermKind::Text] {
                    let of = |number| TermId::coded(kind, code, number).0;
                    places.push((of(0)..=of((1 << NUMBER_BITS) - 1), code == IN_STRING));
                }
            }
        }
        places
    }

    /// Those of some pairs of predicate and object whose object has a base direction.
    fn directed(&mut self, pairs: Vec<(u64, u64)>) -> Result<Vec<(u64, u64)>> {
        let objects: Vec<TermId> = pairs.iter().map(|(_, object)| TermId(*object)).collect();
        let mut is_directed = vec![false; objects.len()];
        self.decode(&objects, |at, term| {
            is_directed[at] = matches!(term, TermRef::Literal { direction: Some(_), .. });
        })?;
        Ok(pairs.into_iter().zip(is_directed).filter_map(|(pair, is)| is.then_some(pair)).collect())
    }

    /// Whether a quad of some pairs of predicate and object is in one of the graphs.
    fn is_one_seen(
        &mut self,
        mut pairs: Vec<(u64, u64)>,
        graphs: Option<&HashSet<TermId>>,
        interrupt: &dyn Interrupt,
    ) -> Result<bool> {
        let Some(graphs) = graphs else { return Ok(!pairs.is_empty()) };
        pairs.sort_unstable();
        let (predicates, objects): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
        let columns = [&predicates[..], &objects[..]];
        let mut lookup = self.lookup(Index::Posg, Keys::new(&columns, None));
        let mut found = Matches::new(4, 2);
        while lookup.next(self, &mut found, PART_ROWS)? {
            if interrupt.is_set() {
                return Err(GraphError::Stopped);
            }
            if found.cols[1].iter().any(|graph| graphs.contains(&TermId(*graph))) {
                return Ok(true);
            }
            found.clear();
        }
        Ok(false)
    }
}
