//! The processors that took a device's interrupts: one that takes them all can be the limit of
//! a fast drive.
//!
//! The interrupts of a block device are those of the nearest device above it that has some:
//! `msi_irqs/` of its PCI device, or `irq`. An emulated device has none.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::machine::BlockDevice;

/// Counts of all interrupts since boot.
#[derive(Debug, Clone, Default)]
pub struct InterruptCounts {
    /// Numbers of the processors online, in the order of the counts.
    processors: Vec<u32>,
    /// By number of the interrupt.
    counts: BTreeMap<u32, Vec<u64>>,
}

/// The interrupts of one device over a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInterrupts {
    /// The device, as in `/sys/block`.
    pub device: String,
    /// Numbers of its interrupts.
    pub numbers: Vec<u32>,
    /// How many each processor took, by the processor's number; without those that took none.
    pub by_processor: BTreeMap<u32, u64>,
}

impl InterruptCounts {
    /// Reads them now; none where the kernel does not tell.
    pub fn now() -> InterruptCounts {
        InterruptCounts::parse(&fs::read_to_string("/proc/interrupts").unwrap_or_default())
    }

    fn parse(text: &str) -> InterruptCounts {
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        let number = |name: &str| name.strip_prefix("CPU")?.parse().ok();
        let processors: Vec<u32> = header.split_whitespace().filter_map(number).collect();
        let count = |line: &str| -> Option<(u32, Vec<u64>)> {
            let (interrupt, rest) = line.split_once(':')?;
            let counts = rest.split_whitespace().take(processors.len()).map(|n| n.parse().ok());
            Some((interrupt.trim().parse().ok()?, counts.collect::<Option<_>>()?))
        };
        let counts = lines.filter_map(count).collect();
        InterruptCounts { processors, counts }
    }

    /// Those of `device` until `later`; nothing for a device without interrupts.
    pub fn until(&self, later: &InterruptCounts, device: &BlockDevice) -> Option<DeviceInterrupts> {
        let numbers = numbers_of(&device.sys().join("device"))?;
        Some(self.between(later, &device.name, numbers))
    }

    fn between(&self, later: &InterruptCounts, device: &str, numbers: Vec<u32>) -> DeviceInterrupts {
        let mut by_processor = BTreeMap::new();
        for (processor, at) in later.processors.iter().zip(0..) {
            let was_at = self.processors.iter().position(|p| p == processor);
            let count = |counts: &InterruptCounts, number: &u32, at: usize| {
                counts.counts.get(number).and_then(|counts| counts.get(at)).copied().unwrap_or(0)
            };
            let of = |number: &u32| {
                let before = was_at.map_or(0, |at| count(self, number, at));
                count(later, number, at).saturating_sub(before)
            };
            let taken: u64 = numbers.iter().map(of).sum();
            if taken > 0 {
                by_processor.insert(*processor, taken);
            }
        }
        DeviceInterrupts { device: device.into(), numbers, by_processor }
    }
}

impl DeviceInterrupts {
    /// In words.
    pub fn show(&self) -> String {
        if self.by_processor.is_empty() {
            return "none meanwhile".into();
        }
        let one = |(processor, taken): (&u32, &u64)| format!("{taken} by processor {processor}");
        self.by_processor.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// Numbers of the interrupts of the nearest device at or above `sys` that has some.
fn numbers_of(sys: &Path) -> Option<Vec<u32>> {
    let start = fs::canonicalize(sys).ok()?;
    let numbers = |dir: &Path| -> Option<Vec<u32>> {
        let name = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let messages = fs::read_dir(dir.join("msi_irqs")).into_iter().flatten().flatten();
        let mut numbers: Vec<u32> = messages.filter_map(name).collect();
        if numbers.is_empty() {
            let line: u32 = fs::read_to_string(dir.join("irq")).ok()?.trim().parse().ok()?;
            numbers = (line > 0).then_some(line).into_iter().collect();
        }
        numbers.sort_unstable();
        (!numbers.is_empty()).then_some(numbers)
    };
    start.ancestors().find_map(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIER: &str = "           CPU0       CPU2
 35:          5          1  PCI-MSIX-0000:00:02.0   0-edge      virtio1-config
 36:        100       1000  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 37:          7          7  PCI-MSIX-0000:00:03.0   0-edge      virtio2-config
LOC:          9          9  Local timer interrupts
ERR:          0
";

    #[test]
    fn the_difference_is_told_by_processor() {
        let one = InterruptCounts::parse(EARLIER);
        assert_eq!((one.processors.as_slice(), one.counts.len()), ([0, 2].as_slice(), 3));
        let later = EARLIER.replace("      1000", "      6000").replace("          7", "         99");
        let taken = one.between(&InterruptCounts::parse(&later), "vda", vec![35, 36]);
        assert_eq!(taken.by_processor, BTreeMap::from([(2, 5000)]));
        assert_eq!(taken.show(), "5000 by processor 2");
        // Processor 1 came online, so that the columns moved.
        let more = "  CPU0 CPU1 CPU2\n 36: 101 4 1000 PCI-MSIX virtio1-req.0\n";
        let taken = one.between(&InterruptCounts::parse(more), "vda", vec![35, 36]);
        assert_eq!(taken.show(), "1 by processor 0, 4 by processor 1");
        assert_eq!(one.between(&one, "vda", vec![35]).show(), "none meanwhile");
    }

    #[test]
    fn interrupts_are_found_above_the_device() {
        let dir = tempfile::tempdir().expect("a folder");
        let pci = dir.path().join("0000:00:02.0");
        let device = pci.join("virtio1/block/vda");
        fs::create_dir_all(pci.join("msi_irqs")).expect("made");
        fs::create_dir_all(&device).expect("made");
        fs::write(pci.join("irq"), "11\n").expect("written");
        assert_eq!(numbers_of(&device), Some(vec![11]), "the line, where there are no messages");
        for number in ["36", "35"] {
            fs::write(pci.join("msi_irqs").join(number), "msix\n").expect("written");
        }
        assert_eq!(numbers_of(&device), Some(vec![35, 36]));
        assert_eq!(numbers_of(&dir.path().join("virtual")), None);
    }
}
