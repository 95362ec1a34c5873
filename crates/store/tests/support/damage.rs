//! Faults that a device can inflict on the bytes of a file.

use crate::support::Random;

/// A fault of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// a bit turned
    Flip,
    /// a sector, a block, a page, or more of zeros
    Zero,
    Truncate,
    Lengthen,
    /// a page as it was before: a lost write
    StalePage,
    /// a sector, a block or the whole file as it was before
    StaleBlock,
    /// what was meant for one place lies at another as well, and the one place has what it had
    /// before
    Misdirected,
    Deleted,
}

pub const FAULTS: [Fault; 8] = [
    Fault::Flip,
    Fault::Zero,
    Fault::Truncate,
    Fault::Lengthen,
    Fault::StalePage,
    Fault::StaleBlock,
    Fault::Misdirected,
    Fault::Deleted,
];

/// A file after a fault.
pub enum Damaged {
    Bytes(Vec<u8>),
    Gone,
}

/// The bytes after a fault; `old` are those of the same file at an earlier time. `None` when
/// the fault cannot befall them or would change nothing.
pub fn damaged(random: &mut Random, fault: Fault, before: &[u8], old: Option<&[u8]>) -> Option<Damaged> {
    let mut bytes = before.to_vec();
    match fault {
        Fault::Flip => {
            let at = in_use(random, &bytes)?;
            bytes[at] ^= 1 << random.below(8);
        }
        Fault::Zero => {
            let range = block(random, &bytes)?;
            bytes[range].fill(0);
        }
        Fault::Truncate => {
            let len = match random.below(4) {
                0 => 0,
                1 => 4096.min(bytes.len()),
                2 => random.below(bytes.len().max(1)),
                _ => random.below(bytes.len() / 4096 + 1) * 4096,
            };
            bytes.truncate(len);
        }
        Fault::Lengthen => {
            let more = [1, 512, 4096, 8192, 64 << 10, 1 << 20][random.below(6)];
            let fill = if random.below(2) == 0 { 0 } else { random.next() as u8 };
            bytes.resize(bytes.len() + more, fill);
        }
        Fault::StalePage => make_stale(random, &mut bytes, old?, 8192)?,
        Fault::StaleBlock => {
            let size = [512, 4096, usize::MAX][random.below(3)];
            make_stale(random, &mut bytes, old?, size)?;
        }
        Fault::Misdirected => misdirect(random, &mut bytes, old)?,
        Fault::Deleted => return Some(Damaged::Gone),
    }
    (bytes != before).then_some(Damaged::Bytes(bytes))
}

/// A byte, more often one that is not zero.
fn in_use(random: &mut Random, bytes: &[u8]) -> Option<usize> {
    if bytes.is_empty() {
        return None;
    }
    let tries: Vec<usize> = (0..20).map(|_| random.below(bytes.len())).collect();
    tries.iter().copied().find(|at| bytes[*at] != 0).or(Some(tries[0]))
}

/// A sector, a block, a page, or everything from one on.
fn block(random: &mut Random, bytes: &[u8]) -> Option<std::ops::Range<usize>> {
    let size = [512, 4096, 8192, 64 << 10][random.below(4)];
    let begin = in_use(random, bytes)? / size * size;
    let end = if random.below(5) == 0 { bytes.len() } else { (begin + size).min(bytes.len()) };
    Some(begin..end)
}

/// Puts a block of `size` as it was before in place, one where that makes a difference;
/// everything when there is no bound.
fn make_stale(random: &mut Random, bytes: &mut Vec<u8>, old: &[u8], size: usize) -> Option<()> {
    if size == usize::MAX {
        *bytes = old.to_vec();
        return Some(());
    }
    let differ: Vec<usize> = (0..bytes.len().min(old.len()) / size)
        .map(|i| i * size)
        .filter(|at| bytes[*at..at + size] != old[*at..at + size])
        .collect();
    let at = *differ.get(random.below(differ.len().max(1)))?;
    bytes[at..at + size].copy_from_slice(&old[at..at + size]);
    Some(())
}

/// Copies the bytes of one place to another; the one place gets the bytes that it had before.
fn misdirect(random: &mut Random, bytes: &mut [u8], old: Option<&[u8]>) -> Option<()> {
    let size = [4096, 8192][random.below(2)];
    let blocks = bytes.len() / size;
    if blocks < 2 {
        return None;
    }
    let (from, to) = (random.below(blocks) * size, random.below(blocks) * size);
    bytes.copy_within(from..from + size, to);
    if let Some(before) = old.and_then(|old| old.get(from..from + size)).filter(|_| from != to) {
        bytes[from..from + size].copy_from_slice(before);
    }
    Some(())
}
