//! One cell: workers scan the table, each adding up a checksum of its bytes, while another load
//! may go on beside them.

use std::io::IoSliceMut;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Instant;

use snowmelt_io::{
    Access, AlignedBuf, Clock, Device, FileDevice, IoEngine, Piece, Policy, QueueConfig, ReadDevice,
    ScanDevices, ScanReader, SharedScan,
};
use snowmelt_io_experiments::{PolicyName, TunedPolicy};

use super::beside::with_beside;
use super::plan::{Chunks, Data, Setup, WorkerReads, Workers};
use super::table::ScanTable;
use crate::LabError;
use crate::run::arguments::OnOff;
use crate::stats::LatencySummary;

/// Length of the pieces of a shared scan.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces a shared scan reads ahead.
const AHEAD: usize = 8;
/// Device requests a shared scan keeps outstanding.
const DEPTH: u32 = 4;

/// The result of a cell.
#[derive(Debug, Clone, Default)]
pub struct Scanned {
    /// From the common start to the end of the last worker.
    pub elapsed_s: f64,
    /// When each user was through, sorted.
    pub user_s: Vec<f64>,
    /// Bytes handed to workers.
    pub bytes: u64,
    /// Sum over the first word of every block of 4 KiB: the same for every way of reading the
    /// same bytes as often.
    pub checksum: u64,
    /// Times of the reads or writes beside the scan.
    pub beside: LatencySummary,
}

#[derive(Default)]
struct ScanSums {
    bytes: AtomicU64,
    checksum: AtomicU64,
}

impl ScanSums {
    fn add(&self, bytes: &[u8]) {
        let words = bytes
            .chunks_exact(4096)
            .map(|block| u64::from_le_bytes(block[..8].try_into().expect("a block has eight bytes")));
        self.checksum.fetch_add(words.fold(0, u64::wrapping_add), Ordering::Relaxed);
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }
}

/// Opens every file of the table anew: the kernel takes the read-ahead of a device when a file
/// is opened.
fn open(table: &ScanTable, direct: OnOff) -> Result<Vec<Arc<FileDevice>>, LabError> {
    let open = |path: &PathBuf| {
        let device = FileDevice::open(path, Access::Read, direct == OnOff::On)?;
        if direct == OnOff::On && !device.is_direct() {
            return Err(LabError::refused(
                path.display(),
                "its file system refuses O_DIRECT",
                "scan it with --direct off",
            ));
        }
        Ok(Arc::new(device))
    };
    table.files.iter().map(open).collect()
}

/// The work of one worker, with its files open.
struct Worker {
    user: usize,
    source: WorkerInput,
}

/// Where a worker has its bytes from.
enum WorkerInput {
    /// The next piece of a scan that reads ahead: the one all share, or its own.
    Pieces(Arc<ScanReader>),
    /// A range of the table, read by the worker itself.
    Range(Vec<Arc<FileDevice>>, (u64, u64)),
}

impl Worker {
    fn work(
        &self,
        table: &ScanTable,
        setup: &Setup,
        sums: &ScanSums,
        stop: &AtomicBool,
    ) -> Result<(), LabError> {
        match &self.source {
            WorkerInput::Pieces(reader) => take_pieces(reader, sums, stop),
            WorkerInput::Range(files, range) => read_range(table, &setup.chunks, files, *range, sums, stop),
        }
    }
}

/// The workers of a cell. Their files are opened here, before the start, as the processes of a
/// parallel query open theirs.
fn workers(table: &ScanTable, setup: &Setup, dop: u32) -> Result<Vec<Worker>, LabError> {
    let users = u64::from(setup.users);
    let part = |user| match setup.data {
        Data::Same => (0, table.len),
        Data::Different => table.part(0, table.len, user, users),
    };
    let parts: Vec<(u64, u64)> = (0..users).map(part).collect();
    let shared = match setup.workers {
        Workers::Coordinated => Some(share(table, setup, &parts)?),
        Workers::Independent => None,
    };
    let mut all = Vec::new();
    for (user, part) in parts.iter().enumerate() {
        let reader = shared.as_ref().map(|scans| Arc::new(scans[user % scans.len()].join()));
        for worker in 0..dop {
            let range = table.part(part.0, part.1, u64::from(worker), u64::from(dop));
            let source = match (&reader, setup.reads) {
                (Some(reader), _) => WorkerInput::Pieces(reader.clone()),
                (None, Some(reads)) if reads.engine != IoEngine::Inline && range.0 < range.1 => {
                    WorkerInput::Pieces(read_ahead(table, setup, reads, range)?)
                }
                _ => WorkerInput::Range(open(table, setup.direct)?, range),
            };
            all.push(Worker { user, source });
        }
    }
    assert_eq!(all.len(), (setup.users * dop) as usize, "every user has its workers");
    Ok(all)
}

