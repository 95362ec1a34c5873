//! Which predicates subjects have together: *characteristic sets* (Neumann and Moerkotte, ICDE
//! 2011). Each set of predicates has the number of subjects that have just these.
//!
//! The record, in varints: the number of predicates, their ids ascending as differences; the
//! number of sets, for each its subjects, its size, and the places of its predicates in that list,
//! ascending, as differences; then the number of subjects whose sets were left out, and of those
//! for each predicate. The sets with the most subjects are kept, within [`MOST_BYTES`], and of the
//! others the predicates with the most.
//!
//! Counting, too, takes bounded memory, whatever the data is.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use snowmelt_base::varint;

use super::number;
use crate::error::{GraphError, Result};

/// Sets that are counted; subjects with further ones are summed up.
const MOST_COUNTED: usize = 1 << 16;

/// Predicates of the sets that are counted, together: 8 MiB of memory.
const MOST_PLACES: usize = 1 << 20;

/// Predicates of subjects without a set that are told apart in the record, and while counting.
const MOST_PREDICATES: usize = 1 << 12;
const MOST_PREDICATES_COUNTED: usize = 1 << 14;

/// Predicates of a subject that are looked at.
const MOST_OF_SUBJECT: usize = 1 << 16;

/// Bytes of the sets in the record.
const MOST_BYTES: usize = 40 << 10;

/// Sets of predicates, with the number of subjects that have just these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PredicateSets {
    sets: FxHashMap<Box<[u64]>, u64>,
    places: usize,
    rest: RestOfSubjects,
    open: Option<u64>,
    /// predicates of the subject whose rows are coming
    of_open: Vec<u64>,
}

/// Subjects whose sets are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestOfSubjects {
    /// How many they are.
    pub subjects: u64,
    /// How many of them have a predicate.
    pub having: FxHashMap<u64, u64>,
}

impl RestOfSubjects {
    fn add(&mut self, set: &[u64], subjects: u64) {
        self.subjects += subjects;
        for predicate in set {
            *self.having.entry(*predicate).or_default() += subjects;
            if self.having.len() > MOST_PREDICATES_COUNTED {
                self.keep_most(MOST_PREDICATES_COUNTED / 2);
            }
        }
    }

    /// Keeps the predicates that the most subjects have. One that comes again is counted anew.
    fn keep_most(&mut self, most: usize) {
        if self.having.len() > most {
            let mut by_subjects: Vec<(u64, u64)> = self.having.drain().collect();
            by_subjects
                .select_nth_unstable_by_key(most, |(predicate, having)| (Reverse(*having), *predicate));
            by_subjects.truncate(most);
            self.having.extend(by_subjects);
        }
    }
}

impl PredicateSets {
    /// Counts sorted pairs of subject and predicate; they continue those of the last call.
    pub(crate) fn add(&mut self, subjects: &[u64], predicates: &[u64]) {
        for (subject, predicate) in subjects.iter().copied().zip(predicates.iter().copied()) {
            if self.open != Some(subject) {
                self.end_subject();
                self.open = Some(subject);
            }
            if self.of_open.len() < MOST_OF_SUBJECT {
                self.of_open.push(predicate);
            }
        }
    }

    /// All pairs have come.
    pub(crate) fn end(&mut self) {
        self.end_subject();
        self.of_open = Vec::new();
        self.keep_most();
    }

    /// Keeps the sets from the one with the most subjects on, as many as fit, and sums up the rest.
    fn keep_most(&mut self) {
        let mut sets: Vec<(Box<[u64]>, u64)> = std::mem::take(&mut self.sets).into_iter().collect();
        sets.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut bytes = 0;
        let mut fits = |set: &(Box<[u64]>, u64)| {
            // two bytes for most places, subjects and size
            bytes += 4 + 2 * set.0.len();
            bytes <= MOST_BYTES
        };
        let kept = sets.iter().take_while(|set| fits(set)).count();
        sets.drain(kept..).for_each(|(set, subjects)| self.rest.add(&set, subjects));
        self.rest.keep_most(MOST_PREDICATES);
        self.places = sets.iter().map(|(set, _)| set.len()).sum();
        self.sets = sets.into_iter().collect();
    }

