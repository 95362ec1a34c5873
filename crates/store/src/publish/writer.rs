//! Publishing a database: see the head of [`publish`](crate::publish).
//!
//! 1. *Begin*: the manifest that is there must be of this database, and of a state that led to the
//!    present one. Its opener says which extents are there.
//! 2. A checkpoint is held. Of each extent the map says which transaction last wrote each page:
//!    where that is as it was published, its object is the same. The others are read and verified.
//!    An extent whose bytes have an object is not sent again.
//! 3. Opener and journal follow, then the manifest, on the condition that it still is the one that
//!    was read or written last.
//!
//! A publication that was cut short leaves objects that no manifest names. The next one names those
//! that it needs, by their bytes.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use snowmelt_io::{
    AlignedBuf, Answer, Ask, Clock, ObjectError, ObjectErrorKind, Objects, PutIf, Version, ask,
};
use twox_hash::{XxHash3_64, XxHash3_128};

use crate::error::{Result, StoreError};
use crate::format::lineage::{Relation, StateName};
use crate::journal::file::{BLOCK, JournalFile};
use crate::page::geometry::{ExtentId, Geometry};
use crate::page::{PAGE_BYTES, PageBuf, PageId, PageKind, TreeId, header};
use crate::publish::asks::{got, unusable, whole};
use crate::publish::base::Base;
use crate::publish::manifest::{self, JournalObject, Publication};
use crate::publish::opener::{ExtentObject, MOST_PAGE_BYTES, ObjectName, Opener};
use crate::publish::uploads::{Uploads, WIDTH};
use crate::space::extent::{Extent, words};
use crate::space::meta::read_meta;
use crate::store::Store;
use crate::superblock::SuperBlock;

/// Publishes the states of an open database, one after the other.
pub struct Publisher {
    store: Arc<Store>,
    objects: Arc<dyn Objects>,
    /// `None` before the first publication.
    last: Option<Last>,
    /// Extents that are there, named by a manifest or not.
    names: HashSet<ObjectName>,
}

/// The state that was published last.
struct Last {
    manifest: Publication,
    version: Version,
    extents: BTreeMap<ExtentId, (Extent, ExtentObject)>,
    /// Pages of trees for openers.
    pages: BTreeMap<PageId, PageBuf>,
}

/// How far a publication is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishProgress {
    /// Extents looked at.
    pub extents_done: u64,
    /// Extents there are.
    pub extents: u64,
    /// Extents sent: no object had their bytes.
    pub extents_sent: u64,
    /// Bytes sent, of all objects.
    pub bytes_sent: u64,
    /// The last transaction of the state.
    pub txn: u64,
}

impl Publisher {
    /// Prepares the publication of a database that is open for writing.
    ///
    /// # Errors
    /// Another database, or another history of this one, is published there; the store cannot be
    /// read, or what is there cannot be used.
    pub fn begin(store: Arc<Store>, objects: Arc<dyn Objects>) -> Result<Publisher> {
        if store.config().is_read_only() {
            return Err(StoreError::ReadOnly { path: store.dir().to_path_buf() });
        }
        let clock = &store.config().seams.clock;
        let names = names(&*objects, clock)?;
        let (version, manifest) = match ask(&*objects, clock, whole(manifest::KEY)) {
            Ok(Answer::Got { bytes, version, .. }) => {
                (version, Publication::decode(&bytes).map_err(|why| unusable(&*objects, why))?)
            }
            Ok(_) => unreachable!("a get is answered with bytes"),
            Err(e) if e.kind == ObjectErrorKind::Missing => {
                return Ok(Publisher { store, objects, last: None, names });
            }
            Err(e) => return Err(e.into()),
        };
        check_history(&store, &*objects, &manifest)?;
        let opener = got(ask(&*objects, clock, whole(&manifest.opener))?);
        let opener = Opener::decode(&opener).map_err(|why| unusable(&*objects, why))?;
        let last = Some(Last::read(&*objects, manifest, version, opener)?);
        Ok(Publisher { store, objects, last, names })
    }

