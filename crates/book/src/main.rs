//! `cargo run -p snowmelt-book [DIR]`: renders the book to HTML, in `docs/book` unless DIR says
//! otherwise, and checks its links. Needs no network.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use snowmelt_book::{links, names, pages, render, root};

fn main() -> ExitCode {
    let target = std::env::args_os().nth(1).map(PathBuf::from);
    if let Some(word) = target.as_deref().and_then(Path::to_str).filter(|word| word.starts_with('-')) {
        println!("snowmelt-book [DIR]: renders the book to HTML, in docs/book or DIR, and checks its links");
        return if word == "--help" { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match run(target.as_deref()) {
        Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
        Ok(problems) => {
            eprintln!("{}\n{} problems", problems.join("\n"), problems.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Renders and checks; the problems found.
fn run(target: Option<&Path>) -> Result<Vec<String>> {
    let target = target.map(std::path::absolute).transpose()?;
    let book = render(&root(), target.as_deref())?;
    println!("{}", std::path::absolute(book.join("index.html"))?.display());
    let mut problems = pages::unlisted(&root().join("src"))?;
    problems.extend(names::unknown(&root().join("src"), &root().join(".."))?);
    problems.extend(links::broken(&book)?);
    problems.extend(links::broken_at_root(&root().join(".."))?);
    Ok(problems)
}
