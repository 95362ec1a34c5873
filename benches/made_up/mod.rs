//! Shared by the examples about trees: made-up quads, a seeded generator, the thread's processor
//! time.

pub type Row = [u64; 4];

/// 40 properties; subjects almost dense; objects of five shapes.
pub fn made_up(n: usize, seed: u64) -> Vec<Row> {
    let mut random = Random(seed);
    let mut rows = Vec::with_capacity(n);
    for p in 0..40u64 {
        let mut s = 1000 + p;
        for i in 0..(n / 40) as u64 {
            s += random.below(4);
            let o = match p % 5 {
                0 => 1 << 60 | random.below(1 << 22),
                1 => 3 << 60 | (i * 3 + p),
                2 => 4 << 60 | random.below(20) << 44 | random.below(1 << 23),
                3 => 13 << 60 | (1_200_000_000_000 + random.below(700) * 86_400_000) << 2,
                _ => 7 << 60 | 1 << 59 | random.below(2000),
            };
            rows.push([1 << 60 | p, 1 << 60 | s, o, 1]);
        }
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Processor time of this thread, which other work on the machine does not change much.
pub struct Cpu(f64);

impl Cpu {
    pub fn now() -> Cpu {
        let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Cpu(t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9)
    }

    /// Seconds since.
    pub fn seconds(&self) -> f64 {
        Cpu::now().0 - self.0
    }
}

/// xorshift64*
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(snowmelt_base::random::xorshift_star(&mut self.0)) * u128::from(n)) >> 64) as u64
    }
}
