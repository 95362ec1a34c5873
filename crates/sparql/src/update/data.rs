//! INSERT DATA and DELETE DATA: quads as they stand in the text.

use std::fmt::Write;

use snowmelt_graph::{Changed, QuadBatch, Staged, TermId, TermRef};
use snowmelt_syntax::tree::{Quad, Term};

use super::{UpdateOptions, UpdateRun};
use crate::error::QueryError;
use crate::text::terms::{literal_ref, term, with_term};

/// Quads changed together.
const PART_QUADS: usize = 1 << 16;

/// Puts the quads of a text into a batch.
fn fill(batch: &mut QuadBatch, data: &[Quad], options: &UpdateOptions) -> Result<(), QueryError> {
    for Quad { triple, graph } in data {
        options.check_graph(graph.as_deref())?;
        let graph = match graph {
            None => batch.id(TermId::DEFAULT_GRAPH),
            Some(graph) => batch.term(TermRef::Iri(graph)),
        };
        let subject = with_term(&triple.subject, |term| batch.term(term));
        let predicate = batch.term(TermRef::Iri(&triple.predicate));
        let object = with_term(&triple.object, |term| match term.untagged() {
            Some(datatype) => Err(QueryError::Untagged { datatype }),
            None => Ok(batch.term(term)),
        })?;
        batch.push([subject, predicate, object, graph]);
    }
    Ok(())
}

/// Stages quads of an INSERT DATA, which may begin with them or go on.
pub(super) fn stage(
    staged: &mut Staged,
    data: &[Quad],
    mut begins: bool,
    options: &UpdateOptions,
) -> Result<(), QueryError> {
    for part in data.chunks(PART_QUADS) {
        let mut batch = QuadBatch::new(0);
        fill(&mut batch, part, options)?;
        options.progress.add(part.len() as u64);
        staged.add_batch(batch, std::mem::take(&mut begins))?;
    }
    Ok(())
}

impl UpdateRun<'_> {
    /// Adds quads. Blank nodes are new ones, told apart by their labels within the operation.
    pub(super) fn insert_data(&mut self, data: &[Quad]) -> Result<Changed, QueryError> {
        let mut changed = Changed::default();
        let mut batch = QuadBatch::new(0);
        for part in data.chunks(PART_QUADS) {
            self.limits.check()?;
            fill(&mut batch, part, self.options)?;
            changed += self.txn.insert(&batch, &mut self.begun.blanks)?;
            self.options.progress.add(part.len() as u64);
            batch.clear();
        }
        Ok(changed)
    }

    /// Removes quads; one with a term that is not in the database is not there either.
    pub(super) fn delete_data(&mut self, data: &[Quad]) -> Result<Changed, QueryError> {
        let mut changed = Changed::default();
        for part in data.chunks(PART_QUADS) {
            self.limits.check()?;
            part.iter().try_for_each(|quad| self.options.check_graph(quad.graph.as_deref()))?;
            let is_triple = |term: &&Term| matches!(term, Term::Triple(_));
            let triples: Vec<oxrdf::Term> =
                part.iter().map(|quad| &quad.triple.object).filter(is_triple).map(term).collect();
            let mut triples = triples.iter();
            let mut terms: Vec<TermRef<'_>> = Vec::with_capacity(part.len() * 4);
            for Quad { triple, graph } in part {
                let object = match &triple.object {
                    Term::Triple(_) => triples.next().expect("one for each").as_ref().into(),
                    other => plain_ref(other),
                };
                terms.extend([plain_ref(&triple.subject), TermRef::Iri(&triple.predicate), object]);
                terms.extend(graph.as_deref().map(TermRef::Iri));
            }
            let ids = self.txn.session().resolve(&terms)?;
            let mut ids = ids.into_iter();
            let mut next = || ids.next().expect("one answer per term");
            let mut quads = Vec::with_capacity(part.len());
            for quad in part {
                let (s, p, o) = (next(), next(), next());
                let g = if quad.graph.is_some() { next() } else { Some(TermId::DEFAULT_GRAPH) };
                if let (Some(s), Some(p), Some(o), Some(g)) = (s, p, o, g) {
                    quads.push([s, p, o, g]);
                }
            }
            changed += self.txn.delete(&quads)?;
        }
        Ok(changed)
    }
}

/// The quads of a DELETE DATA as the text of one.
pub(super) fn written(data: &[Quad]) -> String {
    let mut text = "DELETE DATA {".to_owned();
    for Quad { triple, graph } in data {
        let triple = crate::text::terms::triple(triple);
        match graph {
            // writing into a string cannot fail
            Some(graph) => drop(write!(text, " GRAPH <{graph}> {{ {triple} }}")),
            None => drop(write!(text, " {triple} .")),
        }
    }
    text.push_str(" }");
    text
}

/// A term of data that have no blank nodes, if it is no triple term.
fn plain_ref(term: &Term) -> TermRef<'_> {
    match term {
        Term::Iri(iri) => TermRef::Iri(iri),
        Term::Literal(literal) => literal_ref(literal),
        Term::Blank(_) | Term::Triple(_) => unreachable!("the parser takes no blank nodes in DELETE DATA"),
    }
}
