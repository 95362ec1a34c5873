//! Notices to the user: a fallback was taken, time stands still. The binary chooses their
//! destination.

use std::io::Write;

use parking_lot::RwLock;

type Hook = Box<dyn Fn(&str) + Send + Sync>;

static HOOK: RwLock<Option<Hook>> = RwLock::new(None);

/// Sends every later notice to `hook` (the default is standard error). The hook must not call
/// back into this crate.
pub fn set_notice(hook: impl Fn(&str) + Send + Sync + 'static) {
    *HOOK.write() = Some(Box::new(hook));
}

/// Says one line: what happened and what is done instead.
pub fn notice(line: &str) {
    match &*HOOK.read() {
        Some(hook) => hook(line),
        // Not eprintln!, which panics when the reader is gone.
        None => drop(writeln!(std::io::stderr(), "{line}")),
    }
}
