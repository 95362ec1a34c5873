//! Every engine moves the bytes the job says, no others, and reports what cannot be done.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;

use super::*;
use crate::memory::mapping::HUGE_BYTES;

const KIB: u64 = 1024;

fn job(engine: JobEngine, bs: u64, len: u64) -> Job {
    Job {
        engine,
        policy: Policy::Elevator,
        rw: JobDirection::Read,
        bs,
        huge_pages: false,
        iodepth: engine.most_depth().unwrap_or(8),
        queue_depth: None,
        ioprio: None,
        verify: None,
        places: Places::new(Pattern::Random, bs, bs, 0, len, 1).unwrap(),
        first: 0,
        most: len / bs,
        runtime: Duration::from_secs(60),
        interval: Duration::from_millis(100),
    }
}

fn file_of(len: u64) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&vec![0u8; len as usize]).unwrap();
    file.flush().unwrap();
    file
}

const ENGINES: [JobEngine; 5] =
    [JobEngine::Uring, JobEngine::Threads, JobEngine::Inline, JobEngine::Mmap, JobEngine::Vectored];

#[test]
fn buffers_lie_side_by_side_and_do_not_overlap() {
    for (bs, huge_pages) in [(1000, false), (4096, false), (1000, true), (5000, true)] {
        let write = Job { rw: JobDirection::Write, huge_pages, ..job(JobEngine::Uring, bs, 8 * bs) };
        let mut buffers = buffers::Buffers::new(&write, 3);
        let mut slots: Vec<buffers::JobBuffer<'_>> = buffers.each().collect();
        let all: Vec<&mut [u8]> = slots.iter_mut().map(|slot| slot.of(true)).collect();
        let starts: Vec<usize> = all.iter().map(|buf| buf.as_ptr() as usize).collect();
        let stride = bs.next_multiple_of(4096) as usize;
        assert_eq!(starts, [starts[0], starts[0] + stride, starts[0] + 2 * stride]);
        assert!(starts[0].is_multiple_of(4096));
        assert!(all.iter().all(|buf| buf.len() as u64 == bs && buf.iter().filter(|b| **b == 0).count() < 50));
        assert!(all[0] != all[1] && all[1] != all[2]);
    }
}

#[test]
fn a_mix_does_not_write_what_it_has_read() {
    let rw = JobDirection::of_reads(50, 1);
    let mixed = Job { rw, ..job(JobEngine::Uring, 4096, 8 * 4096) };
    let mut buffers = buffers::Buffers::new(&mixed, 3);
    let mut all: Vec<usize> = Vec::new();
    for mut slot in buffers.each() {
        assert!(slot.of(false).iter().all(|b| *b == 0) && slot.of(true).iter().any(|b| *b != 0));
        all.extend([slot.of(false).as_ptr() as usize, slot.of(true).as_ptr() as usize]);
    }
    all.dedup();
    assert_eq!(all.len(), 6);
}

#[test]
fn every_engine_reads_as_many_as_asked() {
    let file = file_of(256 * KIB);
    let opened = JobFile::open(file.path(), false, false).unwrap();
    for engine in ENGINES {
        let result = run_job(&opened, &job(engine, 4 * KIB, 256 * KIB), &AtomicBool::new(false)).unwrap();
        assert_eq!((result.total_ios, result.io_bytes), (64, 256 * KIB), "{engine:?}");
        assert_eq!(result.clat_ns.len(), 64);
        assert_eq!(result.per_interval.iter().sum::<u64>(), 64);
        assert!(result.iops() > 0.0 && result.bw_bytes() > 0.0);
    }
}

#[test]
fn every_engine_writes_each_place_once() {
    for engine in ENGINES {
        let file = file_of(256 * KIB);
        let opened = JobFile::open(file.path(), true, false).unwrap();
        let write = Job { rw: JobDirection::Write, ..job(engine, 4 * KIB, 256 * KIB) };
        let half = Job { most: 32, ..write.clone() };
        run_job(&opened, &half, &AtomicBool::new(false)).unwrap();
        assert_eq!(written_blocks(file.path()), 32, "{engine:?}");
        let rest = Job { first: 32, most: 32, ..write };
        run_job(&opened, &rest, &AtomicBool::new(false)).unwrap();
        assert_eq!(written_blocks(file.path()), 64, "{engine:?}");
    }
}

/// Blocks of a stamped job that its first `n` requests wrote, as they must be in the file.
fn check_mixed(path: &std::path::Path, job: &Job, n: u64, what: &str) {
    let bytes = std::fs::read(path).unwrap();
    let mut written = 0;
    for i in job.first..job.first + n {
        let (write, at) = job.request(i);
        let block = &bytes[at as usize..][..job.bs as usize];
        match write {
            true => check_stamp(block, at, 9).unwrap_or_else(|e| panic!("{what}: {e}")),
            false => assert!(block.iter().all(|b| *b == 0), "{what}: a read place is left alone"),
        }
        written += u64::from(write);
    }
    assert!(written > 0 && written < n, "{what}: {written} of {n} write");
}

