//! Layers side by side: what the program asked of the kernel, what storage gave it, what the
//! kernel asked of the block layer, what the device got. Between two layers stands by how much
//! they differ and the name of the difference.

use serde::Serialize;

use super::Total;
use crate::machine::program::ProcessIo;
use crate::report::{Column, Figure, Section, Table};
use crate::size::about;
use crate::trace::event::RequestKind;
use crate::trace::session::Traced;

/// Up to here two layers agree.
const AGREE: f64 = 0.02;

/// One layer of reads or of writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerSum {
    /// The layer in words.
    pub layer: &'static str,
    /// Calls, bios or requests; nothing where they are not counted.
    pub count: Option<u64>,
    /// Bytes.
    pub bytes: u64,
}

/// All layers of reads or of writes, the program's calls first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Layers {
    /// `read` or `write`.
    pub kind: &'static str,
    /// From the program down.
    pub layers: Vec<LayerSum>,
    /// One line for each step down, and one for the number of requests.
    pub differences: Vec<String>,
}

/// A number of calls, bios or requests, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Transfers {
    count: u64,
    bytes: u64,
}

/// Requests of the devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DeviceSums {
    reads: Transfers,
    writes: Transfers,
}

/// Bios of one kind.
#[derive(Debug, Clone, Copy)]
struct Bios {
    by_program: Transfers,
    by_all: Transfers,
}

/// The layers of a watch; with a trace, bios too.
pub fn layers(total: &Total, traced: Option<&Traced>) -> Vec<Layers> {
    let sums = device_sums(total);
    let transfers = |count, sectors| Transfers { count, bytes: sectors * 512 };
    let bios = |kind: RequestKind| {
        let traced = traced?;
        let counts = traced.tally.counts(kind);
        let (count, sectors) = traced.tally.ours.get(&kind).copied().unwrap_or_default();
        Some(Bios {
            by_program: transfers(count, sectors),
            by_all: transfers(counts.queued, counts.queued_sectors),
        })
    };
    let issued = |kind: RequestKind, counted: Transfers| match traced {
        Some(traced) => {
            let counts = traced.tally.counts(kind);
            transfers(counts.requests, counts.issued_sectors)
        }
        None => counted,
    };
    let io = &total.io;
    [
        reads(io, bios(RequestKind::Read), issued(RequestKind::Read, sums.reads)),
        writes(io, bios(RequestKind::Write), issued(RequestKind::Write, sums.writes)),
    ]
    .into_iter()
    .filter(|layers| layers.layers.iter().any(|layer| layer.bytes > 0))
    .collect()
}

fn device_sums(total: &Total) -> DeviceSums {
    let mut sums = DeviceSums::default();
    for device in total.devices.values() {
        let times = |rate: f64| (rate * total.seconds).round() as u64;
        sums.reads.count += times(device.r_s);
        sums.reads.bytes += times(device.rkb_s * 1024.0);
        sums.writes.count += times(device.w_s);
        sums.writes.bytes += times(device.wkb_s * 1024.0);
    }
    sums
}

/// From the program down to the device: its calls, its storage, bios, requests.
fn stack(calls: LayerSum, storage: LayerSum, bios: Option<Bios>, device: Transfers) -> Vec<LayerSum> {
    let counted = |layer, Transfers { count, bytes }| LayerSum { layer, count: Some(count), bytes };
    let mut layers = vec![calls, storage];
    if let Some(Bios { by_program, by_all }) = bios {
        layers.push(counted("bios by the program", by_program));
        layers.push(counted("bios by all", by_all));
    }
    layers.push(counted("requests to the device", device));
    layers
}

fn reads(io: &ProcessIo, bios: Option<Bios>, device: Transfers) -> Layers {
    let calls = LayerSum { layer: "read calls of the program", count: Some(io.syscr), bytes: io.rchar };
    let storage = LayerSum { layer: "storage, for the program", count: None, bytes: io.read_bytes };
    let layers = stack(calls, storage, bios, device);
    let mut differences = vec![from_storage(io), between_programs("read", io.read_bytes, device.bytes)];
    differences.extend(bios.map(|bios| between_blocks("read", bios.by_all.count, device.count)));
    let calls = Transfers { count: io.syscr, bytes: io.rchar };
    differences.extend(amplification("read", calls, device, io.read_bytes));
    Layers { kind: "read", layers, differences }
}

