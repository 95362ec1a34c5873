//! Which transaction each page of an extent was last written to its stripe with: what a later
//! read must find there. An older page that is sound in itself means that a write was lost.
//!
//! Only the low 32 bits are kept; 0 says that it is not known, and then nothing is compared.
//! Extents that a build wrote are of one transaction, so most of a large database takes a few
//! bytes per extent, in memory and in the map:
//!
//! | bytes | form                                                                        |
//! |-------|-----------------------------------------------------------------------------|
//! | 1     | 0: u32, of all pages                                                        |
//! |       | 1: u16 number of runs; for each: u16 pages, u32                             |
//! |       | 2: u32 of each page                                                         |

use std::sync::Arc;

/// See the head of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenBy(WrittenForm);

#[derive(Clone, Debug, PartialEq, Eq)]
enum WrittenForm {
    Same(u32),
    Each(Arc<[u32]>),
}

const SAME: u8 = 0;
const RUNS: u8 = 1;
const EACH: u8 = 2;

impl WrittenBy {
    /// Nothing is known.
    pub const UNKNOWN: WrittenBy = WrittenBy(WrittenForm::Same(0));

    /// All pages were written with this transaction.
    pub fn same(txn: u64) -> WrittenBy {
        WrittenBy(WrittenForm::Same(txn as u32))
    }

    /// The low half of the transaction that page `index` was written with; `None` when it is
    /// not known.
    #[inline]
    pub fn get(&self, index: u32) -> Option<u32> {
        let low = match &self.0 {
            WrittenForm::Same(low) => *low,
            WrittenForm::Each(each) => each[index as usize],
        };
        Some(low).filter(|low| *low != 0)
    }

    /// Page `index` of `pages` was written with a transaction. False when that is no news.
    pub fn set(&mut self, index: u32, txn: u64, pages: u32) -> bool {
        let low = txn as u32;
        if let WrittenForm::Same(same) = self.0 {
            if same == low {
                return false;
            }
            self.0 = WrittenForm::Each(vec![same; pages as usize].into());
        }
        assert!(index < pages, "the page lies in its extent");
        let WrittenForm::Each(each) = &mut self.0 else { unreachable!("made above") };
        if each[index as usize] == low {
            return false;
        }
        Arc::make_mut(each)[index as usize] = low;
        true
    }

    /// Appends the shortest form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let each = match &self.0 {
            WrittenForm::Same(low) => return put_same(out, *low),
            WrittenForm::Each(each) => each,
        };
        let runs: Vec<&[u32]> =
            each.chunk_by(|a, b| a == b).flat_map(|run| run.chunks(u16::MAX.into())).collect();
        debug_assert_eq!(runs.iter().map(|run| run.len()).sum::<usize>(), each.len(), "runs tell all");
        if runs.len() == 1 {
            put_same(out, each[0]);
        } else if 2 + 6 * runs.len() < 4 * each.len() && runs.len() <= u16::MAX.into() {
            out.push(RUNS);
            out.extend((runs.len() as u16).to_le_bytes());
            for run in runs {
                out.extend((run.len() as u16).to_le_bytes());
                out.extend(run[0].to_le_bytes());
            }
        } else {
            out.push(EACH);
            each.iter().for_each(|low| out.extend(low.to_le_bytes()));
        }
    }

    /// Reads a form from the front of `bytes`, which moves on.
    pub(crate) fn decode(bytes: &mut &[u8], pages: u32) -> Result<WrittenBy, &'static str> {
        let [form] = take(bytes)?;
        match form {
            SAME => Ok(WrittenBy(WrittenForm::Same(u32::from_le_bytes(take(bytes)?)))),
            RUNS => {
                let mut each = Vec::with_capacity(pages as usize);
                for _ in 0..u16::from_le_bytes(take(bytes)?) {
                    let len = u16::from_le_bytes(take(bytes)?) as usize;
                    let low = u32::from_le_bytes(take(bytes)?);
                    if each.len() + len > pages as usize {
                        return Err("runs of more pages than an extent has");
                    }
                    each.resize(each.len() + len, low);
                }
                if each.len() != pages as usize {
                    return Err("runs of fewer pages than an extent has");
                }
                Ok(WrittenBy(WrittenForm::Each(each.into())))
            }
            EACH => {
                let each = (0..pages).map(|_| Ok(u32::from_le_bytes(take(bytes)?)));
                Ok(WrittenBy(WrittenForm::Each(each.collect::<Result<_, &'static str>>()?)))
            }
            _ => Err("an unknown form of the table of writes"),
        }
    }
}

fn put_same(out: &mut Vec<u8>, low: u32) {
    out.push(SAME);
    out.extend(low.to_le_bytes());
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], &'static str> {
    let (head, rest) = bytes.split_first_chunk().ok_or("the extent map ends too early")?;
    *bytes = rest;
    Ok(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pages_are_told_apart_only_where_they_differ() {
        let mut w = WrittenBy::same(7);
        assert!(!w.set(3, 7, 8));
        assert_eq!(w, WrittenBy::same(7));
        assert!(w.set(3, 9 + (1 << 32), 8));
        assert_eq!((w.get(2), w.get(3), WrittenBy::UNKNOWN.get(0)), (Some(7), Some(9), None));
        let before = w.clone();
        assert!(w.set(4, 9, 8));
        assert_eq!(before.get(4), Some(7), "a copy stays what it was");
    }

    proptest! {
        #[test]
        fn round_trips(lows in prop::collection::vec(0u64..4, 1..300)) {
            let pages = lows.len() as u32;
            let mut w = WrittenBy::UNKNOWN;
            for (i, low) in lows.iter().enumerate() {
                w.set(i as u32, *low, pages);
            }
            let mut bytes = Vec::new();
            w.encode(&mut bytes);
            prop_assert!(bytes.len() <= 1 + 4 * lows.len().max(1));
            let mut rest = &bytes[..];
            let back = WrittenBy::decode(&mut rest, pages).unwrap();
            prop_assert!(rest.is_empty());
            for (i, low) in lows.iter().enumerate() {
                prop_assert_eq!(back.get(i as u32), Some(*low as u32).filter(|l| *l != 0));
            }
            for n in 0..bytes.len() {
                prop_assert!(WrittenBy::decode(&mut &bytes[..n], pages).is_err());
            }
        }
    }
}
