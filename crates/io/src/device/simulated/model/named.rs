//! The models that have a name, with the figures they follow.
//!
//! | name | after | figures |
//! |---|---|---|
//! | `hdd` | no drive in particular: 7200 rpm, writes go through | |
//! | `hdd-7200` | Seagate ST2000DM006 | measured: reads 17.5 ms alone, 94 per second with 32; writes 124 per second; 143 MB/s |
//! | `hdd-10k` | Seagate Cheetah ST318404LC | published: seeks 0.6, 5.2, 10 ms, 6.0 ms a turn; curve after the Cheetah 9LP |
//! | `gp2-100` | AWS gp2 of 100 GiB | published: 300 per second, 3000 while 5.4 million credits last, 128 MiB/s; mean 0.5 ms |
//! | `gp3` | AWS gp3 as bought: 3000 per second, 125 MiB/s | measured: half of the reads within 0.43 ms, 95 % within 0.71 |
//! | `st1-500` | AWS st1 of 500 GiB | published: 40 MiB/s per TiB, 250 while 1 TiB of credits per TiB lasts, counted in MiB |
//! | `azure-p10` | Azure Premium SSD P10 | published: 500 per second, 100 MB/s; 3500 and 170 MB/s for 30 minutes |
//! | `wide-slow` | a network volume of which only parallel use gets anything | 3 ms, 32 at once |
//! | `e3` | the volume of the RavenDB restart experiment | published: reads over 0.5 ms, wide; scattered writes below 3 MB/s; copies 10 MB/s |
//! | `s3` | object storage | first byte 10 to 40 ms with a long tail, 50 to 90 MB/s per request, 5500 per second |
//! | `ssd` | Samsung 860 EVO, SATA | data sheet: 10 000 reads of 4 KiB per second alone, 98 000 with 32; 550 MB/s |
//! | `nvme` | a data-centre NVMe drive | 80 µs, 3 GB/s |
//!
//! `snowmelt-lab device check` measures them against these.

use crate::device::simulated::model::DeviceModel;
use crate::device::simulated::model::parameters::{DiskModel, VolumeModel};

const MIB: f64 = (1 << 20) as f64;

/// Seeks of a Cheetah 9LP: (cylinders of 6894, milliseconds). One generation before the
/// ST318404LC, whose three published seek times it is scaled to.
const CHEETAH_9LP: [(f64, f64); 8] = [
    (1.0, 0.83),
    (14.0, 1.45),
    (90.0, 2.07),
    (425.0, 3.01),
    (1500.0, 4.76),
    (2800.0, 6.16),
    (4200.0, 7.65),
    (6894.0, 10.63),
];

impl DeviceModel {
    /// A 7200 rpm disk.
    pub fn hdd() -> DeviceModel {
        DeviceModel::Disk(DiskModel::default())
    }

    /// A 2 TB desktop disk with 7200 turns per minute and a write cache (after measurements of
    /// a Seagate ST2000DM006).
    pub fn hdd_7200() -> DeviceModel {
        DeviceModel::Disk(DiskModel {
            capacity_bytes: 2_000_000_000_000,
            seek_min_ms: 0.8,
            seek_full_ms: 24.0,
            outer_bytes_per_s: 186e6,
            inner_bytes_per_s: 95e6,
            heads: 4,
            queue: 7, // real firmware gains less than one that knows every position among 32
            segments: 32,
            write_settle_ms: 1.5,
            write_cache_bytes: 64 << 20,
            write_queue: 32,
            ..DiskModel::default()
        })
    }

    /// An 18 GB SCSI disk with 10 000 turns per minute, of the year 2000 (after the published
    /// figures of a Seagate Cheetah ST318404LC). Writes go through, as SCSI disks were run.
    pub fn hdd_10k() -> DeviceModel {
        let scaled = |(cylinders, ms): (f64, f64)| {
            let (first, last) = (CHEETAH_9LP[0].1, CHEETAH_9LP[7].1);
            (cylinders / CHEETAH_9LP[7].0, 0.6 + (ms - first) * (10.0 - 0.6) / (last - first))
        };
        DeviceModel::Disk(DiskModel {
            capacity_bytes: 18_200_000_000,
            rpm: 10_000,
            seek_min_ms: 0.6,
            seek_full_ms: 10.0,
            seek_points: CHEETAH_9LP.map(scaled).to_vec(),
            outer_bytes_per_s: 38e6,
            inner_bytes_per_s: 30e6,
            heads: 6,
            interface_bytes_per_s: 160e6,
            segments: 8,
            segment_bytes: 512 << 10,
            ..DiskModel::default()
        })
    }

    /// An older general purpose volume of AWS, of `gib` GiB: 3 requests per second and GiB, and
    /// 3000 while credits last.
    pub fn gp2(gib: u32) -> DeviceModel {
        DeviceModel::Volume(VolumeModel {
            latency_us: 420.0, // with the tail a mean of 0.5 ms
            jitter: 0.3,
            tail_share: 0.02, // so that 99 of 100 are within single-digit milliseconds
            tail_us: 4_000.0,
            tail_jitter: 0.3,
            width: 256,
            iops: (3.0 * f64::from(gib)).clamp(100.0, 16_000.0),
            burst_iops: (gib < 1000).then_some(3000.0),
            io_credits: if gib < 1000 { 5.4e6 } else { 0.0 },
            bytes_per_s: if gib <= 170 { 128.0 } else { 250.0 } * MIB,
            burst_ms: 100.0,
            ..VolumeModel::default()
        })
    }

