//! A trace from its start to its sums: a thread reads while the program runs.
//!
//! 1. The instance is made, events and filters are set, nothing is written yet.
//! 2. Tracing is switched on at a moment when diskstats does not change, so that both count the
//!    same requests.
//! 3. When it is told which program to follow, the buffers are opened by a thread that reads them
//!    20 times a second. They hold the events from before. Open, they keep the instance: so not
//!    earlier, and a signal has the thread let go of them.
//! 4. Tracing is switched off at a quiet moment again, what is left is read, and the instance
//!    is removed.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::blktrace::BlktraceFiles;
use super::collector::{Collector, monotonic_ns};
use super::event::{Action, BlockEvent, Decoded, Decoder, OtherFormats, RequestKind, Touch};
use super::family::Family;
use super::format::Format;
use super::levels::Levels;
use super::pairing::RequestDone;
use super::snoop;
use super::tally::Tally;
use super::target::TraceTarget;
use super::tracefs::{Instance, TraceSwitch, find_tracefs};
use super::users::{Touches, Users, trimmed};
use crate::LabError;
use crate::device::Behind;
use crate::machine::diskstats::DiskCounts;
use crate::undo::signals;
use crate::undo::{Undo, Untouched};

/// Settings of a trace.
#[derive(Debug, Clone)]
pub struct Options {
    /// Length of the intervals of the series.
    pub interval: Duration,
    /// Memory of the kernel's buffer, per processor.
    pub buffer_kb: u64,
    /// Files of blktrace to write, as the beginning of their names.
    pub blktrace: Option<PathBuf>,
    /// A file for a JSON line per request.
    pub requests: Option<PathBuf>,
    /// Tell the program's own requests from others'.
    pub follow: Follow,
    /// Files in the trace.
    pub touches: Touches,
    /// Requests on the screen.
    pub snoop: Snoop,
}

/// See [`Options::snoop`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Snoop {
    /// None.
    Silent,
    /// A line for each as soon as it is over.
    Print,
}

/// See [`Options::follow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// Requests of all programs count alike.
    Nobody,
    /// Requests of the program and of what it starts are counted separately.
    Program,
}

/// How often /proc is asked for names.
const LOOK: Duration = Duration::from_millis(200);
/// How often the buffers are read.
const ROUND: Duration = Duration::from_millis(50);
/// How long is waited for a moment at which nothing moves.
const QUIET: Duration = Duration::from_secs(2);

/// Tracing that is switched on.
pub struct Session {
    /// Goes before `undo`: its open files would keep the instance.
    reader: Reader,
    /// Before it is followed.
    decoder: Option<Decoder>,
    instance: Instance,
    undo: Undo,
    target: TraceTarget,
    options: Options,
    start_ns: u64,
    before: DiskCounts,
    quiet_start: bool,
    absent: Vec<&'static str>,
    /// The emulated device, and how often it had split requests.
    emulated: Option<(Behind, u64)>,
}

/// Reads the kernel's buffers in a thread, until it is asked for the answer or dropped.
#[derive(Default)]
struct Reader {
    stop: Arc<AtomicBool>,
    /// Once it has begun.
    thread: Option<JoinHandle<Result<Read, LabError>>>,
}

impl Reader {
    fn begin(&mut self, mut collector: Collector, mut consumer: Consumer) -> Result<(), LabError> {
        let stop = self.stop.clone();
        let read = move || {
            let failed = |e| LabError::system("read the trace buffers", e);
            let mut looked = Instant::now();
            while !stop.load(Ordering::Acquire) {
                if signals::ending() {
                    // And lets go of the instance, which is being removed.
                    return Err(LabError::Stopped);
                }
                let read = collector.round(&mut |event| consumer.take(event)).map_err(failed)?;
                if looked.elapsed() >= LOOK {
                    consumer.users.look();
                    looked = Instant::now();
                }
                if read < 4 << 20 {
                    std::thread::sleep(ROUND);
                }
            }
            collector.finish(&mut |event| consumer.take(event)).map_err(failed)?;
            let (event_bytes, pages_after_loss) = (collector.bytes, collector.pages_after_loss);
            drop(collector); // its open files would keep the instance from a signal
            consumer.users.finish();
            Ok(Read { event_bytes, pages_after_loss, consumer })
        };
        let thread = std::thread::Builder::new().name("trace".into()).spawn(read);
        self.thread = Some(thread.map_err(|e| LabError::system("start a thread", e))?);
        Ok(())
    }

