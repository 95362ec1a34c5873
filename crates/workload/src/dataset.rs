//! A benchmark data set, generated straight into a new database: nothing but the database
//! touches the disk.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;

use anyhow::{Context, Result};
use snowmelt_bsbm::{Config, Generator, WordLists};
use snowmelt_graph::load::{LoadOptions, LoadProgress, LoadReport, Source, load};

/// Generates the data set of `products` products and loads it into `db`.
pub fn generate_and_load(
    products: u32,
    words: WordLists,
    db: &Path,
    options: &LoadOptions,
    progress: &dyn LoadProgress,
    cancel: &AtomicBool,
) -> Result<LoadReport> {
    let generator = Generator::new(Config { products, words, update_transactions: None })?;
    let (read, mut write) = io::pipe().context("cannot make a pipe")?;
    thread::scope(|scope| {
        let generating = scope.spawn(move || generator.write(&mut write, None, |_| {}).map(drop));
        let source = Source::Reader { name: format!("{products} products"), read: Box::new(read) };
        let report = load(db, vec![source], options, progress, cancel);
        let generated = generating.join().expect("the generator does not panic");
        // A load that ended early closes the pipe: its error comes first.
        let report = report?;
        generated?;
        Ok(report)
    })
}
