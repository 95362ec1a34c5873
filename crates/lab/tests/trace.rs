//! The trace, on pages recorded from a kernel (6.18, a loop device, mq-deadline), and live
//! where root and tracefs allow it.
//!
//! Recorded: three reads of 256 KiB past the page cache with max_sectors_kb 64, five of 4 KiB,
//! six pages written and synced, two buffered reads of 8 KiB. `diskstats.txt` holds the
//! device's line before and after.
//!
//! In `plugs`: a read of 256 KiB past the page cache with max_sectors_kb 64, four scattered
//! pages written earlier and eight in a row written and synced together, a read of another
//! device, a buffered read of 64 KiB; then a zram device, which has no requests: four pages
//! written, two direct reads of 8 KiB.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use snowmelt_lab::diskstats::DiskCounts;
use snowmelt_lab::trace::blktrace::BlktraceFiles;
use snowmelt_lab::trace::event::{Action, Decoded, Decoder, OtherFormats, RequestKind, Touch};
use snowmelt_lab::trace::family::Family;
use snowmelt_lab::trace::format::Format;
use snowmelt_lab::trace::levels::Levels;
use snowmelt_lab::trace::ring_page::RingPage;
use snowmelt_lab::trace::session::{Follow, Options, Session, Snoop};
use snowmelt_lab::trace::tally::Tally;
use snowmelt_lab::trace::target::{LowerDevice, TraceTarget};
use snowmelt_lab::trace::users::{Touches, Users};
use snowmelt_lab::undo::Undo;

const FORMATS: &str = include_str!("data/trace/formats.txt");
const PAGES: &[u8] = include_bytes!("data/trace/ring.pages");
const DISKSTATS: &str = include_str!("data/trace/diskstats.txt");
const LOOP0: u32 = 7 << 20;

/// The format of an event, of the text of all formats.
fn format(all: &str, event: &str) -> Format {
    let name = event.strip_prefix("block/").expect("a block event");
    let start = all.find(&format!("name: {name}\n")).expect("it was recorded");
    let text = &all[start..];
    let end = text[5..].find("name: ").map_or(text.len(), |next| next + 5);
    Format::parse(&text[..end]).expect("a format")
}

fn decoder() -> Decoder {
    let formats = Action::EVENTS.map(|(action, event)| (action, format(FORMATS, event)));
    Decoder::new(&formats, &OtherFormats::default()).expect("all fields are there")
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
        _ => None,
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
    let (reads, writes, flushes) =
        (tally.counts(RequestKind::Read), tally.counts(RequestKind::Write), tally.counts(RequestKind::Flush));
    assert_eq!((reads.completed, reads.completed_sectors), (disk.reads, disk.read_sectors));
    assert_eq!((writes.completed, writes.completed_sectors), (disk.writes, disk.write_sectors));
    assert_eq!((reads.merged, writes.merged), (disk.read_merges, disk.write_merges));
    assert_eq!(flushes.completed, disk.flushes);
    // Three reads of 256 KiB became twelve requests of 64: nine splits.
    assert_eq!((reads.split, reads.issued), (9, 19));
    // Six pages became one request; the sync is an empty write, and a flush at the device.
    assert_eq!((writes.queued, writes.merged, writes.issued, flushes.issued), (7, 5, 1, 1));
    assert_eq!((tally.unmatched(), tally.outstanding()), (0, 0));
    assert_eq!(tally.q2c[&RequestKind::Read].summary().count, reads.queued);
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
    // btt does not follow the parts of a split bio to their ends, so only the first half of the
    // way is compared.
    assert_eq!((count("Q2G").as_str(), count("Q2M").as_str()), ("20", "5"), "{btt}");
}

const PLUG_FORMATS: &str = include_str!("data/trace/plugs/formats.txt");
const PLUG_PAGES: [&[u8]; 2] =
    [include_bytes!("data/trace/plugs/cpu0.pages"), include_bytes!("data/trace/plugs/cpu1.pages")];
const PLUG_DISKSTATS: &str = include_str!("data/trace/plugs/diskstats.txt");

