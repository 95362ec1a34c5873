//! String trees: dense ids 0, 1, 2 … → bytes; one string is read without decoding its neighbours.
//!
//! A batch of sorted ids descends level by level like a tuple lookup (inner nodes by first id,
//! see `format::inner`), wishing for each level; short strings are handed out as their leaves are
//! visited, long ones at the end, their pages wished for together.

pub(crate) mod append;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod codec;
pub(crate) mod long_places;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::error::{Result, StoreError};
use crate::format::encoding::load;
use crate::format::string::codec::Codec;
use crate::format::string::leaf::{GROUP, StringLeaf};
use crate::page::{PageId, PageKind, TreeId};
use crate::tree::descent::{Descent, Shape};
use crate::tree::levels::Top;
use crate::tree::long_value::{LongRef, wish_long};
use crate::tree::read::decoded;
use crate::tree::rows::Keys;
use crate::tree::spare;
use crate::{PageRef, Reader};

/// A string tree as of a build or a change. Cheap to clone; holds no page.
#[derive(Clone)]
pub struct StringTree {
    pub(crate) shape: Shape,
    /// Page of the symbols, or of the dictionary's head.
    pub(crate) symbols_page: PageId,
    /// Checksum of the dictionary; `None`: there are symbols.
    pub(crate) dictionary: Option<u64>,
    pub(crate) len: u64,
    pub(crate) bytes: u64,
    pub(crate) pages: u64,
    pub(crate) codec: Arc<OnceLock<Arc<Codec>>>,
}

impl std::fmt::Debug for StringTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StringTree({:?}, {} strings, {} bytes)", self.shape, self.len, self.bytes)
    }
}

/// Version of the catalog record of a tree with symbols.
const RECORD: u8 = 1;
const RECORD_LEN: usize = 1 + 4 + 8 + 1 + 4 * 8;

/// Version of the catalog record of a tree with a dictionary, whose checksum follows.
const DICTIONARY_RECORD: u8 = 2;
const DICTIONARY_RECORD_LEN: usize = RECORD_LEN + 8;

/// Reused from string to string, so that none is allocated.
#[derive(Default)]
struct Buffers {
    codes: Vec<u8>,
    value: Vec<u8>,
    /// Long strings met: position in the batch, leaf, reference.
    long: Vec<(usize, PageId, LongRef)>,
}

impl StringTree {
    pub(crate) fn new(
        id: TreeId,
        top: Option<Top>,
        (symbols_page, dictionary): (PageId, Option<u64>),
        len: u64,
        bytes: u64,
        pages: u64,
    ) -> Self {
        let (root, height) = top.map_or((PageId(0), 0), |t| (t.root, t.height));
        let shape = Shape { id, root, height, arity: 1, inner: PageKind::StringInner };
        StringTree { shape, symbols_page, dictionary, len, bytes, pages, codec: Arc::default() }
    }

