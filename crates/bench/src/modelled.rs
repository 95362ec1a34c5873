//! Settings of stores whose stripes lie on modelled devices, in virtual time.

use std::sync::Arc;

use snowmelt_io::{Clock, Device, DeviceModel, SimulatedDevice, Troubles};
use snowmelt_store::{Background, DeviceWrap, PAGE_BYTES, Seams, StoreConfig};

/// Memory for queries beside the pool, in bytes.
const QUERY_BYTES: u64 = 256 << 20;

/// A store by `clock` with a pool of `frames` frames; `devices` returns the model under each
/// stripe, and its troubles.
pub fn store_config(
    clock: &Clock,
    frames: u64,
    devices: impl Fn(usize) -> (DeviceModel, Troubles) + Send + Sync + 'static,
) -> StoreConfig {
    let pool = frames * PAGE_BYTES as u64;
    let in_time_of = clock.clone();
    let wrap = move |stripe, file| {
        let (model, troubles) = devices(stripe);
        let device = SimulatedDevice::with_troubles(model, troubles, file, &in_time_of);
        Ok(Arc::new(device.expect("models made in code are in bounds")) as Arc<dyn Device>)
    };
    StoreConfig {
        direct: false,
        memory_bytes: pool + QUERY_BYTES,
        pool_bytes: Some(pool),
        seams: Seams {
            clock: clock.clone(),
            devices: Some(DeviceWrap::new(wrap)),
            background: Background::Caller,
            ..Seams::default()
        },
        ..StoreConfig::default()
    }
}