/// All events of the recording with plugs, in order of time.
fn recorded_plugs() -> Vec<Decoded> {
    let events = Action::EVENTS.into_iter().chain(Action::OPTIONAL);
    let formats: Vec<_> = events.map(|(action, event)| (action, format(PLUG_FORMATS, event))).collect();
    let others = OtherFormats {
        fork: None,
        plug: Some(format(PLUG_FORMATS, OtherFormats::PLUG)),
        unplug: Some(format(PLUG_FORMATS, OtherFormats::UNPLUG)),
        ..OtherFormats::default()
    };
    let decoder = Decoder::new(&formats, &others).expect("all fields are there");
    let mut events = Vec::new();
    for (cpu, pages) in PLUG_PAGES.iter().enumerate() {
        for page in pages.chunks(4096).map(|page| RingPage::new(page).expect("a page")) {
            events.extend(page.events().filter_map(|(t, e)| decoder.decode(t, cpu as u16, e)));
        }
    }
    events.sort_by_key(Decoded::time_ns);
    events
}

/// The recording is of two devices; the zram device is used last, by bios that nothing else has.
fn recorded_by_device() -> [Vec<Decoded>; 2] {
    let events = recorded_plugs();
    assert_eq!(events.len(), 85, "as many as the kernel said it had written");
    let is_last = |event: &Decoded| matches!(event, Decoded::Plug(plug) if plug.requests.is_some());
    let first_of_zram = events.iter().rposition(is_last).expect("an unplug") + 3; // D and C
    [events[..first_of_zram].to_vec(), events[first_of_zram..].to_vec()]
}

fn tally_of(events: &[Decoded]) -> Tally {
    let start = blocks(events).next().expect("events").time_ns;
    let mut tally = Tally::new(start, 1_000_000_000);
    for event in events {
        match event {
            Decoded::Block(event) => drop(tally.add(event, None)),
            Decoded::Plug(event) => drop(tally.plugs.plug(event)),
            _ => {}
        }
    }
    tally.finish(start + 500_000_000);
    tally
}

/// Reads and writes with their sectors, by diskstats.
fn moved(device: &str) -> [(u64, u64); 2] {
    let lines: Vec<&str> = PLUG_DISKSTATS.lines().collect();
    let counts = |lines: &[&str]| DiskCounts::parse(&lines.join("\n"), device).expect("the device's line");
    let disk = counts(&lines[2..]).since(&counts(&lines[..2]));
    [(disk.reads, disk.read_sectors), (disk.writes, disk.write_sectors)]
}

fn completed(tally: &Tally) -> [(u64, u64); 2] {
    [RequestKind::Read, RequestKind::Write]
        .map(|kind| (tally.counts(kind).completed, tally.counts(kind).completed_sectors))
}

#[test]
fn recorded_plugs_are_told_from_those_of_other_devices() {
    let [events, _] = recorded_by_device();
    let of_all = events.iter().filter(|event| matches!(event, Decoded::Plug(_))).count();
    let tally = tally_of(&events);
    let plugs = &tally.plugs.counts;
    // Seven plugs, one of them another device's; the sync handed over five requests at once.
    assert_eq!((of_all, plugs.plugs, plugs.unplugs, plugs.requests), (14, 6, 6, 10));
    assert_eq!(plugs.by_requests.iter().collect::<Vec<_>>(), [(&1, &5), (&5, &1)]);
    assert_eq!((plugs.mean(), plugs.most()), (10.0 / 6.0, 5));
    // A flush is handed over without a plug.
    assert_eq!(
        tally.counts(RequestKind::Read).issued + tally.counts(RequestKind::Write).issued,
        plugs.requests
    );
    assert_eq!(completed(&tally), moved("loop0"));
    let bios = [RequestKind::Read, RequestKind::Write].map(|kind| tally.counts(kind).bios_completed);
    assert_eq!((tally.has_requests(), bios), (true, [0, 0]));
    assert_eq!((tally.unmatched(), tally.outstanding()), (0, 0));
}

