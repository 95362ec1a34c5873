//! The habits of the source tree. What breaks them today is listed in `ratchet.tsv`, which only
//! shrinks: after something was mended, `SNOWMELT_TIDY=lower cargo test -p snowmelt-tidy`
//! lowers it.

use snowmelt_tidy::ratchet::{self, Counts};
use snowmelt_tidy::{arrows, circles, folders, functions, lexer, names, prose, tree};
use std::fs;

/// Modules of a circle that need no entry.
const SMALL_CIRCLE: usize = 3;

fn found() -> Counts {
    let root = tree::root();
    let mut found = Counts::new();
    let mut add = |rule: &str, key: String, count: usize| {
        if count > 0 {
            *found.entry((rule.to_owned(), key)).or_default() += count;
        }
    };
    for of in tree::crates(&root).unwrap() {
        let arrows = arrows::arrows(&of);
        for circle in circles::circles(&arrows) {
            let within = [std::slice::from_ref(&of.name), &circle.within[..]].concat().join("::");
            if circle.members.len() > SMALL_CIRCLE {
                add("circle", within.clone(), circle.members.len());
            }
            add("folder in a circle", within, folders::in_circle(&of, &circle));
        }
        for wrong in folders::against_table(&of, &arrows) {
            add("against the table of folders", format!("{}: {wrong}", of.name), 1);
        }
        for (name, count) in names::twins(&of) {
            add("types of one name", format!("{}: {name}", of.name), count);
        }
        for file in &of.files {
            for (name, lines) in functions::long(file) {
                add("long function", format!("{}: {name}", file.path), lines);
            }
            add("no head", file.path.clone(), usize::from(!prose::has_head(file)));
        }
    }
    for folder in ["src", "crates", "tests", "examples", "fuzz"] {
        if !root.join(folder).exists() {
            continue;
        }
        for path in tree::files(&root, folder, ".rs").unwrap() {
            let text = fs::read_to_string(root.join(&path)).unwrap();
            let lexed = lexer::lex(&text);
            add("wide comment", folder_of(&path), prose::wide_comments(&text, &lexed));
            add("vague comment", folder_of(&path), prose::vague_comments(&lexed));
            add("mod.rs", folder_of(&path), usize::from(path.contains("/src/") && path.ends_with("/mod.rs")));
        }
    }
    for path in tree::files(&root, ".", ".md").unwrap() {
        let text = fs::read_to_string(root.join(&path)).unwrap();
        add("wide prose", path.trim_start_matches("./").to_owned(), prose::wide_lines(&text));
    }
    found
}

/// The crate of a file.
fn folder_of(path: &str) -> String {
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    path.split('/').take(depth).collect::<Vec<_>>().join("/")
}

#[test]
fn the_tree_is_no_less_tidy_than_listed() {
    let path = tree::root().join("crates/tidy/ratchet.tsv");
    let (listed, found) = (ratchet::read(&path).unwrap(), found());
    if std::env::var("SNOWMELT_TIDY").is_ok_and(|v| v == "lower") {
        ratchet::lower(&path, &listed, &found).unwrap();
    }
    let (more, fewer) = ratchet::compare(&ratchet::read(&path).unwrap(), &found);
    assert!(more.is_empty(), "{} things are less tidy than before:\n{}", more.len(), more.join("\n"));
    assert!(
        fewer.is_empty(),
        "tidier than listed; lower the list (SNOWMELT_TIDY=lower cargo test -p snowmelt-tidy):\n{}",
        fewer.join("\n")
    );
}
