//! Notices to the user: a fallback was taken, time stands still. The binary chooses their
//! destination.

use parking_lot::RwLock;
use snowmelt_base::tell;

type Hook = Box<dyn Fn(&str) + Send + Sync>;

static HOOK: RwLock<Option<Hook>> = RwLock::new(None);

/// Sends every later notice to `hook` (the default is standard error). The hook must not call
/// back into this crate.
pub fn set_notice(hook: impl Fn(&str) + Send + Sync + 'static) {
    *HOOK.write() = Some(Box::new(hook));
}

/// Sends one line: what happened, and what is done instead.
pub fn notice(line: &str) {
    match &*HOOK.read() {
        Some(hook) => hook(line),
        None => tell!("{line}"),
    }
}