    /// Reads the rest.
    fn end(&mut self) -> Result<Read, LabError> {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("it has begun");
        thread.join().expect("the reading thread does not panic")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            drop(thread.join()); // of a session that failed, and does not ask for its answer
        }
    }
}

/// The answer of the reading thread.
struct Read {
    event_bytes: u64,
    pages_after_loss: u64,
    consumer: Consumer,
}

/// The sum of a session.
pub struct Traced {
    /// The device that was traced.
    pub target: TraceTarget,
    /// All counts.
    pub tally: Tally,
    /// Processes that asked, with the files they asked for.
    pub users: Users,
    /// Remaps, and the devices below.
    pub levels: Levels,
    /// Events the kernel lost; more than none makes the trace invalid.
    pub lost: u64,
    /// Bytes of events.
    pub event_bytes: u64,
    /// The counts of diskstats meanwhile.
    pub diskstats: DiskCounts,
    /// Both counts began and ended at moments when the device was quiet, so they must agree.
    pub exact: bool,
    /// Splits inside an emulated device, an array; nothing where there is none.
    pub emulated_splits: Option<u64>,
    /// Events that this kernel does not have.
    pub absent: Vec<&'static str>,
}

impl Session {
    /// Switches tracing on.
    ///
    /// # Errors
    /// Tracing is not permitted here, or the trace instance cannot be made.
    pub fn start(target: TraceTarget, options: Options, undo: &Undo) -> Result<Session, LabError> {
        let tracefs = find_tracefs(undo)?;
        let instance = Instance::create(&tracefs, undo, options.buffer_kb)?;
        let mut absent = Vec::new();
        let decoder =
            undo.standing(|standing| enable(&instance, &target, &options, &mut absent, standing))?;
        let emulated =
            Behind::find(&target.device.name).and_then(|behind| behind.splits().map(|n| (behind, n)));
        let (before, quiet_start) =
            quietly(&target, || undo.standing(|standing| instance.switch(TraceSwitch::On, standing)))?;
        Ok(Session {
            instance,
            undo: undo.clone(),
            target,
            options,
            reader: Reader::default(),
            decoder: Some(decoder),
            start_ns: monotonic_ns(),
            before,
            quiet_start,
            absent,
            emulated,
        })
    }

    /// Begins to read. Requests of process `program` and of what it starts are counted separately.
    ///
    /// # Errors
    /// A file of the trace cannot be made, or a thread cannot be started.
    pub fn follow(&mut self, program: Option<u32>) -> Result<(), LabError> {
        let consumer = Consumer::new(&self.options, &self.target, self.start_ns, program)?;
        let readers = self.undo.standing(|standing| self.instance.readers(standing))?;
        let decoder = self.decoder.take().expect("a session is followed once");
        self.reader.begin(Collector::new(readers, decoder), consumer)
    }

    /// Switches tracing off and adds up.
    ///
    /// # Errors
    /// The rest of the trace cannot be read, or a signal ended it.
    pub fn finish(mut self) -> Result<Traced, LabError> {
        if self.reader.thread.is_none() {
            self.follow(None)?;
        }
        let (after, quiet_end) = quietly(&self.target, || {
            self.undo.standing(|standing| self.instance.switch(TraceSwitch::Off, standing))
        })?;
        let end_ns = monotonic_ns();
        let Read { event_bytes, pages_after_loss, mut consumer } = self.reader.end()?;
        let stats = self.undo.standing(|standing| self.instance.stats(standing))?;
        let lost = stats.lost.max(pages_after_loss);
        consumer.close()?;
        consumer.tally.finish(end_ns);
        self.instance.remove()?;
        let splits =
            self.emulated.as_ref().and_then(|(behind, before)| behind.splits()?.checked_sub(*before));
        Ok(Traced {
            target: self.target,
            tally: consumer.tally,
            users: consumer.users,
            levels: consumer.levels,
            lost,
            event_bytes,
            diskstats: after.since(&self.before),
            exact: self.quiet_start && quiet_end,
            emulated_splits: splits.filter(|n| *n > 0),
            absent: self.absent,
        })
    }
}

