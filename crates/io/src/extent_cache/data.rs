//! The data file: objects in slots, with a checksum for each 32nd of a slot (64 KiB of 2 MiB).
//!
//! | byte of the file                | bytes      | holds                              |
//! |---------------------------------|------------|------------------------------------|
//! | 0                               | 4096       | preamble, zeros                    |
//! | 4096 + n (4096 + `slot_bytes`)  | 4096       | head of slot n                     |
//! | … + 4096                        | slot_bytes | the object, and bytes of before    |
//!
//! | byte of a slot's head | bytes | holds                                            |
//! |-----------------------|-------|--------------------------------------------------|
//! | 0                     | 16    | XXH3-128 of the object's key                     |
//! | 16                    | 8     | generation                                       |
//! | 24                    | 8     | bytes of the object                              |
//! | 32                    | 32 × 8 | XXH3-64 of each piece; of no bytes where it ends before |
//! | 288                   | 8     | XXH3-64 of bytes 0 to 287                        |
//!
//! Nothing is synced. After a power cut a slot may hold anything; its checksums tell.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use twox_hash::XxHash3_64;

use super::key::KeyHash;
use super::preamble::number;
use super::record::HeldObject;
use super::view::FoundSlot;

/// Pieces of a slot that have checksums of their own.
pub(super) const PIECES: usize = 32;
/// Bytes before the first slot, and before the bytes of each.
pub(super) const HEAD_BYTES: u64 = 4096;
const SUMS_AT: usize = 32;
const HEAD_SUM_AT: usize = SUMS_AT + PIECES * 8;
const USED_HEAD_BYTES: usize = HEAD_SUM_AT + 8;

/// See the head of the file.
pub(super) struct DataFile {
    file: File,
    slot_bytes: u32,
}

/// The head of a slot.
#[derive(Debug, PartialEq, Eq)]
struct SlotHead {
    object: HeldObject,
    generation: u64,
    sums: [u64; PIECES],
}

impl SlotHead {
    fn of(object: HeldObject, generation: u64, bytes: &[u8], piece_bytes: usize) -> SlotHead {
        let mut sums = [XxHash3_64::oneshot(&[]); PIECES];
        for (sum, piece) in sums.iter_mut().zip(bytes.chunks(piece_bytes)) {
            *sum = XxHash3_64::oneshot(piece);
        }
        SlotHead { object, generation, sums }
    }

