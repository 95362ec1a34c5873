//! Terms that the RFCs do not allow, and data has.

/// The treatment of IRIs and language tags outside of RFC 3987 and RFC 5646, such as
/// `http://example.org/x#a#b` and `zh-classical`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OddTerms {
    /// They are faults.
    #[default]
    Refused,
    /// They are kept, if Turtle's grammar allows them.
    Kept,
}

impl OddTerms {
    /// Whether an absolute IRI may be stored.
    pub(crate) fn allows_iri(self, iri: &str) -> bool {
        match self {
            Self::Refused => oxrdf::NamedNode::new(iri).is_ok(),
            Self::Kept => {
                let scheme = iri.split_once(':').map_or("", |(scheme, _)| scheme);
                let is_scheme = |b: u8| b.is_ascii_alphanumeric() || b"+-.".contains(&b);
                scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                    && scheme.bytes().all(is_scheme)
                    && !iri.contains(|c: char| c <= ' ' || "<>\"{}|^`\\".contains(c))
            }
        }
    }

    /// Whether a language tag may be stored.
    pub(crate) fn allows_tag(self, tag: &str) -> bool {
        match self {
            Self::Refused => oxrdf::Literal::new_language_tagged_literal("", tag).is_ok(),
            Self::Kept => {
                let mut parts = tag.split('-');
                let is_first = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphabetic());
                let is_part =
                    |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
                parts.next().is_some_and(is_first) && parts.all(is_part)
            }
        }
    }

    /// The fault of a quad, if it has one, from a reader that checks nothing.
    pub(crate) fn fault_of(self, quad: &oxrdf::Quad) -> Option<String> {
        use oxrdf::{GraphName, NamedOrBlankNode, Term};
        let iri =
            |iri: &str| (!self.allows_iri(iri)).then(|| format!("<{iri}> is no absolute IRI of RFC 3987"));
        let subject = match &quad.subject {
            NamedOrBlankNode::NamedNode(node) => iri(node.as_str()),
            NamedOrBlankNode::BlankNode(_) => None,
        };
        let object = || match &quad.object {
            Term::NamedNode(node) => iri(node.as_str()),
            Term::Literal(literal) => match literal.language() {
                Some(tag) if !self.allows_tag(tag) => Some(format!("{tag} is no language tag of RFC 5646")),
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_terms_are_those_of_turtle() {
        let iris = [("http://e/x#a#b", true), ("http://e/[x]", true), ("http://e/a b", false), ("x", false)];
        for (iri, is_kept) in iris {
            assert_eq!(OddTerms::Kept.allows_iri(iri), is_kept, "{iri}");
            assert!(!OddTerms::Refused.allows_iri(iri), "{iri}");
        }
        for (tag, is_kept) in [("zh-classical1", true), ("en-", false), ("e n", false), ("1a", false)] {
            assert_eq!(OddTerms::Kept.allows_tag(tag), is_kept, "{tag}");
            assert!(!OddTerms::Refused.allows_tag(tag), "{tag}");
        }
    }
}
