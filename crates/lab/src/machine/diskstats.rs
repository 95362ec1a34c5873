//! /proc/diskstats: the kernel's own counts of a device.

use serde::Serialize;

/// The counts of one device since boot, named as in the kernel's documentation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DiskCounts {
    /// Reads completed.
    pub reads: u64,
    /// Reads merged.
    pub read_merges: u64,
    /// Sectors read.
    pub read_sectors: u64,
    /// Time reads took, ms.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Writes merged.
    pub write_merges: u64,
    /// Sectors written.
    pub write_sectors: u64,
    /// Time writes took, ms.
    pub write_ms: u64,
    /// Requests under way now.
    pub in_flight: u64,
    /// Time with a request under way, ms.
    pub busy_ms: u64,
    /// Time weighed by requests under way, ms.
    pub weighted_ms: u64,
    /// Discards completed.
    pub discards: u64,
    /// Discards merged.
    pub discard_merges: u64,
    /// Sectors discarded.
    pub discard_sectors: u64,
    /// Time discards took, ms.
    pub discard_ms: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Time flushes took, ms.
    pub flush_ms: u64,
}

impl DiskCounts {
    /// The line of `device` in the text of /proc/diskstats; columns an older kernel lacks are 0.
    pub fn parse(text: &str, device: &str) -> Option<DiskCounts> {
        let line = text.lines().find(|line| line.split_whitespace().nth(2) == Some(device))?;
        let mut columns = line.split_whitespace().skip(3).map(|n| n.parse().unwrap_or(0));
        let mut next = || columns.next().unwrap_or(0);
        Some(DiskCounts {
            reads: next(),
            read_merges: next(),
            read_sectors: next(),
            read_ms: next(),
            writes: next(),
            write_merges: next(),
            write_sectors: next(),
            write_ms: next(),
            in_flight: next(),
            busy_ms: next(),
            weighted_ms: next(),
            discards: next(),
            discard_merges: next(),
            discard_sectors: next(),
            discard_ms: next(),
            flushes: next(),
            flush_ms: next(),
        })
    }

    /// Counts of 64 bits never go back, and the device is not busy for the 24 days that its time
    /// would need to.
    fn is_anew(&self, before: &DiskCounts) -> bool {
        let counts = |of: &DiskCounts| {
            let reads = [of.reads, of.read_merges, of.read_sectors];
            let writes = [of.writes, of.write_merges, of.write_sectors];
            let discards = [of.discards, of.discard_merges, of.discard_sectors];
            [reads, writes, discards].concat().into_iter().chain([of.flushes]).collect::<Vec<u64>>()
        };
        let back = counts(self).iter().zip(counts(before)).any(|(now, then)| *now < then);
        back || (self.busy_ms < before.busy_ms && before.busy_ms < 1 << 31)
    }

    /// The counts of `device` now.
    pub fn now(device: &str) -> Option<DiskCounts> {
        DiskCounts::parse(&std::fs::read_to_string("/proc/diskstats").ok()?, device)
    }

    /// The increase since `before`; `in_flight` stays what it is. Times wrap at 32 bits. Counts of
    /// requests that went back are those of a device that was made anew under the old name: it
    /// began at zero.
    pub fn since(&self, before: &DiskCounts) -> DiskCounts {
        if self.is_anew(before) {
            return *self;
        }
        let minus = |now: u64, then: u64| match now.checked_sub(then) {
            Some(difference) => difference,
            None => (now + (1 << 32)).saturating_sub(then),
        };
        DiskCounts {
            reads: minus(self.reads, before.reads),
            read_merges: minus(self.read_merges, before.read_merges),
            read_sectors: minus(self.read_sectors, before.read_sectors),
            read_ms: minus(self.read_ms, before.read_ms),
            writes: minus(self.writes, before.writes),
            write_merges: minus(self.write_merges, before.write_merges),
            write_sectors: minus(self.write_sectors, before.write_sectors),
            write_ms: minus(self.write_ms, before.write_ms),
            in_flight: self.in_flight,
            busy_ms: minus(self.busy_ms, before.busy_ms),
            weighted_ms: minus(self.weighted_ms, before.weighted_ms),
            discards: minus(self.discards, before.discards),
            discard_merges: minus(self.discard_merges, before.discard_merges),
            discard_sectors: minus(self.discard_sectors, before.discard_sectors),
            discard_ms: minus(self.discard_ms, before.discard_ms),
            flushes: minus(self.flushes, before.flushes),
            flush_ms: minus(self.flush_ms, before.flush_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n \
        254       0 vda 112961 21337 14011458 55283 1063372 1212103 117823826 1139110 3 317432 1203263 20434 0 28563296 5322 11 3547\n";

    #[test]
    fn columns_are_where_the_kernel_puts_them() {
        let vda = DiskCounts::parse(RECORDED, "vda").expect("it is there");
        assert_eq!((vda.reads, vda.read_merges, vda.read_sectors), (112_961, 21_337, 14_011_458));
        assert_eq!((vda.in_flight, vda.busy_ms, vda.discards, vda.flushes), (3, 317_432, 20_434, 11));
        assert_eq!(DiskCounts::parse(RECORDED, "vd"), None);
    }

    #[test]
    fn differences_survive_a_wrap() {
        let before = DiskCounts { reads: 5, busy_ms: (1 << 32) - 10, ..DiskCounts::default() };
        let now = DiskCounts { reads: 9, busy_ms: 20, in_flight: 2, ..DiskCounts::default() };
        let since = now.since(&before);
        assert_eq!((since.reads, since.busy_ms, since.in_flight), (4, 30, 2));
    }

    #[test]
    fn a_device_that_was_made_anew_begins_at_zero() {
        let before = DiskCounts {
            reads: 1000,
            read_sectors: 8000,
            busy_ms: 700,
            weighted_ms: 900,
            ..DiskCounts::default()
        };
        let now =
            DiskCounts { reads: 3, read_sectors: 24, busy_ms: 2, weighted_ms: 5, ..DiskCounts::default() };
        assert_eq!(now.since(&before), now);
        let busier = DiskCounts { reads: 1001, read_sectors: 8008, ..now };
        assert_eq!(busier.since(&before).busy_ms, 2, "by its time, where it has had more requests already");
    }
}