/// Runs one cell. When `stop` is set, workers end with the read they are at, and the result
/// counts for nothing.
///
/// # Errors
/// A file cannot be opened or read, or a thread cannot be started.
pub fn scan(
    table: &ScanTable,
    setup: &Setup,
    dop: u32,
    scratch: Option<&Path>,
    stop: &AtomicBool,
) -> Result<Scanned, LabError> {
    let workers = workers(table, setup, dop)?;
    let work = || all_work(workers, table, setup, dop, stop);
    let (mut scanned, beside) = with_beside(table, setup, scratch, work)?;
    scanned.beside = beside.times;
    Ok(scanned)
}

/// Starts the workers at once, and waits for the last.
fn all_work(
    workers: Vec<Worker>,
    table: &ScanTable,
    setup: &Setup,
    dop: u32,
    stop: &AtomicBool,
) -> Result<Scanned, LabError> {
    let sums = ScanSums::default();
    let start = Barrier::new(workers.len() + 1);
    let mut scanned = Scanned::default();
    std::thread::scope(|scope| -> Result<(), LabError> {
        let mut handles = Vec::new();
        for (number, worker) in workers.into_iter().enumerate() {
            let (sums, start) = (&sums, &start);
            let work = move || -> Result<(usize, Instant), LabError> {
                start.wait();
                worker.work(table, setup, sums, stop)?;
                Ok((worker.user, Instant::now()))
            };
            let thread = std::thread::Builder::new().name(format!("worker {}", number as u32 % dop));
            let thread = thread.spawn_scoped(scope, work);
            handles.push(thread.map_err(|e| LabError::system("start a worker", e))?);
        }
        start.wait();
        let begun = Instant::now();
        let mut ends = vec![begun; setup.users as usize];
        let mut failure = None;
        for handle in handles {
            match handle.join().expect("workers do not panic") {
                Ok((user, end)) => ends[user] = ends[user].max(end),
                Err(e) => drop(failure.get_or_insert(e)),
            }
        }
        scanned.user_s = ends.iter().map(|end| end.duration_since(begun).as_secs_f64()).collect();
        scanned.user_s.sort_by(f64::total_cmp);
        scanned.elapsed_s = scanned.user_s.last().copied().unwrap_or(0.0);
        failure.map_or(Ok(()), Err)
    })?;
    scanned.bytes = sums.bytes.into_inner();
    scanned.checksum = sums.checksum.into_inner();
    Ok(scanned)
}

/// The shared scans of a cell: one of the whole table for all users, or one for each part; over
/// the same queues.
fn share(table: &ScanTable, setup: &Setup, parts: &[(u64, u64)]) -> Result<Vec<Arc<SharedScan>>, LabError> {
    let devices = open(table, setup.direct)?.into_iter().map(|device| device as Arc<dyn Device>).collect();
    let config = QueueConfig {
        policy: setup.queue.map_or(Policy::Elevator, TunedPolicy::policy),
        depth: Some(DEPTH),
        max_request_bytes: PIECE_BYTES as u64,
        ..QueueConfig::default()
    };
    let devices = ScanDevices::open(devices, &config, &Clock::real())?;
    let parts = if setup.data == Data::Same { &parts[..1] } else { parts };
    let ahead = AHEAD * table.files.len();
    Ok(parts.iter().map(|(from, to)| devices.table(table.pieces(*from, *to, PIECE_BYTES), ahead)).collect())
}

fn take_pieces(reader: &ScanReader, sums: &ScanSums, stop: &AtomicBool) -> Result<(), LabError> {
    while let Some(piece) = reader.next() {
        sums.add(&piece?);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}

/// A scan of a worker's own: its range, chunk by chunk, with `reads.depth` reads in flight. Nothing
/// is read before it takes the first.
fn read_ahead(
    table: &ScanTable,
    setup: &Setup,
    reads: WorkerReads,
    range: (u64, u64),
) -> Result<Arc<ScanReader>, LabError> {
    let files = open(table, setup.direct)?.into_iter().map(|device| device as Arc<dyn Device>).collect();
    let config = QueueConfig {
        engine: reads.engine,
        policy: PolicyName::Fifo.policy(),
        depth: Some(reads.depth),
        gap_bytes: Some(0),
        max_request_bytes: setup.chunks.largest() as u64, // a chunk is a read, as it is for others
        ..QueueConfig::default()
    };
    let devices = ScanDevices::open(files, &config, &Clock::real())?;
    let pieces = chunks_of(table, &setup.chunks, range.0, range.1).collect();
    Ok(Arc::new(devices.table(pieces, reads.depth as usize).join()))
}

/// A range of the table, in chunks whose sizes take turns.
fn chunks_of<'a>(
    table: &'a ScanTable,
    chunks: &'a Chunks,
    from: u64,
    to: u64,
) -> impl Iterator<Item = Piece> + 'a {
    let mut at = from;
    chunks.bytes.iter().cycle().map_while(move |size| {
        let piece = (at < to).then(|| table.piece(at, *size, to))?;
        at += piece.len as u64;
        Some(piece)
    })
}

