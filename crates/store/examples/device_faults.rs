//! Many faults of devices: `nice -n 19 cargo run --release -p snowmelt-store --example
//! device_faults -- [cases] [first seed] [threads]`.
//!
//! Ends with the outcomes by file and fault, and each case that broke a promise with its seed:
//! run it again with `-- 50 SEED 1`. A case that takes longer than two minutes ends the run: it
//! hangs.

#[path = "../tests/support/device_faults.rs"]
mod device_faults;
#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use device_faults::{Outcome, Tally, run};

/// Cases of one seed's history.
const OF_ONE: u64 = 50;

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("a number"));
    let cases = args.next().unwrap_or(20_000);
    let first_seed = args.next().unwrap_or(1);
    let threads = args.next().unwrap_or(2);
    snowmelt_io::set_notice(|_| {});
    std::panic::set_hook(Box::new(|_| {}));
    let begun = Instant::now();
    let (next, done, total) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(Tally::default()));
    let seeds = cases.div_ceil(OF_ONE);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::SeqCst);
                    if i >= seeds {
                        return;
                    }
                    let dir = tempfile::tempdir().expect("room for a lock file");
                    let tally = run(dir.path(), first_seed.wrapping_add(i), OF_ONE);
                    total.lock().expect("no holder panics").add(tally);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        watch(&done, seeds);
    });
    let total = total.into_inner().expect("no holder panics");
    println!("{}", total.table());
    for broken in &total.broken {
        println!("{broken}");
    }
    println!(
        "{:.0} s, seeds {first_seed} to {}: {} cases, {} right, {} not opened, {} not read, {} in the window, {} broken",
        begun.elapsed().as_secs_f64(),
        first_seed + seeds - 1,
        total.cases,
        total.count(Outcome::Right),
        total.count(Outcome::NotOpened),
        total.count(Outcome::NotRead),
        total.count(Outcome::InWindow),
        total.broken.len()
    );
    std::process::exit(i32::from(!total.broken.is_empty()));
}

/// Ends the process when no seed ends for so long.
fn watch(done: &AtomicU64, seeds: u64) {
    let (mut before, mut since) = (0, Instant::now());
    while done.load(Ordering::SeqCst) < seeds {
        std::thread::sleep(Duration::from_millis(200));
        let now = done.load(Ordering::SeqCst);
        if now != before {
            (before, since) = (now, Instant::now());
        }
        if since.elapsed() > Duration::from_secs(120) {
            println!("{now} of {seeds} seeds are done, and no other ends for two minutes: a case hangs");
            std::process::exit(2);
        }
    }
}
