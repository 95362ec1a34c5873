//! Journal files and their records as bytes.
//!
//! A file begins with a head of 4096 bytes; records follow, each at a multiple of 8. A record's
//! checksum covers everything behind it, so a record is whole or not there; its *sequence* and
//! the checksum of the record before it (*previous*) chain the records across files; *synced*
//! is the highest sequence known durable when it was made.
//!
//! | offset | bytes | file head                                    |
//! |--------|-------|----------------------------------------------|
//! | 0      | 8     | checksum: XXH3-64 of bytes 8..72             |
//! | 8      | 8     | magic `SNOWJRNL`                             |
//! | 16     | 4     | format                                       |
//! | 20     | 4     | reserved                                     |
//! | 24     | 8     | identity of the database                     |
//! | 32     | 8     | file: number of the file, growing            |
//! | 40     | 8     | bytes: length of the file                    |
//! | 48     | 8     | sequence of its first record                 |
//! | 56     | 8     | previous: checksum of the record before that |
//! | 64     | 8     | synced                                       |
//!
//! | offset | bytes | record                                                                     |
//! |--------|-------|----------------------------------------------------------------------------|
//! | 0      | 8     | checksum: XXH3-64 of the rest, seeded with the identity                    |
//! | 8      | 4     | magic `SJRR`                                                               |
//! | 12     | 4     | stored: bytes of the payload that follow                                   |
//! | 16     | 4     | raw: bytes of the payload; more than stored: it is one LZ4 block           |
//! | 20     | 4     | kind: low byte: 1 part of a transaction, 2 its last part, the commit, 3 mark; above it the *life*: drawn at each open, so that a commit tried again after a power loss is not continued by records that were lost with its first try |
//! | 24     | 8     | sequence                                                                   |
//! | 32     | 8     | previous: checksum of the record before                                    |
//! | 40     | 8     | synced                                                                     |
//! | 48     | 8     | transaction                                                                |
//! | 56     | 8     | file                                                                       |
//! | 64     |       | payload                                                                    |

#![allow(missing_docs)] // the tables above

use twox_hash::XxHash3_64;

use crate::superblock::{FORMAT, OLDEST_FORMAT};

/// First bytes of a file behind the checksum.
pub const FILE_MAGIC: [u8; 8] = *b"SNOWJRNL";
/// Bytes before the first record.
pub const FILE_HEAD: usize = 4096;
/// Bytes of the head that carry something.
pub const FILE_HEAD_USED: usize = 72;
/// First bytes of a record behind the checksum.
pub const MAGIC: [u8; 4] = *b"SJRR";
/// Bytes before a record's payload.
pub const HEAD: usize = 64;
/// Records begin at multiples of this.
pub const ALIGN: usize = 8;

/// Bits of a life.
pub const LIFE_BITS: u32 = 24;

/// Byte offsets in the head of a file, compared with docs/src/reference/format.md by a test.
pub mod file_offset {
    pub const CHECKSUM: usize = 0;
    pub const MAGIC: usize = 8;
    pub const FORMAT: usize = 16;
    pub const RESERVED: usize = 20;
    pub const IDENTITY: usize = 24;
    pub const FILE: usize = 32;
    pub const BYTES: usize = 40;
    pub const SEQUENCE: usize = 48;
    pub const PREVIOUS: usize = 56;
    pub const SYNCED: usize = 64;
}

/// Byte offsets in the head of a record, compared with docs/src/reference/format.md by a test.
pub mod offset {
    pub const CHECKSUM: usize = 0;
    pub const MAGIC: usize = 8;
    pub const STORED: usize = 12;
    pub const RAW: usize = 16;
    pub const KIND: usize = 20;
    pub const SEQUENCE: usize = 24;
    pub const PREVIOUS: usize = 32;
    pub const SYNCED: usize = 40;
    pub const TXN: usize = 48;
    pub const FILE: usize = 56;
    pub const PAYLOAD: usize = super::HEAD;
}

/// Meaning of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// Changes of a transaction that goes on.
    Part = 1,
    /// The last changes of a transaction, which make it real.
    Commit = 2,
    /// No changes: says what is synced.
    Mark = 3,
}

/// The head of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHead {
    pub identity: u64,
    pub file: u64,
    pub bytes: u64,
    pub sequence: u64,
    pub previous: u64,
    pub synced: u64,
}

