//! A device whose bytes come from another one (a file, memory, a faulty device) and whose times
//! come from a model.
//!
//! It needs no privileges, and queues with any engine work on it.

pub(crate) mod activity;
pub(crate) mod beside;
pub(crate) mod host;
pub(crate) mod mechanics;
pub(crate) mod model;
pub(crate) mod troubles;
pub(crate) mod urgent;

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cost::CostModel;
use crate::device::simulated::activity::Activity;
use crate::device::simulated::host::{Host, Outstanding};
use crate::device::simulated::mechanics::Mechanics;
use crate::device::simulated::mechanics::troubled::Troubled;
use crate::device::simulated::model::DeviceModel;
use crate::device::simulated::model::bounds::ModelError;
use crate::device::simulated::troubles::Troubles;
use crate::device::simulated::urgent::{precise_wake_ups, run_urgently};
use crate::device::timed::{TimedDevice, Transfer, TransferKind};
use crate::device::{Alignment, Device, ReadDevice};
use crate::error::IoError;
use crate::latency::Latency;
use crate::time::clock::Clock;

/// A simulated device.
pub struct SimulatedDevice {
    name: Arc<str>,
    model: DeviceModel,
    host: Arc<Host>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl SimulatedDevice {
    /// A device like `model` with the bytes of `inner`, in `clock`'s time.
    ///
    /// # Panics
    /// When the model is out of bounds: what was parsed is not, and what is made in code should
    /// not be.
    pub fn new(model: DeviceModel, inner: Arc<dyn Device>, clock: &Clock) -> SimulatedDevice {
        let made = SimulatedDevice::with_priority(model, inner, clock, false);
        made.unwrap_or_else(|e| panic!("a model made in code is in bounds: {e}"))
    }

    /// A device like `model` with the bytes of `inner`, in `clock`'s time. With `urgent` the thread
    /// that delivers in real time goes before all ordinary ones, where that is permitted, and
    /// spends processor time to be on time.
    ///
    /// # Errors
    /// The model is out of bounds.
    pub fn with_priority(
        model: DeviceModel,
        inner: Arc<dyn Device>,
        clock: &Clock,
        urgent: bool,
    ) -> Result<SimulatedDevice, ModelError> {
        let mechanics = model.build()?;
        Ok(SimulatedDevice::start(model, mechanics, inner, clock, urgent))
    }

    /// A device like `model` that has `troubles`.
    ///
    /// # Errors
    /// A model is out of bounds.
    pub fn with_troubles(
        model: DeviceModel,
        troubles: Troubles,
        inner: Arc<dyn Device>,
        clock: &Clock,
    ) -> Result<SimulatedDevice, ModelError> {
        let bytes = troubles.bytes(inner);
        let mechanics = Box::new(Troubled::new(&model, troubles)?);
        Ok(SimulatedDevice::start(model, mechanics, bytes, clock, false))
    }

    fn start(
        model: DeviceModel,
        mechanics: Box<dyn Mechanics>,
        inner: Arc<dyn Device>,
        clock: &Clock,
        urgent: bool,
    ) -> SimulatedDevice {
        let kind = match &model {
            DeviceModel::Disk(_) => "simulated disk",
            DeviceModel::Volume(_) => "simulated volume",
            DeviceModel::Raid0(_) => "simulated array",
        };
        let name: Arc<str> = format!("{} ({kind})", inner.name()).into();
        let host = Arc::new(Host::new(mechanics, inner, clock, urgent));
        let thread = (!clock.is_virtual()).then(|| {
            let host = host.clone();
            let deliver = move || {
                precise_wake_ups();
                if urgent {
                    // Where it is refused, answers are late more often, which is recorded.
                    run_urgently();
                }
                host.deliver_when_due();
            };
            let thread = std::thread::Builder::new().name("simulated".into()).spawn(deliver);
            thread.expect("a thread for the simulated device")
        });
        SimulatedDevice { name, model, host, thread }
    }

    /// Its model.
    pub fn model(&self) -> &DeviceModel {
        &self.model
    }

    /// How late requests were delivered after they were due (always 0 in virtual time).
    pub fn lateness(&self) -> Latency {
        Latency::from_histogram(&self.host.state.lock().lateness)
    }

    /// Starts counting lateness and activity anew.
    pub fn reset_counters(&self) {
        let mut state = self.host.state.lock();
        state.lateness.reset();
        let outstanding = state.activity.outstanding;
        state.activity = Activity { outstanding, most_outstanding: outstanding, ..Activity::default() };
    }

    /// Counts of its requests.
    pub fn activity(&self) -> Activity {
        self.host.state.lock().activity
    }

    /// Empties the track buffer and refills all budgets, as a long rest does.
    pub fn reset_model(&self) {
        self.host.state.lock().mechanics.rest();
    }

    /// Spends all burst credits, as a long load does.
    pub fn spend_credits(&self) {
        let now_ns = self.host.clock.now_ns();
        self.host.state.lock().mechanics.spend_credits(now_ns);
    }

    /// Share of its burst credits left; none where there are none.
    pub fn credits(&self) -> Option<f64> {
        let now_ns = self.host.clock.now_ns();
        self.host.state.lock().mechanics.credits(now_ns)
    }

    /// Records that a request was answered `ns` later than the model knows, because its bytes
    /// came late.
    pub fn record_lateness(&self, ns: u64) {
        self.host.state.lock().lateness.saturating_record(ns);
    }

    /// Sets the time that requests given to `begin` spend on the way here and back. The model gets
    /// them that much earlier, so that the caller waits as long as for the real device.
    pub fn set_way_ns(&self, ns: u64) {
        self.host.way_ns.store(ns, Ordering::Relaxed);
    }

    /// Serves a request by the model alone, for a caller that moves the bytes itself: `over` is
    /// called when it would be answered, from the delivering thread; it must not wait.
    pub fn begin(&self, kind: TransferKind, offset: u64, len: u64, over: impl FnOnce() + Send + 'static) {
        self.host.arrive(Transfer { offset, len, kind }, Outstanding::Called(Box::new(over)));
    }
}

impl Drop for SimulatedDevice {
    fn drop(&mut self) {
        self.host.stop();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            thread.join().expect("the delivering thread does not panic");
        }
    }
}

