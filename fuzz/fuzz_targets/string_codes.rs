//! Codes of strings.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snowmelt_store::fuzz::string_codes(data));
