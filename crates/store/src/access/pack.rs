//! Packing what a transaction changed into journal records, and publishing its pages when these
//! have their place.

use std::sync::Arc;

use crate::format::catalog::Catalog;
use crate::format::diff;
use crate::format::leaf_diff;
use crate::format::string::append_diff;
use crate::format::tuple::row_diff::{in_tail, packed};
use crate::history::private::{Private, PrivatePage};
use crate::history::step::Step;
use crate::history::versions::Readable;
use crate::journal::change::{self, ExtentChange};
use crate::journal::meters::JournalMeters;
use crate::journal::record::{Packed, RecordKind};
use crate::journal::{Appended, Loc};
use crate::page::image::SKIPPED;
use crate::page::{PAGE_BYTES, PageBuf, PageId, TreeId};
use crate::read::meters::Meters;
use crate::read::visible::VisiblePages;
use crate::settings::config::JournalConfig;

/// Appends the difference between two pages; false when it has none to give.
type Diff = fn(&[u8], &[u8], &mut Vec<u8>) -> bool;

/// A place in the payload of a record that has no place yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At(u32);

impl At {
    /// The place when the record is at `offset` of `file`.
    pub fn in_record(self, file: u64, offset: u64) -> Loc {
        Loc { file, offset, at: self.0 }
    }
}

/// Packs page images: records, each with where its pages are.
pub(crate) fn pack_images(
    pages: &[(PageId, Arc<PageBuf>)],
    settings: &JournalConfig,
) -> Vec<(Packed, Vec<(PageId, At)>)> {
    let mut done = Vec::new();
    let mut rest = pages;
    while !rest.is_empty() {
        let (mut payload, mut places) = (Vec::new(), Vec::new());
        while let Some(((page, state), later)) = rest.split_first()
            && (payload.is_empty() || payload.len() + PAGE_BYTES <= settings.part_bytes)
        {
            places.push((*page, At(payload.len() as u32)));
            change::put_image(&mut payload, *page, state);
            rest = later;
        }
        assert!(!places.is_empty(), "a record holds a page at least");
        done.push((Packed::new(RecordKind::Part, payload), places));
    }
    done
}

/// Collects the changes of a commit.
pub(crate) struct Packer {
    part_bytes: usize,
    diff_bytes: u32,
    payload: Vec<u8>,
    full: Vec<Packed>,
    pages: Vec<PackedPage>,
    catalog_bytes: usize,
}

/// The records of a commit and the pages in them.
pub(crate) struct PackedCommit {
    pub records: Vec<Packed>,
    pages: Vec<PackedPage>,
    catalog_bytes: usize,
}

struct PackedPage {
    page: PageId,
    tree: TreeId,
    /// In the payload.
    bytes: usize,
    state: Option<Arc<PageBuf>>,
    place: PagePlace,
    diff_bytes: Option<u32>,
}

enum PagePlace {
    /// In this record of the commit.
    Record(usize, At),
    /// It was written before.
    Journal(Loc),
}

impl Packer {
    pub fn new(settings: &JournalConfig) -> Packer {
        Packer {
            part_bytes: settings.part_bytes,
            diff_bytes: settings.diff_bytes,
            payload: Vec::new(),
            full: Vec::new(),
            pages: Vec::new(),
            catalog_bytes: 0,
        }
    }

    /// Adds the differences between two catalogs.
    pub fn catalog(&mut self, old: &Catalog, new: &Catalog) {
        change::put_catalog_changes(&mut self.payload, old, new);
    }

    /// Adds the changes of an extent.
    pub fn extent(&mut self, change: &ExtentChange) {
        change::put_extent(&mut self.payload, change);
    }

    /// Adds extents that a build wrote.
    pub fn built(&mut self, first: u64, extents: u64, tree: TreeId, pages: u32, by: Option<u64>) {
        change::put_built(&mut self.payload, first, extents, tree, pages, by);
    }

    /// Adds a page: as a diff against the newest version if there is one to build on and the diff
    /// is small, else whole.
    pub fn page(&mut self, id: PageId, page: &PrivatePage, visible: &VisiblePages) {
        let tree = page.tree;
        if self.pages.is_empty() {
            self.catalog_bytes = self.payload.len();
        }
        let state = match &page.state {
            Private::Journal(loc) => {
                let (place, bytes) = (PagePlace::Journal(*loc), PAGE_BYTES);
                return self.pages.push(PackedPage {
                    page: id,
                    tree,
                    bytes,
                    state: None,
                    place,
                    diff_bytes: None,
                });
            }
            Private::Memory(state) => state,
        };
        if self.payload.len() + PAGE_BYTES > self.part_bytes && !self.payload.is_empty() {
            self.full.push(Packed::new(RecordKind::Part, std::mem::take(&mut self.payload)));
        }
        let at = At(self.payload.len() as u32);
        debug_assert!(u32::try_from(self.payload.len()).is_ok(), "a payload is shorter than 4 GiB");
        let base = if page.stands_alone { None } else { visible.versions.base(id, self.diff_bytes) };
        let diff_bytes = base.and_then(|base| self.diff(id, &base, state));
        if diff_bytes.is_none() {
            change::put_image(&mut self.payload, id, state);
        }
        debug_assert!(self.payload.len() > at.0 as usize, "a page is said in at least a byte");
        let place = PagePlace::Record(self.full.len(), at);
        let bytes = self.payload.len() - at.0 as usize;
        self.pages.push(PackedPage { page: id, tree, bytes, state: Some(state.clone()), place, diff_bytes });
    }

