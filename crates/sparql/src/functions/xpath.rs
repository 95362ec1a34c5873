//! XPath's regular expressions, translated into the dialect of the regex crates.
//!
//! The grammar is that of XML Schema 1.1 (part 2, appendix G) with what XPath adds to it
//! (Functions and Operators 3.1, 5.6.1): anchors, reluctant quantifiers, groups that are not
//! captured, back-references and flags. The translation is one pass without recursion:
//!
//! 1. Atoms are written one by one. Constructs that both dialects have with another meaning
//!    (`.`, `\s`, `\w`, `{`, `]`) are written out; what only the crates know (`\b`, `\x41`,
//!    `(?i)`, `[[:alpha:]]`) is an error.
//! 2. The flag `i` is resolved here: a character becomes the class of its case variants.
//!    Categories and blocks stay as they are, as XPath has it, where the crates would fold them.
//! 3. The flag `x` drops white space outside of classes; there are no comments.
//!
//! A pattern with a back-reference needs an engine that backtracks ([`super::backtrack`]).

mod class;

use std::fmt::Write;

use self::class::{ClassError, ClassEscape};

/// Flags of a pattern, without `q`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub dot_matches_all: bool,
    pub multi_line: bool,
    pub ignore_case: bool,
    pub drop_white_space: bool,
}

/// A pattern in the crates' dialect, to be compiled without flags.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translated {
    pub pattern: String,
    /// Only an engine that backtracks can search for it.
    pub has_back_references: bool,
    /// The pattern to use where a text ends with a line feed: in several lines `^` does not match
    /// behind that one, which only an engine that looks ahead can tell. `None` if there is no
    /// such `^`.
    pub at_last_line: Option<String>,
}

/// Escapes that stand for many ranges of characters (`\p{L}`, `\w`). More of them compile to more
/// than the largest pattern, and take long for it.
const MOST_CLASSES: usize = 500;

/// Groups within each other; more are refused by the engines, too.
const DEEPEST: usize = 200;

/// `None` for a pattern that XPath does not allow.
pub(super) fn translate(pattern: &str, flags: Flags) -> Option<Translated> {
    let mut translator = XPathTranslator::new(pattern, flags, "(?m:^)");
    translator.run()?;
    let mut translated = Translated {
        pattern: translator.out,
        has_back_references: translator.has_back_references,
        at_last_line: None,
    };
    if flags.multi_line && translator.has_caret {
        let mut again = XPathTranslator::new(pattern, flags, r"(?:\A|(?<=\n)(?!\z))");
        again.run()?;
        match translated.has_back_references {
            true => translated.pattern = again.out,
            false => translated.at_last_line = Some(again.out),
        }
    }
    Some(translated)
}

/// The pattern that matches a text itself, for the flag `q`.
pub(super) fn literal(text: &str, flags: Flags) -> Translated {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        class::push_char(&mut pattern, c, flags.ignore_case);
    }
    Translated { pattern, has_back_references: false, at_last_line: None }
}

/// A group that was opened: its number, if it is captured.
struct OpenGroup {
    number: Option<usize>,
}

struct XPathTranslator<'a> {
    rest: Rest<'a>,
    flags: Flags,
    /// `^` in several lines
    caret: &'static str,
    out: String,
    classes: usize,
    open: Vec<OpenGroup>,
    /// by number, from 1 on: whether the group was closed
    closed: Vec<bool>,
    has_back_references: bool,
    has_caret: bool,
}

impl<'a> XPathTranslator<'a> {
    fn new(pattern: &'a str, flags: Flags, caret: &'static str) -> Self {
        Self {
            rest: Rest { text: pattern, drop_white_space: flags.drop_white_space },
            flags,
            caret,
            out: String::with_capacity(pattern.len() + pattern.len() / 2),
            classes: 0,
            open: Vec::new(),
            closed: Vec::new(),
            has_back_references: false,
            has_caret: false,
        }
    }

    fn run(&mut self) -> Option<()> {
        while let Some(c) = self.rest.next() {
            match c {
                '|' => self.out.push('|'),
                '(' => self.open()?,
                ')' => {
                    let group = self.open.pop()?;
                    if let Some(number) = group.number {
                        self.closed[number - 1] = true;
                    }
                    self.out.push(')');
                    self.quantifier()?;
                }
                '?' | '*' | '+' | '{' | '}' | ']' => return None,
                _ => {
                    self.atom(c)?;
                    self.quantifier()?;
                }
            }
        }
        self.open.is_empty().then_some(())
    }