    /// Publishes the newest durable state, and returns what that took.
    ///
    /// # Errors
    /// Another writer has published meanwhile; a damaged page; requests that fail;
    /// [`StoreError::Stopped`] when `told` asks for it: what was sent by then is not sent again.
    pub fn publish(
        &mut self,
        mut told: impl FnMut(PublishProgress) -> ControlFlow<()>,
    ) -> Result<PublishProgress> {
        let store = self.store.clone();
        let lineage = store.commits.lineage_of(&store.commits.states.visible())?;
        let base = Base::take(&store)?;
        let name = lineage.name_of_past(base.txn());
        let mut sending = Sending {
            store: &store,
            objects: &*self.objects,
            clock: &store.config().seams.clock,
            name,
            last: &mut self.last,
            names: &mut self.names,
            extents: BTreeMap::new(),
            pages: BTreeMap::new(),
            at: PublishProgress { txn: name.txn, ..Default::default() },
        };
        sending.extents(&base, &mut told)?;
        sending.manifest(&base)?;
        Ok(sending.at)
    }
}

/// The extents that are there. A list that lags leaves some out, which are sent again.
fn names(objects: &dyn Objects, clock: &Clock) -> Result<HashSet<ObjectName>> {
    /// Keys asked for at a time: as many as S3 answers.
    const MOST: usize = 1000;
    let (mut names, mut after) = (HashSet::new(), None);
    loop {
        let list = Ask::List { prefix: "extents/".into(), after: after.clone(), most: MOST };
        let Answer::Listed(listed) = ask(objects, clock, list)? else {
            unreachable!("a list is answered with keys")
        };
        let Some(last) = listed.last().filter(|last| after.as_ref() < Some(&last.key)) else {
            return Ok(names);
        };
        after = Some(last.key.clone());
        names.extend(listed.iter().filter_map(|object| ObjectName::from_key(&object.key)));
    }
}

/// Refuses to go on with what another database or history has published.
fn check_history(store: &Store, objects: &dyn Objects, manifest: &Publication) -> Result<()> {
    if manifest.database != store.identity() {
        return Err(unusable(
            objects,
            format!(
                "another database is published here ({:016x}, and this is {:016x}): choose another address",
                manifest.database,
                store.identity()
            ),
        ));
    }
    let state = store.commits.states.visible();
    let lineage = store.commits.lineage_of(&state)?;
    match lineage.relation(state.txn, manifest.newest()) {
        Relation::Same | Relation::Past => Ok(()),
        Relation::Fork | Relation::Forgotten => Err(unusable(
            objects,
            format!(
                "its newest state is {}, which did not lead to this database, which is at transaction {} ({lineage}): it was put back to an older state, or a copy of it was published; choose another address",
                manifest.newest(),
                state.txn,
            ),
        )),
    }
}

impl Last {
    /// The knowledge of an opener.
    fn read(objects: &dyn Objects, manifest: Publication, version: Version, opener: Opener) -> Result<Last> {
        let block = &opener.block;
        let geometry = Geometry { extent_pages: block.extent_pages, stripes: block.stripes.len() as u32 };
        let path = PathBuf::from(&**objects.name());
        let meta = read_meta(&path, block, geometry, &|place, buf| {
            for (id, bytes) in (geometry.page_at(place).0..).zip(buf.chunks_exact_mut(PAGE_BYTES)) {
                match opener.pages.get(&PageId(id)) {
                    Some(page) => bytes.copy_from_slice(page),
                    None => bytes.fill(0),
                }
            }
            Ok(())
        })?;
        let known = |(id, object): (ExtentId, ExtentObject)| {
            Some((id, (meta.extents.get(id as usize)?.clone(), object)))
        };
        let extents = opener.extents.into_iter().filter_map(known).collect();
        let pages = opener.pages.into_iter().filter(|(_, page)| is_of_a_tree(page)).collect();
        Ok(Last { manifest, version, extents, pages })
    }
}

/// False of the pages of catalog and map, which each opener has anew.
fn is_of_a_tree(page: &PageBuf) -> bool {
    header(page).tree() != TreeId::META
}

/// True of a page that nearly every query visits: inner nodes, and what strings are decoded with.
fn is_for_openers(page: &[u8]) -> bool {
    let is = |kind: PageKind| header(page).kind() == kind as u8;
    header(page).level() > 0 || is(PageKind::Symbols) || is(PageKind::Dictionary)
}

