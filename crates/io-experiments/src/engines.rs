//! The names of all engines: those of `snowmelt-io`, and the one of this crate.

use snowmelt_io::IoEngine;

use crate::posix_aio::PosixAio;

/// POSIX asynchronous I/O: lists of control blocks (lio_listio), carried out by the C library's
/// threads.
pub const POSIX_AIO: IoEngine = IoEngine::Other(&PosixAio);

/// All engines.
pub const ENGINES: [IoEngine; 4] = [IoEngine::Uring, IoEngine::Threads, POSIX_AIO, IoEngine::Inline];

/// The engine of this name.
pub fn engine_named(name: &str) -> Option<IoEngine> {
    ENGINES.into_iter().find(|engine| engine.as_str() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_is_found_by_its_name() {
        let names = ENGINES.map(IoEngine::as_str);
        assert_eq!(names, ["uring", "threads", "posix-aio", "inline"]);
        assert_eq!(names.map(engine_named), ENGINES.map(Some));
        assert_eq!(engine_named("libaio"), None);
        assert!("posix-aio".parse::<IoEngine>().is_err(), "the database has it not");
    }
}
