//! REGEX and REPLACE: XPath's patterns and replacements on the regex crate (linear time: no
//! pattern can stall a query), and on its automata where a text is long for its pattern
//! ([`super::search`]).
//!
//! XPath's dialect is the crate's, back-references and character class subtraction apart; those
//! patterns are errors. The replacement is XPath's: `$1` is a group's number as long as it
//! names one, `\$` and `\\` are themselves, any other use of the two characters is an error.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};
use regex_automata::util::syntax;

use super::Func;
use super::classes::are_few;
use super::search::{Automata, DFA_BYTES, Stopped};
use super::string::{like, plain, string};
use crate::value::{Terms, Value};

/// Bytes of compiled patterns, in steps; the last is the most.
const PATTERN_BYTES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];

/// Bytes of the longest pattern: its tree takes a hundred times as many, and longer ones
/// compile to more than the most anyway.
const LONGEST: usize = 64 << 10;

/// Bytes of a text times those of its compiled pattern up to which a search is not interrupted:
/// within a tenth of a second.
const AT_ONCE: usize = (32 << 10) * PATTERN_BYTES[0];

/// The same for the groups of a match in a long text: within a second.
const GROUPS_AT_ONCE: usize = 8 * AT_ONCE;

/// The flags of a pattern.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dialect {
    dot_matches_new_line: bool,
    multi_line: bool,
    case_insensitive: bool,
    ignore_whitespace: bool,
    /// nothing is special, in the replacement neither
    literal: bool,
}

impl Dialect {
    /// None when a flag is malformed.
    fn new(flags: &str) -> Option<Self> {
        let mut dialect = Self { literal: flags.contains('q'), ..Self::default() };
        for flag in flags.chars() {
            match flag {
                's' => dialect.dot_matches_new_line = true,
                'm' => dialect.multi_line = true,
                'i' => dialect.case_insensitive = true,
                'x' => dialect.ignore_whitespace = !dialect.literal,
                'q' => {}
                _ => return None,
            };
        }
        Some(dialect)
    }

    /// The same for the automata.
    pub(super) fn syntax(self) -> syntax::Config {
        syntax::Config::new()
            .dot_matches_new_line(self.dot_matches_new_line)
            .multi_line(self.multi_line)
            .case_insensitive(self.case_insensitive)
            .ignore_whitespace(self.ignore_whitespace)
    }

    fn regex(self, pattern: &str, bytes: usize) -> Option<Regex> {
        RegexBuilder::new(pattern)
            .dot_matches_new_line(self.dot_matches_new_line)
            .multi_line(self.multi_line)
            .case_insensitive(self.case_insensitive)
            .ignore_whitespace(self.ignore_whitespace)
            .size_limit(bytes)
            .dfa_size_limit(DFA_BYTES)
            .build()
            .ok()
    }
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct TextPattern {
    regex: Regex,
    dialect: Dialect,
    /// what it takes compiled, rounded up: at worst a search takes that long for each byte of
    /// the text
    bytes: usize,
    /// for long texts, made for the first one; None: it has none
    automata: Arc<OnceLock<Option<Automata>>>,
}

impl TextPattern {
    /// None when the pattern or a flag is malformed.
    pub fn new(pattern: &str, flags: &str) -> Option<Self> {
        let dialect = Dialect::new(flags)?;
        let pattern = if dialect.literal { regex::escape(pattern) } else { pattern.to_owned() };
        if pattern.len() > LONGEST || !are_few(&pattern, dialect.case_insensitive) {
            return None;
        }
        let mut sizes = PATTERN_BYTES.into_iter();
        let (regex, bytes) = sizes.find_map(|bytes| Some((dialect.regex(&pattern, bytes)?, bytes)))?;
        Some(TextPattern { regex, dialect, bytes, automata: Arc::default() })
    }

    /// Bytes that it takes compiled, rounded up.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn matches(&self, text: &Value<'_>, terms: &Terms) -> Option<Value<'static>> {
        let text = string(text)?.0;
        let found = if self.is_short(text.len()) {
            self.poll(text.len(), terms)?;
            self.regex.is_match(text)
        } else {
            let mut search = self.automata(text, terms)?.search();
            let found = search.is_match(text, || terms.look());
            self.searched(found, text, terms)?
        };
        Some(Value::Boolean(found))
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
        let parts = match self.dialect.literal {
            true => vec![ReplacementPart::Text(replacement.to_owned())],
            false => parts(replacement, self.regex.captures_len() - 1)?,
        };
        let mut out = Replaced { text, from: 0, out: String::new(), parts: &parts, terms };
        if self.is_short(text.len()) {
            self.poll(text.len(), terms)?;
            for found in self.regex.captures_iter(text) {
                let group = |number| found.get(number).map_or("", |group| group.as_str());
                out.replace(found.get_match().range(), group)?;
            }
        } else {
            self.replace_long(text, &parts, &mut out, terms)?;
        }
        Some(like(out.finish()?, lang))
    }

