//! From a text to its syntax tree, or to an error with its place.

use std::borrow::Cow;

use spargebra::{Query, SparqlParser, SparqlSyntaxError, Update};

use super::base::resolved;
use super::parser_error::{explain, placed, without_labels};
use super::pieces::Pieces;
use super::star;
use crate::error::{QueryError, SparqlLanguage, place};

/// Parses a text as a query.
pub(crate) fn parse(text: &str, base: Option<&str>) -> Result<Query, QueryError> {
    let parser = parser(base)?;
    let mut query = parsed(text, base, |text| parser.clone().parse_query(text)).map_err(|error| {
        let parsed = || parser.clone().parse_update(text);
        let is_update = is_short(text) && parsed().is_ok_and(|update| !update.operations.is_empty());
        if is_update { QueryError::wrong_language(text, SparqlLanguage::Update) } else { error }
    })?;
    star::keep_order(text, &mut query);
    Ok(query)
}

/// Whether a text that does not parse may be tried as the other kind: memory was reserved for one
/// parse only.
fn is_short(text: &str) -> bool {
    text.len() <= 64 << 10
}

/// Parses a text as an update.
pub(crate) fn parse_update(text: &str, base: Option<&str>) -> Result<Update, QueryError> {
    let parser = parser(base)?;
    let parse = |text: &str| parsed(text, base, |text| parser.clone().parse_update(text));
    parse(text).or_else(|error| {
        if let Some(update) = parse_declared(text, parse) {
            return update;
        }
        let is_query = is_short(text) && parser.clone().parse_query(text).is_ok();
        Err(if is_query { QueryError::wrong_language(text, SparqlLanguage::Query) } else { error })
    })
}

/// An update with declarations between its operations, parsed in pieces; `None` if there are none.
fn parse_declared(
    text: &str,
    parse: impl Fn(&str) -> Result<Update, QueryError>,
) -> Option<Result<Update, QueryError>> {
    /// Each piece repeats the declarations before it.
    const MOST_REPEATED: usize = 8;
    let mut pieces = Pieces::new(text.as_bytes(), text.len()).uncut();
    let mut left = text.len().max(1 << 10) * MOST_REPEATED;
    let mut all: Option<Update> = None;
    while let Some(piece) = pieces.next().ok()? {
        if all.is_none() && pieces.is_over() {
            return None;
        }
        left = left.checked_sub(piece.text.len())?;
        let update = match parse(&piece.text) {
            Ok(update) => update,
            Err(error) => return Some(Err(piece.placed(error))),
        };
        match &mut all {
            None => all = Some(update),
            Some(all) => {
                all.operations.extend(update.operations);
                all.base_iri = update.base_iri;
            }
        }
    }
    all.map(Ok)
}

/// A parser with a base IRI.
fn parser(base: Option<&str>) -> Result<SparqlParser, QueryError> {
    let parser = SparqlParser::new();
    let Some(base) = base else { return Ok(parser) };
    let bad = |e| QueryError::Parse { line: 0, column: 0, message: format!("the base IRI {base}: {e}") };
    parser.with_base_iri(base).map_err(bad)
}