impl FileHead {
    /// The bytes of the head.
    pub fn encode(&self) -> [u8; FILE_HEAD] {
        let mut b = [0; FILE_HEAD];
        b[file_offset::MAGIC..][..8].copy_from_slice(&FILE_MAGIC);
        b[file_offset::FORMAT..][..4].copy_from_slice(&FORMAT.to_le_bytes());
        let fields = [self.identity, self.file, self.bytes, self.sequence, self.previous, self.synced];
        for (i, v) in fields.into_iter().enumerate() {
            b[file_offset::IDENTITY + 8 * i..][..8].copy_from_slice(&v.to_le_bytes());
        }
        let sum = XxHash3_64::oneshot(&b[8..FILE_HEAD_USED]);
        b[..8].copy_from_slice(&sum.to_le_bytes());
        b
    }

    /// Reads a head; `None` when it is not one.
    pub fn decode(b: &[u8]) -> Option<FileHead> {
        let right = b.len() >= FILE_HEAD_USED
            && b[file_offset::MAGIC..][..8] == FILE_MAGIC
            && u64_at(b, 0) == XxHash3_64::oneshot(&b[8..FILE_HEAD_USED])
            && (OLDEST_FORMAT..=FORMAT).contains(&u32_at(b, file_offset::FORMAT));
        let at = |i: usize| u64_at(b, file_offset::IDENTITY + 8 * i);
        right.then(|| FileHead {
            identity: at(0),
            file: at(1),
            bytes: at(2),
            sequence: at(3),
            previous: at(4),
            synced: at(5),
        })
    }
}

/// The head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub checksum: u64,
    pub stored: u32,
    pub raw: u32,
    pub kind: RecordKind,
    pub life: u32,
    pub sequence: u64,
    pub previous: u64,
    pub synced: u64,
    pub txn: u64,
    pub file: u64,
}

impl Head {
    /// Bytes from this record's begin to the next one's.
    pub fn bytes(&self) -> usize {
        record_bytes(self.stored as usize)
    }
}

/// Bytes of a record with `stored` bytes of payload.
pub fn record_bytes(stored: usize) -> usize {
    (HEAD + stored).next_multiple_of(ALIGN)
}

/// A payload ready to be put into a record.
pub struct Packed {
    pub kind: RecordKind,
    pub raw: u32,
    pub stored: Vec<u8>,
}

impl Packed {
    /// Compresses a payload if that makes it smaller.
    pub fn new(kind: RecordKind, payload: Vec<u8>) -> Packed {
        /// Shorter ones are not worth the attempt.
        const WORTH_COMPRESSING: usize = 64;
        let raw = u32::try_from(payload.len()).expect("a part of a transaction is small");
        if payload.len() >= WORTH_COMPRESSING {
            let packed = lz4_flex::block::compress(&payload);
            if packed.len() < payload.len() {
                return Packed { kind, raw, stored: packed };
            }
        }
        Packed { kind, raw, stored: payload }
    }

    /// Bytes of its record.
    pub fn record_bytes(&self) -> usize {
        record_bytes(self.stored.len())
    }
}

/// Where in the chain a record stands.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub identity: u64,
    /// Of [`LIFE_BITS`].
    pub life: u32,
    pub sequence: u64,
    pub previous: u64,
    pub synced: u64,
    pub txn: u64,
    pub file: u64,
}

/// Appends a record and returns its checksum.
pub fn encode(packed: &Packed, link: Link, out: &mut Vec<u8>) -> u64 {
    let start = out.len();
    assert!(link.life >> LIFE_BITS == 0, "a life is of its bits");
    assert!(packed.stored.len() <= packed.raw as usize, "a payload is packed where that makes it smaller");
    out.extend([0; 8]);
    out.extend(MAGIC);
    let kind = packed.kind as u32 | link.life << (32 - LIFE_BITS);
    for v in [packed.stored.len() as u32, packed.raw, kind] {
        out.extend(v.to_le_bytes());
    }
    for v in [link.sequence, link.previous, link.synced, link.txn, link.file] {
        out.extend(v.to_le_bytes());
    }
    out.extend(&packed.stored);
    let sum = XxHash3_64::oneshot_with_seed(link.identity, &out[start + 8..]);
    out[start..start + 8].copy_from_slice(&sum.to_le_bytes());
    debug_assert!(is_found(packed, &link, &out[start..]), "a record is read as it was written");
    out.resize(start + packed.record_bytes(), 0);
    sum
}

