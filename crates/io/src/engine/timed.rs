//! The engine of devices with a timing of their own (simulated ones). It has no thread.
//!
//! Requests that may go out are given to the device at once. The device calls back when a
//! request is over, which may let others go out, and at the moment until which a policy holds
//! the queue.

use std::sync::Arc;

use crate::device::Device;
use crate::device::timed::{TimedDevice, TimedTask};
use crate::engine::serving::{Serving, Taken};
use crate::error::IoErrorKind;
use crate::queue::device_request::DeviceRequest;
use crate::time::virtual_time::Timer;

/// A device request at a timed device.
struct QueuedTask {
    serving: Arc<Serving>,
    device: Arc<dyn TimedDevice>,
    request: DeviceRequest,
    /// How moving the bytes ended; `None` before.
    end: Option<Result<(), IoErrorKind>>,
}

impl TimedTask for QueuedTask {
    fn move_bytes(&mut self, beneath: &dyn Device) {
        self.end = Some(self.request.execute(beneath, &self.serving.scratch));
    }

    fn over(self: Box<Self>) {
        let QueuedTask { serving, device, mut request, end } = *self;
        let end = end.expect("bytes are moved before the end");
        serving.deliver(&mut request, end, serving.clock.now_ns());
        serving.retire(&mut serving.state.lock(), request);
        send_what_may(&serving, &device);
    }
}

/// Serves a queue again once the hold of a policy is over.
impl Timer for Serving {
    fn fire(self: Arc<Self>, _now_ns: u64) {
        self.state.lock().alarm_ns = None;
        let device = self.device.timed().expect("only timed devices have alarms");
        send_what_may(&self, &device);
    }
}

/// Gives the device what may go out. The lock is not held meanwhile: in virtual time the device
/// may answer at once.
pub(crate) fn send_what_may(serving: &Arc<Serving>, device: &Arc<dyn TimedDevice>) {
    loop {
        let mut state = serving.state.lock();
        match serving.take(&mut state, serving.clock.now_ns()) {
            Taken::Nothing => return,
            Taken::NotBefore(at) => {
                if state.alarm_ns.is_none_or(|set| at < set) {
                    state.alarm_ns = Some(at);
                    drop(state);
                    device.clone().alarm(at, serving.clone());
                }
                return;
            }
            Taken::Request(request) => {
                drop(state);
                let transfer = request.transfer();
                let task =
                    QueuedTask { serving: serving.clone(), device: device.clone(), request, end: None };
                device.clone().begin(transfer, Box::new(task));
            }
        }
    }
}
