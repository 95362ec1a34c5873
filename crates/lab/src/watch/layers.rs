//! Layers side by side: what the program asked of the kernel, what storage gave it, what the
//! kernel asked of the block layer, what the device got for it. Between two layers stands by how
//! much they differ and the name of the difference.
//!
//! Requests of other programs are a row of their own, and in no ratio: with a trace it is known
//! which they are; without one, there is a ratio only where the bytes of program and device agree.

use serde::Serialize;

use super::Total;
use crate::machine::others::in_words;
use crate::machine::program::ProcessIo;
use crate::report::{Column, Figure, Section, Table};
use crate::size::about;
use crate::trace::event::RequestKind;
use crate::trace::session::Traced;
use crate::trace::users;

/// Up to here two layers agree.
const AGREE: f64 = 0.02;

/// One layer of reads or of writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerSum {
    /// The layer in words.
    pub layer: String,
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

/// Bios of one kind, and the requests that they became.
#[derive(Debug, Clone, Copy)]
struct Bios {
    by_program: Transfers,
    by_all: Transfers,
    /// Requests for the program.
    done: Transfers,
}

/// The layers of a watch; with a trace, bios too. `beside` are the programs beside it with the
/// bytes they moved.
pub fn layers(total: &Total, traced: Option<&Traced>, beside: &[(String, u64)]) -> Vec<Layers> {
    let named = match traced {
        Some(traced) => users::others(&traced.users.lines()),
        None => in_words(beside),
    };
    let named = named.as_deref();
    let sums = device_sums(total);
    let transfers = |count, sectors| Transfers { count, bytes: sectors * 512 };
    let bios = |kind: RequestKind| {
        let traced = traced?;
        let counts = traced.tally.counts(kind);
        let (count, sectors) = traced.tally.ours.get(&kind).copied().unwrap_or_default();
        Some(Bios {
            by_program: transfers(count, sectors),
            by_all: transfers(counts.queued, counts.queued_sectors),
            done: traced
                .tally
                .own
                .get(&kind)
                .map_or(Transfers::default(), |own| Transfers { count: own.requests, bytes: own.bytes }),
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
        reads(io, bios(RequestKind::Read), issued(RequestKind::Read, sums.reads), named),
        writes(io, bios(RequestKind::Write), issued(RequestKind::Write, sums.writes), named),
    ]
    .into_iter()
    .filter(|layers| layers.layers.iter().any(|layer| layer.bytes > 0))
    .collect()
}

fn device_sums(total: &Total) -> DeviceSums {
    let mut sums = DeviceSums::default();
    for device in total.counted_once() {
        let times = |rate: f64| (rate * total.seconds).round() as u64;
        sums.reads.count += times(device.r_s);
        sums.reads.bytes += times(device.rkb_s * 1024.0);
        sums.writes.count += times(device.w_s);
        sums.writes.bytes += times(device.wkb_s * 1024.0);
    }
    sums
}

/// From the program down to the device: its calls, its storage, bios, requests for it; then those
/// of others, and of all.
fn stack(
    calls: LayerSum,
    storage: LayerSum,
    bios: Option<Bios>,
    device: Transfers,
    named: Option<&str>,
) -> Vec<LayerSum> {
    let counted =
        |layer: &str, Transfers { count, bytes }| LayerSum { layer: layer.into(), count: Some(count), bytes };
    let others = |count, bytes| {
        let names = named.map_or(String::new(), |names| format!(": {names}"));
        LayerSum { layer: format!("of them for others{names}"), count, bytes }
    };
    let own_bytes = storage.bytes;
    let mut layers = vec![calls, storage];
    match bios {
        Some(Bios { by_program, by_all, done }) => {
            layers.push(counted("bios by the program", by_program));
            layers.push(counted("requests to the device, for the program", done));
            layers.push(counted("bios by all", by_all));
            layers.push(counted("requests to the device, by all", device));
            let count = device.count.saturating_sub(done.count);
            if count > 0 {
                layers.push(others(Some(count), device.bytes.saturating_sub(done.bytes)));
            }
        }
        None => {
            layers.push(counted("requests to the device, by all", device));
            if device.bytes > own_bytes && !agree(own_bytes, device.bytes) {
                layers.push(others(None, device.bytes - own_bytes));
            }
        }
    }
    layers
}

fn reads(io: &ProcessIo, bios: Option<Bios>, device: Transfers, named: Option<&str>) -> Layers {
    let calls =
        LayerSum { layer: "read calls of the program".into(), count: Some(io.syscr), bytes: io.rchar };
    let storage = LayerSum { layer: "storage, for the program".into(), count: None, bytes: io.read_bytes };
    let layers = stack(calls, storage, bios, device, named);
    let mut differences =
        vec![from_storage(io), between_programs("read", io.read_bytes, device.bytes, named)];
    let calls = Transfers { count: io.syscr, bytes: io.rchar };
    differences.extend(below("read", calls, bios, device, io.read_bytes));
    Layers { kind: "read", layers, differences }
}

fn writes(io: &ProcessIo, bios: Option<Bios>, device: Transfers, named: Option<&str>) -> Layers {
    let calls =
        LayerSum { layer: "write calls of the program".into(), count: Some(io.syscw), bytes: io.wchar };
    let storage =
        LayerSum { layer: "to storage, made by the program".into(), count: None, bytes: io.write_bytes };
    let layers = stack(calls, storage, bios, device, named);
    let mut differences =
        vec![to_storage(io), between_programs("write", io.write_bytes, device.bytes, named)];
    let calls = Transfers { count: io.syscw, bytes: io.wchar };
    differences.extend(below("write", calls, bios, device, io.write_bytes));
    Layers { kind: "write", layers, differences }
}

/// From bios to requests, and from calls to requests: those of the program. Without a trace they
/// are all, when the program had all bytes.
fn below(
    verb: &str,
    calls: Transfers,
    bios: Option<Bios>,
    device: Transfers,
    storage_bytes: u64,
) -> Vec<String> {
    let blocks = bios.map(|bios| between_blocks(verb, bios.by_program.count, bios.done.count));
    let own = match bios {
        Some(bios) => Some(bios.done),
        None => Some(device).filter(|device| agree(device.bytes, storage_bytes)),
    };
    let amplified = own.and_then(|own| amplification(verb, calls, own, storage_bytes));
    blocks.filter(|_| own.is_some_and(|own| own.count > 0)).into_iter().chain(amplified).collect()
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
fn between_programs(verb: &str, own: u64, device: u64, named: Option<&str>) -> String {
    let (own_words, device_words) = (about(own as f64), about(device as f64));
    if agree(own, device) {
        return format!("Program and device agree within 2 % ({own_words} and {device_words} to {verb}).");
    }
    if device > own {
        let rest = match named {
            Some(names) => format!("beside it were (all they read and wrote) {names}"),
            None => "the rest is of other programs, of the kernel, or of the file system".into(),
        };
        return format!(
            "Others: the device had {device_words} to {verb}, {own_words} of them for the program; {rest}."
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
        return format!(
            "Bios and requests to {verb} of the program agree within 2 % ({bios} and {requests})."
        );
    }
    let name = if per > 1.0 { "Split" } else { "Merged" };
    format!("{name}: {bios} bios to {verb} of the program became {requests} requests, {per:.3} for each.")
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
            layer.layer.clone(),
            layer.count.map_or("-".into(), |n| n.to_string()),
            about(layer.bytes as f64),
            mean.unwrap_or_else(|| "-".into()),
        ]
    });
    let table = Table {
        title: "From the program to the device".into(),
        note: "Calls, and bytes for the program: by /proc/PID/io of all its processes. Requests: by the trace, else by \
               /proc/diskstats. Others: by the trace with the bytes of this device; else by /proc/PID/io, \
               with all their bytes."
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
    use super::super::iostat::DeviceSecond;
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
            let said = between_programs("read", own, device, None);
            assert!(said.contains(says), "{says}: {said}");
        }
        let named = between_programs("read", 0, 5 << 20, Some("dd (pid 7) 5.00 MiB"));
        assert!(named.contains("dd (pid 7) 5.00 MiB"), "{named}");
        assert!(between_blocks("read", 100, 200).starts_with("Split: 100 bios"));
        assert!(between_blocks("read", 100, 20).starts_with("Merged"));
        assert!(between_blocks("read", 100, 100).contains("agree"));
    }

    /// E4's buffered reads of 8 KiB: 23,421 calls became 46,836 requests of 4 KiB.
    #[test]
    fn buffered_reads_in_pieces_are_amplification() {
        let (calls, bytes) = (23_421, 23_421 * 8192);
        let layers = reads(&io(calls, bytes, bytes), None, Transfers { count: 46_836, bytes }, None);
        let said = layers.differences.join("\n");
        assert!(
            said.contains("Amplification: 23421 calls to read of 8.00 KiB became 46836 requests of 4.00 KiB"),
            "{said}"
        );
        assert!(said.contains("2.000 for each"), "{said}");
        // From memory in the main: the number of requests says nothing of the calls.
        let cached = reads(&io(calls, bytes, 4096), None, Transfers { count: 1, bytes: 4096 }, None);
        assert!(!cached.differences.join("\n").contains("for each"), "{:?}", cached.differences);
    }

    #[test]
    fn a_read_through_a_loop_device_counts_once() {
        let reads = DeviceSecond { r_s: 100.0, rkb_s: 400.0, ..DeviceSecond::default() };
        let devices = ["loop0", "vda"].map(|name| (name.to_owned(), reads));
        let mut total = Total { devices: devices.into(), seconds: 2.0, ..Total::default() };
        assert_eq!(device_sums(&total).reads, Transfers { count: 400, bytes: 1600 << 10 });
        total.counted_elsewhere = vec!["loop0".into()];
        assert_eq!(device_sums(&total).reads, Transfers { count: 200, bytes: 800 << 10 });
    }

    /// Ten calls of a program that sleeps, while another one reads: no ratio, and a row of others.
    #[test]
    fn requests_of_others_amplify_nothing() {
        let beside = Transfers { count: 3209, bytes: 3209 * 4096 };
        let named = Some("dd (pid 7) 12.5 MiB");
        let sleeps = io(10, 6000, 8192);
        let untraced = reads(&sleeps, None, beside, named);
        let said = untraced.differences.join("\n");
        assert!(!said.contains("for each") && said.contains("dd (pid 7)"), "{said}");
        let row = untraced.layers.last().unwrap();
        assert_eq!(row.layer, "of them for others: dd (pid 7) 12.5 MiB");
        assert_eq!((row.count, row.bytes), (None, beside.bytes - 8192));
        // With a trace, the program's two requests are told from the rest.
        let own = Transfers { count: 2, bytes: 8192 };
        let traced = reads(&sleeps, Some(Bios { by_program: own, by_all: beside, done: own }), beside, named);
        let said = traced.differences.join("\n");
        assert!(said.contains("10 calls to read of 600 B became 2 requests of 4.00 KiB"), "{said}");
        let row = traced.layers.last().unwrap();
        assert_eq!((row.count, row.bytes), (Some(3207), beside.bytes - 8192));
    }
}