    fn diff(&mut self, id: PageId, old: &PageBuf, new: &PageBuf) -> Option<u32> {
        const MOST: usize = PAGE_BYTES / 2;
        let in_rows: [Diff; 3] =
            [in_tail::diff, append_diff::diff, |old, new, out| packed::diff(old, new, MOST, out)];
        let mut bytes = Vec::new();
        let said = in_rows.iter().any(|diff| {
            bytes.clear();
            diff(old, new, &mut bytes)
        });
        if said {
            debug_assert!(rows_give(old, new, &bytes), "a diff by rows gives the page it was made of");
            change::put_rows(&mut self.payload, id, &bytes);
            return Some(bytes.len() as u32);
        }
        bytes.clear();
        diff::diff(&old[SKIPPED..], &new[SKIPPED..], MOST, &mut bytes).then(|| {
            debug_assert!(bytes_give(old, new, &bytes), "a diff gives the page it was made of");
            change::put_diff(&mut self.payload, id, &bytes);
            bytes.len() as u32
        })
    }

    /// The records; the last one is the commit.
    pub fn finish(mut self) -> PackedCommit {
        if self.pages.is_empty() {
            self.catalog_bytes = self.payload.len();
        }
        debug_assert!(
            self.pages.is_sorted_by(|a, b| a.page < b.page),
            "pages are packed in order, each once"
        );
        debug_assert!(self.full.iter().all(|r| r.kind == RecordKind::Part), "one commit ends its parts");
        self.full.push(Packed::new(RecordKind::Commit, self.payload));
        PackedCommit { records: self.full, pages: self.pages, catalog_bytes: self.catalog_bytes }
    }
}

impl PackedCommit {
    /// Counts the bytes put into the journal, by tree.
    pub fn count(&self, meters: &Meters, journal: &JournalMeters) {
        journal.catalog(self.catalog_bytes as u64);
        for p in &self.pages {
            meters.with(p.tree, |m| match p.diff_bytes {
                Some(_) => m.diff(p.bytes as u64),
                None => m.image(p.bytes as u64),
            });
        }
    }

    /// Publishes the pages as versions of `txn`; `readable` says as of what a reader reads.
    pub fn publish(&self, visible: &VisiblePages, txn: u64, appended: &Appended, readable: &Readable) {
        assert_eq!(appended.places.len(), self.records.len(), "each record has its place");
        assert!(readable.oldest < txn, "nobody reads as of a commit that is being published");
        for p in &self.pages {
            let loc = match p.place {
                PagePlace::Record(record, at) => {
                    let (file, offset) = appended.places[record];
                    at.in_record(file, offset)
                }
                PagePlace::Journal(loc) => loc,
            };
            let step = Step { txn, loc, diff_bytes: p.diff_bytes };
            visible.publish_version(p.page, txn, p.state.clone(), Some(step), readable);
        }
    }
}

/// True when a diff by rows, applied to the old page, gives the new one.
fn rows_give(old: &PageBuf, new: &PageBuf, diff: &[u8]) -> bool {
    let mut page = old.clone();
    leaf_diff::apply(&mut page, &[diff]).is_ok() && page[SKIPPED..] == new[SKIPPED..]
}

/// True when a diff by bytes, applied to the old page, gives the new one.
fn bytes_give(old: &PageBuf, new: &PageBuf, diff: &[u8]) -> bool {
    let mut page = PageBuf::new();
    diff::apply(&old[SKIPPED..], diff, &mut page[SKIPPED..]).is_ok() && page[SKIPPED..] == new[SKIPPED..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::Pool;
    use snowmelt_io::Clock;

    fn private(state: Private) -> PrivatePage {
        PrivatePage { tree: TreeId(1), state, stands_alone: true }
    }

    /// The bytes of catalog and map are known whatever the first page is.
    #[test]
    fn the_bytes_of_the_catalog_are_counted_before_the_first_page() {
        let old = Catalog { next_tree: 2, ..Catalog::default() };
        let mut new = old.clone();
        new.trees.insert(TreeId(2), "a tree".into());
        let visible = VisiblePages::new(Pool::alone(16, 64, &Clock::real()).unwrap());
        let packed = |pages: &[Private]| {
            let mut packer = Packer::new(&JournalConfig::default());
            packer.catalog(&old, &new);
            packer.extent(&ExtentChange { extent: 3, used: vec![1, 2], ..ExtentChange::default() });
            for (i, page) in pages.iter().enumerate() {
                packer.page(PageId(i as u64), &private(page.clone()), &visible);
            }
            packer.finish().catalog_bytes
        };
        let none = packed(&[]);
        assert!(none > 0);
        let spilled = Private::Journal(Loc { file: 1, offset: 0, at: 0 });
        let in_memory = Private::Memory(Arc::new(PageBuf::new()));
        assert_eq!(packed(&[in_memory.clone(), spilled.clone()]), none);
        assert_eq!(packed(&[spilled.clone(), in_memory]), none);
        assert_eq!(packed(&[spilled.clone(), spilled]), none);
    }
}
