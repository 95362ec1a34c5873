//! Documents of the grammars as requests.

use std::io::{self, Write};

use snowmelt_grammar::{Language, Site, languages};

/// A place of a grammar, named by its language.
pub struct Place {
    pub name: String,
    language: &'static str,
    document: Box<dyn Fn(usize) -> String + Send + Sync>,
}

/// A request.
pub struct Shot {
    pub name: String,
    pub copies: usize,
    language: &'static str,
    body: String,
}

/// Walks through each grammar, beside its places.
const WALKS: u64 = 8;

/// All places of all languages that the server reads, and some walks.
pub fn all_places() -> Vec<Place> {
    let mut places = Vec::new();
    let first_seed = snowmelt_base::test_seed(1);
    for Language { name: language, grammar } in languages() {
        let place = |site: Site| Place {
            name: format!("{language}: {}", site.name()),
            language,
            document: Box::new(move |n| site.document(n)),
        };
        places.extend(grammar.sites().into_iter().map(place));
        let grammar = std::sync::Arc::new(grammar);
        for walk in 0..WALKS {
            let seed = first_seed.wrapping_add(walk << 32);
            let mut first = seed;
            if grammar.mixed(&mut first, 1).is_some() {
                let grammar = grammar.clone();
                let document = move |n| {
                    let mut random = seed;
                    grammar.mixed(&mut random, n).expect("it nests")
                };
                let name = format!("{language}: walk {walk}");
                places.push(Place { name, language, document: Box::new(document) });
            }
        }
    }
    if let Ok(part) = std::env::var("SNOWMELT_CASE") {
        places.retain(|place| place.name.contains(&part));
    }
    places
}

impl Place {
    /// The request with n copies or levels.
    pub fn shot(&self, n: usize) -> Shot {
        Shot { name: self.name.clone(), copies: n, language: self.language, body: (self.document)(n) }
    }

    /// The language, and the name without it.
    pub fn parts(&self) -> (&str, &str) {
        self.name.split_once(": ").expect("a name begins with its language")
    }
}

/// Formats of answers, by turns.
const ACCEPT: [&str; 8] = [
    "application/sparql-results+json, application/ld+json",
    "application/sparql-results+xml, application/rdf+xml",
    "text/csv, text/turtle",
    "text/tab-separated-values, application/n-triples",
    "text/csv, application/trig",
    "text/html",
    "application/sparql-results+json, application/n-quads",
    "application/sparql-results+xml, text/turtle",
];

impl Shot {
    /// Writes the request.
    pub fn send(&self, host: &str, out: &mut dyn Write) -> io::Result<()> {
        let all = "PUT /graphs";
        let one = "PUT /graphs?graph=urn%3Agrammar";
        let (target, kind) = match self.language {
            "query" => ("POST /query", "application/sparql-query"),
            "update" => ("POST /update", "application/sparql-update"),
            "turtle" => (one, "text/turtle"),
            "n3" => (one, "text/n3"),
            "n-triples" => (one, "application/n-triples"),
            "rdf-xml" => (one, "application/rdf+xml"),
            "trig" => (all, "application/trig"),
            "n-quads" => (all, "application/n-quads"),
            "json-ld" => (all, "application/ld+json"),
            other => unreachable!("{other} has no address"),
        };
        let accept = ACCEPT[self.name.len() % ACCEPT.len()];
        write!(
            out,
            "{target} HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\nContent-Type: {kind}\r\n\
             Content-Length: {}\r\n\r\n{}",
            self.body.len(),
            self.body
        )
    }

    /// The beginning of what is sent.
    pub fn shown(&self) -> String {
        self.body.chars().take(400).collect()
    }
}
