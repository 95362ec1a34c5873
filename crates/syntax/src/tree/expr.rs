//! Expressions.

use std::ops::RangeInclusive;

use super::pattern::GraphPattern;
use super::term::{Iri, Slot, Term};
use super::vars::Var;
use crate::named::named;

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
    /// An operator before its operand; `+1` and `-1` are constants.
    Unary(UnaryOperator, Box<Expr>),
    /// An operator between its operands; `a != b` is the negation of `a = b`.
    Binary(BinaryOperator, Box<[Expr; 2]>),
    /// `a IN (b, …)`; `NOT IN` is its negation.
    In(Box<Expr>, Vec<Expr>),
    /// `EXISTS { … }`; `NOT EXISTS` is its negation.
    Exists(Box<GraphPattern>),
    /// A function of the language. The argument of [`Function::Bound`] is a variable.
    Call(Function, Vec<Expr>),
    /// A function with an IRI for a name.
    Custom(Iri, Vec<Expr>),
}

named! {
    /// An operator before its operand.
    pub enum UnaryOperator {
        Not "!", Plus "+", Minus "-",
    }
}

named! {
    /// An operator between two operands.
    pub enum BinaryOperator {
        Equal "=", Less "<", LessOrEqual "<=", Greater ">", GreaterOrEqual ">=",
        Add "+", Subtract "-", Multiply "*", Divide "/",
    }
}

named! {
    /// A function with a keyword for a name.
    pub enum Function {
        Abs "ABS", Adjust "ADJUST", BNode "BNODE", Bound "BOUND", Ceil "CEIL", Coalesce "COALESCE", Concat "CONCAT",
        Contains "CONTAINS", Datatype "DATATYPE", Day "DAY", EncodeForUri "ENCODE_FOR_URI",
        Floor "FLOOR", HasLang "HASLANG", HasLangDir "HASLANGDIR", Hours "HOURS", If "IF", Iri "IRI",
        IsBlank "ISBLANK", IsIri "ISIRI", IsLiteral "ISLITERAL", IsNumeric "ISNUMERIC",
        IsTriple "ISTRIPLE", Lang "LANG", LangDir "LANGDIR", LangMatches "LANGMATCHES", LCase "LCASE",
        Md5 "MD5", Minutes "MINUTES", Month "MONTH", Now "NOW", Object "OBJECT",
        Predicate "PREDICATE", Rand "RAND", Regex "REGEX", Replace "REPLACE", Round "ROUND",
        SameTerm "SAMETERM", Seconds "SECONDS", Sha1 "SHA1", Sha256 "SHA256", Sha384 "SHA384",
        Sha512 "SHA512", Str "STR", StrAfter "STRAFTER", StrBefore "STRBEFORE", StrDt "STRDT",
        StrEnds "STRENDS", StrLang "STRLANG", StrLangDir "STRLANGDIR", StrLen "STRLEN",
        StrStarts "STRSTARTS", StrUuid "STRUUID", Subject "SUBJECT", SubStr "SUBSTR",
        Timezone "TIMEZONE", Triple "TRIPLE", Tz "TZ", UCase "UCASE", Uuid "UUID", Year "YEAR",
    }
}

named! {
    /// A function of a group.
    pub enum AggregateFunction {
        Count "COUNT", Sum "SUM", Min "MIN", Max "MAX", Avg "AVG", Sample "SAMPLE",
        GroupConcat "GROUP_CONCAT",
    }
}

impl Function {
    /// The function of a word, which may be another name of it.
    pub(crate) fn of(word: &str) -> Option<Self> {
        match word {
            _ if word.eq_ignore_ascii_case("URI") => Some(Self::Iri),
            _ if word.eq_ignore_ascii_case("ISURI") => Some(Self::IsIri),
            _ => Self::named(word),
        }
    }

    /// The numbers of arguments that it takes.
    #[must_use]
    pub fn arity(self) -> RangeInclusive<usize> {
        match self {
            Self::Now | Self::Rand | Self::StrUuid | Self::Uuid => 0..=0,
            Self::BNode => 0..=1,
            Self::Coalesce | Self::Concat => 0..=usize::MAX,
            Self::Contains | Self::LangMatches | Self::SameTerm | Self::StrDt | Self::StrLang => 2..=2,
            Self::Adjust | Self::StrAfter | Self::StrBefore | Self::StrEnds | Self::StrStarts => 2..=2,
            Self::Regex | Self::SubStr => 2..=3,
            Self::If | Self::StrLangDir | Self::Triple => 3..=3,
            Self::Replace => 3..=4,
            _ => 1..=1,
        }
    }
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
    /// The SEPARATOR of GROUP_CONCAT, if the text names one.
    pub separator: Option<Box<str>>,
}

impl Expr {
    /// `! self`
    pub(crate) fn negated(self) -> Self {
        Self::Unary(UnaryOperator::Not, Box::new(self))
    }

    /// `self && more`
    pub(crate) fn and(self, more: Self) -> Self {
        match self {
            Self::And(mut parts) => {
                parts.push(more);
                Self::And(parts)
            }
            first => Self::And(vec![first, more]),
        }
    }

    /// `self || more`
    pub(crate) fn or(self, more: Self) -> Self {
        match self {
            Self::Or(mut parts) => {
                parts.push(more);
                Self::Or(parts)
            }
            first => Self::Or(vec![first, more]),
        }
    }
}

impl From<Slot> for Expr {
    fn from(slot: Slot) -> Self {
        match slot {
            Slot::Var(var) => Self::Var(var),
            Slot::Term(term) => Self::Const(term),
            Slot::Param(number) => Self::Param(number),
            Slot::Triple(triple) => {
                let parts = [triple.subject, triple.predicate, triple.object];
                Self::Call(Function::Triple, parts.map(Self::from).into())
            }
        }
    }
}
