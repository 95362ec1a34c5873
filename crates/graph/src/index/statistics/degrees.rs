//! Degrees at one end of each predicate: of a subject by PSOG, or an object by POSG, the number of
//! its rows with that predicate.
//!
//! The record, in varints: the number of predicates, then for each, ascending, its id as a
//! difference to the one before, values, rows, the greatest degree, the sum of the degrees'
//! squares, the number of classes, and the values in each class. Class i has the degrees from 2^i
//! up to 2^(i+1). Of more than [`MOST`] predicates those with the most rows are kept, also while
//! rows are counted.

use snowmelt_base::varint;

use super::number;
use crate::error::{GraphError, Result};

/// Predicates kept: with twelve bytes and a class or two for most of them, up to 96 KiB.
const MOST: usize = 1 << 12;

/// Degrees of the values at one end of a predicate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Degrees {
    /// Different values.
    pub values: u64,
    /// Their rows.
    pub rows: u64,
    /// The rows of the value with the most.
    pub most: u64,
    /// The sum of the squares of the degrees: rows that meet where the end is joined with itself.
    pub squares: u64,
    /// Values by degree: with a degree of at least 2^i, and less than 2^(i+1).
    pub classes: Vec<u64>,
}

impl Degrees {
    fn add(&mut self, degree: u64) {
        assert!(degree > 0, "a value has rows");
        let class = degree.ilog2() as usize;
        if self.classes.len() <= class {
            self.classes.resize(class + 1, 0);
        }
        self.classes[class] += 1;
        self.values += 1;
        self.rows += degree;
        self.most = self.most.max(degree);
        self.squares = self.squares.saturating_add(degree.saturating_mul(degree));
    }

    /// Rows of a value, on average.
    pub fn mean(&self) -> f64 {
        self.rows as f64 / self.values.max(1) as f64
    }

    /// Rows of the value of a row, on average: more than [`Degrees::mean`] where degrees differ.
    pub fn mean_of_rows(&self) -> f64 {
        self.squares as f64 / self.rows.max(1) as f64
    }
}

/// Degrees by predicate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DegreeCounts {
    /// ascending
    of: Vec<(u64, Degrees)>,
    /// the value whose rows are coming: predicate, value, rows so far
    open: Option<(u64, u64, u64)>,
}

impl DegreeCounts {
    /// Counts sorted rows, given as their first two columns; rows continue those of the last call.
    pub(crate) fn add(&mut self, first: &[u64], second: &[u64]) {
        for (predicate, value) in first.iter().copied().zip(second.iter().copied()) {
            match &mut self.open {
                Some((p, v, rows)) if *p == predicate && *v == value => *rows += 1,
                _ => {
                    self.end_value();
                    self.open = Some((predicate, value, 1));
                }
            }
        }
    }

    /// All rows have come.
    pub(crate) fn end(&mut self) {
        self.end_value();
        self.keep_most();
    }

    /// All rows of a value have come.
    fn end_value(&mut self) {
        let Some((predicate, _, rows)) = self.open.take() else { return };
        match self.of.last_mut() {
            Some((last, degrees)) if *last == predicate => degrees.add(rows),
            _ => {
                let mut degrees = Degrees::default();
                degrees.add(rows);
                // all predicates here are complete, so that no row of one that is kept is missing
                if self.of.len() >= 2 * MOST {
                    self.keep_most();
                }
                self.of.push((predicate, degrees));
            }
        }
    }

    /// Keeps the predicates with the most rows.
    fn keep_most(&mut self) {
        if self.of.len() > MOST {
            self.of.select_nth_unstable_by_key(MOST, |of| (std::cmp::Reverse(of.1.rows), of.0));
            self.of.truncate(MOST);
            self.of.sort_unstable_by_key(|of| of.0);
        }
    }

    /// Those of a predicate; `None` if it had no rows, or was left out.
    pub fn get(&self, predicate: u64) -> Option<&Degrees> {
        let at = self.of.binary_search_by_key(&predicate, |of| of.0).ok()?;
        Some(&self.of[at].1)
    }

