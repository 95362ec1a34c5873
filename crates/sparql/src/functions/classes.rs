//! The classes of characters in a pattern, told before it is compiled.
//!
//! A class is a few bytes in a pattern and stands for up to a million characters. Where case does
//! not matter, the compiler goes over all of them, one by one: up to 20 ms for each class, and a
//! pattern may have thousands. Nothing can interrupt that, so a pattern with more is refused.

/// Units of a pattern's classes; a class that may be wide is one, and [`FOLDED`] where case does
/// not matter: within a second.
const MOST: usize = 400;
const FOLDED: usize = 8;

/// Whether the classes of a pattern can be compiled in one go.
pub(super) fn are_few(pattern: &str, case_insensitive: bool) -> bool {
    // flags may stand within a pattern, too
    let folds = case_insensitive || pattern.contains("(?");
    let wide = wide(pattern);
    wide * if folds { FOLDED } else { 1 } <= MOST
}

/// Classes that may be wide: by name (`\w`, `\p{L}`), and brackets that hold more than plain ASCII.
fn wide(pattern: &str) -> usize {
    let (mut wide, mut bytes) = (0, pattern.bytes().peekable());
    let mut depth = 0usize;
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                let named = bytes.next().is_some_and(|b| b.is_ascii_alphabetic());
                wide += usize::from(named || depth > 0);
            }
            b'[' => {
                wide += usize::from(depth > 0);
                depth += 1;
            }
            b']' => depth = depth.saturating_sub(1),
            byte if depth > 0 && !byte.is_ascii() => wide += 1,
            _ => {}
        }
    }
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_classes_are_counted() {
        let cases = [
            ("[a-z]+[^0-9]", 0),
            (r"\w+\.\d\\", 2),
            (r"\p{L}[\p{N}a]", 2),
            ("[[^a]]", 1),
            ("[\u{0}-\u{ffff}]", 3),
            (r"[\x{0}-\x{10FFFF}]", 2),
            ("é[a]é", 0),
        ];
        for (pattern, expected) in cases {
            assert_eq!(wide(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn more_are_refused_where_each_costs_more() {
        let pattern = |n: usize| r"\p{L}".repeat(n);
        assert!(are_few(&pattern(MOST), false) && !are_few(&pattern(MOST + 1), false));
        assert!(are_few(&pattern(MOST / FOLDED), true) && !are_few(&pattern(MOST / FOLDED + 1), true));
        assert!(!are_few(&format!("(?i){}", pattern(MOST)), false));
    }
}
