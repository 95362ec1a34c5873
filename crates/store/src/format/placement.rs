//! Placement: which trees have their extents on which stripe.
//!
//! A catalog record, so that a database keeps it: name `placement`, kind 1, and the text
//! `NAME=STRIPE` with commas between, in the order of the names. Extents of other trees lie on
//! all stripes in turn. A program that does not know the record keeps it and deals all trees out.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::format::catalog::{Catalog, Record};

/// Name of the catalog record.
const RECORD: &str = "placement";
/// Its kind.
const KIND: u32 = 1;

/// Stripes of trees, by the trees' names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement(BTreeMap<String, u32>);

impl Placement {
    /// The stripe of the tree of that name, if it has one of its own.
    pub fn stripe_of(&self, name: &str) -> Option<u32> {
        self.0.get(name).copied()
    }

    /// Names and stripes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.0.iter().map(|(name, stripe)| (name.as_str(), *stripe))
    }

    /// True when no tree has a stripe of its own.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The placement in this catalog; entries beyond the last of `stripes` stripes are ignored.
    pub(crate) fn of_catalog(catalog: &Catalog, stripes: u32) -> Placement {
        let text = catalog.records.get(RECORD).filter(|record| record.kind == KIND);
        let text = text.and_then(|record| std::str::from_utf8(&record.bytes).ok());
        let mut placement: Placement = text.and_then(|text| text.parse().ok()).unwrap_or_default();
        placement.0.retain(|_, stripe| *stripe < stripes);
        placement
    }

    /// Puts it into a catalog; takes it out where it is empty.
    pub(crate) fn keep(&self, catalog: &mut Catalog) {
        match self.is_empty() {
            true => drop(catalog.records.remove(RECORD)),
            false => drop(catalog.records.insert(RECORD.into(), self.record())),
        }
    }

    fn record(&self) -> Record {
        Record { kind: KIND, bytes: self.to_string().as_bytes().into() }
    }

    /// Name, kind and bytes of its record.
    pub(crate) fn as_record(&self) -> (&'static str, u32, Vec<u8>) {
        (RECORD, KIND, self.to_string().into_bytes())
    }
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Placement, String> {
        let mut placed = BTreeMap::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let parsed = part.split_once('=').and_then(|(name, stripe)| Some((name, stripe.parse().ok()?)));
            let (name, stripe) =
                parsed.ok_or_else(|| format!("{part:?} places no tree: write TREE=STRIPE"))?;
            if placed.insert(name.to_owned(), stripe).is_some() {
                return Err(format!("the tree {name} is placed twice"));
            }
        }
        Ok(Placement(placed))
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, stripe)) in self.0.iter().enumerate() {
            write!(f, "{}{name}={stripe}", if i > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_catalog_keep_it() {
        let p: Placement = "text=1,psog=0".parse().unwrap();
        assert_eq!(p.to_string(), "psog=0,text=1");
        assert_eq!((p.stripe_of("text"), p.stripe_of("posg")), (Some(1), None));
        let mut catalog = Catalog::default();
        p.keep(&mut catalog);
        assert_eq!(Placement::of_catalog(&catalog, 2), p);
        assert_eq!(Placement::of_catalog(&catalog, 1).to_string(), "psog=0", "there is no stripe 1");
        Placement::default().keep(&mut catalog);
        assert!(catalog.records.is_empty());
        for wrong in ["text", "text=x", "text=-1", "text=0,text=1"] {
            assert!(wrong.parse::<Placement>().is_err(), "{wrong}");
        }
        assert_eq!("".parse(), Ok(Placement::default()));
    }

    #[test]
    fn a_record_that_makes_no_sense_places_nothing() {
        let mut catalog = Catalog::default();
        for bytes in [&b"text"[..], b"\xff=1"] {
            catalog.records.insert(RECORD.into(), Record { kind: KIND, bytes: bytes.into() });
            assert!(Placement::of_catalog(&catalog, 4).is_empty());
        }
    }
}
