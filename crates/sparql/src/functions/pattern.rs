//! REGEX and REPLACE: XPath's patterns and replacements.
//!
//! A pattern is translated ([`super::xpath`]) and compiled for one of three engines:
//!
//! 1. the regex crate, in linear time: no pattern can stall a query;
//! 2. its automata, step by step, where a text is long for its pattern ([`super::search`]);
//! 3. an engine that backtracks, bounded in steps, where the pattern has back-references
//!    ([`super::backtrack`]).
//!
//! The replacement is XPath's: `$1` is a group's number as long as it names one, `\$` and `\\`
//! are themselves, any other use of the two characters is an error.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind, Look};

use super::Func;
use super::backtrack::Backtracking;
use super::search::{Automata, DFA_BYTES, Stopped};
use super::string::{like, plain, string};
use super::xpath::{self, Flags};
use crate::value::{Terms, Value};

/// Steps in the size of compiled patterns, in bytes; the last is the limit.
const PATTERN_BYTES: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];

/// Bytes of the longest pattern, also translated: its tree takes a hundred times as many, and
/// longer ones compile to more than the most anyway.
const LONGEST: usize = 64 << 10;

/// Largest product of the bytes of a text and of its compiled pattern for which a search is not
/// interrupted: it takes up to a tenth of a second.
const AT_ONCE: usize = (32 << 10) * PATTERN_BYTES[0];

/// Largest product of the bytes of a match in a long text and of its compiled pattern for which its
/// groups are searched for: that takes up to a second.
const GROUPS_AT_ONCE: usize = 8 * AT_ONCE;

/// The flags of a pattern, and whether nothing is special (`q`), in the replacement neither;
/// `None` when a flag is malformed.
fn flags_of(flags: &str) -> Option<(Flags, bool)> {
    let literal = flags.contains('q');
    let mut parsed = Flags::default();
    for flag in flags.chars() {
        match flag {
            's' => parsed.dot_matches_all = true,
            'm' => parsed.multi_line = true,
            'i' => parsed.ignore_case = true,
            'x' => parsed.drop_white_space = true,
            'q' => {}
            _ => return None,
        }
    }
    Some((parsed, literal))
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct TextPattern {
    engine: Matcher,
    /// For texts that end with a line feed: see [`xpath::Translated::at_last_line`].
    at_last_line: Option<Backtracking>,
    /// The replacement is literal, too.
    is_literal: bool,
    beginning: Option<Beginning>,
    /// Size of the compiled pattern, rounded up: at worst a search takes that long for each byte
    /// of the text.
    bytes: usize,
}

/// The beginning of the texts for which a condition holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Beginning {
    pub text: String,
    /// it holds for all of them
    pub is_all: bool,
}

