//! Renders the book of `docs/src` and checks it.
//!
//! | module  | does                                                                     |
//! |---------|--------------------------------------------------------------------------|
//! | `tags`  | reads the start tags of a rendered page                                  |
//! | `links` | finds links of rendered pages that lead nowhere: files and anchors       |
//! | `names` | finds names of files and functions that the source does not have          |
//! | `pages` | finds pages that the table of contents does not name                     |
//!
//! Links are checked in what was rendered, not in the Markdown: anchors are then those that a
//! reader's browser has.

#![forbid(unsafe_code)]

pub mod links;
pub mod names;
pub mod pages;
pub mod tags;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use mdbook_driver::MDBook;

/// The folder of `book.toml`.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Renders the book at `root` to HTML in `target`, or in the folder that its `book.toml` names.
/// Returns the folder.
///
/// # Errors
/// A book that mdBook refuses; files that cannot be read or written.
pub fn render(root: &Path, target: Option<&Path>) -> Result<PathBuf> {
    let mut book = MDBook::load(root).with_context(|| format!("cannot load {}", root.display()))?;
    if let Some(target) = target {
        book.config.build.build_dir = target.to_path_buf();
    }
    book.build().context("cannot render the book")?;
    Ok(root.join(&book.config.build.build_dir))
}
