//! Functions of stored terms, worked out while the terms are read.
//!
//! A filter on a text needs the text once. So where an expression depends on the text of one
//! variable's terms alone, it is marked when it is compiled ([`mark`]), and for a batch
//!
//! 1. the distinct ids that stand for terms of the dictionary are read in its order;
//! 2. each term is lent by the reader, the expression is worked out on it ([`TextNode`]), and
//!    nothing but the result stays;
//! 3. the result goes to all rows with that id.
//!
//! Rows with other ids, inline or computed, and batches with few are evaluated as any other
//! expression.

mod node;
mod ranked;
mod searched;
#[cfg(test)]
mod tests;

use snowmelt_graph::{TermId, TermKind, TermRef, TermSink};

use super::Expr;
use super::node::{ExprNode, TextPart};
use crate::value::{Ranking, TermError, TermStore, Terms, Value};
use node::TextNode;

/// Fewer terms are rather kept: they may be asked for again.
const LEAST_TERMS: usize = 8;

/// The dependence of an expression on its variables.
#[derive(Clone, Copy)]
enum DependsOn {
    /// it can only be evaluated as a whole column
    Columns,
    /// on constants alone
    Nothing,
    /// on the terms of one variable; `text`: on their texts throughout, not on their ids
    Terms { slot: usize, text: bool },
}

impl DependsOn {
    /// Of an operation on two.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Columns, _) | (_, Self::Columns) => Self::Columns,
            (Self::Nothing, reads) | (reads, Self::Nothing) => reads,
            (Self::Terms { slot: a, text }, Self::Terms { slot: b, text: other }) if a == b => {
                Self::Terms { slot: a, text: text && other }
            }
            _ => Self::Columns,
        }
    }

    fn of_texts(self) -> Self {
        match self {
            Self::Terms { slot, .. } => Self::Terms { slot, text: true },
            reads => reads,
        }
    }
}

/// Marks the largest parts of an expression that depend on the texts of one variable.
pub(super) fn mark(mut root: ExprNode) -> ExprNode {
    let depends = mark_parts(&mut root);
    mark_one(&mut root, depends);
    root
}

fn mark_one(node: &mut ExprNode, reads: DependsOn) {
    if let DependsOn::Terms { slot, text: true } = reads {
        let mut inner = std::mem::replace(node, ExprNode::Const(TermId::UNDEF));
        let mut constants = Vec::new();
        collect_constants(&mut inner, &mut constants);
        *node = ExprNode::Texts(Box::new(TextPart { slot, node: inner, constants }));
    }
}

fn collect_constants(node: &mut ExprNode, out: &mut Vec<TermId>) {
    if let ExprNode::Const(id) = node {
        out.push(*id);
    }
    parts(node).into_iter().for_each(|part| collect_constants(part, out));
}

/// Marks parts below a node, unless it can be marked itself.
fn mark_parts(node: &mut ExprNode) -> DependsOn {
    match node {
        ExprNode::Const(_) => return DependsOn::Nothing,
        ExprNode::Slot(slot) => return DependsOn::Terms { slot: *slot, text: false },
        _ => {}
    }
    let (is_of_values, takes_text) = (node::is_of_values(node), node::takes_text(node));
    let mut parts = parts(node);
    let each: Vec<DependsOn> = parts.iter_mut().map(|part| mark_parts(part)).collect();
    let all = each.iter().copied().fold(DependsOn::Nothing, DependsOn::and);
    let all = if takes_text { all.of_texts() } else { all };
    let some_text = each.iter().any(|reads| matches!(reads, DependsOn::Terms { text: true, .. }));
    match all {
        DependsOn::Nothing | DependsOn::Terms { text: true, .. } if is_of_values => return all,
        // all of it by the ids
        DependsOn::Terms { text: false, .. } if is_of_values && !some_text => return all,
        _ => {}
    }
    for (part, reads) in parts.into_iter().zip(each) {
        mark_one(part, reads);
    }
    DependsOn::Columns
}