impl Beginning {
    /// Of a pattern that begins with `^` and characters.
    fn of(pattern: &str) -> Option<Self> {
        let hir = regex_syntax::parse(pattern).ok()?;
        let HirKind::Concat(parts) = hir.kind() else { return None };
        match parts.iter().map(Hir::kind).collect::<Vec<_>>()[..] {
            [HirKind::Look(Look::Start), HirKind::Literal(text), ref rest @ ..] => {
                let text = std::str::from_utf8(&text.0).ok()?.to_string();
                Some(Self { text, is_all: rest.is_empty() })
            }
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
enum Matcher {
    Linear(Linear),
    Backtracking(Backtracking),
}

/// A pattern that is searched for in linear time.
#[derive(Clone, Debug)]
struct Linear {
    regex: Regex,
    /// For long texts, made for the first one; `None` inside: the pattern has none.
    automata: Arc<OnceLock<Option<Automata>>>,
}

/// The engine that searches a text.
enum Searcher<'a> {
    AtOnce(&'a Regex),
    InSteps(&'a Automata),
    Backtracking(&'a Backtracking),
}

impl TextPattern {
    /// None when the pattern or a flag is malformed.
    pub fn new(pattern: &str, flags: &str) -> Option<Self> {
        let (flags, is_literal) = flags_of(flags)?;
        if pattern.len() > LONGEST {
            return None;
        }
        let translated = match is_literal {
            true => xpath::literal(pattern, flags),
            false => xpath::translate(pattern, flags)?,
        };
        if translated.pattern.len() > LONGEST {
            return None;
        }
        let backtracking = |pattern: &str| Backtracking::new(pattern, PATTERN_BYTES[2]);
        let at_last_line = match &translated.at_last_line {
            Some(pattern) => Some(backtracking(pattern)?),
            None => None,
        };
        let (engine, bytes) = match translated.has_back_references {
            true => (Matcher::Backtracking(backtracking(&translated.pattern)?), PATTERN_BYTES[2]),
            false => {
                let (regex, bytes) = linear(&translated.pattern)?;
                (Matcher::Linear(Linear { regex, automata: Arc::default() }), bytes)
            }
        };
        let beginning = match (&engine, &at_last_line) {
            (Matcher::Linear(_), None) => Beginning::of(&translated.pattern),
            _ => None,
        };
        Some(TextPattern { engine, at_last_line, is_literal, beginning, bytes })
    }

    /// The beginning that all texts have that match.
    pub fn beginning(&self) -> Option<Beginning> {
        self.beginning.clone()
    }

    /// Bytes that it takes compiled, rounded up.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn matches(&self, text: &Value<'_>, terms: &Terms) -> Option<Value<'static>> {
        let text = string(text)?.0;
        let found = match self.searcher(text, terms)? {
            Searcher::AtOnce(regex) => regex.is_match(text),
            Searcher::InSteps(automata) => {
                let found = automata.search().is_match(text, || terms.look());
                self.searched(found, text, terms)?
            }
            Searcher::Backtracking(pattern) => {
                let found = pattern.find(text, 0, |work| at_once(work, terms));
                self.searched(found, text, terms)?.is_some()
            }
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
        if self.matches_empty(terms)? {
            return None;
        }
        let parts = match self.is_literal {
            true => vec![ReplacementPart::Text(replacement.to_owned())],
            false => parts(replacement, self.groups() - 1)?,
        };
        let mut out = Replaced { text, from: 0, out: String::new(), parts: &parts, terms };
        match self.searcher(text, terms)? {
            Searcher::AtOnce(regex) => {
                for found in regex.captures_iter(text) {
                    let group = |number| found.get(number).map_or("", |group| group.as_str());
                    out.replace(found.get_match().range(), group)?;
                }
            }
            Searcher::InSteps(automata) => self.replace_in_steps(automata, &mut out)?,
            Searcher::Backtracking(pattern) => self.replace_backtracking(pattern, &mut out)?,
        }
        Some(like(out.finish()?, lang))
    }

    /// Replaces the matches that the crate's iterator has: an empty one is none where the one
    /// before ends.
    fn replace_in_steps(&self, automata: &Automata, out: &mut Replaced<'_>) -> Option<()> {
        let Replaced { text, terms, parts, .. } = *out;
        let has_groups = parts.iter().any(|part| matches!(part, ReplacementPart::Group(1..)));
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

    fn replace_backtracking(&self, pattern: &Backtracking, out: &mut Replaced<'_>) -> Option<()> {
        let Replaced { text, terms, .. } = *out;
        let mut at = 0;
        loop {
            let found = pattern.find(text, at, |work| at_once(work, terms));
            let Some(groups) = self.searched(found, text, terms)? else { break };
            let found = groups[0].clone();
            // without look-around, a pattern that does not match the empty text has no empty match
            assert!(!found.is_empty(), "a pattern that matches the empty text was refused");
            at = found.end;
            out.replace(found, |number| groups.get(number).map_or("", |group| &text[group.clone()]))?;
        }
        Some(())
    }

    fn matches_empty(&self, terms: &Terms) -> Option<bool> {
        match &self.engine {
            Matcher::Linear(linear) => Some(linear.regex.is_match("")),
            Matcher::Backtracking(pattern) => {
                let found = pattern.find("", 0, |work| at_once(work, terms));
                Some(self.searched(found, "", terms)?.is_some())
            }
        }
    }

    /// Groups, that of the whole match included.
    fn groups(&self) -> usize {
        match &self.engine {
            Matcher::Linear(linear) => linear.regex.captures_len(),
            Matcher::Backtracking(pattern) => pattern.groups(),
        }
    }

    /// The engine for a text; counts the work of a search that is not interrupted.
    fn searcher(&self, text: &str, terms: &Terms) -> Option<Searcher<'_>> {
        let linear = match (&self.engine, &self.at_last_line) {
            (Matcher::Backtracking(pattern), _) => return Some(Searcher::Backtracking(pattern)),
            (_, Some(pattern)) if text.ends_with('\n') => return Some(Searcher::Backtracking(pattern)),
            (Matcher::Linear(linear), _) => linear,
        };
        if text.len().saturating_mul(self.bytes) <= AT_ONCE {
            self.poll(text.len(), terms)?;
            return Some(Searcher::AtOnce(&linear.regex));
        }
        let make = || Automata::new(linear.regex.as_str(), self.bytes);
        match linear.automata.get_or_init(make) {
            Some(automata) => Some(Searcher::InSteps(automata)),
            None => terms.refuse_search(text.len(), self.bytes),
        }
    }

    /// Counts the work of a search.
    fn poll(&self, text_bytes: usize, terms: &Terms) -> Option<()> {
        /// Bytes of a compiled pattern for which a byte of text counts once.
        const SHARE: usize = 4 << 10;
        terms.poll(text_bytes.saturating_mul(self.bytes / SHARE))
    }

    fn searched<T>(&self, found: Result<T, Stopped>, text: &str, terms: &Terms) -> Option<T> {
        match found {
            Ok(found) => Some(found),
            Err(Stopped::Query) => None,
            Err(Stopped::Unsearchable) => terms.refuse_search(text.len(), self.bytes),
        }
    }
}

/// The pattern compiled, and the step of size that it fits in.
fn linear(pattern: &str) -> Option<(Regex, usize)> {
    PATTERN_BYTES.into_iter().find_map(|bytes| {
        let mut builder = RegexBuilder::new(pattern);
        let regex = builder.size_limit(bytes).dfa_size_limit(DFA_BYTES).build().ok()?;
        Some((regex, bytes))
    })
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
            // to compile takes as long as to read the most that may come of it
            terms.poll(PATTERN_BYTES[0])?;
            *last = Some((pattern.to_owned(), flags.to_owned(), TextPattern::new(pattern, flags)));
        }
        let compiled = last.as_ref()?.2.as_ref()?;
        match func {
            Func::Regex => compiled.matches(&args[0], terms),
            _ => compiled.replace(&args[0], &args[2], terms),
        }
    })
}

/// Counts work that is done without a look at the limits, and looks before.
fn at_once(work: usize, terms: &Terms) -> Option<()> {
    terms.poll(work)?;
    terms.look()
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
            ("a b  c", "x"),
            ("€$", ""),
            ("nothing", ""),
            (r"\p{L}{3,}?", ""),
            ("(?:^|a)(b*)", ""),
            (r"\i\c*-", "i"),
        ]
        .into_iter()
        .enumerate()
        {
            let text = long(seed as u64);
            let pattern = TextPattern::new(pattern, flags).unwrap();
            let terms = Terms::for_test(1 << 24);
            assert!(matches!(pattern.searcher(&text, &terms), Some(Searcher::InSteps(_))));
            let Matcher::Linear(Linear { regex, .. }) = &pattern.engine else { panic!("not linear") };
            let value = Value::String(text.clone().into());
            let expected = Value::Boolean(regex.is_match(&text));
            assert_eq!(
                pattern.matches(&value, &terms).map(|v| v.text().into_owned()),
                Some(expected.text().into_owned())
            );
            if regex.is_match("") {
                continue;
            }
            let groups = regex.captures_len() - 1;
            for replacement in ["<$0>", "$1-$2"].into_iter().take(1 + groups) {
                let expected = match pattern.is_literal {
                    true => regex.replace_all(&text, regex::NoExpand(replacement)),
                    false => regex.replace_all(&text, replacement),
                };
                let replaced = pattern.replace(&value, &Value::String(replacement.into()), &terms);
                assert!(replaced.is_some_and(|r| r.text() == expected), "{pattern:?} {replacement}");
            }
        }
    }

