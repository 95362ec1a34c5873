//! Every model within bounds answers every request in time; every one out of bounds is refused.

use snowmelt_base::random::Random;

use crate::device::simulated::model::bounds::{ANSWER_S, ModelError, OUTSTANDING, REQUEST_BYTES};
use crate::device::simulated::model::parameters::{DiskModel, VolumeModel};
use crate::device::simulated::model::{DeviceModel, MODEL_NAMES, RaidModel};
use crate::device::timed::{Transfer, TransferKind};

/// Parameters of devices, made up.
struct Descriptions(Random);

impl Descriptions {
    /// Mostly what a person would write, sometimes any bits at all.
    fn float(&mut self, usual: f64) -> f64 {
        const ODD: [f64; 10] =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, -0.0, 1e300, 1e-300, 5e-324, 1e12];
        match self.0.below(40) {
            0 => ODD[self.0.below(ODD.len() as u64) as usize],
            1 => f64::from_bits(self.0.word()),
            // Anywhere from a thousandth to a thousand times.
            2..=9 => usual * 10f64.powf(self.0.below(600) as f64 / 100.0 - 3.0),
            10..=19 => usual * (0.5 + self.0.below(100) as f64 / 50.0),
            _ => usual,
        }
    }

    fn whole(&mut self, usual: u64) -> u64 {
        match self.0.below(40) {
            0 => self.0.word(),
            1 => [0, 1, u64::MAX, 1 << 63][self.0.below(4) as usize],
            2..=9 => self.float(usual as f64) as u64,
            _ => usual,
        }
    }

    fn disk(&mut self) -> DiskModel {
        let of = if self.0.below(2) == 0 { DeviceModel::hdd() } else { DeviceModel::hdd_7200() };
        let DeviceModel::Disk(d) = of else { unreachable!("both are disks") };
        let points = self.0.below(4) as usize;
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
            seek_points: (1..=points).map(|i| (self.float(i as f64 / 4.0), self.float(i as f64))).collect(),
            write_settle_ms: self.float(d.write_settle_ms),
            write_cache_bytes: self.whole(d.write_cache_bytes),
            write_cache_requests: self.whole(d.write_cache_requests as u64) as usize,
            write_queue: self.whole(d.write_queue as u64) as usize,
        }
    }

    fn volume(&mut self) -> VolumeModel {
        let of = [DeviceModel::wide_slow(), DeviceModel::gp3(), DeviceModel::s3()];
        let DeviceModel::Volume(v) = &of[self.0.below(3) as usize] else { unreachable!("all are volumes") };
        VolumeModel {
            latency_us: self.float(v.latency_us),
            jitter: self.float(v.jitter),
            seed: self.0.word(),
            width: self.whole(v.width as u64) as usize,
            iops: self.float(v.iops),
            io_unit_bytes: self.whole(v.io_unit_bytes),
            bytes_per_s: self.float(v.bytes_per_s),
            line_bytes_per_s: self.float(v.line_bytes_per_s),
            burst_ms: self.float(v.burst_ms),
            write_latency_us: self.maybe(v.latency_us),
            write_iops: self.maybe(v.iops / 10.0),
            write_bytes_per_s: self.maybe(v.bytes_per_s / 10.0),
            io_credits: self.maybe(v.iops).unwrap_or(0.0),
            burst_iops: self.maybe(v.iops * 10.0),
            byte_credits: self.maybe(v.bytes_per_s).unwrap_or(0.0),
            burst_bytes_per_s: self.maybe(v.bytes_per_s * 10.0),
            streams: self.whole(2) as usize,
            tail_share: self.maybe(0.1).unwrap_or(0.0),
            tail_us: self.float(v.latency_us),
            tail_jitter: self.float(0.5),
        }
    }

    fn maybe(&mut self, usual: f64) -> Option<f64> {
        (self.0.below(3) == 0).then(|| self.float(usual))
    }

    fn model(&mut self) -> DeviceModel {
        match self.0.below(5) {
            0 | 1 => DeviceModel::Disk(self.disk()),
            2 | 3 => DeviceModel::Volume(self.volume()),
            _ => {
                let disk = self.0.below(2) == 0;
                let member =
                    if disk { DeviceModel::Disk(self.disk()) } else { DeviceModel::Volume(self.volume()) };
                let (members, chunk_bytes) = (self.whole(4) as u32, self.whole(64 << 10));
                DeviceModel::Raid0(RaidModel { member: Box::new(member), members, chunk_bytes })
            }
        }
    }
}

