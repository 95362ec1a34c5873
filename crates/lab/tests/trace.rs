//! The trace, on pages recorded from a kernel (6.18, a loop device, mq-deadline), and live where root and tracefs allow it.
//!
//! Recorded: three reads of 256 KiB past the page cache with max_sectors_kb 64, five of 4 KiB, six pages written and synced, two
//! buffered reads of 8 KiB. `diskstats.txt` holds the device's line before and after.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use snowmelt_lab::diskstats::DiskCounts;
use snowmelt_lab::trace::blktrace::BlktraceFiles;
use snowmelt_lab::trace::event::{Action, Decoded, Decoder, Kind};
use snowmelt_lab::trace::format::Format;
use snowmelt_lab::trace::ring_page::RingPage;
use snowmelt_lab::trace::session::{Follow, Options, Session};
use snowmelt_lab::trace::tally::Tally;
use snowmelt_lab::trace::target::Target;
use snowmelt_lab::undo::Undo;

const FORMATS: &str = include_str!("data/trace/formats.txt");
const PAGES: &[u8] = include_bytes!("data/trace/ring.pages");
const DISKSTATS: &str = include_str!("data/trace/diskstats.txt");
const LOOP0: u32 = 7 << 20;

fn decoder() -> Decoder {
    let formats: Vec<(Action, Format)> = Action::EVENTS
        .iter()
        .map(|(action, event)| {
            let name = event.strip_prefix("block/").expect("a block event");
            let start = FORMATS.find(&format!("name: {name}\n")).expect("it was recorded");
            let text = &FORMATS[start..];
            let end = text[5..].find("name: ").map_or(text.len(), |next| next + 5);
            (*action, Format::parse(&text[..end]).expect("a format"))
        })
        .collect();
    Decoder::new(&formats, None).expect("all fields are there")
}

fn recorded() -> Vec<Decoded> {
    let decoder = decoder();
    let pages = PAGES.chunks(4096).map(|page| RingPage::new(page).expect("a page"));
    pages
        .flat_map(|page| page.events().filter_map(|(t, e)| decoder.decode(t, 1, e)).collect::<Vec<_>>())
        .collect()
}

fn blocks(events: &[Decoded]) -> impl Iterator<Item = &snowmelt_lab::trace::event::BlockEvent> {
    events.iter().filter_map(|event| match event {
        Decoded::Block(event) => Some(event),
        Decoded::Fork { .. } => None,
    })
}

#[test]
fn recorded_pages_count_what_diskstats_counted() {
    let events = recorded();
    assert_eq!(events.len(), 115, "as many as the kernel said it had written");
    let start = blocks(&events).next().expect("events").time_ns;
    let mut tally = Tally::new(start, 1_000_000_000);
    blocks(&events).for_each(|event| {
        tally.add(event, None);
    });
    tally.finish(start + 500_000_000);
    let (before, after) = DISKSTATS.split_once('\n').expect("two lines");
    let counts = |text| DiskCounts::parse(text, "loop0").expect("the device's line");
    let disk = counts(after).since(&counts(before));
    let (reads, writes, flushes) = (tally.of(Kind::Read), tally.of(Kind::Write), tally.of(Kind::Flush));
    assert_eq!((reads.completed, reads.completed_sectors), (disk.reads, disk.read_sectors));
    assert_eq!((writes.completed, writes.completed_sectors), (disk.writes, disk.write_sectors));
    assert_eq!((reads.merged, writes.merged), (disk.read_merges, disk.write_merges));
    assert_eq!(flushes.completed, disk.flushes);
    // Three reads of 256 KiB became twelve requests of 64: nine splits.
    assert_eq!((reads.split, reads.issued), (9, 19));
    // Six pages became one request; the sync is an empty write, and a flush at the device.
    assert_eq!((writes.queued, writes.merged, writes.issued, flushes.issued), (7, 5, 1, 1));
    assert_eq!((tally.unmatched(), tally.outstanding()), (0, 0));
    assert_eq!(tally.q2c[&Kind::Read].summary().count, reads.queued);
    assert_eq!(tally.askers["dd"], reads.queued + writes.queued + flushes.queued);
}

