//! Expressions.

use super::pattern::GraphPattern;
use super::term::{Iri, Term};
use super::vars::Var;

/// An expression. A triple term of an expression is a call of [`Function::Triple`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Expr {
    /// The value of a variable.
    Var(Var),
    /// An IRI or a literal.
    Const(Term),
    /// The constant with this number in the query's [`Shape`](crate::Shape).
    Param(u32),
    /// `a || b || …`, two at least.
    Or(Vec<Expr>),
    /// `a && b && …`, two at least.
    And(Vec<Expr>),
    /// `a = b`; `a != b` is a [`Expr::Not`] of it.
    Equal(Box<[Expr; 2]>),
    /// `sameTerm(a, b)`
    SameTerm(Box<[Expr; 2]>),
    /// `a > b`
    Greater(Box<[Expr; 2]>),
    /// `a >= b`
    GreaterOrEqual(Box<[Expr; 2]>),
    /// `a < b`
    Less(Box<[Expr; 2]>),
    /// `a <= b`
    LessOrEqual(Box<[Expr; 2]>),
    /// `a IN (b, …)`; `NOT IN` is a [`Expr::Not`] of it.
    In(Box<Expr>, Vec<Expr>),
    /// `a + b`
    Add(Box<[Expr; 2]>),
    /// `a - b`
    Subtract(Box<[Expr; 2]>),
    /// `a * b`
    Multiply(Box<[Expr; 2]>),
    /// `a / b`
    Divide(Box<[Expr; 2]>),
    /// `+ a`; `+1` is a constant.
    UnaryPlus(Box<Expr>),
    /// `- a`; `-1` is a constant.
    UnaryMinus(Box<Expr>),
    /// `! a`
    Not(Box<Expr>),
    /// `EXISTS { … }`; `NOT EXISTS` is a [`Expr::Not`] of it.
    Exists(Box<GraphPattern>),
    /// `BOUND(?a)`
    Bound(Var),
    /// `IF(a, b, c)`
    If(Box<[Expr; 3]>),
    /// `COALESCE(a, …)`
    Coalesce(Vec<Expr>),
    /// Any other function.
    Call(Function, Vec<Expr>),
}

macro_rules! functions {
    ($($variant:ident $name:literal $least:literal $most:literal,)+) => {
        /// A function by its name in the language.
        #[derive(Clone, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs, reason = "each has the name of its function")]
        pub enum Function {
            $($variant,)+
            /// A function with an IRI for a name.
            Custom(Iri),
        }

        impl Function {
            /// The name in upper case, or the IRI.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)+
                    Self::Custom(iri) => iri,
                }
            }

            /// Whether a word begins a call, in letters of either case.
            pub(crate) fn is_keyword(word: &str) -> bool {
                const OTHERS: [&str; 15] = [
                    "AVG", "BOUND", "COALESCE", "COUNT", "EXISTS", "GROUP_CONCAT", "IF", "ISURI", "MAX", "MIN",
                    "NOT", "SAMETERM", "SAMPLE", "SUM", "URI",
                ];
                let upper = word.to_ascii_uppercase();
                OTHERS.contains(&upper.as_str())
                    || Self::ALL.binary_search_by_key(&upper.as_str(), |function| function.0).is_ok()
            }

            /// Names in upper case with the least and the most numbers of arguments.
            pub(crate) const ALL: &'static [(&'static str, Function, usize, usize)] =
                &[$(($name, Function::$variant, $least, $most),)+];
        }
    };
}

// In the order of their names, which are searched by halves.
functions! {
    Abs "ABS" 1 1,
    BNode "BNODE" 0 1,
    Ceil "CEIL" 1 1,
    Concat "CONCAT" 0 0xFFFF_FFFF,
    Contains "CONTAINS" 2 2,
    Datatype "DATATYPE" 1 1,
    Day "DAY" 1 1,
    EncodeForUri "ENCODE_FOR_URI" 1 1,
    Floor "FLOOR" 1 1,
    HasLang "HASLANG" 1 1,
    HasLangDir "HASLANGDIR" 1 1,
    Hours "HOURS" 1 1,
    Iri "IRI" 1 1,
    IsBlank "ISBLANK" 1 1,
    IsIri "ISIRI" 1 1,
    IsLiteral "ISLITERAL" 1 1,
    IsNumeric "ISNUMERIC" 1 1,
    IsTriple "ISTRIPLE" 1 1,
    Lang "LANG" 1 1,
    LangDir "LANGDIR" 1 1,
    LangMatches "LANGMATCHES" 2 2,
    LCase "LCASE" 1 1,
    Md5 "MD5" 1 1,
    Minutes "MINUTES" 1 1,
    Month "MONTH" 1 1,
    Now "NOW" 0 0,
    Object "OBJECT" 1 1,
    Predicate "PREDICATE" 1 1,
    Rand "RAND" 0 0,
    Regex "REGEX" 2 3,
    Replace "REPLACE" 3 4,
    Round "ROUND" 1 1,
    Seconds "SECONDS" 1 1,
    Sha1 "SHA1" 1 1,
    Sha256 "SHA256" 1 1,
    Sha384 "SHA384" 1 1,
    Sha512 "SHA512" 1 1,
    Str "STR" 1 1,
    StrAfter "STRAFTER" 2 2,
    StrBefore "STRBEFORE" 2 2,
    StrDt "STRDT" 2 2,
    StrEnds "STRENDS" 2 2,
    StrLang "STRLANG" 2 2,
    StrLangDir "STRLANGDIR" 3 3,
    StrLen "STRLEN" 1 1,
    StrStarts "STRSTARTS" 2 2,
    StrUuid "STRUUID" 0 0,
    Subject "SUBJECT" 1 1,
    SubStr "SUBSTR" 2 3,
    Timezone "TIMEZONE" 1 1,
    Triple "TRIPLE" 3 3,
    Tz "TZ" 1 1,
    UCase "UCASE" 1 1,
    Uuid "UUID" 0 0,
    Year "YEAR" 1 1,
}

/// An aggregate of a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Aggregate {
    /// The function.
    pub function: AggregateFunction,
    /// `DISTINCT`
    pub is_distinct: bool,
    /// The argument; `None` is the `*` of COUNT.
    pub argument: Option<Expr>,
}

/// Functions of aggregates.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "each has the name of its function")]
pub enum AggregateFunction {
    Count,
    Sum,
    Min,
    Max,
    Avg,
    Sample,
    /// With its separator, if the text names one.
    GroupConcat(Option<Box<str>>),
}