fn parsed<T>(
    text: &str,
    base: Option<&str>,
    parse: impl Fn(&str) -> Result<T, SparqlSyntaxError>,
) -> Result<T, QueryError> {
    // errors are those of the text as it is
    if let Cow::Owned(resolved) = resolved(text, base)
        && let Ok(parsed) = parse(&resolved)
    {
        return Ok(parsed);
    }
    parse(text).map_err(|error| {
        let error = error.to_string();
        let (at, message) = placed(text, &error);
        // The parser goes over a wrong text twice. The second time it takes each label of a blank
        // node for one already in use, stops there, and so misses what was expected further on.
        let bare = without_labels(text);
        let (at, message) = match bare.as_ref().map(|bare| parse(bare).map_err(|e| e.to_string())) {
            Some(Ok(_)) => (at, "a blank node has the label of one in another graph pattern".into()),
            Some(Err(other)) if placed(text, &other).0 == at => explain(text, at, placed(text, &other).1),
            _ => explain(text, at, message),
        };
        let (line, column) = place(text, at);
        QueryError::Parse { line, column, message }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        match parse(text, None) {
            Err(e) => e.to_string(),
            Ok(_) => panic!("{text} is a query"),
        }
    }

    #[test]
    fn a_misspelt_keyword_is_named_with_its_place() {
        let select = said("\nSELEC ?s WHERE {?s ?p ?o}");
        assert!(select.starts_with("line 2, column 1: \"SELEC ?s\" is not understood; "), "{select}");
        let r#where = said("SELECT ?s WHER {?s ?p ?o}");
        assert!(r#where.starts_with("line 1, column 11: \"WHER\" is not understood; WHERE or"), "{where}");
        let limit = said("SELECT ?s {?s ?p ?o} LIMT 3");
        assert!(limit.starts_with("line 1, column 22: \"LIMT 3\" is not understood; "), "{limit}");
    }

    #[test]
    fn a_missing_object_is_named() {
        let object = "a triple pattern needs an object here: subject, predicate, object";
        assert_eq!(said("SELECT ?s { ?s ?p }"), format!("line 1, column 19: {object}"));
        assert_eq!(said("SELECT ?s\n{ ?s ?p . ?s ?q ?o }"), format!("line 2, column 9: {object}"));
        let both = said("SELECT ?s { ?s }");
        assert!(both.starts_with("line 1, column 16: a triple pattern needs a predicate and"), "{both}");
    }

    #[test]
    fn a_text_of_the_other_kind_is_told() {
        let update = said(" INSERT DATA { <urn:a> <urn:p> 1 }");
        assert_eq!(update, "line 1, column 2: this is an update, not a query");
        let query = parse_update("ASK { }", None).unwrap_err().to_string();
        assert_eq!(query, "line 1, column 1: this is a query, not an update");
        assert!(!said("").contains("update"), "{}", said(""));
    }

    #[test]
    fn declarations_may_follow_on_an_operation() {
        let text = "CLEAR ALL ;\nPREFIX a: <urn:a:> INSERT DATA { a:s a:p 1 } ;\n\
                    PREFIX a: <urn:b:> BASE <http://c/> DELETE DATA { a:s a:p <d> } ;";
        let same = "CLEAR ALL ; INSERT DATA { <urn:a:s> <urn:a:p> 1 } ; \
                    DELETE DATA { <urn:b:s> <urn:b:p> <http://c/d> }";
        let update = parse_update(text, None).unwrap();
        assert_eq!(update.operations, parse_update(same, None).unwrap().operations);
        assert_eq!(update.base_iri.unwrap().as_str(), "http://c/");
        let error = parse_update(&format!("{text} CLEAR b:g"), None).unwrap_err().to_string();
        assert_eq!(error, "line 3, column 73: the prefix b: is not declared");
        let many: String = (0..2000).map(|n| format!("PREFIX p{n}: <urn:{n}> CLEAR ALL;")).collect();
        assert!(parse_update(&many, None).is_err(), "its declarations take too much together");
    }

    #[test]
    fn a_known_prefix_is_offered() {
        let offered = said("SELECT * { ?s foaf:name ?o }");
        let hint = "the prefix foaf: is not declared; begin with PREFIX foaf: <http://xmlns.com/foaf/0.1/>";
        assert!(offered.ends_with(hint), "{offered}");
        assert!(said("SELECT * { ?s nobody:name ?o }").ends_with("the prefix nobody: is not declared"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let open = said("SELECT ?s {?s ?p ?o");
        assert!(
            open.starts_with("line 1, column 20: found the end, expected ") && open.contains("\"}\""),
            "{open}"
        );
        let sign = said("SELECT ?s {?s ?p %}");
        assert!(sign.starts_with("line 1, column 12: \"?s ?p %}\" is not understood; "), "{sign}");
    }

    #[test]
    fn a_prefix_without_a_declaration_is_named() {
        for name in ["ex:p", "ex:a-longer-name"] {
            let text = format!("SELECT ?s {{?s {name} ?o}}");
            assert_eq!(said(&text), "line 1, column 15: the prefix ex: is not declared");
        }
        for text in [
            "SELECT ?s {_:b } LI",
            "SELECT ?s {?s ?p \"from 10:30\n}",
            "SELECT ?s {?s ?p \"from 10:30\"} LIMT 3",
        ] {
            assert!(!said(text).contains("prefix"), "{}", said(text));
        }
    }

    #[test]
    fn a_label_of_a_blank_node_hides_no_error() {
        let limit = said("SELECT ?s {?s ?p _:b.} LIMT 3");
        assert!(limit.starts_with("line 1, column 24: \"LIMT 3\" is not understood; "), "{limit}");
        let prefix = said("PREFIX a_: <http://a/> SELECT ?s {?s a_:p _:é . ?s ex:q ?z}");
        assert_eq!(prefix, "line 1, column 52: the prefix ex: is not declared");
        let open = said("SELECT ?s {?s ?p _:b");
        assert!(
            open.starts_with("line 1, column 21: found the end, expected \"") && open.contains("\"}\""),
            "{open}"
        );
        let twice = said("SELECT ?s {?s ?p _:b OPTIONAL {_:b ?q ?r}}");
        assert!(twice.ends_with(": a blank node has the label of one in another graph pattern"), "{twice}");
        let update = parse_update("INSERT DATA {_:b <a:p> <a:o> . _:b ex:p 1}", None).map(drop).unwrap_err();
        assert_eq!(update.to_string(), "line 1, column 36: the prefix ex: is not declared");
    }
}
