//! The catalog: which trees there are, and what each says about itself. Together with the
//! extent map it is the *meta run*.
//!
//! It is read once at open and written whole by each checkpoint. It is small, so a checksummed
//! run beats a tree: one read, no structure to descend before the structures are known. Layout,
//! little endian, one after the other:
//!
//! | bytes | field                                                                              |
//! |-------|------------------------------------------------------------------------------------|
//! | 4     | next free tree id                                                                  |
//! | 4     | number of trees; for each: u32 id, u16 name length, name                           |
//! | 4     | number of records; for each: u16 name length, name, u32 kind, u32 length, bytes    |
//! |       | the directory of the extent map ([`crate::space::segment`])                           |
//!
//! In format 3 the extent map itself followed: u64 number of extents; for each u32 tree
//! (0xFFFFFFFF free), u64 overflow extent (all ones: none), bitmap of allocated pages in u64
//! words.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::format::cursor::Cursor;
use crate::format::encoding::{Bad, Decode};
use crate::format::varint::{put, take};
use crate::page::TreeId;

/// One catalog record: what a tree (or the graph) says about itself, opaque to the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Kind of the bytes; the writer's choice.
    pub kind: u32,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

/// Trees and records of a committed state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// Next free tree id.
    pub next_tree: u32,
    /// Names of the trees.
    pub trees: BTreeMap<TreeId, String>,
    /// Records by name.
    pub records: BTreeMap<String, Record>,
}

impl Catalog {
    /// Appends what changed in the records since `old`, whose records must have the same names,
    /// kinds and lengths; false when they have not. The records lie end to end, in the order of
    /// their names; of each byte that changed: the bytes between it and the one before, a
    /// varint, and new − old (mod 256). A counter that goes up by one is two bytes.
    pub(crate) fn diff(&self, old: &Catalog, out: &mut Vec<u8>) -> bool {
        let alike = |((a, old), (b, new)): ((&String, &Record), (&String, &Record))| {
            a == b && old.kind == new.kind && old.bytes.len() == new.bytes.len()
        };
        if old.records.len() != self.records.len() || !old.records.iter().zip(&self.records).all(alike) {
            return false;
        }
        let mut between = 0;
        for (old, new) in old.records.values().zip(self.records.values()) {
            if old == new {
                between += new.bytes.len() as u64;
                continue;
            }
            for (old, new) in old.bytes.iter().zip(&*new.bytes) {
                if old == new {
                    between += 1;
                } else {
                    put(out, std::mem::take(&mut between));
                    out.push(new.wrapping_sub(*old));
                }
            }
        }
        true
    }

    /// Makes changes that [`Catalog::diff`] has found in the records.
    pub(crate) fn apply(&mut self, mut diff: &[u8]) -> Decode<()> {
        let mut records = self.records.values_mut();
        let mut rest: &mut [u8] = &mut [];
        while !diff.is_empty() {
            let mut between = usize::try_from(take(&mut diff)?).unwrap_or(usize::MAX);
            while between >= rest.len() {
                between -= rest.len();
                rest = Arc::make_mut(
                    &mut records.next().ok_or(Bad("a catalog record is changed that is missing"))?.bytes,
                );
            }
            let (more, behind) = diff.split_first().ok_or(Bad("a change ends too early"))?;
            rest[between] = rest[between].wrapping_add(*more);
            (rest, diff) = (&mut rest[between + 1..], behind);
        }
        Ok(())
    }
}

/// The bytes of the meta run up to the directory of the map.
pub(crate) fn encode(catalog: &Catalog) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(catalog.next_tree.to_le_bytes());
    out.extend((catalog.trees.len() as u32).to_le_bytes());
    for (id, name) in &catalog.trees {
        out.extend(id.0.to_le_bytes());
        put_name(&mut out, name);
    }
    out.extend((catalog.records.len() as u32).to_le_bytes());
    for (name, record) in &catalog.records {
        put_name(&mut out, name);
        out.extend(record.kind.to_le_bytes());
        out.extend((record.bytes.len() as u32).to_le_bytes());
        out.extend(&*record.bytes);
    }
    out
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    assert!(name.len() <= u16::MAX as usize, "a name in the catalog has at most 65535 bytes");
    out.extend((name.len() as u16).to_le_bytes());
    out.extend(name.as_bytes());
}

