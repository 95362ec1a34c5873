//! Opening a cache, or making it. Under the lock of the index:
//!
//! 1. A folder without an index must be empty (a file system's `lost+found` aside).
//! 2. The beginnings of both files say of which cache they are. Two different caches, another
//!    format, another length of slots: errors. One that is damaged is written anew from the other.
//! 3. A damaged head of the index, or a lost data file, empties the index.
//! 4. The index gets as many slots as fit into the bytes given: the last to open decides. Files
//!    longer than that are cut.
//!
//! A process that is killed here leaves files that are damaged or too long.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::data::{DataFile, bytes_for, trim_data};
use super::error::CacheError;
use super::header::{IndexHeader, random_word};
use super::index::ExtentIndex;
use super::index_file::{
    LOCK_PATIENCE, empty_index, index_bytes, read_header, resize_index, take_index_lock,
};
use super::preamble::{FORMAT, NoPreamble, OF_DATA, OF_INDEX, PREAMBLE_BYTES, Preamble};
use super::record::RECORD_BYTES;
use crate::notice::notice;
use crate::system::folder::Folder;
use crate::time::clock::Clock;

/// Name of the index.
const INDEX_NAME: &str = "snowmelt-extents.index";
/// Name of the data file.
const DATA_NAME: &str = "snowmelt-extents.data";
/// Most bytes of a slot.
const MOST_SLOT_BYTES: u32 = 1 << 30;

/// An opened cache.
pub(super) struct OpenedCache {
    pub index: ExtentIndex,
    pub data: DataFile,
    /// Files that were found damaged.
    pub damaged: u64,
}

/// Both files, and how they are called in messages.
struct CacheFiles {
    index: File,
    index_path: PathBuf,
    data: File,
    data_path: PathBuf,
}

/// Opens or makes the cache of at most `bytes` in a folder, which is made, too.
pub(super) fn open_cache(
    dir: &Path,
    bytes: u64,
    slot_bytes: u32,
    clock: &Clock,
) -> Result<OpenedCache, CacheError> {
    let slots = slots_in(bytes, slot_bytes)?;
    let files = open_files(dir)?;
    let mut damaged = 0;
    let preamble = settle(dir, &files, [slot_bytes, slots], clock, &mut damaged)?;
    let index = ExtentIndex::new(files.index, files.index_path, preamble, slots, clock.clone());
    Ok(OpenedCache { index, data: DataFile::new(files.data, slot_bytes), damaged })
}

/// Steps 2 to 4, under the lock of the index.
fn settle(
    dir: &Path,
    files: &CacheFiles,
    [slot_bytes, slots]: [u32; 2],
    clock: &Clock,
    damaged: &mut u64,
) -> Result<Preamble, CacheError> {
    let held = take_index_lock(&files.index, clock)
        .map_err(|source| CacheError::NoLocks { path: files.index_path.clone(), source })?;
    let Some(_held) = held else {
        let path = files.index_path.clone();
        return Err(CacheError::Locked { path, seconds: LOCK_PATIENCE.as_secs() });
    };
    let preamble = agree(dir, files, [slot_bytes, slots], damaged)?;
    let mut header = sound_header(files, preamble, slots, damaged)?;
    resize_index(&files.index, &mut header, slots)
        .map_err(CacheError::os(&files.index_path, "set the length of"))?;
    trim_data(&files.data, slots, slot_bytes).map_err(CacheError::os(&files.data_path, "cut"))?;
    Ok(preamble)
}

/// The slots that fit into so many bytes.
fn slots_in(bytes: u64, slot_bytes: u32) -> Result<u32, CacheError> {
    if slot_bytes == 0 || !slot_bytes.is_multiple_of(32) || slot_bytes > MOST_SLOT_BYTES {
        return Err(CacheError::SlotLength { slot_bytes, most: MOST_SLOT_BYTES });
    }
    let each = bytes_for(1, slot_bytes) - bytes_for(0, slot_bytes) + RECORD_BYTES as u64;
    let fixed = bytes_for(0, slot_bytes) + index_bytes(0);
    match bytes.saturating_sub(fixed) / each {
        0 => Err(CacheError::TooSmall { bytes, least: fixed + each }),
        slots => Ok(slots.min(u64::from(u32::MAX)) as u32),
    }
}

