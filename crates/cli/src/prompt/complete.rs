//! Completion by Tab at the prompt: keywords, prefixes, predicates of the database, variables.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use snowmelt_base::prefixes::KNOWN_PREFIXES;
use snowmelt_graph::Term;
use snowmelt_sparql::{QueryEngine, QueryOptions, Shortener};

use super::input;

/// Words that are offered in upper case.
const KEYWORDS: [&str; 42] = [
    "ASK",
    "ASC",
    "AVG",
    "BASE",
    "BIND",
    "BOUND",
    "BY",
    "COALESCE",
    "CONCAT",
    "CONSTRUCT",
    "CONTAINS",
    "COUNT",
    "DATATYPE",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "EXISTS",
    "FILTER",
    "FROM",
    "GRAPH",
    "GROUP",
    "HAVING",
    "LANG",
    "LIMIT",
    "MAX",
    "MIN",
    "MINUS",
    "NAMED",
    "NOT",
    "OFFSET",
    "OPTIONAL",
    "ORDER",
    "PREFIX",
    "REGEX",
    "SAMPLE",
    "SELECT",
    "STR",
    "STRSTARTS",
    "SUM",
    "UNION",
    "VALUES",
    "WHERE",
];
const COMMANDS: [&str; 8] =
    ["\\analyze", "\\explain", "\\format", "\\help", "\\prefix", "\\quit", "\\stats", "\\timing"];
/// Most predicates that are offered, and the time limit for finding them.
const PREDICATES: u64 = 2000;
const PATIENCE: Duration = Duration::from_secs(1);

/// The editor's helper.
pub struct Completion {
    engine: Arc<QueryEngine>,
    /// as they are written in a query; read at the first Tab
    predicates: OnceCell<Vec<String>>,
}

impl Completion {
    /// Offers what the engine's database has.
    pub fn new(engine: Arc<QueryEngine>) -> Self {
        Completion { engine, predicates: OnceCell::new() }
    }

    /// Where the word before a place begins, and what it could become.
    fn offers(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let before = &line[..at];
        let is_of_word = |c: char| c.is_alphanumeric() || "_-.:?$\\<>/#%@".contains(c);
        let start =
            before.char_indices().rev().take_while(|(_, c)| is_of_word(*c)).last().map_or(at, |(i, _)| i);
        let word = &before[start..];
        let mut offers: Vec<String> = match word.chars().next() {
            None => Vec::new(),
            Some('\\') => COMMANDS.iter().map(|word| (*word).to_owned()).collect(),
            Some('?' | '$') => variables(line, start),
            Some(_) => {
                let keywords = KEYWORDS.iter().filter(|keyword| starts(keyword, word));
                let prefixes = KNOWN_PREFIXES.iter().map(|(name, _)| format!("{name}:"));
                let known =
                    self.predicates().iter().cloned().chain(prefixes).filter(|known| known.starts_with(word));
                keywords.map(|word| (*word).to_owned()).chain(known).collect()
            }
        };
        offers.retain(|offer| starts(offer, word));
        offers.sort();
        offers.dedup();
        (start, offers)
    }

    fn predicates(&self) -> &[String] {
        self.predicates.get_or_init(|| self.read_predicates().unwrap_or_default())
    }

    /// Predicates, shortened by well-known prefixes. Those found when the time is up are offered.
    fn read_predicates(&self) -> Option<Vec<String>> {
        let text = format!("SELECT DISTINCT ?p {{ ?s ?p ?o }} LIMIT {PREDICATES}");
        let options = QueryOptions { timeout: Some(PATIENCE), ..QueryOptions::default() };
        let mut rows = self.engine.query(&text, &options).ok()?.into_rows();
        let shortener = Shortener::new(Vec::new());
        let mut found = Vec::new();
        while let Ok(Some(row)) = rows.next_row() {
            if let Some(Some(Term::Iri(iri))) = row.first() {
                found.push(match shortener.shorten(iri) {
                    Some((prefix, local)) => format!("{prefix}:{local}"),
                    None => format!("<{iri}>"),
                });
            }
        }
        Some(found)
    }
}

/// Whether a word begins with what was typed, in any case.
fn starts(word: &str, typed: &str) -> bool {
    word.get(..typed.len()).is_some_and(|start| start.eq_ignore_ascii_case(typed))
}

/// Variables of a line but for the one that begins at `except`.
fn variables(line: &str, except: usize) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let places = line.match_indices(['?', '$']).filter(|(at, _)| *at != except);
    let names = places.map(|(at, sign)| {
        let rest = &line[at + 1..];
        let len = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        format!("{sign}{}", &rest[..len])
    });
    names.filter(|name| name.len() > 1).collect()
}

impl Completer for Completion {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, offers) = self.offers(line, at);
        let pairs = offers.into_iter().map(|offer| Pair { display: offer.clone(), replacement: offer });
        Ok((start, pairs.collect()))
    }
}

impl Validator for Completion {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match input::is_whole(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}

impl Helper for Completion {}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmelt_database::OpenOptions;
    use snowmelt_graph::GraphDatabase;
    use snowmelt_sparql::UpdateOptions;

    #[test]
    fn words_are_offered_by_their_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let options = OpenOptions { memory_bytes: 64 << 20, ..OpenOptions::default() };
        let engine = QueryEngine::new(GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap());
        let data = "INSERT DATA { <urn:a> <http://xmlns.com/foaf/0.1/name> 'Ann' ; <urn:age> 30 }";
        engine.update(data, &UpdateOptions::default()).unwrap();
        let completion = Completion::new(Arc::new(engine));
        let offers = |line: &str| completion.offers(line, line.len());
        assert_eq!(offers("sel"), (0, vec!["SELECT".to_owned()]));
        assert_eq!(offers("ASK { ?s foaf:"), (9, vec!["foaf:".to_owned(), "foaf:name".to_owned()]));
        assert_eq!(offers("ASK { ?s <urn:"), (9, vec!["<urn:age>".to_owned()]));
        assert_eq!(offers("SELECT ?name ?n { ?n"), (18, vec!["?n".to_owned(), "?name".to_owned()]));
        assert_eq!(offers("\\ti"), (0, vec!["\\timing".to_owned()]));
        assert_eq!(offers("ASK { "), (6, vec![]));
    }
}
