//! The writes that a power cut may lose: all since the last flush, and what becomes of them.
//!
//! The bytes themselves are already where reads find them. This module keeps the writes in
//! order, and for each sector they touch its content when it was last durable. A cut starts
//! from those sectors and applies to them whatever part of the writes survives. A flush makes
//! durable what was acknowledged before it began.
//!
//! A real cache is bounded: when the writes kept are more than that, the oldest are durable.
//!
//! `PowerDisk` of `io` cuts the power of files in memory, for tests of a store: it knows
//! lengths and names, and its syncs are moments. Here flushes overlap with writes that are
//! under way, and the bytes may be 18 GB on any device; the two share little but the generator.

use std::collections::{BTreeMap, VecDeque};
use std::io::{IoSlice, IoSliceMut};

use serde::{Deserialize, Serialize};
use snowmelt_base::random::Random;
use snowmelt_io::{Device, IoError};

/// Smallest part of a write that survives whole or not at all.
pub const SECTOR: u64 = 512;

/// Which unsynced writes survive a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Each by chance: whole, not at all, its first sectors, or any of its sectors
    Random,
    /// None
    None,
    /// All that was acknowledged
    All,
    /// All up to one of them, in order of arrival, which is torn
    Prefix,
}

/// The effect of a cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutReport {
    /// Writes that were not durable.
    pub unsynced: u64,
    /// Of those, survived whole.
    pub kept: u64,
    /// Survived in part.
    pub torn: u64,
    /// Gone.
    pub lost: u64,
}

struct Write {
    number: u64,
    offset: u64,
    bytes: Vec<u8>,
    acknowledged: bool,
    /// The flush that will make it durable.
    flush: Option<u64>,
}

/// Content of a sector when it was last durable, and how many unsynced writes touch it.
struct Sector {
    durable: [u8; SECTOR as usize],
    writes: u32,
}

/// See the head of the file.
pub struct Unsynced {
    writes: VecDeque<Write>,
    sectors: BTreeMap<u64, Sector>,
    bytes: u64,
    limit: u64,
    numbers: u64,
    flushes: u64,
}

impl Unsynced {
    /// Keeps at most `limit` bytes of writes.
    pub fn new(limit: u64) -> Unsynced {
        let (writes, sectors) = (VecDeque::new(), BTreeMap::new());
        Unsynced { writes, sectors, bytes: 0, limit, numbers: 0, flushes: 0 }
    }

    /// Writes that are not durable.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Notes a write of whole sectors that is about to be made to `device`. Returns its number.
    pub fn record(&mut self, device: &dyn Device, offset: u64, bytes: &[u8]) -> Result<u64, IoError> {
        let mut before = vec![0; bytes.len()];
        device.read_at(&mut [IoSliceMut::new(&mut before)], offset)?;
        for (i, old) in before.as_chunks::<{ SECTOR as usize }>().0.iter().enumerate() {
            let sector = self.sectors.entry(offset / SECTOR + i as u64);
            sector.or_insert(Sector { durable: *old, writes: 0 }).writes += 1;
        }
        self.numbers += 1;
        let number = self.numbers;
        self.writes.push_back(Write {
            number,
            offset,
            bytes: bytes.to_vec(),
            acknowledged: false,
            flush: None,
        });
        self.bytes += bytes.len() as u64;
        while self.bytes > self.limit {
            let oldest = self.writes.pop_front().expect("bytes are those of writes");
            self.settle(&oldest);
        }
        Ok(number)
    }

    /// The caller was told that this write is over.
    pub fn acknowledged(&mut self, number: u64) {
        let place = self.writes.binary_search_by_key(&number, |write| write.number);
        if let Ok(place) = place {
            self.writes[place].acknowledged = true;
        }
    }

    /// A flush begins. Returns its number.
    pub fn flush_begun(&mut self) -> u64 {
        self.flushes += 1;
        for write in &mut self.writes {
            if write.acknowledged && write.flush.is_none() {
                write.flush = Some(self.flushes);
            }
        }
        self.flushes
    }

