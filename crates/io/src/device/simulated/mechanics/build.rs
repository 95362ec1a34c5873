//! From a model to its mechanics, and to the cost model measured on them.

use snowmelt_base::random::lcg;

use crate::cost::{CostModel, Law};
use crate::device::simulated::mechanics::Mechanics;
use crate::device::simulated::mechanics::disk::Disk;
use crate::device::simulated::mechanics::raid0::Raid0;
use crate::device::simulated::mechanics::volume::Volume;
use crate::device::simulated::model::DeviceModel;
use crate::device::simulated::model::bounds::ModelError;
use crate::device::timed::{Transfer, TransferKind};

impl DeviceModel {
    /// The cost model that fits it when what is read lies within the first `span_bytes` (a
    /// disk's seeks are shorter there; 0 for everywhere). A disk's is measured on the model
    /// itself.
    pub fn cost(&self, span_bytes: u64) -> CostModel {
        match self {
            DeviceModel::Disk(d) => {
                let span = if span_bytes == 0 { d.capacity_bytes } else { span_bytes.min(d.capacity_bytes) };
                let inward = span as f64 / d.capacity_bytes as f64 / 2.0;
                let rate = d.outer_bytes_per_s + (d.inner_bytes_per_s - d.outer_bytes_per_s) * inward;
                CostModel {
                    latency_ns: self.ns_per_random_read(span, 1),
                    ns_per_request: self.ns_per_random_read(span, d.queue),
                    bytes_per_s: rate as u64,
                    depth: d.queue as u32,
                    law: Law::Sum,
                }
            }
            DeviceModel::Raid0(raid) => {
                let n = u64::from(raid.members);
                let member = raid.member.cost(span_bytes / n);
                CostModel {
                    latency_ns: member.latency_ns,
                    ns_per_request: (member.ns_per_request / n).max(1),
                    bytes_per_s: member.bytes_per_s * n,
                    depth: member.depth * raid.members,
                    law: Law::Sum,
                }
            }
            DeviceModel::Volume(v) => {
                let latency_ns = v.mean_latency_us() * 1e3;
                let per_request_ns = (1e9 / v.rested_iops()).max(latency_ns / v.width as f64);
                // Little's law, and half as much again so that a slow answer leaves no hole.
                let depth = (1.5 * latency_ns / per_request_ns).ceil().clamp(1.0, v.width as f64);
                let most_bytes_per_s = v.line_bytes_per_s * v.width as f64;
                CostModel {
                    latency_ns: latency_ns as u64,
                    ns_per_request: per_request_ns as u64,
                    bytes_per_s: v.rested_bytes_per_s().min(most_bytes_per_s) as u64,
                    depth: depth as u32,
                    law: Law::Sum,
                }
            }
        }
    }

    /// Mean time of sector reads all over `span` with `depth` outstanding.
    fn ns_per_random_read(&self, span: u64, depth: usize) -> u64 {
        const READS: usize = 1000;
        let mut device = self.build().expect("a model that is asked for its cost is in bounds");
        let mut random = 1u64;
        let mut next = || {
            let offset = ((u128::from(lcg(&mut random)) * u128::from(span)) >> 64) as u64;
            Transfer { offset: offset / 512 * 512, len: 512, kind: TransferKind::Read }
        };
        (0..depth).for_each(|id| device.arrive(id, next(), 0));
        let mut now = 0;
        for _ in 0..READS {
            let (id, over) = device.pop_due(u64::MAX).expect("reads are outstanding");
            now = over;
            device.arrive(id, next(), now);
        }
        now / READS as u64
    }

    pub(crate) fn build(&self) -> Result<Box<dyn Mechanics>, ModelError> {
        Ok(match self {
            DeviceModel::Disk(d) => Box::new(Disk::new(d)?),
            DeviceModel::Volume(v) => Box::new(Volume::new(v)?),
            DeviceModel::Raid0(raid) => {
                self.check()?;
                // Each member has chances of its own.
                let member = |i| raid.member.with_seed_moved(u64::from(i)).build();
                let members: Result<Vec<_>, ModelError> = (0..raid.members).map(member).collect();
                Box::new(Raid0::new(members?, raid.chunk_bytes))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_follow_from_the_parameters() {
        let wide = DeviceModel::wide_slow().cost(0);
        assert_eq!((wide.latency_ns, wide.ns_per_request, wide.depth), (3_000_000, 333_333, 14));
        assert_eq!(wide.bytes_per_s, 125 << 20);
        let (whole, part) = (DeviceModel::hdd().cost(0), DeviceModel::hdd().cost(1 << 30));
        assert_eq!(whole.depth, 32);
        assert!((11_900_000..12_700_000).contains(&whole.latency_ns), "{}", whole.latency_ns);
        assert!((4_500_000..6_500_000).contains(&part.latency_ns), "short seeks: {}", part.latency_ns);
        assert!(part.ns_per_request < part.latency_ns / 2 && part.ns_per_request < whole.ns_per_request / 2);
        assert!(!whole.in_place() && !part.in_place() && wide.in_place());
    }
}