const FORK: &str = "sched/sched_process_fork";

/// Turns on the events that are traced, and adds those that this kernel lacks to `absent`.
fn enable(
    instance: &Instance,
    target: &TraceTarget,
    options: &Options,
    absent: &mut Vec<&'static str>,
    standing: &Untouched,
) -> Result<Decoder, LabError> {
    let filter = &target.filter();
    let mut formats = Vec::new();
    for (action, event) in Action::EVENTS {
        // Only blktrace's tools want these two; every event costs the traced program time.
        let extra = matches!(action, Action::GetRequest | Action::Insert);
        if !extra || options.blktrace.is_some() {
            formats.push((action, instance.enable(event, filter, standing)?));
        }
    }
    let mut optional = |event: &'static str, filter: &str| -> Result<Option<Format>, LabError> {
        if instance.has(event) {
            return instance.enable(event, filter, standing).map(Some);
        }
        absent.push(event.trim_start_matches("block/"));
        Ok(None)
    };
    for (action, event) in Action::OPTIONAL {
        formats.extend(optional(event, filter)?.map(|format| (action, format)));
    }
    // These have no device to be filtered by.
    let plug = optional(OtherFormats::PLUG, "")?;
    let unplug = optional(OtherFormats::UNPLUG, "")?;
    let remap = optional(OtherFormats::REMAP, &target.remap_filter())?;
    let touches = touches(instance, target, options.touches, standing)?;
    if options.touches == Touches::All && touches.is_empty() {
        absent.push("of files (iomap, filemap, writeback)");
    }
    // Also without a program: numbers of processes are used again.
    let fork = match options.follow {
        Follow::Nobody if !instance.has(FORK) => None,
        _ => Some(instance.enable(FORK, "", standing)?),
    };
    let file_systems = target.file_systems.clone();
    let others = OtherFormats { fork, plug, unplug, remap, touches, file_systems, dev: target.dev };
    Decoder::new(&formats, &others)
        .map_err(|why| LabError::refused("this kernel's block events", why, "please report its version"))
}

/// Turns on the events that tell the file of a thread, as far as this kernel has them.
fn touches(
    instance: &Instance,
    target: &TraceTarget,
    which: Touches,
    standing: &Untouched,
) -> Result<Vec<(usize, Format)>, LabError> {
    let most = if which == Touches::All { Touch::EVENTS.len() } else { Touch::OF_WRITE_BACK };
    let mut formats = Vec::new();
    for (place, (_, event, dev, ino)) in Touch::EVENTS.into_iter().enumerate().take(most) {
        if instance.has(event) {
            formats.push((place, instance.enable(event, &target.touch_filter(dev, ino), standing)?));
        }
    }
    Ok(formats)
}

/// Switches between two readings of diskstats that agree; when the device never is quiet,
/// switches anyway and says so.
fn quietly(
    target: &TraceTarget,
    switch: impl FnOnce() -> Result<(), LabError>,
) -> Result<(DiskCounts, bool), LabError> {
    let begun = Instant::now();
    let mut last = target.counts()?;
    while begun.elapsed() < QUIET {
        std::thread::sleep(Duration::from_millis(2));
        let now = target.counts()?;
        if now == last && now.in_flight == 0 {
            break;
        }
        last = now;
    }
    switch()?;
    let now = target.counts()?;
    Ok((now, now == last && now.in_flight == 0))
}

/// Where the events go.
struct Consumer {
    tally: Tally,
    users: Users,
    levels: Levels,
    target: TraceTarget,
    snoop: Snoop,
    blktrace: Option<BlktraceFiles>,
    requests: Option<std::io::BufWriter<std::fs::File>>,
    start_ns: u64,
    failure: Option<LabError>,
}

/// A line of the file of requests.
#[derive(Serialize)]
struct RequestLine {
    issued_s: f64,
    kind: &'static str,
    offset_bytes: u64,
    bytes: u64,
    /// Before it was issued.
    q2d_ns: Option<u64>,
    d2c_ns: u64,
    pid: u32,
    comm: String,
    /// Process for which it was: of write-back, the one that made the file dirty.
    process: String,
    file: String,
    ours: bool,
    error: i32,
}