fn read_range(
    table: &ScanTable,
    chunks: &Chunks,
    files: &[Arc<FileDevice>],
    range: (u64, u64),
    sums: &ScanSums,
    stop: &AtomicBool,
) -> Result<(), LabError> {
    let mut buffer = AlignedBuf::new(chunks.largest());
    for piece in chunks_of(table, chunks, range.0, range.1) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let bytes = &mut buffer[..piece.len];
        files[piece.device].read_at(&mut [IoSliceMut::new(bytes)], piece.offset)?;
        sums.add(bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Beside, Layout, Lists};
    use super::*;

    #[test]
    fn every_way_of_scanning_reads_the_same_bytes() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut files = Vec::new();
        for i in 0..4u64 {
            let path = dir.path().join(format!("f{i}"));
            let bytes: Vec<u8> = (0..(2u64 << 20) / 8).flat_map(|n| (n * 31 + i * 7).to_le_bytes()).collect();
            std::fs::write(&path, bytes).expect("written");
            files.push((path, 2 << 20));
        }
        let lists = Lists {
            schedulers: vec!["as-is".parse().expect("known")],
            read_ahead_kb: vec![],
            direct: vec![OnOff::Off],
            workers: vec![Workers::Independent, Workers::Coordinated],
            chunks: vec!["8k+64k".parse().expect("sizes")],
            reads: vec![
                WorkerReads::SYNC,
                WorkerReads { engine: IoEngine::Uring, depth: 5 },
                WorkerReads { engine: IoEngine::Threads, depth: 2 },
            ],
            layouts: vec![Layout::Single, Layout::Jbod, Layout::StripeFine],
            users: vec![1, 3],
            data: vec![Data::Same, Data::Different],
            beside: vec![Beside::Nothing],
            queues: Vec::new(),
            by_command: false,
        };
        for layout in [Layout::Single, Layout::Jbod, Layout::StripeFine] {
            let table = ScanTable::new(files.clone(), layout, None).expect("large enough");
            let mut sums = Vec::new();
            for setup in lists.setups().iter().filter(|s| s.layout == layout) {
                for dop in [1, 3, 20] {
                    let go_on = AtomicBool::new(false);
                    let scanned = scan(&table, setup, dop, None, &go_on).expect("scanned");
                    let times = if setup.data == Data::Same { u64::from(setup.users) } else { 1 };
                    assert_eq!(scanned.bytes, table.len * times, "{setup:?} {dop}");
                    assert_eq!(scanned.user_s.len(), setup.users as usize);
                    sums.push(scanned.checksum.wrapping_div(times));
                }
            }
            assert!(sums.windows(2).all(|w| w[0] == w[1]), "{layout}: {sums:?}");
        }
    }

    #[test]
    fn workers_that_are_told_to_stop_do_not_read_on() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), vec![1; 8 << 20]).expect("written");
        let files = vec![(file.path().to_path_buf(), 8 << 20)];
        let table = ScanTable::new(files, Layout::Single, None).expect("large enough");
        let ahead = WorkerReads { engine: IoEngine::Threads, depth: 4 };
        for (workers, reads) in [
            (Workers::Independent, Some(WorkerReads::SYNC)),
            (Workers::Independent, Some(ahead)),
            (Workers::Coordinated, None),
        ] {
            let setup = Setup {
                scheduler: "as-is".parse().expect("known"),
                read_ahead_kb: None,
                direct: OnOff::Off,
                workers,
                chunks: "64k".parse().expect("a size"),
                reads,
                layout: Layout::Single,
                users: 1,
                data: Data::Same,
                beside: Beside::Nothing,
                queue: None,
            };
            let scanned = scan(&table, &setup, 2, None, &AtomicBool::new(true)).expect("ended");
            assert!(scanned.bytes < table.len, "{workers}: {}", scanned.bytes);
        }
    }
}
