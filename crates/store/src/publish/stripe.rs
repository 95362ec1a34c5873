//! A stripe of a published database: a device whose bytes are in objects.
//!
//! A page is in the opener, or in the object of its extent behind the pages in use before it, or
//! in use by no tree: then it reads as zeros. A read of several pages takes one request for each
//! extent it touches, all at the same time. With a cache, objects are fetched whole and kept.

use std::io::IoSliceMut;
use std::ops::Range;
use std::sync::Arc;

use snowmelt_io::{
    Alignment, Ask, Clock, CostModel, ExtentCache, IoError, IoErrorKind, ObjectError, Objects, Operation,
    ReadDevice, ask_all,
};

use crate::page::geometry::{Geometry, Place};
use crate::page::{PAGE_BYTES, PageId};
use crate::publish::asks::got;
use crate::publish::opener::{ExtentObject, Opener};

/// See the head of the file.
pub(crate) struct PublishedStripe {
    pub name: Arc<str>,
    pub stripe: usize,
    pub geometry: Geometry,
    pub opener: Arc<Opener>,
    pub objects: Arc<dyn Objects>,
    pub clock: Clock,
    /// Keeps whole objects.
    pub cache: Option<Arc<ExtentCache>>,
}

/// Pages of one object that a read needs, and where they go.
struct WantedPages<'a> {
    object: &'a ExtentObject,
    /// Places in the object, in pages.
    ranks: Range<u32>,
    /// For each page: its place in the object and the number of the page in the read.
    pages: Vec<(u32, usize)>,
}

impl PublishedStripe {
    fn failed(&self, offset: u64, len: usize, kind: IoErrorKind) -> IoError {
        IoError { device: self.name.clone(), operation: Operation::Read, offset, len: len as u64, kind }
    }

    /// Fills the pages from `offset` on, as far as no object is needed; returns what is.
    fn fill_known(&self, pages: &mut [&mut [u8]], offset: u64) -> Vec<WantedPages<'_>> {
        let mut wanted: Vec<WantedPages<'_>> = Vec::new();
        for (n, bytes) in pages.iter_mut().enumerate() {
            let place = Place { stripe: self.stripe, offset: offset + (n * PAGE_BYTES) as u64 };
            let extent = self.geometry.extent_at(place);
            let index = (place.offset % self.geometry.extent_bytes() / PAGE_BYTES as u64) as u32;
            if let Some(page) = self.opener.pages.get(&PageId(self.geometry.page(extent, index).0)) {
                bytes.copy_from_slice(page);
                continue;
            }
            let Some(object) = self.opener.extents.get(&extent).filter(|object| object.has(index)) else {
                bytes.fill(0);
                continue;
            };
            let rank = object.rank(index);
            match wanted.last_mut().filter(|last| std::ptr::eq(last.object, object)) {
                Some(last) => {
                    last.ranks.end = rank + 1;
                    last.pages.push((rank, n));
                }
                None => wanted.push(WantedPages { object, ranks: rank..rank + 1, pages: vec![(rank, n)] }),
            }
        }
        wanted
    }

    /// The bytes of each, from the cache or from the object store.
    fn fetch(&self, wanted: &[WantedPages<'_>]) -> Result<Vec<Vec<u8>>, ObjectError> {
        match &self.cache {
            Some(cache) => wanted.iter().map(|wanted| self.cached(cache, wanted)).collect(),
            None => self.fetch_ranges(wanted),
        }
    }

    /// Bytes of an object that the cache keeps: it is fetched whole, once for all readers of the
    /// machine.
    fn cached(&self, cache: &ExtentCache, wanted: &WantedPages<'_>) -> Result<Vec<u8>, ObjectError> {
        let key = wanted.object.name.key();
        let from = wanted.ranks.start as usize * PAGE_BYTES;
        let mut bytes = vec![0; wanted.ranks.len() * PAGE_BYTES];
        if cache.read(&key, from as u64, &mut bytes) {
            return Ok(bytes);
        }
        let fetch = || {
            let ask = Ask::Get { key: key.as_str().into(), range: None };
            snowmelt_io::ask(&*self.objects, &self.clock, ask).map(got)
        };
        let whole = cache.get(&key, wanted.object.bytes(), fetch)?;
        let rest = whole.get(from..).unwrap_or_default();
        Ok(rest[..rest.len().min(bytes.len())].to_vec())
    }

    fn fetch_ranges(&self, wanted: &[WantedPages<'_>]) -> Result<Vec<Vec<u8>>, ObjectError> {
        let page_bytes = PAGE_BYTES as u64;
        let ask = |wanted: &WantedPages<'_>| {
            let Range { start, end } = wanted.ranks;
            let range = u64::from(start) * page_bytes..u64::from(end) * page_bytes;
            let range = (range.start > 0 || range.end < wanted.object.bytes()).then_some(range);
            Ask::Get { key: wanted.object.name.key().into(), range }
        };
        let answers = ask_all(&*self.objects, &self.clock, wanted.iter().map(ask).collect());
        answers.into_iter().map(|answer| answer.map(got)).collect()
    }
}

impl ReadDevice for PublishedStripe {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64, IoError> {
        let extents = self.opener.extents.keys().next_back().map_or(0, |last| last + 1);
        Ok(self.geometry.stripe_bytes(self.stripe, extents.max(self.opener.block.extents)))
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let len = bufs.iter().map(|buf| buf.len()).sum();
        let is_aligned = |n: usize| n.is_multiple_of(PAGE_BYTES);
        if !is_aligned(offset as usize) || !bufs.iter().all(|buf| is_aligned(buf.len())) {
            let Alignment { offset: unit, memory } = self.alignment();
            return Err(self.failed(offset, len, IoErrorKind::Unaligned { offset: unit, memory }));
        }
        let mut pages: Vec<&mut [u8]> =
            bufs.iter_mut().flat_map(|buf| buf.chunks_exact_mut(PAGE_BYTES)).collect();
        let wanted = self.fill_known(&mut pages, offset);
        let fetched = self.fetch(&wanted);
        let fetched = fetched.map_err(|e| self.failed(offset, len, IoErrorKind::Remote(e.to_string())))?;
        for (wanted, bytes) in wanted.iter().zip(fetched) {
            for (rank, n) in &wanted.pages {
                let at = (rank - wanted.ranks.start) as usize * PAGE_BYTES;
                let Some(from) = bytes.get(at..at + PAGE_BYTES) else {
                    let kind = IoErrorKind::Short { got: bytes.len() as u64 };
                    return Err(self.failed(offset, len, kind));
                };
                pages[*n].copy_from_slice(from);
            }
        }
        Ok(())
    }

    fn alignment(&self) -> Alignment {
        Alignment { memory: 1, offset: PAGE_BYTES }
    }

    fn cost(&self) -> CostModel {
        CostModel::object_store()
    }
}
