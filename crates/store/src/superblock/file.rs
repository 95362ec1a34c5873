//! The file of the super-block: two slots, each twice.
//!
//! 1. Slot s begins at byte s · 8 KiB, its second copy 64 KiB behind it, so that one bad place
//!    of a device takes one of them.
//! 2. *Writing* a state writes both copies of its slot, then syncs once. One sync is enough:
//!    until it returns the other slot, which is not touched, has the state before in both of
//!    its copies, and any whole copy of the new state may be opened, because all that it refers
//!    to was made durable before. Whatever a cut leaves of the two copies, one of these two
//!    states opens.
//! 3. *Opening* takes the valid copy with the highest sequence. A copy of its slot that does
//!    not have that state is written again by the next write.
//!
//! A database of format 3 has the first copies only. The first write makes the file longer
//! (before it writes anything else: a full disk is noticed while the old state is whole). When the
//! new state is durable, it clears the old slot of any older format: no older program may open it
//! then.

use std::io::{IoSlice, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_io::{Access, Device};

use crate::error::{Result, StoreError};
use crate::format::version::FORMAT;
use crate::settings::opener::{self, Caching, Directory, FileOpener, Placed};
use crate::superblock::{FILE_NAME, SLOT_BYTES, SuperBlock, UNFINISHED_NAME, Unusable, format_of};

/// Slots, and copies of each.
const SLOTS: u64 = 2;
/// See [`SLOTS`].
pub const COPIES: u64 = 2;
/// Bytes from a copy to the next one.
pub const COPY_DISTANCE: u64 = 64 << 10;
/// Bytes of the file.
const FILE_BYTES: u64 = (COPIES - 1) * COPY_DISTANCE + SLOTS * SLOT_BYTES as u64;

type Slot = Box<[u8; SLOT_BYTES]>;

/// The open super-block file.
pub struct SuperBlockFile {
    path: PathBuf,
    device: Arc<dyn Device>,
    placed: Option<Placed>,
    /// Extra work of the next write.
    first: Mutex<First>,
}

/// Work of the next write beside the new state.
#[derive(Default)]
struct First {
    /// Makes the file as long as it must be.
    lengthen: bool,
    /// Writes this copy, at this offset, again: it does not have the newest state.
    heal: Option<(u64, Slot)>,
    /// Clears this slot afterwards, both copies: it is of an older format.
    clear: Option<u64>,
}

/// Result of opening.
pub(crate) struct Opened {
    pub file: SuperBlockFile,
    /// The newest state.
    pub block: SuperBlock,
    /// Worth a line in the log.
    pub notice: Option<String>,
    /// Neither copy of the other slot can be used, so a newer state may be lost: added to errors
    /// that this state leads to.
    pub doubt: Option<String>,
}

/// One of the four places a state may be.
struct Copy {
    slot: u64,
    offset: u64,
    bytes: Slot,
    state: std::result::Result<SuperBlock, Unusable>,
}

impl SuperBlockFile {
    /// Makes the file without a state: it becomes a database's with the first
    /// [`SuperBlockFile::write`].
    pub fn create(dir: &Path, files: Option<&FileOpener>) -> Result<Self> {
        Self::create_as(&Directory::open(dir, files)?, FILE_NAME)
    }

    /// As [`SuperBlockFile::create`], but under the name of an unfinished one, except on simulated
    /// disks, which have no names.
    pub(crate) fn create_unfinished(dir: &Arc<Directory>) -> Result<Self> {
        Self::create_as(dir, if dir.is_real() { UNFINISHED_NAME } else { FILE_NAME })
    }

    fn create_as(dir: &Arc<Directory>, name: &str) -> Result<Self> {
        let path = dir.join(FILE_NAME);
        let device = match dir.device(Path::new(name), Access::CreateNew, Caching::Buffered) {
            Err(e) if e.errno() == Some(libc::EEXIST) => {
                return Err(StoreError::Exists { path: dir.path().to_path_buf() });
            }
            other => other.map_err(StoreError::device(&path, "create the super-block"))?,
        };
        let placed = Placed::from_device(dir, Path::new(name), &*device);
        let this = SuperBlockFile { path, device, placed, first: Mutex::default() };
        this.lengthen(0)?;
        Ok(this)
    }

    /// The file and its name.
    pub(crate) fn take_placed(&mut self) -> Option<Placed> {
        self.placed.take()
    }

    /// Writes zeros from `from` to the end of the file, so that no later write needs room.
    fn lengthen(&self, from: u64) -> Result<()> {
        let zeros = vec![0; (FILE_BYTES - from) as usize];
        self.device
            .write_at(&[IoSlice::new(&zeros)], from)
            .and_then(|()| self.device.sync())
            .map_err(StoreError::device(&self.path, "extend the super-block"))
    }

    /// Opens the file for writing and reads the newest valid state.
    #[cfg(test)]
    pub(crate) fn open(dir: &Path) -> Result<Opened> {
        Self::open_as(&Directory::open(dir, None)?, Access::ReadWrite)
    }

    /// Reads the newest valid state of a database that others may have open.
    pub fn peek(dir: &Path) -> Result<SuperBlock> {
        if !dir.is_dir() {
            return Err(StoreError::NotADatabase {
                path: dir.to_path_buf(),
                why: "no such directory".into(),
            });
        }
        Ok(Self::open_as(&Directory::open(dir, None)?, Access::Read)?.block)
    }

    /// Opens the file and reads the newest valid state.
    pub(crate) fn open_as(dir: &Arc<Directory>, access: Access) -> Result<Opened> {
        let path = dir.join(FILE_NAME);
        let device = match dir.device(Path::new(FILE_NAME), access, Caching::Buffered) {
            Err(e) if opener::is_missing(&e) => {
                let (path, why) = (dir.path().to_path_buf(), "it has no super-block".into());
                return Err(StoreError::NotADatabase { path, why });
            }
            other => other.map_err(StoreError::device(&path, "open the super-block"))?,
        };
        let placed = Placed::from_device(dir, Path::new(FILE_NAME), &*device);
        let file = SuperBlockFile { path, device, placed, first: Mutex::default() };
        let len = file.device.len().map_err(StoreError::device(&file.path, "read the super-block"))?;
        let mut copies = Vec::new();
        for offset in (0..COPIES).flat_map(|c| (0..SLOTS).map(move |s| place(s, c))) {
            let bytes = file.read_slot(offset, len)?;
            let slot = offset % COPY_DISTANCE / SLOT_BYTES as u64;
            copies.push(Copy { slot, offset, state: SuperBlock::decode(&bytes), bytes });
        }
        file.choose(copies, len)
    }

    /// A slot's bytes; what lies beyond the end of the file reads as zero and so is not valid.
    fn read_slot(&self, begin: u64, len: u64) -> Result<Slot> {
        let mut s = Box::new([0; SLOT_BYTES]);
        let there = len.saturating_sub(begin).min(SLOT_BYTES as u64) as usize;
        if there > 0 {
            self.device
                .read_at(&mut [IoSliceMut::new(&mut s[..there])], begin)
                .map_err(StoreError::device(&self.path, "read the super-block"))?;
        }
        Ok(s)
    }

    /// The newest state, what the next write must mend, and what is worth saying.
    fn choose(mut self, copies: Vec<Copy>, len: u64) -> Result<Opened> {
        let newer = copies.iter().find_map(|c| match c.state {
            Err(Unusable::Format(found)) if found > FORMAT => Some(found),
            _ => None,
        });
        let states = copies.iter().enumerate().filter_map(|(i, c)| Some((i, c.state.as_ref().ok()?)));
        let newest = states.max_by_key(|(i, s)| (s.sequence, std::cmp::Reverse(*i)));
        let Some((newest, block)) = newest.filter(|_| newer.is_none()) else {
            return Err(self.none_usable(&copies));
        };
        let (newest, block) = (&copies[newest], block.clone());
        let is_old = format_of(&newest.bytes) < FORMAT;
        let (own, other): (Vec<&Copy>, Vec<&Copy>) = copies.iter().partition(|c| c.slot == newest.slot);
        let differs = |c: &&&Copy| c.state.as_ref() != Ok(&block);
        let heal = own.iter().find(differs).filter(|_| !is_old).map(|c| (c.offset, newest.bytes.clone()));
        let clear = is_old.then_some(newest.slot);
        *self.first.get_mut() = First { lengthen: len < FILE_BYTES, heal, clear };
        let notice = self.notice(&copies, is_old);
        let doubt = self.doubt(&other, &block);
        Ok(Opened { file: self, block, notice, doubt })
    }

    /// A slot that was never written is all zero and needs no mention.
    fn notice(&self, copies: &[Copy], is_old: bool) -> Option<String> {
        let used = |slot: u64| copies.iter().any(|c| c.slot == slot && c.state != Err(Unusable::Empty));
        let rotten = copies.iter().filter(|c| match &c.state {
            Err(Unusable::Empty) => used(c.slot) && !is_old,
            Err(_) => true,
            Ok(_) => false,
        });
        let rotten: Vec<String> = rotten
            .map(|c| format!("the one at byte {}: {}", c.offset, c.state.as_ref().expect_err("unusable")))
            .collect();
        (!rotten.is_empty()).then(|| {
            format!(
                "{}: not every copy of the super-block can be used ({}); the newest good one was opened",
                self.path.display(),
                rotten.join("; ")
            )
        })
    }

    /// Why a state newer than `block` may have been lost, if so.
    fn doubt(&self, other: &[&Copy], block: &SuperBlock) -> Option<String> {
        let unusable = |c: &&&Copy| matches!(&c.state, Err(why) if *why != Unusable::Empty);
        let bad = other.iter().find(unusable)?;
        let none = other.iter().all(|c| c.state.is_err());
        none.then(|| {
            format!(
                "no copy of one of its two states can be used (byte {}: {}), and the other one, number {}, leads to this",
                bad.offset,
                bad.state.as_ref().expect_err("unusable"),
                block.sequence
            )
        })
    }

    fn none_usable(&self, copies: &[Copy]) -> StoreError {
        let path = self.path.clone();
        let why = |c: &Copy| c.state.clone().err();
        let format = copies.iter().find_map(|c| match c.state {
            Err(Unusable::Format(found)) => Some(found),
            _ => None,
        });
        if let Some(found) = format {
            return StoreError::Format { path, found, expected: FORMAT };
        }
        let is_other = |why: Unusable| matches!(why, Unusable::Empty | Unusable::NoMagic);
        if copies.iter().filter_map(why).all(is_other) {
            let why = "it has no state: not a super-block, or of a copy that was not finished";
            return StoreError::NotADatabase { path, why: why.into() };
        }
        let all: Vec<String> =
            copies.iter().filter_map(|c| Some(format!("byte {}: {}", c.offset, why(c)?))).collect();
        let why = format!("no copy of either state of the super-block can be used ({})", all.join("; "));
        StoreError::Corrupt { path, why }
    }

    /// Makes sure that the next [`SuperBlockFile::write`] needs no room. When it fails nothing
    /// is in doubt.
    pub fn make_room(&self) -> Result<()> {
        let mut first = self.first.lock();
        if first.lengthen {
            let len = self.device.len().map_err(StoreError::device(&self.path, "look at the super-block"))?;
            self.lengthen(len.min(FILE_BYTES))?;
            first.lengthen = false;
        }
        Ok(())
    }

    /// Writes the state into both copies of its slot and syncs them. When this returns, the
    /// state is the one that opens.
    pub fn write(&self, block: &SuperBlock) -> Result<()> {
        let bytes = block.encode()?;
        self.make_room()?;
        let mut first = self.first.lock();
        if let Some((offset, state)) = &first.heal {
            self.put(*offset, &state[..])?;
        }
        for copy in 0..COPIES {
            self.put(place(block.sequence % SLOTS, copy), &bytes)?;
        }
        self.sync()?;
        first.heal = None;
        if let Some(old) = first.clear {
            if old != block.sequence % SLOTS {
                for copy in 0..COPIES {
                    self.put(place(old, copy), &[0; SLOT_BYTES])?;
                }
                self.sync()?;
            }
            first.clear = None;
        }
        Ok(())
    }

    fn put(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let written = self.device.write_at(&[IoSlice::new(bytes)], offset);
        written.map_err(StoreError::device(&self.path, "write the super-block"))
    }

    /// Makes what it says durable.
    pub fn sync(&self) -> Result<()> {
        self.device.sync().map_err(StoreError::device(&self.path, "sync the super-block"))
    }
}

/// Where a copy of a slot begins.
pub(crate) fn place(slot: u64, copy: u64) -> u64 {
    copy * COPY_DISTANCE + slot * SLOT_BYTES as u64
}

impl std::fmt::Debug for SuperBlockFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SuperBlockFile({})", self.path.display())
    }
}