/// Reads the catalog from the front of a meta run. The checksum was right, so `Err` means a bug
/// or another format; it says what does not fit.
pub(crate) fn decode(r: &mut Cursor<'_>) -> Result<Catalog, &'static str> {
    let mut catalog = Catalog { next_tree: r.u32()?, ..Default::default() };
    for _ in 0..r.u32()? {
        let id = TreeId(r.u32()?);
        catalog.trees.insert(id, r.name()?);
    }
    for _ in 0..r.u32()? {
        let name = r.name()?;
        let kind = r.u32()?;
        let len = r.u32()? as usize;
        catalog.records.insert(name, Record { kind, bytes: r.take(len)?.into() });
    }
    Ok(catalog)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Catalog {
        let mut c = Catalog { next_tree: 3, ..Default::default() };
        c.trees.insert(TreeId(1), "psog".into());
        c.trees.insert(TreeId(2), "iri".into());
        c.records.insert("psog".into(), Record { kind: 1, bytes: b"root".as_slice().into() });
        c.records.insert("empty".into(), Record { kind: 0, bytes: [].into() });
        c
    }

    #[test]
    fn round_trips() {
        let c = sample();
        let bytes = encode(&c);
        let mut r = Cursor { bytes: &bytes };
        assert_eq!(decode(&mut r), Ok(c));
        assert!(r.bytes.is_empty());
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = encode(&sample());
        for n in 0..bytes.len() {
            assert!(decode(&mut Cursor { bytes: &bytes[..n] }).is_err(), "{n} of {} bytes", bytes.len());
        }
    }

    fn records(list: &[&[u8]]) -> Catalog {
        let record = |bytes: &&[u8]| Record { kind: 1, bytes: (*bytes).into() };
        let records = list.iter().enumerate().map(|(i, r)| (i.to_string(), record(r))).collect();
        Catalog { records, ..Default::default() }
    }

    #[test]
    fn counters_that_go_up_are_two_bytes_each() {
        let old = records(&[&[1, 0, 0, 0, 0, 0, 0, 0, 255, 0], &[], &[3; 9], &[7]]);
        let new = records(&[&[2, 0, 0, 0, 0, 0, 0, 0, 0, 1], &[], &[3; 9], &[8]]);
        let mut diff = Vec::new();
        assert!(new.diff(&old, &mut diff));
        assert_eq!(diff, [0, 1, 7, 1, 0, 1, 9, 1]);
        let mut back = old.clone();
        back.apply(&diff).unwrap();
        assert_eq!(back, new);
        for (cut, wrong) in [(1, "a difference is missing"), (7, "the last one is missing")] {
            assert!(old.clone().apply(&diff[..cut]).is_err(), "{wrong}");
        }
        assert!(old.clone().apply(&[20, 1]).is_err(), "beyond the last record");
        let others = [records(&[&[1; 10], &[], &[3; 9]]), records(&[&[1; 10], &[0], &[3; 9], &[7]])];
        others.iter().for_each(|other| assert!(!other.diff(&old, &mut Vec::new())));
    }

    proptest! {
        #[test]
        fn records_become_what_they_were(
            list in prop::collection::vec(
                (any::<bool>(), prop::collection::vec((any::<u8>(), any::<u8>(), any::<bool>()), 0..200)), 0..6),
        ) {
            let of = |byte: fn(bool, &(u8, u8, bool)) -> u8| {
                let bytes: Vec<Vec<u8>> =
                    list.iter().map(|(same, r)| r.iter().map(|b| byte(*same, b)).collect()).collect();
                records(&bytes.iter().map(Vec::as_slice).collect::<Vec<_>>())
            };
            let old = of(|_, (a, ..)| *a);
            let new = of(|same, (a, b, stays)| if same || *stays { *a } else { *b });
            let (mut diff, mut back) = (Vec::new(), old.clone());
            prop_assert!(new.diff(&old, &mut diff));
            prop_assert!(back.apply(&diff).is_ok());
            prop_assert_eq!(back, new);
        }
    }
}
