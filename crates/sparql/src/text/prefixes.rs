//! Prefixes of IRIs: those that a text declares, those that a caller has it assume, and the
//! shortening of IRIs by them.

use snowmelt_base::prefixes::KNOWN_PREFIXES;
use snowmelt_graph::Namespaces;
use snowmelt_syntax::AssumedPrefixes;

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
        if is("VERSION") {
            let version = rest["VERSION".len()..].trim_start();
            let mark = version.chars().next().filter(|mark| matches!(mark, '"' | '\''));
            let Some((_, after)) = mark.and_then(|mark| version[1..].split_once(mark)) else {
                return declared;
            };
            rest = after;
            continue;
        }
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

/// Prefixes that a text may use without declaring them.
#[derive(Debug)]
pub(crate) struct KeptPrefixes<'a>(pub &'a Namespaces);

impl AssumedPrefixes for KeptPrefixes<'_> {
    fn namespace(&self, prefix: &str) -> Option<&str> {
        self.0.get(prefix)
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
        let text = "# PREFIX no: <urn:no>\nprefix a: <urn:a/>\nBASE <http://b/>Version '1.2'PREFIX : <urn:c#>\n\
            PREFIX rel: <x> SELECT * { ?s a:x \"PREFIX d: <urn:d>\" }";
        let pairs = [("a", "urn:a/"), ("", "urn:c#")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(declared_prefixes(text), pairs);
        for broken in [
            "VERSION",
            "VERSION 1 PREFIX a: <u:>",
            "",
            "PREFIX",
            "PREFIX a",
            "PREFIX a:",
            "PREFIX a: <",
            "PREFIX a: b",
            "BASE",
            "é",
        ] {
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