#[test]
fn recorded_bios_without_requests_have_their_times_and_are_what_diskstats_counted() {
    let [_, events] = recorded_by_device();
    let tally = tally_of(&events);
    assert_eq!(completed(&tally), moved("zram1"));
    let bios = [RequestKind::Read, RequestKind::Write].map(|kind| tally.counts(kind).bios_completed);
    assert_eq!((tally.has_requests(), bios, tally.unmatched()), (false, [2, 4], 0));
    let times = [RequestKind::Read, RequestKind::Write].map(|kind| tally.q2c[&kind].summary());
    assert_eq!(times.map(|t| t.count), [2, 4]);
    // The first page was written in 11 microseconds by the kernel's text of the same trace.
    assert!((10_000..12_000).contains(&times[1].max_ns), "{:?}", times[1]);
    assert!(tally.d2c.is_empty());
}

#[test]
fn plugs_and_bios_are_in_the_files_of_blktrace() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut files = BlktraceFiles::create(&dir.path().join("x"), LOOP0);
    for event in &recorded_plugs() {
        match event {
            Decoded::Block(event) => files.write(event).expect("written"),
            Decoded::Plug(event) => files.write_plug(event).expect("written"),
            _ => {}
        }
    }
    assert_eq!(files.finish().expect("written"), 2);
    let (mut actions, mut unplugged) = (std::collections::BTreeMap::new(), 0);
    for cpu in 0..2 {
        let bytes = std::fs::read(dir.path().join(format!("x.blktrace.{cpu}"))).expect("a file");
        let mut rest = &bytes[..];
        while let Some(head) = rest.get(..48) {
            let action = u32::from_ne_bytes(head[28..32].try_into().expect("four bytes")) & 0xffff;
            let len = usize::from(u16::from_ne_bytes(head[46..48].try_into().expect("two bytes")));
            *actions.entry(action).or_insert(0) += 1;
            if action == 10 {
                unplugged += u64::from_be_bytes(rest[48..48 + len].try_into().expect("eight bytes"));
            }
            rest = &rest[48 + len..];
        }
    }
    // Q 1, D 7, P 9, U 10; C 8 is of requests and of bios.
    assert_eq!([1, 7, 8, 9, 10].map(|action| actions[&action]), [21, 11, 12 + 6, 7, 7]);
    assert_eq!(unplugged, 11);
}

const FILE_FORMATS: &str = include_str!("data/trace/files/formats.txt");

/// The format of an event of any subsystem, from the kernel of the recordings.
fn other_format(event: &str) -> Format {
    let name = event.split_once('/').expect("a subsystem").1;
    let text = FILE_FORMATS.split("name: ").find(|text| text.starts_with(&format!("{name}\n")));
    Format::parse(&format!("name: {}", text.expect("it was recorded"))).expect("a format")
}

/// An event of this format, with numbers in these fields.
fn made(format: &Format, fields: &[(&str, u64)]) -> Vec<u8> {
    let mut event = vec![0; 128];
    for (name, number) in fields.iter().chain(&[("common_type", u64::from(format.id))]) {
        let field = format.field(name).expect("a field");
        event[field.offset..field.offset + field.size].copy_from_slice(&number.to_le_bytes()[..field.size]);
    }
    event
}

const MD0: u32 = 9 << 20;
const SDA: u32 = 8 << 20;

