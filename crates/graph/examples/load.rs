//! Loads files and prints what it took: `load DB MEMORY_MIB THREADS FILE...`

use std::sync::atomic::AtomicBool;

use snowmelt_graph::load::{LoadOptions, Source, load};
use snowmelt_store::StoreConfig;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, db, memory, threads, files @ ..] = &args[..] else {
        eprintln!("usage: load DB MEMORY_MIB THREADS FILE...");
        std::process::exit(2);
    };
    let memory_bytes = memory.parse::<u64>().expect("a number") << 20;
    let options = LoadOptions {
        threads: threads.parse().expect("a number"),
        store: StoreConfig { memory_bytes, ..StoreConfig::default() },
        ..LoadOptions::default()
    };
    let sources = files.iter().map(|f| Source::from_arg(f)).collect();
    match load(db.as_ref(), sources, &options, &(), &AtomicBool::new(false)) {
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
        Ok(report) => {
            for (phase, seconds) in &report.seconds {
                println!("{:>8} {seconds:.2} s", phase.name());
            }
            let seconds = report.total_seconds();
            let rate = report.triples as f64 / seconds;
            println!("{report:#?}\n{seconds:.2} s, {rate:.0} triples/s");
        }
    }
}
