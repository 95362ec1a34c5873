//! The codes of a database's strings against symbols (FSST), in one run: `cargo run --release -p
//! snowmelt-benches --example strings -- DB`.
//!
//! For each string tree: bytes of the codes, of a dictionary and of the pages, as shares of the
//! strings; processor time to choose a codec, to encode all strings, to decode them one behind the
//! other and in a random order. Every string is compared once.

use std::hint::black_box;
use std::path::Path;

use snowmelt_database::OpenOptions;
use snowmelt_graph::{GraphDatabase, Tree};
use snowmelt_store::measure::EncodedStrings;
use snowmelt_store::{PAGE_BYTES, Reader, StringTree};

/// Bytes of first strings that a load chooses a codec from.
const SAMPLE_BYTES: usize = 8 << 20;
/// Strings decoded in a random order.
const RANDOM: usize = 1 << 20;
/// Rounds, the best of which counts.
const ROUNDS: usize = 5;

fn main() {
    let path = std::env::args().nth(1).expect("strings DB");
    let options = OpenOptions { memory_bytes: 1 << 30, ..OpenOptions::default() };
    let db = GraphDatabase::open(Path::new(&path), &options).expect("the database");
    let mut session = db.session().expect("a session");
    let state = db.state().expect("a state");
    for tree in Tree::ALL {
        let Some(strings) = state.strings(tree).filter(|strings| strings.bytes() > 0) else { continue };
        let all = read(strings, session.reader());
        let (name, pages) = (tree.name(), strings.pages() * PAGE_BYTES as u64);
        let share = pages as f64 / strings.bytes() as f64;
        println!("{name}: {} strings, {} bytes, pages {share:.3}", all.len(), strings.bytes());
        measure(&all.iter().map(|string| &string[..]).collect::<Vec<_>>());
    }
}

fn read(strings: &StringTree, reader: &mut Reader) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(); strings.len() as usize];
    let ids: Vec<u64> = (0..strings.len()).collect();
    for ids in ids.chunks(1000) {
        let of_batch = &mut all[ids[0] as usize..];
        strings.get(reader, ids, |at, string| of_batch[at] = string.to_vec()).expect("read");
    }
    all
}

fn measure(all: &[&[u8]]) {
    let mut bytes = 0;
    let sampled = all.iter().take_while(|string| {
        bytes += string.len();
        bytes <= SAMPLE_BYTES
    });
    let sample: Vec<&[u8]> = sampled.copied().collect();
    let total: usize = all.iter().map(|string| string.len()).sum();
    let scattered: Vec<usize> = (0..RANDOM).map(|n| n * 1_000_003 % all.len()).collect();
    for make in [EncodedStrings::with_symbols, EncodedStrings::chosen] {
        let mut strings = make(&sample);
        strings.encode(all);
        let mut buffer = Vec::new();
        all.iter().enumerate().for_each(|(n, string)| assert_eq!(strings.decode(n, &mut buffer), *string));
        let choose = best(ROUNDS, || drop(black_box(make(&sample))));
        let encode = best(ROUNDS, || strings.encode(all));
        let mut decode = |n: usize| {
            black_box(strings.decode(n, &mut buffer));
        };
        let scan = best(ROUNDS, || (0..all.len()).for_each(&mut decode));
        let random = best(ROUNDS, || scattered.iter().for_each(|n| decode(*n)));
        let (width, entries) = strings.codes();
        let megabytes = |ns: f64| total as f64 * 1e3 / ns;
        println!(
            "  {width:2} bits, {entries:6} entries of {:7} bytes: codes {:.3}; chosen in {:4.0} ms, encoded {:5.0} MB/s, decoded {:5.0} MB/s, {:4.0} ns a string, scattered {:4.0} ns",
            strings.dictionary_bytes(),
            strings.bytes() as f64 / total as f64,
            choose / 1e6,
            megabytes(encode),
            megabytes(scan),
            scan / all.len() as f64,
            random / RANDOM as f64,
        );
    }
}

/// Nanoseconds of processor time, the best of so many rounds.
fn best(rounds: usize, mut work: impl FnMut()) -> f64 {
    let times = (0..rounds).map(|_| {
        let begin = processor_ns();
        work();
        (processor_ns() - begin) as f64
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Processor time of this thread: other programs on the machine would spoil the time of day.
fn processor_ns() -> u64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    times.split(' ').next().and_then(|time| time.parse().ok()).expect("a number of nanoseconds")
}
