//! Prefixes of IRIs: those that a text declares, and well-known ones.
//!
//! Well-known prefixes are offered where a text uses one without declaring it, and shorten IRIs in
//! tables. They never change what a query means.

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
