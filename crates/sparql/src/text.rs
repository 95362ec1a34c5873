//! From the characters of a query to its syntax tree.
//!
//! 1. [`shape`] takes the constants out of a text, so that texts of equal shape share a plan.
//! 2. [`syntax`] has spargebra parse it; [`parser_error`] puts its errors into words of the
//!    language.
//!    Relative IRIs that it would resolve wrongly are resolved before ([`base`]).
//! 3. [`star`] puts the variables of `SELECT *` into the order of the text.
//! 4. [`bind`] puts parameters in the place of variables.
//! 5. [`pieces`] cuts a long update into shorter ones while it is read.
//! 6. [`weight`] tells the memory of a text's trees, before there are any; [`described`] takes what
//!    DESCRIBE names out of a text, which the parser would nest.
//!
//! A constant of the tree is a term or stands for a parameter: [`parameter`].

mod base;
pub(crate) mod bind;
pub(crate) mod described;
pub(crate) mod iri;
pub(crate) mod keyword;
pub(crate) mod parameter;
mod parser_error;
pub(crate) mod pieces;
pub(crate) mod prefixes;
pub(crate) mod shape;
mod star;
pub(crate) mod syntax;
mod tokens;
mod unfinished;
pub(crate) mod weight;
