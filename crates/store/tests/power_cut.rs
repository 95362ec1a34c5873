//! Power cuts at any write, also during recovery: every acknowledged commit is there, nothing
//! else is. The long run is `examples/power_cut.rs`.

#[path = "support/cuts.rs"]
mod cuts;
mod support;

use std::path::Path;

use cuts::crew::Crew;
use cuts::{Cuts, Tally};
use snowmelt_store::Plant;
use support::seed;

/// Cuts the power `cuts` times, over as many seeds as that takes; returns the tally, or the first
/// wrong answer with its seed. `one` runs a seed: its directory, the seed, the number of cuts.
fn over_seeds(
    first_seed: u64,
    cuts: u64,
    one: impl Fn(&Path, u64, u64) -> Result<Tally, String>,
) -> Result<Tally, String> {
    /// Cuts of one seed: the database grows older, but not without end.
    const OF_ONE: u64 = 10;
    snowmelt_io::set_notice(|_| {});
    let mut total = Tally::default();
    for i in 0..cuts.div_ceil(OF_ONE) {
        let dir = tempfile::tempdir().expect("room for a lock file");
        let seed = first_seed.wrapping_add(i);
        let tally = one(dir.path(), seed, OF_ONE.min(cuts));
        total.add(&tally.map_err(|why| format!("SNOWMELT_SEED={seed}: {why}"))?);
    }
    Ok(total)
}

fn run(first_seed: u64, cuts: u64, plant: Option<Plant>) -> Result<Tally, String> {
    over_seeds(first_seed, cuts, |dir, seed, cuts| {
        let mut run = Cuts::new(dir, seed, plant);
        run.run(cuts).map(|()| run.tally)
    })
}

/// As `run`, with threads.
fn run_crew(first_seed: u64, cuts: u64, plant: Option<Plant>) -> Result<Tally, String> {
    over_seeds(first_seed, cuts, |dir, seed, cuts| {
        let mut run = Crew::new(dir, seed, plant);
        run.run(cuts).map(|()| run.tally)
    })
}

/// Asserts that a seed decides the whole run, without which a failing one could not be repeated.
/// `once` returns the digest and the tally of a run.
fn is_a_run(once: impl Fn(&Path, u64) -> (u64, Tally)) {
    let seed = seed();
    snowmelt_io::set_notice(|_| {});
    let once = |seed| once(tempfile::tempdir().expect("room for a lock file").path(), seed);
    let first = once(seed);
    assert_eq!(first, once(seed));
    assert_ne!(first.0, once(seed.wrapping_add(1)).0);
}

#[test]
fn acknowledged_commits_of_threads_survive_power_cuts() {
    let tally = run_crew(seed(), 500, None).unwrap();
    eprintln!("{tally:?}");
    // The run went where the danger is.
    assert!(
        tally.cuts >= 500
            && tally.kills > 50
            && tally.checkpoints > 100
            && tally.recycled > 100
            && tally.recovered_commits > 100
            && tally.loads > 100
            && tally.backups > 20
            && tally.giants > 20
            && tally.dropped_giants > 10
    );
}

/// Runs that once failed: a slot in the middle that a kill left half made; a claim in a file that
/// comes before the one it is about.
#[test]
fn seeds_of_threads_that_found_something() {
    for seed in [33_282_365_426_048, 296_122_075_119_649] {
        run_crew(seed, 10, None).unwrap();
    }
}

/// Real threads, and still a seed is a run.
#[test]
fn a_seed_is_a_run_of_threads() {
    is_a_run(|dir, seed| {
        let mut run = Crew::new(dir, seed, None);
        run.run(20).unwrap();
        (run.digest(), run.tally)
    });
}

/// A checkpoint told the super-block of a file that was not there yet: after a power cut the
/// database did not open. Threads find it, and so does one thread, since files are made in
/// steps.
#[test]
fn a_slot_that_counts_too_early_is_found_by_threads() {
    let plant = Plant::CountSlotEarly;
    let why = run_crew(seed(), 1000, Some(plant)).expect_err("the planted bug was not found");
    assert!(why.contains("the file is missing"), "{why}");
    eprintln!("{plant:?} found: {why}");
}

#[test]
fn a_slot_that_counts_too_early_is_found() {
    is_found(Plant::CountSlotEarly);
}

#[test]
fn acknowledged_commits_survive_power_cuts() {
    let tally = run(seed(), 1500, None).unwrap();
    eprintln!("{tally:?}");
    // The run went where the danger is.
    assert!(
        tally.cuts >= 1500
            && tally.checkpoints > 100
            && tally.recycled > 100
            && tally.recovered_commits > 100
            && tally.loads > 100
            && tally.backups > 100
            && tally.cut_backups > 20
            && tally.aside > 1000
            && tally.giants > 50
            && tally.dropped_giants > 20
    );
}

#[test]
fn a_seed_is_a_run() {
    is_a_run(|dir, seed| {
        let mut run = Cuts::new(dir, seed, None);
        run.run(30).unwrap();
        (run.digest(), run.tally)
    });
}

/// Each planted bug is found within a few hundred cuts.
fn is_found(plant: Plant) {
    let why = run(seed(), 2000, Some(plant)).expect_err("the planted bug was not found");
    eprintln!("{plant:?} found: {why}");
}

#[test]
fn a_missing_sync_of_the_journal_is_found() {
    is_found(Plant::SkipJournalSync);
}

#[test]
fn a_missing_sync_of_the_stripes_is_found() {
    is_found(Plant::SkipStripeSync);
}

#[test]
fn a_journal_reused_too_early_is_found() {
    is_found(Plant::ReuseJournalEarly);
}

#[test]
fn a_version_written_back_under_a_reader_is_found() {
    is_found(Plant::WriteUnderReader);
}

/// After a giant transaction was dropped or cut off, the journal stayed too long, no checkpoint
/// began since nothing was to be written back, and writers waited for ever. Threads find that by
/// the wait, one thread by the length.
#[test]
fn a_writer_that_waits_for_ever_is_found_by_threads() {
    let plant = Plant::KeepDeadJournal;
    let why = run_crew(seed(), 1000, Some(plant)).expect_err("the planted bug was not found");
    eprintln!("{plant:?} found: {why}");
    assert!(why.contains("Writer waits for room in the journal"), "{why}");
}

#[test]
fn a_dead_journal_that_is_kept_is_found() {
    is_found(Plant::KeepDeadJournal);
}
