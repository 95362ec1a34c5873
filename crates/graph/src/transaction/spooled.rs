//! A document taken to its end before it is parsed, in memory where it is short, else in temporary
//! space. Another machine may take its time with it: turns to parse are few, and others wait for
//! them.

use std::io::{self, Read};

use snowmelt_store::{Reservation, StoreError, TempSpace};

use crate::database::GraphDatabase;
use crate::input::bounded::BoundedText;
use crate::input::cancelled;
use crate::input::error::LoadError;
use crate::input::source::Source;
use crate::progress::{ChangePhase, ChangeWatch};

/// Bytes kept in memory, and bytes read from temporary space at once.
const PIECE_BYTES: usize = 32 << 10;

impl GraphDatabase {
    /// Takes a document to its end, which has at most so many bytes; the phase is
    /// [`ChangePhase::Reading`] and counts them. `name` is for messages.
    ///
    /// # Errors
    /// Fails if the document cannot be read or is too long, if there is no memory or room for it,
    /// and if interrupted.
    pub fn spool(
        &self,
        name: String,
        read: impl Read,
        most_bytes: Option<u64>,
        watch: ChangeWatch<'_>,
    ) -> Result<Source, LoadError> {
        watch.progress.enter(ChangePhase::Reading);
        let mut spooled = Spooled::new(self)?;
        let mut read = BoundedText::new(read, most_bytes.unwrap_or(u64::MAX));
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            cancelled(watch.interrupt)?;
            match read.read(&mut buffer) {
                Ok(0) => break,
                Ok(bytes) => {
                    spooled.append(self, &buffer[..bytes])?;
                    watch.progress.add(bytes as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) if watch.interrupt.is_set() => return Err(LoadError::Cancelled),
                Err(source) => return Err(LoadError::Input { file: name, source }),
            }
        }
        Ok(Source::Reader { name, read: Box::new(spooled) })
    }
}

/// A document that has come whole, or is coming.
struct Spooled {
    /// its begin, and later the piece that is being read
    piece: Vec<u8>,
    /// of it, that have been read
    taken: usize,
    /// the rest
    space: Option<TempSpace>,
    /// bytes there, and those that have been read
    len: u64,
    at: u64,
    _memory: Reservation,
}

impl Spooled {
    fn new(database: &GraphDatabase) -> Result<Self, LoadError> {
        /// Its piece, the one that comes, and what is gathered before it is written.
        const BYTES: usize = 2 * PIECE_BYTES + TempSpace::BUFFER_BYTES;
        let budget = database.database().memory();
        // many may be coming: an eighth of the memory is for queries that are about to begin
        let memory = budget.reserve_leaving("a document", BYTES as u64, budget.total() / 8)?;
        Ok(Self { piece: Vec::new(), taken: 0, space: None, len: 0, at: 0, _memory: memory })
    }

    fn append(&mut self, database: &GraphDatabase, bytes: &[u8]) -> Result<(), StoreError> {
        if self.space.is_none() && self.piece.len() + bytes.len() <= PIECE_BYTES {
            self.piece.extend_from_slice(bytes);
            return Ok(());
        }
        let space = match &self.space {
            Some(space) => space,
            None => self.space.insert(database.database().temp_space()?),
        };
        space.append(&[bytes])?;
        self.len += bytes.len() as u64;
        Ok(())
    }
}

impl Read for Spooled {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len()
            && self.at < self.len
            && let Some(space) = &self.space
        {
            let bytes = (self.len - self.at).min(PIECE_BYTES as u64) as usize;
            let read = space.read(self.at, bytes).map_err(io::Error::other)?;
            self.piece.clear();
            self.piece.extend_from_slice(&read);
            self.taken = 0;
            self.at += bytes as u64;
        }
        let bytes = (&self.piece[self.taken..]).read(buf)?;
        self.taken += bytes;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use snowmelt_database::OpenOptions;

    use super::*;
    use crate::progress::ChangeProgress;

    fn read_back(source: Source) -> Vec<u8> {
        let Source::Reader { mut read, .. } = source else { panic!("it is read") };
        let mut bytes = Vec::new();
        read.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn documents_of_any_length_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let open =
            OpenOptions { memory_bytes: 64 << 20, direct: false, extent_pages: 8, ..OpenOptions::default() };
        let db = GraphDatabase::create(&dir.path().join("db"), &[], &open).unwrap();
        let (progress, before) = (ChangeProgress::default(), db.database().memory().used());
        for len in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES + 7] {
            let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let go_on = AtomicBool::new(false);
            let watch = ChangeWatch { interrupt: &go_on, progress: &progress };
            // in small parts, as they come over a network
            let parts = io::BufReader::with_capacity(1000, &bytes[..]);
            let spooled = db.spool("x".to_owned(), parts, Some(len as u64), watch).unwrap();
            assert_eq!(progress.now(), Some((ChangePhase::Reading, len as u64)));
            assert!(db.database().memory().used() > before, "it is counted");
            assert!(read_back(spooled) == bytes, "{len} bytes");
            assert_eq!(db.database().memory().used(), before);
            if len > 0 {
                let longer = db.spool("x".to_owned(), &bytes[..], Some(len as u64 - 1), watch);
                assert!(matches!(longer, Err(LoadError::Input { .. })), "{len} bytes");
            }
            go_on.store(true, Ordering::Relaxed);
            let stopped = db.spool("x".to_owned(), &bytes[..], None, watch);
            assert!(matches!(stopped, Err(LoadError::Cancelled)));
        }
    }
}