    /// The catalog record of the tree.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![self.dictionary.map_or(RECORD, |_| DICTIONARY_RECORD)];
        out.extend(self.shape.id.0.to_le_bytes());
        out.extend(self.shape.root.0.to_le_bytes());
        out.push(self.shape.height);
        for v in [self.symbols_page.0, self.len, self.bytes, self.pages] {
            out.extend(v.to_le_bytes());
        }
        out.extend(self.dictionary.into_iter().flat_map(u64::to_le_bytes));
        out
    }

    /// Reads a catalog record written by [`StringTree::to_bytes`].
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is not one.
    pub fn from_bytes(bytes: &[u8]) -> Result<StringTree> {
        let wrong = || StoreError::Corrupt {
            path: PathBuf::from("catalog"),
            why: "the record of a string tree cannot be read".into(),
        };
        let read = |at: usize, width: usize| load(bytes, at, width).map_err(|_| wrong());
        let dictionary = match (bytes.first(), bytes.len()) {
            (Some(&RECORD), RECORD_LEN) => None,
            (Some(&DICTIONARY_RECORD), DICTIONARY_RECORD_LEN) => Some(read(RECORD_LEN, 8)?),
            _ => return Err(wrong()),
        };
        let (id, root, height) = (TreeId(read(1, 4)? as u32), PageId(read(5, 8)?), bytes[13]);
        let [symbols, len, size, pages] = [read(14, 8)?, read(22, 8)?, read(30, 8)?, read(38, 8)?];
        let top = Some(Top { root, height, inner: 0 });
        Ok(StringTree::new(id, top, (PageId(symbols), dictionary), len, size, pages))
    }

    /// The tree's id in the store.
    pub fn id(&self) -> TreeId {
        self.shape.id
    }

    /// Number of strings; ids are below it.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True when there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of all strings, uncompressed.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of pages, long values and the table of symbols or the dictionary included.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Calls `f` for each of `ids` (ascending, duplicates allowed) with its position in `ids`
    /// and its string: short strings in order, then the long ones in order.
    ///
    /// # Errors
    /// Reading a page failed, a page contradicts the format, or there is no such id.
    pub fn get(&self, reader: &mut Reader, ids: &[u64], mut f: impl FnMut(usize, &[u8])) -> Result<()> {
        let all = |at: usize, string: &[u8]| {
            f(at, string);
            true
        };
        self.get_while(reader, ids, all).map(drop)
    }

    /// As [`StringTree::get`], but reads no further once `f` says false; then it returns false,
    /// too.
    ///
    /// # Errors
    /// As [`StringTree::get`].
    pub fn get_while(
        &self,
        reader: &mut Reader,
        ids: &[u64],
        mut f: impl FnMut(usize, &[u8]) -> bool,
    ) -> Result<bool> {
        assert!(ids.is_sorted(), "ids of a batch are sorted");
        let Some(&greatest) = ids.last() else { return Ok(true) };
        if greatest >= self.len {
            let why = format!("a reference to string {greatest} of {}", self.len);
            return Err(reader.damaged(self.shape.root, why));
        }
        let codec = self.codec(reader)?;
        let columns = [ids];
        let keys = Keys::new(&columns, None);
        let mut spare = spare::take(1);
        let plan = &mut spare.plan;
        let mut buffers = Buffers { codes: std::mem::take(&mut spare.bytes), ..Buffers::default() };
        let mut more = true;
        while more && plan.end < ids.len() {
            let limit = Descent::limit(reader.resident(self.shape.id), reader);
            plan.begin(&self.shape, &keys, plan.end, None, limit);
            plan.descend(reader, &self.shape, &keys)?;
            more = self.visit(reader, codec, plan, ids, &mut buffers, &mut f)?;
        }
        reader.meters.rnd += ids.len() as u64;
        reader.touch(self.shape.id, ids.len() as u64);
        more = more && self.deliver_long(reader, &mut buffers, &mut f)?;
        spare.bytes = buffers.codes;
        spare::give(spare);
        Ok(more)
    }

    /// Hands out the short strings of a chunk, leaf by leaf, and collects the references to the
    /// long ones.
    fn visit(
        &self,
        reader: &mut Reader,
        codec: &Codec,
        plan: &Descent,
        ids: &[u64],
        buffers: &mut Buffers,
        f: &mut impl FnMut(usize, &[u8]) -> bool,
    ) -> Result<bool> {
        let mut here: Option<(u32, PageRef, StringLeaf)> = None;
        let mut last = u64::MAX; // group of the string before
        for (i, &(node, _)) in plan.spans.iter().enumerate() {
            let (k, leaf_id) = (plan.first + i, plan.nodes[node as usize]);
            let id = ids[k];
            let stays = here.as_ref().is_some_and(|h| h.0 == node);
            if !stays {
                let parent = |n: u32| plan.parents.get(n as usize);
                let same_parent = here.as_ref().is_some_and(|h| parent(h.0) == parent(node));
                reader.meters.same_par += u64::from(same_parent);
                drop(here.take()); // no pin while waiting
                let page = reader.page(self.shape.id, leaf_id)?;
                let leaf = decoded(reader, leaf_id, StringLeaf::parse(&page))?;
                here = Some((node, page, leaf));
            }
            let (_, page, leaf) = here.as_ref().expect("a leaf is open");
            let index = id.wrapping_sub(leaf.first_id) as usize;
            let group = (index / GROUP) as u64;
            match stays {
                true if group == last => reader.meters.same_seg += 1,
                true => reader.meters.same_pg += 1,
                false => {}
            }
            last = group;
            let place = decoded(reader, leaf_id, leaf.place(page, index))?;
            let bytes = &page[place.at..place.at + place.len];
            if place.is_long {
                buffers.long.push((k, leaf_id, decoded(reader, leaf_id, LongRef::parse(bytes))?));
            } else if !f(k, decoded(reader, leaf_id, codec.decode(bytes, &mut buffers.codes))?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the long strings met, as many at a time as may be wished for.
    fn deliver_long(
        &self,
        reader: &mut Reader,
        buffers: &mut Buffers,
        f: &mut impl FnMut(usize, &[u8]) -> bool,
    ) -> Result<bool> {
        let long = std::mem::take(&mut buffers.long);
        let limit = reader.wish_limit().max(1);
        let mut rest = &long[..];
        while !rest.is_empty() {
            let mut pages = Vec::new();
            let fits = |(_, _, r): &&(usize, PageId, LongRef)| {
                pages.extend_from_slice(&r.pages);
                pages.len() <= limit
            };
            let n = rest.iter().take_while(fits).count().max(1);
            pages.truncate(limit);
            wish_long(reader, self.shape.id, &pages);
            for (k, leaf, reference) in &rest[..n] {
                reference.read(reader, self.shape.id, *leaf, &mut buffers.value)?;
                if !f(*k, &buffers.value) {
                    return Ok(false);
                }
            }
            rest = &rest[n..];
        }
        Ok(true)
    }
}
