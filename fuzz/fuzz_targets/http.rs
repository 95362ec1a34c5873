//! Bytes to a whole server.
#![no_main]

use snowmelt_server::fuzz;

thread_local! {
    static SERVER: std::net::SocketAddr = fuzz::server(&tempfile::tempdir().expect("a directory").keep());
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| SERVER.with(|address| fuzz::http(*address, data)));
