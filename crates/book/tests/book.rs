//! The book renders, each page is in its table of contents, and each link leads somewhere. Small
//! books with a mistake each show that the checks find it.

use std::fs;
use std::path::Path;

use snowmelt_book::{links, names, pages, render, root};

#[test]
fn the_book_is_whole() {
    let target = tempfile::tempdir().unwrap();
    let book = render(&root(), Some(target.path())).unwrap();
    assert!(book.join("index.html").is_file());
    assert_eq!(pages::unlisted(&root().join("src")).unwrap(), [""; 0]);
    assert_eq!(links::broken(&book).unwrap(), [""; 0]);
}

/// A book of two pages; `text` is on the first.
fn small(folder: &Path, text: &str) {
    let src = folder.join("src");
    fs::create_dir_all(src.join("part")).unwrap();
    fs::write(folder.join("book.toml"), "[book]\ntitle = \"small\"\n").unwrap();
    fs::write(src.join("SUMMARY.md"), "# Summary\n\n[One](one.md)\n\n- [Two](part/two.md)\n").unwrap();
    fs::write(src.join("one.md"), format!("# One\n\n{text}\n")).unwrap();
    fs::write(src.join("part/two.md"), "# Two\n\n## A place\n\n[back](../one.md#one)\n").unwrap();
}

/// The problems of a small book, each without the page it is on.
fn problems(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path(), text);
    let book = render(folder.path(), None).unwrap();
    let mut found = links::broken(&book).unwrap();
    // The first page is rendered twice: it is index.html, too.
    found.retain(|line| line.starts_with("one.html: "));
    found.into_iter().map(|line| line.trim_start_matches("one.html: ").to_owned()).collect()
}

#[test]
fn sound_links_pass() {
    assert_eq!(
        problems("[a](part/two.md) [b](part/two.md#a-place) [c](#one) [d](https://example.org/#x)"),
        [""; 0]
    );
}

#[test]
fn broken_links_are_found() {
    assert_eq!(problems("[a](part/three.md)"), ["part/three.html (no such file)"]);
    assert_eq!(problems("[a](part/two.md#b-place)"), ["part/two.html#b-place (no such place)"]);
    assert_eq!(problems("[a](#two)"), ["#two (no such place)"]);
    assert_eq!(problems("![a](img/none.svg)"), ["img/none.svg (no such file)"]);
    assert_eq!(problems("[a](../book.toml)"), ["../book.toml (leaves the book)"]);
}

#[test]
fn unlisted_pages_are_found() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path(), "");
    let src = folder.path().join("src");
    assert_eq!(pages::unlisted(&src).unwrap(), [""; 0]);
    fs::write(src.join("part/three.md"), "# Three\n").unwrap();
    assert_eq!(pages::unlisted(&src).unwrap(), ["part/three.md is not in SUMMARY.md"]);
}

#[test]
fn the_source_has_what_the_book_names() {
    assert_eq!(names::unknown(&root().join("src"), &root().join("..")).unwrap(), [""; 0]);
}

#[test]
fn unknown_names_are_found() {
    let folder = tempfile::tempdir().unwrap();
    small(folder.path(), "`crates/io/src/lib.rs` `crates/io/src/none.rs` `a::no_such_function`");
    let found = names::unknown(&folder.path().join("src"), &root().join("..")).unwrap();
    let expected = ["crates/io/src/none.rs", "a::no_such_function"];
    assert_eq!(found, expected.map(|name| format!("one.md: `{name}` is not in the source")));
}

#[test]
fn links_of_the_files_at_the_root_lead_somewhere() {
    assert_eq!(links::broken_at_root(&root().join("..")).unwrap(), [""; 0]);
}

#[test]
fn a_broken_link_at_the_root_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[a](b.md#c) [d](https://example.org) [e](#f) ![g](h.svg) [i](j.md)";
    fs::write(folder.path().join("b.md"), text).unwrap();
    let found = links::broken_at_root(folder.path()).unwrap();
    assert_eq!(found, ["b.md: j.md (no such file)"]);
}

#[test]
fn the_smallest_program_is_the_example() {
    let page = fs::read_to_string(root().join("src/guide/embed.md")).unwrap();
    let example = fs::read_to_string(root().join("../examples/hello.rs")).unwrap();
    let program = &example[example.find("fn main").unwrap()..];
    assert!(page.contains(program), "guide/embed.md shows another program than examples/hello.rs");
}
