//! The caps of volumes against token buckets that count whole tokens.

use snowmelt_base::random::Random;

use crate::device::simulated::mechanics::steady::SteadyLoad;
use crate::device::simulated::model::DeviceModel;
use crate::device::simulated::model::parameters::VolumeModel;
use crate::device::timed::{Transfer, TransferKind};

/// Times are in picoseconds and tokens in as many parts: a rate per second is one of parts per
/// picosecond.
const PARTS: i128 = 1_000_000_000_000;

/// A token bucket, naively.
struct Tokens {
    per_s: i128,
    most: i128,
    left: i128,
    at: i128,
}

impl Tokens {
    fn full(per_s: u64, most: u64) -> Tokens {
        let most = i128::from(most) * PARTS;
        Tokens { per_s: per_s.into(), most, left: most, at: 0 }
    }

    /// When no token is owed.
    fn free(&self) -> i128 {
        self.at + (-self.left).max(0).div_euclid(self.per_s) + i128::from(-self.left % self.per_s > 0)
    }

    fn take(&mut self, at: i128, tokens: u64) {
        self.left = (self.left + (at - self.at) * self.per_s).min(self.most);
        self.left -= i128::from(tokens) * PARTS;
        self.at = at;
    }
}

/// Whole numbers from which both are made.
#[derive(Debug)]
struct Numbers {
    iops: u64,
    burst_iops: Option<u64>,
    io_credits: u64,
    bytes_per_s: u64,
    burst_bytes_per_s: Option<u64>,
    byte_credits: u64,
    write_iops: Option<u64>,
    write_bytes_per_s: Option<u64>,
    unit: u64,
}

impl Numbers {
    fn any(random: &mut Random) -> Numbers {
        let mut maybe = |value: u64| (random.below(2) == 0).then_some(value);
        let (iops, bytes_per_s) = (1000, 10_000_000);
        let (burst_iops, burst_bytes_per_s) = (maybe(7000), maybe(90_000_000));
        let (write_iops, write_bytes_per_s) = (maybe(600), maybe(4_000_000));
        let (io_credits, byte_credits) = (maybe(300).unwrap_or(0), maybe(5_000_000).unwrap_or(0));
        Numbers {
            iops: iops + random.below(1000),
            burst_iops,
            io_credits,
            bytes_per_s: bytes_per_s + random.below(1_000_000),
            burst_bytes_per_s,
            byte_credits,
            write_iops,
            write_bytes_per_s,
            unit: [4096, 1 << 16, 1 << 40][random.below(3) as usize],
        }
    }

    fn model(&self) -> DeviceModel {
        let float = |whole: Option<u64>| whole.map(|whole| whole as f64);
        DeviceModel::Volume(VolumeModel {
            latency_us: 0.001,
            width: 65_536,
            iops: self.iops as f64,
            burst_iops: float(self.burst_iops),
            io_credits: self.io_credits as f64,
            bytes_per_s: self.bytes_per_s as f64,
            burst_bytes_per_s: float(self.burst_bytes_per_s),
            byte_credits: self.byte_credits as f64,
            write_iops: float(self.write_iops),
            write_bytes_per_s: float(self.write_bytes_per_s),
            io_unit_bytes: self.unit,
            line_bytes_per_s: 1e13,
            ..VolumeModel::default()
        })
    }

    /// The buckets of requests and those of bytes, of reads or of writes.
    fn buckets(&self) -> [Vec<Tokens>; 4] {
        let cap = |base, credits, burst: Option<u64>| {
            let burst = burst.filter(|_| credits > 0).map(|burst| Tokens::full(burst, 0));
            [Tokens::full(base, credits)].into_iter().chain(burst).collect()
        };
        let own = |base| vec![Tokens::full(base, 0)];
        let (ios, bytes) = match (self.write_iops, self.write_bytes_per_s) {
            (None, None) => (Vec::new(), Vec::new()),
            (ios, bytes) => (own(ios.unwrap_or(self.iops)), own(bytes.unwrap_or(self.bytes_per_s))),
        };
        [
            cap(self.iops, self.io_credits, self.burst_iops),
            cap(self.bytes_per_s, self.byte_credits, self.burst_bytes_per_s),
            ios,
            bytes,
        ]
    }
}

