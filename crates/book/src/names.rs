//! Names of files and functions that the book's pages give and the source does not have.
//!
//! 1. A code span that begins with a folder of the source (`crates/`, `benches/`, `examples/` …)
//!    is a path: it must exist. What follows a space is left out; `*` and `{a,b}` are not paths.
//! 2. A code span of the form `module::function` names a function: some source file must define
//!    one of that name.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use crate::links::files;

const FOLDERS: [&str; 7] = ["crates/", "benches/", "examples/", "tests/", "fuzz/", ".ci/", "src/"];

/// The names that pages below `src` give and the source tree at `root` does not have.
///
/// # Errors
/// Files that cannot be read.
pub fn unknown(src: &Path, root: &Path) -> Result<Vec<String>> {
    let functions = functions(root)?;
    let mut unknown = Vec::new();
    for page in files(src)?.into_iter().filter(|page| page.extension().is_some_and(|e| e == "md")) {
        let text = read(&src.join(&page))?;
        for span in spans(&text) {
            let is_known = match path_of(span) {
                Some(path) => root.join(path).exists(),
                None => function_of(span).is_none_or(|name| functions.contains(name)),
            };
            if !is_known {
                unknown.push(format!("{}: `{span}` is not in the source", page.display()));
            }
        }
    }
    Ok(unknown)
}

/// The code spans of a page, each on one line; code blocks are left out.
fn spans(page: &str) -> impl Iterator<Item = &str> {
    let mut in_fence = false;
    let prose = page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        !is_fence && !in_fence && !line.starts_with("    ")
    });
    prose.flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// The path that a code span gives, if it is one.
fn path_of(span: &str) -> Option<&str> {
    let path = span.split_whitespace().find(|word| FOLDERS.iter().any(|f| word.starts_with(f)))?;
    (!path.contains(['*', '{', '…'])).then_some(path)
}

/// The function that a code span names, if it does.
fn function_of(span: &str) -> Option<&str> {
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let (_, last) = span.rsplit_once("::")?;
    // A name of two words and more: `guard::tests` is a module.
    (span.split("::").all(is_name) && last.contains('_')).then_some(last)
}

/// The names of all functions and modules of the source.
fn functions(root: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for folder in ["crates", "src", "tests", "benches"] {
        for file in
            files(&root.join(folder))?.into_iter().filter(|f| f.extension().is_some_and(|e| e == "rs"))
        {
            let text = read(&root.join(folder).join(file))?;
            let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let defined = words.windows(2).filter(|pair| matches!(pair[0], "fn" | "mod"));
            names.extend(defined.map(|pair| pair[1].to_owned()));
        }
    }
    Ok(names)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_those_of_prose() {
        let page = "a `b` c `d e`\n\n    `no`\n\n```\n`no`\n```\n`f`\n";
        assert_eq!(spans(page).collect::<Vec<_>>(), ["b", "d e", "f"]);
    }

    #[test]
    fn paths_and_functions_are_told_apart() {
        assert_eq!(path_of("sudo -E benches/cold.sh 28480"), Some("benches/cold.sh"));
        assert_eq!(path_of("crates/store/src/{a,b}.rs"), None);
        assert_eq!(path_of("docs"), None);
        assert_eq!(function_of("journal::a_lost_commit"), Some("a_lost_commit"));
        assert_eq!(function_of("Database::open_it"), None);
        assert_eq!(function_of("guard::tests"), None);
    }
}
