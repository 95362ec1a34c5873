//! A summary of a database, to describe it to others: exact counts by property, class and graph.

use std::sync::Arc;

use snowmelt_store::Columns;

use crate::database::GraphDatabase;
use crate::error::Result;
use crate::index::Index;
use crate::session::Session;
use crate::term::{TermId, TermRef};

const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// Exact counts of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The transaction that the counts are as of.
    pub txn: u64,
    /// Quads.
    pub quads: u64,
    /// Distinct subjects, predicates and objects.
    pub distinct: [u64; 3],
    /// Whether all quads are in the default graph.
    pub is_plain: bool,
    /// Predicates and their quads.
    pub properties: Vec<Part>,
    /// Classes and their instances: quads of rdf:type.
    pub classes: Vec<Part>,
    /// Named graphs and their distinct subjects.
    pub graphs: Vec<Part>,
}

/// A part of the database, named by an IRI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The IRI.
    pub name: String,
    /// Its count.
    pub count: u64,
}

impl GraphDatabase {
    /// Counts the contents; lists at most `most` properties, classes and graphs. Reads some pages
    /// for each of them.
    ///
    /// # Errors
    /// Fails if the indexes or the dictionary cannot be read.
    pub fn summary(self: &Arc<Self>, most: usize) -> Result<Summary> {
        let mut session = self.session()?;
        let state = session.state().clone();
        let distinct =
            [Index::Sp, Index::Psog, Index::Op].map(|of| state.index(of).map_or(0, |tree| tree.distinct(1)));
        let classes = match session.resolve_one(TermRef::Iri(RDF_TYPE))? {
            Some(of_type) => session.parts(Index::Posg, &[of_type], 0, most)?,
            None => Vec::new(),
        };
        Ok(Summary {
            txn: state.txn(),
            quads: state.quads(),
            distinct,
            is_plain: session.is_plain()?,
            properties: session.parts(Index::Psog, &[], 0, most)?,
            classes,
            graphs: session.parts(Index::Gs, &[], TermId::DEFAULT_GRAPH.0 + 1, most)?,
        })
    }
}

impl Session {
    /// The first IRIs in the column after a prefix, from `from` on, and the number of rows under
    /// each: one index access for each.
    fn parts(&mut self, index: Index, prefix: &[TermId], mut from: u64, most: usize) -> Result<Vec<Part>> {
        let mut ids = Vec::new();
        while ids.len() < most {
            let mut scan = self.scan(index, prefix, Some((from, u64::MAX)));
            let mut row = Columns::new(index.arity());
            if !scan.next(self, &mut row, 1)? || row.rows == 0 {
                break;
            }
            let id = row.cols[prefix.len()][0];
            ids.push(TermId(id));
            match id.checked_add(1) {
                Some(next) => from = next,
                None => break,
            }
        }
        let mut names = vec![None; ids.len()];
        self.decode(&ids, |at, term| {
            if let TermRef::Iri(iri) = term {
                names[at] = Some(iri.to_owned());
            }
        })?;
        let named = ids.into_iter().zip(names).filter_map(|(id, name)| Some((id, name?)));
        let mut parts = Vec::new();
        for (id, name) in named.collect::<Vec<_>>() {
            let count = self.count(index, &[prefix, &[id]].concat(), None)?;
            parts.push(Part { name, count });
        }
        Ok(parts)
    }
}
