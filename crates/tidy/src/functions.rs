//! Functions too long to be seen at once.

use crate::lexer::is_name;
use crate::tree::SourceFile;

/// Lines of the longest function that needs no reason.
pub const MOST_LINES: usize = 70;

/// How a reason begins, in a comment right above the function or its attributes.
pub const REASON: &str = "// long:";

/// Name and lines of each function of more than [`MOST_LINES`] without a reason.
pub fn long(file: &SourceFile) -> Vec<(String, usize)> {
    let code = &file.lexed.code;
    let lines: Vec<&str> = file.text.lines().collect();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let is_word = at == 0 || !is_name(code.as_bytes()[at - 1]);
        let name: String = code[at + 3..].chars().take_while(|c| is_name(*c as u8)).collect();
        if !is_word || name.is_empty() {
            continue;
        }
        let Some(end) = end_of(code.as_bytes(), at) else { continue };
        let first = code[..at].matches('\n').count();
        let count = 1 + code[at..end].matches('\n').count();
        if count > MOST_LINES && !has_reason(&lines[..first]) {
            found.push((name, count));
        }
    }
    found
}

/// The end of the function's body; None for one without.
fn end_of(code: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0;
    let mut nested = 0;
    for (i, byte) in code[from..].iter().enumerate() {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested -= 1,
            b';' if depth == 0 && nested == 0 => return None,
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(from + i);
                }
            }
            _ => {}
        }
    }
    None
}

fn has_reason(before: &[&str]) -> bool {
    let beside = before.iter().rev().map(|line| line.trim_start());
    beside.take_while(|line| line.starts_with("//") || line.starts_with('#')).any(|l| l.starts_with(REASON))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::lex;

    #[test]
    fn a_long_function_needs_a_reason() {
        let body = "    x();\n".repeat(MOST_LINES);
        let long_one = |before: &str| {
            let text = format!("fn short() {{\n}}\n{before}pub fn long(a: [u8; 3]) {{\n{body}}}\n");
            long(&SourceFile { path: String::new(), module: vec![], lexed: lex(&text), text })
        };
        assert_eq!(long_one(""), [("long".to_owned(), MOST_LINES + 2)]);
        assert_eq!(long_one("// long: a table\n#[inline]\n"), []);
    }
}
