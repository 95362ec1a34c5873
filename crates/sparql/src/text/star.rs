//! `SELECT *` in the order in which the variables appear.
//!
//! SPARQL leaves the order of columns open; the parser gives them by name. People expect what
//! they wrote, so the columns of the outermost `SELECT *` are put into the order of the text.
//! One pass over its tokens finds the variables.

use rustc_hash::FxHashMap;
use spargebra::Query;
use spargebra::algebra::GraphPattern;

use super::tokens::Tokens;

/// Orders the columns of a query if its text asks for all.
pub(super) fn keep_order(text: &str, query: &mut Query) {
    let Query::Select { pattern, .. } = query else { return };
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    let mut stage = Stage::Prologue;
    for (place, word) in Tokens::new(text) {
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword);
        stage = match (stage, word) {
            (Stage::Prologue, _) if is("SELECT") => Stage::Select,
            (Stage::Select, "*") => Stage::Star,
            (Stage::Select, _) if !is("DISTINCT") && !is("REDUCED") => return,
            (stage, _) => stage,
        };
        if let Some(name) = word.strip_prefix(['?', '$']) {
            places.entry(name).or_insert(place);
        }
    }
    if let Some(variables) = outermost(pattern) {
        variables.sort_by_key(|variable| places.get(variable.as_str()).copied().unwrap_or(usize::MAX));
    }
}

/// How far the text has been read.
#[derive(Clone, Copy)]
enum Stage {
    Prologue,
    Select,
    Star,
}

/// The columns of the outermost projection.
fn outermost(pattern: &mut GraphPattern) -> Option<&mut Vec<spargebra::term::Variable>> {
    use GraphPattern as P;
    match pattern {
        P::Project { variables, .. } => Some(variables),
        P::Distinct { inner } | P::Reduced { inner } | P::Slice { inner, .. } => outermost(inner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spargebra::SparqlParser;

    fn columns(text: &str) -> Vec<String> {
        let mut query = SparqlParser::new().parse_query(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        keep_order(text, &mut query);
        let Query::Select { mut pattern, .. } = query else { panic!("{text} is no SELECT") };
        outermost(&mut pattern).unwrap().iter().map(|v| v.as_str().to_owned()).collect()
    }

    #[test]
    fn columns_are_in_the_order_of_the_text() {
        assert_eq!(columns("SELECT * { ?s ?p ?o }"), ["s", "p", "o"]);
        assert_eq!(columns("SELECT DISTINCT * { ?z ?a $m }  LIMIT 3"), ["z", "a", "m"]);
        assert_eq!(columns("SELECT * { ?b ?p ?a FILTER(?a<3&&?b>1) }"), ["b", "p", "a"]);
        assert_eq!(columns("SELECT ?p ?a { ?b ?p ?a { SELECT * { ?z ?y ?a } } }"), ["p", "a"]);
        assert_eq!(columns("SELECT * { { SELECT ?z ?y { ?a ?y ?z } } ?b ?c ?z }"), ["z", "y", "b", "c"]);
    }

    #[test]
    fn what_only_looks_like_a_variable_is_passed_over() {
        let text =
            "# ?b\nPREFIX x: <urn:?b#> SELECT * { ?c <urn:?b> \"?b \\\" ?b\" , '''?b ' ?b''' . ?a x:p ?b }";
        assert_eq!(columns(text), ["c", "a", "b"]);
    }
}
