//! Triple terms: from ids to the terms in them, and back.
//!
//! A triple term may be the object of another, so both ways go level by level: the terms of a level
//! are looked up together. Ids of objects are lower than those of the terms they are in, so the way
//! ends, in damaged trees, too.

use oxrdf::{NamedOrBlankNode, Triple};
use rustc_hash::FxHashMap;
use snowmelt_store::{Keys, Matches, Reader};

use crate::database::state::GraphState;
use crate::error::{GraphError, Result};
use crate::index::triple::TripleIndex;
use crate::session::Session;
use crate::term::{MOST_TRIPLE_LEVELS, TermId, TermKind, TermRef};

/// Subject, predicate and object of a triple term.
pub type TripleIds = [TermId; 3];

/// Triple terms by id, with those within them.
pub(crate) type TripleRows = FxHashMap<TermId, TripleIds>;

/// The terms in triple terms, by id.
pub(super) type Leaves = FxHashMap<TermId, oxrdf::Term>;

impl Session {
    /// Subject, predicate and object of triple terms, in the order of `ids`.
    ///
    /// # Errors
    /// Fails for ids that stand for no triple term, and if a read fails.
    pub fn triples_of(&mut self, ids: &[TermId]) -> Result<Vec<TripleIds>> {
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let found = components(&self.state, &mut self.reader, &sorted)?;
        let at = |id: &TermId| sorted.partition_point(|other| other < id);
        Ok(ids.iter().map(|id| found[at(id)]).collect())
    }

    /// The rows of triple terms and of all within them, and the ids of the other terms in these.
    ///
    /// # Errors
    /// Fails as [`Session::triples_of`] does.
    pub(crate) fn triple_rows(&mut self, ids: &[TermId]) -> Result<(TripleRows, Vec<TermId>)> {
        rows_of(&self.state, &mut self.reader, ids.iter().copied())
    }

    /// The ids of triple terms; `None` for those that are not stored.
    ///
    /// # Errors
    /// Fails if a read fails.
    pub fn find_triples(&mut self, triples: &[TripleIds]) -> Result<Vec<Option<TermId>>> {
        let mut found = vec![None; triples.len()];
        let Some(tree) = self.state.triple(TripleIndex::Spo).cloned() else { return Ok(found) };
        let mut order: Vec<usize> = (0..triples.len()).collect();
        order.sort_unstable_by_key(|at| triples[*at]);
        let column = |c: usize| order.iter().map(|at| triples[*at][c].0).collect::<Vec<u64>>();
        let columns = [0, 1, 2].map(column);
        let columns = columns.each_ref().map(|column| &column[..]);
        let mut matches = Matches::new(TripleIndex::ARITY, 3);
        let mut lookup = tree.lookup(Keys::new(&columns, None));
        while lookup.next(&mut self.reader, &mut matches, usize::MAX)? {}
        for (key, id) in matches.key.iter().zip(&matches.cols[0]) {
            found[order[*key as usize]] = Some(TermId(*id));
        }
        Ok(found)
    }

    /// The ids of triples that are terms, as far as they are stored. `found` has the places of all
    /// terms, of which `wanted` are those of the triples.
    pub(super) fn resolve_triples(
        &mut self,
        wanted: &[(usize, &Triple)],
        found: &mut [Option<TermId>],
    ) -> Result<()> {
        let mut leaves: Vec<TermRef<'_>> = Vec::new();
        // Of each triple, from within: places of its subjects and predicates among the leaves.
        let mut chains: Vec<Chain> = Vec::new();
        for (place, triple) in wanted {
            let (mut levels, mut at) = (Vec::new(), *triple);
            let object = loop {
                levels.push(leaves.len());
                leaves.push(at.subject.as_ref().into());
                leaves.push(at.predicate.as_ref().into());
                match &at.object {
                    oxrdf::Term::Triple(inner) => at = inner,
                    object => break object,
                }
            };
            levels.reverse();
            chains.push(Chain { place: *place, levels, object: leaves.len() });
            leaves.push(object.as_ref().into());
        }
        let leaves = self.resolve(&leaves)?;
        let deepest = chains.iter().map(|chain| chain.levels.len()).max().unwrap_or(0);
        for chain in &chains {
            found[chain.place] = leaves[chain.object];
        }
        for level in 0..deepest {
            let mut keys = Vec::new();
            let mut places = Vec::new();
            for chain in &chains {
                let Some(subject) = chain.levels.get(level) else { continue };
                let within = found[chain.place].take();
                if let (Some(s), Some(p), Some(o)) = (leaves[*subject], leaves[subject + 1], within) {
                    keys.push([s, p, o]);
                    places.push(chain.place);
                }
            }
            for (place, id) in places.iter().zip(self.find_triples(&keys)?) {
                found[*place] = id;
            }
        }
        Ok(())
    }
}

/// A triple term to be looked up.
struct Chain {
    /// its place among the wanted terms
    place: usize,
    /// from within, the places of the subjects; their predicates follow them
    levels: Vec<usize>,
    /// the place of the innermost object
    object: usize,
}

