//! Exact numbers of any size: the values of xsd:integer and xsd:decimal.
//!
//! An [`Integer`] is the library's (128 bits of it take no allocation); a [`Decimal`] is an
//! integer of units and a number of places behind the point. Nothing is rounded but a quotient
//! that does not end, and a fraction beyond `MOST_PLACES`.
//!
//! The size is bounded, so that no operation on two numbers takes more than some milliseconds
//! and no text of a few bytes becomes a number that fills the memory: whole parts have at most
//! `MOST_BITS` bits. `None` from an operation is an overflow, which is SPARQL's error.

mod decimal;
mod integer;
mod real;

pub use decimal::{Decimal, Ties};
pub use integer::{Integer, bytes_of};

pub(super) use integer::{digits_fit, parse_integer, within_bounds};
pub(super) use real::{
    decimal_of_double, double_of_decimal, double_of_integer, float_of_decimal, float_of_integer,
    integer_of_double,
};