fn parts(node: &mut ExprNode) -> Vec<&mut ExprNode> {
    use ExprNode as N;
    match node {
        N::Const(_) | N::Slot(_) | N::Bound(_) => Vec::new(),
        N::And(list) | N::Or(list) | N::Coalesce(list) => list.iter_mut().collect(),
        N::Static(_, _, list) | N::Call(_, list) | N::Custom(_, list) => list.iter_mut().collect(),
        N::Equal(a, b)
        | N::SameTerm(a, b)
        | N::Compare(_, a, b)
        | N::Arithmetic(_, a, b)
        | N::LangMatches(a, b) => vec![a, b],
        N::If(a, b, c) => vec![a, b, c],
        N::Triple(parts) => parts.iter_mut().map(|part| &mut **part).collect(),
        N::In(a, list) => std::iter::once(&mut **a).chain(list.iter_mut()).collect(),
        N::InSet(a, members) => std::iter::once(&mut **a).chain(members.rest.iter_mut()).collect(),
        N::Not(a)
        | N::Plus(a)
        | N::Minus(a)
        | N::IsA(_, a)
        | N::Str(a)
        | N::Lang(a)
        | N::Datatype(a)
        | N::Component(_, a)
        | N::Cast(_, a)
        | N::CastText(_, a)
        | N::Key(a)
        | N::NamedBlank(_, a) => vec![a],
        N::Texts(part) => vec![&mut part.node],
    }
}

/// Rows by their ids, of terms in the dictionary.
pub(super) type IdRows = Vec<(TermId, u32)>;

/// The rows whose ids are of the dictionary, sorted by id, and the other rows; None where the
/// former are few.
fn in_dictionary(ids: &[TermId], mut is_wanted: impl FnMut(TermId) -> bool) -> Option<(IdRows, Vec<u32>)> {
    if ids.len() < LEAST_TERMS {
        return None;
    }
    let (mut stored, mut others) = (IdRows::with_capacity(ids.len()), Vec::new());
    for (row, id) in ids.iter().enumerate() {
        if id.kind().is_dictionary() && is_wanted(*id) {
            stored.push((*id, row as u32));
        } else {
            others.push(row as u32);
        }
    }
    if stored.len() < LEAST_TERMS {
        return None;
    }
    if !stored.is_sorted() {
        stored.sort_unstable();
    }
    Some((stored, others))
}

/// Takes the value of an expression for a term, and the rows that have the term; an error ends the
/// reading.
pub(crate) type OfTerm<'f> =
    dyn FnMut(&mut Terms, &[(TermId, u32)], Option<Value<'_>>) -> Result<(), TermError> + 'f;

impl TextPart {
    /// Its operation on a term.
    fn node(&self, terms: &mut Terms, store: &mut dyn TermStore) -> Result<TextNode<'_>, TermError> {
        terms.prefetch(store, self.constants.iter().copied())?;
        Ok(TextNode::new(&self.node, terms))
    }

    /// Whether the ids of plain strings say what their texts do.
    fn is_by_id(&self) -> bool {
        node::gives_text_where_ids_do(&self.node)
    }

    /// The rows whose terms are to be read, and the others; None where the former are few.
    pub(super) fn split(&self, ids: &[TermId]) -> Option<(IdRows, Vec<u32>)> {
        let is_by_id = self.is_by_id();
        in_dictionary(ids, |id| !is_by_id || id.kind() != TermKind::String)
    }

    /// Hands over the value for each of some rows, sorted by id: an id, or UNDEF for the error.
    pub(super) fn answer(
        &self,
        mut rows: IdRows,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        mut answer: impl FnMut(u32, TermId),
    ) -> Result<(), TermError> {
        let node = self.node(terms, store)?;
        let ranking = node.answer_by_ranks(&mut rows, terms, store, &mut answer);
        of_each(&node, &rows, terms, store, ranking, &mut |terms, rows, value| {
            let id = value.map_or(TermId::UNDEF, |value| terms.push(&value));
            rows.iter().for_each(|(_, row)| answer(*row, id));
            Ok(())
        })
    }
}