fn transfer(random: &mut Random) -> Transfer {
    let len = [512, 4096, 1 << 17, REQUEST_BYTES][random.below(4) as usize];
    let places = 1 << [10, 25, 31, 50][random.below(4) as usize];
    let offset = random.below(places) * 512;
    match random.below(20) {
        0 => Transfer { offset: 0, len: 0, kind: TransferKind::Flush },
        1..=9 => Transfer { offset, len, kind: TransferKind::Write },
        _ => Transfer { offset, len, kind: TransferKind::Read },
    }
}

/// The longest wait of `requests`, of which as many as promised are outstanding.
fn longest_s(model: &DeviceModel, requests: usize, random: &mut Random) -> Result<f64, ModelError> {
    let mut device = model.build()?;
    if random.below(2) == 0 {
        device.spend_credits(0);
    }
    let mut arrivals = Vec::new();
    let (mut longest, mut now) = (0, 0);
    for _ in 0..requests {
        while arrivals.len() < requests && arrivals.iter().flatten().count() < OUTSTANDING as usize {
            device.arrive(arrivals.len(), transfer(random), now);
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
    let seed = snowmelt_base::test_seed(7);
    let mut made_up = Descriptions(Random(seed));
    let (mut refused, mut slowest, mut made) = (0, 0.0f64, 0);
    for round in 0..4000 {
        let model = made_up.model();
        match longest_s(&model, 600, &mut made_up.0) {
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

/// Texts of every model that has a name, with bytes changed.
#[test]
fn every_text_is_refused_or_a_model_that_answers_in_time() {
    let seed = snowmelt_base::test_seed(8);
    let mut random = Random(seed);
    let mut made = 0;
    for _ in 0..5000 {
        let names = MODEL_NAMES.into_iter().chain(["raid0:hdd*4", "raid0:ssd*2,chunk=4k"]);
        let names: Vec<&str> = names.collect();
        let name = names[random.below(names.len() as u64) as usize];
        let model = DeviceModel::named(name).expect("it has a name");
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
        ("kind = \"volume\"\nwrite_iops = 0.0", ["write_iops", "0", "0.1"]),
        ("kind = \"volume\"\nio_credits = 1e11", ["io_credits", "100000000000", "30000000000"]),
        ("kind = \"volume\"\nburst_iops = 2999.0", ["iops", "3000", "burst_iops (2999)"]),
        ("kind = \"volume\"\ntail_share = 1.5", ["tail_share", "1.5", "between 0 and 1"]),
        (
            "kind = \"volume\"\nwidth = 1\ntail_share = 0.01\ntail_us = 1e6",
            ["latencies", "wait for up to", "60 s"],
        ),
        ("kind = \"volume\"\nwrite_bytes_per_s = 1e6", ["rates", "wait for up to 135", "60 s"]),
        ("kind = \"disk\"\nage_limit_ms = inf", ["age_limit_ms", "inf", "10000"]),
        ("kind = \"disk\"\nseek_min_ms = 20.0", ["seek_min_ms", "20", "seek_full_ms"]),
        ("kind = \"disk\"\nseek_points = [[0.5, 1.0], [0.4, 2.0]]", ["seek_points", "number 2", "1024"]),
        ("kind = \"disk\"\nrpm = 60", ["rpm", "wait for up to", "60 s"]),
        ("kind = \"raid0\"\nmembers = 65\n[member]\nkind = \"disk\"", ["members", "65", "64"]),
        (
            "kind = \"raid0\"\nmembers = 2\n[member]\nkind = \"disk\"\nrpm = 60",
            ["rpm", "wait for up to", "60 s"],
        ),
        (
            "kind = \"raid0\"\nmembers = 2\n[member]\nkind = \"raid0\"\nmembers = 2\n[member.member]\nkind = \"disk\"",
            ["member", "array", "disk or a volume"],
        ),
        (
            "kind = \"disk\"\nwrite_cache_bytes = 1000000\nwrite_cache_requests = 9999",
            ["write_cache_requests", "wait for", "60 s"],
        ),
    ] {
        let error = says(text);
        assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
    }
}

/// Also what does not come through `from_toml` is checked: other formats, and structures made
/// in code.
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
    let mut write =
        || Transfer { offset: random.below(1 << 28) * 4096, len: 4096, kind: TransferKind::Write };
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
            disk.arrive(usize::MAX, Transfer { offset: 1 << 39, len: 4096, kind: TransferKind::Read }, now);
        }
    }
    panic!("the read was never served in {} s", now / 1_000_000_000);
}
