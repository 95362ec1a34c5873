//! DESCRIBE: descriptions of resources, in one of three forms.
//!
//! * concise bounded (Stickler, W3C member submission 2005): a resource's triples, and those of the
//!   blank nodes they lead to;
//! * symmetric: also the triples that lead to it, and those that lead to the blank nodes met;
//! * labelled: concise, with the rdfs:label of each IRI in them.
//!
//! Some resources at a time: the predicates of all of them by SP, then their triples by PSOG,
//! both batched; the blank nodes met come next. What leads to them is found by OP and POSG.

use rustc_hash::FxHashSet;
use snowmelt_graph::{Index, Keys, Matches, TermId, TermKind};

use crate::bounds::Held;
use crate::error::QueryError;
use crate::exec::{Batch, Run};

/// Most resources described together.
const MOST: usize = 1024;

/// The property whose values are labels.
const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";

/// The triples that describe a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DescribeForm {
    /// Those whose subject it is, and those of the blank nodes they lead to.
    #[default]
    Concise,
    /// Those whose subject or object it is, and those of the blank nodes on the other side.
    Symmetric,
    /// As concise, and the rdfs:label of each IRI in them.
    Labelled,
}

impl DescribeForm {
    /// All of them, by name.
    pub const NAMES: [(&str, Self); 3] =
        [("cbd", Self::Concise), ("symmetric", Self::Symmetric), ("labelled", Self::Labelled)];

    /// The form of a name, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, form)| form)
    }
}

/// Terms described, and those still to be.
pub(super) struct Described {
    form: DescribeForm,
    done: FxHashSet<TermId>,
    /// IRIs whose labels were given
    labelled: FxHashSet<TermId>,
    open: Vec<TermId>,
    held: Held,
    /// of the batch that was given out last
    given: Held,
}

impl Described {
    pub fn new(form: DescribeForm, held: Held) -> Self {
        let (done, labelled) = (FxHashSet::default(), FxHashSet::default());
        Self { form, done, labelled, open: Vec::new(), given: held.another(), held }
    }

    /// Takes in what a batch binds and was not described before.
    pub fn begin(&mut self, batch: &Batch) -> Result<(), QueryError> {
        self.named(batch.cols.iter().flatten().copied())
    }

    /// Takes in the resources that a query names and that were not described before.
    pub fn named(&mut self, ids: impl Iterator<Item = TermId>) -> Result<(), QueryError> {
        let is_resource = |id: &TermId| matches!(id.kind(), TermKind::Iri | TermKind::Blank);
        self.add(ids.filter(is_resource).collect())
    }

    fn add(&mut self, mut resources: Vec<TermId>) -> Result<(), QueryError> {
        resources.sort_unstable();
        resources.dedup();
        resources.retain(|id| self.done.insert(*id));
        self.open.append(&mut resources);
        self.hold()
    }

    /// Has what is remembered held in the query's memory.
    fn hold(&mut self) -> Result<(), QueryError> {
        let sets = self.done.capacity() + self.labelled.capacity();
        Ok(self.held.set(sets * 9 + self.open.capacity() * 8, "described resources")?)
    }

    /// The triples of some of them.
    pub fn next(&mut self, run: &mut Run) -> Result<Option<Batch>, QueryError> {
        while !self.open.is_empty() {
            run.check()?;
            /// Rows' worth of a resource: its way through two trees, and its triples.
            const ROWS: usize = 8;
            let most = (run.query.batch.most / ROWS).clamp(1, MOST);
            let mut some = self.open.split_off(self.open.len().saturating_sub(most));
            some.sort_unstable();
            let mut out = Batch::empty(3);
            self.given.clear();
            triples(run, OUT, &some, &mut out, &mut self.given)?;
            if self.form == DescribeForm::Symmetric {
                triples(run, IN, &some, &mut out, &mut self.given)?;
            }
            let ends = out.cols[0].iter().chain(&out.cols[2]).copied();
            self.add(ends.filter(|id| id.kind() == TermKind::Blank).collect())?;
            if self.form == DescribeForm::Labelled {
                self.label(run, &mut out)?;
            }
            if out.rows > 0 {
                return Ok(Some(out));
            }
        }
        Ok(None)
    }

