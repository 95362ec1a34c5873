//! The lineage of a state: which openings of the database made the commits that lead to it.
//!
//! A transaction's number does not say which state it made. A folder that was put back to an
//! older state, a volume that was rolled back and a folder that was cloned count on from where
//! they are, and get to the same numbers with other contents. So each opening for writing draws a
//! random number. The first commit of an opening adds it to a record of the catalog, with the
//! first transaction that it may have made; all commits after it inherit the record. A *span* is
//! such a pair. State A is in the past of state B when B's spans say that A's transaction was made
//! by A's opening.
//!
//! The record `lineage` (kind 1) has the spans, the oldest first, each u64 first transaction and
//! u64 number. The oldest of more than [`MOST_SPANS`] are dropped: of a state that is older it is
//! not known any more whether it is in the past.
//!
//! A state without the record, of an earlier format or never written to, has one span, which is
//! computed from what it holds, and is the same at each opening.

use std::fmt;

use twox_hash::XxHash3_64;

use crate::format::catalog::{self, Catalog, Record};

/// Name of the record.
pub(crate) const RECORD: &str = "lineage";
/// Its kind.
const KIND: u32 = 1;
/// Spans that are kept: openings that committed something.
const MOST_SPANS: usize = 4096;
/// Bytes of a span.
const SPAN_BYTES: usize = 16;

/// Names a state of a database among all that ever were and will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateName {
    /// The number that the opening which made it has drawn.
    pub lineage: u64,
    /// The transaction that made it.
    pub txn: u64,
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction {} of history {:016x}", self.txn, self.lineage)
    }
}

/// See the head of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lineage {
    /// The oldest first; at least one.
    spans: Vec<LineageSpan>,
}

/// Commits of one opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineageSpan {
    /// The first transaction that it may have made; it goes up to the next span.
    from: u64,
    number: u64,
}

/// Relation of another state to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// It is the same.
    Same,
    /// It led to this one.
    Past,
    /// It is of another history; the two went apart before this transaction, as far as is known.
    Fork,
    /// It is older than what is remembered.
    Forgotten,
}

impl Lineage {
    /// The lineage of the state of transaction `txn` with this catalog, in a database of this
    /// identity.
    pub fn from_catalog(identity: u64, txn: u64, catalog: &Catalog) -> Result<Lineage, &'static str> {
        match catalog.records.get(RECORD) {
            Some(record) => Lineage::decode(&record.bytes),
            None => {
                let mut bytes = catalog::encode(catalog);
                bytes.extend(txn.to_le_bytes());
                let number = XxHash3_64::oneshot_with_seed(identity, &bytes);
                Ok(Lineage { spans: vec![LineageSpan { from: txn, number }] })
            }
        }
    }

    /// True when the newest commits with this catalog are of the opening that drew `number`. Asked
    /// at every commit.
    pub fn is_of(catalog: &Catalog, number: u64) -> bool {
        let record = catalog.records.get(RECORD);
        record.is_some_and(|record| record.bytes.ends_with(&number.to_le_bytes()))
    }

    fn decode(bytes: &[u8]) -> Result<Lineage, &'static str> {
        let word = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("eight bytes"));
        let span = |b: &[u8]| LineageSpan { from: word(&b[..8]), number: word(&b[8..]) };
        let spans: Vec<LineageSpan> = bytes.chunks_exact(SPAN_BYTES).map(span).collect();
        let is_right = bytes.len().is_multiple_of(SPAN_BYTES)
            && !spans.is_empty()
            && spans.windows(2).all(|w| w[0].from < w[1].from);
        if is_right { Ok(Lineage { spans }) } else { Err("the record of its lineage makes no sense") }
    }

    /// This lineage, continued by commits of the opening that has drawn `number`, on the state of
    /// transaction `base`. `None` when it ends with that opening already.
    pub fn going_on(&self, number: u64, base: u64) -> Option<Lineage> {
        let last = self.spans.last().expect("at least one");
        if last.number == number {
            return None;
        }
        assert!(last.from <= base, "a state is not older than the span it ends");
        let mut spans = self.spans.clone();
        spans.push(LineageSpan { from: base + 1, number });
        spans.drain(..spans.len().saturating_sub(MOST_SPANS));
        Some(Lineage { spans })
    }

    /// The catalog's record.
    pub fn record(&self) -> Record {
        let word = |n: u64| n.to_le_bytes();
        let bytes: Vec<u8> =
            self.spans.iter().flat_map(|s| [word(s.from), word(s.number)].concat()).collect();
        Record { kind: KIND, bytes: bytes.into() }
    }

    /// The name of the state of transaction `txn`, which has this lineage.
    pub fn name(&self, txn: u64) -> StateName {
        StateName { lineage: self.spans.last().expect("at least one").number, txn }
    }

    /// The name of the state of an earlier transaction, as far back as openings are remembered.
    pub fn name_of_past(&self, txn: u64) -> StateName {
        let span = self.spans.iter().rev().find(|span| span.from <= txn);
        StateName { lineage: span.unwrap_or(&self.spans[0]).number, txn }
    }

    /// How `other` stands to the state of transaction `txn`, which has this lineage.
    pub fn relation(&self, txn: u64, other: StateName) -> Relation {
        let made_by = self.spans.iter().rev().find(|span| span.from <= other.txn);
        match made_by {
            _ if other.txn > txn => Relation::Fork,
            None => Relation::Forgotten,
            Some(span) if span.number != other.lineage => Relation::Fork,
            Some(_) if other.txn == txn => Relation::Same,
            Some(_) => Relation::Past,
        }
    }
}

