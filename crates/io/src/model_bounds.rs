//! Bounds of models, so that no device is made that never answers.
//!
//! 1. Every parameter has a least and a most; NaN and the infinities are outside.
//! 2. Parameters that are each in bounds can be too slow together, so the longest wait of any request is computed: with at
//!    most [`OUTSTANDING`] requests of at most [`REQUEST_BYTES`] at the device, nobody waits longer than [`ANSWER_S`].
//!
//! Both are checked where a model is parsed and again where it is built; there is no other way to a model that runs.

use crate::model::{DeviceModel, DiskModel, VolumeModel};

/// A request is answered within so many seconds, by every model.
pub const ANSWER_S: f64 = 60.0;

/// Requests at the device at once for which this is promised: as many as a loop device hands on.
pub const OUTSTANDING: u64 = 128;

/// Bytes of a request for which this is promised: as many as the laboratory's block devices ask for at once.
pub const REQUEST_BYTES: u64 = 1 << 20;

/// Most points of a seek curve.
const SEEK_POINTS: usize = 1024;

/// Why a description is no device.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The text is not TOML, or has other fields.
    #[error("{0}")]
    Text(String),
    /// A parameter out of its bounds.
    #[error("{parameter} is {value}; it must be between {least} and {most}")]
    OutOfBounds {
        /// As in the description.
        parameter: &'static str,
        /// What it is.
        value: f64,
        /// The least it may be.
        least: f64,
        /// The most it may be.
        most: f64,
    },
    /// Two parameters that must ascend.
    #[error("{lesser} is {lesser_value}, which is above {greater} ({greater_value})")]
    Order {
        /// Should be the smaller one.
        lesser: &'static str,
        /// What it is.
        lesser_value: f64,
        /// Should be the greater one.
        greater: &'static str,
        /// What it is.
        greater_value: f64,
    },
    /// The seek curve is none.
    #[error(
        "seek_points are at most {SEEK_POINTS} pairs (share of the way from 0 to 1, milliseconds from 0 to 1000), ascending; number {number} is not"
    )]
    SeekPoints {
        /// The first wrong one, from 1.
        number: usize,
    },
    /// Each parameter is in bounds, but the device is too slow.
    #[error(
        "{parameters} together let one of {OUTSTANDING} requests of {REQUEST_BYTES} bytes wait for up to {longest_s:.1} s; {most_s} s are allowed"
    )]
    TooSlow {
        /// Those that make it slow.
        parameters: &'static str,
        /// The longest wait.
        longest_s: f64,
        /// The most there may be.
        most_s: f64,
    },
}

/// Everything about a model.
pub(crate) fn check(model: &DeviceModel) -> Result<(), ModelError> {
    match model {
        DeviceModel::Disk(disk) => check_disk(disk),
        DeviceModel::Volume(volume) => check_volume(volume),
    }
}

/// Everything about a disk.
pub(crate) fn check_disk(d: &DiskModel) -> Result<(), ModelError> {
    within("capacity_bytes", d.capacity_bytes as f64, 1048576.0, (1u64 << 60) as f64)?;
    within("rpm", f64::from(d.rpm), 60.0, 1e6)?;
    within("seek_min_ms", d.seek_min_ms, 0.0, 1000.0)?;
    within("seek_full_ms", d.seek_full_ms, 0.0, 1000.0)?;
    within("outer_bytes_per_s", d.outer_bytes_per_s, 1e5, 1e13)?;
    within("inner_bytes_per_s", d.inner_bytes_per_s, 1e5, 1e13)?;
    within("heads", f64::from(d.heads), 1.0, 1024.0)?;
    within("interface_bytes_per_s", d.interface_bytes_per_s, 1e5, 1e13)?;
    within("overhead_us", d.overhead_us, 0.0, 1e6)?;
    within("queue", d.queue as f64, 1.0, 1024.0)?;
    within("age_limit_ms", d.age_limit_ms, 0.0, 10_000.0)?;
    within("segments", d.segments as f64, 1.0, 1024.0)?;
    within("segment_bytes", d.segment_bytes as f64, 0.0, (1u64 << 30) as f64)?;
    within("write_settle_ms", d.write_settle_ms, 0.0, 1000.0)?;
    within("write_cache_bytes", d.write_cache_bytes as f64, 0.0, (1u64 << 36) as f64)?;
    within("write_cache_requests", d.write_cache_requests as f64, 1.0, 65536.0)?;
    within("write_queue", d.write_queue as f64, 1.0, 1024.0)?;
    if d.seek_min_ms > d.seek_full_ms {
        return Err(ModelError::Order {
            lesser: "seek_min_ms",
            lesser_value: d.seek_min_ms,
            greater: "seek_full_ms",
            greater_value: d.seek_full_ms,
        });
    }
    check_curve(&d.seek_points)?;
    quick_enough("rpm, seeks, rates, overhead_us, queue and age_limit_ms", longest_request_s(d))?;
    quick_enough("rpm, seeks, rates and write_cache_requests", longest_flush_s(d))
}

