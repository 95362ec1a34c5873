//! Rows that ranks of texts tell apart, so that fewer texts are read.

use rustc_hash::FxHashMap;
use snowmelt_graph::{TermId, TermKind};

use super::node::{TextNode, TextOrder};
use super::{IdRows, OfTerm, TextColumn, in_dictionary, of_each};
use crate::expr::kernel::{FALSE, TRUE};
use crate::functions::Beginning;
use crate::value::{Ranking, TermError, TermStore, Terms, iri};

/// For fewer rows, ranks are not asked: to read their texts is quick.
const LEAST_RANKED: usize = 256;

/// Kind and annotation of ids, by which their terms are compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Family(u64);

impl Family {
    fn of(id: TermId) -> Self {
        Self(id.0 - id.number())
    }
}

/// Which families are in the order of their texts.
struct Families<'a> {
    order: TextOrder,
    store: &'a dyn TermStore,
    /// those met, the last one in front
    known: Vec<(Family, bool)>,
}

impl<'a> Families<'a> {
    fn new(order: TextOrder, store: &'a dyn TermStore) -> Self {
        Self { order, store, known: Vec::new() }
    }

    fn are_by_text(&mut self, id: TermId) -> bool {
        let family = Family::of(id);
        let Some(at) = self.known.iter().position(|known| known.0 == family) else {
            let by_text = is_by_text(self.order, id, self.store);
            self.known.insert(0, (family, by_text));
            return by_text;
        };
        self.known.swap(0, at);
        self.known[0].1
    }
}

/// Whether terms of an id's kind and annotation are in the order of their texts.
fn is_by_text(order: TextOrder, id: TermId, store: &dyn TermStore) -> bool {
    // the others of XML Schema have values
    let is_text = |datatype: Option<&str>| {
        datatype.is_some_and(|datatype| datatype == iri::STRING || !datatype.starts_with(iri::XSD))
    };
    match (order, id.kind()) {
        (TextOrder::OfText, _) | (TextOrder::OfTerm, TermKind::Iri | TermKind::String) => true,
        (TextOrder::OfTerm, TermKind::Literal | TermKind::Text) => is_text(store.datatype_of(id)),
        (TextOrder::OfTerm, _) => false,
    }
}