    fn encode(&self) -> [u8; HEAD_BYTES as usize] {
        let mut bytes = [0; HEAD_BYTES as usize];
        bytes[..16].copy_from_slice(&self.object.key.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.generation.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.object.len.to_le_bytes());
        for (place, sum) in bytes[SUMS_AT..HEAD_SUM_AT].chunks_mut(8).zip(self.sums) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
        let sum = XxHash3_64::oneshot(&bytes[..HEAD_SUM_AT]);
        bytes[HEAD_SUM_AT..USED_HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads [`USED_HEAD_BYTES`]; `None`: they are damaged.
    fn decode(bytes: &[u8]) -> Option<SlotHead> {
        if number(bytes, HEAD_SUM_AT) != XxHash3_64::oneshot(&bytes[..HEAD_SUM_AT]).to_le_bytes() {
            return None;
        }
        let key = KeyHash(u128::from_le_bytes(number(bytes, 0)));
        let len = u32::from_le_bytes(number(bytes, 24));
        let generation = u64::from_le_bytes(number(bytes, 16));
        let sums = std::array::from_fn(|at| u64::from_le_bytes(number(bytes, SUMS_AT + at * 8)));
        Some(SlotHead { object: HeldObject { key, len }, generation, sums })
    }
}

impl DataFile {
    pub fn new(file: File, slot_bytes: u32) -> DataFile {
        DataFile { file, slot_bytes }
    }

    pub fn slot_bytes(&self) -> u32 {
        self.slot_bytes
    }

    fn piece_bytes(&self) -> usize {
        self.slot_bytes as usize / PIECES
    }

    fn start(&self, slot: u32) -> u64 {
        bytes_for(slot, self.slot_bytes)
    }

    /// Gives up the bytes beyond those of `slots`.
    pub fn trim(&self, slots: u32) -> io::Result<()> {
        trim_data(&self.file, slots, self.slot_bytes)
    }

    /// Writes an object into a slot whose lock the caller holds.
    pub fn write(&self, slot: u32, object: HeldObject, generation: u64, bytes: &[u8]) -> io::Result<()> {
        let head = SlotHead::of(object, generation, bytes, self.piece_bytes());
        self.file.write_all_at(&head.encode(), self.start(slot))?;
        self.file.write_all_at(bytes, self.start(slot) + HEAD_BYTES)
    }

    /// Reads bytes of an object that ends no sooner, and verifies the pieces they lie in, but for
    /// those verified before. Returns a bit for each piece that it found right; `None`: these are
    /// not the bytes of the object.
    pub fn read(&self, found: &FoundSlot, offset: u64, buf: &mut [u8]) -> io::Result<Option<u32>> {
        match self.read_pieces(found, offset, buf) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            other => other,
        }
    }

    fn read_pieces(&self, found: &FoundSlot, offset: u64, buf: &mut [u8]) -> io::Result<Option<u32>> {
        let Some(last_byte) = (buf.len() as u64).checked_sub(1) else { return Ok(Some(0)) };
        let piece_bytes = self.piece_bytes() as u64;
        let (first, last) = (offset / piece_bytes, (offset + last_byte) / piece_bytes);
        let pieces = (u32::MAX >> (31 - (last - first))) << first;
        let bytes_at = self.start(found.slot) + HEAD_BYTES;
        if pieces & !found.verified == 0 {
            self.file.read_exact_at(buf, bytes_at + offset)?;
            return Ok(Some(0));
        }
        let Some(head) = self.head(found)? else { return Ok(None) };
        let sums = &head.sums[first as usize..];
        let (start, end) = (first * piece_bytes, ((last + 1) * piece_bytes).min(u64::from(found.object.len)));
        let len = (end - start) as usize;
        if len == buf.len() {
            self.file.read_exact_at(buf, bytes_at + start)?;
            return Ok(self.are_right(buf, sums).then_some(pieces));
        }
        let mut whole = vec![0; len];
        self.file.read_exact_at(&mut whole, bytes_at + start)?;
        buf.copy_from_slice(&whole[(offset - start) as usize..][..buf.len()]);
        Ok(self.are_right(&whole, sums).then_some(pieces))
    }

    fn are_right(&self, pieces: &[u8], sums: &[u64]) -> bool {
        pieces.chunks(self.piece_bytes()).zip(sums).all(|(piece, sum)| XxHash3_64::oneshot(piece) == *sum)
    }

    /// The head of a slot, if it is that of the object and generation.
    fn head(&self, found: &FoundSlot) -> io::Result<Option<SlotHead>> {
        let mut bytes = [0; USED_HEAD_BYTES];
        self.file.read_exact_at(&mut bytes, self.start(found.slot))?;
        let head = SlotHead::decode(&bytes);
        Ok(head.filter(|head| head.object == found.object && head.generation == found.generation))
    }
}

/// Length of a data file with so many slots.
pub(super) fn bytes_for(slots: u32, slot_bytes: u32) -> u64 {
    HEAD_BYTES + u64::from(slots) * (HEAD_BYTES + u64::from(slot_bytes))
}

/// Cuts a data file that is longer than its slots need.
pub(super) fn trim_data(file: &File, slots: u32, slot_bytes: u32) -> io::Result<()> {
    let most = bytes_for(slots, slot_bytes);
    if file.metadata()?.len() > most { file.set_len(most) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_object_come_back_and_bent_pieces_do_not() {
        let file = tempfile::tempfile().unwrap();
        let data = DataFile::new(file.try_clone().unwrap(), 3200);
        let bytes: Vec<u8> = (0..3111).map(|n| (n * 7) as u8).collect();
        let object = HeldObject { key: KeyHash::of("a"), len: 3111 };
        data.write(2, object, 9, &bytes).unwrap();
        let found = FoundSlot { slot: 2, generation: 9, object, verified: 0 };
        let mut buf = vec![0; 3111];
        for (offset, len, pieces) in
            [(0, 3111, u32::MAX), (0, 1, 1), (99, 2, 3), (3100, 11, 1 << 31), (3050, 61, 3 << 30), (5, 0, 0)]
        {
            assert_eq!(data.read(&found, offset, &mut buf[..len]).unwrap(), Some(pieces), "{offset}, {len}");
            assert_eq!(buf[..len], bytes[offset as usize..][..len]);
        }
        let others = [
            FoundSlot { generation: 8, ..found },
            FoundSlot { slot: 1, ..found },
            FoundSlot { slot: 3, ..found },
            FoundSlot { object: HeldObject { key: KeyHash::of("b"), ..object }, ..found },
        ];
        assert!(others.iter().all(|other| data.read(other, 0, &mut buf[..1]).unwrap().is_none()));
        // A bent byte is in one piece of a hundred bytes.
        file.write_all_at(&[bytes[1234] ^ 1], bytes_for(2, 3200) + HEAD_BYTES + 1234).unwrap();
        assert_eq!(data.read(&found, 1199, &mut buf[..2]).unwrap(), None);
        assert_eq!(data.read(&found, 1100, &mut buf[..100]).unwrap(), Some(1 << 11));
        let verified = FoundSlot { verified: 1 << 12, ..found };
        assert_eq!(data.read(&verified, 1234, &mut buf[..1]).unwrap(), Some(0), "once is enough");
        data.trim(2).unwrap();
        assert_eq!(data.read(&found, 0, &mut buf[..1]).unwrap(), None);
    }
}
