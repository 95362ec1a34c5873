//! Which module needs which: by the paths in its code that begin with `crate`, `super` or `self`.
//!
//! 1. Each `use` is spread into single paths; a path elsewhere in the code counts as well.
//! 2. A path is followed from the crate's root as far as there are modules.
//! 3. Where a module only passes a name on (`pub use`), the arrow goes to where it comes from.

use crate::lexer::is_name;
use crate::tree::Crate;
use std::collections::{BTreeMap, BTreeSet};

/// A module, as in [`crate::tree::SourceFile::module`].
pub type Module = Vec<String>;

/// The arrows of a crate, from the module that needs to the one that is needed.
pub fn arrows(of: &Crate) -> BTreeSet<(Module, Module)> {
    let modules: BTreeSet<Module> = of.files.iter().map(|file| file.module.clone()).collect();
    let mut passed_on: BTreeMap<(Module, String), Vec<String>> = BTreeMap::new();
    let mut paths = Vec::new();
    for file in &of.files {
        for found in paths_in(&file.lexed.code) {
            let Some(whole) = from_root(&found.path, &file.module, &modules) else { continue };
            if found.is_passed_on
                && let Some(name) = whole.last()
            {
                passed_on.insert((file.module.clone(), name.clone()), whole.clone());
            }
            paths.push((file.module.clone(), whole));
        }
    }
    let mut arrows = BTreeSet::new();
    for (from, path) in paths {
        let to = target(path, &modules, &passed_on);
        if to != from {
            arrows.insert((from, to));
        }
    }
    arrows
}

/// The module a path leads to.
fn target(
    mut path: Vec<String>,
    modules: &BTreeSet<Module>,
    passed_on: &BTreeMap<(Module, String), Vec<String>>,
) -> Module {
    // a name may be passed on several times
    for _ in 0..8 {
        let len = (0..=path.len()).rev().find(|n| modules.contains(&path[..*n])).unwrap_or(0);
        let next = path.get(len).and_then(|name| passed_on.get(&(path[..len].to_vec(), name.clone())));
        match next {
            Some(further) if *further != path => path.clone_from(further),
            _ => {
                path.truncate(len);
                break;
            }
        }
    }
    path
}

/// A path as seen from the crate's root; None for one into another crate.
fn from_root(path: &[String], module: &[String], modules: &BTreeSet<Module>) -> Option<Vec<String>> {
    let (first, mut rest) = path.split_first()?;
    let mut base = match first.as_str() {
        "crate" => Vec::new(),
        "self" => module.to_vec(),
        "super" => module.split_last()?.1.to_vec(),
        _ => {
            // a child, named without anything before it
            let child = [module, std::slice::from_ref(first)].concat();
            return modules.contains(&child).then(|| [module, path].concat());
        }
    };
    while rest.first().is_some_and(|name| name == "super") {
        base.pop()?;
        rest = &rest[1..];
    }
    Some([&base[..], rest].concat())
}

struct Found {
    path: Vec<String>,
    is_passed_on: bool,
}

/// The paths of a file's code.
fn paths_in(code: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut rest = code;
    let mut last = "";
    while let Some((at, word)) = next_word(rest) {
        let after = &rest[at + word.len()..];
        if word == "use" {
            let end = after.find(';').unwrap_or(after.len());
            // `pub use`, `pub(crate) use`
            let between = rest[..at].trim();
            let is_passed_on = last == "pub" && between.is_empty() || between == ")";
            let mut single = Vec::new();
            spread(&after[..end], &[], &mut single);
            found.extend(single.into_iter().map(|path| Found { path, is_passed_on }));
            (rest, last) = (&after[end..], word);
            continue;
        }
        let starts = rest[..at].ends_with("::");
        let mut path = vec![word.to_owned()];
        let mut after = after;
        while let Some(more) = after.strip_prefix("::")
            && more.as_bytes().first().is_some_and(|b| is_name(*b))
        {
            let len = more.bytes().take_while(|b| is_name(*b)).count();
            path.push(more[..len].to_owned());
            after = &more[len..];
        }
        if path.len() > 1 && !starts {
            found.push(Found { path, is_passed_on: false });
        }
        (rest, last) = (after, word);
    }
    found
}

fn next_word(text: &str) -> Option<(usize, &str)> {
    let at = text.bytes().position(is_name)?;
    let len = text[at..].bytes().take_while(|b| is_name(*b)).count();
    Some((at, &text[at..at + len]))
}

/// `a::{b, c::{d, self}}` as single paths.
fn spread(tree: &str, before: &[String], into: &mut Vec<Vec<String>>) {
    for part in split_top(tree) {
        let part = part.trim();
        let part = part.split(" as ").next().unwrap_or(part).trim();
        match part.split_once('{') {
            Some((path, inner)) => {
                let before = [before, &names(path)].concat();
                spread(inner.strip_suffix('}').unwrap_or(inner), &before, into);
            }
            None if part.is_empty() => {}
            None => {
                let mut path = [before, &names(part)].concat();
                if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                    path.pop();
                }
                into.push(path);
            }
        }
    }
}

fn names(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Parts between commas that no braces hold together.
fn split_top(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::lex;
    use crate::tree::SourceFile;

    fn file(module: &[&str], code: &str) -> SourceFile {
        let module = module.iter().map(|m| m.to_string()).collect();
        SourceFile { path: String::new(), module, text: code.into(), lexed: lex(code) }
    }

    #[test]
    fn arrows_follow_names_to_where_they_come_from() {
        let of = Crate {
            name: "test".into(),
            files: vec![
                file(&[], "pub use a::inner::A; mod a; mod b; mod c;"),
                file(&["a"], "pub(crate) mod inner;"),
                file(&["a", "inner"], "use super::super::c;"),
                file(&["b"], "use crate::{A, c::{self, C}}; use std::a;"),
                file(&["c"], "fn f() { crate::b::g(); std::b::h(); }"),
            ],
        };
        let arrows = arrows(&of);
        let shown: Vec<String> =
            arrows.iter().map(|(a, b)| format!("{}>{}", a.join("."), b.join("."))).collect();
        assert_eq!(shown, [">a.inner", "a.inner>c", "b>a.inner", "b>c", "c>b"]);
    }
}