impl Consumer {
    fn new(
        options: &Options,
        target: &TraceTarget,
        start_ns: u64,
        program: Option<u32>,
    ) -> Result<Consumer, LabError> {
        let requests = match &options.requests {
            None => None,
            Some(path) => {
                let file = std::fs::File::create(path).map_err(|e| LabError::file("create", path, e))?;
                Some(std::io::BufWriter::with_capacity(1 << 18, file))
            }
        };
        let mut users = Users::new(
            program.map(|program| Family::new(program, monotonic_ns())),
            &target.devs,
            (!target.mounted).then_some(target.dev),
            options.touches,
        );
        users.name_device(target.dev, &target.name);
        target.file_systems.iter().for_each(|(_, dev)| users.add_file_system(*dev));
        Ok(Consumer {
            tally: Tally::new(start_ns, options.interval.as_nanos() as u64),
            users,
            levels: Levels::default(),
            target: target.clone(),
            snoop: options.snoop,
            blktrace: options.blktrace.as_ref().map(|base| BlktraceFiles::create(base, target.dev)),
            requests,
            start_ns,
            failure: None,
        })
    }

    fn take(&mut self, event: Decoded) {
        match event {
            Decoded::Fork { time_ns, parent, child } => self.users.forked(time_ns, parent, child),
            Decoded::Touch(event) => self.users.touched(&event),
            // A filter of many devices lets others' events through.
            Decoded::Below(dev, event) if !self.target.is_below(dev, event.sector) => {}
            Decoded::Below(dev, event) => self.levels.below(dev, &event),
            Decoded::Remap(event) if !self.target.has_part_in(&event) => {}
            Decoded::Remap(event) => {
                self.levels.remapped(&event);
                if let Some(files) = &mut self.blktrace {
                    let written = files.write_remap(&event);
                    self.note(written);
                }
            }
            Decoded::Block(event) => {
                let written = self.block(&event);
                self.note(written);
            }
            Decoded::Plug(event) => {
                let ours = self.tally.plugs.plug(&event);
                if let Some(files) = self.blktrace.as_mut().filter(|_| ours) {
                    let written = files.write_plug(&event);
                    self.note(written);
                }
            }
        }
    }

    /// The first failure is reported at the end.
    fn note(&mut self, written: std::io::Result<()>) {
        if let Err(e) = written {
            self.failure.get_or_insert(LabError::system("write the trace", e));
        }
    }

    fn block(&mut self, event: &BlockEvent) -> std::io::Result<()> {
        if let Some(files) = &mut self.blktrace {
            files.write(event)?;
        }
        let Some(request) = self.tally.add(event, Some(&mut self.users)) else { return Ok(()) };
        if self.snoop == Snoop::Print {
            let of = request.asker.map(|asker| (asker, self.users.file(asker.user)));
            crate::say!("{}", snoop::line(&request, of, &self.target.name, self.start_ns));
        }
        if self.requests.is_some() {
            let line = self.request_line(&request);
            if let Some(file) = &mut self.requests {
                serde_json::to_writer(&mut *file, &line)?;
                file.write_all(b"\n")?;
            }
        }
        Ok(())
    }

    fn request_line(&self, request: &RequestDone) -> RequestLine {
        let asker = request.asker;
        let text = |of: &dyn Fn(&super::pairing::Asker) -> String| asker.as_ref().map_or(String::new(), of);
        RequestLine {
            issued_s: request.issued_ns.saturating_sub(self.start_ns) as f64 / 1e9,
            kind: request.op.kind.as_str(),
            offset_bytes: request.sector * 512,
            bytes: u64::from(request.sectors) * 512,
            q2d_ns: request.queue_ns(),
            d2c_ns: request.device_ns().unwrap_or(0),
            pid: asker.map_or(0, |asker| asker.pid),
            comm: text(&|asker| String::from_utf8_lossy(trimmed(&asker.comm)).into_owned()),
            process: text(&|asker| self.users.process_name(asker.user).to_owned()),
            file: text(&|asker| self.users.file(asker.user)),
            ours: asker.is_some_and(|asker| asker.ours),
            error: request.error,
        }
    }

