//! Terms that a format has no way to write.
//!
//! A term that is written must be read back as the same term, or not be written at all: XML 1.0 has
//! no notation for most control characters, RDF/XML writes a predicate as an element and so needs a
//! name at its end, and no format has a notation for an IRI or a language tag that is none. The
//! serialisers do not check this, so it is checked here, term by term.

use oxrdf::vocab::{rdf, xsd};
use oxrdf::{LiteralRef, NamedNodeRef, TermRef};
use snowmelt_rdfxml::{is_char, is_name_char, is_name_start, is_syntax_name};

use super::{RdfVersion, ResultFormat};
use crate::QueryError;
use crate::text::iri::is_iri;

/// Characters of a term that a message shows.
const SHOWN_CHARS: usize = 60;

/// An error where a format cannot write a term.
pub(super) fn refuse(format: ResultFormat, version: RdfVersion, term: TermRef<'_>) -> Result<(), QueryError> {
    let since = match term {
        TermRef::Triple(_) => RdfVersion::Newest,
        TermRef::Literal(literal) if literal.direction().is_some() => RdfVersion::Basic,
        TermRef::Literal(_) | TermRef::NamedNode(_) | TermRef::BlankNode(_) => RdfVersion::Classic,
    };
    let why = match term {
        TermRef::Triple(_) if format == ResultFormat::JsonLd => {
            Some(("JSON-LD has no triple terms", "ttl or nt"))
        }
        _ if since > version => Some((
            if version == RdfVersion::Classic {
                "RDF 1.1 has no such term"
            } else {
                "RDF 1.2 Basic has no triple terms"
            },
            "the format with version=1.2",
        )),
        // for eyes; and text without types, which is quoted
        _ if matches!(format, ResultFormat::Table | ResultFormat::Csv | ResultFormat::Html) => None,
        TermRef::NamedNode(iri) => of_iri(iri),
        TermRef::BlankNode(_) => None,
        TermRef::Literal(literal) => of_literal(format, literal),
        TermRef::Triple(triple) => {
            refuse(format, version, triple.subject.as_ref().into())?;
            refuse(format, version, triple.predicate.as_ref().into())?;
            return refuse(format, version, triple.object.as_ref());
        }
    };
    match why {
        None => Ok(()),
        Some((why, instead)) => {
            Err(unwritable(format, term, since > version.min(format.newest_version()), (why, instead)))
        }
    }
}

/// An error where RDF/XML cannot write a triple.
pub(super) fn refuse_triple(predicate: NamedNodeRef<'_>, object: TermRef<'_>) -> Result<(), QueryError> {
    let unwritable = |term, why| unwritable(ResultFormat::RdfXml, term, false, (why, "ttl or nt"));
    if !ends_in_name(predicate.as_str()) {
        return Err(unwritable(predicate.into(), "as a predicate it must end in a name"));
    }
    if is_syntax(predicate) {
        return Err(unwritable(predicate.into(), "as a predicate it means something else there"));
    }
    if let TermRef::Triple(triple) = object {
        return refuse_triple(triple.predicate.as_ref(), triple.object.as_ref());
    }
    // a type may be written as an element, too
    let TermRef::NamedNode(class) = object else { return Ok(()) };
    if predicate != rdf::TYPE {
        return Ok(());
    }
    if !ends_in_name(class.as_str()) {
        return Err(unwritable(object, "as a type it must end in a name"));
    }
    if is_syntax(class) {
        return Err(unwritable(object, "as a type it means something else there"));
    }
    Ok(())
}

type Why = Option<(&'static str, &'static str)>;

fn of_literal(format: ResultFormat, literal: LiteralRef<'_>) -> Why {
    let is_xml = matches!(format, ResultFormat::Xml | ResultFormat::RdfXml);
    if is_xml && !is_xml_text(literal.value()) {
        let instead = if format == ResultFormat::Xml { "json or tsv" } else { "ttl or nt" };
        return Some(("XML has no notation for one of its characters", instead));
    }
    match literal.language() {
        Some(tag) if !is_language_tag(tag) => Some(("its language tag is none", "csv")),
        Some(_) => None,
        None if literal.datatype() == xsd::STRING => None,
        None => of_iri(literal.datatype()),
    }
}

fn of_iri(iri: NamedNodeRef<'_>) -> Why {
    (!is_iri(iri.as_str())).then_some(("its IRI is none", "csv"))
}

fn unwritable(
    format: ResultFormat,
    term: TermRef<'_>,
    is_newer: bool,
    (why, instead): (&'static str, &'static str),
) -> QueryError {
    QueryError::Unwritable { term: shown(term), format: format.name(), is_newer, why, instead }
}

/// A term as N-Triples have it, its texts cut and escaped: what is behind a text, the language tag,
/// the direction or the datatype, may be the reason.
fn shown(term: TermRef<'_>) -> String {
    shown_above(term, 2)
}

/// As [`shown`], with so many levels of triple terms.
fn shown_above(term: TermRef<'_>, levels: u32) -> String {
    match term {
        TermRef::Triple(_) if levels == 0 => "<<( … )>>".to_owned(),
        TermRef::NamedNode(node) => format!("<{}>", begin_of(node.as_str())),
        TermRef::BlankNode(node) => format!("_:{}", begin_of(node.as_str())),
        TermRef::Literal(literal) => {
            let text = begin_of(literal.value());
            match (literal.language(), literal.direction()) {
                (Some(tag), Some(direction)) => format!("\"{text}\"@{}--{direction}", begin_of(tag)),
                (Some(tag), None) => format!("\"{text}\"@{}", begin_of(tag)),
                (None, _) if literal.datatype() == xsd::STRING => format!("\"{text}\""),
                (None, _) => format!("\"{text}\"^^<{}>", begin_of(literal.datatype().as_str())),
            }
        }
        TermRef::Triple(triple) => {
            let parts =
                [triple.subject.as_ref().into(), triple.predicate.as_ref().into(), triple.object.as_ref()];
            let [subject, predicate, object] = parts.map(|part| shown_above(part, levels - 1));
            format!("<<( {subject} {predicate} {object} )>>")
        }
    }
}

fn begin_of(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).flat_map(char::escape_default).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// Whether XML 1.0 has all characters of a text (production 2, Char). A carriage return is
/// written as a reference.
fn is_xml_text(text: &str) -> bool {
    // without branches, so that several bytes are looked at together; in UTF-8 U+FFFE and
    // U+FFFF begin with 0xEF
    let odd = text.bytes().fold(false, |odd, b| odd | (b < b' ') | (b == 0xEF));
    !odd || text.chars().all(is_char)
}

/// `letters-letters0digits9`, as Turtle and XML have it.
fn is_language_tag(tag: &str) -> bool {
    oxrdf::Literal::new_language_tagged_literal("", tag).is_ok()
        && tag.split('-').next().is_some_and(|first| first.bytes().all(|b| b.is_ascii_alphabetic()))
}

/// Whether an IRI ends in a name of XML, with which it can be written as an element.
fn ends_in_name(iri: &str) -> bool {
    let tail = iri.rfind(|c| !is_name_char(c)).map_or(iri, |at| &iri[at..]);
    tail.contains(is_name_start)
}

/// Whether RDF/XML keeps a name for itself (7.2.2 to 7.2.4).
fn is_syntax(iri: NamedNodeRef<'_>) -> bool {
    let local = iri.as_str().strip_prefix("http://www.w3.org/1999/02/22-rdf-syntax-ns#");
    local.is_some_and(is_syntax_name)
}