/// A stripe of an array as a kernel tells of it: a bio of the array goes to a disk below it.
#[test]
fn remaps_of_an_array_are_decoded_counted_and_exported() {
    let format_of_remap = other_format(OtherFormats::REMAP);
    let others = OtherFormats { remap: Some(format_of_remap.clone()), dev: MD0, ..OtherFormats::default() };
    let formats = Action::EVENTS.map(|(action, event)| (action, format(FORMATS, event)));
    let decoder = Decoder::new(&formats, &others).expect("all fields are there");
    let mut bytes = made(
        &format_of_remap,
        &[
            ("common_pid", 77),
            ("dev", u64::from(SDA)),
            ("sector", 4096),
            ("nr_sector", 128),
            ("old_dev", u64::from(MD0)),
            ("old_sector", 1024),
        ],
    );
    let rwbs = format_of_remap.field("rwbs").expect("letters").offset;
    bytes[rwbs..rwbs + 2].copy_from_slice(b"RA");
    let Some(Decoded::Remap(remap)) = decoder.decode(5, 1, &bytes) else { panic!("a remap") };
    assert_eq!((remap.pid, remap.op.kind, remap.op.ahead), (77, RequestKind::Read, true));
    assert_eq!((remap.dev, remap.sector, remap.sectors), (SDA, 4096, 128));
    assert_eq!((remap.old_dev, remap.old_sector), (MD0, 1024));
    // Events of the disk below, recorded of loop0, are counted as its own.
    let mut levels = Levels::default();
    levels.remapped(&remap);
    levels.remapped(&remap);
    let pages = PAGES.chunks(4096).map(|page| RingPage::new(page).expect("a page"));
    for page in pages {
        for (t, event) in page.events() {
            match decoder.decode(t, 1, event) {
                Some(Decoded::Below(dev, event)) => levels.below(dev, &event),
                other => panic!("of the array itself: {other:?}"),
            }
        }
    }
    let target = TraceTarget {
        device: snowmelt_lab::machine::BlockDevice { name: "md0".into(), ..Default::default() },
        name: "md0".into(),
        dev: MD0,
        devs: vec![MD0],
        below: [(SDA, "sda"), (LOOP0, "loop0")]
            .map(|(dev, name)| LowerDevice { dev, name: name.into(), sectors: None })
            .to_vec(),
        ..TraceTarget::default()
    };
    let remaps = levels.remap_lines(&target);
    assert_eq!((remaps[0].from.as_str(), remaps[0].to.as_str()), ("md0", "sda"));
    assert_eq!((remaps[0].moved.requests, remaps[0].moved.bytes), (2, 2 * 128 * 512));
    let below = levels.below_lines(&target);
    let counts = below[0].counts;
    assert_eq!((below[0].device.as_str(), counts.split, counts.merged, counts.issued), ("loop0", 9, 5, 21));
    // As blktrace writes it: sector and device of the disk below, behind them the array's.
    let dir = tempfile::tempdir().expect("a folder");
    let mut files = BlktraceFiles::create(&dir.path().join("x"), SDA);
    files.write_remap(&remap).and_then(|()| files.finish()).expect("written");
    let bytes = std::fs::read(dir.path().join("x.blktrace.1")).expect("a file");
    let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((number(28) & 0xffff, number(24), bytes.len()), (15, 128 << 9, 48 + 16));
    assert_eq!(bytes[48..56], [MD0.to_be_bytes(), SDA.to_be_bytes()].concat());
    assert_eq!(bytes[56..], 1024u64.to_be_bytes());
}

