//! A page whose newest state is not made yet: an image, and the changes after it as the journal
//! has them.
//!
//! A recovery only collects: to make a page of its changes takes as long as to read a hundred of
//! them, and most pages are not asked for at once. Successive changes are applied together, when
//! the page is first asked for.

use crate::format::diff;
use crate::format::encoding::Decode;
use crate::format::leaf_diff;
use crate::format::varint::{put, take, unzigzag, zigzag};
use crate::history::step::Step;
use crate::journal::Loc;
use crate::page::image::{KEPT, SKIPPED};
use crate::page::{PageBuf, PageId, header, mark};

/// Form of a change: in bytes of the page, or in rows (or strings) of the leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Bytes,
    Rows,
}

/// An image and the changes after it.
#[derive(Debug, Default)]
pub(crate) struct WaitingPage {
    image: PageBuf,
    /// Transaction and place of the image, and of the last change.
    begin: ChangePlace,
    end: ChangePlace,
    /// Each change: its place, less that of the one before; its bytes · 2 + 1 if it speaks of
    /// rows; itself.
    changes: Vec<u8>,
    count: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct ChangePlace {
    txn: u64,
    loc: Loc,
}

/// A change and its place.
struct WaitingChange<'a> {
    place: ChangePlace,
    how: How,
    diff: &'a [u8],
}

impl WaitingPage {
    /// Begins anew with an image.
    pub fn set_image(&mut self, txn: u64, loc: Loc, bytes: &[u8]) {
        assert!(bytes.len() <= KEPT, "an image is no longer than a page");
        self.image[SKIPPED..SKIPPED + bytes.len()].copy_from_slice(bytes);
        self.image[SKIPPED + bytes.len()..].fill(0);
        self.begin = ChangePlace { txn, loc };
        self.end = self.begin;
        self.changes.clear();
        self.count = 0;
    }

    /// Adds a change.
    pub fn add(&mut self, txn: u64, loc: Loc, how: How, diff: &[u8]) {
        /// Room for the first changes: pages that are changed once are changed again.
        const ROOM: usize = 256;
        if self.changes.capacity() == 0 {
            self.changes.reserve(ROOM);
        }
        let place = ChangePlace { txn, loc };
        place.put(&self.end, &mut self.changes);
        put(&mut self.changes, (diff.len() as u64) << 1 | u64::from(how == How::Rows));
        self.changes.extend_from_slice(diff);
        self.end = place;
        self.count += 1;
    }

    /// Changes.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Bytes of the changes.
    pub fn bytes(&self) -> usize {
        self.changes.len()
    }

    /// The changes as steps of a page's history.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        changes(self.begin, &self.changes).map(|c| Step {
            txn: c.place.txn,
            loc: c.place.loc,
            diff_bytes: Some(c.diff.len() as u32),
        })
    }

    /// Applies the changes: the image is the newest state then. After an error, which names the
    /// change that cannot be applied, the image is unusable.
    pub fn settle(&mut self) -> Result<(), (Loc, &'static str)> {
        if self.count == 0 {
            return Ok(());
        }
        let mut list = Vec::with_capacity(self.count);
        list.extend(changes(self.begin, &self.changes));
        assert_eq!(list.len(), self.count, "what was added is found again");
        let follows = |a: &WaitingChange<'_>, b: &WaitingChange<'_>| {
            a.how == How::Rows && b.how == How::Rows && leaf_diff::can_follow(a.diff, b.diff)
        };
        let (mut run, mut spare) = (Vec::new(), None);
        for alike in list.chunk_by(follows) {
            let applied = match &alike[0] {
                WaitingChange { how: How::Bytes, diff, .. } => apply_bytes(&mut self.image, diff, &mut spare),
                WaitingChange { how: How::Rows, .. } => {
                    run.clear();
                    run.extend(alike.iter().map(|c| c.diff));
                    leaf_diff::apply(&mut self.image, &run)
                }
            };
            applied.map_err(|bad| (alike[0].place.loc, bad.0))?;
        }
        self.begin = self.end;
        self.changes = Vec::new();
        self.count = 0;
        Ok(())
    }

    /// Makes the changes and returns the newest state, as `page` of its transaction.
    pub fn into_page(mut self, page: PageId) -> Result<PageBuf, (Loc, &'static str)> {
        self.settle()?;
        let tree = header(&self.image).tree();
        mark(&mut self.image, page, tree, self.end.txn);
        Ok(self.image)
    }
}