    /// All pairs of a subject have come.
    fn end_subject(&mut self) {
        if self.open.take().is_none() {
            return;
        }
        debug_assert!(self.of_open.is_sorted_by(|a, b| a < b), "the predicates of a subject ascend");
        if let Some(subjects) = self.sets.get_mut(&self.of_open[..]) {
            *subjects += 1;
        } else if self.sets.len() < MOST_COUNTED && self.places + self.of_open.len() <= MOST_PLACES {
            self.places += self.of_open.len();
            self.sets.insert(self.of_open.as_slice().into(), 1);
        } else {
            self.rest.add(&self.of_open, 1);
        }
        self.of_open.clear();
    }

    /// The sets with their subjects, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u64], u64)> {
        self.sets.iter().map(|(set, subjects)| (&**set, *subjects))
    }

    /// Subjects whose sets are not kept.
    pub fn rest(&self) -> &RestOfSubjects {
        &self.rest
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.rest.subjects == 0
    }

    /// Subjects to expect that have all of these predicates. Of those without a set, the shares of
    /// the predicates are multiplied.
    pub fn subjects_with(&self, predicates: &[u64]) -> f64 {
        let has_all = |set: &[u64]| predicates.iter().all(|p| set.binary_search(p).is_ok());
        let known: u64 = self.iter().filter(|(set, _)| has_all(set)).map(|(_, subjects)| subjects).sum();
        let all = self.rest.subjects as f64;
        if all == 0.0 {
            return known as f64;
        }
        let share = |p: &u64| self.rest.having.get(p).map_or(0.0, |having| *having as f64 / all);
        known as f64 + all * predicates.iter().map(share).product::<f64>()
    }

    /// The record.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        assert!(self.open.is_none(), "all pairs have come");
        let mut sets: Vec<(&[u64], u64)> = self.iter().collect();
        sets.sort_unstable();
        let mut predicates: Vec<u64> = sets.iter().flat_map(|(set, _)| *set).copied().collect();
        predicates.sort_unstable();
        predicates.dedup();
        let mut more: Vec<(u64, u64)> = self.rest.having.iter().map(|(p, having)| (*p, *having)).collect();
        more.sort_unstable();
        let mut bytes = Vec::new();
        put_differences(&mut bytes, &predicates);
        varint::put(&mut bytes, sets.len() as u64);
        for (set, subjects) in sets {
            varint::put(&mut bytes, subjects);
            let places: Vec<u64> = set
                .iter()
                .map(|p| predicates.binary_search(p).expect("each predicate of a set is listed") as u64)
                .collect();
            put_differences(&mut bytes, &places);
        }
        varint::put(&mut bytes, self.rest.subjects);
        let (of_rest, having): (Vec<u64>, Vec<u64>) = more.into_iter().unzip();
        put_differences(&mut bytes, &of_rest);
        having.into_iter().for_each(|having| varint::put(&mut bytes, having));
        bytes
    }

    /// Reads the record; of no bytes, none.
    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Result<Self> {
        let bytes = &mut bytes;
        let damaged = || GraphError::record("sets", "it does not fit together");
        let mut read = Self::default();
        if bytes.is_empty() {
            return Ok(read);
        }
        let predicates = differences(bytes)?;
        for _ in 0..number(bytes)? {
            let subjects = number(bytes)?;
            let places = differences(bytes)?;
            let set: Option<Box<[u64]>> =
                places.iter().map(|place| predicates.get(usize::try_from(*place).ok()?).copied()).collect();
            let set = set.ok_or_else(damaged)?;
            read.places += set.len();
            read.sets.insert(set, subjects);
        }
        read.rest.subjects = number(bytes)?;
        for predicate in differences(bytes)? {
            read.rest.having.insert(predicate, number(bytes)?);
        }
        if bytes.is_empty() { Ok(read) } else { Err(damaged()) }
    }
}

/// Ascending numbers: how many, and the difference of each to the one before.
fn put_differences(bytes: &mut Vec<u8>, numbers: &[u64]) {
    debug_assert!(numbers.is_sorted_by(|a, b| a < b), "numbers ascend");
    varint::put(bytes, numbers.len() as u64);
    let mut before = 0;
    for number in numbers {
        varint::put(bytes, number - before);
        before = *number;
    }
}

