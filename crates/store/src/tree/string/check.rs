//! Checks a string tree as a whole: every page decodes, ids are dense, counts are exact, every
//! string can be read.

use crate::error::Result;
use crate::format::encoding::Decode;
use crate::format::inner::Inner;
use crate::format::string::codec::Codec;
use crate::format::string::leaf::StringLeaf;
use crate::page::PageId;
use crate::tree::long_value::LongRef;
use crate::tree::read::{decoded, walk_ahead};
use crate::tree::string::StringTree;
use crate::{PageKind, Reader};

struct StringWalk<'t> {
    tree: &'t StringTree,
    codec: Codec,
    next_id: u64,
    bytes: u64,
    pages: u64,
    buffer: Vec<u8>,
    on_page: &'t mut dyn FnMut(PageId),
}

impl StringTree {
    /// Reads the whole tree and compares what it says with what it holds.
    ///
    /// # Errors
    /// [`StoreError::Damaged`](crate::StoreError::Damaged) with the first page that contradicts
    /// another one or the handle.
    pub fn check(&self, reader: &mut Reader) -> Result<()> {
        self.check_pages(reader, &mut |_| {})
    }

    /// As [`StringTree::check`]; `on_page` is called with each page that the tree uses.
    ///
    /// # Errors
    /// As [`StringTree::check`].
    pub fn check_pages(&self, reader: &mut Reader, on_page: &mut dyn FnMut(PageId)) -> Result<()> {
        on_page(self.symbols_page);
        let parts = self.dictionary_head(reader)?.map(|head| head.parts).unwrap_or_default();
        parts.iter().for_each(|page| on_page(*page));
        let codec = self.read_codec(reader)?;
        let pages = 1 + parts.len() as u64;
        let mut walk =
            StringWalk { tree: self, codec, next_id: 0, bytes: 0, pages, buffer: Vec::new(), on_page };
        if self.shape.height > 0 {
            walk.node(reader, self.shape.root, self.shape.height - 1)?;
        }
        let (found, said) = ([walk.next_id, walk.bytes, walk.pages], [self.len, self.bytes, self.pages]);
        if found != said {
            let why = format!("strings, bytes, pages are {found:?}, the tree's record says {said:?}");
            return Err(reader.damaged(self.shape.root, why));
        }
        Ok(())
    }
}

impl StringWalk<'_> {
    /// Returns the strings below the node.
    fn node(&mut self, reader: &mut Reader, id: PageId, level: u8) -> Result<u64> {
        self.pages += 1;
        (self.on_page)(id);
        if level == 0 {
            return self.leaf(reader, id);
        }
        let page = reader.page(self.tree.id(), id)?;
        let children = Inner::parse(&page, PageKind::StringInner, 1, level).and_then(|node| node.all(&page));
        let children = decoded(reader, id, children)?;
        drop(page);
        let mut sum = 0;
        for (i, child) in children.iter().enumerate() {
            walk_ahead(reader, self.tree.id(), |i| children.get(i).map(|c| c.page), i);
            if child.separator[0] != self.next_id {
                let why =
                    format!("child {i} begins with string {}, not {}", self.next_id, child.separator[0]);
                return Err(reader.damaged(id, why));
            }
            let found = self.node(reader, child.page, level - 1)?;
            if found != child.rows {
                return Err(reader.damaged(id, format!("child {i} has {found} strings, not {}", child.rows)));
            }
            sum += found;
        }
        Ok(sum)
    }

    fn leaf(&mut self, reader: &mut Reader, id: PageId) -> Result<u64> {
        let page = reader.page(self.tree.id(), id)?;
        let (leaf, long) = decoded(reader, id, self.read(&page))?;
        drop(page);
        if leaf.first_id != self.next_id {
            return Err(reader.damaged(id, format!("string {} where {} is due", leaf.first_id, self.next_id)));
        }
        let mut value = Vec::new();
        for reference in long {
            self.pages += reference.pages.len() as u64;
            reference.pages.iter().for_each(|page| (self.on_page)(*page));
            reference.read(reader, self.tree.id(), id, &mut value)?;
            self.bytes += value.len() as u64;
        }
        self.next_id += leaf.len as u64;
        Ok(leaf.len as u64)
    }

    /// Decodes the short strings; returns the references to the long ones.
    fn read(&mut self, page: &[u8]) -> Decode<(StringLeaf, Vec<LongRef>)> {
        let leaf = StringLeaf::parse(page)?;
        let mut long = Vec::new();
        for i in 0..leaf.len {
            let place = leaf.place(page, i)?;
            let bytes = &page[place.at..place.at + place.len];
            match place.is_long {
                true => long.push(LongRef::parse(bytes)?),
                false => self.bytes += self.codec.decode(bytes, &mut self.buffer)?.len() as u64,
            }
        }
        Ok((leaf, long))
    }
}
