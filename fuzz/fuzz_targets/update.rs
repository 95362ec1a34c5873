//! Text to changes.
#![no_main]

use snowmelt_sparql::fuzz;

thread_local! {
    static ENGINE: snowmelt_sparql::QueryEngine = fuzz::engine(&tempfile::tempdir().expect("a directory").keep());
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| ENGINE.with(|engine| fuzz::update(engine, data)));