    /// Appends the labels of the IRIs in a batch that were not given before.
    fn label(&mut self, run: &mut Run, out: &mut Batch) -> Result<(), QueryError> {
        let Run { terms, source, .. } = run;
        let label = terms.iri(&mut source.session, LABEL)?;
        let iris = out.cols.iter().flatten().copied().filter(|id| id.kind() == TermKind::Iri);
        let mut new: Vec<TermId> = iris.filter(|id| self.labelled.insert(*id)).collect();
        new.sort_unstable();
        self.hold()?;
        // one that is not stored is the predicate of no triple
        if label.kind() != TermKind::Iri || new.is_empty() {
            return Ok(());
        }
        let by = new.into_iter().map(|id| (label.0, id.0)).collect();
        quads(run, OUT, by, out, &mut self.given)
    }
}

/// The indexes of a way: distinct pairs of a resource and its predicates, then whole quads
/// by both; the column of the resource, and that of the other end.
#[derive(Clone, Copy)]
struct EdgeWay {
    pairs: Index,
    quads: Index,
    resource: usize,
    other: usize,
}

/// From a resource to what it leads to.
const OUT: EdgeWay = EdgeWay { pairs: Index::Sp, quads: Index::Psog, resource: 0, other: 2 };
/// From a resource to what leads to it.
const IN: EdgeWay = EdgeWay { pairs: Index::Op, quads: Index::Posg, resource: 2, other: 0 };

/// Appends the triples of resources in one way.
fn triples(
    run: &mut Run,
    way: EdgeWay,
    resources: &[TermId],
    out: &mut Batch,
    held: &mut Held,
) -> Result<(), QueryError> {
    let keys: Vec<u64> = resources.iter().map(|s| s.0).collect();
    let mut pairs = look(run, way.pairs, &[&keys], held)?;
    // the index of quads wants its keys by predicate first
    let mut by: Vec<(u64, u64)> =
        pairs.key.iter().zip(&pairs.cols[0]).map(|(k, p)| (*p, keys[*k as usize])).collect();
    by.sort_unstable();
    pairs.clear();
    quads(run, way, by, out, held)
}

/// Appends the triples of predicates and resources, which ascend.
fn quads(
    run: &mut Run,
    way: EdgeWay,
    by: Vec<(u64, u64)>,
    out: &mut Batch,
    held: &mut Held,
) -> Result<(), QueryError> {
    let (predicates, resources): (Vec<u64>, Vec<u64>) = by.into_iter().unzip();
    let found = look(run, way.quads, &[&predicates, &resources], held)?;
    assert_eq!(found.key.len(), found.cols[0].len(), "each match has its other end");
    for (row, k) in found.key.iter().enumerate() {
        let graph = TermId(found.cols[1][row]);
        let visible = match &run.query.default_graphs {
            None => graph == TermId::DEFAULT_GRAPH,
            Some(list) => list.contains(&graph),
        };
        if visible {
            out.cols[1].push(TermId(predicates[*k as usize]));
            out.cols[way.resource].push(TermId(resources[*k as usize]));
            out.cols[way.other].push(TermId(found.cols[0][row]));
            out.rows += 1;
        }
    }
    Ok(())
}

fn look(run: &mut Run, index: Index, keys: &[&[u64]], held: &mut Held) -> Result<Matches, QueryError> {
    let mut lookup = run.source.lookup(index, Keys::new(keys, None));
    let mut matches = Matches::new(index.arity(), keys.len());
    let before = held.bytes();
    while run.source.lookup_next(&mut lookup, &mut matches, 1 << 16)? {
        run.check()?;
        // and once more as triples
        held.set(before + matches.key.len() * 48, "described resources")?;
    }
    Ok(matches)
}