    /// That flush is over.
    pub fn flushed(&mut self, flush: u64) {
        let done = |write: &Write| write.flush.is_some_and(|f| f <= flush);
        let (settled, left): (VecDeque<Write>, VecDeque<Write>) =
            std::mem::take(&mut self.writes).into_iter().partition(done);
        self.writes = left;
        settled.iter().for_each(|write| self.settle(write));
    }

    /// A write that was taken out is durable.
    fn settle(&mut self, write: &Write) {
        self.bytes -= write.bytes.len() as u64;
        for (i, new) in write.bytes.as_chunks::<{ SECTOR as usize }>().0.iter().enumerate() {
            let place = write.offset / SECTOR + i as u64;
            let sector = self.sectors.get_mut(&place).expect("every sector of a kept write is kept");
            sector.durable = *new;
            sector.writes -= 1;
            if sector.writes == 0 {
                self.sectors.remove(&place);
            }
        }
    }

    /// Writes to `device` what survives; afterwards everything is durable.
    pub fn cut(&mut self, device: &dyn Device, keep: Keep, seed: u64) -> Result<CutReport, IoError> {
        let mut random = Random(seed);
        let mut report = CutReport { unsynced: self.writes.len() as u64, ..CutReport::default() };
        let last = random.below(self.writes.len() as u64 + 1) as usize;
        let writes = std::mem::take(&mut self.writes);
        for (i, write) in writes.iter().enumerate() {
            let sectors = write.bytes.len() / SECTOR as usize;
            let alive = surviving(keep, write, i, last, sectors, &mut random);
            match alive.iter().filter(|alive| **alive).count() {
                0 => report.lost += 1,
                n if n == sectors => report.kept += 1,
                _ => report.torn += 1,
            }
            for (j, new) in write.bytes.as_chunks::<{ SECTOR as usize }>().0.iter().enumerate() {
                if alive[j] {
                    let place = write.offset / SECTOR + j as u64;
                    let sector = self.sectors.get_mut(&place).expect("every sector of a kept write is kept");
                    sector.durable = *new;
                }
            }
        }
        self.bytes = 0;
        for (place, sector) in std::mem::take(&mut self.sectors) {
            device.write_at(&[IoSlice::new(&sector.durable)], place * SECTOR)?;
        }
        Ok(report)
    }
}