fn writes(io: &ProcessIo, bios: Option<Bios>, device: Transfers) -> Layers {
    let calls = LayerSum { layer: "write calls of the program", count: Some(io.syscw), bytes: io.wchar };
    let storage = LayerSum { layer: "to storage, made by the program", count: None, bytes: io.write_bytes };
    let layers = stack(calls, storage, bios, device);
    let mut differences = vec![to_storage(io), between_programs("write", io.write_bytes, device.bytes)];
    differences.extend(bios.map(|bios| between_blocks("write", bios.by_all.count, device.count)));
    Layers { kind: "write", layers, differences }
}

fn agree(a: u64, b: u64) -> bool {
    a.abs_diff(b) as f64 <= AGREE * a.max(b) as f64
}

/// From calls to storage.
fn from_storage(io: &ProcessIo) -> String {
    let (asked, storage) = (io.rchar, io.read_bytes);
    let (asked_words, storage_words) = (about(asked as f64), about(storage as f64));
    let share = |part: u64, of: u64| part as f64 / of.max(1) as f64;
    if agree(asked, storage) {
        return format!(
            "Calls and storage agree within 2 % ({asked_words} asked, {storage_words} from storage): direct, \
             or cold and read once."
        );
    }
    if asked > storage {
        return format!(
            "Page cache: {} of {asked_words} asked ({:.1} %) came from memory, {storage_words} from storage. (Pipes, \
             sockets and /proc are calls too.)",
            about((asked - storage) as f64),
            share(asked - storage, asked) * 100.0
        );
    }
    if asked < storage / 4 {
        return format!(
            "Calls not counted: {storage_words} came from storage, and calls asked for {asked_words} only: the rest \
             went through mapped files or io_uring, which the kernel does not count as calls."
        );
    }
    format!(
        "Read-ahead: storage gave {storage_words} for {asked_words} asked, {:.2} × as much: whole pages, and more \
         than was asked.",
        share(storage, asked)
    )
}

fn to_storage(io: &ProcessIo) -> String {
    let (given, stored) = (io.wchar, io.write_bytes);
    let (given_words, stored_words) = (about(given as f64), about(stored as f64));
    if agree(given, stored) {
        return format!(
            "Calls and storage agree within 2 % ({given_words} given, {stored_words} to storage)."
        );
    }
    if given > stored {
        return format!(
            "Page cache: {given_words} were given to calls, {stored_words} made to be written: overwritten before, or \
             never meant for storage (pipes, sockets)."
        );
    }
    format!(
        "Amplification: {stored_words} to be written for {given_words} given, {:.2} × as much: whole pages, mapped \
         files, or io_uring.",
        stored as f64 / given.max(1) as f64
    )
}

/// From the program's share of storage to what the devices did.
fn between_programs(verb: &str, own: u64, device: u64) -> String {
    let (own_words, device_words) = (about(own as f64), about(device as f64));
    if agree(own, device) {
        return format!("Program and device agree within 2 % ({own_words} and {device_words} to {verb}).");
    }
    if device > own {
        return format!(
            "Others: the device had {device_words} to {verb}, {own_words} of them for the program; the rest is of other \
             programs, of the kernel, or of the file system."
        );
    }
    let reason = match verb {
        "read" => "on another device, or on a file system in memory",
        _ => "not written back yet, cancelled, or on another device",
    };
    format!(
        "Elsewhere: the program had {own_words} to {verb}, the device {device_words}: the rest is {reason}."
    )
}

/// From bios to requests.
fn between_blocks(verb: &str, bios: u64, requests: u64) -> String {
    let per = requests as f64 / bios.max(1) as f64;
    if agree(bios, requests) {
        return format!("Bios and requests to {verb} agree within 2 % ({bios} and {requests}).");
    }
    let name = if per > 1.0 { "Split" } else { "Merged" };
    format!("{name}: {bios} bios to {verb} became {requests} requests, {per:.3} for each.")
}

