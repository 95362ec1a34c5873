//! Terms as results in every format.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snowmelt_sparql::fuzz::results(data));
