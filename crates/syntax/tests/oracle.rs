//! Verdicts and trees of spargebra beside ours: over all texts of the W3C suites, and over texts
//! that are generated and changed.
//!
//! `oracle/classes.txt` explains each class of difference; a difference of no class fails.

#[path = "oracle/classes.rs"]
mod classes;
#[path = "oracle/compare.rs"]
mod compare;
#[path = "oracle/sse.rs"]
mod sse;
#[path = "oracle/suites.rs"]
mod suites;
#[path = "oracle/texts.rs"]
mod texts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compare::{Language, Oracle};
use snowmelt_syntax::{ParseOptions, parse_query, parse_update};
use suites::{files, language, suites};

const BASE: &str = "http://example.org/dir/file";

#[test]
fn trees_of_the_suites_are_those_of_the_oracle() {
    let Some(root) = suites() else { return };
    let mut all = Vec::new();
    files(&root, &mut all);
    let oracle = Oracle::new(BASE);
    let (mut wrong, mut explained) = (Vec::new(), BTreeMap::<&str, usize>::new());
    for path in &all {
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        let Some(difference) = oracle.difference(language(path), &text) else { continue };
        match classes::of(language(path), &text, &difference) {
            Some(class) => *explained.entry(class).or_default() += 1,
            None => wrong.push(format!("{}: {difference:?}", path.display())),
        }
    }
    println!("{} texts, explained: {explained:?}", all.len());
    assert!(all.len() > 1000);
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// The verdict that a manifest's syntax test wants of a file.
fn verdicts(manifest: &Path) -> Vec<(PathBuf, bool)> {
    let text = std::fs::read_to_string(manifest).unwrap();
    let test = regex::Regex::new(r"mf:(Positive|Negative)(?:Update)?SyntaxTest").unwrap();
    let action = regex::Regex::new(r"mf:action\s*<([^>]+\.r[qu])>").unwrap();
    // A subject begins in the first column.
    let mut subjects: Vec<String> = vec![String::new()];
    for line in text.lines() {
        if line.starts_with([':', '<']) {
            subjects.push(String::new());
        }
        let subject = subjects.last_mut().unwrap();
        subject.push_str(line);
        subject.push('\n');
    }
    let folder = manifest.parent().unwrap();
    let verdict = |subject: &String| {
        let kind = test.captures(subject)?;
        Some((folder.join(&action.captures(subject)?[1]), &kind[1] == "Positive"))
    };
    subjects.iter().filter_map(verdict).collect()
}

#[test]
fn verdicts_are_those_of_the_manifests() {
    let Some(root) = suites() else { return };
    let mut all = Vec::new();
    files(&root, &mut all);
    let mut folders: Vec<&Path> = all.iter().map(|path| path.parent().unwrap()).collect();
    folders.dedup();
    let manifests = folders.iter().map(|folder| folder.join("manifest.ttl")).filter(|path| path.exists());
    let tests: Vec<(PathBuf, bool)> = manifests.flat_map(|manifest| verdicts(&manifest)).collect();
    assert!(tests.len() > 550, "{}", tests.len());
    let mut wrong = Vec::new();
    for (path, is_positive) in tests {
        let text = std::fs::read_to_string(&path).unwrap();
        let options = ParseOptions { base: Some(BASE), ..ParseOptions::default() };
        let parsed = match language(&path) {
            Language::Query => parse_query(&text, &options).map(drop),
            Language::Update => parse_update(&text, &options).map(drop),
        };
        if parsed.is_ok() != is_positive {
            wrong.push(format!("{}: {parsed:?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Texts of the grammars, and the same with parts lost, doubled or taken from another.
/// `SNOWMELT_ROUNDS` has more of them, `SNOWMELT_SEED` others.
#[test]
fn generated_and_changed_texts_are_read_alike() {
    let rounds = std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let oracle = Oracle::new(BASE);
    let mut texts = texts::Texts::new(snowmelt_base::test_seed(21), suites().as_deref());
    let (mut wrong, mut explained, mut taken) = (Vec::new(), BTreeMap::<&str, usize>::new(), 0);
    for _ in 0..rounds {
        let (language, text) = texts.next();
        let options = ParseOptions { base: Some(BASE), ..ParseOptions::default() };
        taken += usize::from(match language {
            Language::Query => parse_query(&text, &options).is_ok(),
            Language::Update => parse_update(&text, &options).is_ok(),
        });
        let Some(difference) = oracle.difference(language, &text) else { continue };
        match classes::of(language, &text, &difference) {
            Some(class) => *explained.entry(class).or_default() += 1,
            None if wrong.len() < 40 => wrong.push(format!("{language:?}: {text}\n    {difference:?}")),
            None => {}
        }
    }
    println!("{rounds} texts, {taken} valid, explained: {explained:?}");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(taken > rounds / 10, "{taken} of {rounds} are valid");
}

/// Each class of differences is explained, and each explained one is a class.
#[test]
fn classes_are_explained() {
    let text = include_str!("oracle/classes.txt");
    let listed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    assert_eq!(listed, classes::NAMES, "the headings of classes.txt, in the order of NAMES");
}
