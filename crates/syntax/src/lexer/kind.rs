//! Kinds of tokens.

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

/// Why a token is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// begins nothing in the language
    Char,
    /// the string has no end, or not in its line
    OpenString,
    /// an escape of a string that is none
    Escape,
    LongToken,
    /// the bytes are no UTF-8
    Encoding,
    LongText,
    /// the stream failed
    Read,
}

macro_rules! signs {
    ($($variant:ident $text:literal,)+) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Sign {
            $($variant,)+
        }

        impl Sign {
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// Longer signs stand before those they begin with.
            pub const ALL: &'static [Sign] = &[$(Sign::$variant,)+];
        }
    };
}

signs! {
    OpenTriple "<<(",
    CloseTriple ")>>",
    OpenReified "<<",
    CloseReified ">>",
    LessOrEqual "<=",
    GreaterOrEqual ">=",
    Less "<",
    Greater ">",
    OpenAnnotation "{|",
    CloseAnnotation "|}",
    OpenBrace "{",
    CloseBrace "}",
    OpenParen "(",
    CloseParen ")",
    OpenBracket "[",
    CloseBracket "]",
    Or "||",
    And "&&",
    Pipe "|",
    NotEqual "!=",
    Not "!",
    Equal "=",
    Datatype "^^",
    Caret "^",
    Dot ".",
    Semicolon ";",
    Comma ",",
    Star "*",
    Slash "/",
    Plus "+",
    Minus "-",
    Question "?",
    Tilde "~",
}
