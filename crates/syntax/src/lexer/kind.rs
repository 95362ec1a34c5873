//! Kinds of tokens.

use crate::named::named;

/// A part of a text: offsets of its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

/// A token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    pub span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    End,
    /// letters, digits and `_`: a keyword, if it is one
    Word,
    /// `?x` or `$x`
    Var,
    /// `<iri>`
    Iri,
    /// `prefix:local`, both of which may be empty
    Name,
    /// `_:label`
    Blank,
    /// `@tag`, `@tag--dir`
    Lang,
    /// a string in one or three quotes
    Str,
    Number(Number),
    Sign(Sign),
    Bad(Fault),
}

/// A number; its sign is a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Number {
    Integer,
    Decimal,
    Double,
}

named! {
    /// Why a token is none, and how that is told; of tokens and texts that are too long, the limit.
    pub(crate) enum Fault {
        Char "begins nothing in SPARQL",
        OpenString "this string has no end",
        LongToken "token_bytes",
        LongText "query_bytes",
        Encoding "from here on the text is not UTF-8",
        Read "the text could not be read on",
    }
}

named! {
    /// A sign. Longer ones stand before those they begin with.
    pub(crate) enum Sign {
        OpenTriple "<<(", CloseTriple ")>>", OpenReified "<<", CloseReified ">>",
        LessOrEqual "<=", GreaterOrEqual ">=", Less "<", Greater ">", NotEqual "!=", Not "!",
        OpenAnnotation "{|", CloseAnnotation "|}", OpenBrace "{", CloseBrace "}",
        OpenParen "(", CloseParen ")", OpenBracket "[", CloseBracket "]",
        Or "||", And "&&", Pipe "|", Equal "=", Datatype "^^", Caret "^",
        Dot ".", Semicolon ";", Comma ",", Star "*", Slash "/", Plus "+", Minus "-",
        Question "?", Tilde "~",
    }
}
