//! Statistics that only estimate: how the degrees at both ends of predicates are distributed, and
//! which predicates subjects have together. They are exact when the indexes are built, and grow old
//! with updates, until they are made again. No answer is made of them.
//!
//! | catalog record | contents                                              |
//! |----------------|-------------------------------------------------------|
//! | `psog-degrees` | [`Degrees`] of each predicate's subjects              |
//! | `posg-degrees` | those of its objects                                  |
//! | `sp-sets`      | [`PredicateSets`]: predicates that subjects have together |
//! | `sp-age`       | quads added and removed since, u64, little-endian     |
//!
//! Programs that do not know them leave them as they are.

pub(crate) mod degrees;
pub(crate) mod predicate_sets;

use std::sync::Arc;

use self::degrees::DegreeCounts;
use self::predicate_sets::PredicateSets;
use crate::error::{GraphError, Result};
use crate::index::Index;

/// The record of the age.
pub(crate) const RECORD_AGE: &str = "sp-age";

/// The indexes that have a record of degrees, or of sets.
const COUNTED: [(Index, &str); 3] =
    [(Index::Psog, "psog-degrees"), (Index::Posg, "posg-degrees"), (Index::Sp, "sp-sets")];

/// Statistics that only estimate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphStatistics {
    pub(crate) subjects: Arc<DegreeCounts>,
    pub(crate) objects: Arc<DegreeCounts>,
    pub(crate) sets: Arc<PredicateSets>,
    /// quads added and removed since they were made
    pub(crate) age: u64,
}

impl GraphStatistics {
    /// Degrees of predicates' subjects.
    pub fn subjects(&self) -> &DegreeCounts {
        &self.subjects
    }

    /// Degrees of predicates' objects.
    pub fn objects(&self) -> &DegreeCounts {
        &self.objects
    }

    /// Predicates that subjects have together.
    pub fn sets(&self) -> &PredicateSets {
        &self.sets
    }

    /// Quads added and removed since they were made.
    pub fn age(&self) -> u64 {
        self.age
    }

    /// Whether the database has none.
    pub fn is_empty(&self) -> bool {
        self.subjects.is_empty() && self.objects.is_empty() && self.sets.is_empty()
    }

    /// Reads the records. One that cannot be read is as one that is not there: a newer program may
    /// have written it otherwise.
    pub(crate) fn read(record: impl Fn(&str) -> Option<Vec<u8>>) -> Self {
        let degrees = |name: &str| {
            let bytes = record(name).unwrap_or_default();
            Arc::new(DegreeCounts::from_bytes(&bytes).unwrap_or_default())
        };
        let sets = record(COUNTED[2].1).unwrap_or_default();
        let age = record(RECORD_AGE).and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
        Self {
            subjects: degrees(COUNTED[0].1),
            objects: degrees(COUNTED[1].1),
            sets: Arc::new(PredicateSets::from_bytes(&sets).unwrap_or_default()),
            age: age.unwrap_or(0),
        }
    }

    /// Names and contents of the records, the age apart.
    pub(crate) fn records(&self) -> [(&'static str, Vec<u8>); 3] {
        let [subjects, objects, sets] = COUNTED.map(|(_, name)| name);
        [
            (subjects, self.subjects.to_bytes()),
            (objects, self.objects.to_bytes()),
            (sets, self.sets.to_bytes()),
        ]
    }
}

/// Names of all its records.
pub(crate) fn record_names() -> impl Iterator<Item = &'static str> {
    COUNTED.into_iter().map(|(_, name)| name).chain([RECORD_AGE])
}

/// Counts the rows of one index as they come, in its order.
pub(crate) enum IndexCounter {
    Degrees(&'static str, DegreeCounts),
    Sets(&'static str, PredicateSets),
}

impl IndexCounter {
    /// Of the index with that name; `None` if nothing of it is counted.
    pub fn of_index(index: &str) -> Option<Self> {
        let (index, record) = COUNTED.into_iter().find(|(counted, _)| counted.name() == index)?;
        Some(match index {
            Index::Sp => Self::Sets(record, PredicateSets::default()),
            _ => Self::Degrees(record, DegreeCounts::default()),
        })
    }

    /// Counts rows, given as their first two columns; they continue those of the last call.
    pub fn add(&mut self, first: &[u64], second: &[u64]) {
        assert_eq!(first.len(), second.len(), "rows have two columns");
        match self {
            Self::Degrees(_, degrees) => degrees.add(first, second),
            Self::Sets(_, sets) => sets.add(first, second),
        }
    }

    /// The record's name and contents, once all rows have come.
    pub fn into_record(self) -> (&'static str, Vec<u8>) {
        match self {
            Self::Degrees(name, mut degrees) => {
                degrees.end();
                (name, degrees.to_bytes())
            }
            Self::Sets(name, mut sets) => {
                sets.end();
                (name, sets.to_bytes())
            }
        }
    }
}

/// A number of a record.
fn number(bytes: &mut &[u8]) -> Result<u64> {
    snowmelt_base::varint::take::<10>(bytes)
        .map_err(|_| GraphError::record("statistics", "a number of it cannot be read"))
}
