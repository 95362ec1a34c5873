//! INSERT DATA and DELETE DATA: quads as they stand in the text.

use snowmelt_graph::{Changed, QuadBatch, Staged, TermId, TermRef};
use spargebra::term::{GraphName, GroundQuad, GroundTerm, Quad, Triple};

use super::{UpdateOptions, UpdateRun, term_ref};
use crate::error::QueryError;

/// Quads changed together.
const PART_QUADS: usize = 1 << 16;

/// Puts the quads of a text into a batch.
fn fill(batch: &mut QuadBatch, data: &[Quad], options: &UpdateOptions) -> Result<(), QueryError> {
    for quad in data {
        options.check_graph(name(&quad.graph_name))?;
        let graph = match &quad.graph_name {
            GraphName::DefaultGraph => batch.id(TermId::DEFAULT_GRAPH),
            GraphName::NamedNode(graph) => batch.term(TermRef::Iri(graph.as_str())),
        };
        let subject = batch.term(term_ref(quad.subject.as_ref().into()));
        let predicate = batch.term(TermRef::Iri(quad.predicate.as_str()));
        let object = batch.term(term_ref(quad.object.as_ref()));
        batch.push([subject, predicate, object, graph]);
    }
    Ok(())
}

/// Stages the quads of an INSERT DATA, which may `begin` with them or go on.
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
    /// Adds quads. Blank nodes are new ones, told apart by their labels within the operation, of
    /// which a piece may have been added before.
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
    pub(super) fn delete_data(&mut self, data: &[GroundQuad]) -> Result<Changed, QueryError> {
        let mut changed = Changed::default();
        for part in data.chunks(PART_QUADS) {
            self.limits.check()?;
            part.iter().try_for_each(|quad| self.options.check_graph(name(&quad.graph_name)))?;
            let triples: Vec<Option<Triple>> = part.iter().map(|quad| triple_of(&quad.object)).collect();
            let terms: Vec<TermRef<'_>> = part
                .iter()
                .zip(&triples)
                .flat_map(|(quad, triple)| ground_terms(quad, triple.as_ref()))
                .collect();
            let ids = self.txn.session().resolve(&terms)?;
            let mut ids = ids.into_iter();
            let mut next = || ids.next().expect("one answer per term");
            let mut quads = Vec::with_capacity(part.len());
            for quad in part {
                let (s, p, o) = (next(), next(), next());
                let g = match quad.graph_name {
                    GraphName::DefaultGraph => Some(TermId::DEFAULT_GRAPH),
                    GraphName::NamedNode(_) => next(),
                };
                if let (Some(s), Some(p), Some(o), Some(g)) = (s, p, o, g) {
                    quads.push([s, p, o, g]);
                }
            }
            changed += self.txn.delete(&quads)?;
        }
        Ok(changed)
    }
}

fn name(graph: &GraphName) -> Option<&str> {
    match graph {
        GraphName::DefaultGraph => None,
        GraphName::NamedNode(graph) => Some(graph.as_str()),
    }
}

fn triple_of(term: &GroundTerm) -> Option<Triple> {
    match term {
        GroundTerm::Triple(triple) => Some((**triple).clone().into()),
        GroundTerm::NamedNode(_) | GroundTerm::Literal(_) => None,
    }
}

/// Subject, predicate, object and, if it has a name, the graph. `triple` is the object if that is a
/// triple term.
fn ground_terms<'a>(quad: &'a GroundQuad, triple: Option<&'a Triple>) -> impl Iterator<Item = TermRef<'a>> {
    let object = match &quad.object {
        GroundTerm::NamedNode(node) => TermRef::Iri(node.as_str()),
        GroundTerm::Literal(literal) => literal.as_ref().into(),
        GroundTerm::Triple(_) => TermRef::Triple(triple.expect("it was made from the object")),
    };
    let graph = match &quad.graph_name {
        GraphName::DefaultGraph => None,
        GraphName::NamedNode(graph) => Some(TermRef::Iri(graph.as_str())),
    };
    [TermRef::Iri(quad.subject.as_str()), TermRef::Iri(quad.predicate.as_str()), object]
        .into_iter()
        .chain(graph)
}
