//! Many power cuts: `nice -n 19 cargo run --release -p snowmelt-store --example power_cut --
//! [cuts] [first seed] [ledger]`.
//!
//! Half of the seeds are runs with threads. Without a first seed it draws one at random. Ends with
//! the tally, or with the seed of the first wrong answer; with a ledger
//! (docs/src/measurements/power-cuts.tsv) it adds a line there, so that the runs add up. Ctrl-C and
//! SIGTERM end it after the seed under way, and the line counts the seeds that were done.

#[path = "../tests/support/cuts.rs"]
mod cuts;
#[path = "../tests/support/mod.rs"]
mod support;

use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::panic::catch_unwind;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use cuts::crew::Crew;
use cuts::{Cuts, Tally};

/// Runs one seed; answers its tally and its digest.
fn one(seed: u64) -> Result<(Tally, u64), String> {
    let dir = tempfile::tempdir().expect("room for a lock file");
    // Every seed is short or long: a young database has other troubles than an old one.
    let cuts = if seed.is_multiple_of(10) { 100 } else { 10 };
    if seed % 4 < 2 {
        let mut run = Crew::new(dir.path(), seed, None);
        run.run(cuts).map(|()| (run.tally, run.digest()))
    } else {
        let mut run = Cuts::new(dir.path(), seed, None);
        run.run(cuts).map(|()| (run.tally, run.digest()))
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mut number = |otherwise: u64| args.next().map_or(otherwise, |a| a.parse().expect("a number"));
    let cuts = number(100_000);
    let first_seed = number(RandomState::new().hash_one(cuts) >> 16);
    let ledger = args.next();
    snowmelt_io::set_notice(|_| {});
    let stop = snowmelt_base::signals::stop_flag().expect("the signals may be handled");
    println!("seeds from {first_seed} on");
    let begun = std::time::Instant::now();
    let (mut total, mut digest, mut wrong) = (Tally::default(), 0u64, None);
    for seed in first_seed.. {
        if total.cuts >= cuts || stop.load(Ordering::Relaxed) {
            break;
        }
        // a panic is a wrong answer, too, and needs its seed
        let judged = catch_unwind(|| one(seed));
        match judged.unwrap_or_else(|_| Err("a panic, see above".into())) {
            Ok((tally, of_one)) => {
                total.add(&tally);
                digest = digest.rotate_left(1) ^ of_one;
            }
            Err(why) => {
                wrong = Some(format!("seed {seed}: {why}"));
                break;
            }
        }
        if seed % 500 == 0 {
            println!("{:.0} s: {total:?}", begun.elapsed().as_secs_f64());
        }
    }
    let result = wrong.clone().unwrap_or_else(|| "no wrong answer".into());
    let seconds = begun.elapsed().as_secs_f64();
    println!("{seconds:.0} s, seeds from {first_seed} on, digest {digest:016x}: {result}; {total:?}");
    if let Some(path) = ledger {
        add_line(&path, first_seed, &total, digest, &result);
    }
    if wrong.is_some() {
        std::process::exit(1);
    }
}

/// Adds the run to the ledger.
fn add_line(path: &str, first_seed: u64, total: &Tally, digest: u64, result: &str) {
    let commit = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output();
    let commit = commit.map_or_else(|_| String::new(), |o| String::from_utf8_lossy(&o.stdout).trim().into());
    let Tally { cuts, kills, commits, opens, .. } = total;
    let version = env!("CARGO_PKG_VERSION");
    let line = format!(
        "{}\t{version} {commit}\t{first_seed}\t{cuts}\t{kills}\t{commits}\t{opens}\t{digest:016x}\t{result}\n",
        today()
    );
    let file = std::fs::OpenOptions::new().append(true).open(path);
    file.and_then(|mut f| f.write_all(line.as_bytes())).expect("the ledger can be written");
}

/// The date, as in 2026-01-31 (UTC). After Hinnant, "chrono-compatible low-level date
/// algorithms": civil_from_days.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}