#[test]
fn blkparse_and_btt_accept_the_export() {
    let events = recorded();
    let dir = tempfile::tempdir().expect("a folder");
    let mut files = BlktraceFiles::create(&dir.path().join("loop0"), LOOP0);
    blocks(&events).for_each(|event| files.write(event).expect("written"));
    assert_eq!(files.finish().expect("written"), 2);
    let run = |name: &str, args: &[&str]| {
        let output = std::process::Command::new(name).args(args).current_dir(dir.path()).output();
        output.ok().map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
    };
    let Some(text) = run("blkparse", &["-i", "loop0", "-d", "loop0.bin"]) else {
        eprintln!("skipped: blkparse is not installed");
        return;
    };
    for want in ["Reads Queued:          10,", "Writes Completed:        2,", "Write Merges:            5,"] {
        assert!(text.contains(want), "{want}\n{text}");
    }
    // blkparse counts a flush among the reads.
    assert!(text.contains("Read Dispatches:       20,"), "{text}");
    assert!(text.contains("Skips: 0 forward"), "{text}");
    assert!(text.contains(" X  RS 0 / 128 [dd]"), "splits and names are told:\n{text}");
    let btt = run("btt", &["-i", "loop0.bin"]).expect("btt comes with blkparse");
    let count = |name: &str| {
        let line = btt.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().last().unwrap_or_default().to_string()
    };
    // btt does not follow the parts of a split bio to their ends, so only the first half of the way is compared.
    assert_eq!((count("Q2G").as_str(), count("Q2M").as_str()), ("20", "5"), "{btt}");
}

/// A loop device over a file, or the reason why not.
fn loop_device(dir: &Path, undo: &Undo) -> Option<std::path::PathBuf> {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
        eprintln!("skipped: needs root and loop devices");
        return None;
    }
    let backing = dir.join("backing");
    std::fs::write(&backing, vec![1u8; 8 << 20]).expect("written");
    let options = snowmelt_io::LoopOptions { direct_io: false, ..Default::default() };
    match undo.attach_loop(&backing, &options) {
        Ok((_, device)) => Some(device),
        Err(e) => {
            eprintln!("skipped: {e}");
            None
        }
    }
}

#[test]
fn a_live_trace_agrees_with_diskstats_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let undo = Undo::open_in(&dir.path().join("state"), "test").expect("a journal");
    let Some(device) = loop_device(dir.path(), &undo) else { return };
    let target = Target::of(&device).expect("a block device");
    let options = Options {
        interval: Duration::from_millis(100),
        buffer_kb: 1024,
        blktrace: None,
        requests: None,
        follow: Follow::Program,
    };
    let mut session = match Session::start(target, options, &undo) {
        Ok(session) => session,
        Err(e) => return eprintln!("skipped: {e}"),
    };
    session.follow(Some(std::process::id())).expect("reading");
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    let file = File::options().read(true).custom_flags(direct).open(&device).expect("opened");
    let mut buf = snowmelt_io::AlignedBuf::new(4096);
    for i in 0..300u64 {
        file.read_exact_at(&mut buf, (i * 7919 % 2048) * 4096).expect("read");
    }
    let mut first = vec![0; 64 << 10];
    File::open(&device).and_then(|mut file| file.read_exact(&mut first)).expect("read");
    let traced = session.finish().expect("a trace");
    assert!(traced.doubts().is_empty(), "{:?}", traced.doubts());
    let reads = traced.tally.of(Kind::Read);
    assert!(traced.exact && reads.completed > 300, "{reads:?}");
    assert_eq!(traced.tally.ours[&Kind::Read].0, reads.queued, "all of it was ours");
    drop(file);
    undo.undo().expect("undone");
    let left = std::fs::read_to_string("/proc/mounts").expect("mounts");
    let ours = format!("tracefs-{}", std::process::id());
    assert!(
        !left.contains(&ours)
            && snowmelt_io::loop_backing(&device).is_none_or(|b| !b.starts_with(dir.path()))
    );
}