/// Write-back of a file as a kernel tells of it: the bios of its thread are the program's.
#[test]
fn the_file_of_a_bio_is_that_of_its_thread_and_write_back_is_of_the_one_that_wrote() {
    let all: Vec<(usize, Format)> = Touch::EVENTS
        .iter()
        .enumerate()
        .map(|(place, (_, event, ..))| (place, other_format(event)))
        .collect();
    let others = OtherFormats { touches: all.clone(), dev: LOOP0, ..OtherFormats::default() };
    let formats = Action::EVENTS.map(|(action, event)| (action, format(FORMATS, event)));
    let decoder = Decoder::new(&formats, &others).expect("all fields are there");
    let touch = |place: usize, pid: u64, dev: u32, ino: u64| {
        let (_, _, dev_field, ino_field) = Touch::EVENTS[place];
        let format = &all[place].1;
        let mut event = made(format, &[("common_pid", pid), (ino_field, ino)]);
        let field = format.field(dev_field).expect("a field");
        match dev_field {
            "name" => event[field.offset..field.offset + 3].copy_from_slice(b"7:0"),
            _ => event[field.offset..field.offset + 4].copy_from_slice(&dev.to_le_bytes()),
        }
        match decoder.decode(1, 0, &event) {
            Some(Decoded::Touch(touch)) => touch,
            other => panic!("{other:?}"),
        }
    };
    const WRITER: u32 = 4_190_001;
    let mut users = Users::new(Some(Family::new(WRITER, 0)), &[LOOP0], None, Touches::All);
    let queue = format(FORMATS, "block/block_bio_queue");
    let asked = |users: &mut Users, pid: u32, comm: &str, letters: &str| {
        let fields = [("common_pid", u64::from(pid)), ("dev", u64::from(LOOP0)), ("nr_sector", 8)];
        let mut event = made(&queue, &fields);
        for (name, text) in [("comm", comm), ("rwbs", letters)] {
            let at = queue.field(name).expect("a field").offset;
            event[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
        let Some(Decoded::Block(event)) = decoder.decode(1, 0, &event) else { panic!("a bio") };
        let asker = users.asker(&event);
        (asker.ours, users.process_name(asker.user).to_owned(), users.file(asker.user))
    };
    const FLUSHER: u32 = 4_190_900;
    const STRANGER: u32 = 4_190_500;
    let by_flusher = |users: &mut Users, letters: &str| asked(users, FLUSHER, "kworker/u8:1", letters);
    users.touched(&touch(0, WRITER.into(), LOOP0, 12)); // made dirty by the program
    users.touched(&touch(0, STRANGER.into(), LOOP0, 13));
    assert!(!by_flusher(&mut users, "W").0, "of no file yet");
    users.touched(&touch(1, FLUSHER.into(), 0, 12)); // its write-back begins
    users.touched(&touch(6, FLUSHER.into(), LOOP0, 1)); // ext4 looks for free blocks
    users.touched(&touch(6, FLUSHER.into(), 3, LOOP0.into()));
    assert_eq!(by_flusher(&mut users, "W"), (true, "?".into(), "inode 12".into()));
    assert_eq!(by_flusher(&mut users, "WM"), (false, "kworker".into(), "[metadata]".into()));
    users.touched(&touch(3, FLUSHER.into(), LOOP0, 13)); // ext4 goes on with another file
    assert_eq!(by_flusher(&mut users, "W"), (false, "?".into(), "inode 13".into()));
    users.touched(&touch(2, FLUSHER.into(), 0, 13)); // and ends
    assert_eq!(by_flusher(&mut users, "W").2, "-");
    // Reading makes a file dirty, too, by its time: it is written back for the one that wrote
    // first.
    for (place, pid, ino) in [(0, WRITER, 20), (7, STRANGER, 20), (0, STRANGER, 21), (7, WRITER, 21)] {
        users.touched(&touch(place, pid.into(), LOOP0, ino));
    }
    users.touched(&touch(7, STRANGER.into(), LOOP0, 21));
    for (ino, ours) in [(20, false), (21, true)] {
        users.touched(&touch(1, FLUSHER.into(), 0, ino));
        assert_eq!(by_flusher(&mut users, "W"), (ours, "?".into(), format!("inode {ino}")));
        users.touched(&touch(2, FLUSHER.into(), 0, ino));
    }
    users.touched(&touch(0, STRANGER.into(), LOOP0, 21)); // clean, and written by another
    users.touched(&touch(7, STRANGER.into(), LOOP0, 21));
    users.touched(&touch(1, FLUSHER.into(), 0, 21));
    assert!(!by_flusher(&mut users, "W").0);
    users.touched(&touch(2, FLUSHER.into(), 0, 21));
    // Direct and cached reads of files, and of the device itself; another disk's are not heard.
    users.touched(&touch(5, WRITER.into(), LOOP0, 14));
    users.touched(&touch(5, WRITER.into(), SDA, 15));
    assert_eq!(asked(&mut users, WRITER, "fio", "R"), (true, "fio".into(), "inode 14".into()));
    users.touched(&touch(6, STRANGER.into(), 3, LOOP0.into()));
    assert_eq!(asked(&mut users, STRANGER, "dd", "RA"), (false, "dd".into(), "-".into()));
    assert_eq!(asked(&mut users, 4_190_600, "jbd2/loop0-8", "WS").2, "[journal]");
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

/// Live tests share the machine's tracefs: one at a time.
static LIVE: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn a_live_trace_agrees_with_diskstats_and_leaves_nothing() {
    let _alone = LIVE.lock();
    let dir = tempfile::tempdir().expect("a folder");
    let undo = Undo::open_in(&dir.path().join("state"), "test").expect("a journal");
    let Some(device) = loop_device(dir.path(), &undo) else { return };
    let target = TraceTarget::find(&device).expect("a block device");
    let options = Options {
        interval: Duration::from_millis(100),
        buffer_kb: 1024,
        blktrace: None,
        requests: None,
        follow: Follow::Program,
        touches: Touches::All,
        snoop: Snoop::Silent,
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
    let reads = traced.tally.counts(RequestKind::Read);
    assert!(traced.exact && reads.completed > 300, "{reads:?}");
    assert_eq!(traced.tally.ours[&RequestKind::Read].0, reads.queued, "all of it was ours");
    drop(file);
    undo.undo().expect("undone");
    let left = std::fs::read_to_string("/proc/mounts").expect("mounts");
    let ours = format!("tracefs-{}", std::process::id());
    assert!(
        !left.contains(&ours)
            && snowmelt_io::loop_backing(&device).is_none_or(|b| !b.starts_with(dir.path()))
    );
}

/// Count and sectors of events by their letter in blkparse's output and R or W; merges are M,
/// whichever end they were made at.
type Totals = std::collections::BTreeMap<(char, char), (u64, u64)>;

/// Adds up lines like `7,0 1 704 0.351414164 919 Q WS 2312 + 8 [dd]`; the kernel's own have no
/// sequence number.
fn totals(text: &str) -> Totals {
    let mut totals = Totals::new();
    for line in text.lines().filter(|line| line.trim_start().starts_with("7,")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|w| w.len() == 1 && w.chars().all(|c| c.is_ascii_uppercase()))
        else {
            continue;
        };
        let (action, rest) =
            (if words[at] == "F" { 'M' } else { words[at].as_bytes()[0] as char }, &words[at + 1..]);
        let [flags, _sector, "+", sectors, ..] = rest else { continue };
        let Some(direction) = flags.chars().find(|c| matches!(c, 'R' | 'W')) else { continue };
        let sum = totals.entry((action, direction)).or_default();
        *sum = (sum.0 + 1, sum.1 + sectors.parse::<u64>().expect("a number of sectors"));
    }
    totals
}

/// The blktrace program on a device, in a mount namespace of its own, because it wants debugfs
/// at its place.
struct Program {
    process: std::process::Child,
    dir: tempfile::TempDir,
}

impl Program {
    fn start(device: &Path) -> Result<Program, String> {
        let dir = tempfile::tempdir().expect("a folder");
        let script = "mount -t debugfs none /sys/kernel/debug && exec blktrace -d \"$0\" -o x";
        let mut command = std::process::Command::new("unshare");
        command.args(["-m", "sh", "-c", script]).arg(device).current_dir(dir.path());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        let mut process = command.spawn().map_err(|e| e.to_string())?;
        let begun = std::time::Instant::now();
        let ready = || std::fs::metadata(dir.path().join("x.blktrace.0")).is_ok();
        while !ready()
            && begun.elapsed() < Duration::from_secs(10)
            && process.try_wait().is_ok_and(|s| s.is_none())
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(300)); // it opens the kernel's files after its own
        if process.try_wait().map_err(|e| e.to_string())?.is_some() {
            let mut why = String::new();
            process.stderr.take().map(|mut e| e.read_to_string(&mut why));
            return Err(why.trim().replace('\n', "; "));
        }
        Ok(Program { process, dir })
    }

    fn finish(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        self.process.wait().expect("it ends");
        let parsed =
            std::process::Command::new("blkparse").args(["-i", "x"]).current_dir(self.dir.path()).output();
        String::from_utf8_lossy(&parsed.expect("blkparse comes with blktrace").stdout).into_owned()
    }
}

/// The kernel's blktrace, as text through tracefs: for kernels that are locked down, which keep
/// blktrace's files shut.
struct Tracer<'a> {
    tracefs: std::path::PathBuf,
    undo: &'a Undo,
}

impl Tracer<'_> {
    fn start<'a>(device: &Path, undo: &'a Undo) -> Result<Tracer<'a>, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let tracefs = snowmelt_lab::trace::tracefs::find_tracefs(undo).map_err(|e| text(&e))?;
        let read = |name: &str| std::fs::read_to_string(tracefs.join(name)).unwrap_or_default();
        if read("current_tracer").trim() != "nop" {
            return Err("somebody else traces".into());
        }
        undo.set(&tracefs.join("current_tracer"), "blk").map_err(|e| text(&e))?;
        std::fs::write(tracefs.join("trace"), "").map_err(|e| text(&e))?;
        undo.set(&tracefs.join("options/blk_classic"), "1").map_err(|e| text(&e))?;
        let name = device.file_name().expect("a device has a name");
        let enable = Path::new("/sys/block").join(name).join("trace/enable");
        undo.set(&enable, "1").map_err(|e| text(&e))?;
        Ok(Tracer { tracefs, undo })
    }

    fn finish(self) -> String {
        let text = std::fs::read_to_string(self.tracefs.join("trace")).expect("readable");
        self.undo.undo().expect("undone");
        text
    }
}

