//! How the time of a request grows with it.
//!
//! The measure is the CPU time of the server, which other work on the machine does not add to as
//! it does to time on the clock. Requests are doubled from 64 copies on. A doubling that costs
//! more than [`MOST_RATIO`] times as much, above a floor where the clock's grain and what is paid
//! once no longer matter, is measured again, and counts if it is that steep each time. Only
//! neighbours that end alike are compared: to refuse is cheaper than to answer.

use std::time::Instant;

use crate::shot::Place;
use crate::suite::{Outcome, Suite};

/// Sizes of documents, from and to.
const FROM: usize = 64;
const TO: usize = 1 << 17;

/// Twice the work costs twice the time, and up to three times where it no longer fits caches, or
/// trees get a level more. Squares cost four times as much.
const MOST_RATIO: f64 = 3.2;

/// CPU seconds below which nothing is compared: the clock's grain is a hundredth, and the smaller
/// size has a tenth then.
const FLOOR_SECONDS: f64 = 0.3;

/// Factor to the next size after the time limit ended one: each such size takes all of the limit.
const AFTER_TIME_LIMIT: usize = 8;

/// Measurements of a steep step.
const TRIES: usize = 4;

/// Sends a place in all sizes; the largest size that was taken, and its time.
pub fn grows_evenly(suite: &mut Suite<'_>, place: &Place) -> Result<String, String> {
    // The first request replaces the graph of the place before, which may take all of the time on a
    // busy machine.
    let first = measure(suite, place, 1).or_else(|_| measure(suite, place, 1));
    first.map_err(|error| format!("× 1: {error}"))?;
    let mut before: Option<(Outcome, f64)> = None;
    let mut told = String::from("refused from 64 on");
    let mut n = FROM;
    while n <= TO {
        let begun = Instant::now();
        let (outcome, seconds) = measure(suite, place, n).map_err(|error| format!("× {n}: {error}"))?;
        let is_steep = |before: (Outcome, f64), now: f64| {
            before.0 == outcome && now > FLOOR_SECONDS && now > MOST_RATIO * before.1
        };
        if let Some((same, less)) = before
            && is_steep((same, less), seconds)
        {
            let (mut small, mut large) = (less, seconds);
            for _ in 1..TRIES {
                small = small.max(measure(suite, place, n / 2)?.1);
                large = large.min(measure(suite, place, n)?.1);
            }
            if is_steep((same, small), large) {
                return Err(format!(
                    "grows too steeply: × {} takes {small:.2} s, × {n} {large:.2} s of a core",
                    n / 2
                ));
            }
        }
        if outcome == Outcome::Taken {
            told = format!("× {n} taken in {seconds:.2} s of a core");
        }
        let is_late = begun.elapsed() >= suite.time_limit();
        before = (!is_late).then_some((outcome, seconds));
        n *= if is_late { AFTER_TIME_LIMIT } else { 2 };
    }
    Ok(told)
}

fn measure(suite: &mut Suite<'_>, place: &Place, n: usize) -> Result<(Outcome, f64), String> {
    let shot = place.shot(n);
    let before = suite.cpu_seconds();
    let outcome = suite.alone(&shot)?;
    Ok((outcome, suite.cpu_seconds() - before))
}
