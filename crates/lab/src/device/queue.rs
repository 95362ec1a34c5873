//! The kernel's queue in front of an emulated device: its kind of device and its depth are set.
//!
//! A loop device hands on up to 128 requests at once, whatever is behind it. A scheduler has a
//! choice only when more requests wait than that. So the depth is lowered to that of the
//! device: `nr_requests`, written while there is no scheduler, is the number of tags of the
//! device itself, and stays when a scheduler is chosen afterwards.

use std::path::{Path, PathBuf};

use super::spec::{LOOP_DEPTH, Spec};
use crate::LabError;
use crate::undo::{Step, Undo, set_queue_depth};

/// `/sys/block/loopN/queue`.
pub fn folder(device: &Path) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap_or_default()).join("queue")
}

/// Sets everything that does not depend on how deep the queue is.
pub fn describe(undo: &Undo, device: &Path, spec: &Spec) -> Result<(), LabError> {
    let queue = folder(device);
    let set = |name: &str, value: &str| undo.set(&queue.join(name), value);
    set("scheduler", "none")?;
    set("rotational", if Spec::is_disk(&spec.model) { "1" } else { "0" })?;
    set("max_sectors_kb", "1024")?; // one request of the kernel is one of ours
    // Without a cache the kernel need not flush.
    let volatile = spec.power_cut || spec.model.caches_writes();
    set("write_cache", if volatile { "write back" } else { "write through" })?;
    // A feature that a loop device learns to be impossible at the first request, whereupon the
    // kernel computes the read-ahead anew, it is to know before that is set. Both are refused
    // by our file system, and change nothing.
    for refused in [snowmelt_io::block_discard(device, 0, 4096), snowmelt_io::block_zero(device, 0, 4096)] {
        drop(refused);
    }
    Ok(())
}

/// Lowers the depth and chooses the scheduler.
pub fn limit(undo: &Undo, device: &Path, spec: &Spec) -> Result<(), LabError> {
    let queue = folder(device);
    if spec.depth < LOOP_DEPTH {
        let step = Step::QueueDepth { queue: queue.clone(), old: LOOP_DEPTH, new: spec.depth };
        undo.make(step, || set_queue_depth(&queue, spec.depth))?;
    }
    undo.set(&queue.join("scheduler"), &spec.scheduler)?;
    // Other settings change it.
    undo.set(&queue.join("read_ahead_kb"), &spec.read_ahead_kb.to_string())?;
    Ok(())
}
