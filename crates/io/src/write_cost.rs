//! The cost of writes on a device, and how writes without a waiter keep out of the way of commits.
//!
//! A commit is a write and a flush. It waits behind the writes that the device has got before it,
//! and behind those in a volatile cache, which its flush has to write out. So writes without a
//! waiter
//!
//! 1. go out few at once: together they take no longer than a part of a commit;
//! 2. are cut into pieces that take no longer;
//! 3. pause for as long as they took, unless there is haste;
//! 4. are flushed before the cache holds more than a part of a commit.

use serde::Serialize;

/// Time of the writes without a waiter that are at the device together, as a part of that of a
/// commit.
const PART: f64 = 0.25;
/// Time that cached writes may add to the next flush, as a part of that of a commit.
const HELD_PART: f64 = 0.5;
/// Shortest and longest piece of a long write, in bytes.
const PIECES: [u64; 2] = [16 << 10, 2 << 20];
/// Longest pause, in nanoseconds: a device that stalled once is not left alone for long.
const MOST_PAUSE_NS: f64 = 1e9;
/// Writes before a flush while the costs of flushes are unknown, and most in any case.
const FIRST_FLUSH: u64 = 32;
const MOST_UNFLUSHED: u64 = 4096;

/// Beliefs about the writes of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct WriteCost {
    /// Time of a small write when nothing else is outstanding, in nanoseconds.
    pub latency_ns: u64,
    /// Device time of one more small write until it is durable, in nanoseconds.
    pub ns_per_request: u64,
    /// Rate of long writes, in bytes per second.
    pub bytes_per_s: u64,
    /// Time of a flush with little to write out, in nanoseconds.
    pub flush_ns: u64,
    /// Time that a write adds to the next flush, in nanoseconds: a part of `ns_per_request`.
    pub deferred_ns: u64,
    /// Flushes that were seen.
    pub flushes: u64,
    /// How often the device was found to be the limit.
    pub learned: u64,
}

/// The part of a device's time for writes without a waiter. It is below a half: on a volume where a
/// lone write takes half of the allowed rate, half of the time would take all of it.
const LEISURE: f64 = 0.4;

/// How much of a device writes without a waiter may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Haste {
    /// This part of its time, below 1.
    Share(f64),
    /// All of it: a caller waits for the end.
    All,
}

impl Haste {
    /// No caller waits.
    pub const LEISURE: Haste = Haste::Share(LEISURE);

    /// The share at which `left_ns` of the device's time are over when `until_ns` have passed.
    pub fn to_be_over(left_ns: f64, until_ns: f64) -> Haste {
        match left_ns / until_ns.max(f64::MIN_POSITIVE) {
            share if share >= 1.0 => Haste::All,
            share => Haste::Share(share.max(LEISURE)),
        }
    }
}

impl WriteCost {
    /// Device time of a write of `bytes` among others, in nanoseconds.
    pub fn request_ns(&self, bytes: u64) -> u64 {
        let transfer = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_s.max(1));
        self.ns_per_request.max(transfer as u64).max(1)
    }

    /// Time of a commit that has the device to itself.
    fn commit_ns(&self) -> f64 {
        (self.latency_ns + self.flush_ns) as f64
    }

    /// Writes of `bytes` that may be at the device together: those that fill it, and no more.
    pub fn window(&self, bytes: u64) -> usize {
        // Deferred time needs no place at the device.
        let ns = self.request_ns(bytes).saturating_sub(self.deferred_ns).max(1);
        (self.latency_ns.div_ceil(ns) as usize).max(1)
    }

    /// Device time of the writes that may go out at once beside commits; of one write at least.
    pub fn at_once_ns(&self) -> u64 {
        (PART * self.commit_ns()) as u64
    }

    /// Length of the pieces of a long write beside commits, in bytes; a multiple of 4 KiB.
    pub fn piece_bytes(&self) -> u64 {
        let bytes = PART * self.commit_ns() * self.bytes_per_s as f64 / 1e9;
        (bytes as u64).clamp(PIECES[0], PIECES[1]) / 4096 * 4096
    }

    /// Pause after writes that took `taken_ns`, and were to take `device_ns` of the device.
    pub fn pause_ns(haste: Haste, device_ns: u64, taken_ns: u64) -> u64 {
        let Haste::Share(share) = haste else { return 0 };
        let (taken, device) = (taken_ns as f64, device_ns as f64);
        (taken.max(device) / share - taken).clamp(0.0, MOST_PAUSE_NS) as u64
    }

    /// Writes after which a flush is due, so that none becomes long. The number varies, which shows
    /// what each write adds, and grows slowly.
    pub fn unflushed(&self) -> u64 {
        let tried = FIRST_FLUSH << self.flushes.min(MOST_UNFLUSHED.ilog2().into());
        let most = HELD_PART * self.commit_ns() / self.deferred_ns.max(1) as f64;
        let turn = 1 + self.flushes % 2;
        (turn * most as u64).clamp(turn, MOST_UNFLUSHED.min(tried))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 8192;

    /// 700 scattered writes per second and 10 MB/s, 0.7 ms.
    const SLOW: WriteCost = WriteCost {
        latency_ns: 700_000,
        ns_per_request: 1_430_000,
        bytes_per_s: 10_000_000,
        flush_ns: 700_000,
        deferred_ns: 0,
        flushes: 1,
        learned: 1,
    };
    const FLASH: WriteCost = WriteCost {
        latency_ns: 80_000,
        ns_per_request: 2_000,
        bytes_per_s: 3_000_000_000,
        flush_ns: 80_000,
        ..SLOW
    };

    #[test]
    fn a_commit_waits_behind_a_part_of_itself() {
        assert_eq!((SLOW.at_once_ns(), SLOW.window(PAGE), SLOW.piece_bytes()), (350_000, 1, 16 << 10));
        assert_eq!((FLASH.at_once_ns() / FLASH.request_ns(PAGE), FLASH.window(PAGE)), (14, 30));
        assert_eq!(FLASH.piece_bytes(), 29 * 4096);
    }

    #[test]
    fn the_device_is_left_for_as_long_as_it_was_taken() {
        let (pause_ns, half) = (WriteCost::pause_ns, Haste::Share(0.5));
        assert_eq!(pause_ns(Haste::All, 1, 1_000_000), 0);
        assert_eq!(pause_ns(half, 1, 2_000_000), 2_000_000);
        assert_eq!(pause_ns(half, 2_860_000, 700_000), 5_020_000, "a burst that was let through");
        assert_eq!(pause_ns(half, 1, u64::MAX), 1_000_000_000);
        let shares = [0.1, 0.8, 2.0].map(|left| Haste::to_be_over(left, 1.0));
        assert_eq!(shares, [Haste::LEISURE, Haste::Share(0.8), Haste::All]);
    }

    #[test]
    fn what_a_cache_holds_is_flushed_in_time() {
        assert_eq!(WriteCost { flushes: 0, ..SLOW }.unflushed(), FIRST_FLUSH);
        assert_eq!(WriteCost { flushes: 20, ..SLOW }.unflushed(), MOST_UNFLUSHED, "nothing is held");
        assert_eq!(SLOW.unflushed(), 2 * FIRST_FLUSH);
        let cached = WriteCost { deferred_ns: 8_000_000, ns_per_request: 8_100_000, ..SLOW };
        assert_eq!((cached.unflushed(), cached.window(PAGE)), (2, 7));
        assert_eq!(WriteCost { flushes: 2, ..cached }.unflushed(), 1, "the next is another");
    }
}
