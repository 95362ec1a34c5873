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

/// The seed of a random test, printed: always the same, so that a failure belongs to the change it appears with; `SNOWMELT_SEED` gives
/// another one, `SNOWMELT_SEED=new` one from the clock.
pub fn seed() -> u64 {
    let seed = match std::env::var("SNOWMELT_SEED").as_deref() {
        Err(_) => 1,
        Ok("new") => std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_nanos() as u64,
        Ok(text) => text.parse().expect("SNOWMELT_SEED is a number or `new`"),
    };
    eprintln!("SNOWMELT_SEED={seed}");
    seed
}