/// The changes after `begin`; they were written by [`WaitingPage::add`], so that nothing can be
/// wrong with them.
fn changes(begin: ChangePlace, mut rest: &[u8]) -> impl Iterator<Item = WaitingChange<'_>> {
    let mut last = begin;
    std::iter::from_fn(move || {
        last = ChangePlace::take(&last, &mut rest)?;
        let word = take(&mut rest).ok()?;
        let diff = rest.split_off(..word as usize >> 1)?;
        Some(WaitingChange { place: last, how: if word & 1 == 1 { How::Rows } else { How::Bytes }, diff })
    })
}

impl ChangePlace {
    fn put(&self, last: &ChangePlace, out: &mut Vec<u8>) {
        put(out, self.txn.wrapping_sub(last.txn));
        put(out, self.loc.file.wrapping_sub(last.loc.file));
        put(out, zigzag(self.loc.offset.wrapping_sub(last.loc.offset) as i64));
        put(out, self.loc.at.into());
    }

    fn take(last: &ChangePlace, bytes: &mut &[u8]) -> Option<ChangePlace> {
        let txn = last.txn.wrapping_add(take(bytes).ok()?);
        let file = last.loc.file.wrapping_add(take(bytes).ok()?);
        let offset = last.loc.offset.wrapping_add(unzigzag(take(bytes).ok()?) as u64);
        Some(ChangePlace { txn, loc: Loc { file, offset, at: take(bytes).ok()? as u32 } })
    }
}

