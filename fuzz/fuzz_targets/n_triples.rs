//! Text on its way into a load.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snowmelt_graph::fuzz::n_triples(data));
