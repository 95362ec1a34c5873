//! Documents on their way into a load.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snowmelt_graph::fuzz::turtle(data));
