//! What the query tests share: answers and their comparison, databases made for a test, settings that make life hard.

#![allow(dead_code, reason = "each test program uses its part")]

pub mod answer;
pub mod data;
pub mod order;
pub mod settings;

use std::path::PathBuf;

/// A file or folder of the shared test material, or None, said visibly, when it is not there.
pub fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("SNOWMELT_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let full = root.join(path);
    if !full.exists() {
        eprintln!("skipped: {} is not there (set SNOWMELT_SHARED to the folder that has it)", full.display());
        return None;
    }
    // Without `..` and links, so that what a manifest names begins with it.
    Some(full.canonicalize().expect("it exists"))
}

/// The seed of a random test: `SNOWMELT_SEED`, or one from the clock. It is printed by whoever uses it.
pub fn seed() -> u64 {
    match std::env::var("SNOWMELT_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("SNOWMELT_SEED={text} is no number")),
        Err(_) => std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("the clock is past 1970")
            .as_nanos() as u64,
    }
}