    #[test]
    fn back_references_in_a_long_text_are_refused() {
        let terms = Terms::for_test(1 << 24);
        let pattern = TextPattern::new(r"(z)\1", "").unwrap();
        assert!(pattern.matches(&Value::String(long(1).into()), &terms).is_none());
        assert!(matches!(terms.fault(), Err(crate::value::TermError::Search { .. })));
    }

    #[test]
    fn a_search_that_backtracks_for_ever_is_refused() {
        let terms = Terms::for_test(1 << 24);
        let pattern = TextPattern::new(r"^(a)(?:\1|a)*\1b$", "").unwrap();
        let text = "a".repeat(40) + "c";
        assert!(pattern.matches(&Value::String(text.into()), &terms).is_none());
        assert!(matches!(terms.fault(), Err(crate::value::TermError::Search { .. })));
    }

    #[test]
    fn matches_that_backtrack_are_replaced_one_by_one() {
        assert_eq!(replace("aabbcabb", r"(\w)\1", "<$1>").as_deref(), Some("<a><b>ca<b>"));
        assert_eq!(replace("aabb", r"(a*)\1", "x"), None);
        assert_eq!(replace("éé€€é", r"(.)\1", "$1").as_deref(), Some("é€é"));
    }

    #[test]
    fn a_search_ends_when_the_query_has_to() {
        let text = "ab".repeat(1 << 20);
        let automata = Automata::new("(?:[ab]*a[ab]{9}c)", PATTERN_BYTES[0]).unwrap();
        let mut looks = 0;
        let found = automata.search().is_match(&text, || {
            looks += 1;
            (looks < 5).then_some(())
        });
        assert_eq!((found, looks), (Err(Stopped::Query), 5));
    }
}
