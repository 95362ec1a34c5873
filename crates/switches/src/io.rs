//! The switches of I/O: engine, queue, read-ahead, device. Each sets one number or one choice
//! of the store's settings; where none is given, the device's cost model decides.

use snowmelt_base::size;
use snowmelt_io::{InPlace, IoEngine, QueueConfig};
use snowmelt_store::{DiskHints, PAGE_BYTES, ReadAhead, Seams, StoreConfig};

use crate::device::{DeviceArg, StripeDevices};

/// Switches of I/O alone, for commands with a memory switch of their own.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "I/O")]
pub struct IoArgs {
    /// Engine of the reads: io_uring, a pool of threads, or the thread that asks
    #[arg(long, value_name = "uring|threads|inline", default_value = "uring")]
    pub engine: IoEngine,
    /// Requests a sweep of the elevator takes on beside those that were there when it began: 0
    /// to 1000000
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub fairness: u32,
    /// Device requests outstanding at a time, of each stripe: 1 to 1024 [default: as the
    /// device's costs say]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub depth: Option<u32>,
    /// Pages that are read though they are not wanted, so that their neighbours on both
    /// sides are one request: 0 to 255, or model, as many as the device transfers in the time
    /// of a request
    #[arg(long, value_name = "model|PAGES", default_value = "model")]
    pub gap: Gap,
    /// A lone read that a query waits for is carried out by the thread that waits (on), or
    /// goes through the queue (off); auto: through the queue where an arm wants one order of
    /// all
    #[arg(long, value_name = "auto|on|off", default_value = "auto")]
    pub in_place: InPlace,
    /// File descriptors of each stripe, dealt to the threads that read in place or as the
    /// engine threads: 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub descriptors: u32,
    /// Read-ahead rules: auto, none, all, or a list of start-up,extent,planned,scan,warm-list
    #[arg(long, value_name = "RULES", default_value = "auto", value_parser = ReadAhead::parse)]
    pub read_ahead: ReadAhead,
    /// Rule extent: misses of an extent that have the rest of it read: 1 to 65536
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub extent_misses: u32,
    /// Rule extent: seconds within which they must fall: 0.001 to 86400
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0, value_parser = window)]
    pub extent_window: f64,
    /// Rule scan: most leaves read ahead of a scan: 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub scan_leaves: u32,
    /// Rule scan: leaves in a row that a scan visits before the rule begins: 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub scan_after: u32,
    /// Read past the page cache (O_DIRECT): on or off
    #[arg(long, value_name = "ON|OFF", default_value = "on", value_parser = on_off, action = clap::ArgAction::Set)]
    pub direct: bool,
    /// Begin without what the system and the last run know of the disks: caps of the own cgroup,
    /// the name that a cloud gave the disk, what was learned before. All of it is learned anew;
    /// the profile of a probe counts
    #[arg(long)]
    pub no_hints: bool,
    /// The device: real, or simulated in real time: sim:MODEL with hdd, ssd, wide-slow, nvme,
    /// others of the laboratory, raid0:MODEL*N or FILE.toml. With the number of a stripe in
    /// front (1=sim:hdd) it is that stripe's alone (repeatable)
    #[arg(long, value_name = "[STRIPE=]DEVICE", default_value = "real")]
    pub device: Vec<DeviceArg>,
}

/// The longest gap to read through: in bytes, or as the cost model says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap(pub Option<u64>);

impl std::str::FromStr for Gap {
    type Err = String;

    fn from_str(text: &str) -> Result<Gap, String> {
        /// With more the merged request would be longer than the longest there is.
        const MOST: u64 = 255;
        match text.parse::<u64>() {
            _ if text == "model" => Ok(Gap(None)),
            Ok(pages) if pages <= MOST => Ok(Gap(Some(pages * PAGE_BYTES as u64))),
            _ => Err(format!("use model, or 0 to {MOST} pages of {}", size::exact(PAGE_BYTES as u64))),
        }
    }
}

fn window(text: &str) -> Result<f64, String> {
    const LONGEST_S: f64 = 86_400.0;
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=LONGEST_S).contains(&seconds) => Ok(seconds),
        _ => Err(format!("use 0.001 to {LONGEST_S} seconds")),
    }
}

fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" | "1" => Ok(true),
        "off" | "0" => Ok(false),
        _ => Err("use on or off".into()),
    }
}