/// True when `bytes` begin with this record.
fn is_found(packed: &Packed, link: &Link, bytes: &[u8]) -> bool {
    decode(bytes, link.identity).is_some_and(|(head, stored)| {
        let is_same = (head.kind, head.life, head.raw) == (packed.kind, link.life, packed.raw);
        is_same && head.sequence == link.sequence && stored == packed.stored
    })
}

/// Reads the head of the record at the front of `bytes`, if it looks like one; its checksum is
/// not looked at.
pub fn peek(bytes: &[u8]) -> Option<Head> {
    if bytes.len() < HEAD || bytes[offset::MAGIC..][..4] != MAGIC {
        return None;
    }
    let kind = match bytes[offset::KIND] {
        1 => RecordKind::Part,
        2 => RecordKind::Commit,
        3 => RecordKind::Mark,
        _ => return None,
    };
    let at = |i| u64_at(bytes, i);
    Some(Head {
        checksum: at(offset::CHECKSUM),
        stored: u32_at(bytes, offset::STORED),
        raw: u32_at(bytes, offset::RAW),
        kind,
        life: u32_at(bytes, offset::KIND) >> (32 - LIFE_BITS),
        sequence: at(offset::SEQUENCE),
        previous: at(offset::PREVIOUS),
        synced: at(offset::SYNCED),
        txn: at(offset::TXN),
        file: at(offset::FILE),
    })
}

/// Reads the record at the front of `bytes`: head and stored payload. `None` when there is no
/// whole, sound record of this database.
pub fn decode(bytes: &[u8], identity: u64) -> Option<(Head, &[u8])> {
    let head = peek(bytes)?;
    let whole = bytes.get(..HEAD + head.stored as usize)?;
    let sum = XxHash3_64::oneshot_with_seed(identity, &whole[8..]);
    (sum == head.checksum).then(|| (head, &whole[HEAD..]))
}

/// Makes `payload` the payload of a record; `None` when the stored bytes cannot be unpacked.
pub fn unpack_into(head: &Head, stored: &[u8], payload: &mut Vec<u8>) -> Option<()> {
    /// More than any writer makes: a damaged length must not exhaust memory.
    const MOST: u32 = 1 << 30;
    payload.clear();
    if head.raw == head.stored {
        payload.extend_from_slice(stored);
        return Some(());
    }
    if head.raw > MOST {
        return None;
    }
    payload.resize(head.raw as usize, 0);
    let unpacked = lz4_flex::block::decompress_into(stored, payload).ok()?;
    (unpacked == payload.len()).then_some(())
}

/// The payload of a record; `None` when the stored bytes cannot be unpacked.
pub fn unpack(head: &Head, stored: &[u8]) -> Option<Vec<u8>> {
    let mut payload = Vec::new();
    unpack_into(head, stored, &mut payload).map(|()| payload)
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(b[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_round_trip_and_any_flip_is_seen() {
        let link =
            Link { identity: 77, life: 0xFE_DCBA, sequence: 5, previous: 6, synced: 4, txn: 9, file: 2 };
        for payload in [vec![], vec![1; 1000], (0..200u8).collect()] {
            let mut out = Vec::new();
            let sum = encode(&Packed::new(RecordKind::Commit, payload.clone()), link, &mut out);
            let (head, stored) = decode(&out, 77).unwrap();
            assert_eq!((head.checksum, head.sequence, head.previous, head.synced), (sum, 5, 6, 4));
            assert_eq!((head.txn, head.file, head.kind, head.bytes()), (9, 2, RecordKind::Commit, out.len()));
            assert_eq!(head.life, 0xFE_DCBA);
            assert_eq!(unpack(&head, stored).unwrap(), payload);
            assert!(decode(&out, 78).is_none(), "a record of another database");
            for i in 0..HEAD + stored.len() {
                let mut bad = out.clone();
                bad[i] ^= 4;
                assert!(decode(&bad, 77).is_none(), "byte {i}");
            }
        }
    }

    #[test]
    fn heads_round_trip() {
        let h = FileHead { identity: 1, file: 2, bytes: 3, sequence: 4, previous: 5, synced: 6 };
        let mut b = h.encode();
        assert_eq!(FileHead::decode(&b), Some(h));
        b[40] ^= 1;
        assert_eq!(FileHead::decode(&b), None);
    }
}
