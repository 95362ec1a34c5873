//! Sentences in HTML.

use super::svg::escape;

/// A text in which no switch of a command is broken at its dashes.
pub(super) fn prose(text: &str) -> String {
    let word = |word: &str| match word.find("--") {
        Some(_) if word.chars().count() < 24 => format!("<span class=\"whole\">{}</span>", escape(word)),
        _ => escape(word),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_stays_on_its_line() {
        assert_eq!(prose("with --quick & more"), "with <span class=\"whole\">--quick</span> &amp; more");
    }
}
