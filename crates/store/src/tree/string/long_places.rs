//! Where the long values of a string tree lie: nothing in their pages says which leaf refers to
//! them, so all leaves are read.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::format::encoding::Decode;
use crate::format::inner::Inner;
use crate::format::string::leaf::StringLeaf;
use crate::page::geometry::ExtentId;
use crate::page::{PageId, PageKind};
use crate::tree::long_value::LongRef;
use crate::tree::read::{decoded, walk_ahead};
use crate::tree::string::StringTree;
use crate::{Geometry, Reader};

/// Most places that are remembered: some 64 MiB. Extents whose values are beyond them stay.
const MOST_PLACES: usize = 1 << 20;

struct PlaceWalk<'a> {
    tree: &'a StringTree,
    from: ExtentId,
    geometry: Geometry,
    go_on: &'a dyn Fn() -> bool,
    places: BTreeMap<ExtentId, BTreeSet<u64>>,
    count: usize,
}

impl StringTree {
    /// The strings that have long values in extents from `from` on, by extent; `None` once `go_on`
    /// says no.
    ///
    /// # Errors
    /// Reading a page failed, or a page contradicts the format.
    pub fn long_places(
        &self,
        reader: &mut Reader,
        from: u64,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<BTreeMap<u64, BTreeSet<u64>>>> {
        let geometry = reader.store().geometry();
        let mut walk = PlaceWalk { tree: self, from, geometry, go_on, places: BTreeMap::new(), count: 0 };
        let is_whole = self.shape.height == 0 || walk.node(reader, self.shape.root, self.shape.height - 1)?;
        Ok(is_whole.then_some(walk.places))
    }
}

impl PlaceWalk<'_> {
    /// False when it was given up.
    fn node(&mut self, reader: &mut Reader, id: PageId, level: u8) -> Result<bool> {
        if level == 0 {
            self.leaf(reader, id)?;
            return Ok(true);
        }
        let page = reader.page(self.tree.id(), id)?;
        let children = Inner::parse(&page, PageKind::StringInner, 1, level).and_then(|node| node.all(&page));
        let children = decoded(reader, id, children)?;
        drop(page);
        for (i, child) in children.iter().enumerate() {
            walk_ahead(reader, self.tree.id(), |i| children.get(i).map(|c| c.page), i);
            if !(self.go_on)() || !self.node(reader, child.page, level - 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn leaf(&mut self, reader: &mut Reader, id: PageId) -> Result<()> {
        let page = reader.page(self.tree.id(), id)?;
        let found = self.take(&page);
        decoded(reader, id, found)
    }

    fn take(&mut self, page: &[u8]) -> Decode<()> {
        let leaf = StringLeaf::parse(page)?;
        for place in leaf.long_places(page) {
            let (id, at) = place?;
            for page in LongRef::parse(&page[at])?.pages {
                let extent = self.geometry.extent_of(page);
                if extent >= self.from && self.count < MOST_PLACES {
                    let is_new = self.places.entry(extent).or_default().insert(id);
                    self.count += usize::from(is_new);
                }
            }
        }
        Ok(())
    }
}
