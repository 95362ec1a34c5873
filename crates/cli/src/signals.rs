//! Ctrl-C and SIGTERM set a flag that long work looks at; a second one ends the process at once.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use signal_hook::consts::{SIGINT, SIGTERM};

/// The flag, registered once per process.
pub fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    static FLAG: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut slot = FLAG.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
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