#[test]
fn every_engine_mixes_reads_and_stamped_writes_and_counts_them_apart() {
    let mixed = |engine| Job {
        rw: JobDirection::of_reads(70, 5),
        verify: Some(9),
        ..job(engine, 4 * KIB, 1024 * KIB)
    };
    let stop = AtomicBool::new(false);
    let check = |file: &tempfile::NamedTempFile, job: &Job, result: &JobResult, what: &str| {
        let writes = (0..256).filter(|i| job.rw.writes(*i)).count() as u64;
        assert_eq!((result.read.total_ios, result.write.total_ios), (256 - writes, writes), "{what}");
        assert_eq!(result.write.io_bytes, writes * 4 * KIB);
        assert_eq!(result.clat_ns.len(), result.read.clat_ns.len() + result.write.clat_ns.len());
        check_mixed(file.path(), job, 256, what);
    };
    for engine in ENGINES {
        let file = file_of(1024 * KIB);
        let opened = JobFile::open(file.path(), true, false).unwrap();
        let job = mixed(engine);
        let result = run_job(&opened, &job, &stop).unwrap();
        check(&file, &job, &result, &format!("{engine:?}"));
    }
    for engine in IoEngine::ALL {
        let file = file_of(1024 * KIB);
        let device = crate::FileDevice::open(file.path(), crate::Access::ReadWrite, false).unwrap();
        let job = Job { queue_depth: Some(2), ..mixed(JobEngine::Queue(engine)) };
        let result = run_job_on(&(Arc::new(device) as _), &job, &stop).unwrap();
        check(&file, &job, &result, &format!("{engine:?} behind a queue"));
    }
}

#[test]
fn every_engine_takes_zipf_places_and_a_priority() {
    let file = file_of(256 * KIB);
    let opened = JobFile::open(file.path(), false, false).unwrap();
    for engine in ENGINES {
        let uniform = job(engine, 4 * KIB, 256 * KIB);
        let places = uniform.places.by_zipf(1.2);
        let job = Job { places, most: 500, ioprio: Some("be:7".parse().unwrap()), ..uniform };
        let result = run_job(&opened, &job, &AtomicBool::new(false)).unwrap();
        assert_eq!(result.total_ios, 500, "{engine:?}");
    }
    let device = crate::FileDevice::open(file.path(), crate::Access::Read, false).unwrap();
    let behind = Job {
        ioprio: Some("idle".parse().unwrap()),
        ..job(JobEngine::Queue(IoEngine::Uring), 4 * KIB, 256 * KIB)
    };
    let refused = run_job_on(&(Arc::new(device) as _), &behind, &AtomicBool::new(false)).unwrap_err();
    assert!(refused.to_string().contains("priorities of their classes"), "{refused}");
}

fn written_blocks(path: &std::path::Path) -> usize {
    let mut bytes = Vec::new();
    File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
    bytes.chunks(4096).filter(|block| block.iter().any(|b| *b != 0)).count()
}

#[test]
fn every_engine_transfers_buffers_in_huge_pages() {
    for (engine, bs) in
        ENGINES.into_iter().flat_map(|engine| [(engine, 4 * KIB), (engine, HUGE_BYTES as u64)])
    {
        let file = file_of(4 * bs);
        let opened = JobFile::open(file.path(), true, false).unwrap();
        let read = Job { huge_pages: true, ..job(engine, bs, 4 * bs) };
        for job in [Job { rw: JobDirection::Write, ..read.clone() }, read] {
            let result = run_job(&opened, &job, &AtomicBool::new(false)).unwrap();
            assert_eq!((result.total_ios, result.io_bytes), (4, 4 * bs), "{engine:?}");
        }
        assert_eq!(written_blocks(file.path()) as u64, 4 * bs / 4096, "{engine:?}");
    }
}

#[test]
#[allow(unsafe_code)]
fn a_ring_lets_go_of_its_file() {
    let path = file_of(64 << 10).into_temp_path();
    // A lease is given while the file is open for writing nowhere else.
    let is_alone = || {
        let own = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        // SAFETY: a call without memory, on a descriptor that is open.
        unsafe { libc::fcntl(own.as_raw_fd(), libc::F_SETLEASE, libc::c_int::from(libc::F_WRLCK)) == 0 }
    };
    if !is_alone() {
        return println!("skipped: no leases here");
    }
    let file = JobFile::open(&path, true, false).unwrap();
    assert!(!is_alone());
    if let Err(e) = run_job(&file, &job(JobEngine::Uring, 4096, 64 << 10), &AtomicBool::new(false)) {
        return println!("skipped: {e}");
    }
    drop(file);
    // The kernel ends a ring in the background.
    let alone = (0..6000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        is_alone()
    });
    assert!(alone, "the file is still open");
}

