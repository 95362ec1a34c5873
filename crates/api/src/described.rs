//! Crates as rustdoc describes them in JSON.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use public_api::Builder;
use serde_json::Value;

/// The format of rustdoc's JSON that is understood. It changes with releases of Rust.
const FORMAT: u64 = 57;

/// A crate, described.
pub struct Described {
    file: PathBuf,
    json: Value,
}

/// A type of another crate of ours that a program meets. The library gives it out under a name of
/// its own, or it is in an item of such a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetType {
    /// Its path as it is listed.
    pub path: String,
    /// The crate that defines it.
    pub of_crate: String,
    /// Its name there.
    pub original: String,
}

impl Described {
    /// Has rustdoc describe a library, which stable compilers do only when they are told that they
    /// may.
    ///
    /// # Errors
    /// rustdoc fails.
    pub fn library(root: &Path, package: &str) -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let options = ["-Z", "unstable-options", "--output-format", "json", "--cap-lints", "allow"];
        let status = Command::new(&cargo)
            .current_dir(root)
            .env("RUSTC_BOOTSTRAP", "1")
            .args(["rustdoc", "--quiet", "-p", package, "--lib", "--"])
            .args(options)
            .status()
            .context("cannot run cargo")?;
        ensure!(status.success(), "rustdoc fails for {package}");
        let mut told = Command::new(cargo);
        told.current_dir(root).args(["metadata", "--format-version", "1", "--no-deps"]);
        let told = told.output().context("cannot run cargo")?;
        let metadata: Value = serde_json::from_slice(&told.stdout)?;
        let target = metadata["target_directory"].as_str().context("cargo tells no target directory")?;
        let file = Path::new(target).join(format!("doc/{}.json", package.replace('-', "_")));
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(Self { json: serde_json::from_str(&text)?, file })
    }

    /// Why the description is not understood, if so.
    pub fn not_understood(&self) -> Option<String> {
        let format = &self.json["format_version"];
        (*format != FORMAT).then(|| format!("rustdoc writes format {format}, and {FORMAT} is understood"))
    }

    /// Its public items, a line each. Of the traits that the compiler implements by itself there
    /// are `Send` and `Sync`.
    ///
    /// # Errors
    /// The description is not understood.
    pub fn items(&self) -> Result<Vec<String>> {
        let interface = Builder::from_rustdoc_json(&self.file)
            .omit_blanket_impls(true)
            .omit_auto_derived_impls(true)
            .build()?;
        Ok(interface.items().map(ToString::to_string).filter(|item| !is_incidental(item)).collect())
    }

    /// The types that its root gives out of other crates of ours.
    pub fn re_exports(&self) -> Vec<MetType> {
        let index = &self.json["index"];
        let root = &index[id(&self.json["root"])]["inner"]["module"]["items"];
        let uses = root.as_array().into_iter().flatten().map(|of| &index[id(of)]["inner"]["use"]);
        let mut found: Vec<MetType> = uses.filter_map(|of| self.re_export(of)).collect();
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    fn re_export(&self, of: &Value) -> Option<MetType> {
        let path = self.json["paths"][id(&of["id"])]["path"].as_array()?;
        let (of_crate, original) = (path.first()?.as_str()?, path.last()?.as_str()?);
        let own = self.file.file_stem()?.to_str()?;
        (of_crate.starts_with("snowmelt") && of_crate != own).then(|| MetType {
            path: format!("{own}::{}", of["name"].as_str().unwrap_or(original)),
            of_crate: of_crate.to_owned(),
            original: original.to_owned(),
        })
    }
}

fn id(value: &Value) -> String {
    value.to_string()
}

/// An implementation that follows from others and says little.
fn is_incidental(item: &str) -> bool {
    const TRAITS: [&str; 5] = [
        "core::marker::Freeze for ",
        "core::marker::Unpin for ",
        "core::marker::UnsafeUnpin for ",
        "core::panic::unwind_safe::RefUnwindSafe for ",
        "core::panic::unwind_safe::UnwindSafe for ",
    ];
    item.starts_with("impl") && TRAITS.iter().any(|of| item.contains(of))
}

/// The items of a type among those of its crate, by its name here.
pub fn of_type(items: &[String], type_of: &MetType) -> Vec<String> {
    let MetType { path: here, of_crate, original } = type_of;
    let paths: Vec<&str> = items.iter().filter_map(|item| defined(item, of_crate, original)).collect();
    let mut own = Vec::new();
    for item in items {
        let Some(path) = paths.iter().find(|path| subject(item) == **path) else { continue };
        own.push(replaced(item, path, here));
    }
    own
}