#[test]
fn requests_start_when_naive_token_buckets_let_them() {
    let seed = snowmelt_base::test_seed(21);
    let mut random = Random(seed);
    for round in 0..400 {
        let numbers = Numbers::any(&mut random);
        let mut device = numbers.model().build().expect("in bounds");
        let [mut ios, mut bytes, mut write_ios, mut write_bytes] = numbers.buckets();
        let mut now = 0u64;
        for id in 0..600 {
            // Mostly a crowd, sometimes a pause in which credits come back.
            now += match random.below(40) {
                0 => random.below(2_000_000_000),
                1..=20 => random.below(1_000_000),
                _ => 0,
            };
            let len = 1 + random.below(20_000);
            let kind = TransferKind::from_write(random.below(2) == 0);
            device.arrive(id, Transfer { offset: random.below(1 << 40), len, kind }, now);
            let is_write = kind == TransferKind::Write;
            let ios = if is_write && !write_ios.is_empty() { &mut write_ios } else { &mut ios };
            let bytes = if is_write && !write_bytes.is_empty() { &mut write_bytes } else { &mut bytes };
            let free = ios.iter().chain(bytes.iter()).map(Tokens::free).max().expect("a bucket");
            let start = free.max(i128::from(now) * 1000);
            ios.iter_mut().for_each(|tokens| tokens.take(start, len.div_ceil(numbers.unit)));
            bytes.iter_mut().for_each(|tokens| tokens.take(start, len));
            let (_, over) = device.pop_due(u64::MAX).expect("it arrived");
            let apart = (i128::from(over) * 1000 - start).abs();
            assert!(apart <= 5000, "round {round}, request {id}: {over} ns, not {start} ps, by {numbers:?}");
        }
    }
}

fn per_s(model: &DeviceModel, load: SteadyLoad, n: usize) -> f64 {
    let ns = load.on(model).expect("in bounds").nth(n - 1).expect("it has no end");
    n as f64 / ns as f64 * 1e9
}

fn close(is: f64, should: f64) {
    assert!((is / should - 1.0).abs() < 0.02, "{is} is not within 2 % of {should}");
}

const READS: SteadyLoad = SteadyLoad { depth: 32, len: 4096, stride: 1 << 21, write: false, rested_s: None };

#[test]
fn credits_last_as_long_as_they_should_and_come_back() {
    let volume = VolumeModel {
        latency_us: 100.0,
        iops: 300.0,
        burst_iops: Some(3000.0),
        io_credits: 27_000.0,
        ..VolumeModel::default()
    };
    let model = DeviceModel::Volume(volume);
    close(per_s(&model, READS, 20_000), 3000.0);
    // Ten seconds of 3000, of which 300 come back at once; then 300.
    close(per_s(&model, READS, 30_000 + 3000), 33_000.0 / 20.0);
    let spent = |rested_s| SteadyLoad { rested_s: Some(rested_s), ..READS };
    close(per_s(&model, spent(0.0), 3000), 300.0);
    // Half of the credits are back after half of the time, and all of them never twice.
    close(per_s(&model, spent(45.0), 15_000 + 3000), 18_000.0 / 15.0);
    close(per_s(&model, spent(1e6), 30_000 + 3000), 33_000.0 / 20.0);
    let mut device = model.build().expect("in bounds");
    let left = |device: &dyn super::Mechanics, ns| device.credits(ns).expect("it has credits");
    assert_eq!(left(&*device, 0), 1.0);
    device.spend_credits(5_000_000_000);
    assert_eq!(left(&*device, 5_000_000_000), 0.0);
    close(left(&*device, 50_000_000_000), 0.5);
    device.rest();
    assert_eq!(left(&*device, 60_000_000_000), 1.0);
    assert_eq!(DeviceModel::gp3().build().expect("in bounds").credits(0), None);
}

