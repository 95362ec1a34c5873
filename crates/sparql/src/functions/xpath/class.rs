//! Classes of characters: brackets with subtraction, escapes, categories, blocks.
//!
//! ```text
//! [group]   group: ^? (char | char-char | escape)+ (-[group])?
//! ```
//!
//! A `-` is a character of its own only at the beginning or the end of a group.

use std::fmt::Write;
use std::sync::OnceLock;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use snowmelt_rdfxml::{NAME_MORE, NAME_START};

/// Brackets that XPath does not allow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClassError;

/// Subtractions within each other.
const DEEPEST: usize = 50;

/// White space, as `\s` has it.
const WHITE_SPACE: &str = r" \t\n\r";

/// All that `\w` leaves out: punctuation (also `_`), separators, others.
const NO_WORD: &str = r"\p{P}\p{Z}\p{C}";

/// The general categories of Unicode, surrogates apart: those are no characters.
const CATEGORIES: [&str; 36] = [
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Z", "Zs", "Zl", "Zp", "S", "Sm", "Sc", "Sk", "So", "C", "Cc", "Cf", "Co", "Cn",
];

/// Names of blocks that XML Schema 1.0 had, and today's.
const FORMER_BLOCKS: [(&str, &str); 3] = [
    ("Greek", "GreekandCoptic"),
    ("CombiningMarksforSymbols", "CombiningDiacriticalMarksforSymbols"),
    ("PrivateUse", "PrivateUseArea"),
];

/// A class that an escape names, as the inside of brackets.
pub(super) struct ClassEscape {
    inside: String,
    is_negated: bool,
}

impl ClassEscape {
    /// The class of `\s`, `\W` and so on.
    pub(super) fn of_letter(letter: char) -> Option<Self> {
        let inside = match letter.to_ascii_lowercase() {
            's' => WHITE_SPACE.to_owned(),
            'd' => r"\p{Nd}".to_owned(),
            'w' => NO_WORD.to_owned(),
            'i' => of_names(&[&NAME_START]),
            'c' => of_names(&[&NAME_START, &NAME_MORE]),
            _ => return None,
        };
        Some(Self { inside, is_negated: letter.is_ascii_uppercase() != (letter.eq_ignore_ascii_case(&'w')) })
    }

    /// The class of `\p{name}` or `\P{name}`.
    pub(super) fn category(name: &str, is_negated: bool) -> Option<Self> {
        let inside = match name.strip_prefix("Is") {
            Some(block) => {
                let (first, last) = block_named(block)?;
                format!(r"\x{{{first:X}}}-\x{{{last:X}}}")
            }
            None => format!(r"\p{{{}}}", CATEGORIES.iter().find(|c| **c == name)?),
        };
        Some(Self { inside, is_negated })
    }

    /// Adds it to a pattern, inside or outside of brackets.
    pub(super) fn push(&self, out: &mut String) {
        out.push_str(if self.is_negated { "[^" } else { "[" });
        out.push_str(&self.inside);
        out.push(']');
    }
}

/// Characters of names of XML, with the colon, as the inside of brackets.
fn of_names(tables: &[&[(char, char)]]) -> String {
    let range = |(first, last): &(char, char)| ClassUnicodeRange::new(*first, *last);
    let mut inside = String::from(":");
    push_ranges(&mut inside, &ClassUnicode::new(tables.iter().copied().flatten().map(range)));
    inside
}

/// The first and last code point of a block, by its name without spaces. Surrogates are left out.
fn block_named(name: &str) -> Option<(u32, u32)> {
    static BLOCKS: OnceLock<Vec<(String, u32, u32)>> = OnceLock::new();
    /// Blocks begin at its multiples.
    const STEP: u32 = 16;
    let blocks = BLOCKS.get_or_init(|| {
        let mut blocks = Vec::new();
        let mut at = 0;
        while at <= u32::from(char::MAX) {
            match char::from_u32(at).and_then(unicode_blocks::find_unicode_block) {
                Some(block) => {
                    blocks.push((block.name().replace(' ', ""), block.start(), block.end()));
                    at = block.end() + 1;
                }
                None => at += STEP,
            }
        }
        blocks
    });
    let name = FORMER_BLOCKS.iter().find(|(former, _)| *former == name).map_or(name, |(_, today)| today);
    blocks.iter().find(|(block, ..)| block == name).map(|(_, first, last)| (*first, *last))
}

/// The character that `\n`, `\-` and so on stand for.
pub(super) fn single_escape(c: char) -> Option<char> {
    Some(match c {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '\\' | '|' | '.' | '?' | '*' | '+' | '(' | ')' | '{' | '}' | '-' | '[' | ']' | '^' | '$' => c,
        _ => return None,
    })
}

/// Adds a character to a pattern, with its case variants if case is to be ignored.
pub(super) fn push_char(out: &mut String, c: char, ignore_case: bool) {
    if ignore_case {
        let variants = folded(ClassUnicode::new([ClassUnicodeRange::new(c, c)]));
        if variants.ranges() != [ClassUnicodeRange::new(c, c)] {
            out.push('[');
            push_ranges(out, &variants);
            out.push(']');
            return;
        }
    }
    push_plain(out, c);
}

