//! Super-block and meta run.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snowmelt_store::fuzz::meta(data));
