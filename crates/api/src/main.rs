//! `cargo run -p snowmelt-api [-- --write]`: compares the interface of the library `snowmelt` with
//! the list in `docs/src/reference/api.txt`, so that no change of it goes unseen. `--write` writes
//! the list.
//!
//! Types of other crates that the library gives out are listed with their own items, and so are the
//! types in those.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for developers")]

mod described;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use described::{Described, met_in, of_type};

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("snowmelt-api: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let writes = std::env::args().any(|arg| arg == "--write");
    let library = Described::library(&root, "snowmelt")?;
    if let Some(why) = library.not_understood() {
        if writes {
            bail!("nothing was written: {why}");
        }
        println!("skipped: {why}");
        return Ok(true);
    }
    let found = interface(&root, &library)?;
    let list = root.join("docs/src/reference/api.txt");
    if writes {
        std::fs::write(&list, found.join("\n") + "\n")?;
        return Ok(true);
    }
    let listed = std::fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let listed: Vec<&str> = listed.lines().collect();
    let gone = listed.iter().filter(|item| !found.iter().any(|found| found == *item));
    let new = found.iter().filter(|item| !listed.contains(&item.as_str()));
    let differences: Vec<String> =
        gone.map(|item| format!("- {item}")).chain(new.map(|item| format!("+ {item}"))).collect();
    for difference in &differences {
        println!("{difference}");
    }
    if !differences.is_empty() {
        println!("the interface has changed; if that is meant: cargo run -p snowmelt-api -- --write");
    }
    Ok(differences.is_empty())
}

/// The items of the library, of each type that it gives out of another crate of ours, and of the
/// types in those items.
fn interface(root: &Path, library: &Described) -> Result<Vec<String>> {
    let mut found = library.items()?;
    let mut of_crates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut waiting = VecDeque::from(library.re_exports());
    let mut seen = BTreeSet::new();
    while let Some(met) = waiting.pop_front() {
        if !seen.insert((met.of_crate.clone(), met.original.clone())) {
            continue;
        }
        if !of_crates.contains_key(&met.of_crate) {
            let described = Described::library(root, &met.of_crate.replace('_', "-"))?;
            of_crates.insert(met.of_crate.clone(), described.items()?);
        }
        let own = of_type(&of_crates[&met.of_crate], &met);
        // A type in an item may be private, or one of a name that hides it.
        if own.is_empty() && met.path.starts_with("snowmelt::") {
            bail!("no item of {} in {}: is it public there?", met.original, met.of_crate);
        }
        waiting.extend(own.iter().flat_map(|item| met_in(item)));
        found.extend(own);
    }
    Ok(found)
}
