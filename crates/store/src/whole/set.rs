//! A set of backups of one database: a whole copy, and files of what changed since the copy
//! before. A state is put together from the whole copy and the changes up to it.
//!
//! The set is what is in its directory: `0001-whole` (a database, and `0001-whole.head`),
//! `0002-changes`, and so on. Each names the copy it builds on by the checksum of its head, so a
//! part that is missing, or of another history, is noticed.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use snowmelt_io::AlignedBuf;

use crate::error::{Result, StoreError};
use crate::page::{self, Damage, PAGE_BYTES, PageId};
use crate::settings::config::{Background, Mode, StoreConfig};
use crate::settings::opener::{Directory, FileOpener};
use crate::store::Store;
use crate::store::making::make_dir;
use crate::whole::backup::{CopyProgress, copy_config};
use crate::whole::changes::{ChangesFile, CopyHead, CopyState, PageChanges, unusable};

const WHOLE: &str = "-whole";
const CHANGES: &str = "-changes";
const HEAD: &str = ".head";

/// The backups in a directory, the oldest first.
#[derive(Debug)]
pub struct BackupSet {
    dir: PathBuf,
    parts: Vec<BackupPart>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupPart {
    /// Its name in the directory.
    pub name: String,
    /// Which state it is.
    pub head: CopyHead,
}

/// The state that is wanted of a set: the newest that is not younger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreAt {
    /// The newest there is.
    Newest,
    /// As of this transaction, or before.
    Txn(u64),
    /// Made in this second since 1970, or before.
    UnixS(u64),
}

impl BackupPart {
    /// Whether it is a copy of all pages.
    pub fn is_whole(&self) -> bool {
        self.head.base.is_none()
    }
}

impl BackupSet {
    /// The backups in `dir`, which may be absent.
    ///
    /// # Errors
    /// The directory cannot be read; a part of it is damaged.
    pub fn read(dir: &Path) -> Result<Self> {
        let mut set = BackupSet { dir: dir.to_path_buf(), parts: Vec::new() };
        let entries = match std::fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(set),
            Err(e) => return Err(StoreError::file(dir, "read the set of backups")(e)),
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| number(name).is_some()).collect();
        names.sort_unstable();
        for name in names {
            let head = dir.join(if name.ends_with(WHOLE) { format!("{name}{HEAD}") } else { name.clone() });
            // A part gets its head when it is whole.
            if head.exists()
                && let Some(head) = CopyHead::read(&head, None)?
            {
                set.parts.push(BackupPart { head, name });
            }
        }
        Ok(set)
    }

    /// Its parts, the oldest first.
    pub fn parts(&self) -> &[BackupPart] {
        &self.parts
    }

    /// Adds the newest durable state of a database: what changed since the newest one that is
    /// here, or all of it where there is none. `None`: nothing has changed.
    ///
    /// # Errors
    /// The set is of another database, or of another history of this one; a part is damaged;
    /// what writing meets.
    pub fn add(
        &mut self,
        store: &Store,
        progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<Option<(BackupPart, CopyProgress)>> {
        make_dir(&self.dir)?;
        let number = 1 + self.last_number()?;
        let (part, done) = match self.parts.last() {
            None => {
                let name = format!("{number:04}{WHOLE}");
                let done = store.backup_until(&self.dir.join(&name), &[], progress)?;
                let head = CopyHead::new(store, None, done.txn);
                head.write(&self.dir.join(format!("{name}{HEAD}")), None)?;
                (BackupPart { name, head }, done)
            }
            Some(last) => {
                if last.head.identity != store.commits.block.lock().identity {
                    let why = "it is of another database: name another directory";
                    return Err(unusable(&self.dir, why));
                }
                if last.head.txn == store.commits.states.appended().txn {
                    return Ok(None);
                }
                let name = format!("{number:04}{CHANGES}");
                let state = self.state(store, last)?;
                let (head, done) = store.write_changes(&state, &self.dir.join(&name), progress)?;
                (BackupPart { name, head }, done)
            }
        };
        Directory::open(&self.dir, None)?.sync()?;
        self.parts.push(part.clone());
        Ok(Some((part, done)))
    }

    /// The highest number of a name, that of unfinished ones included.
    fn last_number(&self) -> Result<u32> {
        let entries = std::fs::read_dir(&self.dir).map_err(StoreError::file(&self.dir, "read it"))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter_map(|name| number(name.strip_suffix(HEAD).unwrap_or(&name))).max().unwrap_or(0))
    }

    /// The state that a part has, without its pages.
    fn state(&self, store: &Store, part: &BackupPart) -> Result<CopyState> {
        let path = self.dir.join(&part.name);
        if !part.is_whole() {
            return Ok(ChangesFile::open(&path, None)?.changes()?.state);
        }
        let copy = Store::open(&path, reading(copy_config(store)))?;
        let extents = copy.fetch.core.space.read().durable();
        Ok(CopyState { head: part.head, extents })
    }

    /// The part that is wanted, and those that it builds on, the whole copy first.
    fn chain(&self, at: RestoreAt) -> Result<Vec<&BackupPart>> {
        let is_early = |part: &&BackupPart| match at {
            RestoreAt::Newest => true,
            RestoreAt::Txn(txn) => part.head.txn <= txn,
            RestoreAt::UnixS(unix_s) => part.head.unix_s <= unix_s,
        };
        let newest = self.parts.iter().rev().find(is_early);
        let mut chain = vec![newest.ok_or_else(|| unusable(&self.dir, "it has no state as old as that"))?];
        while let Some(base) = chain[0].head.base {
            let part = self.parts.iter().find(|part| part.head.name() == base);
            let missing = || unusable(&self.dir.join(&chain[0].name), "what it builds on is not in the set");
            chain.insert(0, part.ok_or_else(missing)?);
        }
        Ok(chain)
    }

    /// Makes a database of a state of the set in `target`, with its data in `stripes` (none: in
    /// `target`). Every page is verified.
    ///
    /// # Errors
    /// There is no state as old as that; a part is missing or damaged; what writing meets.
    pub fn restore(
        &self,
        at: RestoreAt,
        (target, stripes): (&Path, &[PathBuf]),
        config: &StoreConfig,
        progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<CopyProgress> {
        let chain = self.chain(at)?;
        let whole = Store::open(&self.dir.join(&chain[0].name), reading(config.clone()))?;
        if chain.len() == 1 {
            return whole.backup_until(target, stripes, progress);
        }
        let changes = chain[1..].iter().map(|part| self.dir.join(&part.name));
        let changes: Vec<PathBuf> = changes.collect();
        whole.restore_with(&changes, None, (target, stripes), progress)
    }
}

