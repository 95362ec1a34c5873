//! Comments that are too wide or vague, documents that are too wide, files without a head.

use crate::lexer::Lexed;
use crate::tree::SourceFile;

/// Columns of prose.
pub const MOST_COLUMNS: usize = 100;

const VAGUE: [&str; 4] = ["nobody", "somebody", "whoever", "everybody"];

/// Lines of a source file whose comment goes beyond [`MOST_COLUMNS`]; those in code, tables and
/// with an address do not count.
pub fn wide_comments(text: &str, lexed: &Lexed) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let mut in_code = false;
    let mut wide = Vec::new();
    for (line, comment) in &lexed.comments {
        let prose = comment.trim_start_matches(['/', '!', '*']);
        if prose.trim().starts_with("```") {
            in_code = !in_code;
        }
        let is_code = in_code || prose.starts_with("     ");
        if !is_code && !is_excused(prose.trim()) && columns(&lines, *line) > MOST_COLUMNS {
            wide.push(*line);
        }
    }
    wide.dedup();
    wide.len()
}

fn columns(lines: &[&str], line: usize) -> usize {
    lines.get(line - 1).map_or(0, |line| line.chars().count())
}

/// Comments without a noun as their subject: doc comments that begin with "What" or "Who", and
/// comments with one of the words of [`VAGUE`].
pub fn vague_comments(lexed: &Lexed) -> usize {
    lexed.comments.iter().filter(|(_, comment)| is_vague(comment)).count()
}

fn is_vague(comment: &str) -> bool {
    let mut words = comment.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).peekable();
    let begins = comment.starts_with("//") && matches!(words.peek(), Some(&("What" | "Who")));
    begins || words.any(|word| VAGUE.iter().any(|vague| word.eq_ignore_ascii_case(vague)))
}

/// Lines of a document beyond [`MOST_COLUMNS`]; those in code, tables and with an address do
/// not count.
pub fn wide_lines(document: &str) -> usize {
    let mut in_code = false;
    let mut count = 0;
    for line in document.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let is_code = in_code || line.starts_with("    ");
        if !is_code && !is_excused(line.trim()) && line.chars().count() > MOST_COLUMNS {
            count += 1;
        }
    }
    count
}

fn is_excused(line: &str) -> bool {
    line.starts_with('|') || line.contains("://")
}

/// Whether the file begins by saying what it is.
pub fn has_head(file: &SourceFile) -> bool {
    file.text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| line.starts_with("//!"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::lex;

    #[test]
    fn subjects_are_nouns() {
        let vague = "/// What a load did.\n/// Who asks.\n// wakes whoever waits\n";
        let clear = "/// Counts of a load, and what they mean.\n/// Whose turn it is.\nlet nobody = 1;\n";
        assert_eq!(vague_comments(&lex(&format!("{vague}{clear}"))), 3);
    }

    #[test]
    fn width_is_that_of_the_line() {
        let long = "x".repeat(90);
        let text =
            format!("// {long}\n        // {long}\n//! | {long} | {long} |\nlet a = \"{long}{long}\";\n");
        let code = format!("//! ```text\n//! 0 {long} {long}\n//! ```\n//!     run {long} {long}\n");
        assert_eq!(wide_comments(&text, &lex(&text)), 1);
        assert_eq!(wide_comments(&code, &lex(&code)), 0);
        let document =
            format!("{long}\n{long} {long}\n    {long}{long}\n| {long}{long}\n```\n{long}{long}\n```\n");
        assert_eq!(wide_lines(&document), 1);
    }
}