#[test]
fn writes_have_caps_of_their_own() {
    let e3 = DeviceModel::e3();
    for depth in [1, 8, 128] {
        close(per_s(&e3, SteadyLoad { depth, write: true, ..READS }, 7000), 700.0);
    }
    close(per_s(&e3, SteadyLoad { len: 1 << 20, write: true, ..READS }, 100) * 1048576.0, 10e6);
    close(per_s(&e3, READS, 100_000), 20_000.0);
    // Reads beside writes take nothing away.
    let mut device = e3.build().expect("in bounds");
    let transfer = |kind| Transfer { offset: 0, len: 4096, kind };
    (0..100).for_each(|id| device.arrive(id, transfer(TransferKind::Write), 0));
    device.arrive(100, transfer(TransferKind::Read), 0);
    assert_eq!(device.pop_due(1_000_000).map(|(id, _)| id), Some(0), "the first write");
    let read = std::iter::from_fn(|| device.pop_due(1_000_000)).find(|(id, _)| *id == 100);
    assert!(read.is_some(), "the read is over within a millisecond");
    let latency = VolumeModel { write_latency_us: Some(9000.0), ..VolumeModel::default() };
    let alone = SteadyLoad { depth: 1, write: true, ..READS };
    close(per_s(&DeviceModel::Volume(latency), alone, 100), 1e6 / 9004.0);
}

#[test]
fn sequential_requests_fill_a_unit_together() {
    let units = VolumeModel {
        latency_us: 1.0,
        iops: 100.0,
        io_unit_bytes: 1 << 20,
        bytes_per_s: 1e9,
        streams: 2,
        ..VolumeModel::default()
    };
    let model = DeviceModel::Volume(units);
    let small = SteadyLoad { len: 128 << 10, stride: 128 << 10, ..READS };
    close(per_s(&model, small, 7992), 800.0);
    close(per_s(&model, READS, 1000), 100.0);
    // Requests longer than a unit pay for what they begin: 3 of 1.5 MiB for 5 units, not 6.
    let long = SteadyLoad { len: 3 << 19, stride: 3 << 19, ..READS };
    close(per_s(&model, long, 1000), 100.0 / 1.5);
    // Two streams in turns are both recognised, three are not.
    for (streams, should) in [(2, 800.0), (3, 100.0)] {
        let mut device = model.build().expect("in bounds");
        let of = |id: u64| Transfer {
            offset: ((id % streams) << 40) + ((id / streams) << 17),
            len: 128 << 10,
            kind: TransferKind::Read,
        };
        let mut last = 0;
        for id in 0..1600 {
            device.arrive(id as usize, of(id), last);
            last = device.pop_due(u64::MAX).expect("it arrived").1;
        }
        close(1600.0 / last as f64 * 1e9, should);
    }
}

#[test]
fn a_share_of_the_requests_takes_longer() {
    let volume = VolumeModel { tail_share: 0.05, tail_us: 40_000.0, ..VolumeModel::default() };
    let alone = SteadyLoad { depth: 1, ..READS };
    let times = |seed| {
        let model = DeviceModel::Volume(VolumeModel { seed, tail_jitter: 0.5, ..volume.clone() });
        let ends: Vec<u64> = alone.on(&model).expect("in bounds").take(20_000).collect();
        ends.iter().zip([0].iter().chain(&ends)).map(|(end, begin)| end - begin).collect::<Vec<u64>>()
    };
    let one = times(1);
    let long: Vec<u64> = one.iter().copied().filter(|&ns| ns > 3_004_097).collect();
    assert!((900..1100).contains(&long.len()), "{}", long.len());
    let mean = long.iter().sum::<u64>() as f64 / long.len() as f64;
    assert!((mean / 43e6 - 1.0).abs() < 0.05, "{mean}");
    assert_eq!(one, times(1));
    assert_ne!(one, times(2));
    // Without a tail no chance is taken: times are as before there were tails.
    let plain = |tail_us| VolumeModel { jitter: 0.5, tail_us, ..VolumeModel::default() };
    let ends = |tail_us| -> Vec<u64> {
        alone.on(&DeviceModel::Volume(plain(tail_us))).expect("in bounds").take(100).collect()
    };
    assert_eq!(ends(0.0), ends(1000.0));
}