/// Which sectors of a write survive.
fn surviving(
    keep: Keep,
    write: &Write,
    i: usize,
    last: usize,
    sectors: usize,
    random: &mut Random,
) -> Vec<bool> {
    let first = |n: usize| (0..sectors).map(|j| j < n).collect();
    match keep {
        Keep::None => first(0),
        Keep::All => first(if write.acknowledged { sectors } else { 0 }),
        Keep::Prefix => match i.cmp(&last) {
            std::cmp::Ordering::Less => first(sectors),
            std::cmp::Ordering::Equal => first(random.below(sectors as u64 + 1) as usize),
            std::cmp::Ordering::Greater => first(0),
        },
        Keep::Random => match random.below(4) {
            0 => first(0),
            1 => first(sectors),
            2 => first(random.below(sectors as u64 + 1) as usize),
            _ => (0..sectors).map(|_| random.below(2) == 1).collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use snowmelt_io::MemoryDevice;

    use super::*;

    const DEVICE_SECTORS: u64 = 64;

    /// A device, its unsynced writes, and for each sector every content it may have after a
    /// cut.
    struct Bench {
        device: MemoryDevice,
        unsynced: Unsynced,
        possible: Vec<Vec<u8>>,
    }

    impl Bench {
        fn new(limit: u64) -> Bench {
            let device = MemoryDevice::from_bytes("disk", vec![0; (DEVICE_SECTORS * SECTOR) as usize]);
            let possible = vec![vec![0]; DEVICE_SECTORS as usize];
            Bench { device, unsynced: Unsynced::new(limit), possible }
        }

        fn write(&mut self, sector: u64, sectors: u64, fill: u8) -> u64 {
            let bytes = vec![fill; (sectors * SECTOR) as usize];
            let number = self.unsynced.record(&self.device, sector * SECTOR, &bytes).expect("recorded");
            self.device.write_at(&[IoSlice::new(&bytes)], sector * SECTOR).expect("written");
            for possible in &mut self.possible[sector as usize..(sector + sectors) as usize] {
                possible.push(fill);
            }
            number
        }

        fn sectors(&self) -> Vec<u8> {
            let bytes = self.device.to_vec();
            let chunks = bytes.chunks(SECTOR as usize);
            chunks
                .map(|c| if c.iter().all(|b| *b == c[0]) { c[0] } else { panic!("torn in a sector") })
                .collect()
        }
    }

    #[test]
    fn a_cut_leaves_any_part_of_what_was_not_flushed_and_nothing_else() {
        let seed = snowmelt_base::test_seed(5);
        let mut random = Random(seed);
        let (mut torn, mut lost, mut kept) = (0, 0, 0);
        for round in 0..200 {
            let mut bench = Bench::new(1 << 20);
            for fill in 1..=40 {
                let sectors = 1 + random.below(8);
                let number = bench.write(random.below(DEVICE_SECTORS - 8), sectors, fill);
                bench.unsynced.acknowledged(number);
                if random.below(10) == 0 {
                    let flush = bench.unsynced.flush_begun();
                    let late = bench.write(random.below(DEVICE_SECTORS - 8), 2, 100 + fill);
                    bench.unsynced.acknowledged(late);
                    let now = bench.sectors();
                    bench.unsynced.flushed(flush);
                    for (possible, now) in bench.possible.iter_mut().zip(now) {
                        // Durable is the last write before the flush began; the late one may be
                        // on top of it.
                        let before = if now == 100 + fill { possible[possible.len() - 2] } else { now };
                        *possible = if now == before { vec![now] } else { vec![before, now] };
                    }
                }
            }
            let report = bench.unsynced.cut(&bench.device, Keep::Random, round).expect("cut");
            for (sector, (is, possible)) in bench.sectors().iter().zip(&bench.possible).enumerate() {
                assert!(possible.contains(is), "round {round}, sector {sector}: {is} is not of {possible:?}");
            }
            assert_eq!(report.unsynced, report.kept + report.torn + report.lost);
            (torn, lost, kept) = (torn + report.torn, lost + report.lost, kept + report.kept);
        }
        assert!(torn > 100 && lost > 100 && kept > 100, "{torn} torn, {lost} lost, {kept} kept");
    }

    #[test]
    fn nothing_or_all_survives_when_asked_so() {
        for (keep, want) in [(Keep::None, 1), (Keep::All, 2)] {
            let mut bench = Bench::new(1 << 20);
            let first = bench.write(3, 2, 1);
            bench.unsynced.acknowledged(first);
            let flush = bench.unsynced.flush_begun();
            bench.unsynced.flushed(flush);
            let second = bench.write(3, 2, 2);
            bench.unsynced.acknowledged(second);
            bench.write(4, 1, 3); // never acknowledged
            bench.unsynced.cut(&bench.device, keep, 1).expect("cut");
            assert_eq!(bench.sectors()[3..5], [want, want], "{keep:?}");
            assert_eq!(bench.unsynced.len(), 0);
        }
    }

    #[test]
    fn what_a_bounded_cache_cannot_hold_is_durable() {
        let mut bench = Bench::new(4 * SECTOR);
        for i in 0..8 {
            let number = bench.write(i, 1, 1);
            bench.unsynced.acknowledged(number);
        }
        bench.unsynced.cut(&bench.device, Keep::None, 1).expect("cut");
        assert_eq!(bench.sectors()[..8], [1, 1, 1, 1, 0, 0, 0, 0]);
    }
}
