//! A request body taken to its end: in memory while it is small, then in a file that has no name.

use std::fs::{File, OpenOptions};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

/// Bytes kept in memory.
const MEMORY_BYTES: usize = 4 << 20;

/// Where a body goes.
pub enum Spool {
    Memory(Vec<u8>),
    File(File),
}

/// A whole body, to be read from its begin.
pub enum Spooled {
    Memory(Cursor<Vec<u8>>),
    File(File),
}

impl Spool {
    pub fn new() -> Self {
        Spool::Memory(Vec::new())
    }

    /// Appends; may block on a file.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Spool::Memory(memory) if memory.len() + bytes.len() <= MEMORY_BYTES => {
                memory.extend_from_slice(bytes);
                Ok(())
            }
            Spool::Memory(memory) => {
                let mut file = nameless()?;
                file.write_all(memory)?;
                file.write_all(bytes)?;
                *self = Spool::File(file);
                Ok(())
            }
            Spool::File(file) => file.write_all(bytes),
        }
    }

    /// Ends it.
    pub fn finish(self) -> io::Result<Spooled> {
        Ok(match self {
            Spool::Memory(memory) => Spooled::Memory(Cursor::new(memory)),
            Spool::File(mut file) => {
                file.seek(SeekFrom::Start(0))?;
                Spooled::File(file)
            }
        })
    }
}

impl Read for Spooled {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Spooled::Memory(memory) => memory.read(buf),
            Spooled::File(file) => file.read(buf),
        }
    }
}

/// A temporary file that goes when it is closed.
fn nameless() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("snowmelt-body-{}", uuid::Uuid::new_v4()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_bodies_come_back() {
        for parts in [1, 3, 100] {
            let part: Vec<u8> = (0..100_000).map(|i| (i % 251) as u8).collect();
            let mut spool = Spool::new();
            (0..parts).for_each(|_| spool.write(&part).unwrap());
            assert_eq!(matches!(spool, Spool::File(_)), parts * part.len() > MEMORY_BYTES);
            let mut back = Vec::new();
            spool.finish().unwrap().read_to_end(&mut back).unwrap();
            assert_eq!(back, part.repeat(parts));
        }
    }
}
