//! From a text to its syntax tree, or to an error with its place.

use snowmelt_syntax::tree::{Query, Update};
use snowmelt_syntax::{ParseOptions, parse_query, parse_update};

use crate::bounds::text_limits::{parser_stack_bytes, tree_stack_bytes, update_stack_bytes};
use crate::bounds::with_room;
use crate::error::{QueryError, SparqlLanguage};

/// Parses a text as a query, and calls `then` with its tree and the stack that going over it takes.
pub(crate) fn with_query<T>(
    text: &str,
    options: &ParseOptions<'_>,
    then: impl FnOnce(Query) -> Result<T, QueryError>,
) -> Result<T, QueryError> {
    let tree = with_room(parser_stack_bytes(text, &options.limits), || parse_query(text, options))
        .map_err(|error| QueryError::of_syntax(error, SparqlLanguage::Query))?;
    with_room(tree_stack_bytes(&tree.measure), || then(tree))
}

/// Parses a text as an update, as [`with_query`] does a query.
pub(crate) fn with_update<T>(
    text: &str,
    options: &ParseOptions<'_>,
    then: impl FnOnce(Update) -> Result<T, QueryError>,
) -> Result<T, QueryError> {
    let tree = with_room(parser_stack_bytes(text, &options.limits), || parse_update(text, options))
        .map_err(|error| QueryError::of_syntax(error, SparqlLanguage::Update))?;
    with_room(update_stack_bytes(&tree), || then(tree))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::TextLimits;

    fn parse(text: &str, limits: TextLimits) -> Result<Query, QueryError> {
        with_query(text, &ParseOptions { limits, ..ParseOptions::default() }, Ok)
    }

    fn said(text: &str) -> String {
        match parse(text, TextLimits::default()) {
            Err(e) => e.to_string(),
            Ok(_) => panic!("{text} is a query"),
        }
    }

    fn update(text: &str) -> Result<Update, QueryError> {
        with_update(text, &ParseOptions::default(), Ok)
    }

    #[test]
    fn an_error_has_its_place_and_says_what_was_expected() {
        let open = said("SELECT ?s {?s ?p ?o");
        assert!(open.starts_with("line 1, column 20: found the end of the text, expected "), "{open}");
        let object = said("SELECT ?s\n{ ?s ?p . ?s ?q ?o }");
        assert_eq!(object, "line 2, column 9: found \".\", expected a literal, an object");
        let prefix = said("SELECT ?s {?s ex:p ?o}");
        assert_eq!(prefix, "line 1, column 15: the prefix ex: is not declared");
        let QueryError::Parse { syntax: Some(error), .. } =
            parse("ASK { ?s ?p } . { ?a ?b }", TextLimits::default()).unwrap_err()
        else {
            panic!("an error of the syntax")
        };
        assert!(error.all().count() > 1, "{error}");
    }

    #[test]
    fn a_text_of_the_other_kind_is_told() {
        let told = said(" INSERT DATA { <urn:a> <urn:p> 1 }");
        assert_eq!(told, "line 1, column 2: this is an update, not a query");
        let query = update("ASK { }").unwrap_err().to_string();
        assert_eq!(query, "line 1, column 1: this is a query, not an update");
        assert!(!said("").contains("update"), "{}", said(""));
    }

    #[test]
    fn a_limit_is_told_as_such() {
        let limits = TextLimits { depth: 3, ..TextLimits::default() };
        let error = parse("ASK { { { { } } } }", limits).unwrap_err();
        let deep = QueryError::TooLarge { limit: "query_depth", most: 3, line: 1, column: 11 };
        assert_eq!(error.to_string(), deep.to_string());
    }

    #[test]
    fn declarations_may_follow_on_an_operation() {
        let text = "CLEAR ALL ;\nPREFIX a: <urn:a:> INSERT DATA { a:s a:p 1 } ;\n\
                    PREFIX a: <urn:b:> BASE <http://c/> DELETE DATA { a:s a:p <d> } ;";
        let same = "CLEAR ALL ; INSERT DATA { <urn:a:s> <urn:a:p> 1 } ; \
                    DELETE DATA { <urn:b:s> <urn:b:p> <http://c/d> }";
        let parsed = update(text).unwrap();
        let operations = |update: Update| update.operations.into_iter().map(|one| one.operation).collect();
        let (operations, same): (Vec<_>, Vec<_>) = (operations(parsed), operations(update(same).unwrap()));
        assert_eq!(operations, same);
        let error = update(&format!("{text} CLEAR b:g")).unwrap_err().to_string();
        assert!(error.starts_with("line 3, column "), "{error}");
    }
}
