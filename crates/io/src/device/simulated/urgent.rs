//! Threads that stand for a device: woken to the microsecond, and before all ordinary threads.

/// Has the kernel wake this thread to the microsecond rather than with the usual 50 µs of
/// slack.
#[allow(unsafe_code)]
pub(crate) fn precise_wake_ups() {
    // SAFETY: sets one number of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
}

/// Puts the calling thread, and those it starts from now on, before all ordinary ones
/// (SCHED_RR); false where that is refused. For threads that stand for a device: the programs
/// on a busy machine must not make it slow.
#[allow(unsafe_code)]
pub fn run_urgently() -> bool {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: sets the scheduling class of the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const priority) == 0 }
}