    fn open(&mut self) -> Option<()> {
        if self.open.len() >= DEEPEST {
            return None;
        }
        if self.rest.take('?') {
            if !self.rest.take(':') {
                return None;
            }
            self.open.push(OpenGroup { number: None });
            self.out.push_str("(?:");
        } else {
            self.closed.push(false);
            self.open.push(OpenGroup { number: Some(self.closed.len()) });
            self.out.push('(');
        }
        Some(())
    }

    fn atom(&mut self, c: char) -> Option<()> {
        match c {
            '^' if self.flags.multi_line => {
                self.has_caret = true;
                self.out.push_str(self.caret);
            }
            '^' => self.out.push_str(r"\A"),
            '$' if self.flags.multi_line => self.out.push_str("(?m:$)"),
            '$' => self.out.push_str(r"\z"),
            '.' if self.flags.dot_matches_all => self.out.push_str("(?s:.)"),
            '.' => self.out.push_str(r"[^\n\r]"),
            '[' => {
                let before = self.rest.text;
                let inside = class::bracketed(before, self.flags.ignore_case, &mut self.out);
                self.rest.text = inside.map_err(|ClassError| ()).ok()?;
                let inside = &before[..before.len() - self.rest.text.len()];
                self.count_classes(inside.matches('\\').count())?;
            }
            '\\' => self.escape()?,
            c => class::push_char(&mut self.out, c, self.flags.ignore_case),
        }
        Some(())
    }

    fn escape(&mut self) -> Option<()> {
        let c = self.rest.next()?;
        if c.is_ascii_digit() {
            return self.back_reference(c.to_digit(10)? as usize);
        }
        if let Some(c) = class::single_escape(c) {
            class::push_char(&mut self.out, c, self.flags.ignore_case);
            return Some(());
        }
        let escape = match c {
            'p' | 'P' => ClassEscape::category(self.braced()?.as_str(), c == 'P')?,
            c => ClassEscape::of_letter(c)?,
        };
        escape.push(&mut self.out);
        self.count_classes(1)
    }

    fn count_classes(&mut self, more: usize) -> Option<()> {
        self.classes += more;
        (self.classes <= MOST_CLASSES).then_some(())
    }

    /// Reads the braces that come next; returns their inside.
    fn braced(&mut self) -> Option<String> {
        if !self.rest.take('{') {
            return None;
        }
        let mut inside = String::new();
        loop {
            match self.rest.next()? {
                '}' => return Some(inside),
                c => inside.push(c),
            }
        }
    }

    /// Further digits belong to the number as long as there is such a group. One that matched
    /// nothing is the empty string.
    fn back_reference(&mut self, first: usize) -> Option<()> {
        let mut number = first;
        while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(10)) {
            let longer = number * 10 + digit as usize;
            if longer > self.closed.len() {
                break;
            }
            number = longer;
            self.rest.next();
        }
        if number == 0 || !*self.closed.get(number - 1)? {
            return None;
        }
        self.has_back_references = true;
        let reference =
            if self.flags.ignore_case { format!(r"(?i:\{number})") } else { format!(r"\{number}") };
        write!(self.out, "(?({number}){reference}|)").expect("writing to a string does not fail");
        Some(())
    }

    /// A quantifier behind an atom, if there is one: exactly one, greedy or reluctant.
    fn quantifier(&mut self) -> Option<()> {
        match self.rest.peek() {
            Some(c @ ('?' | '*' | '+')) => {
                self.rest.next();
                self.out.push(c);
            }
            Some('{') => {
                let inside = self.braced()?;
                let (least, most) = match inside.split_once(',') {
                    None => (inside.as_str(), Some(inside.as_str())),
                    Some((least, "")) => (least, None),
                    Some((least, most)) => (least, Some(most)),
                };
                let least = count(least)?;
                match most.map(count) {
                    None => write!(self.out, "{{{least},}}"),
                    Some(most) if most? >= least => write!(self.out, "{{{least},{}}}", most?),
                    Some(_) => return None,
                }
                .expect("writing to a string does not fail");
            }
            _ => return Some(()),
        }
        if self.rest.take('?') {
            self.out.push('?');
        }
        Some(())
    }
}

/// A number of repetitions; no engine takes more than 32 bits.
fn count(digits: &str) -> Option<u32> {
    digits.bytes().all(|c| c.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The part of the pattern that is still to be read, outside of classes.
struct Rest<'a> {
    text: &'a str,
    drop_white_space: bool,
}

impl Rest<'_> {
    fn peek(&mut self) -> Option<char> {
        if self.drop_white_space {
            self.text = self.text.trim_start_matches([' ', '\t', '\n', '\r']);
        }
        self.text.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.text = &self.text[c.len_utf8()..];
        Some(c)
    }

    fn take(&mut self, c: char) -> bool {
        self.peek() == Some(c) && self.next().is_some()
    }
}

#[cfg(test)]
mod tests;
