//! Any bytes as a query, an update and a stream.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snowmelt_syntax::fuzz::texts(data));