/// Subject, predicate and object of triple terms, given ascending and distinct.
pub(super) fn components(state: &GraphState, reader: &mut Reader, ids: &[TermId]) -> Result<Vec<TripleIds>> {
    debug_assert!(ids.is_sorted_by(|a, b| a < b), "ids ascend");
    let Some(&first) = ids.first() else { return Ok(Vec::new()) };
    let tree = state.triple(TripleIndex::Id).ok_or(GraphError::NotATerm { id: first })?;
    let keys: Vec<u64> = ids.iter().map(|id| id.0).collect();
    let columns = [&keys[..]];
    let mut matches = Matches::new(TripleIndex::ARITY, 1);
    let mut lookup = tree.lookup(Keys::new(&columns, None));
    while lookup.next(reader, &mut matches, usize::MAX)? {}
    let mut found = Vec::with_capacity(ids.len());
    for (row, key) in matches.key.iter().enumerate() {
        let id = ids[*key as usize];
        let triple = [0, 1, 2].map(|c| TermId(matches.cols[c][row]));
        if *key as usize != found.len() || !is_sound(id, triple) {
            return Err(damaged(id));
        }
        found.push(triple);
    }
    match ids.get(found.len()) {
        None => Ok(found),
        Some(id) => Err(GraphError::NotATerm { id: *id }),
    }
}

/// Whether a triple term may have these components.
pub(crate) fn is_sound(id: TermId, [s, p, o]: TripleIds) -> bool {
    matches!(s.kind(), TermKind::Iri | TermKind::Blank)
        && p.kind() == TermKind::Iri
        && match o.kind() {
            TermKind::Special | TermKind::Local => false,
            TermKind::Triple => o < id,
            _ => true,
        }
}

fn damaged(id: TermId) -> GraphError {
    GraphError::record(TripleIndex::Id.name(), format!("its row of {id:?} cannot be right"))
}

/// The rows of triple terms and of all within them, and the ids of the other terms in these.
pub(super) fn rows_of(
    state: &GraphState,
    reader: &mut Reader,
    ids: impl Iterator<Item = TermId>,
) -> Result<(TripleRows, Vec<TermId>)> {
    let (mut rows, mut leaves) = (TripleRows::default(), Vec::new());
    let mut level: Vec<TermId> = ids.collect();
    loop {
        level.sort_unstable();
        level.dedup();
        level.retain(|id| !rows.contains_key(id));
        if level.is_empty() {
            leaves.sort_unstable();
            leaves.dedup();
            return Ok((rows, leaves));
        }
        let found = components(state, reader, &level)?;
        let mut next = Vec::new();
        for [s, p, o] in &found {
            leaves.extend([*s, *p]);
            if o.kind() == TermKind::Triple { next.push(*o) } else { leaves.push(*o) }
        }
        rows.extend(level.into_iter().zip(found));
        level = next;
    }
}

/// A triple term from its rows and leaves.
pub(super) fn build(id: TermId, rows: &TripleRows, leaves: &Leaves) -> Result<Triple> {
    let mut chain = Vec::new();
    let (mut at, mut object) = (id, id);
    while let Some(&[s, p, o]) = rows.get(&at) {
        chain.push((at, s, p));
        (at, object) = (o, o);
        if chain.len() > MOST_TRIPLE_LEVELS {
            return Err(damaged(id));
        }
    }
    let mut object = leaf(object, leaves)?.clone();
    for (id, s, p) in chain.into_iter().rev() {
        let subject = node(s, leaves)?;
        let oxrdf::Term::NamedNode(predicate) = leaf(p, leaves)? else { return Err(damaged(id)) };
        object = oxrdf::Term::from(Triple { subject, predicate: predicate.clone(), object });
    }
    match object {
        oxrdf::Term::Triple(triple) => Ok(*triple),
        _ => Err(GraphError::NotATerm { id }),
    }
}

/// Bytes of the triple term that [`build`] makes, about.
pub(super) fn built_bytes(id: TermId, rows: &TripleRows, leaves: &Leaves) -> usize {
    let of = |id: &TermId| leaves.get(id).map_or(0, term_bytes);
    let (mut at, mut bytes) = (id, 0);
    for _ in 0..=MOST_TRIPLE_LEVELS {
        let Some([s, p, o]) = rows.get(&at) else { break };
        bytes += size_of::<Triple>() + of(s) + of(p);
        at = *o;
    }
    bytes + of(&at)
}

/// Bytes of a term that is no triple, about.
pub(super) fn term_bytes(term: &oxrdf::Term) -> usize {
    /// Of the term itself, and around its text.
    const TERM: usize = size_of::<oxrdf::Term>() + 16;
    TERM + match term {
        oxrdf::Term::NamedNode(node) => node.as_str().len(),
        oxrdf::Term::BlankNode(node) => node.as_str().len(),
        oxrdf::Term::Literal(literal) => literal.value().len() + literal.datatype().as_str().len(),
        oxrdf::Term::Triple(_) => 0,
    }
}

fn leaf(id: TermId, leaves: &Leaves) -> Result<&oxrdf::Term> {
    leaves.get(&id).ok_or(GraphError::NotATerm { id })
}

fn node(id: TermId, leaves: &Leaves) -> Result<NamedOrBlankNode> {
    match leaf(id, leaves)? {
        oxrdf::Term::NamedNode(node) => Ok(node.clone().into()),
        oxrdf::Term::BlankNode(node) => Ok(node.clone().into()),
        _ => Err(GraphError::Misplaced { id }),
    }
}
