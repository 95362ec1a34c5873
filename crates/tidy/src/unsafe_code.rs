//! Unsafe code outside of the places that may have it.
//!
//! The workspace's lints deny it; a file that allows it has to be below one of [`PLACES`].

/// Paths that may have unsafe code begin with one of these.
const PLACES: [&str; 8] = [
    // buffers of their own, given to a device without a store
    "benches/randread.rs",
    "benches/virtual_rate.rs",
    "crates/io/",
    // the control blocks of POSIX AIO
    "crates/io-experiments/src/posix_aio.rs",
    "crates/store/src/pool",
    // frames of the pool, on their way from and to devices
    "crates/store/src/read/core.rs",
    "crates/store/src/read/fetch.rs",
    "crates/store/src/read/visible/tests.rs",
];

/// True for code that allows unsafe code where it may not be.
pub fn is_elsewhere(path: &str, code: &str) -> bool {
    let allows = ["allow(unsafe_code", "expect(unsafe_code"].iter().any(|text| code.contains(text));
    allows && !PLACES.iter().any(|place| path.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_allowed_in_its_places() {
        let code = "#![allow(unsafe_code)]";
        assert!(is_elsewhere("crates/io-experiments/src/order.rs", code));
        assert!(is_elsewhere("crates/store/src/tree.rs", "#[expect(unsafe_code)] fn f() {}"));
        assert!(!is_elsewhere("crates/io-experiments/src/posix_aio.rs", code));
        assert!(!is_elsewhere("crates/store/src/pool/word.rs", code));
        assert!(!is_elsewhere("crates/store/src/tree.rs", "#![forbid(unsafe_code)]"));
    }
}