#[test]
fn queues_carry_jobs_too() {
    let file = file_of(256 * KIB);
    let device = crate::FileDevice::open(file.path(), crate::Access::Read, false).unwrap();
    let device: Arc<dyn Device> = Arc::new(device);
    for engine in [IoEngine::Uring, IoEngine::Threads, IoEngine::Inline] {
        let job = job(JobEngine::Queue(engine), 4 * KIB, 256 * KIB);
        let result = run_job_on(&device, &job, &AtomicBool::new(false)).unwrap();
        assert_eq!(result.total_ios, 64, "{engine:?}");
    }
}

#[test]
fn time_and_stop_end_a_job() {
    let file = file_of(64 * KIB);
    let opened = JobFile::open(file.path(), false, false).unwrap();
    for engine in ENGINES {
        let endless =
            Job { most: u64::MAX, runtime: Duration::from_millis(50), ..job(engine, 4 * KIB, 64 * KIB) };
        let result = run_job(&opened, &endless, &AtomicBool::new(false)).unwrap();
        assert!(result.total_ios > 0 && result.runtime_ns < 10_000_000_000, "{engine:?}");
        let stopped = Job { runtime: Duration::from_secs(3600), ..endless };
        let result = run_job(&opened, &stopped, &AtomicBool::new(true)).unwrap();
        assert!(result.total_ios <= 16, "{engine:?}: {}", result.total_ios);
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let file = file_of(64 * KIB);
    let opened = JobFile::open(file.path(), false, false).unwrap();
    let stop = AtomicBool::new(false);
    let beyond = job(JobEngine::Inline, 4 * KIB, 128 * KIB);
    let error = run_job(&opened, &beyond, &stop).unwrap_err().to_string();
    assert!(error.contains("65536 bytes only"), "{error}");
    let none = Job { iodepth: 0, ..job(JobEngine::Uring, 4 * KIB, 64 * KIB) };
    assert!(run_job(&opened, &none, &stop).is_err());
    // A file that shrinks under the job.
    file.as_file().set_len(32 * KIB).unwrap();
    for engine in [JobEngine::Uring, JobEngine::Threads, JobEngine::Inline, JobEngine::Vectored] {
        let error = run_job(&opened, &job(engine, 4 * KIB, 64 * KIB), &stop).unwrap_err().to_string();
        assert!(error.contains("only 0 bytes were moved"), "{engine:?}: {error}");
    }
    // Written through a descriptor that may only read.
    for engine in ENGINES {
        let write = Job { rw: JobDirection::Write, ..job(engine, 4 * KIB, 32 * KIB) };
        let opened = JobFile::open(file.path(), false, false).unwrap();
        assert!(run_job(&opened, &write, &stop).is_err(), "{engine:?}");
    }
}

#[test]
fn direct_jobs_keep_to_the_grid() {
    let file = file_of(256 * KIB);
    let Ok(opened) = JobFile::open(file.path(), false, true) else {
        println!("skipped: no O_DIRECT for temporary files here");
        return;
    };
    let stop = AtomicBool::new(false);
    let places = Places::new(Pattern::Random, 4 * KIB, 100, 0, 256 * KIB, 1).unwrap();
    let odd = Job { places, ..job(JobEngine::Uring, 4 * KIB, 256 * KIB) };
    let error = run_job(&opened, &odd, &stop).unwrap_err().to_string();
    assert!(error.contains("multiples of"), "{error}");
    for engine in [JobEngine::Uring, JobEngine::Threads, JobEngine::Inline, JobEngine::Vectored] {
        assert_eq!(run_job(&opened, &job(engine, 4 * KIB, 256 * KIB), &stop).unwrap().total_ios, 64);
    }
}

/// As on a full disk: the file has no page there any more. Other maps go on.
#[test]
fn a_map_without_a_page_fails_and_does_not_end_the_process() {
    let len = 1 << 20;
    let file = file_of(len);
    let other = file_of(len);
    for rw in [JobDirection::Write, JobDirection::Read] {
        file.as_file().set_len(len).unwrap();
        let open = |file: &tempfile::NamedTempFile| JobFile::open(file.path(), true, false).unwrap();
        let (cut, whole) = (open(&file), open(&other));
        file.as_file().set_len(0).unwrap();
        let job = Job { rw, ..job(JobEngine::Mmap, 4096, len) };
        let stop = AtomicBool::new(false);
        for _ in 0..3 {
            let error = run_job(&cut, &job, &stop).unwrap_err().to_string();
            assert!(error.contains("could not have a page"), "{error}");
            assert_eq!(run_job(&whole, &job, &stop).unwrap().total_ios, 256);
        }
    }
}
