//! Pages of all trees.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| snowmelt_store::fuzz::tree_page(data));