impl TextColumn<'_> {
    /// As [`TextColumn::of_each`], but a term may be left out that surely is not the least, or the
    /// greatest, of its group.
    pub fn of_best(
        self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        cols: &[Vec<TermId>],
        groups: &[u32],
        max: bool,
        f: &mut OfTerm<'_>,
    ) -> Result<Option<Vec<u32>>, TermError> {
        let Some((mut stored, others)) = in_dictionary(self.ids(cols), |_| true) else { return Ok(None) };
        let ranking = self.ranking(stored.len(), terms, store);
        if let Some((order, ranking)) = &ranking {
            let mut best: FxHashMap<(u32, Family), u16> = FxHashMap::default();
            let mut families = Families::new(*order, store);
            let mut ranks = Vec::with_capacity(stored.len());
            for (id, row) in &stored {
                let rank = ranking.rank(*id).filter(|_| families.are_by_text(*id));
                ranks.push(rank);
                if let Some(rank) = rank {
                    let of = (groups[*row as usize], Family::of(*id));
                    let best = best.entry(of).or_insert(rank);
                    *best = if max { rank.max(*best) } else { rank.min(*best) };
                }
            }
            let mut ranks = ranks.into_iter();
            stored.retain(|(id, row)| {
                ranks
                    .next()
                    .flatten()
                    .is_none_or(|rank| best[&(groups[*row as usize], Family::of(*id))] == rank)
            });
        }
        self.read(&stored, terms, store, ranking.map(|ranking| ranking.1), f)?;
        Ok(Some(others))
    }

    /// The rows of a batch that may be among the first so many, as far as ranks tell; None where
    /// all of them may be.
    pub fn may_be_first(
        self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        cols: &[Vec<TermId>],
        limit: usize,
        descending: bool,
    ) -> Result<Option<Vec<u32>>, TermError> {
        let ids = self.ids(cols);
        if limit == 0 || ids.len() <= limit {
            return Ok(None);
        }
        let Some((order, ranking)) = self.learned(ids, terms, store)? else { return Ok(None) };
        let mut families = Families::new(order, store);
        let rank = |id: &TermId| {
            let rank = ranking.rank(*id).filter(|_| families.are_by_text(*id))?;
            Some(if descending { u16::MAX - rank } else { rank })
        };
        let ranks: Vec<Option<u16>> = ids.iter().map(rank).collect();
        let mut of: FxHashMap<Family, Vec<u16>> = FxHashMap::default();
        for (id, rank) in ids.iter().zip(&ranks) {
            of.entry(Family::of(*id)).or_default().extend(rank);
        }
        // the worst rank of use, where there are more than enough
        let worst: FxHashMap<Family, u16> = of
            .into_iter()
            .filter(|(_, ranks)| ranks.len() > limit)
            .map(|(family, mut ranks)| (family, *ranks.select_nth_unstable(limit - 1).1))
            .collect();
        let is_of_use = |row: &u32| {
            let row = *row as usize;
            let worst = worst.get(&Family::of(ids[row]));
            worst.is_none_or(|worst| ranks[row].is_none_or(|rank| rank <= *worst))
        };
        Ok((!worst.is_empty()).then(|| (0..ids.len() as u32).filter(is_of_use).collect()))
    }

    /// The ranks of a column's texts, of which those that are not known are read; None where there
    /// are none.
    fn learned(
        self,
        ids: &[TermId],
        terms: &mut Terms,
        store: &mut dyn TermStore,
    ) -> Result<Option<(TextOrder, Ranking)>, TermError> {
        let Some((order, ranking)) = self.ranking(ids.len(), terms, store) else { return Ok(None) };
        if !ranking.has_room() {
            return Ok(Some((order, ranking)));
        }
        let mut families = Families::new(order, store);
        let mut is_unknown = |id: TermId| ranking.rank(id).is_none() && families.are_by_text(id);
        let Some((unknown, _)) = in_dictionary(ids, &mut is_unknown) else {
            return Ok(Some((order, ranking)));
        };
        self.read(&unknown, terms, store, Some(ranking), &mut |_, _, _| Ok(()))?;
        Ok(self.ranking(ids.len(), terms, store))
    }

    /// The ranks for a column of so many ids, if its values are in the order of texts.
    pub(super) fn ranking(
        self,
        rows: usize,
        terms: &Terms,
        store: &dyn TermStore,
    ) -> Option<(TextOrder, Ranking)> {
        if rows < LEAST_RANKED {
            return None;
        }
        let order = self.part.map_or(Some(TextOrder::OfTerm), |part| super::node::order_of(&part.node))?;
        Some((order, terms.ranking(store)?))
    }

    /// Reads the terms of some rows, sorted by id.
    pub(super) fn read(
        self,
        rows: &IdRows,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        ranking: Option<Ranking>,
        f: &mut OfTerm<'_>,
    ) -> Result<(), TermError> {
        match self.part {
            Some(part) => of_each(&part.node(terms, store)?, rows, terms, store, ranking, f),
            None => of_each(&TextNode::Term, rows, terms, store, ranking, f),
        }
    }
}

impl TextNode<'_> {
    /// Takes those rows out for which ranks tell whether their texts begin as the expression asks,
    /// and hands over the answers. Gives the ranks to be added to; None where it asks for something
    /// else.
    pub fn answer_by_ranks(
        &self,
        rows: &mut IdRows,
        terms: &Terms,
        store: &dyn TermStore,
        answer: &mut impl FnMut(u32, TermId),
    ) -> Option<Ranking> {
        if rows.len() < LEAST_RANKED {
            return None;
        }
        let (order, Beginning { text, is_all }) = self.beginning()?;
        let ranking = terms.ranking(store)?;
        let mut families = Families::new(order, store);
        let kinds = [TermKind::Iri, TermKind::String, TermKind::Text];
        let ranges = kinds.map(|kind| ranking.of_beginning(kind, &text));
        rows.retain(|(id, row)| {
            let kind = id.kind();
            // an IRI begins with nothing, but its text does
            let is_asked = (order == TextOrder::OfText || kind != TermKind::Iri) && families.are_by_text(*id);
            let range = match kind {
                TermKind::Iri => ranges[0],
                TermKind::Text => ranges[2],
                _ => ranges[1],
            };
            let Some(((low, high), rank)) = range.zip(ranking.rank(*id)).filter(|_| is_asked) else {
                return true;
            };
            let said = match () {
                () if rank < low || rank > high => FALSE,
                () if is_all && low < rank && rank < high => TRUE,
                () => return true,
            };
            answer(*row, said);
            false
        });
        Some(ranking)
    }
}
