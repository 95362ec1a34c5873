//! The parts of a file that have been written.
//!
//! A part that was never written (a hole, or room that was only reserved) is read as zeros without
//! the device, however slow that is. The file system names such parts (lseek(2), `SEEK_DATA`);
//! where it does not, all counts as written.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// A file of more parts is measured in the first of them.
const MOST_PARTS: usize = 100_000;

/// Written parts of a file (begin, length), in their order; of a block device all of it.
pub(crate) fn written_parts(path: &Path, len: u64) -> io::Result<Vec<(u64, u64)>> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(vec![(0, len)]);
    }
    let mut parts = Vec::new();
    let mut at = 0;
    while at < len && parts.len() < MOST_PARTS {
        let begin = match rustix::fs::seek(&file, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            Err(Errno::NXIO) => break,
            // The file system does not know.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(vec![(0, len)]),
            Err(e) => return Err(e.into()),
        };
        let end = rustix::fs::seek(&file, SeekFrom::Hole(begin))?.min(len);
        if end <= begin {
            break;
        }
        parts.push((begin, end - begin));
        at = end;
    }
    Ok(parts)
}

/// Bytes of a file that have been written, holes and reserved room left out; of a block device all.
///
/// # Errors
/// The file cannot be opened or asked.
pub fn written_bytes(path: &Path, len: u64) -> io::Result<u64> {
    Ok(written_parts(path, len)?.iter().map(|(_, bytes)| bytes).sum())
}

/// Blocks of one length in some parts of a file.
pub(crate) struct WrittenBlocks {
    block: u64,
    /// Offset of the first block of a part, and the blocks before it.
    parts: Vec<(u64, u64)>,
    count: u64,
}

impl WrittenBlocks {
    /// Whole blocks at multiples of their length.
    pub(crate) fn new(parts: &[(u64, u64)], block: u64) -> WrittenBlocks {
        let mut all = WrittenBlocks { block, parts: Vec::new(), count: 0 };
        for (begin, len) in parts {
            let (first, end) = (begin.next_multiple_of(block), (begin + len) / block * block);
            if end > first {
                all.parts.push((first, all.count));
                all.count += (end - first) / block;
            }
        }
        all
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The length of one.
    pub(crate) fn len(&self) -> usize {
        self.block as usize
    }

    /// The offset of one of them.
    pub(crate) fn offset(&self, number: u64) -> u64 {
        let part = self.parts.partition_point(|(_, before)| *before <= number) - 1;
        let (first, before) = self.parts[part];
        first + (number - before) * self.block
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn blocks_are_those_that_lie_in_written_parts() {
        let blocks = WrittenBlocks::new(&[(100, 3000), (8192, 4096), (20_000, 100), (24_576, 8192)], 1024);
        let offsets: Vec<u64> = (0..blocks.count()).map(|number| blocks.offset(number)).collect();
        let wanted: Vec<u64> =
            [1024, 2048].into_iter().chain((8..12).chain(24..32).map(|n| n * 1024)).collect();
        assert_eq!(offsets, wanted);
        assert_eq!(WrittenBlocks::new(&[(1, 2046)], 1024).count(), 0);
    }

    #[test]
    fn holes_and_reserved_room_are_not_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let parts = |len| written_parts(file.path(), len).unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        if parts(1 << 20) == [(0, 1 << 20)] {
            eprintln!("skipped: this file system does not tell holes");
            return;
        }
        assert_eq!(parts(1 << 20), []);
        file.as_file().write_all_at(&[1; 65_536], 131_072).unwrap();
        file.as_file().sync_all().unwrap();
        assert_eq!(parts(1 << 20), [(131_072, 65_536)]);
        use rustix::fs::FallocateFlags;
        if rustix::fs::fallocate(file.as_file(), FallocateFlags::empty(), 0, 1 << 20).is_ok() {
            assert_eq!(parts(1 << 20), [(131_072, 65_536)], "room that was reserved");
        }
    }
}
