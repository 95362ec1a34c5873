//! Loads files and prints what it took: `load DB MEMORY_MIB THREADS [SIZE=N...] FILE...`
//!
//! Sizes override what follows from the memory: chunk_bytes, batch_rows, table_bytes,
//! run_bytes, part_terms, fan_in.

use std::sync::atomic::AtomicBool;

use snowmelt_graph::load::{LoadOptions, LoadSizes, Source, load};
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
    let (sizes, files): (Vec<&String>, Vec<&String>) = files.iter().partition(|arg| arg.contains('='));
    let mut options = options;
    sizes.iter().for_each(|arg| set(&mut options.sizes, arg));
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

fn set(sizes: &mut LoadSizes, arg: &str) {
    let (name, value) = arg.split_once('=').expect("looked at before");
    let value: u64 = value.parse().expect("a number");
    match name {
        "chunk_bytes" => sizes.chunk_bytes = Some(value as usize),
        "batch_rows" => sizes.batch_rows = Some(value as usize),
        "table_bytes" => sizes.table_bytes = Some(value),
        "run_bytes" => sizes.run_bytes = Some(value),
        "part_terms" => sizes.part_terms = Some(value as usize),
        "fan_in" => sizes.fan_in = Some(value as usize),
        _ => panic!("no size is called {name}"),
    }
}
