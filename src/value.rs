//! Rust values as terms, and terms as Rust values.

use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, Literal, NamedNode, Term};
use snowmelt_graph::Term as StoredTerm;

/// Values of parameters: see [`Prepared::bind`](crate::Prepared::bind).
///
/// Strings are plain literals; an IRI is a [`NamedNode`].
///
/// ```
/// # let db = snowmelt::Database::in_memory()?;
/// # db.update("INSERT DATA { <urn:ann> <urn:name> 'Ann' }")?;
/// let mut found = db.prepare("SELECT ?s { ?s <urn:name> ?name }").bind("name", "Ann").query()?;
/// assert!(found.next().is_some());
/// # Ok::<(), snowmelt::Error>(())
/// ```
pub trait IntoTerm {
    /// The term.
    fn into_term(self) -> Term;
}

macro_rules! terms {
    ($($type:ty),*) => {
        $(impl IntoTerm for $type {
            fn into_term(self) -> Term {
                Term::from(self)
            }
        })*
    };
}

macro_rules! literals {
    ($($type:ty),*) => {
        $(impl IntoTerm for $type {
            fn into_term(self) -> Term {
                Literal::from(self).into()
            }
        })*
    };
}

terms!(Term, NamedNode, Literal, BlankNode);
literals!(&str, String, bool, i32, i64, u32, u64, f32, f64);

/// Types that a value of an answer can be read as: see [`Row::get`](crate::Row::get).
///
/// ```
/// use snowmelt::{FromTerm, Literal};
/// assert_eq!(i64::from_term(Some(&Literal::from(7).into())), Ok(7));
/// assert_eq!(Option::<String>::from_term(None), Ok(None));
/// assert!(bool::from_term(None).is_err());
/// ```
pub trait FromTerm: Sized {
    /// The value; `None` stands for an unbound variable.
    ///
    /// # Errors
    /// Why the term is no such value, as a phrase.
    fn from_term(term: Option<&Term>) -> Result<Self, String>;
}

impl<T: FromTerm> FromTerm for Option<T> {
    fn from_term(term: Option<&Term>) -> Result<Self, String> {
        term.map(|_| T::from_term(term)).transpose()
    }
}

fn bound(term: Option<&Term>) -> Result<&Term, String> {
    term.ok_or_else(|| "it is unbound in this row; read it as an Option".to_owned())
}

impl FromTerm for Term {
    fn from_term(term: Option<&Term>) -> Result<Self, String> {
        bound(term).cloned()
    }
}

macro_rules! variant {
    ($type:ident, $variant:ident, $name:literal) => {
        impl FromTerm for $type {
            fn from_term(term: Option<&Term>) -> Result<Self, String> {
                match bound(term)? {
                    Term::$variant(value) => Ok(value.clone()),
                    other => Err(format!("{other} is not {}", $name)),
                }
            }
        }
    };
}

variant!(NamedNode, NamedNode, "an IRI");
variant!(BlankNode, BlankNode, "a blank node");
variant!(Literal, Literal, "a literal");

/// The text of a literal, an IRI, or the label of a blank node.
impl FromTerm for String {
    fn from_term(term: Option<&Term>) -> Result<Self, String> {
        Ok(match bound(term)? {
            Term::NamedNode(iri) => iri.as_str().to_owned(),
            Term::BlankNode(node) => node.as_str().to_owned(),
            Term::Literal(literal) => literal.value().to_owned(),
            triple @ Term::Triple(_) => triple.to_string(),
        })
    }
}

impl FromTerm for bool {
    fn from_term(term: Option<&Term>) -> Result<Self, String> {
        let term = bound(term)?;
        match term {
            Term::Literal(literal) if literal.datatype() == xsd::BOOLEAN => match literal.value() {
                "true" | "1" => Ok(true),
                "false" | "0" => Ok(false),
                _ => Err(format!("{term} is not a boolean")),
            },
            _ => Err(format!("{term} is not a boolean")),
        }
    }
}

macro_rules! numbers {
    ($($type:ty: $name:literal),*) => {
        $(impl FromTerm for $type {
            fn from_term(term: Option<&Term>) -> Result<Self, String> {
                let term = bound(term)?;
                let text = match term {
                    Term::Literal(literal) if is_number(literal) => literal.value(),
                    _ => "",
                };
                text.parse().map_err(|_| format!("{term} is not {}", $name))
            }
        })*
    };
}

numbers!(
    i32: "an integer of 32 bits", i64: "an integer of 64 bits", u32: "an unsigned integer of 32 bits",
    u64: "an unsigned integer of 64 bits", f64: "a number"
);

/// Whether a literal has one of the numeric datatypes (SPARQL 1.1, 17.1).
fn is_number(literal: &Literal) -> bool {
    const NUMBERS: [oxrdf::NamedNodeRef<'_>; 16] = [
        xsd::INTEGER,
        xsd::DECIMAL,
        xsd::DOUBLE,
        xsd::FLOAT,
        xsd::LONG,
        xsd::INT,
        xsd::SHORT,
        xsd::BYTE,
        xsd::UNSIGNED_LONG,
        xsd::UNSIGNED_INT,
        xsd::UNSIGNED_SHORT,
        xsd::UNSIGNED_BYTE,
        xsd::NON_NEGATIVE_INTEGER,
        xsd::NON_POSITIVE_INTEGER,
        xsd::POSITIVE_INTEGER,
        xsd::NEGATIVE_INTEGER,
    ];
    NUMBERS.contains(&literal.datatype())
}

/// A term of the engine as one of the interface.
pub(crate) fn to_oxrdf(term: StoredTerm) -> Term {
    match term {
        StoredTerm::Iri(iri) => NamedNode::new_unchecked(iri).into(),
        StoredTerm::Blank(label) => BlankNode::new_unchecked(label).into(),
        StoredTerm::Literal { lexical, lang: Some(lang), direction: Some(direction), .. } => {
            Literal::new_directional_language_tagged_literal_unchecked(lexical, lang, direction).into()
        }
        StoredTerm::Literal { lexical, lang: Some(lang), .. } => {
            Literal::new_language_tagged_literal_unchecked(lexical, lang).into()
        }
        StoredTerm::Literal { lexical, datatype, .. } => {
            Literal::new_typed_literal(lexical, NamedNode::new_unchecked(datatype)).into()
        }
        StoredTerm::Triple(triple) => Term::Triple(triple),
    }
}

/// The other way round.
pub(crate) fn of_oxrdf(term: Term) -> StoredTerm {
    snowmelt_graph::TermRef::from(term.as_ref()).to_owned()
}
