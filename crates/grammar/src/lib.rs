//! Grammars as data, and documents made from them: each repeatable part many times, each part
//! that can hold itself as deep.
//!
//! Lists of known hard cases miss the siblings of those cases. A grammar has all of them: a walk
//! over its rules finds every `X*` and every way from a rule back to itself, and writes the
//! smallest valid document around it with n copies or n levels. What reads such documents must
//! read them, or refuse them by a limit with a name.
//!
//! | module | what it does |
//! |---|---|
//! | `pattern` | texts with numbers to be put in |
//! | `rules` | the rules of a grammar |
//! | `derive` | the smallest text of each rule, and texts around a place in it |
//! | `text` | reads rules from a file |
//! | `ways` | which rule leads to which, and the shortest way |
//! | `sites` | the places that can be multiplied |
//! | `languages` | the grammars at hand |
//!
//! # The files
//!
//! A rule is `Name ::= parts`, continued on indented lines; `#` begins a comment in a line of its
//! own. Parts are names, texts in quotes, `( )`, `|`, `*`, `+` and `?`. Parts are written with
//! blanks between them; those of a rule with `~~=` without. In a text, `\i` is the number of the
//! copy or level, `\j` the number after it, `\n` a new line.

#![forbid(unsafe_code)]

mod derive;
mod languages;
mod pattern;
mod rules;
mod sites;
mod text;
mod ways;

pub use languages::{Language, languages};
pub use rules::Grammar;
pub use sites::{Site, SiteKind};
pub use text::GrammarError;