/// The number of a part.
fn number(name: &str) -> Option<u32> {
    let number = name.strip_suffix(WHOLE).or_else(|| name.strip_suffix(CHANGES))?;
    number.parse().ok()
}

fn reading(config: StoreConfig) -> StoreConfig {
    StoreConfig { mode: Mode::ReadOnly, background: Background::Caller, ..config }
}

impl Store {
    /// Makes a database of this whole copy and what changed since, in this order.
    pub(crate) fn restore_with(
        &self,
        changes: &[PathBuf],
        files: Option<&FileOpener>,
        (target, stripes): (&Path, &[PathBuf]),
        mut progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<CopyProgress> {
        let open = |path: &PathBuf| ChangesFile::open(path, files)?.changes();
        let mut changes = changes.iter().map(open).collect::<Result<Vec<PageChanges>>>()?;
        let last = changes.pop().expect("changes to a whole copy");
        let map = last.state.extents.clone();
        let mut at =
            CopyProgress { extents_done: 0, extents: map.len() as u64, pages: 0, txn: last.state.head.txn };
        changes.push(last);
        self.copy_to(target, stripes, |copy: &Arc<Store>| {
            let mut buf = AlignedBuf::huge(self.geometry.extent_bytes() as usize);
            for id in (0..map.len() as u64).filter(|id| map[*id as usize].tree.is_some()) {
                let pages = self.extent_from(id, &changes, &mut buf)?;
                copy.fetch.stripes.write(copy.geometry.extent_place(id), &buf)?;
                at = CopyProgress { extents_done: id + 1, pages: at.pages + pages, ..at };
                if progress(at).is_break() {
                    return Err(StoreError::Stopped);
                }
            }
            let last = changes.last().expect("it was pushed");
            copy.adopt(at.txn, last.catalog.clone(), map.clone())?;
            Ok(CopyProgress { extents_done: at.extents, ..at })
        })
    }

    /// Fills `buf` with an extent as the last of the changes has it; answers how many of its
    /// pages are in use.
    fn extent_from(&self, id: u64, changes: &[PageChanges], buf: &mut AlignedBuf) -> Result<u64> {
        let last = changes.last().expect("changes to a whole copy");
        let extent = &last.state.extents[id as usize];
        let tree = extent.tree.expect("an extent in use");
        let used = (0..self.geometry.extent_pages).filter(|i| extent.is_allocated(*i));
        let used: Vec<(u32, PageId)> = used.map(|i| (i, self.geometry.page(id, i))).collect();
        let mut missing: Vec<bool> = vec![false; self.geometry.extent_pages as usize];
        used.iter().for_each(|(i, _)| missing[*i as usize] = true);
        buf.fill(0);
        let pages = self.geometry.page(id, 0)..self.geometry.page(id + 1, 0);
        for part in changes.iter().rev() {
            part.fill(pages.clone(), buf, |i| std::mem::take(&mut missing[i as usize]))?;
        }
        self.fill_missing(id, &missing, buf)?;
        for (i, page) in &used {
            let bytes = &buf[*i as usize * PAGE_BYTES..][..PAGE_BYTES];
            let why = page::verify_written(bytes, *page, tree, extent.written_by.of(*i)).err();
            if let Some(why) = why {
                return Err(unusable(last.path(), format!("page {page}, put together from the set: {why}")));
            }
        }
        Ok(used.len() as u64)
    }

    /// Fills in the pages of an extent that no change has.
    fn fill_missing(&self, id: u64, missing: &[bool], buf: &mut AlignedBuf) -> Result<()> {
        let Some(first) = missing.iter().position(|missing| *missing) else { return Ok(()) };
        let end = missing.iter().rposition(|missing| *missing).map_or(first, |last| last + 1);
        let page = self.geometry.page(id, first as u32);
        let has = self.fetch.core.space.read().extent(id).is_some_and(|e| e.tree.is_some());
        if !has {
            return Err(self.fetch.core.damaged(page, Damage::NotAllocated));
        }
        let mut read = AlignedBuf::huge((end - first) * PAGE_BYTES);
        self.fetch.read_past_pool(page, &mut read).map_err(|e| self.fetch.core.unreadable(page, e))?;
        for i in (first..end).filter(|i| missing[*i]) {
            let from = &read[(i - first) * PAGE_BYTES..][..PAGE_BYTES];
            buf[i * PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(from);
        }
        Ok(())
    }
}