/// The types of our other crates in an item.
pub fn met_in(item: &str) -> Vec<MetType> {
    let begins = item.match_indices("snowmelt_").map(|(at, _)| path_of(&item[at..]));
    let met = begins.filter_map(|path| {
        let (of_crate, rest) = path.split_once("::")?;
        let original = rest.rsplit("::").next()?;
        let is_type = original.starts_with(char::is_uppercase);
        is_type.then(|| MetType { path: path.into(), of_crate: of_crate.into(), original: original.into() })
    });
    met.collect()
}

/// The path of a type in the line that defines it.
fn defined<'a>(item: &'a str, of_crate: &str, original: &str) -> Option<&'a str> {
    let rest = ["pub struct ", "pub enum ", "pub trait ", "pub type "]
        .iter()
        .find_map(|kind| item.split_once(kind).map(|(_, rest)| rest))?;
    let path = path_of(rest);
    (path.starts_with(of_crate) && path.rsplit("::").next() == Some(original)).then_some(path)
}

/// The type that an item belongs to: the one it defines or implements, or that of a member.
fn subject(item: &str) -> &str {
    if item.starts_with("impl") {
        let of = item.split(" where ").next().unwrap_or(item);
        let of = of.rsplit_once(" for ").map_or_else(|| after_generics(of), |(_, of)| of);
        return path_of(of);
    }
    let kinds = ["struct ", "enum ", "trait ", "type ", "fn ", "const "];
    let rest = item.rsplit_once("] ").map_or(item, |(_, rest)| rest);
    let rest = rest.split_once("pub ").map_or(rest, |(_, rest)| rest);
    let name = kinds.iter().find_map(|kind| rest.split_once(kind).map(|(_, rest)| rest)).unwrap_or(rest);
    let path = path_of(name);
    // A member begins with a small letter, or is a variant below its type.
    let is_type = |part: &str| part.starts_with(char::is_uppercase);
    let mut end = 0;
    for part in path.split("::") {
        let begin = if end == 0 { 0 } else { end + 2 };
        end = begin + part.len();
        if is_type(part) {
            return &path[..end];
        }
    }
    path
}

/// The type in `impl<…> TYPE`.
fn after_generics(of: &str) -> &str {
    let rest = of.trim_start_matches("impl");
    match rest.starts_with('<') {
        true => rest.split_once("> ").map_or(rest, |(_, rest)| rest),
        false => rest.trim_start(),
    }
}

/// The path at the begin of a text.
fn path_of(text: &str) -> &str {
    let is_of_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let end = text.find(|c: char| !is_of_path(c)).unwrap_or(text.len());
    text[..end].trim_end_matches(':')
}

/// The text with a path replaced where it stands whole.
fn replaced(text: &str, path: &str, by: &str) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(path) {
        let after = &rest[at + path.len()..];
        let is_whole = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        done += &rest[..at];
        done += if is_whole { by } else { path };
        rest = after;
    }
    done + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_of_a_type_are_found_and_named_as_here() {
        let items: Vec<String> = [
            "pub mod of",
            "pub struct of::Report",
            "pub of::Report::pages: u64",
            "impl of::Report",
            "pub fn of::Report::text(&self, &of::Other) -> of::Report",
            "impl core::marker::Send for of::Report",
            "impl<T> core::convert::From<T> for of::Report where T: of::Other",
            "pub struct of::Reported",
            "pub fn of::Reported::report(&self) -> of::Report",
            "#[non_exhaustive] pub enum of::Other",
            "pub of::Other::Report(of::Report)",
            "pub fn of::report(u8) -> of::Report",
        ]
        .map(str::to_owned)
        .to_vec();
        let of = |name: &str, original: &str| {
            let type_of = MetType {
                path: format!("snowmelt::{name}"),
                of_crate: "of".into(),
                original: original.into(),
            };
            of_type(&items, &type_of)
        };
        let meters = [
            "pub struct snowmelt::Meters",
            "pub snowmelt::Meters::pages: u64",
            "impl snowmelt::Meters",
            "pub fn snowmelt::Meters::text(&self, &of::Other) -> snowmelt::Meters",
            "impl core::marker::Send for snowmelt::Meters",
            "impl<T> core::convert::From<T> for snowmelt::Meters where T: of::Other",
        ];
        assert_eq!(of("Meters", "Report"), meters);
        let other = ["#[non_exhaustive] pub enum snowmelt::Other", "pub snowmelt::Other::Report(of::Report)"];
        assert_eq!(of("Other", "Other"), other);
    }

    #[test]
    fn threads_are_told_and_panics_are_not() {
        assert!(!is_incidental("impl core::marker::Send for a::B"));
        assert!(!is_incidental("impl !core::marker::Sync for a::B"));
        assert!(is_incidental("impl core::marker::Unpin for a::B"));
        assert!(!is_incidental("pub fn a::core::marker::Unpin for "));
    }
}
