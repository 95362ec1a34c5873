//! Types of one crate with the same bare name.

use crate::tree::Crate;
use std::collections::BTreeMap;

/// Names that more than one type of the crate has, with their number.
pub fn twins(of: &Crate) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for file in &of.files {
        for name in types_in(&file.lexed.code) {
            *counts.entry(name).or_default() += 1;
        }
    }
    counts.into_iter().filter(|(_, n)| *n > 1).collect()
}

/// The types a file defines; those inside of functions as well.
fn types_in(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in code.lines() {
        let mut words = line.split_whitespace().skip_while(|w| w.starts_with("pub"));
        // `pub(in path)` has a blank
        let mut first = words.next();
        while first.is_some_and(|w| w.ends_with(')')) {
            first = words.next();
        }
        if matches!(first, Some("struct" | "enum" | "trait" | "union"))
            && let Some(name) = words.next()
        {
            let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            // a macro's `$name` is none
            names.extend(Some(name).filter(|name| !name.is_empty()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_their_words() {
        let code = "pub struct A<'a> {\n}\n  enum B { }\npub(crate) trait C: D {\npub(in crate::x) struct E;\nstruct $f;\nlet union = 1;";
        assert_eq!(types_in(code), ["A", "B", "C", "E"]);
    }
}