fn differences(bytes: &mut &[u8]) -> Result<Vec<u64>> {
    let mut before = 0_u64;
    let many = number(bytes)?;
    let next = |_| {
        before = before
            .checked_add(number(bytes)?)
            .ok_or_else(|| GraphError::record("sets", "its numbers do not ascend"))?;
        Ok(before)
    };
    (0..many).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sets: &[(&[u64], u64)]) -> PredicateSets {
        let mut counted = PredicateSets::default();
        let mut subject = 0;
        for (set, subjects) in sets {
            for _ in 0..*subjects {
                subject += 1;
                counted.add(&vec![subject; set.len()], set);
            }
        }
        counted.end();
        counted
    }

    #[test]
    fn subjects_are_counted_by_their_predicates() {
        let sets = of(&[(&[1, 5, 9], 3), (&[5], 2), (&[1, 5, 9], 4), (&[1, 9], 1)]);
        let read = PredicateSets::from_bytes(&sets.to_bytes()).unwrap();
        let mut listed: Vec<_> = read.iter().collect();
        listed.sort_unstable();
        assert_eq!(listed, [(&[1, 5, 9][..], 7), (&[1, 9][..], 1), (&[5][..], 2)]);
        assert_eq!(
            [&[5][..], &[1, 9], &[1, 5], &[], &[7]].map(|p| read.subjects_with(p)),
            [9.0, 8.0, 7.0, 10.0, 0.0]
        );
        assert_eq!(PredicateSets::from_bytes(&[]).unwrap(), PredicateSets::default());
    }

    #[test]
    fn rare_sets_are_summed_up() {
        let mut sets = PredicateSets::default();
        // each pair of 200 predicates once, and one pair often
        let mut subject = 0;
        for a in 0..200 {
            for b in a + 1..200 {
                for _ in 0..if (a, b) == (3, 4) { 500 } else { 1 } {
                    subject += 1;
                    sets.add(&[subject; 2], &[a, b]);
                }
            }
        }
        sets.end();
        let bytes = sets.to_bytes();
        assert!(bytes.len() <= MOST_BYTES + (20 << 10), "{} bytes", bytes.len());
        let read = PredicateSets::from_bytes(&bytes).unwrap();
        assert_eq!(read, sets, "what stays in memory is what is written");
        assert!(read.rest().subjects > 10_000, "{:?}", read.rest().subjects);
        assert_eq!(read.subjects_with(&[]), subject as f64);
        assert_eq!(read.subjects_with(&[3]).round(), 699.0 - 1.0);
        assert!((500.0..501.5).contains(&read.subjects_with(&[3, 4])), "{}", read.subjects_with(&[3, 4]));
    }

    #[test]
    fn counting_takes_bounded_memory() {
        let mut sets = PredicateSets::default();
        let many: Vec<u64> = (0..MOST_OF_SUBJECT as u64 + 1000).collect();
        sets.add(&vec![7; many.len()], &many);
        assert_eq!(sets.of_open.len(), MOST_OF_SUBJECT);
        // each subject with predicates of its own, and one that all have
        for subject in 100..100_100 {
            sets.add(
                &[subject; 40],
                &std::array::from_fn::<u64, 40, _>(|i| match i {
                    0 => 0,
                    _ => subject * 40 + i as u64,
                }),
            );
            assert!(sets.places <= MOST_PLACES && sets.rest.having.len() <= MOST_PREDICATES_COUNTED);
        }
        sets.end();
        assert!(sets.to_bytes().len() < MOST_BYTES + (40 << 10));
        assert_eq!(sets.subjects_with(&[0]), 100_001.0);
    }

    #[test]
    fn damaged_records_are_refused() {
        let bytes = of(&[(&[1, 500], 3), (&[5], 2)]).to_bytes();
        for end in 1..bytes.len() {
            assert!(PredicateSets::from_bytes(&bytes[..end]).is_err(), "{end} bytes");
        }
    }
}
