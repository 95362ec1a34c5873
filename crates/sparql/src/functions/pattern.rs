//! REGEX and REPLACE: XPath's patterns and replacements on the regex crate (linear time: no pattern can stall a query).
//!
//! XPath's dialect is the crate's, back-references and character class subtraction apart; those patterns are errors.
//! The replacement is XPath's: `$1` is a group's number as long as it names one, `\$` and `\\` are themselves, any other use
//! of the two characters is an error.

use super::Func;
use super::string::{like, plain, string};
use crate::value::{Terms, Value};
use regex::{Captures, Regex, RegexBuilder};
use std::cell::RefCell;

/// Bytes of compiled patterns, in steps; the last is the most.
const PATTERN_BYTES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];

/// Bytes of a text that may be searched, times those of the pattern.
const SEARCH: usize = (16 << 20) * PATTERN_BYTES[0];

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// flag q: nothing is special, in the replacement neither
    literal: bool,
    /// what it takes compiled, rounded up: at worst a search takes that long for each byte of the text
    bytes: usize,
}

impl Pattern {
    /// None when the pattern or a flag is malformed.
    pub fn new(pattern: &str, flags: &str) -> Option<Self> {
        let literal = flags.contains('q');
        let pattern = if literal { regex::escape(pattern) } else { pattern.to_owned() };
        let mut builder = RegexBuilder::new(&pattern);
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
        let mut sizes = PATTERN_BYTES.into_iter();
        let (regex, bytes) =
            sizes.find_map(|bytes| Some((builder.size_limit(bytes).build().ok()?, bytes)))?;
        Some(Pattern { regex, literal, bytes })
    }

    pub fn matches(&self, text: &Value<'_>, terms: &Terms) -> Option<Value<'static>> {
        let text = string(text)?.0;
        self.may_search(text, terms)?;
        Some(Value::Boolean(self.regex.is_match(text)))
    }

    /// Whether a text may be searched: one search cannot be interrupted, so a long text allows a small pattern only.
    fn may_search(&self, text: &str, terms: &Terms) -> Option<()> {
        match text.len().saturating_mul(self.bytes) <= SEARCH {
            true => terms.poll(text.len()),
            false => terms.refuse_search(text.len(), self.bytes),
        }
    }

    /// An error if the pattern matches the empty string, as XPath has it.
    pub fn replace(
        &self,
        text: &Value<'_>,
        replacement: &Value<'_>,
        terms: &Terms,
    ) -> Option<Value<'static>> {
        let (text, lang) = string(text)?;
        let replacement = plain(replacement)?;
        if self.regex.is_match("") {
            return None;
        }
        self.may_search(text, terms)?;
        let parts = match self.literal {
            true => vec![Part::Text(replacement.to_owned())],
            false => parts(replacement, self.regex.captures_len() - 1)?,
        };
        let mut out = String::new();
        let mut from = 0;
        for found in self.regex.captures_iter(text) {
            let whole = found.get_match();
            let added = parts.iter().map(|part| part.of(&found).len()).fold(0, usize::saturating_add);
            let bytes = (out.len() + whole.start() - from).saturating_add(added);
            terms.fits(bytes)?;
            terms.poll(bytes - out.len())?;
            out.reserve(bytes - out.len());
            out.push_str(&text[from..whole.start()]);
            parts.iter().for_each(|part| out.push_str(part.of(&found)));
            from = whole.end();
        }
        terms.fits(out.len() + text.len() - from)?;
        out.push_str(&text[from..]);
        Some(like(out, lang))
    }
}

/// A stretch of a replacement.
enum Part {
    Text(String),
    Group(usize),
}

impl Part {
    fn of<'t>(&'t self, found: &Captures<'t>) -> &'t str {
        match self {
            Part::Text(text) => text,
            Part::Group(number) => found.get(*number).map_or("", |group| group.as_str()),
        }
    }
}

/// XPath's replacement, cut into what stands there and the groups it names; groups that are not there are empty.
fn parts(replacement: &str, groups: usize) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = replacement.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next()? {
                c @ ('\\' | '$') => text.push(c),
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
                    parts.push(Part::Text(std::mem::take(&mut text)));
                    parts.push(Part::Group(number));
                }
            }
            c => text.push(c),
        }
    }
    parts.push(Part::Text(text));
    Some(parts)
}

/// REGEX(text, pattern, flags?) and REPLACE(text, pattern, replacement, flags?) with computed patterns: the last one is kept.
pub(super) fn call_dynamic(func: Func, args: &[Value<'_>], terms: &Terms) -> Option<Value<'static>> {
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
            Func::Regex => compiled.matches(&args[0], terms),
            _ => compiled.replace(&args[0], &args[2], terms),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replace(text: &str, pattern: &str, replacement: &str) -> Option<String> {
        let pattern = Pattern::new(pattern, "")?;
        let (text, replacement) = (Value::String(text.into()), Value::String(replacement.into()));
        let out = pattern.replace(&text, &replacement, &Terms::for_test(100))?;
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
                .and_then(|p| p.matches(&Value::String(text.into()), &Terms::for_test(100)))
                .map(|v| v.text() == "true")
        };
        assert_eq!(matches("ABC", "abc", "i"), Some(true));
        assert_eq!(matches("a.c", "a.c", "q"), Some(true));
        assert_eq!(matches("abc", "a.c", "q"), Some(false));
        assert_eq!(matches("abc", "a b c", "x"), Some(true));
        assert_eq!(matches("abc", "a", "z"), None);
        assert_eq!(matches("abc", "(", ""), None);
    }

    #[test]
    fn a_replacement_is_measured_before_it_is_made() {
        let terms = Terms::for_test(1 << 20);
        let text = Value::String("a".repeat(1 << 10).into());
        let replacement = Value::String("$1".repeat(1 << 16).into());
        let pattern = Pattern::new("(a+)", "").unwrap();
        assert!(pattern.replace(&text, &replacement, &terms).is_none());
        assert!(matches!(terms.fault(), Err(crate::value::TermError::TooLong { bytes: 67108864, .. })));
    }

    #[test]
    fn a_long_text_allows_a_small_pattern() {
        let terms = Terms::for_test(1 << 24);
        let text = Value::String("a".repeat(1 << 22).into());
        assert!(Pattern::new("b", "").unwrap().matches(&text, &terms).is_some());
        let large = Pattern::new("(?:abc|abd){1500}b", "").unwrap();
        assert!(large.matches(&text, &terms).is_none());
        assert!(matches!(terms.fault(), Err(crate::value::TermError::Search { .. })));
    }
}