fn open_files(dir: &Path) -> Result<CacheFiles, CacheError> {
    std::fs::create_dir_all(dir).map_err(CacheError::os(dir, "make the folder"))?;
    let folder = Folder::open(dir).map_err(CacheError::os(dir, "open the folder"))?;
    let names = folder.names().map_err(CacheError::os(dir, "read the folder"))?;
    if !names.iter().any(|name| name == INDEX_NAME)
        && let Some(other) =
            names.iter().find(|name| ![DATA_NAME, "lost+found"].map(OsStr::new).contains(&name.as_os_str()))
    {
        let name = other.to_string_lossy().into_owned();
        return Err(CacheError::HoldsOther { folder: dir.to_path_buf(), name });
    }
    let open = |name: &str| {
        let opened = folder.open_file(Path::new(name), OFlags::RDWR | OFlags::CREATE);
        opened.map_err(CacheError::os(&dir.join(name), "open"))
    };
    Ok(CacheFiles {
        index: open(INDEX_NAME)?,
        index_path: dir.join(INDEX_NAME),
        data: open(DATA_NAME)?,
        data_path: dir.join(DATA_NAME),
    })
}

/// The preamble that both files have, or get.
fn agree(
    dir: &Path,
    files: &CacheFiles,
    [slot_bytes, slots]: [u32; 2],
    damaged: &mut u64,
) -> Result<Preamble, CacheError> {
    let of_index = preamble_of(&files.index, &files.index_path, OF_INDEX)?;
    let of_data = preamble_of(&files.data, &files.data_path, OF_DATA)?;
    let found = match (of_index, of_data) {
        (Ok(one), Ok(other)) if one != other => {
            let (index, data) = (files.index_path.clone(), files.data_path.clone());
            return Err(CacheError::TwoCaches { index, data });
        }
        (Ok(found), _) | (_, Ok(found)) => found,
        _ => Preamble { cache: u128::from(random_word()) << 64 | u128::from(random_word()), slot_bytes },
    };
    if found.slot_bytes != slot_bytes {
        let (folder, found) = (dir.to_path_buf(), found.slot_bytes);
        return Err(CacheError::OtherSlots { folder, found, wanted: slot_bytes });
    }
    if let Err(why) = of_data {
        // Before the index: a process killed between leaves a cache whose index is damaged.
        *damaged += u64::from(why == NoPreamble::Damaged);
        let write = files.data.write_all_at(&found.encode(OF_DATA), 0);
        write.map_err(CacheError::os(&files.data_path, "write"))?;
        if why == NoPreamble::Absent && of_index.is_ok() {
            notice(&format!("{} is gone; the extent cache begins anew, empty", files.data_path.display()));
            empty_index(&files.index, found, slots, 1).map_err(CacheError::os(&files.index_path, "write"))?;
        }
    }
    Ok(found)
}

fn preamble_of(
    file: &File,
    path: &Path,
    magic: &[u8; 8],
) -> Result<Result<Preamble, NoPreamble>, CacheError> {
    let len = file.metadata().map_err(CacheError::os(path, "read"))?.len();
    let mut bytes = vec![0; len.min(PREAMBLE_BYTES as u64) as usize];
    file.read_exact_at(&mut bytes, 0).map_err(CacheError::os(path, "read"))?;
    match Preamble::decode(magic, &bytes) {
        Err(NoPreamble::Format(found)) => {
            Err(CacheError::OtherFormat { path: path.to_path_buf(), found, known: FORMAT })
        }
        other => Ok(other),
    }
}

/// The head of the index, which is emptied when that is damaged.
fn sound_header(
    files: &CacheFiles,
    preamble: Preamble,
    slots: u32,
    damaged: &mut u64,
) -> Result<IndexHeader, CacheError> {
    let path = &files.index_path;
    let why = match read_header(&files.index).map_err(CacheError::os(path, "read"))? {
        Ok(header) => return Ok(header),
        Err(why) => why,
    };
    let is_damage = why != NoPreamble::Absent;
    if is_damage {
        notice(&format!("{}: damaged; the extent cache begins anew, empty", path.display()));
        *damaged += 1;
    }
    empty_index(&files.index, preamble, slots, u64::from(is_damage)).map_err(CacheError::os(path, "write"))
}
