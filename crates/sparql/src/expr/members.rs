//! `IN` a long list of constants: the list as a set.
//!
//! IRIs, plain strings, integers and booleans are equal if their ids are, so one look into a set answers for a row that has such
//! a value. What is left of the list (other literals, variables) is compared one by one, as in a short list, and so are rows whose
//! value has several forms. A computed term is looked up in the dictionary first.

use super::eval::{Col, Eval};
use super::kernel::{self, FALSE, TRUE};
use super::node::Node;
use crate::value::TermError;
use rustc_hash::{FxHashMap, FxHashSet};
use snowmelt_graph::{Kind, TermId, TermRef};
use spargebra::algebra::Expression;

/// A list shorter than this is compared one by one.
const LEAST_MEMBERS: usize = 8;

/// A list.
#[derive(Debug)]
pub(crate) struct Members {
    /// ids that only the same id equals
    ids: FxHashSet<TermId>,
    /// IRIs that are not stored: only a computed IRI can be one
    iris: FxHashSet<Box<str>>,
    /// members of neither set
    rest: Vec<Node>,
    /// members that are not known to be IRIs, those in the set included
    literals: Vec<Node>,
}

/// What a look into the sets says of a row.
enum Found {
    Answer(TermId),
    /// the rest of the list decides
    Rest,
    /// all members that are no IRIs must be compared
    Literals,
}

impl Members {
    /// The list as a set where that is worth it, else as it was.
    pub fn new(list: &[Expression], nodes: Vec<Node>) -> std::result::Result<Self, Vec<Node>> {
        if nodes.len() < LEAST_MEMBERS {
            return Err(nodes);
        }
        let (mut ids, mut iris) = (FxHashSet::default(), FxHashSet::default());
        let (mut rest, mut literals) = (Vec::new(), Vec::new());
        for (expr, node) in list.iter().zip(nodes) {
            match (expr, node) {
                (Expression::NamedNode(iri), Node::Const(id)) if id.kind() == Kind::Local => {
                    iris.insert(iri.as_str().into());
                }
                (_, Node::Const(id)) if kernel::is_plain(id) => {
                    ids.insert(id);
                    if !kernel::is_resource(id) {
                        literals.push(Node::Const(id));
                    }
                }
                (_, Node::Const(id)) => {
                    rest.push(Node::Const(id));
                    literals.push(Node::Const(id));
                }
                // only constants can be in two lists
                (_, other) => rest.push(other),
            }
        }
        Ok(Self { ids, iris, rest, literals })
    }

    fn find(&self, id: TermId) -> Found {
        match id {
            TermId::UNDEF => Found::Answer(TermId::UNDEF),
            id if self.ids.contains(&id) => Found::Answer(TRUE),
            id if !kernel::is_plain(id) => Found::Literals,
            _ if self.rest.is_empty() => Found::Answer(FALSE),
            _ => Found::Rest,
        }
    }
}

type Result<T> = std::result::Result<T, TermError>;

impl<'b> Eval<'_, 'b> {
    /// IN a set: as [`Eval::is_in`] for the list.
    pub(super) fn is_member(
        &mut self,
        a: &Node,
        members: &Members,
        selected: Option<&[u32]>,
    ) -> Result<Col<'b>> {
        let rows = selected.map_or(self.rows, <[u32]>::len);
        let a = a.eval(self, selected)?;
        let known = self.known(&a, members)?;
        let mut out = vec![FALSE; rows];
        let (mut rest, mut literals) = (Vec::new(), Vec::new());
        for (row, out) in out.iter_mut().enumerate() {
            let id = a.get(row);
            let found = match known.get(&id) {
                Some(Known::Absent(true)) => Found::Answer(TRUE),
                Some(Known::Absent(false)) => Found::Rest,
                Some(Known::Stored(id)) => members.find(*id),
                None => members.find(id),
            };
            match found {
                Found::Answer(answer) => *out = answer,
                Found::Rest => rest.push(row as u32),
                Found::Literals => literals.push(row as u32),
            }
        }
        self.one_by_one(&a, &members.rest, &rest, selected, &mut out)?;
        self.one_by_one(&a, &members.literals, &literals, selected, &mut out)?;
        // variables of the list are in the rest only
        let others: Vec<u32> = literals.into_iter().filter(|row| out[*row as usize] != TRUE).collect();
        self.variables(&a, members, &others, selected, &mut out)?;
        Ok(Col::Own(out))
    }

    /// Compares some rows with some members; the answer joins what is there.
    fn one_by_one(
        &mut self,
        a: &Col<'_>,
        list: &[Node],
        rows: &[u32],
        selected: Option<&[u32]>,
        out: &mut [TermId],
    ) -> Result<()> {
        if rows.is_empty() || list.is_empty() {
            return Ok(());
        }
        let some = Col::Own(rows.iter().map(|row| a.get(*row as usize)).collect());
        let found = self.any_equal(&some, list, Some(&super::eval::picked(selected, rows)))?;
        for (i, row) in rows.iter().enumerate() {
            let place = &mut out[*row as usize];
            *place = kernel::or(*place, found.get(i));
        }
        Ok(())
    }

    fn variables(
        &mut self,
        a: &Col<'_>,
        members: &Members,
        rows: &[u32],
        selected: Option<&[u32]>,
        out: &mut [TermId],
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        for node in members.rest.iter().filter(|n| !matches!(n, Node::Const(_))) {
            self.one_by_one(a, std::slice::from_ref(node), rows, selected, out)?;
        }
        Ok(())
    }

    /// What computed IRIs and plain strings are in the dictionary: one call for all of a column.
    fn known(&mut self, a: &Col<'_>, members: &Members) -> Result<FxHashMap<TermId, Known>> {
        let mut local: Vec<TermId> = a.ids().iter().copied().filter(|id| id.kind() == Kind::Local).collect();
        local.sort_unstable();
        local.dedup();
        let mut known = FxHashMap::default();
        if local.is_empty() {
            return Ok(known);
        }
        self.terms.prefetch(self.store, local.iter().copied())?;
        let mut asked: Vec<(TermId, bool, String)> = Vec::new();
        for id in local {
            let text = self.terms.with_term(id, |term| match term {
                TermRef::Iri(iri) => Some((true, iri.to_owned())),
                TermRef::Literal { lexical, datatype, lang: None }
                    if datatype == crate::value::iri::STRING =>
                {
                    Some((false, lexical.to_owned()))
                }
                _ => None,
            });
            asked.extend(text.flatten().map(|(is_iri, text)| (id, is_iri, text)));
        }
        let mut terms: Vec<TermRef<'_>> = Vec::with_capacity(asked.len());
        for (_, is_iri, text) in &asked {
            terms.push(if *is_iri { TermRef::Iri(text) } else { TermRef::string(text) });
        }
        for ((id, is_iri, text), stored) in asked.iter().zip(self.store.resolve(&terms)?) {
            let absent = || Known::Absent(*is_iri && members.iris.contains(text.as_str()));
            known.insert(*id, stored.map_or_else(absent, Known::Stored));
        }
        Ok(known)
    }
}

/// A computed term in the dictionary.
enum Known {
    Stored(TermId),
    /// it is not there; whether it is one of the list's IRIs that are not there
    Absent(bool),
}
