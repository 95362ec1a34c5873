//! A request body taken to its end: in memory while it is small, then in a file that has no
//! name.

use std::fs::{File, OpenOptions};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use hyper::StatusCode;
use snowmelt_database::{MemoryBudget, Reservation};

use crate::refusal::Refusal;

/// Bytes kept in memory.
pub const MEMORY_BYTES: usize = 4 << 20;

/// A place for the bytes of a body.
pub trait Place: Write {
    /// True when so many more bytes are only copied in memory, and not many at that.
    fn is_quick(&self, more: usize) -> bool;
}

/// Where a body goes.
pub struct Spool<'a> {
    memory: Vec<u8>,
    reserved: Option<Reservation>,
    file: Option<File>,
    dir: &'a (dyn Fn() -> PathBuf + Sync),
}

/// A whole body, to be read from its begin.
pub enum Spooled {
    Memory(Cursor<Vec<u8>>, Option<Reservation>),
    File(File),
}

impl<'a> Spool<'a> {
    /// Memory comes from the budget; the file is made in `dir` and has no name there. `dir` is
    /// called only for bodies that need a file, which are few.
    pub fn new(budget: &MemoryBudget, dir: &'a (dyn Fn() -> PathBuf + Sync)) -> Self {
        Self { memory: Vec::new(), reserved: budget.reserve("a request", 0).ok(), file: None, dir }
    }

    /// Appends; may block on a file.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            return file.write_all(bytes);
        }
        if self.fits(bytes.len()) {
            self.memory.extend_from_slice(bytes);
            return Ok(());
        }
        let mut file = nameless(&(self.dir)())?;
        file.write_all(&self.memory)?;
        file.write_all(bytes)?;
        (self.memory, self.reserved, self.file) = (Vec::new(), None, Some(file));
        Ok(())
    }

    /// Whether so many more bytes stay in memory.
    fn fits(&mut self, more: usize) -> bool {
        let len = self.memory.len() + more;
        if len <= self.memory.capacity() {
            return true;
        }
        let capacity = (self.memory.capacity() * 2).max(len).min(MEMORY_BYTES);
        let Some(reserved) = self.reserved.as_mut().filter(|_| len <= MEMORY_BYTES) else { return false };
        if reserved.resize("a request", capacity as u64).is_err() {
            return false;
        }
        self.memory.reserve_exact(capacity - self.memory.len());
        true
    }

    /// Ends it.
    pub fn finish(self) -> io::Result<Spooled> {
        Ok(match self.file {
            None => Spooled::Memory(Cursor::new(self.memory), self.reserved),
            Some(mut file) => {
                file.seek(SeekFrom::Start(0))?;
                Spooled::File(file)
            }
        })
    }
}

impl Place for Spool<'_> {
    fn is_quick(&self, more: usize) -> bool {
        self.file.is_none() && self.memory.len() + more <= MEMORY_BYTES
    }
}

impl Write for Spool<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map_err(|e| unwritten(&e))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The refusal of a body that finds no room on the disk.
pub fn unwritten(error: &io::Error) -> Refusal {
    Refusal::new(StatusCode::INSUFFICIENT_STORAGE, format!("the body cannot be kept: {error}"))
}

/// A text as it was spooled.
pub enum SpooledText {
    /// All of it, and what it takes of the budget as long as it is held.
    Whole(Vec<u8>, Option<Reservation>),
    /// Its begin, and all of it.
    Begin(Vec<u8>, Spooled),
}

impl Spooled {
    /// The bytes of a text of at most `most` that is in memory, or else its begin of `shown` bytes
    /// and the whole.
    pub fn text(mut self, most: u64, shown: u64) -> io::Result<SpooledText> {
        match self {
            Spooled::Memory(memory, reserved) if memory.get_ref().len() as u64 <= most => {
                Ok(SpooledText::Whole(memory.into_inner(), reserved))
            }
            _ => {
                let mut begin = Vec::new();
                (&mut self).take(shown).read_to_end(&mut begin)?;
                if let Err(cut) = std::str::from_utf8(&begin)
                    && cut.error_len().is_none()
                {
                    begin.truncate(cut.valid_up_to());
                }
                match &mut self {
                    Spooled::Memory(memory, _) => memory.set_position(0),
                    Spooled::File(file) => drop(file.seek(SeekFrom::Start(0))?),
                }
                Ok(SpooledText::Begin(begin, self))
            }
        }
    }

    /// Bytes of the body.
    pub fn len(&self) -> io::Result<u64> {
        match self {
            Spooled::Memory(memory, _) => Ok(memory.get_ref().len() as u64),
            Spooled::File(file) => Ok(file.metadata()?.len()),
        }
    }
}

/// The refusal of a request that the memory budget has no room for.
pub fn no_memory(error: &impl std::fmt::Display) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

impl Read for Spooled {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Spooled::Memory(memory, _) => memory.read(buf),
            Spooled::File(file) => file.read(buf),
        }
    }
}

/// A temporary file that goes when it is closed.
fn nameless(dir: &Path) -> io::Result<File> {
    let path = dir.join(format!("upload-{}.tmp", uuid::Uuid::new_v4()));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_bodies_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let budget = MemoryBudget::new(6 << 20);
        // A part is in memory, or its budget is elsewhere, or it is too large.
        for (parts, free) in [(1, u64::MAX), (3, u64::MAX), (3, 0), (100, u64::MAX)] {
            let taken = budget.total().saturating_sub(free);
            let _elsewhere = budget.reserve("a test", taken).unwrap();
            let part: Vec<u8> = (0..100_000).map(|i| (i % 251) as u8).collect();
            let path = || dir.path().to_path_buf();
            let mut spool = Spool::new(&budget, &path);
            (0..parts).for_each(|_| spool.append(&part).unwrap());
            let small = parts * part.len() <= MEMORY_BYTES && free > 0;
            assert_eq!(spool.file.is_none(), small);
            assert!(budget.used() <= taken + MEMORY_BYTES as u64);
            let mut back = Vec::new();
            let mut spooled = spool.finish().unwrap();
            assert_eq!(spooled.len().unwrap(), (parts * part.len()) as u64);
            spooled.read_to_end(&mut back).unwrap();
            assert_eq!(back, part.repeat(parts));
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file has no name");
        }
    }
}
