//! `IN` a long list of constants: the list as a set.
//!
//! IRIs, plain strings, integers and booleans are equal if their ids are, so one look into a
//! set answers for a row that has such a value. What is left of the list (other literals,
//! variables) is compared one by one, as in a short list, and so are rows whose value has
//! several forms. A computed term is looked up in the dictionary first.

use rustc_hash::FxHashSet;
use snowmelt_graph::{TermId, TermKind};

use super::kernel::{self, FALSE, TRUE};
use super::node::ExprNode;
use crate::algebra::consts::GroundTerm;
use crate::value::iri;

/// A list shorter than this is compared one by one.
const LEAST_MEMBERS: usize = 8;

/// A list.
#[derive(Debug)]
pub(crate) struct Members {
    /// ids that only the same id equals
    ids: FxHashSet<TermId>,
    /// IRIs that are not stored: only a computed IRI can be one
    iris: FxHashSet<Box<str>>,
    /// plain strings that are not stored: only a computed string can be one
    strings: FxHashSet<Box<str>>,
    /// members of neither set
    pub(super) rest: Vec<ExprNode>,
    /// members that are not known to be IRIs, those in the set included
    pub(super) literals: Vec<ExprNode>,
}

/// The answer of a look into the sets for a row.
pub(super) enum Answered {
    Answer(TermId),
    /// the rest of the list decides
    Rest,
    /// all members that are no IRIs must be compared
    Literals,
}

impl Members {
    /// The list as a set where that is worth it, else as it was; with the terms of those members
    /// that are constants.
    pub fn new<'e>(
        terms: impl Iterator<Item = Option<&'e GroundTerm>>,
        nodes: Vec<ExprNode>,
    ) -> std::result::Result<Self, Vec<ExprNode>> {
        if nodes.len() < LEAST_MEMBERS {
            return Err(nodes);
        }
        let (mut ids, mut iris, mut strings) =
            (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
        let (mut rest, mut literals) = (Vec::new(), Vec::new());
        for (term, node) in terms.zip(nodes) {
            match (term, node) {
                (Some(GroundTerm::Iri(iri)), ExprNode::Const(id)) if id.kind() == TermKind::Local => {
                    iris.insert(iri.as_str().into());
                }
                (Some(GroundTerm::Literal(literal)), ExprNode::Const(id))
                    if id.kind() == TermKind::Local
                        && literal.language().is_none()
                        && literal.datatype().as_str() == iri::STRING =>
                {
                    strings.insert(literal.value().into());
                    literals.push(ExprNode::Const(id));
                }
                (_, ExprNode::Const(id)) if kernel::is_plain(id) => {
                    ids.insert(id);
                    if !kernel::is_resource(id) {
                        literals.push(ExprNode::Const(id));
                    }
                }
                (_, ExprNode::Const(id)) => {
                    rest.push(ExprNode::Const(id));
                    literals.push(ExprNode::Const(id));
                }
                // only constants can be in two lists
                (_, other) => rest.push(other),
            }
        }
        Ok(Self { ids, iris, strings, rest, literals })
    }

    /// Whether an IRI that is not stored is in the list.
    pub(super) fn has_absent_iri(&self, iri: &str) -> bool {
        self.iris.contains(iri)
    }

    /// Whether a plain string that is not stored is in the list.
    pub(super) fn has_absent_string(&self, text: &str) -> bool {
        self.strings.contains(text)
    }

    pub(super) fn find(&self, id: TermId) -> Answered {
        match id {
            TermId::UNDEF => Answered::Answer(TermId::UNDEF),
            id if self.ids.contains(&id) => Answered::Answer(TRUE),
            id if !kernel::is_plain(id) => Answered::Literals,
            _ if self.rest.is_empty() => Answered::Answer(FALSE),
            _ => Answered::Rest,
        }
    }
}
