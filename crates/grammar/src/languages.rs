//! The grammars at hand. Where two languages share rules, the shared file comes last: documents
//! begin with the first rule.

use crate::rules::Grammar;

/// A language, and its grammar.
#[derive(Debug)]
pub struct Language {
    /// Its name, by which tests choose.
    pub name: &'static str,
    /// Its rules.
    pub grammar: Grammar,
}

const SPARQL: &str = include_str!("../grammars/sparql.grammar");
const TURTLE: &str = include_str!("../grammars/turtle.grammar");

/// Name, own rules, shared rules.
const TEXTS: [(&str, &str, &str); 9] = [
    ("query", include_str!("../grammars/query.grammar"), SPARQL),
    ("update", include_str!("../grammars/update.grammar"), SPARQL),
    ("turtle", "Document ::= Statement*", TURTLE),
    ("trig", include_str!("../grammars/trig.grammar"), TURTLE),
    ("n-triples", include_str!("../grammars/n-triples.grammar"), ""),
    ("n-quads", include_str!("../grammars/n-quads.grammar"), ""),
    ("n3", include_str!("../grammars/n3.grammar"), TURTLE),
    ("rdf-xml", include_str!("../grammars/rdf-xml.grammar"), ""),
    ("json-ld", include_str!("../grammars/json-ld.grammar"), ""),
];

/// All of them.
///
/// # Panics
/// When a file is no grammar, which its test would show.
pub fn languages() -> Vec<Language> {
    let language = |(name, own, shared): &(&'static str, &str, &str)| {
        let grammar = Grammar::read(&format!("{own}\n{shared}"));
        Language { name, grammar: grammar.unwrap_or_else(|error| panic!("{name}: {error}")) }
    };
    TEXTS.iter().map(language).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_a_grammar_with_places_to_multiply() {
        for Language { name, grammar } in languages() {
            let sites = grammar.sites();
            println!("{name}: {} rules, {} sites", grammar.rules.len(), sites.len());
            assert!(!sites.is_empty(), "{name}");
            let mut names: Vec<&str> = sites.iter().map(|site| site.name()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), sites.len(), "{name}: two sites have one name");
            let ways = grammar.ways_from(0);
            for (number, rule) in grammar.rules.iter().enumerate() {
                assert!(ways.contains_key(&number), "{name}: nothing leads to {}", rule.name);
            }
        }
    }
}
