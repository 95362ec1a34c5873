//! The output buffer and what is formatted into it, and the bytes between one value and the next.
//!
//! A line is put together from constants that already hold all punctuation: subject, `
//! <predicate> "`, value, `" .`. So a triple costs a few short copies and no allocation.

use crate::calendar::day_text;
use crate::words::WordStream;

pub(super) const END: &str = " .\n";
pub(super) const END_PLAIN: &str = "\" .\n";
pub(super) const END_STRING: &str = concat!("\"^^<", xsd!("string"), "> .\n");
pub(super) const END_INTEGER: &str = concat!("\"^^<", xsd!("integer"), "> .\n");
pub(super) const END_DATE: &str = concat!("\"^^<", xsd!("date"), "> .\n");
pub(super) const END_DATE_TIME: &str = concat!("T00:00:00\"^^<", xsd!("dateTime"), "> .\n");
pub(super) const END_DOLLARS: &str = concat!("\"^^<", bsbm!("USD"), "> .\n");

pub(super) const COUNTRY: &str =
    concat!(" <", bsbm!("country"), "> <http://downlode.org/rdf/iso-3166/countries#");
pub(super) const END_IRI: &str = "> .\n";

/// Bytes of N-Triples.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub bytes: Vec<u8>,
}

impl Text {
    #[inline]
    pub fn put(&mut self, text: &str) -> &mut Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    #[inline]
    pub fn number(&mut self, mut number: u32) -> &mut Self {
        let mut digits = [0; 10];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.bytes.extend_from_slice(&digits[at..]);
        self
    }

    #[inline]
    pub fn words(&mut self, words: &mut WordStream, count: u32) -> &mut Self {
        words.append(count, &mut self.bytes);
        self
    }

    #[inline]
    pub fn day(&mut self, ms: i64) -> &mut Self {
        self.bytes.extend_from_slice(day_text(ms));
        self
    }

    /// `<instances/` kind, number `>`.
    #[inline]
    pub fn instance(&mut self, kind: &str, number: u32) -> &mut Self {
        self.put(concat!("<", inst!(""))).put(kind).number(number).put(">")
    }

    /// `<instances/` owner's kind, number `/` kind, number.
    #[inline]
    fn open_owned(&mut self, owner_kind: &str, owner: u32, kind: &str, number: u32) -> &mut Self {
        self.put(concat!("<", inst!("dataFrom")))
            .put(owner_kind)
            .number(owner)
            .put("/")
            .put(kind)
            .number(number)
    }

    /// An entity in the space of names of its owner.
    #[inline]
    pub fn owned(&mut self, owner_kind: &str, owner: u32, kind: &str, number: u32) -> &mut Self {
        self.open_owned(owner_kind, owner, kind, number).put(">")
    }

    /// The web page of an offer: its IRI and a slash.
    #[inline]
    pub fn offer_page(&mut self, vendor: u32, offer: u32) -> &mut Self {
        self.open_owned("Vendor", vendor, "Offer", offer).put("/>")
    }

    /// Two decimals, rounded half up from the shortest decimal that names the double.
    #[inline]
    pub fn price(&mut self, price: f64) -> &mut Self {
        let cents = price * 100.0;
        let down = cents.floor();
        let rest = cents - down;
        let up = if (rest - 0.5).abs() > 1e-6 { rest > 0.5 } else { half_up(price) };
        let cents = down as u32 + u32::from(up);
        self.number(cents / 100);
        let [tens, ones] = [cents / 10 % 10, cents % 10].map(|digit| b'0' + digit as u8);
        self.bytes.extend_from_slice(&[b'.', tens, ones]);
        self
    }
}

/// Whether the third decimal of the shortest decimal is 5 or more: for the rare values near a half.
#[cold]
fn half_up(price: f64) -> bool {
    let text = format!("{price}");
    let decimals = text.split_once('.').map_or("", |(_, decimals)| decimals);
    // 12.3449999 has the digit 4 and 12.345 the digit 5; both sides of the half are told apart
    // by it.
    decimals.as_bytes().get(2).is_some_and(|&digit| digit >= b'5')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(put: impl Fn(&mut Text) -> &mut Text) -> String {
        let mut text = Text::default();
        put(&mut text);
        String::from_utf8(text.bytes).unwrap()
    }

    #[test]
    fn prices_round_half_up_on_the_shortest_decimal() {
        for (price, expected) in [
            (7683.529, "7683.53"),
            (5.0, "5.00"),
            (5.004999999, "5.00"),
            (1.005, "1.01"), // the double lies below the half, its shortest decimal on it
            (8.345, "8.35"),
            (8.3449999999, "8.34"),
            (9999.999, "10000.00"),
            (99.095, "99.10"),
            (0.07, "0.07"),
        ] {
            assert_eq!(text(|text| text.price(price)), expected, "{price}");
        }
    }

    #[test]
    fn numbers() {
        for number in [0, 7, 10, 99, 4_294_967_295] {
            assert_eq!(text(|text| text.number(number)), number.to_string());
        }
    }
}