    /// The same matches as the crate's iterator has: an empty one is none where the one before
    /// ends.
    fn replace_long(
        &self,
        text: &str,
        parts: &[ReplacementPart],
        out: &mut Replaced<'_>,
        terms: &Terms,
    ) -> Option<()> {
        let has_groups = parts.iter().any(|part| matches!(part, ReplacementPart::Group(1..)));
        let automata = self.automata(text, terms)?;
        let mut search = automata.search();
        let (mut at, mut last_end) = (0, None);
        while at <= text.len() {
            let found = search.find(text, at, || terms.look());
            let Some(found) = self.searched(found, text, terms)? else { break };
            if found.is_empty() && (last_end == Some(found.end) || !text.is_char_boundary(found.end)) {
                at = found.end + 1;
                continue;
            }
            (at, last_end) = (found.end, Some(found.end));
            if !has_groups {
                out.replace(found.clone(), |_| &text[found.clone()])?;
            } else if found.len().saturating_mul(self.bytes) <= GROUPS_AT_ONCE {
                let groups = automata.groups(text, found.clone());
                out.replace(found, |number| groups.get(number).copied().unwrap_or_default())?;
            } else {
                return terms.refuse_search(found.len(), self.bytes);
            }
        }
        Some(())
    }

    /// Whether a text of so many bytes may be searched in one go.
    fn is_short(&self, text_bytes: usize) -> bool {
        text_bytes.saturating_mul(self.bytes) <= AT_ONCE
    }

    /// Counts the work of a search.
    fn poll(&self, text_bytes: usize, terms: &Terms) -> Option<()> {
        /// Bytes of a compiled pattern for which a byte of text counts once.
        const SHARE: usize = 4 << 10;
        terms.poll(text_bytes.saturating_mul(self.bytes / SHARE))
    }

    fn automata(&self, text: &str, terms: &Terms) -> Option<&Automata> {
        let automata =
            self.automata.get_or_init(|| Automata::new(self.regex.as_str(), self.dialect, self.bytes));
        match automata {
            Some(automata) => Some(automata),
            None => terms.refuse_search(text.len(), self.bytes),
        }
    }

    fn searched<T>(&self, found: Result<T, Stopped>, text: &str, terms: &Terms) -> Option<T> {
        match found {
            Ok(found) => Some(found),
            Err(Stopped::Query) => None,
            Err(Stopped::Unsearchable) => terms.refuse_search(text.len(), self.bytes),
        }
    }
}

/// A text in which matches are being replaced.
struct Replaced<'a> {
    text: &'a str,
    /// up to here the text is in `out`
    from: usize,
    out: String,
    parts: &'a [ReplacementPart],
    terms: &'a Terms,
}

impl Replaced<'_> {
    /// Replaces the next match; measured before it is made.
    fn replace<'t>(&mut self, found: Range<usize>, group: impl Fn(usize) -> &'t str) -> Option<()> {
        let part = |part: &ReplacementPart| match part {
            ReplacementPart::Text(text) => text.len(),
            ReplacementPart::Group(number) => group(*number).len(),
        };
        let added = self.parts.iter().map(part).fold(0, usize::saturating_add);
        let bytes = (self.out.len() + found.start - self.from).saturating_add(added);
        self.terms.fits(bytes)?;
        self.terms.poll(bytes - self.out.len())?;
        self.out.reserve(bytes - self.out.len());
        self.out.push_str(&self.text[self.from..found.start]);
        for part in self.parts {
            self.out.push_str(match part {
                ReplacementPart::Text(text) => text,
                ReplacementPart::Group(number) => group(*number),
            });
        }
        self.from = found.end;
        Some(())
    }

    fn finish(mut self) -> Option<String> {
        self.terms.fits(self.out.len() + self.text.len() - self.from)?;
        self.out.push_str(&self.text[self.from..]);
        Some(self.out)
    }
}

/// A stretch of a replacement.
enum ReplacementPart {
    Text(String),
    Group(usize),
}

/// XPath's replacement, cut into what stands there and the groups it names; groups that are not
/// there are empty.
fn parts(replacement: &str, groups: usize) -> Option<Vec<ReplacementPart>> {
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
                    parts.push(ReplacementPart::Text(std::mem::take(&mut text)));
                    parts.push(ReplacementPart::Group(number));
                }
            }
            c => text.push(c),
        }
    }
    parts.push(ReplacementPart::Text(text));
    Some(parts)
}

