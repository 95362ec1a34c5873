//! Ids that say what they are, and literals that become such ids.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snowmelt_graph::fuzz::term_ids(data));