    fn close(&mut self) -> Result<(), LabError> {
        if let Some(e) = self.failure.take() {
            return Err(e);
        }
        let failed = |e| LabError::system("write the trace", e);
        if let Some(files) = self.blktrace.take() {
            files.finish().map_err(failed)?;
        }
        if let Some(mut file) = self.requests.take() {
            file.flush().map_err(failed)?;
        }
        Ok(())
    }
}

/// A count of the trace that should be the same in diskstats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the count.
    pub what: &'static str,
    /// By the trace.
    pub traced: u64,
    /// By /proc/diskstats.
    pub diskstats: u64,
}

impl Traced {
    /// The counts that diskstats has too.
    pub fn checks(&self) -> Vec<Check> {
        let (reads, writes) = (self.tally.counts(RequestKind::Read), self.tally.counts(RequestKind::Write));
        let discards = self.tally.counts(RequestKind::Discard);
        let disk = &self.diskstats;
        let check = |what, traced, diskstats| Check { what, traced, diskstats };
        vec![
            check("reads completed", reads.completed, disk.reads),
            check("reads merged", reads.merged, disk.read_merges),
            check("sectors read", reads.completed_sectors, disk.read_sectors),
            check("writes completed", writes.completed, disk.writes),
            check("writes merged", writes.merged, disk.write_merges),
            check("sectors written", writes.completed_sectors, disk.write_sectors),
            check("discards completed", discards.completed, disk.discards),
            check("sectors discarded", discards.completed_sectors, disk.discard_sectors),
        ]
    }

    /// Why the trace is not to be believed; empty when all is well.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.lost > 0 {
            doubts.push(format!(
                "the trace is invalid: the kernel lost {} events; a larger --buffer-mb holds more",
                self.lost
            ));
        }
        for check in self.checks().iter().filter(|check| check.traced != check.diskstats) {
            let edge = if self.exact {
                ""
            } else {
                " (the device was busy when tracing began or ended, so a few may differ)"
            };
            doubts.push(format!(
                "{}: {} by the trace, {} by /proc/diskstats{edge}",
                check.what, check.traced, check.diskstats
            ));
        }
        doubts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMATS: &str = include_str!("../../tests/data/trace/plugs/formats.txt");

    #[test]
    fn events_that_a_kernel_lacks_are_told_and_others_must_be_there() {
        let dir = tempfile::tempdir().unwrap();
        for text in FORMATS.split("name: ").skip(1) {
            let name = text.lines().next().unwrap();
            if !["block_bio_complete", "block_unplug"].contains(&name) {
                let event = dir.path().join("events/block").join(name);
                std::fs::create_dir_all(&event).unwrap();
                std::fs::write(event.join("format"), format!("name: {text}")).unwrap();
            }
        }
        let options = Options {
            interval: ROUND,
            buffer_kb: 1024,
            blktrace: None,
            requests: None,
            follow: Follow::Nobody,
            touches: Touches::WriteBack,
            snoop: Snoop::Silent,
        };
        let target = TraceTarget {
            device: crate::machine::BlockDevice::default(),
            name: "x".into(),
            dev: 7,
            devs: vec![7],
            ..TraceTarget::default()
        };
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        let enable = |absent: &mut _| {
            let instance = Instance::at(dir.path());
            undo.standing(|standing| enable(&instance, &target, &options, absent, standing)).map(drop)
        };
        let mut absent = Vec::new();
        enable(&mut absent).expect("enough events");
        assert_eq!(absent, ["block_bio_complete", "block_unplug", "block_bio_remap"]);
        let read = |file: &str| std::fs::read_to_string(dir.path().join("events/block").join(file)).ok();
        assert_eq!(read("block_rq_issue/filter").as_deref(), Some("dev == 7"));
        assert_eq!((read("block_plug/filter"), read("block_plug/enable").as_deref()), (None, Some("1")));
        std::fs::remove_dir_all(dir.path().join("events/block/block_rq_issue")).unwrap();
        let error = enable(&mut absent).expect_err("no requests").to_string();
        assert!(error.contains("block_rq_issue"), "{error}");
    }
}