    /// A volume of AWS on disks, of `gib` GiB, for long requests: it counts megabytes, and a
    /// short request that continues no other as one, too.
    pub fn st1(gib: u32) -> DeviceModel {
        let tib = f64::from(gib) / 1024.0;
        let (base, burst) = ((40.0 * tib).min(500.0), (250.0 * tib).min(500.0));
        DeviceModel::Volume(VolumeModel {
            latency_us: 12_000.0,
            jitter: 0.4,
            width: 64,
            iops: base,
            burst_iops: Some(burst),
            io_credits: tib * MIB, // as many requests of 1 MiB as the volume has room for
            io_unit_bytes: 1 << 20,
            streams: 16,
            bytes_per_s: 500.0 * MIB,
            burst_ms: 100.0,
            ..VolumeModel::default()
        })
    }

    /// A Premium SSD of Azure, of 128 GiB: it bursts for half an hour.
    pub fn azure_p10() -> DeviceModel {
        const HALF_HOUR_S: f64 = 1800.0;
        let (iops, burst_iops, bytes_per_s, burst_bytes_per_s) = (500.0, 3500.0, 100e6, 170e6);
        DeviceModel::Volume(VolumeModel {
            latency_us: 1_800.0,
            jitter: 0.3,
            tail_share: 0.01,
            tail_us: 4_000.0,
            tail_jitter: 0.3,
            width: 256,
            iops,
            burst_iops: Some(burst_iops),
            io_credits: (burst_iops - iops) * HALF_HOUR_S,
            bytes_per_s,
            burst_bytes_per_s: Some(burst_bytes_per_s),
            byte_credits: (burst_bytes_per_s - bytes_per_s) * HALF_HOUR_S,
            burst_ms: 100.0,
            ..VolumeModel::default()
        })
    }

    /// A volume on which scattered writes of 4 KiB never reach 3 MB/s and a copy reaches 10
    /// MB/s, though many reads are served at once. Nothing is published about the caps of
    /// reads.
    pub fn e3() -> DeviceModel {
        DeviceModel::Volume(VolumeModel {
            latency_us: 700.0,
            width: 128,
            iops: 20_000.0,
            bytes_per_s: 125.0 * MIB,
            write_iops: Some(700.0),
            write_bytes_per_s: Some(10e6),
            burst_ms: 10.0,
            ..VolumeModel::default()
        })
    }

    /// A general purpose volume of AWS as it is bought: 3000 requests and 125 MiB per second,
    /// latency flat up to there.
    pub fn gp3() -> DeviceModel {
        let (p50_us, p95_us): (f64, f64) = (430.0, 710.0);
        let jitter = (p95_us / p50_us).ln() / 1.645; // of a log-normal distribution with these two
        DeviceModel::Volume(VolumeModel {
            latency_us: p50_us * (jitter * jitter / 2.0).exp(),
            jitter,
            width: 256,
            burst_ms: 100.0,
            ..VolumeModel::default()
        })
    }

    /// A network volume with 3 ms latency, 32 at once, capped at 3000 IOPS and 125 MiB/s.
    pub fn wide_slow() -> DeviceModel {
        DeviceModel::Volume(VolumeModel::default())
    }

    /// The volume of [`DeviceModel::wide_slow`] with room for one full width after a pause: 32
    /// reads at once take as long as one.
    pub fn wide_slow_burst() -> DeviceModel {
        let volume = VolumeModel::default();
        let burst_ms = volume.width as f64 / volume.iops * 1e3;
        DeviceModel::Volume(VolumeModel { burst_ms, ..volume })
    }

    /// Object storage: slow to begin, with a long tail, and wide.
    pub fn s3() -> DeviceModel {
        let (median_us, jitter): (f64, f64) = (27_000.0, 0.7);
        DeviceModel::Volume(VolumeModel {
            latency_us: median_us * (jitter * jitter / 2.0).exp(),
            jitter,
            width: 256,
            iops: 5500.0,
            io_unit_bytes: 1 << 40, // one request, however long
            bytes_per_s: 12.5e9,
            line_bytes_per_s: 70e6,
            burst_ms: 100.0,
            ..VolumeModel::default()
        })
    }

    /// A SATA SSD: 100 µs for 4 KiB, 32 at once as its interface queues them, 98 000 IOPS and
    /// 550 MB/s (after the data sheet of a Samsung 860 EVO).
    pub fn ssd() -> DeviceModel {
        let line_bytes_per_s = 550e6;
        DeviceModel::Volume(VolumeModel {
            // With the bytes of 4 KiB over the interface, 10 000 reads per second.
            latency_us: 100.0 - 4096.0 / line_bytes_per_s * 1e6,
            width: 32,
            iops: 98_000.0,
            io_unit_bytes: 128 << 10,
            bytes_per_s: line_bytes_per_s,
            line_bytes_per_s,
            ..VolumeModel::default()
        })
    }

    /// An NVMe drive: 80 µs, 64 at once, 3 GB/s.
    pub fn nvme() -> DeviceModel {
        DeviceModel::Volume(VolumeModel {
            latency_us: 80.0,
            width: 64,
            iops: 600_000.0,
            io_unit_bytes: 128 << 10,
            bytes_per_s: 3e9,
            line_bytes_per_s: 3e9,
            ..VolumeModel::default()
        })
    }
}
