//! The bytes of a connection, however they are cut.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snowmelt_server::fuzz::framing(data));
