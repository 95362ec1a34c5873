//! Prefixes of IRIs that are kept with a database, for people: queries may use them, and documents
//! are written with them. No term depends on them. (`dict::prefix` is another thing: how IRIs are
//! stored.)
//!
//! Loads add the prefixes that their documents declare, as far as the names are free and there is
//! room. The table is the catalog record `namespaces`: a line for each prefix, in the order of
//! their names: name, tab, IRI, line feed. Programs that do not know the record keep it as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use oxrdfio::{RdfFormat, RdfSerializer};
use parking_lot::Mutex;
use snowmelt_rdfxml::{is_name_char, is_name_start};

/// Catalog record of the prefixes.
pub const RECORD_NAMESPACES: &str = "namespaces";

/// Most prefixes that a database keeps.
pub const MOST_NAMESPACES: usize = 1024;

/// Bytes of the longest name and of the longest IRI.
const MOST_NAME_BYTES: usize = 128;
const MOST_IRI_BYTES: usize = 1024;

/// Bytes of all of them.
const MOST_BYTES: usize = 64 << 10;

/// Why a prefix cannot be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NamespaceFault {
    /// Its name.
    #[error("it is no name of a prefix: letters, digits, '-', '_' and '.', a letter first")]
    Name,
    /// Its IRI.
    #[error("it is no absolute IRI of at most {MOST_IRI_BYTES} bytes")]
    Iri,
    /// There are too many.
    #[error("a database keeps at most {MOST_NAMESPACES} prefixes and {MOST_BYTES} bytes of them")]
    Full,
}

/// Prefixes with their IRIs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Namespaces {
    by_name: BTreeMap<String, String>,
    bytes: usize,
}

/// The prefixes of documents under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamespaceSink(Arc<Mutex<Namespaces>>);

impl NamespaceSink {
    /// Adds prefixes whose names are free; those that cannot be kept are passed over.
    pub fn add<'a>(&self, prefixes: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut all = self.0.lock();
        prefixes.for_each(|(name, iri)| all.offer(name, iri));
    }

    /// Those added so far.
    pub fn take(&self) -> Namespaces {
        std::mem::take(&mut self.0.lock())
    }
}

impl Namespaces {
    /// Sets the IRI of a prefix, whose name is without colon; the empty one is a prefix, too.
    ///
    /// # Errors
    /// Why it cannot be kept.
    pub fn set(&mut self, name: &str, iri: &str) -> Result<(), NamespaceFault> {
        check(name, iri)?;
        let before = self.by_name.get(name).map_or(0, |iri| name.len() + iri.len());
        let bytes = self.bytes - before + name.len() + iri.len();
        if bytes > MOST_BYTES || (before == 0 && self.by_name.len() >= MOST_NAMESPACES) {
            return Err(NamespaceFault::Full);
        }
        self.bytes = bytes;
        self.by_name.insert(name.to_owned(), iri.to_owned());
        Ok(())
    }

    /// Sets the IRI of a prefix, if its name is free and it can be kept.
    pub fn offer(&mut self, name: &str, iri: &str) {
        if !self.by_name.contains_key(name) {
            // there is no caller to tell
            let _ = self.set(name, iri);
        }
    }

