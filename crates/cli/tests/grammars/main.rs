//! Each production of each language against the real server: many times, and as deep.
//!
//! `snowmelt-grammar` finds in the grammars every part that repeats and every rule that holds
//! itself, and writes valid documents around it. Each document goes to a server in little memory
//! and comes back answered, or refused by a limit that the answer names; the server must live and
//! answer the next query, and time must grow as the document does.
//!
//! `unmended.txt` lists what does not hold yet: language, beginning of the name, reason, with
//! tabs. In the whole form, one that holds while it is on the list fails: the list only shrinks.
//!
//! The short form takes a part, by the seed. The whole form takes all, in documents of 64 to
//! 131,072 copies and levels, alone and 64 at once: `benches/grammars.sh`, or `cargo test
//! --release --test grammars -- --ignored --nocapture`. `SNOWMELT_CASE=text` takes only names
//! with that in them, `language: …`.

#![forbid(unsafe_code)]

#[allow(dead_code, reason = "shared with the suite of hostile requests")]
#[path = "../hostility/client.rs"]
mod client;
mod growth;
mod shot;
#[allow(dead_code, reason = "shared with the suite of hostile requests")]
#[path = "../hostility/storm.rs"]
mod storm;
mod suite;
#[allow(dead_code, reason = "shared with the suite of hostile requests")]
#[path = "../hostility/target.rs"]
mod target;

use std::time::{Duration, Instant};

use shot::{Shot, all_places};
use snowmelt_base::random::lcg;
use storm::Bounds;
use suite::{Suite, Unmended};

const SHORT: Bounds = Bounds { memory_bytes: 128 << 20, timeout_s: 10, grace: Duration::from_secs(10) };
const WHOLE: Bounds = Bounds { memory_bytes: 256 << 20, timeout_s: 5, grace: Duration::from_secs(10) };

/// Time of the short form, after which it takes no more; what it took until then is enough where
/// a build without optimisation is slow.
const SHORT_TIME: Duration = Duration::from_secs(40);

/// A part of a list, by the seed.
fn sampled<T>(mut all: Vec<T>, random: &mut u64) -> Vec<T> {
    for i in (1..all.len()).rev() {
        all.swap(i, (lcg(random) >> 33) as usize % (i + 1));
    }
    all
}

#[test]
fn a_part_of_all_productions_is_survived() {
    let dir = tempfile::tempdir().unwrap();
    let mut suite = Suite::start(dir.path(), &SHORT);
    let mut random = snowmelt_base::test_seed(1);
    let unmended = Unmended::read();
    let places = sampled(all_places(), &mut random);
    let begun = Instant::now();
    let (mut wrong, mut taken) = (Vec::new(), 0);
    for place in places.iter().filter(|place| !unmended.has(place)) {
        if begun.elapsed() > SHORT_TIME {
            break;
        }
        taken += 1;
        // the smallest document is valid, so it must be taken
        let most = [1, 100, 10_000, 100_000][(lcg(&mut random) >> 33) as usize % 4];
        for n in [1, most] {
            wrong.extend(suite.alone(&place.shot(n)).err().map(|e| format!("{} × {n}: {e}", place.name)));
        }
    }
    println!("{taken} of {} places", places.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(taken > 20, "{taken} places are no sample");
}

#[test]
#[ignore = "the whole form: hours"]
fn all_productions_are_survived() {
    let dir = tempfile::tempdir().unwrap();
    let mut suite = Suite::start(dir.path(), &WHOLE);
    let mut unmended = Unmended::read();
    let mut wrong = Vec::new();
    let mut random = snowmelt_base::test_seed(1);
    // A run that is ended early has then seen a sample of all.
    for place in sampled(all_places(), &mut random) {
        let begun = Instant::now();
        let outcome = growth::grows_evenly(&mut suite, &place);
        let told = outcome.as_ref().map_or_else(Clone::clone, Clone::clone);
        println!("{:6.2} s  {}: {told}", begun.elapsed().as_secs_f64(), place.name);
        wrong.extend(unmended.judge(&place, outcome.map(drop)));
    }
    if std::env::var("SNOWMELT_CASE").is_err() {
        wrong.extend(unmended.unused());
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
#[ignore = "the whole form: hours"]
fn all_productions_are_survived_64_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut suite = Suite::start(dir.path(), &WHOLE);
    let mut random = snowmelt_base::test_seed(1);
    let unmended = Unmended::read();
    let mut wrong = Vec::new();
    for n in [100, 10_000, 100_000] {
        let places = sampled(all_places(), &mut random);
        let places: Vec<_> = places.into_iter().filter(|place| !unmended.has(place)).collect();
        for some in places.chunks(512) {
            let shots: Vec<Shot> = some.iter().map(|place| place.shot(n)).collect();
            let found = suite.storm(&shots);
            println!("64 at once × {n}: {} of {} wrong", found.len(), shots.len());
            found.iter().for_each(|wrong| println!("{wrong}"));
            wrong.extend(found);
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