/// From calls to requests, in number: only where most of what was asked came from the device.
fn amplification(verb: &str, calls: Transfers, device: Transfers, storage_bytes: u64) -> Option<String> {
    let comparable = calls.count > 0 && device.count > 0 && storage_bytes > calls.bytes / 2;
    comparable.then(|| {
        let per = device.count as f64 / calls.count as f64;
        let bytes = device.bytes as f64 / calls.bytes.max(1) as f64;
        let name = match per {
            per if (per - 1.0).abs() <= AGREE => "Calls and requests agree within 2 %",
            per if per > 1.0 => "Amplification",
            _ => "Joined",
        };
        format!(
            "{name}: {} calls to {verb} of {} became {} requests of {}: {per:.3} for each, {bytes:.3} × the bytes.",
            calls.count,
            about(calls.bytes as f64 / calls.count as f64),
            device.count,
            about(device.bytes as f64 / device.count as f64)
        )
    })
}

/// The section of the page.
pub fn section(all: &[Layers]) -> Option<Section> {
    if all.is_empty() {
        return None;
    }
    let rows = all.iter().flat_map(|of| &of.layers).map(|layer| {
        let mean = layer.count.filter(|n| *n > 0).map(|n| about(layer.bytes as f64 / n as f64));
        vec![
            layer.layer.to_owned(),
            layer.count.map_or("-".into(), |n| n.to_string()),
            about(layer.bytes as f64),
            mean.unwrap_or_else(|| "-".into()),
        ]
    });
    let table = Table {
        title: "From the program to the device".into(),
        note: "Calls, and bytes for the program: by /proc/PID/io of all its processes. Requests: by the trace, else by \
               /proc/diskstats."
            .into(),
        columns: vec![
            Column::text("layer"),
            Column::number("count"),
            Column::number("bytes"),
            Column::number("mean size"),
        ],
        rows: rows.collect(),
    };
    let mut section = Section::new("Layers", vec![Figure::Table(table)]);
    section.text = all.iter().flat_map(|of| of.differences.clone()).collect();
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(syscr: u64, rchar: u64, read_bytes: u64) -> ProcessIo {
        ProcessIo { syscr, rchar, read_bytes, ..ProcessIo::default() }
    }

    #[test]
    fn each_difference_has_its_name() {
        for (io, says) in [
            (io(100, 819_200, 819_200), "agree within 2 %"),
            (io(100, 819_200, 830_000), "agree within 2 %"),
            (io(100, 819_200, 409_600), "Page cache: 400 KiB of 800 KiB asked (50.0 %)"),
            (io(100, 819_200, 1_638_400), "Read-ahead"),
            (io(100, 4_000, 1_638_400), "Calls not counted"),
        ] {
            let said = from_storage(&io);
            assert!(said.contains(says), "{says}: {said}");
        }
        for (own, device, says) in [(100, 101, "agree"), (0, 5 << 20, "Others"), (5 << 20, 0, "Elsewhere")] {
            let said = between_programs("read", own, device);
            assert!(said.contains(says), "{says}: {said}");
        }
        assert!(between_blocks("read", 100, 200).starts_with("Split: 100 bios"));
        assert!(between_blocks("read", 100, 20).starts_with("Merged"));
        assert!(between_blocks("read", 100, 100).contains("agree"));
    }

    /// E4's buffered reads of 8 KiB: 23,421 calls became 46,836 requests of 4 KiB.
    #[test]
    fn buffered_reads_in_pieces_are_amplification() {
        let (calls, bytes) = (23_421, 23_421 * 8192);
        let layers = reads(&io(calls, bytes, bytes), None, Transfers { count: 46_836, bytes });
        let said = layers.differences.join("\n");
        assert!(
            said.contains("Amplification: 23421 calls to read of 8.00 KiB became 46836 requests of 4.00 KiB"),
            "{said}"
        );
        assert!(said.contains("2.000 for each"), "{said}");
        // From memory in the main: the number of requests says nothing of the calls.
        let cached = reads(&io(calls, bytes, 4096), None, Transfers { count: 1, bytes: 4096 });
        assert!(!cached.differences.join("\n").contains("for each"), "{:?}", cached.differences);
    }
}
