//! Stores in memory and in a folder against an ordered map: random requests, the same answers.

use std::collections::{BTreeMap, HashSet};

use snowmelt_base::random::Random;
use snowmelt_io::*;

use crate::calls::Calls;

/// Keys of which none begins another one with a `/` behind it; their order differs from that of
/// folders before files.
const KEYS: [&str; 12] =
    ["a", "a-b", "a.b", "b/a", "b/c/d", "b/c-d", "b-c", "b0", "c/d/e/f", "c/d/e/g", "c/d0", "Ä/ö"];
const PREFIXES: [&str; 9] = ["", "a", "b", "b/", "b/c", "c/d/e/", "c/d/e/f", "Ä", "none/"];

/// The objects that should be there.
struct Model {
    objects: BTreeMap<&'static str, (Vec<u8>, Version)>,
    /// All versions ever made, of which none may come again.
    versions: HashSet<Version>,
    /// Versions that were replaced.
    old: Vec<Version>,
}

impl Model {
    fn put(&mut self, calls: &Calls, random: &mut Random, key: &'static str) {
        let mut bytes = vec![0; random.below(40) as usize];
        bytes.fill(random.below(3) as u8); // often the same bytes again
        let there = self.objects.get(key).map(|object| object.1.clone());
        let (only, holds) = match random.below(4) {
            0 => (PutIf::Always, true),
            1 => (PutIf::Absent, there.is_none()),
            2 if !self.old.is_empty() => {
                let old = self.old[random.below(self.old.len() as u64) as usize].clone();
                (PutIf::Is(old), false)
            }
            _ => match &there {
                Some(version) => (PutIf::Is(version.clone()), true),
                None => (PutIf::Is(Version("never".into())), false),
            },
        };
        match calls.put(key, &bytes, only.clone()) {
            Ok(version) => {
                assert!(holds, "{key} was put though {only:?} does not hold: {there:?}");
                assert!(self.versions.insert(version.clone()), "{key}: {version} comes again");
                let before = self.objects.insert(key, (bytes, version));
                self.old.extend(before.map(|object| object.1));
            }
            Err(kind) => {
                assert!(!holds, "{key} was not put though {only:?} holds: {kind}");
                assert_eq!(kind, ObjectErrorKind::Changed);
            }
        }
    }

    fn get(&self, calls: &Calls, random: &mut Random, key: &str) {
        let start = random.below(45);
        let range = (random.below(2) == 0).then(|| start..start + 1 + random.below(10));
        let expected = match self.objects.get(key) {
            None => Err(ObjectErrorKind::Missing),
            Some((bytes, version)) => {
                let len = bytes.len() as u64;
                match range.clone().unwrap_or(0..len) {
                    it if it.end > len => Err(ObjectErrorKind::Short {
                        got: len.saturating_sub(it.start),
                        wanted: it.end - it.start,
                    }),
                    it => Ok((bytes[it.start as usize..it.end as usize].to_vec(), len, version.clone())),
                }
            }
        };
        let got = calls.get(key, range.clone()).map(|it| (it.bytes, it.len, it.version));
        assert_eq!(got, expected, "{key} {range:?}");
    }

    fn list(&self, calls: &Calls, random: &mut Random) {
        let prefix = PREFIXES[random.below(PREFIXES.len() as u64) as usize];
        let after =
            (random.below(2) == 0).then(|| [KEYS[random.below(KEYS.len() as u64) as usize], "b", "b/c/"]);
        let after = after.map(|those| those[random.below(3) as usize]);
        let most = random.below(6) as usize;
        let listed = calls.list(prefix, after, most).unwrap();
        let listed: Vec<_> = listed.iter().map(|it| (it.key.to_string(), it.bytes)).collect();
        let expected = self.objects.iter().filter(|(key, _)| key.starts_with(prefix));
        let expected = expected.filter(|(key, _)| after.is_none_or(|after| **key > after)).take(most);
        let expected: Vec<_> = expected.map(|(key, it)| (key.to_string(), it.0.len() as u64)).collect();
        assert_eq!(listed, expected, "{most} of {prefix:?} after {after:?}");
    }
}

fn behaves_as_a_map(objects: &dyn Objects, steps: u32, seed: u64) {
    let clock = Clock::real();
    let calls = Calls(objects, &clock);
    let mut random = Random(seed);
    let mut model = Model { objects: BTreeMap::new(), versions: HashSet::new(), old: Vec::new() };
    for _ in 0..steps {
        let key = KEYS[random.below(KEYS.len() as u64) as usize];
        match random.below(8) {
            0..3 => model.put(&calls, &mut random, key),
            3..5 => model.get(&calls, &mut random, key),
            5 => {
                calls.delete(key).unwrap();
                model.old.extend(model.objects.remove(key).map(|object| object.1));
            }
            _ => model.list(&calls, &mut random),
        }
    }
    let expected: Vec<_> = model.objects.keys().map(|key| key.to_string()).collect();
    assert_eq!(calls.keys("", 3).unwrap(), expected);
}

#[test]
fn memory_behaves_as_a_map() {
    let seed = test_seed(31);
    for round in 0..20 {
        behaves_as_a_map(&MemoryObjects::new("memory"), 2000, seed + round);
    }
}

#[test]
fn a_folder_behaves_as_a_map() {
    let seed = test_seed(32);
    for round in 0..2 {
        let dir = tempfile::tempdir().unwrap();
        behaves_as_a_map(&FolderObjects::open(dir.path()).unwrap(), 300, seed + round);
    }
}
