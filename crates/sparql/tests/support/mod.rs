//! Support of the query tests: answers and their comparison, databases made for a test,
//! settings that make life hard.

#![allow(dead_code, reason = "each test program uses its part")]

pub mod answer;
pub mod data;
pub mod endpoints;
pub mod made;
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