    /// All predicates, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Degrees)> {
        self.of.iter().map(|(predicate, degrees)| (*predicate, degrees))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The record.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        assert!(self.open.is_none() && self.of.len() <= MOST, "all rows have come");
        debug_assert!(self.of.is_sorted_by(|a, b| a.0 < b.0), "predicates ascend");
        let mut bytes = Vec::new();
        varint::put(&mut bytes, self.of.len() as u64);
        let mut before = 0;
        for (predicate, degrees) in &self.of {
            let Degrees { values, rows, most, squares, classes } = degrees;
            let numbers = [*predicate - before, *values, *rows, *most, *squares, classes.len() as u64];
            numbers.iter().chain(classes).for_each(|number| varint::put(&mut bytes, *number));
            before = *predicate;
        }
        bytes
    }

    /// Reads the record; of no bytes, none.
    pub(crate) fn from_bytes(mut bytes: &[u8]) -> Result<Self> {
        let bytes = &mut bytes;
        let damaged = || GraphError::record("degrees", "it does not fit together");
        let mut of: Vec<(u64, Degrees)> = Vec::new();
        let predicates = if bytes.is_empty() { 0 } else { number(bytes)? };
        for _ in 0..predicates {
            let before = of.last().map_or(0, |of| of.0);
            let predicate = before.checked_add(number(bytes)?).ok_or_else(damaged)?;
            let [values, rows, most, squares] = [(); 4].map(|()| number(bytes));
            let classes = number(bytes)?;
            if classes > 64 || (predicate == before && !of.is_empty()) {
                return Err(damaged());
            }
            let classes = (0..classes).map(|_| number(bytes)).collect::<Result<_>>()?;
            let degrees = Degrees { values: values?, rows: rows?, most: most?, squares: squares?, classes };
            of.push((predicate, degrees));
        }
        if !bytes.is_empty() {
            return Err(damaged());
        }
        let mut read = Self { of, open: None };
        // another program may keep more
        read.keep_most();
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_are_counted_across_calls() {
        let mut counts = DegreeCounts::default();
        counts.add(&[1, 1, 1, 2], &[5, 5, 6, 6]);
        counts.add(&[2, 2, 7], &[6, 8, 1]);
        counts.end();
        let read = DegreeCounts::from_bytes(&counts.to_bytes()).unwrap();
        assert_eq!(read, counts);
        let of = |values, rows, most, squares, classes: &[u64]| {
            Some(Degrees { values, rows, most, squares, classes: classes.to_vec() })
        };
        assert_eq!(read.get(1).cloned(), of(2, 3, 2, 5, &[1, 1]));
        assert_eq!(read.get(2).cloned(), of(2, 3, 2, 5, &[1, 1]));
        assert_eq!(read.get(7).cloned(), of(1, 1, 1, 1, &[1]));
        assert_eq!(read.get(3), None);
        assert_eq!(DegreeCounts::from_bytes(&[]).unwrap(), DegreeCounts::default());
    }

    #[test]
    fn the_predicates_with_the_most_rows_are_kept() {
        let mut counts = DegreeCounts::default();
        let rows_of = |predicate: u64| 1 + predicate % 3;
        let predicates = 0..3 * MOST as u64 + 500;
        for predicate in predicates.clone() {
            let rows = rows_of(predicate);
            counts.add(&vec![predicate; rows as usize], &(0..rows).collect::<Vec<u64>>());
            assert!(counts.of.len() <= 2 * MOST, "counting is bounded");
        }
        counts.end();
        let bytes = counts.to_bytes();
        assert!(bytes.len() <= 96 << 10, "{} bytes", bytes.len());
        assert_eq!(DegreeCounts::from_bytes(&bytes).unwrap(), counts);
        assert_eq!(counts.iter().count(), MOST);
        assert!(counts.iter().all(|(predicate, degrees)| degrees.rows == rows_of(predicate)));
        let most: Vec<u64> = predicates.filter(|p| rows_of(*p) == 3).take(MOST).collect();
        assert!(most.iter().all(|predicate| counts.get(*predicate).is_some()), "those with three rows");
    }

    #[test]
    fn of_a_longer_record_as_much_is_kept() {
        let one = Degrees { values: 1, rows: 1, most: 1, squares: 1, classes: vec![1] };
        let mut bytes = Vec::new();
        varint::put(&mut bytes, MOST as u64 + 1);
        for predicate in 0..=MOST as u64 {
            let numbers = [u64::from(predicate > 0), one.values, one.rows, one.most, one.squares, 1, 1];
            numbers.iter().for_each(|number| varint::put(&mut bytes, *number));
        }
        let read = DegreeCounts::from_bytes(&bytes).unwrap();
        assert_eq!((read.iter().count(), read.get(0)), (MOST, Some(&one)));
        assert_eq!(DegreeCounts::from_bytes(&read.to_bytes()).unwrap(), read);
    }

    #[test]
    fn damaged_records_are_refused() {
        let mut counts = DegreeCounts::default();
        counts.add(&[1, 1, 300], &[5, 6, 6]);
        counts.end();
        let bytes = counts.to_bytes();
        for end in 1..bytes.len() {
            assert!(DegreeCounts::from_bytes(&bytes[..end]).is_err(), "{end} bytes");
        }
        assert!(DegreeCounts::from_bytes(&[bytes, vec![0]].concat()).is_err());
    }
}
