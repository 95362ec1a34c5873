//! The warm list (rule 5): the resident pages, hottest extents first, saved at shutdown and every
//! few minutes, read back at the next start.
//!
//! File `warm` in the database's directory, replaced by renaming; little endian:
//!
//! | bytes | field                                             |
//! |-------|---------------------------------------------------|
//! | 8     | `SNOWWARM`                                        |
//! | 4     | format version                                    |
//! | 4     | pages in an extent                                |
//! | 8     | number of entries                                 |
//! | each  | u64 extent, bitmap of resident pages in u64 words |
//! | 8     | XXH3-64 of all before                             |
//!
//! It is advice: a list that is missing, damaged or out of date costs time, never an answer, so no
//! error comes from it. Reading it back uses only frames that were never used and the lowest read
//! class, a few extents at a time, so that it yields to all other work. A reader that needs a page
//! of a waiting extent takes the extent's listed pages along.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;

use parking_lot::Mutex;
use rustix::fs::OFlags;
use twox_hash::XxHash3_64;

use crate::error::{Result, StoreError};
use crate::page::PageId;
use crate::page::geometry::{ExtentId, Geometry};
use crate::settings::opener::Directory;
use crate::space::extent::words;

/// Name of the file.
pub const FILE_NAME: &str = "warm";
/// Its name while it is written.
pub const NEW_NAME: &str = "warm.new";
const MAGIC: &[u8; 8] = b"SNOWWARM";
const FORMAT: u32 = 1;

/// Resident pages of an extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WarmEntry {
    pub extent: ExtentId,
    pub pages: Box<[u64]>,
}

impl WarmEntry {
    fn count(&self) -> u64 {
        self.pages.iter().map(|w| w.count_ones() as u64).sum()
    }

    pub fn has(&self, index: u32) -> bool {
        self.pages[index as usize / 64] >> (index % 64) & 1 == 1
    }
}

/// Writes the list.
pub(crate) fn save(dir: &Directory, extent_pages: u32, list: &[WarmEntry]) -> Result<()> {
    let mut out = Vec::new();
    out.extend(MAGIC);
    out.extend(FORMAT.to_le_bytes());
    out.extend(extent_pages.to_le_bytes());
    out.extend((list.len() as u64).to_le_bytes());
    for entry in list {
        assert_eq!(entry.pages.len(), words(extent_pages), "a bit for each page of the extent");
        out.extend(entry.extent.to_le_bytes());
        entry.pages.iter().for_each(|w| out.extend(w.to_le_bytes()));
    }
    out.extend(XxHash3_64::oneshot(&out).to_le_bytes());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let replace = || {
        let folder = dir.folder()?;
        folder.open_file(Path::new(NEW_NAME), flags)?.write_all(&out)?;
        folder.rename(Path::new(NEW_NAME), Path::new(FILE_NAME))
    };
    replace().map_err(StoreError::file(&dir.join(FILE_NAME), "replace the warm list"))
}

/// Reads the list; `None` when there is none that can be used.
pub(crate) fn load(dir: &Directory, extent_pages: u32) -> Option<Vec<WarmEntry>> {
    let mut bytes = Vec::new();
    let file = dir.folder().ok()?.open_file(Path::new(FILE_NAME), OFlags::RDONLY);
    file.ok()?.read_to_end(&mut bytes).ok()?;
    let (body, sum) = bytes.split_last_chunk::<8>()?;
    if XxHash3_64::oneshot(body) != u64::from_le_bytes(*sum) {
        return None;
    }
    let (head, entries) = body.split_at_checked(24)?;
    let size = 8 + 8 * words(extent_pages);
    let count = u64::from_le_bytes(head[16..24].try_into().ok()?);
    let right = head[..8] == *MAGIC
        && head[8..12] == FORMAT.to_le_bytes()
        && head[12..16] == extent_pages.to_le_bytes()
        && count.checked_mul(size as u64) == Some(entries.len() as u64);
    let word = |w: &[u8]| u64::from_le_bytes(w.try_into().expect("eight bytes"));
    right.then(|| {
        let entry =
            |e: &[u8]| WarmEntry { extent: word(&e[..8]), pages: e[8..].chunks_exact(8).map(word).collect() };
        entries.chunks_exact(size).map(entry).collect()
    })
}

/// Reading the list back.
pub(crate) struct WarmUp {
    stripes: Mutex<Vec<Waiting>>,
}

/// Entries still to be read from one stripe, in device order.
#[derive(Default)]
struct Waiting {
    extents: BTreeMap<ExtentId, WarmEntry>,
    /// Reading goes on here, and at the end begins anew: an arm that a miss has called away does
    /// not go back first.
    hand: ExtentId,
}

impl Waiting {
    fn take_next(&mut self) -> Option<WarmEntry> {
        let ahead = self.extents.range(self.hand..).next();
        let (&next, _) = ahead.or_else(|| self.extents.first_key_value())?;
        self.take(next)
    }

    fn take(&mut self, extent: ExtentId) -> Option<WarmEntry> {
        let entry = self.extents.remove(&extent)?;
        debug_assert_eq!(entry.extent, extent, "entries are found by their extents");
        self.hand = extent;
        Some(entry)
    }
}

