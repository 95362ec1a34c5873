//! Faults of terms that parsers let through: the RFCs do not allow them, but data contains them.

use oxrdf::{GraphName, NamedOrBlankNode, Quad, Term};
use snowmelt_rdfxml::OddTerms;

use crate::term::untagged_name;

/// Checks the terms of quads. A term repeated in the next quad is checked once: a subject may be
/// long and have many objects.
pub(super) struct TermCheck {
    odd_terms: OddTerms,
    /// The last sound subject, predicate and graph.
    sound: [Option<String>; 3],
    checks: u64,
}

impl TermCheck {
    pub(super) fn new(odd_terms: OddTerms) -> TermCheck {
        TermCheck { odd_terms, sound: Default::default(), checks: 0 }
    }

    /// The fault of a quad, if it has one.
    pub(super) fn fault_of(&mut self, quad: &Quad) -> Option<String> {
        let subject = match &quad.subject {
            NamedOrBlankNode::NamedNode(node) => self.iri_at(0, node.as_str()),
            NamedOrBlankNode::BlankNode(_) => None,
        };
        let predicate = |this: &mut Self| this.iri_at(1, quad.predicate.as_str());
        let object = |this: &mut Self| this.object(&quad.object);
        let graph = |this: &mut Self| match &quad.graph_name {
            GraphName::NamedNode(node) => this.iri_at(2, node.as_str()),
            _ => None,
        };
        subject.or_else(|| predicate(self)).or_else(|| object(self)).or_else(|| graph(self))
    }

    fn object(&mut self, mut object: &Term) -> Option<String> {
        while let Term::Triple(triple) = object {
            let subject = match &triple.subject {
                NamedOrBlankNode::NamedNode(node) => self.iri(node.as_str()),
                NamedOrBlankNode::BlankNode(_) => None,
            };
            let fault = subject.or_else(|| self.iri(triple.predicate.as_str()));
            if fault.is_some() {
                return fault;
            }
            object = &triple.object;
        }
        match object {
            Term::NamedNode(node) => self.iri(node.as_str()),
            Term::Literal(literal) => match literal.language() {
                Some(tag) if !self.odd_terms.allows_tag(tag) => {
                    Some(format!("{tag} is no language tag of RFC 5646"))
                }
                Some(_) => None,
                None => untagged_name(literal.datatype().as_str())
                    .map(|name| format!("a literal without a language tag is no {name}"))
                    .or_else(|| self.iri(literal.datatype().as_str())),
            },
            _ => None,
        }
    }

    fn iri_at(&mut self, place: usize, iri: &str) -> Option<String> {
        if self.sound[place].as_deref() == Some(iri) {
            return None;
        }
        let fault = self.iri(iri);
        if fault.is_none() {
            let sound = self.sound[place].get_or_insert_default();
            sound.clear();
            sound.push_str(iri);
        }
        fault
    }

    fn iri(&mut self, iri: &str) -> Option<String> {
        self.checks += 1;
        (!self.odd_terms.allows_iri(iri)).then(|| format!("<{iri}> is no absolute IRI of RFC 3987"))
    }
}

#[cfg(test)]
mod tests {
    use oxrdf::{Literal, NamedNode};

    use super::*;

    #[test]
    fn what_neighbours_have_in_common_is_checked_once() {
        let mut check = TermCheck::new(OddTerms::Refused);
        let node = |iri: &str| NamedNode::new_unchecked(iri);
        let quad = |subject: &str, object: u32| {
            Quad::new(node(subject), node("urn:p"), Literal::from(object), node("urn:g"))
        };
        assert!((0..100).all(|i| check.fault_of(&quad("urn:s", i)).is_none()));
        assert_eq!(check.checks, 100 + 3, "datatypes, and the rest once");
        let odd = "urn:s#a#b";
        assert!((0..2).all(|i| check.fault_of(&quad(odd, i)).is_some_and(|fault| fault.contains(odd))));
        assert!(check.fault_of(&quad("urn:s", 0)).is_none());
        assert!(check.fault_of(&quad("", 0)).is_some(), "nothing is no IRI");
    }
}