    /// Removes a prefix; whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let removed = self.by_name.remove(name);
        self.bytes -= removed.as_ref().map_or(0, |iri| name.len() + iri.len());
        removed.is_some()
    }

    /// Adds those of another table whose names are free.
    pub fn join(&mut self, other: &Self) {
        other.iter().for_each(|(name, iri)| self.offer(name, iri));
    }

    /// The IRI of a prefix.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.by_name.get(name).map(String::as_str)
    }

    /// All prefixes with their IRIs, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_name.iter().map(|(name, iri)| (name.as_str(), iri.as_str()))
    }

    /// A writer of a format that uses these prefixes, if it is Turtle or TriG. Of many it has some:
    /// it looks through all of them for each IRI.
    pub fn serializer(&self, format: RdfFormat) -> RdfSerializer {
        /// Prefixes of a writer.
        const MOST_WRITTEN: usize = 64;
        let serializer = RdfSerializer::from_format(format);
        if !matches!(format, RdfFormat::Turtle | RdfFormat::TriG) {
            return serializer;
        }
        self.iter().take(MOST_WRITTEN).fold(serializer, |serializer, (name, iri)| {
            serializer.clone().with_prefix(name, iri).unwrap_or(serializer)
        })
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The record. Lines that are no prefix are passed over: no data depend on them.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut all = Self::default();
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        lines.filter_map(|line| line.split_once('\t')).for_each(|(name, iri)| all.offer(name, iri));
        all
    }

    /// The bytes of the record.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.iter().map(|(name, iri)| format!("{name}\t{iri}\n")).collect::<String>().into_bytes()
    }
}

/// Whether name and IRI can stand in a text.
fn check(name: &str, iri: &str) -> Result<(), NamespaceFault> {
    let is_in_name = |c: char| c != ':' && is_name_char(c);
    let begins = |c: char| c != '_' && c != ':' && is_name_start(c);
    let is_name =
        name.is_empty() || (name.starts_with(begins) && name.chars().all(is_in_name) && !name.ends_with('.'));
    if !is_name || name.len() > MOST_NAME_BYTES {
        return Err(NamespaceFault::Name);
    }
    if iri.len() > MOST_IRI_BYTES || oxrdf::NamedNode::new(iri).is_err() {
        return Err(NamespaceFault::Iri);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_what_its_record_says() {
        let mut all = Namespaces::default();
        for (name, iri) in [("foaf", "http://xmlns.com/foaf/0.1/"), ("", "urn:x:"), ("é-1.b", "http://e/#")]
        {
            all.set(name, iri).unwrap();
        }
        assert_eq!(
            all.to_bytes(),
            "\turn:x:\nfoaf\thttp://xmlns.com/foaf/0.1/\né-1.b\thttp://e/#\n".as_bytes()
        );
        assert_eq!(Namespaces::from_bytes(&all.to_bytes()), all);
        all.offer("foaf", "urn:other:");
        assert_eq!(all.get("foaf"), Some("http://xmlns.com/foaf/0.1/"));
        assert!(all.remove("foaf") && !all.remove("foaf"));
        all.offer("foaf", "urn:other:");
        assert_eq!(all.get("foaf"), Some("urn:other:"));
        let broken = Namespaces::from_bytes(b"a\turn:a:\n\xFF\tb\nno tab\n_b\turn:b:\nc\tno IRI\n");
        assert_eq!(broken.iter().collect::<Vec<_>>(), [("a", "urn:a:")]);
    }

    #[test]
    fn names_and_iris_can_stand_in_a_text() {
        let mut all = Namespaces::default();
        for name in ["_a", "1a", "a:b", "a.", "a b", "a\t", &"a".repeat(200)] {
            assert_eq!(all.set(name, "urn:x"), Err(NamespaceFault::Name), "{name}");
        }
        for iri in ["", "x", "http://a b/", "urn:<x>", &format!("urn:{}", "a".repeat(2000))] {
            assert_eq!(all.set("a", iri), Err(NamespaceFault::Iri), "{iri}");
        }
        assert!(all.is_empty());
    }

    #[test]
    fn the_table_is_bounded() {
        let mut all = Namespaces::default();
        let mut kept = 0;
        while all.set(&format!("p{kept}"), "urn:x:").is_ok() {
            kept += 1;
        }
        assert_eq!(kept, MOST_NAMESPACES);
        assert_eq!(all.set("p0", "urn:another:"), Ok(()), "one that is there can be changed");
        let mut long = Namespaces::default();
        let iri = format!("urn:{}", "a".repeat(1000));
        let fits = (0..).take_while(|n| long.set(&format!("p{n}"), &iri).is_ok()).count();
        assert!(long.to_bytes().len() < MOST_BYTES + 2 * fits, "{fits} prefixes");
    }
}