#[test]
fn a_live_trace_counts_what_blktrace_counts_beside_it() {
    let _alone = LIVE.lock();
    let dir = tempfile::tempdir().expect("a folder");
    let undo = Undo::open_in(&dir.path().join("state"), "test").expect("a journal");
    let Some(device) = loop_device(dir.path(), &undo) else { return };
    let queue = Path::new("/sys/block").join(device.file_name().expect("a device has a name")).join("queue");
    undo.set(&queue.join("max_sectors_kb"), "64").expect("a loop device splits");
    // No flushes, which have no sectors to be told by.
    undo.set(&queue.join("write_cache"), "write through").expect("a loop device takes it");
    let beside = Undo::open_in(&dir.path().join("state"), "test-beside").expect("a journal");
    let program = Program::start(&device);
    let tracer = match &program {
        Ok(_) => None,
        Err(why) => match Tracer::start(&device, &beside) {
            Ok(tracer) => {
                eprintln!(
                    "blktrace does not run here ({why}): compared with the kernel's blktrace without it"
                );
                Some(tracer)
            }
            Err(also) => {
                return eprintln!(
                    "skipped: blktrace does not run here ({why}), nor does the tracer ({also})"
                );
            }
        },
    };
    let options = Options {
        interval: Duration::from_millis(100),
        buffer_kb: 1024,
        blktrace: None,
        requests: None,
        follow: Follow::Nobody,
        touches: Touches::All,
        snoop: Snoop::Silent,
    };
    let target = TraceTarget::find(&device).expect("a block device");
    let mut session = Session::start(target, options, &undo).expect("tracing works when blktrace does");
    session.follow(None).expect("reading");
    let direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    let file = File::options().read(true).write(true).custom_flags(direct).open(&device).expect("opened");
    let mut small = snowmelt_io::AlignedBuf::new(4096);
    let mut large = snowmelt_io::AlignedBuf::new(256 << 10);
    for i in 0..200u64 {
        file.read_exact_at(&mut small, (i * 7919 % 2048) * 4096).expect("read");
        file.write_all_at(&small, (i * 7907 % 2048) * 4096).expect("written");
    }
    for i in 0..8u64 {
        file.read_exact_at(&mut large, i << 18).expect("read"); // split
    }
    let mut through = vec![0; 1 << 20];
    // By read-ahead.
    File::open(&device).and_then(|mut file| file.read_exact(&mut through)).expect("read");
    let written = File::options().write(true).open(&device).expect("opened");
    // Merged
    written.write_all_at(&through, 4 << 20).and_then(|()| written.sync_data()).expect("written");
    let traced = session.finish().expect("a trace");
    let theirs = match (program, tracer) {
        (Ok(program), _) => totals(&program.finish()),
        (Err(_), Some(tracer)) => totals(&tracer.finish()),
        (Err(_), None) => unreachable!("returned above"),
    };
    assert!(traced.doubts().is_empty(), "{:?}", traced.doubts());
    for (kind, direction) in [(RequestKind::Read, 'R'), (RequestKind::Write, 'W')] {
        let ours = traced.tally.counts(kind);
        let of = |action: char| theirs.get(&(action, direction)).copied().unwrap_or_default();
        assert!(ours.queued > 200 && of('Q').0 > 200, "{kind:?}: {ours:?}, {theirs:?}");
        assert_eq!((ours.queued_sectors, ours.issued_sectors), (of('Q').1, of('D').1), "{kind:?}");
        assert_eq!(ours.completed_sectors, of('C').1, "{kind:?}");
        assert_eq!((ours.merged, ours.issued), (of('M').0, of('D').0), "{kind:?}: {theirs:?}");
        assert_eq!(ours.completed, of('C').0, "{kind:?}");
    }
    assert!(
        traced.tally.counts(RequestKind::Read).split > 0
            && traced.tally.counts(RequestKind::Write).merged > 0
    );
}