/// A publication under way.
struct Sending<'a> {
    store: &'a Store,
    objects: &'a dyn Objects,
    clock: &'a Clock,
    name: StateName,
    last: &'a mut Option<Last>,
    names: &'a mut HashSet<ObjectName>,
    extents: BTreeMap<ExtentId, (Extent, ExtentObject)>,
    pages: BTreeMap<PageId, PageBuf>,
    at: PublishProgress,
}

impl Sending<'_> {
    /// Sends the extents that changed.
    fn extents(
        &mut self,
        base: &Base,
        told: &mut impl FnMut(PublishProgress) -> ControlFlow<()>,
    ) -> Result<()> {
        let extent_bytes = self.store.geometry.extent_bytes();
        let _held = self.store.memory().reserve("publishing", (WIDTH as u64 + 1) * extent_bytes)?;
        let mut buf = AlignedBuf::huge(extent_bytes as usize);
        let mut uploads = Uploads::new(self.objects, self.clock);
        self.at.extents = base.extents.len() as u64;
        let sent = (|| {
            for (id, extent) in &base.extents {
                if !self.keep(*id, extent) {
                    self.read(base, *id, extent, &mut buf, &mut uploads)?;
                }
                self.at.extents_done += 1;
                if told(self.at).is_break() {
                    return Err(StoreError::Stopped);
                }
            }
            uploads.finish()
        })();
        // Also after a failure: what the store has said to be there is not sent again.
        self.names.extend(uploads.there().iter().filter_map(|key| ObjectName::from_key(key)));
        sent
    }

    /// Takes the object of an extent over that has not changed. False when there is none.
    fn keep(&mut self, id: ExtentId, extent: &Extent) -> bool {
        let known = self.last.as_ref().and_then(|last| Some((last, last.extents.get(&id)?)));
        let Some((last, (before, object))) = known.filter(|(_, (before, _))| is_same(before, extent)) else {
            return false;
        };
        let geometry = self.store.geometry;
        let pages = geometry.page(id, 0)..=geometry.page(id, geometry.extent_pages - 1);
        self.pages.extend(last.pages.range(pages).map(|(id, page)| (*id, page.clone())));
        self.extents.insert(id, (before.clone(), object.clone()));
        true
    }

    /// Reads an extent, and sends it if no object has its bytes.
    fn read(
        &mut self,
        base: &Base,
        id: ExtentId,
        extent: &Extent,
        buf: &mut [u8],
        uploads: &mut Uploads<'_>,
    ) -> Result<()> {
        let found = base.pages(self.store, id, extent, buf)?;
        let mut used: Box<[u64]> = vec![0; words(self.store.geometry.extent_pages)].into();
        let mut bytes = Vec::with_capacity(found.len() * PAGE_BYTES);
        for index in found {
            let page = &buf[index as usize * PAGE_BYTES..][..PAGE_BYTES];
            used[index as usize / 64] |= 1 << (index % 64);
            bytes.extend_from_slice(page);
            if is_for_openers(page) {
                self.pages.insert(self.store.geometry.page(id, index), PageBuf::copy_of(page));
            }
        }
        let hash = XxHash3_128::oneshot(&bytes);
        let name = ObjectName { lineage: self.name.lineage, hash };
        self.extents.insert(id, (extent.clone(), ExtentObject { name, used }));
        let key = name.key();
        if !bytes.is_empty() && !self.names.contains(&name) && !uploads.has(&key) {
            self.at.extents_sent += 1;
            self.at.bytes_sent += bytes.len() as u64;
            uploads.send(key, bytes)?;
        }
        Ok(())
    }

    /// Sends opener and journal, then the manifest that names them.
    fn manifest(&mut self, base: &Base) -> Result<()> {
        // first: the journal leads to this state, or further
        let state = self.store.commits.states.visible();
        let newest = self.store.commits.lineage_of(&state)?.name(state.txn);
        let journal = self.journal(base)?;
        let opener = self.opener(base);
        let bytes = opener.encode()?;
        let (of, txn, hash) = (self.name.lineage, self.name.txn, XxHash3_64::oneshot(&bytes));
        let key = format!("openers/{of:016x}-{txn:016x}-{hash:016x}");
        self.at.bytes_sent += bytes.len() as u64;
        self.put(&key, bytes, PutIf::Always)?;
        let number = self.last.as_ref().map_or(0, |last| last.manifest.number) + 1;
        let manifest = Publication {
            format: Publication::format(),
            number,
            database: self.store.identity(),
            lineage: self.name.lineage,
            txn: self.name.txn,
            newest_lineage: newest.lineage,
            newest_txn: newest.txn,
            opener: key,
            journal,
            unix_ms: now_ms(),
        };
        let only = match &self.last {
            Some(last) => PutIf::Is(last.version.clone()),
            None => PutIf::Absent,
        };
        let version = match self.put(manifest::KEY, manifest.encode(), only) {
            Ok(version) => version,
            Err(e) if e.kind == ObjectErrorKind::Changed => {
                return Err(unusable(
                    self.objects,
                    "another writer has published here meanwhile; this one publishes no more: only one may be the writer",
                ));
            }
            Err(e) => return Err(e.into()),
        };
        let (extents, pages) = (std::mem::take(&mut self.extents), std::mem::take(&mut self.pages));
        *self.last = Some(Last { manifest, version, extents, pages });
        Ok(())
    }

    /// The opener of the state: its pages of the upper levels first, as many as it may have.
    fn opener(&self, base: &Base) -> Opener {
        let room = (MOST_PAGE_BYTES / PAGE_BYTES).saturating_sub(base.meta_pages.len());
        let mut order: Vec<(&PageId, &PageBuf)> = self.pages.iter().collect();
        order.sort_by_key(|(_, page)| std::cmp::Reverse(header(page).level().max(1)));
        let mut pages: BTreeMap<PageId, PageBuf> =
            order.into_iter().take(room).map(|(id, page)| (*id, page.clone())).collect();
        pages.extend(base.meta_pages.iter().map(|(id, page)| (*id, page.clone())));
        let stripes = (0..base.held.block.stripes.len()).map(|i| PathBuf::from(format!("stripe-{i}")));
        let block = SuperBlock { stripes: stripes.collect(), ..base.held.block.clone() };
        let extents = self.extents.iter().map(|(id, (_, object))| (*id, object.clone())).collect();
        Opener { block, extents, pages }
    }

    /// Sends what the journal has since the checkpoint.
    fn journal(&mut self, base: &Base) -> Result<Vec<JournalObject>> {
        let mut objects = Vec::new();
        let mut uploads = Uploads::new(self.objects, self.clock);
        for (number, file, end) in self.store.commits.journal.durable_files(base.held.block.journal) {
            let bytes = durable_bytes(&file, end)?;
            let key = format!("journal/{:016x}-{number:010}-0-{}", self.name.lineage, bytes.len());
            objects.push(JournalObject {
                key: key.clone(),
                file: number,
                from: 0,
                bytes: bytes.len() as u64,
                checksum: XxHash3_64::oneshot(&bytes),
            });
            self.at.bytes_sent += bytes.len() as u64;
            uploads.send(key, bytes)?;
        }
        uploads.finish()?;
        Ok(objects)
    }

    fn put(&self, key: &str, bytes: Vec<u8>, only: PutIf) -> std::result::Result<Version, ObjectError> {
        let put = Ask::Put { key: key.into(), bytes: bytes.into(), only };
        match ask(self.objects, self.clock, put)? {
            Answer::Put(version) => Ok(version),
            _ => unreachable!("a put is answered with a version"),
        }
    }
}

/// True when all pages in use are as they were, by the transactions that wrote them.
fn is_same(before: &Extent, now: &Extent) -> bool {
    let pages = 0..(now.allocated.len() * 64) as u32;
    before.tree == now.tree
        && before.allocated == now.allocated
        && pages.filter(|i| now.is_allocated(*i)).all(|i| {
            let by = now.written_by.get(i);
            by.is_some() && by == before.written_by.get(i)
        })
}

/// The bytes of a journal file up to `end`, without zeros behind the last record.
fn durable_bytes(file: &JournalFile, end: u64) -> Result<Vec<u8>> {
    /// Bytes read at once.
    const PIECE: u64 = 1 << 20;
    let mut bytes = Vec::new();
    for from in (0..end).step_by(PIECE as usize) {
        let want = (end - from).min(PIECE) as usize;
        let mut piece = AlignedBuf::new(want.next_multiple_of(BLOCK));
        file.read(from, &mut piece)?;
        bytes.extend_from_slice(&piece[..want]);
    }
    let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
    bytes.truncate(used.next_multiple_of(8));
    Ok(bytes)
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
