//! Costs that follow from the name of a disk.
//!
//! A cloud names its disks by their model, and publishes the caps of its usual volumes, in part by
//! size. Extra performance that was bought does not show, so the figures are those of the default
//! kind.

use crate::cost::CostModel;
use crate::hints::disk::BlockDisk;

const GIB: u64 = 1 << 30;
const MIB: f64 = (1 << 20) as f64;

/// Latencies as the providers publish them ("single-digit milliseconds", "sub-millisecond").
const VOLUME_NS: u64 = 1_000_000;

/// A disk of a cloud, known by its name.
struct Named {
    vendor: &'static str,
    /// Begin of the model.
    model: &'static str,
    what: &'static str,
    /// Where the name, and where the caps are published.
    source: &'static str,
    cost: fn(gib: f64) -> CostModel,
}

const AWS: &str = "docs.aws.amazon.com/ebs: nvme-ebs-volumes, general-purpose";
const GOOGLE: &str = "cloud.google.com/compute/docs/disks/performance";
const AZURE: &str = "learn.microsoft.com/azure/virtual-machines/disks-types";
const ALIBABA: &str = "alibabacloud.com/help/en/ecs/user-guide/essds";
const DIGITAL_OCEAN: &str = "docs.digitalocean.com/products/volumes/details/limits";

/// The first that fits counts.
const NAMED: [Named; 10] = [
    Named {
        vendor: "",
        model: "Amazon Elastic Block Store",
        what: "an EBS volume, as gp3",
        source: AWS,
        cost: gp3,
    },
    Named {
        vendor: "",
        model: "Amazon EC2 NVMe Instance Storage",
        what: "an instance's NVMe disk",
        source: AWS,
        cost: local,
    },
    Named {
        vendor: "",
        model: "nvme_card-pd",
        what: "a balanced Persistent Disk",
        source: GOOGLE,
        cost: balanced,
    },
    Named {
        vendor: "Google",
        model: "PersistentDisk",
        what: "a balanced Persistent Disk",
        source: GOOGLE,
        cost: balanced,
    },
    Named { vendor: "", model: "nvme_card", what: "a local SSD", source: GOOGLE, cost: local },
    Named {
        vendor: "",
        model: "MSFT NVMe Accelerator",
        what: "a Premium SSD of its size",
        source: AZURE,
        cost: premium,
    },
    Named {
        vendor: "Msft",
        model: "Virtual Disk",
        what: "a Premium SSD of its size",
        source: AZURE,
        cost: premium,
    },
    Named {
        vendor: "",
        model: "Microsoft NVMe Direct Disk",
        what: "a local NVMe disk",
        source: AZURE,
        cost: local,
    },
    Named {
        vendor: "",
        model: "Alibaba Cloud Elastic Block Storage",
        what: "an ESSD PL1",
        source: ALIBABA,
        cost: essd,
    },
    Named {
        vendor: "DO",
        model: "Volume",
        what: "a DigitalOcean volume",
        source: DIGITAL_OCEAN,
        cost: digital_ocean,
    },
];

fn gp3(_gib: f64) -> CostModel {
    CostModel::capped(VOLUME_NS, 3_000.0, 125.0 * MIB)
}

fn local(_gib: f64) -> CostModel {
    CostModel::nvme()
}

fn balanced(gib: f64) -> CostModel {
    let (requests, mib) = (3_000.0 + 6.0 * gib, 140.0 + 0.28 * gib);
    CostModel::capped(VOLUME_NS, requests.min(80_000.0), mib.min(1_200.0) * MIB)
}

fn essd(gib: f64) -> CostModel {
    let (requests, mb) = (1_800.0 + 50.0 * gib, 120.0 + 0.5 * gib);
    CostModel::capped(VOLUME_NS, requests.min(50_000.0), mb.min(350.0) * 1e6)
}

fn digital_ocean(_gib: f64) -> CostModel {
    CostModel::capped(VOLUME_NS, 5_000.0, 200e6)
}

/// Premium SSD: up to so many GiB, requests and 10⁶ bytes per second.
const PREMIUM: [(f64, f64, f64); 12] = [
    (16.0, 120.0, 25.0),
    (64.0, 240.0, 50.0),
    (128.0, 500.0, 100.0),
    (256.0, 1_100.0, 125.0),
    (512.0, 2_300.0, 150.0),
    (1_024.0, 5_000.0, 200.0),
    (2_048.0, 7_500.0, 250.0),
    (4_096.0, 7_500.0, 250.0),
    (8_192.0, 16_000.0, 500.0),
    (16_384.0, 18_000.0, 750.0),
    (32_768.0, 20_000.0, 900.0),
    (f64::INFINITY, 20_000.0, 900.0),
];

fn premium(gib: f64) -> CostModel {
    let (_, requests, mb) =
        PREMIUM.into_iter().find(|(most, ..)| gib <= *most).expect("the last has no bound");
    CostModel::capped(2 * VOLUME_NS, requests, mb * 1e6)
}