/// Everything about a volume.
pub(crate) fn check_volume(v: &VolumeModel) -> Result<(), ModelError> {
    within("latency_us", v.latency_us, 0.001, 1e7)?;
    within("jitter", v.jitter, 0.0, 3.0)?;
    within("width", v.width as f64, 1.0, 65536.0)?;
    within("iops", v.iops, 0.1, 1e9)?;
    within("io_unit_bytes", v.io_unit_bytes as f64, 1.0, (1u64 << 60) as f64)?;
    within("bytes_per_s", v.bytes_per_s, 1e5, 1e13)?;
    within("line_bytes_per_s", v.line_bytes_per_s, 1e5, 1e13)?;
    within("burst_ms", v.burst_ms, 0.0, 1e6)?;
    quick_enough("latency_us, jitter, width, iops, io_unit_bytes and the rates", longest_answer_s(v))
}

fn within(parameter: &'static str, value: f64, least: f64, most: f64) -> Result<(), ModelError> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(ModelError::OutOfBounds { parameter, value, least, most }),
    }
}

fn check_curve(points: &[(f64, f64)]) -> Result<(), ModelError> {
    let inside = |(way, ms): (f64, f64)| (0.0..=1.0).contains(&way) && (0.0..=1000.0).contains(&ms);
    let good = |i: usize| {
        let above = i == 0 || (points[i - 1].0 < points[i].0 && points[i - 1].1 <= points[i].1);
        i < SEEK_POINTS && inside(points[i]) && above
    };
    match (0..points.len()).find(|&i| !good(i)) {
        Some(i) => Err(ModelError::SeekPoints { number: i + 1 }),
        None => Ok(()),
    }
}

fn quick_enough(parameters: &'static str, longest_s: f64) -> Result<(), ModelError> {
    match longest_s <= ANSWER_S {
        true => Ok(()),
        false => Err(ModelError::TooSlow { parameters, longest_s, most_s: ANSWER_S }),
    }
}

/// The arm's way to any place: seek, settle, a whole turn.
fn longest_way_s(d: &DiskModel) -> f64 {
    let seek_ms = d.seek_points.last().map_or(d.seek_full_ms, |&(_, ms)| ms);
    (seek_ms + d.write_settle_ms) / 1e3 + 60.0 / f64::from(d.rpm)
}

fn media_s(d: &DiskModel, bytes: f64) -> f64 {
    bytes / d.outer_bytes_per_s.min(d.inner_bytes_per_s).min(d.interface_bytes_per_s)
}

/// One request of the arm, begun and ended.
fn longest_service_s(d: &DiskModel) -> f64 {
    d.overhead_us / 1e6 + longest_way_s(d) + media_s(d, REQUEST_BYTES as f64)
}

