//! Parts of terms: the names in an IRI, the label of a blank node (Jena's `afn:`).

use snowmelt_rdfxml::{is_name_char, is_name_start};

use super::Named;
use crate::functions::{Func, hash};
use crate::value::{Terms, Value};

pub(super) fn call(func: Named, v: &Value<'_>, terms: &Terms) -> Option<Value<'static>> {
    let text = match (func, v) {
        (Named::LocalName, Value::Iri(iri)) => &iri[local_name_at(iri)..],
        (Named::Namespace, Value::Iri(iri)) => &iri[..local_name_at(iri)],
        (Named::BlankLabel, Value::Blank(label)) => label,
        (Named::Sha1Sum, Value::Iri(iri)) => {
            return hash::digest(Func::Sha1, &Value::String(iri.as_ref().into()));
        }
        (Named::Sha1Sum, v) => return hash::digest(Func::Sha1, v),
        _ => return None,
    };
    terms.fits(text.len())?;
    Some(Value::String(text.to_owned().into()))
}

/// Where the longest name without colon begins that ends an IRI; its end if there is none.
fn local_name_at(iri: &str) -> usize {
    let is_in_name = |c: char| c != ':' && is_name_char(c);
    let begin = iri.char_indices().rev().take_while(|(_, c)| is_in_name(*c)).last();
    let Some((begin, _)) = begin else { return iri.len() };
    let first = iri[begin..].char_indices().find(|(_, c)| is_name_start(*c) && *c != ':');
    first.map_or(iri.len(), |(at, _)| begin + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iris_are_split_as_xml_names() {
        for (namespace, local) in [
            ("http://a.example/b#", "c"),
            ("http://a.example/", "b-c.d"),
            ("http://a.example/12", "b"),
            ("http://a.example/b/", ""),
            ("http://a.example/123", ""),
            ("urn:isbn:", "x1"),
            ("http://a.example/", "é"),
            ("", ""),
        ] {
            let iri = format!("{namespace}{local}");
            assert_eq!(local_name_at(&iri), namespace.len(), "{iri}");
        }
    }
}
