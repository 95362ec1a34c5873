//! Triple patterns that lack a term: found beside the parser, which only lists what it could have
//! gone on with.
//!
//! One pass over the tokens counts the terms of each triple in its braces. Triples that contain
//! paths, collections or nested nodes are skipped. So every report is right, and all other faults
//! keep the parser's message.

use super::tokens::{Tokens, is_of_name};

/// How far beyond the place of a fault the parser has gone when it compares keywords.
const LONGEST_KEYWORD: usize = 10;

/// Words that end a triple and begin something else.
const KEYWORDS: [&str; 11] = [
    "BIND", "FILTER", "GRAPH", "LATERAL", "MINUS", "OPTIONAL", "SELECT", "SERVICE", "UNION", "VALUES",
    "WHERE",
];

/// The triples of one pair of braces.
#[derive(Clone, Copy, Default)]
struct TermCount {
    /// terms of the triple so far
    terms: usize,
    /// the subject or the subject and predicate were taken from the triple before
    continues: bool,
    /// something else stands here: it is not counted until the next dot or brace
    is_other: bool,
}

/// The offset where a term is missing, and what to say, if the parser's fault `at` is that.
pub(super) fn unfinished(text: &str, at: usize) -> Option<(usize, &'static str)> {
    let mut open: Vec<TermCount> = Vec::new();
    let mut is_data = false;
    for (place, token) in Tokens::new(text) {
        if place > at {
            return None;
        }
        let is_keyword = KEYWORDS.iter().any(|keyword| token.eq_ignore_ascii_case(keyword));
        let Some(triples) = open.last_mut() else {
            is_data |= token.eq_ignore_ascii_case("VALUES");
            if token == "{" {
                open.push(TermCount { is_other: std::mem::take(&mut is_data), ..TermCount::default() });
            }
            continue;
        };
        if matches!(token, "}" | "." | ";" | "," | "{") || is_keyword {
            if let Some(missing) = triples.missing(token)
                && place + LONGEST_KEYWORD >= at
            {
                return Some((place, missing));
            }
            triples.end(token, is_keyword);
            is_data |= token.eq_ignore_ascii_case("VALUES");
        } else if token.starts_with(is_term) {
            triples.terms += 1;
        } else {
            triples.is_other = true;
        }
        match token {
            "{" => open.push(TermCount { is_other: std::mem::take(&mut is_data), ..TermCount::default() }),
            "}" => {
                open.pop();
                if let Some(outer) = open.last_mut() {
                    *outer = TermCount::default();
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether a token that begins so is a term.
fn is_term(c: char) -> bool {
    is_of_name(c) || matches!(c, '?' | '$' | '<' | '"' | '\'' | ':')
}

impl TermCount {
    /// The term that the triple lacks where this token ends it.
    fn missing(&self, token: &str) -> Option<&'static str> {
        let is_end = matches!(token, "}" | ".");
        match self.terms {
            _ if self.is_other => None,
            // `;` before the end
            1 if self.continues && (is_end || token == ";") => None,
            1 => Some("a triple pattern needs a predicate and an object after its subject"),
            2 => Some("a triple pattern needs an object here: subject, predicate, object"),
            _ => None,
        }
    }

    fn end(&mut self, token: &str, is_keyword: bool) {
        *self = match token {
            // the subject stays, or the predicate with it
            ";" => TermCount { terms: 1, continues: true, is_other: self.is_other },
            "," => TermCount { terms: 2, continues: true, is_other: self.is_other },
            _ => TermCount { is_other: is_keyword, ..TermCount::default() },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_term_is_found() {
        for (text, offset) in [
            ("SELECT ?s { ?s ?p }", 18),
            ("SELECT ?s { ?s ?p . ?s ?q ?o }", 18),
            ("SELECT * { ?s ?p ?o ; ?q }", 25),
            ("SELECT * { ?s ?p ?o , }", 22),
            ("PREFIX a: <urn:> SELECT * { ?s a:b }", 35),
            ("SELECT * { ?s <urn:p> } LIMIT 3", 22),
            ("SELECT * { ?s ?p OPTIONAL { ?s ?p ?o } }", 17),
            ("ASK { ?s ?p ?o . { ?x } }", 22),
        ] {
            assert_eq!(unfinished(text, offset + 2).map(|found| found.0), Some(offset), "{text}");
        }
    }

    #[test]
    fn whole_triples_and_all_that_is_none_are_passed_over() {
        for text in [
            "SELECT * { ?s ?p 1.5 ; ?q 'x'@en, \"y\"^^a:b ; . ?s a:b/a:c ?o }",
            "SELECT * { (1 2) ?p [ ?q ?r ] . [] a ?t . VALUES ?x { 1 2 } VALUES (?a ?b) { (1 2) } }",
            "SELECT * { ?s ?p ?o FILTER(?o > 1) BIND(1 AS ?x) GRAPH ?g { } SERVICE <urn:s> { } }",
            "SELECT * { { SELECT ?s WHERE { ?s ?p ?o } GROUP BY ?s } UNION { ?s ^a:b ?c } } VALUES ?x { 1 2 }",
        ] {
            assert_eq!(unfinished(text, text.len()), None, "{text}");
        }
    }
}