/// REGEX(text, pattern, flags?) and REPLACE(text, pattern, replacement, flags?) with computed
/// patterns: the last one is kept.
pub(super) fn call_dynamic(func: Func, args: &[Value<'_>], terms: &Terms) -> Option<Value<'static>> {
    thread_local! {
        static LAST: RefCell<Option<(String, String, Option<TextPattern>)>> = const { RefCell::new(None) };
    }
    let pattern = plain(&args[1])?;
    let flags = match args.get(if func == Func::Regex { 2 } else { 3 }) {
        Some(flags) => plain(flags)?,
        None => "",
    };
    LAST.with_borrow_mut(|last| {
        if !last.as_ref().is_some_and(|(p, f, _)| p == pattern && f == flags) {
            // to compile takes up to tens of milliseconds
            terms.look()?;
            *last = Some((pattern.to_owned(), flags.to_owned(), TextPattern::new(pattern, flags)));
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
        let pattern = TextPattern::new(pattern, "")?;
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
            TextPattern::new(pattern, flags)
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
        let pattern = TextPattern::new("(a+)", "").unwrap();
        assert!(pattern.replace(&text, &replacement, &terms).is_none());
        assert!(matches!(terms.fault(), Err(crate::value::TermError::TooLong { bytes: 67108864, .. })));
    }

    /// A text too long to be searched in one go, with characters of each length.
    fn long(seed: u64) -> String {
        let mut random = seed;
        let mut text = String::new();
        while text.len() < AT_ONCE / PATTERN_BYTES[0] * 2 {
            snowmelt_base::random::lcg(&mut random);
            text.push(['a', 'b', 'c', ' ', 'é', '\n', '€', 'B', '-', '𝄞'][(random >> 33) as usize % 10]);
        }
        text
    }

    #[test]
    fn long_texts_are_searched_as_short_ones() {
        for (seed, (pattern, flags)) in [
            ("b", ""),
            ("b", "i"),
            ("(a+)(b|é)?", ""),
            ("^(.)", "m"),
            ("(.)$", "m"),
            ("^.*$", "s"),
            ("a.c", "q"),
            ("(a)|(b)|(c)", ""),
            ("[^a]+a", ""),
            ("a b # c", "x"),
            ("€$", ""),
            ("nothing", ""),
            (r"\p{L}{3,}?", ""),
            ("(?:^|a)(b*)", ""),
            (r"(?-u:\b)", ""),
        ]
        .into_iter()
        .enumerate()
        {
            let text = long(seed as u64);
            let pattern = TextPattern::new(pattern, flags).unwrap();
            let terms = Terms::for_test(1 << 24);
            assert!(!pattern.is_short(text.len()));
            let value = Value::String(text.clone().into());
            let expected = Value::Boolean(pattern.regex.is_match(&text));
            assert_eq!(
                pattern.matches(&value, &terms).map(|v| v.text().into_owned()),
                Some(expected.text().into_owned())
            );
            if pattern.regex.is_match("") {
                continue;
            }
            let groups = pattern.regex.captures_len() - 1;
            for replacement in ["<$0>", "$1-$2"].into_iter().take(1 + groups) {
                let expected = match pattern.dialect.literal {
                    true => pattern.regex.replace_all(&text, regex::NoExpand(replacement)),
                    false => pattern.regex.replace_all(&text, replacement),
                };
                let replaced = pattern.replace(&value, &Value::String(replacement.into()), &terms);
                assert!(replaced.is_some_and(|r| r.text() == expected), "{pattern:?} {replacement}");
            }
        }
    }

    #[test]
    fn what_no_automaton_searches_is_refused() {
        let terms = Terms::for_test(1 << 24);
        let pattern = TextPattern::new(r"\bz", "").unwrap();
        assert!(pattern.matches(&Value::String(long(1).into()), &terms).is_none());
        assert!(matches!(terms.fault(), Err(crate::value::TermError::Search { .. })));
    }

    #[test]
    fn a_search_ends_when_the_query_has_to() {
        let text = "ab".repeat(1 << 20);
        let automata = Automata::new("(?:[ab]*a[ab]{9}c)", Dialect::default(), PATTERN_BYTES[0]).unwrap();
        let mut looks = 0;
        let found = automata.search().is_match(&text, || {
            looks += 1;
            (looks < 5).then_some(())
        });
        assert_eq!((found, looks), (Err(Stopped::Query), 5));
    }
}
