//! Random reads on a model alone, at a steady depth: what a reader gets of the device itself.

use snowmelt_base::random::Random;

use crate::device::simulated::model::DeviceModel;
use crate::device::simulated::model::bounds::ModelError;
use crate::device::timed::{Transfer, TransferKind};

/// Reads of a measurement, and those before it, in which a burst is used up.
const READS: usize = 4000;
const BEFORE: usize = 1000;
/// Part of the best rate from which a depth counts as equally good.
const AS_GOOD: f64 = 0.95;
const DEPTHS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

impl DeviceModel {
    /// The time that 99 of 100 reads of `len` bytes at random places of the first `span` bytes
    /// take at most, at the least depth at which about as many are answered as at any, in
    /// nanoseconds.
    ///
    /// # Errors
    /// The model is out of bounds.
    pub fn p99_at_best_depth_ns(&self, span: u64, len: u64) -> Result<u64, ModelError> {
        let all = DEPTHS.map(|depth| self.random_reads(span, len, depth));
        let all = all.into_iter().collect::<Result<Vec<_>, _>>()?;
        let least_ns = all.iter().map(|(took_ns, _)| *took_ns).min().expect("there are depths");
        let is_good = |took_ns: u64| least_ns as f64 >= AS_GOOD * took_ns as f64;
        let (_, mut times_ns) =
            all.into_iter().find(|(took_ns, _)| is_good(*took_ns)).expect("the best is as good as it is");
        times_ns.sort_unstable();
        Ok(times_ns[READS * 99 / 100])
    }

    /// The time until all were answered, and that of each.
    fn random_reads(&self, span: u64, len: u64, depth: usize) -> Result<(u64, Vec<u64>), ModelError> {
        let mut device = self.build()?;
        let mut random = Random(depth as u64);
        let mut arrived = Vec::new();
        let mut send = |device: &mut dyn super::Mechanics, now: u64, arrived: &mut Vec<u64>| {
            let offset = random.below((span / len).max(1)) * len;
            device.arrive(arrived.len(), Transfer { offset, len, kind: TransferKind::Read }, now);
            arrived.push(now);
        };
        (0..depth).for_each(|_| send(&mut *device, 0, &mut arrived));
        let (mut times_ns, mut from_ns, mut now) = (Vec::with_capacity(READS), 0, 0);
        let mut over = 0;
        while times_ns.len() < READS {
            let due = device.next_due().expect("reads are outstanding");
            // Without a read's end, something inside the device has happened.
            let Some((id, at)) = device.pop_due(due) else { continue };
            now = at;
            over += 1;
            if over == BEFORE {
                from_ns = now;
            } else if over > BEFORE {
                times_ns.push(at - arrived[id]);
            }
            send(&mut *device, now, &mut arrived);
        }
        Ok((now - from_ns, times_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_depth_fills_a_device_and_no_more() {
        let p99_ms = |model: DeviceModel| model.p99_at_best_depth_ns(1 << 30, 8192).unwrap() as f64 / 1e6;
        // Sixteen reads of 3 ms at 3000 per second, of which each waits for all before it.
        let wide = p99_ms(DeviceModel::wide_slow());
        assert!((5.0..6.0).contains(&wide), "{wide}");
        let nvme = p99_ms(DeviceModel::nvme());
        assert!((0.08..0.2).contains(&nvme), "{nvme}");
        let hdd = p99_ms(DeviceModel::hdd());
        assert!((100.0..700.0).contains(&hdd), "{hdd}");
    }
}
