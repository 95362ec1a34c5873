//! Hash functions: lower-case hexadecimal digits of the UTF-8 bytes of a string without language.

use std::borrow::Cow;
use std::fmt::Write;

use sha1::Digest;

use super::Func;
use super::string::plain;
use crate::value::Value;

pub(super) fn digest(func: Func, v: &Value<'_>) -> Option<Value<'static>> {
    let text = plain(v)?;
    Some(Value::String(Cow::Owned(match func {
        Func::Md5 => hex::<md5::Md5>(text),
        Func::Sha1 => hex::<sha1::Sha1>(text),
        Func::Sha256 => hex::<sha2::Sha256>(text),
        Func::Sha384 => hex::<sha2::Sha384>(text),
        _ => hex::<sha2::Sha512>(text),
    })))
}

fn hex<D: Digest>(text: &str) -> String {
    let digest = D::digest(text.as_bytes());
    let mut out = String::with_capacity(digest.len() * 2);
    for byte in digest.iter() {
        write!(out, "{byte:02x}").expect("writing to a string does not fail");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_abc_are_the_published_ones() {
        let of = |func| digest(func, &Value::String("abc".into())).unwrap().text().into_owned();
        assert_eq!(of(Func::Md5), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(of(Func::Sha1), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(of(Func::Sha256), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(of(Func::Sha384).starts_with("cb00753f45a35e8b") && of(Func::Sha384).len() == 96);
        assert!(of(Func::Sha512).starts_with("ddaf35a193617aba") && of(Func::Sha512).len() == 128);
    }
}
