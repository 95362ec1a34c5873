//! Prefixes of IRIs: those that a text declares, and well-known ones.
//!
//! Well-known prefixes are offered where a text uses one without declaring it, and shorten IRIs in
//! tables. They never change what a query means. Those that a caller has a text assume do.

use snowmelt_graph::Namespaces;

use super::tokens::Tokens;

/// Well-known prefixes, as prefix.cc and the vocabularies themselves have them.
pub const KNOWN_PREFIXES: [(&str, &str); 24] = [
    ("bsbm", "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/"),
    ("dbo", "http://dbpedia.org/ontology/"),
    ("dbr", "http://dbpedia.org/resource/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcat", "http://www.w3.org/ns/dcat#"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("geo", "http://www.opengis.net/ont/geosparql#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("prov", "http://www.w3.org/ns/prov#"),
    ("qb", "http://purl.org/linked-data/cube#"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("rev", "http://purl.org/stuff/rev#"),
    ("schema", "http://schema.org/"),
    ("sh", "http://www.w3.org/ns/shacl#"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("sosa", "http://www.w3.org/ns/sosa/"),
    ("ssn", "http://www.w3.org/ns/ssn/"),
    ("vcard", "http://www.w3.org/2006/vcard/ns#"),
    ("void", "http://rdfs.org/ns/void#"),
    ("wd", "http://www.wikidata.org/entity/"),
    ("wdt", "http://www.wikidata.org/prop/direct/"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
];

/// The namespace of a well-known prefix, without colon.
pub fn known_namespace(prefix: &str) -> Option<&'static str> {
    KNOWN_PREFIXES.iter().find(|(known, _)| *known == prefix).map(|(_, namespace)| *namespace)
}

/// The prefixes that the prologue of a text declares, with their namespaces. Relative namespaces
/// and those with escapes are left out.
pub fn declared_prefixes(text: &str) -> Vec<(String, String)> {
    let mut declared = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix('#') {
            rest = comment.split_once(['\n', '\r']).map_or("", |(_, after)| after);
            continue;
        }
        let is = |word: &str| rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        let name_and_iri = match (is("PREFIX"), is("BASE")) {
            (true, _) => rest["PREFIX".len()..].split_once(':'),
            (_, true) => Some(("", &rest["BASE".len()..])),
            _ => return declared,
        };
        let Some((name, after)) = name_and_iri else { return declared };
        let iri = after.trim_start().strip_prefix('<').and_then(|iri| iri.split_once('>'));
        let Some((iri, after)) = iri else { return declared };
        if is("PREFIX") && iri.contains(':') && !iri.contains('\\') {
            declared.push((name.trim().to_owned(), iri.to_owned()));
        }
        rest = after;
    }
}

/// The prefixes for what a text is answered with: those that it declares, and those that are kept
/// where the names are free.
#[must_use]
pub fn prefixes_for(text: &str, kept: &Namespaces) -> Namespaces {
    let mut all = Namespaces::default();
    declared_prefixes(text).iter().for_each(|(name, iri)| all.offer(name, iri));
    all.join(kept);
    all
}

/// Declarations, in one line, of the prefixes that a text uses without declaring them, as far as
/// they are known; empty if there are none.
pub(crate) fn missing_declarations(text: &str, known: &Namespaces) -> String {
    let mut missing = String::new();
    if known.is_empty() {
        return missing;
    }
    let declared = declared_prefixes(text);
    let mut seen: Vec<&str> = declared.iter().map(|(name, _)| name.as_str()).collect();
    for (_, token) in Tokens::new(text) {
        let Some(name) = prefix_of(token) else { continue };
        if let Some(iri) = known.get(name)
            && !seen.contains(&name)
        {
            seen.push(name);
            missing += &format!("PREFIX {name}: <{iri}> ");
        }
    }
    missing
}

/// The prefix of a token that is a name, or a literal whose datatype is one.
fn prefix_of(token: &str) -> Option<&str> {
    let name = match token.chars().next()? {
        '"' | '\'' => token.rsplit_once("^^")?.1,
        '<' | '?' | '$' => return None,
        _ => token,
    };
    let (prefix, _) = name.split_once(':')?;
    (prefix != "_" && !prefix.starts_with('<')).then_some(prefix)
}

/// Shortens IRIs by prefixes.
#[derive(Clone, Debug, Default)]
pub struct Shortener {
    /// prefix and namespace, the longest namespace first
    prefixes: Vec<(String, String)>,
}

impl Shortener {
    /// By the well-known prefixes, and before them by those given; a given one hides a known one of
    /// its name.
    pub fn new(given: Vec<(String, String)>) -> Self {
        let is_free = |name: &str| !given.iter().any(|(given, _)| given == name);
        let known = KNOWN_PREFIXES.iter().filter(|(name, _)| is_free(name));
        let known: Vec<_> = known.map(|(name, iri)| ((*name).to_owned(), (*iri).to_owned())).collect();
        let mut prefixes = [given, known].concat();
        prefixes.sort_by_key(|(_, namespace)| std::cmp::Reverse(namespace.len()));
        Shortener { prefixes }
    }

    /// By those of a table, and the well-known ones.
    #[must_use]
    pub fn of_namespaces(all: &Namespaces) -> Self {
        Self::new(all.iter().map(|(name, iri)| (name.to_owned(), iri.to_owned())).collect())
    }

    /// The prefix and the local name of an IRI, if it has one that can be written without escapes.
    pub fn shorten<'a>(&'a self, iri: &'a str) -> Option<(&'a str, &'a str)> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_local = |local: &str| {
            local.starts_with(is_name)
                && local.ends_with(|c: char| is_name(c) || c == '-')
                && local.chars().all(|c| is_name(c) || c == '-' || c == '.')
        };
        self.prefixes.iter().find_map(|(prefix, namespace)| {
            let local = iri.strip_prefix(namespace.as_str())?;
            is_local(local).then_some((prefix.as_str(), local))
        })
    }

    /// The namespace of a prefix.
    pub fn namespace(&self, prefix: &str) -> Option<&str> {
        self.prefixes.iter().find(|(name, _)| name == prefix).map(|(_, namespace)| namespace.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prologue_is_read() {
        let text = "# PREFIX no: <urn:no>\nprefix a: <urn:a/>\nBASE <http://b/>PREFIX : <urn:c#>\n\
            PREFIX rel: <x> SELECT * { ?s a:x \"PREFIX d: <urn:d>\" }";
        let pairs = [("a", "urn:a/"), ("", "urn:c#")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(declared_prefixes(text), pairs);
        for broken in ["", "PREFIX", "PREFIX a", "PREFIX a:", "PREFIX a: <", "PREFIX a: b", "BASE", "é"] {
            assert!(declared_prefixes(broken).is_empty(), "{broken}");
        }
    }

    #[test]
    fn what_a_text_uses_and_does_not_declare_is_declared() {
        let mut known = Namespaces::default();
        for (name, iri) in [("a", "urn:a:"), ("", "urn:none:"), ("xsd", "urn:xsd#"), ("c", "urn:c:")] {
            known.set(name, iri).unwrap();
        }
        let missing = |text| missing_declarations(text, &known);
        assert_eq!(
            missing("ASK { ?s a:p :o , _:b , <c:d> , 'c:d', ?c }"),
            "PREFIX a: <urn:a:> PREFIX : <urn:none:> "
        );
        assert_eq!(missing("PREFIX a: <urn:x:> ASK { a:s a:p '1'^^xsd:int }"), "PREFIX xsd: <urn:xsd#> ");
        assert_eq!(missing("ASK { a:s a:p '1'^^<xsd:int> # c:d\n }"), "PREFIX a: <urn:a:> ");
        assert_eq!(missing("ASK { d:s <urn:p> 1 }"), "");
        assert_eq!(missing_declarations("ASK { a:s a:p 1 }", &Namespaces::default()), "");
    }

    #[test]
    fn iris_are_shortened() {
        let given = vec![("x".to_owned(), "http://xmlns.com/foaf/0.1/".to_owned())];
        let shortener = Shortener::new([given, vec![("rdf".into(), "urn:rdf:".into())]].concat());
        let short = |iri| shortener.shorten(iri);
        assert_eq!(short("http://xmlns.com/foaf/0.1/name"), Some(("x", "name")));
        assert_eq!(short("http://www.w3.org/2001/XMLSchema#int"), Some(("xsd", "int")));
        assert_eq!(short("http://www.w3.org/2001/XMLSchema#a/b"), None);
        assert_eq!(short("http://www.w3.org/2001/XMLSchema#"), None);
        assert_eq!(short("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), None);
        assert_eq!(short("urn:rdf:a.b"), Some(("rdf", "a.b")));
        assert_eq!(short("urn:rdf:a."), None);
    }
}