/// Until a request is one of the oldest `queue`, those before it are served, each by then too old to be passed over; then it is
/// too old itself, and the others of the queue go before it at most. While the cache is full every second turn is a write-out's.
fn longest_request_s(d: &DiskModel) -> f64 {
    let turns = if d.write_cache_bytes > 0 { 2.0 } else { 1.0 };
    let ages = OUTSTANDING.div_ceil(d.queue as u64) + 1;
    ages as f64 * d.age_limit_ms / 1e3 + 2.0 * OUTSTANDING as f64 * turns * longest_service_s(d)
}

/// A flush, or a write for which there is no room, waits for all that is in the cache or before it; every second turn is a read's.
fn longest_flush_s(d: &DiskModel) -> f64 {
    if d.write_cache_bytes == 0 {
        return 0.0;
    }
    let writes = (d.write_cache_requests as u64 + OUTSTANDING) as f64;
    let bytes = (d.write_cache_bytes + OUTSTANDING * REQUEST_BYTES) as f64;
    writes * (longest_way_s(d) + longest_service_s(d)) + 2.0 * media_s(d, bytes)
}

/// The wait for one of the `width` places, for the caps, and for the latency at its worst.
fn longest_answer_s(v: &VolumeModel) -> f64 {
    // The chance is a sum of twelve uniform numbers less six: never more than six deviations.
    let latency_s = v.latency_us / 1e6 * (6.0 * v.jitter - v.jitter * v.jitter / 2.0).exp();
    let rounds = OUTSTANDING.div_ceil(v.width as u64) as f64;
    let ios = REQUEST_BYTES.div_ceil(v.io_unit_bytes) as f64;
    let share_s = (ios / v.iops).max(REQUEST_BYTES as f64 / v.bytes_per_s);
    rounds * (latency_s + REQUEST_BYTES as f64 / v.line_bytes_per_s) + (OUTSTANDING + 1) as f64 * share_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, Transfer};

    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }

        fn below(&mut self, n: u64) -> u64 {
            self.next() % n
        }

        /// Mostly what a person would write, sometimes any bits at all.
        fn float(&mut self, usual: f64) -> f64 {
            const ODD: [f64; 10] =
                [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, -0.0, 1e300, 1e-300, 5e-324, 1e12];
            match self.below(40) {
                0 => ODD[self.below(ODD.len() as u64) as usize],
                1 => f64::from_bits(self.next()),
                // Anywhere from a thousandth to a thousand times.
                2..=9 => usual * 10f64.powf(self.below(600) as f64 / 100.0 - 3.0),
                10..=19 => usual * (0.5 + self.below(100) as f64 / 50.0),
                _ => usual,
            }
        }

        fn whole(&mut self, usual: u64) -> u64 {
            match self.below(40) {
                0 => self.next(),
                1 => [0, 1, u64::MAX, 1 << 63][self.below(4) as usize],
                2..=9 => self.float(usual as f64) as u64,
                _ => usual,
            }
        }

        fn disk(&mut self) -> DiskModel {
            let of = if self.below(2) == 0 { DeviceModel::hdd() } else { DeviceModel::hdd_7200() };
            let DeviceModel::Disk(d) = of else { unreachable!("both are disks") };
            let points = self.below(4) as usize;
            DiskModel {
                capacity_bytes: self.whole(d.capacity_bytes),
                rpm: self.whole(d.rpm.into()) as u32,
                seek_min_ms: self.float(d.seek_min_ms),
                seek_full_ms: self.float(d.seek_full_ms),
                outer_bytes_per_s: self.float(d.outer_bytes_per_s),
                inner_bytes_per_s: self.float(d.inner_bytes_per_s),
                heads: self.whole(d.heads.into()) as u32,
                interface_bytes_per_s: self.float(d.interface_bytes_per_s),
                overhead_us: self.float(d.overhead_us),
                queue: self.whole(d.queue as u64) as usize,
                age_limit_ms: self.float(d.age_limit_ms),
                segments: self.whole(d.segments as u64) as usize,
                segment_bytes: self.whole(d.segment_bytes),
                seek_points: (1..=points)
                    .map(|i| (self.float(i as f64 / 4.0), self.float(i as f64)))
                    .collect(),
                write_settle_ms: self.float(d.write_settle_ms),
                write_cache_bytes: self.whole(d.write_cache_bytes),
                write_cache_requests: self.whole(d.write_cache_requests as u64) as usize,
                write_queue: self.whole(d.write_queue as u64) as usize,
            }
        }

        fn volume(&mut self) -> VolumeModel {
            let of = [DeviceModel::wide_slow(), DeviceModel::gp3(), DeviceModel::s3()];
            let DeviceModel::Volume(v) = &of[self.below(3) as usize] else { unreachable!("all are volumes") };
            VolumeModel {
                latency_us: self.float(v.latency_us),
                jitter: self.float(v.jitter),
                seed: self.next(),
                width: self.whole(v.width as u64) as usize,
                iops: self.float(v.iops),
                io_unit_bytes: self.whole(v.io_unit_bytes),
                bytes_per_s: self.float(v.bytes_per_s),
                line_bytes_per_s: self.float(v.line_bytes_per_s),
                burst_ms: self.float(v.burst_ms),
            }
        }

        fn model(&mut self) -> DeviceModel {
            match self.below(2) {
                0 => DeviceModel::Disk(self.disk()),
                _ => DeviceModel::Volume(self.volume()),
            }
        }

        fn transfer(&mut self) -> Transfer {
            let len = [512, 4096, 1 << 17, REQUEST_BYTES][self.below(4) as usize];
            let places = 1 << [10, 25, 31, 50][self.below(4) as usize];
            let offset = self.below(places) * 512;
            match self.below(20) {
                0 => Transfer { offset: 0, len: 0, kind: Kind::Flush },
                1..=9 => Transfer { offset, len, kind: Kind::Write },
                _ => Transfer { offset, len, kind: Kind::Read },
            }
        }
    }

    /// The longest wait of `requests`, of which as many as promised are outstanding.
    fn longest_s(model: &DeviceModel, requests: usize, random: &mut Random) -> Result<f64, ModelError> {
        let mut device = model.build()?;
        let mut arrivals = Vec::new();
        let (mut longest, mut now) = (0, 0);
        for _ in 0..requests {
            while arrivals.len() < requests && arrivals.iter().flatten().count() < OUTSTANDING as usize {
                device.arrive(arrivals.len(), random.transfer(), now);
                arrivals.push(Some(now));
            }
            let Some((id, over)) = device.pop_due(u64::MAX) else { return Ok(f64::INFINITY) };
            now = now.max(over);
            longest = longest.max(over - arrivals[id].take().expect("answered once"));
        }
        Ok(longest as f64 / 1e9)
    }

    /// Whatever the parameters: no such device, or one that answers everything in time.
    #[test]
    fn every_model_is_refused_or_answers_in_time() {
        let seed = crate::test_seed(7);
        let mut random = Random(seed);
        let (mut refused, mut slowest, mut made) = (0, 0.0f64, 0);
        for round in 0..4000 {
            let model = random.model();
            match longest_s(&model, 600, &mut random) {
                Err(_) => refused += 1,
                Ok(longest) => {
                    assert!(longest <= ANSWER_S, "round {round}: {longest} s by {model:?}");
                    (slowest, made) = (slowest.max(longest), made + 1);
                }
            }
        }
        eprintln!("{made} models made, {refused} refused; the longest wait was {slowest:.1} s");
        assert!(made > 400 && refused > 400, "{made} made, {refused} refused");
        assert!(slowest > ANSWER_S / 20.0, "{slowest} s: slow models must be among them");
    }

    /// The same from texts: of every model that has a name, with bytes changed.
    #[test]
    fn every_text_is_refused_or_a_model_that_answers_in_time() {
        let seed = crate::test_seed(8);
        let mut random = Random(seed);
        let mut made = 0;
        for _ in 0..3000 {
            let names = ["hdd", "hdd-7200", "hdd-10k", "gp3", "wide-slow", "s3", "nvme"];
            let model = DeviceModel::named(names[random.below(7) as usize]).expect("it has a name");
            let mut text = toml::to_string(&model).expect("plain data").into_bytes();
            for _ in 0..1 + random.below(3) {
                let at = random.below(text.len() as u64) as usize;
                let new = b"0123456789.-e+infa\n "[random.below(20) as usize];
                match random.below(3) {
                    0 => text[at] = new,
                    1 => text.insert(at, new),
                    _ => drop(text.remove(at)),
                }
            }
            let Ok(model) = DeviceModel::from_toml(&String::from_utf8(text).expect("ASCII")) else {
                continue;
            };
            let longest = longest_s(&model, 300, &mut random).expect("it was accepted");
            assert!(longest <= ANSWER_S, "{longest} s by {model:?}");
            made += 1;
        }
        assert!(made > 300, "{made} of the texts were models");
    }

    #[test]
    fn the_error_names_parameter_value_and_bounds() {
        let says = |text: &str| DeviceModel::from_toml(text).expect_err(text).to_string();
        for (text, parts) in [
            ("kind = \"volume\"\nlatency_us = 1e300", ["latency_us", "1000000000000", "10000000"]),
            ("kind = \"volume\"\nlatency_us = nan", ["latency_us", "NaN", "0.001"]),
            ("kind = \"volume\"\niops = -3.0", ["iops", "-3", "0.1"]),
            ("kind = \"volume\"\nwidth = 1\nlatency_us = 1e6", ["width", "wait for up to", "60 s"]),
            ("kind = \"disk\"\nage_limit_ms = inf", ["age_limit_ms", "inf", "10000"]),
            ("kind = \"disk\"\nseek_min_ms = 20.0", ["seek_min_ms", "20", "seek_full_ms"]),
            ("kind = \"disk\"\nseek_points = [[0.5, 1.0], [0.4, 2.0]]", ["seek_points", "number 2", "1024"]),
            ("kind = \"disk\"\nrpm = 60", ["rpm", "wait for up to", "60 s"]),
            (
                "kind = \"disk\"\nwrite_cache_bytes = 1000000\nwrite_cache_requests = 9999",
                ["write_cache_requests", "wait for", "60 s"],
            ),
        ] {
            let error = says(text);
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }

    /// Also what does not come through `from_toml` is checked: other formats, and structures made in code.
    #[test]
    fn no_way_leads_around_the_bounds() {
        let text = "kind = \"volume\"\nlatency_us = 1e300";
        assert!(toml::from_str::<DeviceModel>(text).is_err(), "deserialised without a check");
        let volume = VolumeModel { latency_us: f64::NAN, ..VolumeModel::default() };
        assert!(DeviceModel::Volume(volume).build().is_err());
        let disk = DiskModel { rpm: 0, ..DiskModel::default() };
        assert!(DeviceModel::Disk(disk).build().is_err());
    }

    /// Reads have their turn though the write cache is full all the time.
    #[test]
    fn a_stream_of_cached_writes_does_not_starve_reads() {
        let mut disk = DeviceModel::hdd_7200().build().expect("a model");
        let mut random = Random(1);
        let mut write = || Transfer { offset: random.below(1 << 28) * 4096, len: 4096, kind: Kind::Write };
        (0..64).for_each(|id| disk.arrive(id, write(), 0));
        let mut now = 0;
        let mut asked = None;
        for id in 64..20_000 {
            let (over, at) = disk.pop_due(u64::MAX).expect("writes are outstanding");
            now = at;
            if over == usize::MAX {
                let waited_ms = (now - asked.expect("asked before")) / 1_000_000;
                assert!(waited_ms < 700, "the read waited {waited_ms} ms");
                return;
            }
            disk.arrive(id, write(), now);
            if id == 2000 {
                asked = Some(now);
                disk.arrive(usize::MAX, Transfer { offset: 1 << 39, len: 4096, kind: Kind::Read }, now);
            }
        }
        panic!("the read was never served in {} s", now / 1_000_000_000);
    }
}
