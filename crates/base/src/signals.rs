//! Signals that ask the process to end: as a flag that long work looks at, or one by one.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::SIGXFSZ;
pub use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The flag that Ctrl-C and SIGTERM set. A second one ends the process at once, with status 130.
/// Registered once per process; every call answers the same flag.
///
/// # Errors
/// The signals cannot be handled.
pub fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    static FLAG: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut slot = FLAG.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(flag) = slot.as_ref() {
        return Ok(Arc::clone(flag));
    }
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the shutdown looks at the flag that an earlier signal has set.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    *slot = Some(Arc::clone(&flag));
    Ok(flag)
}

/// Makes a write beyond the largest size of a file (`ulimit -f`) fail, as one on a full disk does.
/// Unless it is asked for, such a write ends the process (SIGXFSZ). Programs that this process
/// starts keep the default.
///
/// # Errors
/// The signal cannot be handled.
pub fn fail_beyond_file_size() -> io::Result<()> {
    // Set and never looked at: it is enough that the signal has a handler.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// Starts a thread that calls `heard` with each of `signals` that arrives.
///
/// # Errors
/// The signals cannot be handled, or there can be no thread.
pub fn hear(signals: &[i32], mut heard: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    let mut coming = signal_hook::iterator::Signals::new(signals)?;
    let wait = move || coming.forever().for_each(&mut heard);
    std::thread::Builder::new().name("signals".into()).spawn(wait).map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn signals_are_heard_and_the_flag_is_one() {
        let (tell, told) = mpsc::channel();
        hear(&[SIGHUP], move |signal| tell.send(signal).expect("the test waits")).unwrap();
        signal_hook::low_level::raise(SIGHUP).unwrap();
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(SIGHUP));
        assert!(Arc::ptr_eq(&stop_flag().unwrap(), &stop_flag().unwrap()));
    }
}
