//! REGEX and REPLACE: XPath's patterns and replacements on the regex crate (linear time: no pattern can stall a query).
//!
//! XPath's dialect is the crate's, back-references and character class subtraction apart; those patterns are errors.
//! The replacement is XPath's: `$1` is a group's number as long as it names one, `\$` and `\\` are themselves, any other use
//! of the two characters is an error.

use super::Func;
use super::string::{like, plain, string};
use crate::value::Value;
use regex::{Regex, RegexBuilder};
use std::cell::RefCell;

/// Bytes one compiled pattern may take.
const PATTERN_LIMIT_BYTES: usize = 1 << 20;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// flag q: nothing is special, in the replacement neither
    literal: bool,
}

impl Pattern {
    /// None when the pattern or a flag is malformed.
    pub fn new(pattern: &str, flags: &str) -> Option<Self> {
        let literal = flags.contains('q');
        let pattern = if literal { regex::escape(pattern) } else { pattern.to_owned() };
        let mut builder = RegexBuilder::new(&pattern);
        builder.size_limit(PATTERN_LIMIT_BYTES);
        for flag in flags.chars() {
            match flag {
                's' => builder.dot_matches_new_line(true),
                'm' => builder.multi_line(true),
                'i' => builder.case_insensitive(true),
                'x' => builder.ignore_whitespace(!literal),
                'q' => &mut builder,
                _ => return None,
            };
        }
        let regex = builder.build().ok()?;
        Some(Pattern { regex, literal })
    }

    pub fn matches(&self, text: &Value<'_>) -> Option<Value<'static>> {
        Some(Value::Boolean(self.regex.is_match(string(text)?.0)))
    }

    /// An error if the pattern matches the empty string, as XPath has it.
    pub fn replace(&self, text: &Value<'_>, replacement: &Value<'_>) -> Option<Value<'static>> {
        let (text, lang) = string(text)?;
        let replacement = plain(replacement)?;
        if self.regex.is_match("") {
            return None;
        }
        let replacement = if self.literal {
            replacement.replace('$', "$$")
        } else {
            translate(replacement, self.regex.captures_len() - 1)?
        };
        Some(like(self.regex.replace_all(text, replacement.as_str()).into_owned(), lang))
    }
}

/// XPath's replacement in the regex crate's notation.
fn translate(replacement: &str, groups: usize) -> Option<String> {
    let mut out = String::with_capacity(replacement.len());
    let mut rest = replacement.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next()? {
                '\\' => out.push('\\'),
                '$' => out.push_str("$$"),
                _ => return None,
            },
            '$' => {
                let mut number = rest.next()?.to_digit(10)? as usize;
                // Further digits belong to the number as long as there is such a group.
                while let Some(digit) = rest.peek().and_then(|c| c.to_digit(10)) {
                    if number * 10 + digit as usize > groups {
                        break;
                    }
                    number = number * 10 + digit as usize;
                    rest.next();
                }
                if number <= groups {
                    out.push_str(&format!("${{{number}}}"));
                }
            }
            c => out.push(c),
        }
    }
    Some(out)
}

/// REGEX(text, pattern, flags?) and REPLACE(text, pattern, replacement, flags?) with computed patterns: the last one is kept.
pub(super) fn call_dynamic(func: Func, args: &[Value<'_>]) -> Option<Value<'static>> {
    thread_local! {
        static LAST: RefCell<Option<(String, String, Option<Pattern>)>> = const { RefCell::new(None) };
    }
    let pattern = plain(&args[1])?;
    let flags = match args.get(if func == Func::Regex { 2 } else { 3 }) {
        Some(flags) => plain(flags)?,
        None => "",
    };
    LAST.with_borrow_mut(|last| {
        if !last.as_ref().is_some_and(|(p, f, _)| p == pattern && f == flags) {
            *last = Some((pattern.to_owned(), flags.to_owned(), Pattern::new(pattern, flags)));
        }
        let compiled = last.as_ref()?.2.as_ref()?;
        match func {
            Func::Regex => compiled.matches(&args[0]),
            _ => compiled.replace(&args[0], &args[2]),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replace(text: &str, pattern: &str, replacement: &str) -> Option<String> {
        let pattern = Pattern::new(pattern, "")?;
        let out = pattern.replace(&Value::String(text.into()), &Value::String(replacement.into()))?;
        Some(out.text().into_owned())
    }

    #[test]
    fn replacements_are_xpaths() {
        // the examples of XPath functions 5.6.3
        assert_eq!(replace("abracadabra", "bra", "*").as_deref(), Some("a*cada*"));
        assert_eq!(replace("abracadabra", "a.*?a", "*").as_deref(), Some("*c*bra"));
        assert_eq!(replace("abracadabra", ".*?", "$1"), None);
        assert_eq!(replace("AAAA", "A+?", "b").as_deref(), Some("bbbb"));
        assert_eq!(replace("darted", "^(.*?)d(.*)$", "$1c$2").as_deref(), Some("carted"));
        assert_eq!(replace("ab", "(a)", "$1x$2").as_deref(), Some("axb"));
        assert_eq!(replace("ab", "(a)", "$10").as_deref(), Some("a0b"));
        assert_eq!(replace("ab", "a", r"\$\\").as_deref(), Some(r"$\b"));
        assert_eq!(replace("ab", "a", "$"), None);
    }

    #[test]
    fn flags() {
        let matches = |text: &str, pattern: &str, flags: &str| {
            Pattern::new(pattern, flags)
                .and_then(|p| p.matches(&Value::String(text.into())))
                .map(|v| v.text() == "true")
        };
        assert_eq!(matches("ABC", "abc", "i"), Some(true));
        assert_eq!(matches("a.c", "a.c", "q"), Some(true));
        assert_eq!(matches("abc", "a.c", "q"), Some(false));
        assert_eq!(matches("abc", "a b c", "x"), Some(true));
        assert_eq!(matches("abc", "a", "z"), None);
        assert_eq!(matches("abc", "(", ""), None);
    }
}