fn push_plain(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() || !c.is_ascii() && !c.is_whitespace() && !c.is_control() {
        out.push(c);
    } else {
        write!(out, r"\x{{{:X}}}", u32::from(c)).expect("writing to a string does not fail");
    }
}

fn push_ranges(out: &mut String, class: &ClassUnicode) {
    for range in class.ranges() {
        push_plain(out, range.start());
        if range.end() > range.start() {
            out.push('-');
            push_plain(out, range.end());
        }
    }
}

fn folded(mut class: ClassUnicode) -> ClassUnicode {
    class.try_case_fold_simple().expect("the tables of case are compiled in");
    class
}

/// Translates brackets whose `[` was read, and adds them to a pattern.
///
/// Returns what follows the closing bracket.
pub(super) fn bracketed<'a>(
    text: &'a str,
    ignore_case: bool,
    out: &mut String,
) -> Result<&'a str, ClassError> {
    let mut rest = text;
    let mut depth = 0;
    loop {
        // `[a-[b-[c]]]` is `[[a]--[[b]--[c]]]`
        let mut group = String::new();
        let end;
        (end, rest) = one_group(rest, ignore_case, &mut group)?;
        match end {
            End::Closed => {
                out.push_str(&group);
                break;
            }
            End::Subtraction if depth < DEEPEST => {
                write!(out, "[{group}--").expect("writing to a string does not fail");
                depth += 1;
            }
            End::Subtraction => return Err(ClassError),
        }
    }
    for _ in 0..depth {
        rest = rest.strip_prefix(']').ok_or(ClassError)?;
        out.push(']');
    }
    Ok(rest)
}

/// The end of a group.
enum End {
    Closed,
    Subtraction,
}

/// A character of a group, or a class.
enum Member {
    Char(char),
    Class(ClassEscape),
}

/// Reads a group up to its `]` or `-[`, and adds brackets of it.
fn one_group<'a>(text: &'a str, ignore_case: bool, out: &mut String) -> Result<(End, &'a str), ClassError> {
    let (is_negated, mut rest) = match text.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut chars = Vec::new();
    let mut classes = Vec::new();
    let end = loop {
        let is_empty = chars.is_empty() && classes.is_empty();
        if let Some(after) = rest.strip_prefix(']')
            && !is_empty
        {
            rest = after;
            break End::Closed;
        }
        if let Some(after) = rest.strip_prefix("-[")
            && !is_empty
        {
            rest = after;
            break End::Subtraction;
        }
        if let Some(after) = rest.strip_prefix('-') {
            // only at the beginning and at the end
            if !is_empty && !after.starts_with(']') && !after.starts_with("-[") {
                return Err(ClassError);
            }
            chars.push(ClassUnicodeRange::new('-', '-'));
            rest = after;
            continue;
        }
        let member;
        (member, rest) = one_member(rest)?;
        match member {
            Member::Class(class) => classes.push(class),
            Member::Char(first) => {
                let last;
                (last, rest) = range_end(rest, first)?;
                chars.push(ClassUnicodeRange::new(first, last));
            }
        }
    };
    let chars = ClassUnicode::new(chars);
    let chars = if ignore_case { folded(chars) } else { chars };
    out.push_str(if is_negated { "[^" } else { "[" });
    push_ranges(out, &chars);
    classes.iter().for_each(|class| class.push(out));
    out.push(']');
    Ok((end, rest))
}

/// The last character of a range whose first was read: the same one where no range follows.
fn range_end(rest: &str, first: char) -> Result<(char, &str), ClassError> {
    let Some(after) = rest.strip_prefix('-') else { return Ok((first, rest)) };
    if after.starts_with([']', '[']) || after.starts_with("-[") {
        return Ok((first, rest));
    }
    match one_member(after)? {
        (Member::Char(last), after) if first <= last => Ok((last, after)),
        _ => Err(ClassError),
    }
}

fn one_member(rest: &str) -> Result<(Member, &str), ClassError> {
    let mut chars = rest.chars();
    let c = chars.next().ok_or(ClassError)?;
    match c {
        '[' | ']' => return Err(ClassError),
        '\\' => {}
        c => return Ok((Member::Char(c), chars.as_str())),
    }
    let c = chars.next().ok_or(ClassError)?;
    if let Some(c) = single_escape(c) {
        return Ok((Member::Char(c), chars.as_str()));
    }
    if !matches!(c, 'p' | 'P') {
        return Ok((Member::Class(ClassEscape::of_letter(c).ok_or(ClassError)?), chars.as_str()));
    }
    let inside = chars.as_str().strip_prefix('{').ok_or(ClassError)?;
    let (name, rest) = inside.split_once('}').ok_or(ClassError)?;
    Ok((Member::Class(ClassEscape::category(name, c == 'P').ok_or(ClassError)?), rest))
}