/// Costs of a cloud's disk by its name and size, and whence they are known.
pub(crate) fn of_cloud(disk: &BlockDisk) -> Option<(CostModel, String)> {
    let is_it = |named: &&Named| {
        (named.vendor.is_empty() || disk.vendor == named.vendor) && disk.model.starts_with(named.model)
    };
    let named = NAMED.iter().find(is_it)?;
    let cost = (named.cost)(disk.bytes as f64 / GIB as f64);
    Some((cost, format!("its name: \"{}\", taken for {} ({})", disk.model, named.what, named.source)))
}

/// Makers of disks with an arm, as disks name them. Rotation alone proves nothing: the kernel takes
/// a virtual disk that does not say otherwise for a rotating one.
const MAKERS: [&str; 8] = ["ATA", "SEAGATE", "HGST", "HITACHI", "WDC", "WD", "TOSHIBA", "FUJITSU"];
const VIRTUAL: [&str; 4] = ["QEMU", "VBOX", "VMware", "Virtual"];

/// Costs of a disk by its kind; `None` where the kernel does not know it either.
pub(crate) fn of_kind(disk: &BlockDisk) -> Option<(CostModel, &'static str)> {
    let is_real = MAKERS.iter().any(|maker| disk.vendor.eq_ignore_ascii_case(maker))
        && !VIRTUAL.iter().any(|word| disk.model.contains(word));
    match () {
        () if disk.name.starts_with("nvme") => Some((CostModel::nvme(), "its kind: an NVMe disk")),
        () if is_real && disk.turns => Some((CostModel::hdd(), "its kind: a disk that turns")),
        () if is_real => Some((CostModel::ssd(), "its kind: a SATA or SAS SSD")),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Law;

    fn disk(vendor: &str, model: &str, gib: u64) -> BlockDisk {
        let bytes = gib * GIB;
        BlockDisk {
            name: "sda".into(),
            vendor: vendor.into(),
            model: model.into(),
            bytes,
            ..BlockDisk::default()
        }
    }

    /// Requests and bytes per second.
    fn caps(vendor: &str, model: &str, gib: u64) -> Option<(u64, u64)> {
        let (cost, why) = of_cloud(&disk(vendor, model, gib))?;
        assert!(why.contains(model) && why.contains('.'), "names its source: {why}");
        assert!(matches!(cost.law, Law::Caps { .. }), "{why}");
        Some(((1e9 / cost.ns_per_request as f64).round() as u64, cost.bytes_per_s))
    }

    #[test]
    fn volumes_have_the_caps_of_their_size() {
        assert_eq!(caps("", "Amazon Elastic Block Store", 7), Some((3_000, 125 << 20)));
        assert_eq!(caps("Google", "PersistentDisk", 1_000), Some((9_000, 420 << 20)));
        assert_eq!(caps("", "nvme_card-pd", 100_000), Some((80_000, 1_200 << 20)));
        assert_eq!(caps("Msft", "Virtual Disk", 128), Some((500, 100_000_000)));
        assert_eq!(caps("", "MSFT NVMe Accelerator v1.0", 129), Some((1_100, 125_000_000)));
        assert_eq!(caps("", "MSFT NVMe Accelerator v1.0", 1 << 30), Some((20_000, 900_000_000)));
        assert_eq!(caps("", "Alibaba Cloud Elastic Block Storage", 40), Some((3_800, 140_000_000)));
        assert_eq!(caps("DO", "Volume", 5), Some((5_000, 200_000_000)));
        assert_eq!(caps("HC", "Volume", 5), None);
        assert_eq!(caps("", "Samsung SSD 990", 5), None);
    }

    #[test]
    fn local_disks_of_clouds_are_no_volumes() {
        for model in
            ["Amazon EC2 NVMe Instance Storage", "nvme_card", "nvme_card3", "Microsoft NVMe Direct Disk v2"]
        {
            let (cost, why) = of_cloud(&disk("", model, 375)).unwrap();
            assert_eq!(cost, CostModel::nvme(), "{why}");
        }
    }

    #[test]
    fn a_kind_is_believed_of_real_disks_only() {
        let kind = |name: &str, vendor: &str, model: &str, turns| {
            let disk = BlockDisk { name: name.into(), turns, ..disk(vendor, model, 1) };
            of_kind(&disk).map(|(cost, _)| cost)
        };
        assert_eq!(kind("sda", "ATA", "WDC WD40EFRX", true), Some(CostModel::hdd()));
        assert_eq!(kind("sda", "SEAGATE", "ST4000", true), Some(CostModel::hdd()));
        assert_eq!(kind("sda", "ATA", "Samsung SSD 870", false), Some(CostModel::ssd()));
        assert_eq!(kind("nvme0n1", "", "Samsung SSD 990", false), Some(CostModel::nvme()));
        for (name, vendor, model) in [
            ("vda", "", ""),
            ("xvdf", "", ""),
            ("sda", "ATA", "VBOX HARDDISK"),
            ("sda", "LIO-ORG", "disk1"),
            ("dm-0", "", "vg"),
        ] {
            assert_eq!(kind(name, vendor, model, true), None, "{name} {vendor} {model}");
        }
    }
}