impl WarmUp {
    /// Chooses the hottest entries that fit the pool.
    pub fn new(list: Vec<WarmEntry>, frames: u64, geometry: Geometry) -> WarmUp {
        let mut room = frames - frames / 8;
        let fits = |entry: &WarmEntry| {
            let left = room.checked_sub(entry.count());
            room = left.unwrap_or(room);
            left.is_some()
        };
        let mut stripes: Vec<Waiting> = (0..geometry.stripes).map(|_| Waiting::default()).collect();
        for entry in list.into_iter().take_while(fits) {
            stripes[geometry.extent_place(entry.extent).stripe].extents.insert(entry.extent, entry);
        }
        WarmUp { stripes: Mutex::new(stripes) }
    }

    /// True when everything was asked for.
    pub fn is_done(&self) -> bool {
        self.stripes.lock().iter().all(|waiting| waiting.extents.is_empty())
    }

    /// True when everything of a stripe was asked for.
    pub fn is_done_on(&self, stripe: usize) -> bool {
        self.stripes.lock()[stripe].extents.is_empty()
    }

    /// Takes an extent from those that wait: the caller reads its pages now.
    pub fn take(&self, extent: ExtentId, geometry: Geometry) -> Option<WarmEntry> {
        self.stripes.lock()[geometry.extent_place(extent).stripe].take(extent)
    }

    /// Takes the next extent of a stripe in device order.
    pub fn take_next(&self, stripe: usize) -> Option<WarmEntry> {
        self.stripes.lock()[stripe].take_next()
    }

    /// Forgets what is still waiting: the pool has no room for it.
    pub fn give_up(&self) {
        self.stripes.lock().iter_mut().for_each(|waiting| waiting.extents.clear());
    }

    /// Those of `pages` that are not on the list any more, or never were.
    pub fn without(&self, pages: &[PageId], geometry: Geometry) -> Vec<PageId> {
        let stripes = self.stripes.lock();
        let others = |page: &&PageId| {
            let extent = geometry.extent_of(**page);
            let entry = stripes[geometry.extent_place(extent).stripe].extents.get(&extent);
            entry.is_none_or(|entry| !entry.has(geometry.index_of(**page)))
        };
        pages.iter().filter(others).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(extent: u64, bits: u64) -> WarmEntry {
        WarmEntry { extent, pages: [bits].into() }
    }

    #[test]
    fn lists_round_trip_and_damage_is_no_list() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Directory::open(dir.path(), None).unwrap();
        assert_eq!(load(&folder, 8), None);
        let list = vec![entry(9, 0b1011), entry(2, 0xFF)];
        save(&folder, 8, &list).unwrap();
        assert_eq!(load(&folder, 8), Some(list));
        assert_eq!(load(&folder, 16), None, "another extent size");
        let path = dir.path().join(FILE_NAME);
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 4;
            std::fs::write(&path, &bad).unwrap();
            assert_eq!(load(&folder, 8), None, "byte {at}");
            std::fs::write(&path, &good[..at]).unwrap();
            assert_eq!(load(&folder, 8), None, "cut at {at}");
        }
    }

    const GEOMETRY: Geometry = Geometry { extent_pages: 8, stripes: 1 };

    #[test]
    fn the_hottest_that_fit_are_chosen_and_read_in_device_order() {
        let w = WarmUp::new(vec![entry(9, 0xF), entry(2, 0xFF), entry(5, 1)], 13, GEOMETRY);
        let extents: Vec<_> = w.stripes.lock()[0].extents.keys().copied().collect();
        assert_eq!(extents, [2, 9], "12 of 13 frames: 5 no longer fits");
        assert_eq!(w.take(2, GEOMETRY), Some(entry(2, 0xFF)));
        assert_eq!(w.take(2, GEOMETRY), None, "taken once");
        assert!(!w.is_done());
    }

    #[test]
    fn reading_goes_on_where_a_miss_has_called_the_arm_and_no_other() {
        let geometry = Geometry { stripes: 2, ..GEOMETRY };
        let w = WarmUp::new([2, 3, 4, 5, 8, 9, 12].map(|extent| entry(extent, 1)).into(), 100, geometry);
        let mut stripes = w.stripes.lock();
        let mut order = [Vec::new(), Vec::new()];
        for turn in 0..4 {
            for stripe in [0, 1] {
                order[stripe].extend(stripes[stripe].take_next().map(|entry| entry.extent));
            }
            if turn == 0 {
                stripes[0].take(8);
            }
        }
        assert_eq!(order, [vec![2, 12, 4], vec![3, 5, 9]]);
    }

    #[test]
    fn what_waits_on_the_list_is_told_from_other_pages() {
        let w = WarmUp::new(vec![entry(1, 0b11)], 100, GEOMETRY);
        let pages = [7, 8, 9, 10, 16].map(PageId);
        assert_eq!(w.without(&pages, GEOMETRY), [7, 10, 16].map(PageId));
        w.take(1, GEOMETRY);
        assert_eq!(w.without(&pages, GEOMETRY), pages);
    }
}
