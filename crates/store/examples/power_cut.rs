//! Many power cuts: `nice -n 19 cargo run --release -p snowmelt-store --example power_cut -- [cuts] [first seed]`.
//!
//! Ends with the tally, or with the seed of the first wrong answer.

#[path = "../tests/support/cuts.rs"]
mod cuts;
#[path = "../tests/support/mod.rs"]
mod support;

use cuts::{Cuts, Tally};

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("a number"));
    let cuts = args.next().unwrap_or(100_000);
    let first_seed = args.next().unwrap_or(1);
    snowmelt_io::set_notice(|_| {});
    let begun = std::time::Instant::now();
    let (mut total, mut digest) = (Tally::default(), 0u64);
    for seed in first_seed.. {
        if total.cuts >= cuts {
            break;
        }
        let dir = tempfile::tempdir().expect("room for a lock file");
        // Every seed is short or long: a young database has other troubles than an old one.
        let of_one = if seed.is_multiple_of(10) { 100 } else { 10 };
        let mut run = Cuts::new(dir.path(), seed, None);
        if let Err(why) = run.run(of_one) {
            println!("SNOWMELT_SEED={seed}: {why}\n{total:?}");
            std::process::exit(1);
        }
        total.add(&run.tally);
        digest = digest.rotate_left(1) ^ run.digest();
        if seed % 500 == 0 {
            println!("{:.0} s: {total:?}", begun.elapsed().as_secs_f64());
        }
    }
    println!(
        "{:.0} s, seeds from {first_seed} on, digest {digest:016x}: no wrong answer in {total:?}",
        begun.elapsed().as_secs_f64()
    );
}
