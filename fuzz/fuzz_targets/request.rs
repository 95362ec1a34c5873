//! Heads and bodies of HTTP requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snowmelt_server::fuzz::request(data));