fn apply_bytes(state: &mut PageBuf, bytes: &[u8], spare: &mut Option<PageBuf>) -> Decode<()> {
    if !diff::apply_in_place(&mut state[SKIPPED..], bytes)? {
        // Bytes move: that takes a second page.
        let spare = spare.get_or_insert_default();
        diff::apply(&state[SKIPPED..], bytes, &mut spare[SKIPPED..])?;
        std::mem::swap(state, spare);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::versions::{Readable, Seen, Versions};
    use crate::page::PAGE_BYTES;
    use proptest::prelude::*;

    fn loc(n: u64) -> Loc {
        Loc { file: 1 + n / 3, offset: n % 3 * 4096, at: n as u32 * 7 }
    }

    fn page(bytes: &[u8]) -> PageBuf {
        let mut page = PageBuf::new();
        page[SKIPPED..SKIPPED + bytes.len()].copy_from_slice(bytes);
        page
    }

    /// A page of state 1, its image in transaction 1, and changes that make it the states 2 to
    /// `last`, each in the transaction of its number.
    fn waiting(last: u64) -> WaitingPage {
        let mut waiting = WaitingPage::default();
        waiting.set_image(1, loc(1), &[1; 100]);
        for n in 2..=last {
            let mut diff = Vec::new();
            let (old, new) = (page(&[n as u8 - 1; 100]), page(&[n as u8; 100]));
            assert!(diff::diff(&old[SKIPPED..], &new[SKIPPED..], PAGE_BYTES, &mut diff));
            waiting.add(n, loc(n), How::Bytes, &diff);
        }
        waiting
    }

    fn state(txn: u64) -> PageBuf {
        let mut state = page(&[txn as u8; 100]);
        let tree = header(&state).tree();
        mark(&mut state, PageId(5), tree, txn);
        state
    }

    #[test]
    fn an_image_begins_anew() {
        let mut waiting = waiting(4);
        waiting.set_image(9, loc(9), &[7; 50]);
        assert_eq!((waiting.len(), waiting.bytes()), (0, 0));
        assert_eq!(waiting.into_page(PageId(5)).unwrap()[SKIPPED..], page(&[7; 50])[SKIPPED..]);
    }

    #[test]
    fn what_cannot_be_made_says_where() {
        let mut waiting = waiting(4);
        waiting.add(5, loc(5), How::Rows, &[9]);
        assert_eq!(waiting.settle().unwrap_err().0, loc(5));
    }

    /// Versions with a page that waits, as of transaction 4.
    fn recovered() -> Versions {
        let versions = Versions::default();
        let image = Step { txn: 1, loc: loc(1), diff_bytes: None };
        versions.restore(PageId(5), 4, Some(waiting(4)), vec![image], || ());
        assert_eq!(versions.counts(), (1, 1, 1));
        versions
    }

    fn memory(versions: &Versions, txn: u64) -> Vec<u8> {
        match versions.see(PageId(5), txn) {
            Seen::Memory(state) => state.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    fn way(versions: &Versions, txn: u64) -> (u64, Vec<Loc>) {
        match versions.see(PageId(5), txn) {
            Seen::Journal(txn, way) => (txn, way),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_page_is_made_when_somebody_looks() {
        let versions = recovered();
        assert!(matches!(versions.see(PageId(5), 3), Seen::Stripe));
        let before = versions.memory_pages();
        assert_eq!(memory(&versions, 4), state(4).to_vec());
        assert_eq!(memory(&versions, 9), state(4).to_vec());
        assert_eq!(versions.counts(), (1, 1, 1));
        assert!(versions.memory_pages() <= before);
        versions.forget(PageId(5), 4, || ());
        assert_eq!((versions.counts(), versions.memory_pages()), ((0, 0, 0), 0));
    }

    #[test]
    fn a_page_that_leaves_memory_is_found_in_the_journal() {
        for looked in [false, true] {
            let versions = recovered();
            if looked {
                memory(&versions, 4);
            }
            versions.shrink(0, 4);
            assert_eq!(versions.in_memory(), 0);
            assert_eq!(way(&versions, 4), (4, (1..=4).map(loc).collect()));
        }
    }

    /// The changes of a page that waits come before those of a later commit, whenever they come
    /// into the history.
    #[test]
    fn later_commits_come_after_what_waits() {
        let versions = recovered();
        let (image, change) = (
            |n| Step { txn: n, loc: loc(n), diff_bytes: None },
            |n| Step { txn: n, loc: loc(n), diff_bytes: Some(9) },
        );
        versions.publish(PageId(5), 6, None, Some(image(6)), &Readable::since(4), || ());
        versions.publish(PageId(5), 7, None, Some(change(7)), &Readable::since(4), || ());
        assert_eq!(memory(&versions, 5), state(4).to_vec());
        versions.shrink(0, 9);
        assert_eq!(way(&versions, 5), (4, (1..=4).map(loc).collect()));
        assert_eq!(way(&versions, 6), (6, vec![loc(6)]));
        assert_eq!(way(&versions, 7), (7, vec![loc(6), loc(7)]));
        // The old state has no reader any more.
        versions.publish(PageId(5), 8, None, Some(change(8)), &Readable::since(7), || ());
        assert_eq!(way(&versions, 8), (8, vec![loc(6), loc(7), loc(8)]));
        assert_eq!(versions.counts().1, 2);
    }

    #[test]
    fn what_nobody_looked_at_can_be_dropped() {
        let versions = recovered();
        versions.publish(
            PageId(5),
            6,
            Some(std::sync::Arc::new(state(6))),
            Some(Step { txn: 6, loc: loc(6), diff_bytes: None }),
            &Readable::since(6),
            || (),
        );
        assert_eq!(memory(&versions, 6), state(6).to_vec());
        versions.forget(PageId(5), 6, || ());
        assert_eq!((versions.counts(), versions.memory_pages()), ((0, 0, 0), 0));
    }

    proptest! {
        #[test]
        fn places_are_what_they_were(
            places in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<bool>()), 1..40),
            len in 0usize..300,
        ) {
            let mut waiting = WaitingPage::default();
            waiting.set_image(3, loc(3), &[]);
            let diff = vec![7; len];
            let mut steps = Vec::new();
            for (txn, file, offset, at, rows) in places {
                let loc = Loc { file, offset, at };
                waiting.add(txn, loc, if rows { How::Rows } else { How::Bytes }, &diff);
                steps.push((txn, loc, Some(len as u32)));
            }
            let found: Vec<_> = waiting.steps().map(|s| (s.txn, s.loc, s.diff_bytes)).collect();
            prop_assert_eq!(found, steps);
        }
    }
}
