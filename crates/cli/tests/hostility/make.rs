//! Pieces the requests are made of.

use crate::case::{Attack, Case, Right, Scale};

/// `open` n times, the middle, and `close` as often.
pub fn nested(n: usize, open: &str, middle: &str, close: &str) -> String {
    [&open.repeat(n), middle, &close.repeat(n)].concat()
}

/// n parts with something between them.
pub fn joined(n: usize, between: &str, part: impl Fn(usize) -> String) -> String {
    let mut all = String::new();
    for i in 0..n {
        if i > 0 {
            all.push_str(between);
        }
        all.push_str(&part(i));
    }
    all
}

/// The value in the only row.
pub fn value(text: &'static str) -> Right {
    Right::Value(Box::new(move |_| text.into()))
}

pub fn query(
    name: &'static str,
    text: impl Fn(&Scale) -> String + Send + Sync + 'static,
    right: Right,
) -> Case {
    Case::new(name, Attack::Query(Box::new(text)), right)
}

/// An update that succeeds if it is not refused.
pub fn update(name: &'static str, text: impl Fn(&Scale) -> String + Send + Sync + 'static) -> Case {
    Case::new(name, Attack::Update(Box::new(text)), Right::Status(&[200]))
}
