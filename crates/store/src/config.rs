//! All settings of a store in one struct, with their defaults in one place.

use std::fmt;
use std::sync::Arc;

use snowmelt_io::{Clock, Device, IoError, QueueConfig};

use crate::error::{Result, StoreError};
use crate::page::PAGE_BYTES;
use crate::readahead::ReadAhead;

/// Settings of a store; passed in full, usually as `StoreConfig { …, ..StoreConfig::default() }`.
#[derive(Clone)]
pub struct StoreConfig {
    /// Pages in an extent, for new databases; an existing one keeps its own. 1 to 65536, default 256 (2 MiB).
    pub extent_pages: u32,
    /// The whole memory budget in bytes: pool, queries and load. Default: half of the memory of the machine or cgroup.
    pub memory_bytes: u64,
    /// Bytes of `memory_bytes` for the pool; `None`: three quarters.
    pub pool_bytes: Option<u64>,
    /// Read and write past the page cache (O_DIRECT) where the file system can.
    pub direct: bool,
    /// Engine, order and merging of the devices' queues.
    pub queue: QueueConfig,
    /// Wraps the device of each stripe: simulated and faulty devices.
    pub devices: Option<DeviceWrap>,
    /// Read-ahead rules.
    pub read_ahead: ReadAhead,
    /// Who does the background work: saving and reading the warm list.
    pub background: Background,
    /// Milliseconds a reader waits for a frame while all are pinned, before it gives up.
    pub frame_wait_ms: u64,
    /// Time.
    pub clock: Clock,
}

/// Who calls [`Store::step`](crate::Store::step).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// A thread of the store's own. In virtual time there is none: the caller does it then.
    Thread,
    /// The caller.
    Caller,
}

type WrapFn = dyn Fn(usize, Arc<dyn Device>) -> std::result::Result<Arc<dyn Device>, IoError> + Send + Sync;

/// Puts another device around, or in the place of, the device of a stripe.
#[derive(Clone)]
pub struct DeviceWrap(Arc<WrapFn>);

impl DeviceWrap {
    /// Wraps with `f`, which gets the number of the stripe and the device of its file.
    pub fn new(
        f: impl Fn(usize, Arc<dyn Device>) -> std::result::Result<Arc<dyn Device>, IoError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        DeviceWrap(Arc::new(f))
    }

    pub(crate) fn wrap(
        &self,
        stripe: usize,
        file: Arc<dyn Device>,
    ) -> std::result::Result<Arc<dyn Device>, IoError> {
        (self.0)(stripe, file)
    }
}

impl fmt::Debug for DeviceWrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceWrap")
    }
}

/// Fewest frames a pool works with.
pub const LEAST_FRAMES: u32 = 16;

impl Default for StoreConfig {
    fn default() -> Self {
        StoreConfig {
            extent_pages: 256,
            memory_bytes: machine_memory() / 2,
            pool_bytes: None,
            direct: true,
            queue: QueueConfig::default(),
            devices: None,
            read_ahead: ReadAhead::default(),
            background: Background::Thread,
            frame_wait_ms: 10_000,
            clock: Clock::real(),
        }
    }
}

impl StoreConfig {
    /// Frames of the pool.
    pub fn frames(&self) -> Result<u32> {
        let bytes = self.pool_bytes.unwrap_or(self.memory_bytes / 4 * 3);
        let frames = bytes / PAGE_BYTES as u64;
        if bytes > self.memory_bytes || frames < LEAST_FRAMES as u64 {
            return Err(StoreError::Config(format!(
                "a pool of {bytes} bytes does not work: it needs at least {} and at most the {} of the memory budget",
                LEAST_FRAMES as u64 * PAGE_BYTES as u64,
                self.memory_bytes
            )));
        }
        u32::try_from(frames).map_err(|_| StoreError::Config("the pool has more than 2^32 pages".into()))
    }
}

/// Bytes of memory of the cgroup if it has a limit, else of the machine.
pub fn machine_memory() -> u64 {
    let limit_files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits =
        limit_files.iter().filter_map(|f| std::fs::read_to_string(f).ok()?.trim().parse::<u64>().ok());
    let info = rustix::system::sysinfo();
    let machine = (info.totalram as u64).saturating_mul(info.mem_unit.max(1) as u64);
    limits.chain([machine]).min().unwrap_or(1 << 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_sizes() {
        let c = StoreConfig { memory_bytes: 1 << 20, ..Default::default() };
        assert_eq!(c.frames().unwrap(), 96);
        let c = StoreConfig { memory_bytes: 1 << 20, pool_bytes: Some(64 * 8192), ..Default::default() };
        assert_eq!(c.frames().unwrap(), 64);
        let c = StoreConfig { memory_bytes: 100_000, ..Default::default() };
        assert!(matches!(c.frames(), Err(StoreError::Config(_))));
        let c = StoreConfig { memory_bytes: 1 << 20, pool_bytes: Some(1 << 21), ..Default::default() };
        assert!(matches!(c.frames(), Err(StoreError::Config(_))));
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(machine_memory() > 64 << 20);
    }
}
