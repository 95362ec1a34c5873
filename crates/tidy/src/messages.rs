//! Messages of libraries that name a switch of a program.
//!
//! A library does not know how its settings are given: its errors carry kinds and values, and the
//! command line and the server add the switches.

use crate::lexer::Lexed;

/// Crates below the programs.
pub const LIBRARIES: [&str; 12] = [
    "base",
    "cloud",
    "database",
    "federation",
    "graph",
    "io",
    "jsonld",
    "query",
    "rdfxml",
    "snowmelt",
    "sparql",
    "store",
];

/// Counts the texts that name a switch.
pub fn with_switches(lexed: &Lexed) -> usize {
    lexed.texts.iter().filter(|(_, text)| names_switch(text)).count()
}

/// True of `--name` or `--{name}` at the beginning of a word. The end of a language tag with a base
/// direction is no switch.
fn names_switch(text: &str) -> bool {
    text.match_indices("--").any(|(at, _)| {
        let begins = !text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '}'));
        let rest = &text[at + 2..];
        let word = rest.split(|c: char| !c.is_alphanumeric()).next();
        begins
            && rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '{')
            && !matches!(word, Some("ltr" | "rtl"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::lex;

    #[test]
    fn switches_stand_at_the_beginning_of_words() {
        let named = r##"("a; --memory", "--base IRI", r"(--{limit})", "`--a`")"##;
        let none =
            r##"('-', "--", "a -- b", "a--b", "---a", "<!--", "--1", "--ltr", "{tag}--{to}") // "--memory""##;
        assert_eq!(with_switches(&lex(named)), 4);
        assert_eq!(with_switches(&lex(none)), 0);
    }
}