impl ReadDevice for SimulatedDevice {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn len(&self) -> Result<u64, IoError> {
        self.host.inner.len()
    }

    fn read_at(&self, bufs: &mut [IoSliceMut<'_>], offset: u64) -> Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        self.host.spend(Transfer { offset, len, kind: TransferKind::Read }, || {
            self.host.inner.read_at(bufs, offset)
        })
    }

    fn alignment(&self) -> Alignment {
        self.host.inner.alignment()
    }

    fn timed(&self) -> Option<Arc<dyn TimedDevice>> {
        Some(self.host.clone())
    }

    fn cost(&self) -> CostModel {
        self.model.cost(self.host.inner.len().unwrap_or(0))
    }
}

impl Device for SimulatedDevice {
    fn set_len(&self, len: u64) -> Result<(), IoError> {
        self.host.inner.set_len(len)
    }

    fn lengthen(&self, len: u64) -> Result<(), IoError> {
        self.host.inner.lengthen(len)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<(), IoError> {
        let len = bufs.iter().map(|b| b.len() as u64).sum();
        self.host.spend(Transfer { offset, len, kind: TransferKind::Write }, || {
            self.host.inner.write_at(bufs, offset)
        })
    }

    fn sync(&self) -> Result<(), IoError> {
        if self.model.caches_writes() {
            let flush = Transfer { offset: 0, len: 0, kind: TransferKind::Flush };
            return self.host.spend(flush, || self.host.inner.sync());
        }
        let result = self.host.inner.sync();
        self.host.clock.sleep_ns(self.model.sync_ns());
        result
    }
}