/// An expression that gives a value for each stored term of a variable.
#[derive(Clone, Copy)]
pub(crate) struct TextColumn<'e> {
    slot: usize,
    /// None: the term itself
    part: Option<&'e TextPart>,
}

impl Expr {
    /// The expression, if it depends on the terms of one variable alone.
    pub(crate) fn as_texts(&self) -> Option<TextColumn<'_>> {
        match &self.root {
            ExprNode::Slot(slot) => Some(TextColumn { slot: *slot, part: None }),
            ExprNode::Texts(part) => Some(TextColumn { slot: part.slot, part: Some(part) }),
            _ => None,
        }
    }
}

impl TextColumn<'_> {
    /// Calls `f` for each distinct stored term of a batch. Gives the rows with other ids; None
    /// where those with stored terms are few, and it was not called at all.
    pub fn of_each(
        self,
        terms: &mut Terms,
        store: &mut dyn TermStore,
        cols: &[Vec<TermId>],
        f: &mut OfTerm<'_>,
    ) -> Result<Option<Vec<u32>>, TermError> {
        let Some((stored, others)) = in_dictionary(self.ids(cols), |_| true) else { return Ok(None) };
        let ranking = self.ranking(stored.len(), terms, store).map(|(_, ranking)| ranking);
        self.read(&stored, terms, store, ranking, f)?;
        Ok(Some(others))
    }

    /// The ids of its variable.
    fn ids(self, cols: &[Vec<TermId>]) -> &[TermId] {
        // an empty column is unbound everywhere
        cols.get(self.slot).map_or(&[], Vec::as_slice)
    }
}

/// Works out an expression for each distinct term of some rows, sorted by id; `ranking` is told
/// their texts.
fn of_each(
    node: &TextNode<'_>,
    rows: &IdRows,
    terms: &mut Terms,
    store: &mut dyn TermStore,
    ranking: Option<Ranking>,
    f: &mut OfTerm<'_>,
) -> Result<(), TermError> {
    debug_assert!(rows.is_sorted(), "rows are sorted by id");
    let mut ids: Vec<TermId> = rows.iter().map(|row| row.0).collect();
    ids.dedup();
    let is_distinct = ids.len() == rows.len();
    let mut sink = TextSink { node, rows, ids: &ids, is_distinct, terms, ranking, f, done: Ok(()) };
    store.decode(&ids, &mut sink)?;
    sink.done
}

struct TextSink<'a, 'f> {
    node: &'a TextNode<'a>,
    rows: &'a [(TermId, u32)],
    /// distinct ones of the rows
    ids: &'a [TermId],
    is_distinct: bool,
    terms: &'a mut Terms,
    ranking: Option<Ranking>,
    f: &'a mut OfTerm<'f>,
    done: Result<(), TermError>,
}

impl TermSink for TextSink<'_, '_> {
    fn take(&mut self, place: usize, term: TermRef<'_>) -> bool {
        let id = self.ids[place];
        let rows = match self.is_distinct {
            true => &self.rows[place..=place],
            false => {
                let from = self.rows.partition_point(|row| row.0 < id);
                let len = self.rows[from..].iter().take_while(|row| row.0 == id).count();
                &self.rows[from..from + len]
            }
        };
        let bytes = match term {
            TermRef::Iri(text) | TermRef::Blank(text) | TermRef::Literal { lexical: text, .. } => text.len(),
            TermRef::Triple(_) => 0,
        };
        if let Some(ranking) = &mut self.ranking
            && let TermRef::Iri(text) | TermRef::Literal { lexical: text, .. } = term
        {
            ranking.learn(id, text);
        }
        let value = self.node.value(term, self.terms);
        self.done = (self.f)(self.terms, rows, value);
        if self.done.is_ok() && self.terms.poll(bytes).is_none() {
            self.done = self.terms.fault();
        }
        self.done.is_ok()
    }
}