impl IoArgs {
    /// The store's settings with the default memory; `devices` of the stripes count before
    /// those of `--device`.
    pub fn config(&self, devices: StripeDevices) -> StoreConfig {
        let queue = QueueConfig {
            engine: self.engine,
            fairness: self.fairness as usize,
            depth: self.depth,
            gap_bytes: self.gap.0,
            in_place: self.in_place,
            ..QueueConfig::default()
        };
        let config = StoreConfig::default();
        let (devices, journal_devices) = devices.or_as(&self.device).wrap(&config.seams.clock).unzip();
        StoreConfig {
            queue,
            direct: self.direct,
            descriptors: self.descriptors,
            hints: if self.no_hints { DiskHints::Hidden } else { DiskHints::Used },
            read_ahead: ReadAhead {
                extent_misses: self.extent_misses,
                extent_window_ms: (self.extent_window * 1e3).round() as u64,
                scan_leaves: self.scan_leaves,
                scan_after: self.scan_after,
                ..self.read_ahead.clone()
            },
            seams: Seams { devices, journal_devices, ..config.seams },
            ..config
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        io: IoArgs,
    }

    fn config(args: &[&str]) -> Result<StoreConfig, String> {
        let args = ["test"].iter().chain(args).copied();
        let parsed = Command::try_parse_from(args).map_err(|e| e.to_string())?;
        Ok(parsed.io.config(StripeDevices::default()))
    }

    #[test]
    fn without_switches_the_settings_are_the_defaults() {
        let (is, should) = (config(&[]).unwrap(), StoreConfig::default());
        assert_eq!(format!("{:?}", is.queue), format!("{:?}", should.queue));
        assert_eq!((is.read_ahead, is.descriptors), (should.read_ahead, should.descriptors));
        assert_eq!(is.hints, DiskHints::Used);
        assert!(is.direct && is.seams.devices.is_none() && is.seams.journal_devices.is_none());
    }

    #[test]
    fn each_switch_sets_what_it_is_called_after() {
        let c = config(&[
            "--engine=threads",
            "--fairness=9",
            "--depth=3",
            "--gap=10",
            "--in-place=off",
            "--descriptors=5",
            "--read-ahead=extent,scan",
            "--extent-misses=7",
            "--extent-window=1.5",
            "--scan-leaves=99",
            "--scan-after=4",
            "--no-hints",
            "--direct=off",
        ])
        .unwrap();
        assert_eq!(c.queue.engine, IoEngine::Threads);
        assert_eq!((c.queue.fairness, c.queue.depth, c.queue.gap_bytes), (9, Some(3), Some(81_920)));
        assert_eq!((c.queue.in_place, c.descriptors), (InPlace::Off, 5));
        assert_eq!((c.hints, c.direct), (DiskHints::Hidden, false));
        let r = c.read_ahead;
        assert!(r.extent && r.scan && !r.planned);
        assert_eq!((r.extent_misses, r.extent_window_ms, r.scan_leaves, r.scan_after), (7, 1500, 99, 4));
        assert_eq!(config(&["--gap=0"]).unwrap().queue.gap_bytes, Some(0));
        assert_eq!(config(&["--gap=model"]).unwrap().queue.gap_bytes, None);
    }

    #[test]
    fn wrong_values_are_refused_with_the_bounds() {
        for (arg, bounds) in [
            ("--engine=posix-aio", "uring, threads and inline"),
            ("--fairness=1000001", "0..=1000000"),
            ("--depth=0", "1..=1024"),
            ("--gap=256", "0 to 255 pages of 8k"),
            ("--gap=-1", "0 to 255 pages of 8k"),
            ("--in-place=maybe", "auto, on and off"),
            ("--direct=maybe", "use on or off"),
            ("--descriptors=65", "1..=64"),
            ("--extent-misses=0", "1..=65536"),
            ("--extent-window=0", "0.001 to 86400 seconds"),
            ("--scan-leaves=0", "1..=1000000"),
            ("--scan-after=0", "1..=1000"),
            ("--device=9x=real", "use real"),
        ] {
            let error = config(&[arg]).err().unwrap_or_else(|| panic!("{arg} was taken"));
            assert!(error.contains(bounds), "{arg}: {error}");
        }
    }
}
