//! The files of the journal: numbered slots `journal-0`, `journal-1`, … in the database's
//! directory, written whole once, used again and again.
//!
//! A slot's file is filled with zeros and synced before its first use, so that commits
//! overwrite written blocks: a sync then has no metadata to write. Each use gives it the next
//! *number*. Slots are made in order and never removed, so opening finds them without listing a
//! directory. Files that are not needed for now are cut to nothing, and keep their names.

use std::io::{IoSlice, IoSliceMut};
use std::path::PathBuf;
use std::sync::Arc;

use snowmelt_io::{Access, AlignedBuf, Device};

use super::record::{self, FILE_HEAD, FileHead};
use crate::error::{Result, StoreError};
use crate::settings::config::StoreConfig;
use crate::settings::opener::{self, Caching, Directory, Placed};

/// Bytes in which the journal is written; a multiple of every device's unit.
pub const BLOCK: usize = 4096;

/// A file of the journal.
pub(crate) struct JournalFile {
    pub path: PathBuf,
    pub slot: u32,
    pub bytes: u64,
    device: Arc<dyn Device>,
    placed: Option<Placed>,
}

impl JournalFile {
    fn open(
        dir: &Arc<Directory>,
        slot: u32,
        access: Access,
        config: &StoreConfig,
    ) -> Result<Option<JournalFile>> {
        let name = PathBuf::from(format!("journal-{slot}"));
        let path = dir.join(&name);
        let caching = if config.direct { Caching::Direct } else { Caching::Buffered };
        let what = "open the journal file";
        let device = match dir.device(&name, access, caching) {
            Err(e) if opener::is_missing(&e) && access != Access::Create => return Ok(None),
            other => other.map_err(StoreError::device(&path, what))?,
        };
        let placed = Placed::from_device(dir, &name, &*device);
        let device = match &config.seams.journal_devices {
            Some(wrap) => wrap.wrap(slot as usize, device).map_err(StoreError::device(&path, what))?,
            None => device,
        };
        let bytes = device.len().map_err(StoreError::device(&path, "look at the journal file"))?;
        let bytes = bytes / BLOCK as u64 * BLOCK as u64;
        Ok(Some(JournalFile { path, slot, bytes, device, placed }))
    }

    /// The files there are, in the order of their slots.
    pub fn open_all(dir: &Arc<Directory>, config: &StoreConfig) -> Result<Vec<JournalFile>> {
        let mut files = Vec::new();
        while let Some(file) = Self::open(dir, files.len() as u32, config.access(), config)? {
            files.push(file);
        }
        Ok(files)
    }

    /// Opens the file of a slot to be made, or made again: see [`super::room`].
    pub fn create(dir: &Arc<Directory>, slot: u32, config: &StoreConfig) -> Result<JournalFile> {
        match Self::open(dir, slot, Access::Create, config)? {
            Some(file) => Ok(file),
            None => unreachable!("only a file that is not to be made can be missing"),
        }
    }

    /// An error when another file, or none, has its name by now.
    pub fn look(&self) -> Result<()> {
        self.placed.as_ref().map_or(Ok(()), Placed::look)
    }

    /// Makes it as long as this, with room for all of it where the device can promise that.
    pub fn lengthen(&self, bytes: u64) -> Result<()> {
        self.device.lengthen(bytes).map_err(StoreError::device(&self.path, "lengthen the journal file"))
    }

    /// Cuts it to a length.
    pub fn cut(&self, bytes: u64) -> Result<()> {
        self.device.set_len(bytes).map_err(StoreError::device(&self.path, "cut the journal file"))
    }

    /// This file, cut to nothing: its slot keeps its name, and is made again when there is need.
    pub fn emptied(&self) -> Result<JournalFile> {
        self.cut(0)?;
        let (path, placed) = (self.path.clone(), self.placed.clone());
        Ok(JournalFile { path, slot: self.slot, bytes: 0, device: self.device.clone(), placed })
    }

    /// Name, in errors, of a journal file that was not found: its slot is not known.
    pub fn nameless(dir: &Directory, number: u64) -> PathBuf {
        dir.join(format!("journal (file {number})"))
    }

    /// Its head, if it has one, and the file that the record behind the head says it is of, if
    /// there is one.
    pub fn begin(&self) -> Result<(Option<FileHead>, Option<u64>)> {
        if self.bytes < (FILE_HEAD + BLOCK) as u64 {
            return Ok((None, None));
        }
        let mut buf = AlignedBuf::new(FILE_HEAD + BLOCK);
        self.read(0, &mut buf)?;
        Ok((FileHead::decode(&buf), record::peek(&buf[FILE_HEAD..]).map(|r| r.file)))
    }

    /// Fills an aligned buffer from a multiple of [`BLOCK`].
    pub fn read(&self, offset: u64, buf: &mut AlignedBuf) -> Result<()> {
        debug_assert!(offset.is_multiple_of(BLOCK as u64), "the journal is read by blocks");
        let read = self.device.read_at(&mut [IoSliceMut::new(buf)], offset);
        read.map_err(StoreError::device(&self.path, "read the journal"))
    }

    /// Writes an aligned buffer to a multiple of [`BLOCK`].
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        assert!(offset.is_multiple_of(BLOCK as u64), "the journal is written by blocks");
        assert!(bytes.len().is_multiple_of(BLOCK), "only whole blocks are written");
        let written = self.device.write_at(&[IoSlice::new(bytes)], offset);
        written.map_err(StoreError::device(&self.path, "write the journal"))
    }

    /// Makes what was written durable.
    pub fn sync(&self) -> Result<()> {
        self.device.sync().map_err(StoreError::device(&self.path, "sync the journal"))
    }
}

impl std::fmt::Debug for JournalFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JournalFile({})", self.path.display())
    }
}
