//! Pages of the source that the table of contents does not name: no reader would find them.

use std::path::Path;

use anyhow::{Context, Result};

use crate::links::files;

/// The table of contents.
const SUMMARY: &str = "SUMMARY.md";

/// The pages below `src` that `SUMMARY.md` does not name.
///
/// # Errors
/// Files that cannot be read.
pub fn unlisted(src: &Path) -> Result<Vec<String>> {
    let path = src.join(SUMMARY);
    let summary =
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let pages = files(src)?.into_iter().map(|page| page.to_string_lossy().into_owned());
    let is_unlisted =
        |page: &String| page.ends_with(".md") && page != SUMMARY && !summary.contains(&format!("({page})"));
    Ok(pages.filter(is_unlisted).map(|page| format!("{page} is not in {SUMMARY}")).collect())
}