/// The newest openings, for messages.
impl fmt::Display for Lineage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        let hidden = self.spans.len().saturating_sub(SHOWN);
        if hidden > 0 {
            write!(f, "{hidden} earlier histories, ")?;
        }
        for (n, span) in self.spans[hidden..].iter().enumerate() {
            let comma = if n > 0 { ", " } else { "" };
            write!(f, "{comma}history {:016x} from transaction {}", span.number, span.from)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(spans: &[(u64, u64)]) -> Lineage {
        Lineage {
            spans: spans.iter().map(|(from, number)| LineageSpan { from: *from, number: *number }).collect(),
        }
    }

    fn state(lineage: u64, txn: u64) -> StateName {
        StateName { lineage, txn }
    }

    #[test]
    fn only_states_that_led_to_it_are_the_past() {
        // Opening 7 made up to 9, of which this database has up to 5; 8 goes on from there.
        let here = spans(&[(0, 3), (1, 7), (6, 8)]);
        for (other, relation) in [
            (state(8, 12), Relation::Same),
            (state(8, 6), Relation::Past),
            (state(7, 5), Relation::Past),
            (state(3, 0), Relation::Past),
            (state(7, 6), Relation::Fork),
            (state(7, 9), Relation::Fork),
            (state(7, 12), Relation::Fork),
            (state(8, 13), Relation::Fork),
            (state(8, 5), Relation::Fork),
        ] {
            assert_eq!(here.relation(12, other), relation, "{other}");
        }
        assert_eq!(spans(&[(6, 8)]).relation(12, state(7, 5)), Relation::Forgotten);
    }

    #[test]
    fn the_record_round_trips_and_nonsense_is_none() {
        let lineage = spans(&[(0, 3), (1, 7), (6, 8)]);
        let record = lineage.record();
        let records = [(RECORD.to_string(), record.clone())].into();
        let catalog = Catalog { records, ..Default::default() };
        assert!(Lineage::is_of(&catalog, 8) && !Lineage::is_of(&catalog, 7));
        assert_eq!(Lineage::from_catalog(1, 9, &catalog), Ok(lineage));
        for bytes in
            [&record.bytes[..0], &record.bytes[..47], &[&record.bytes[16..32], &record.bytes[..16]].concat()]
        {
            assert!(Lineage::decode(bytes).is_err());
        }
    }

    #[test]
    fn the_record_does_not_grow_for_ever() {
        let mut lineage = spans(&[(0, 1)]);
        for opening in 0..2 * MOST_SPANS as u64 {
            lineage = lineage.going_on(opening + 100, opening * 3).unwrap();
            assert_eq!(lineage.going_on(opening + 100, opening * 3 + 1), None, "once an opening");
        }
        assert_eq!(lineage.record().bytes.len(), MOST_SPANS * SPAN_BYTES);
        let newest = 2 * MOST_SPANS as u64 * 3;
        assert_eq!(lineage.relation(newest, state(2 * MOST_SPANS as u64, newest / 2 + 600)), Relation::Fork);
        assert_eq!(lineage.relation(newest, state(100, 1)), Relation::Forgotten);
    }

    #[test]
    fn a_state_without_a_record_is_named_by_what_it_holds() {
        let empty = Catalog { next_tree: 1, ..Default::default() };
        let mut other = empty.clone();
        other.records.insert("psog".into(), Record { kind: 1, bytes: [1].into() });
        let name = |identity, txn, catalog| Lineage::from_catalog(identity, txn, catalog).unwrap().name(txn);
        assert_eq!(name(1, 4, &other), name(1, 4, &other));
        for different in [name(2, 4, &other), name(1, 5, &other), name(1, 4, &empty)] {
            assert_ne!(name(1, 4, &other), different);
        }
        let now = Lineage::from_catalog(1, 4, &other).unwrap().going_on(9, 4).unwrap();
        assert_eq!(now.relation(6, name(1, 4, &other)), Relation::Past);
    }
}
