//! Records of the journal and the changes in them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snowmelt_store::fuzz::journal(data));
