//! Terms that the RFCs do not allow, and data has: the faults of what a parser does not check.

use oxrdf::{GraphName, NamedOrBlankNode, Quad, Term};
use snowmelt_rdfxml::OddTerms;

/// The fault of a quad, if it has one.
pub(super) fn fault_of(quad: &Quad, odd_terms: OddTerms) -> Option<String> {
    let iri =
        |iri: &str| (!odd_terms.allows_iri(iri)).then(|| format!("<{iri}> is no absolute IRI of RFC 3987"));
    let subject = match &quad.subject {
        NamedOrBlankNode::NamedNode(node) => iri(node.as_str()),
        NamedOrBlankNode::BlankNode(_) => None,
    };
    let object = || match &quad.object {
        Term::NamedNode(node) => iri(node.as_str()),
        Term::Literal(literal) => match literal.language() {
            Some(tag) if !odd_terms.allows_tag(tag) => Some(format!("{tag} is no language tag of RFC 5646")),
            Some(_) => None,
            None => iri(literal.datatype().as_str()),
        },
        _ => None,
    };
    let graph = || match &quad.graph_name {
        GraphName::NamedNode(node) => iri(node.as_str()),
        _ => None,
    };
    subject.or_else(|| iri(quad.predicate.as_str())).or_else(object).or_else(graph)
}
