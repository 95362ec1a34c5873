//! `cargo run -p snowmelt-api [-- --write]`: compares the interface of the library `snowmelt` with
//! the list in `docs/src/reference/api.txt`, so that no change of it goes unseen. `--write` writes
//! the list.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use public_api::Builder;

/// The format of rustdoc's JSON that is understood. It changes with releases of Rust.
const FORMAT: u64 = 57;

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
    let file = documented(&root)?;
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let json: serde_json::Value = serde_json::from_str(&text)?;
    if json["format_version"] != FORMAT {
        println!("skipped: rustdoc writes format {}, and {FORMAT} is understood", json["format_version"]);
        return Ok(true);
    }
    let interface = Builder::from_rustdoc_json(&file)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    let found: Vec<String> = interface.items().map(ToString::to_string).collect();
    let list = root.join("docs/src/reference/api.txt");
    if std::env::args().any(|arg| arg == "--write") {
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

/// Has rustdoc describe the library as JSON, which stable compilers do only when they are told that
/// they may.
fn documented(root: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let options = ["-Z", "unstable-options", "--output-format", "json"];
    let status = Command::new(&cargo)
        .current_dir(root)
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["rustdoc", "--quiet", "-p", "snowmelt", "--lib", "--"])
        .args(options)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "rustdoc fails");
    let mut told = Command::new(cargo);
    told.current_dir(root).args(["metadata", "--format-version", "1", "--no-deps"]);
    let told = told.output().context("cannot run cargo")?;
    let metadata: serde_json::Value = serde_json::from_slice(&told.stdout)?;
    let target = metadata["target_directory"].as_str().context("cargo tells no target directory")?;
    Ok(Path::new(target).join("doc/snowmelt.json"))
}
