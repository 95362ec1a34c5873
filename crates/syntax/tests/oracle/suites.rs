//! The W3C's texts.

use std::path::{Path, PathBuf};

use super::compare::Language;

/// The suites, or None, said visibly, when they are not there.
pub fn suites() -> Option<PathBuf> {
    let root = std::env::var_os("SNOWMELT_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let suites = root.join("w3c/sparql");
    if !suites.exists() {
        eprintln!("skipped: {} is not there (set SNOWMELT_SHARED)", suites.display());
        return None;
    }
    Some(suites)
}

/// The queries and updates below a folder, in the order of their names.
pub fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rq" || end == "ru") {
            found.push(path);
        }
    }
}

/// By the end of its name.
pub fn language(path: &Path) -> Language {
    if path.extension().is_some_and(|end| end == "ru") { Language::Update } else { Language::Query }
}
