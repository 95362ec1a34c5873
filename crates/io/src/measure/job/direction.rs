//! The direction of a job's requests, each a pure function of its number, as its place is.

use snowmelt_base::random::{GOLDEN, mix};

/// Which requests read and which write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobDirection {
    /// All read (fio: `randread`, `read`).
    Read,
    /// All write (fio: `randwrite`, `write`).
    Write,
    /// Some read, the others write, drawn for each (fio: `randrw`, `rw`).
    Mixed {
        /// So many of 100 read (fio: `rwmixread`).
        read_percent: u8,
        /// Seed of the draws.
        seed: u64,
    },
}

impl JobDirection {
    /// For so many reads of 100 requests: no draw is needed for none and for all.
    pub fn of_reads(read_percent: u8, seed: u64) -> JobDirection {
        match read_percent {
            0 => JobDirection::Write,
            1..=99 => JobDirection::Mixed { read_percent, seed },
            100.. => JobDirection::Read,
        }
    }

    /// True when request number `i` writes.
    pub fn writes(self, i: u64) -> bool {
        match self {
            JobDirection::Read => false,
            JobDirection::Write => true,
            JobDirection::Mixed { read_percent, seed } => {
                mix(!seed ^ i.wrapping_mul(GOLDEN)) % 100 >= u64::from(read_percent)
            }
        }
    }

    /// True when it may write at all.
    pub fn any_write(self) -> bool {
        self != JobDirection::Read
    }

    /// True when it may read at all.
    pub fn any_read(self) -> bool {
        self != JobDirection::Write
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_has_its_share_of_reads_in_every_part() {
        for percent in [1u8, 30, 50, 70, 99] {
            let mixed = JobDirection::of_reads(percent, 3);
            for part in 0..4u64 {
                let writes = |i: &u64| mixed.writes(*i);
                let reads = 1.0 - (part * 10_000..(part + 1) * 10_000).filter(writes).count() as f64 / 1e4;
                let wanted = f64::from(percent) / 100.0;
                let deviation = (wanted * (1.0 - wanted) / 1e4).sqrt();
                assert!((reads - wanted).abs() < 5.0 * deviation, "{percent} %: {reads}");
            }
            let other = JobDirection::of_reads(percent, 4);
            assert!((0..1000).any(|i| mixed.writes(i) != other.writes(i)), "the seed counts");
        }
        assert_eq!(JobDirection::of_reads(0, 1), JobDirection::Write);
        assert_eq!(JobDirection::of_reads(100, 1), JobDirection::Read);
        assert!(JobDirection::Write.writes(5) && !JobDirection::Read.writes(5));
    }
}
