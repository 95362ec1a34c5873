//! Marks: moments that a log, the program's own output, a FIFO or `lab mark` names.
//!
//! A mark begins a phase and ends the one before; an empty mark only ends it. Sources are looked
//! at every few milliseconds by the loop of the watch, so a mark is late by no more than that,
//! unless its writer holds its lines back: programs buffer what they write into a pipe.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use regex::Regex;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::LabError;
use crate::machine::program::Program;
use crate::undo::{Step, Undo};

/// All sources of a watch.
#[derive(Default)]
pub struct Marks {
    pattern: Option<Regex>,
    log: Option<LogFile>,
    fifos: Vec<Fifo>,
    output: Option<Receiver<String>>,
    passing: Vec<PassingOn>,
}

/// Lines of a file from where it ended when the watch began; of a file that comes later, or
/// takes its place, all.
struct LogFile {
    path: PathBuf,
    open: Option<(File, u64)>,
    rest: Lines,
}

/// A thread that copies the program's output to ours.
struct PassingOn {
    thread: JoinHandle<()>,
    /// It has passed on everything there was.
    waits: Arc<AtomicBool>,
}

struct Fifo {
    file: File,
    rest: Lines,
}

/// Bytes of which the last line is not whole yet.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        self.0.extend_from_slice(bytes);
        let Some(end) = self.0.iter().rposition(|b| *b == b'\n') else { return Vec::new() };
        let whole: Vec<u8> = self.0.drain(..=end).collect();
        String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
    }

    /// The last line, which has no end.
    fn rest(self) -> Option<String> {
        (!self.0.is_empty()).then(|| String::from_utf8_lossy(&self.0).into_owned())
    }
}

/// Text of the mark that a line is, if it matches: the first group of the pattern, else what
/// matched.
fn matched(pattern: &Regex, line: &str) -> Option<String> {
    let found = pattern.captures(line)?;
    let text = found.get(1).or_else(|| found.get(0))?;
    Some(text.as_str().trim().to_owned())
}

impl Marks {
    /// With lines that match `pattern`, of `log` or (where there is none) of the program.
    pub fn new(pattern: Option<Regex>, log: Option<&Path>) -> Marks {
        let log = log.map(|path| LogFile::at_end(path.to_path_buf()));
        Marks { pattern, log, ..Marks::default() }
    }

    /// True when lines of the program's output are wanted.
    pub fn wants_output(&self) -> bool {
        self.pattern.is_some() && self.log.is_none()
    }

    /// Passes the output of `program` on, and looks for marks in it.
    pub fn listen_to(&mut self, program: &mut Program) {
        let (tell, told) = channel();
        let (out, err) = program.take_output();
        self.passing.extend(out.map(|out| pass_on(out, std::io::stdout(), tell.clone())));
        self.passing.extend(err.map(|err| pass_on(err, std::io::stderr(), tell)));
        self.output = Some(told);
    }

    /// Waits a moment for the last lines of a program that has ended.
    pub fn settle(&self) {
        let begun = Instant::now();
        self.pass_on_rest(&|| begun.elapsed() < SETTLED);
    }

    /// Passes on all that the program has written, to a reader that may be slow, as long as
    /// `goes_on`. Programs that it has left behind may still have its output open: for what they
    /// will write nothing waits.
    pub fn pass_on_rest(&self, goes_on: &dyn Fn() -> bool) {
        let mut waiting_since = Instant::now();
        while goes_on() && !self.passing.iter().all(|passing| passing.thread.is_finished()) {
            let is_at_rest =
                |passing: &PassingOn| passing.thread.is_finished() || passing.waits.load(Ordering::Acquire);
            if !self.passing.iter().all(is_at_rest) {
                waiting_since = Instant::now();
            } else if waiting_since.elapsed() >= AT_REST {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Marks written into the FIFO at `path`, which is made when it is not there.
    ///
    /// # Errors
    /// It cannot be made or opened, or is something else.
    pub fn add_fifo(&mut self, path: &Path, undo: &Undo) -> Result<(), LabError> {
        if std::fs::metadata(path).is_ok_and(|found| !found.file_type().is_fifo()) {
            return Err(LabError::refused(
                path.display(),
                "it is there, and no FIFO",
                "name another path for --marks; it is made",
            ));
        }
        if !path.exists() {
            let step = Step::RemoveFile { path: path.to_path_buf() };
            let mode = Mode::RUSR | Mode::WUSR;
            undo.make(step, || Ok(mknodat(CWD, path, FileType::Fifo, mode, 0)?))?;
        }
        // Also for writing: so it has no end between two writers.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let open = std::fs::OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        let file = open.map_err(|e| LabError::file("open", path, e))?;
        self.fifos.push(Fifo { file, rest: Lines::default() });
        Ok(())
    }

    /// The marks that came since the last look.
    pub fn poll(&mut self) -> Vec<String> {
        let mut marks = Vec::new();
        for fifo in &mut self.fifos {
            marks.extend(read_all(&mut fifo.file, &mut fifo.rest));
        }
        let mut lines = self.log.as_mut().map(LogFile::poll).unwrap_or_default();
        lines.extend(self.output.iter().flat_map(Receiver::try_iter));
        if let Some(pattern) = &self.pattern {
            marks.extend(lines.iter().filter_map(|line| matched(pattern, line)));
        }
        marks
    }
}

/// How long the end of a watch waits for marks in the last lines.
const SETTLED: Duration = Duration::from_millis(100);
/// How long nothing comes through a pipe that has nothing more in it.
const AT_REST: Duration = Duration::from_millis(30);

fn read_all(file: &mut File, rest: &mut Lines) -> Vec<String> {
    let mut lines = Vec::new();
    let mut buffer = [0; 64 << 10];
    while let Ok(n @ 1..) = file.read(&mut buffer) {
        lines.extend(rest.take(&buffer[..n]));
    }
    lines
}

impl LogFile {
    fn at_end(path: PathBuf) -> LogFile {
        let mut log = LogFile { path, open: None, rest: Lines::default() };
        log.open();
        if let Some((file, _)) = &mut log.open {
            let _ = file.seek(SeekFrom::End(0)); // a pipe is read from where it is
        }
        log
    }

    fn open(&mut self) {
        self.open = File::open(&self.path).ok().and_then(|file| {
            let inode = file.metadata().ok()?.ino();
            Some((file, inode))
        });
    }

    fn poll(&mut self) -> Vec<String> {
        let now = std::fs::metadata(&self.path).ok();
        let mut lines = Vec::new();
        if let Some((file, inode)) = &mut self.open {
            lines = read_all(file, &mut self.rest);
            let place = file.stream_position().unwrap_or(0);
            let same = now.as_ref().is_some_and(|now| now.ino() == *inode && now.len() >= place);
            if same || now.is_none() {
                return lines;
            }
        }
        // New, in place of another, or cut: from its beginning.
        if now.is_some() {
            self.rest = Lines::default();
            self.open();
            lines.extend(
                self.open.as_mut().map(|(file, _)| read_all(file, &mut self.rest)).unwrap_or_default(),
            );
        }
        lines
    }
}

/// Copies bytes to our own output as they come, and tells their lines. The thread ends with the
/// pipe.
fn pass_on(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    tell: Sender<String>,
) -> PassingOn {
    let waits = Arc::new(AtomicBool::new(false));
    let at_rest = waits.clone();
    let copy = move || {
        let (mut buffer, mut lines) = (vec![0; 64 << 10], Lines::default());
        loop {
            at_rest.store(true, Ordering::Release);
            let read = from.read(&mut buffer);
            at_rest.store(false, Ordering::Release);
            let bytes = match read {
                Ok(n @ 1..) => &buffer[..n],
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                _ => break,
            };
            // First the marks: the reader of our output may be slow, or gone.
            lines.take(bytes).into_iter().for_each(|line| drop(tell.send(line)));
            let _ = to.write_all(bytes).and_then(|()| to.flush());
        }
        lines.rest().into_iter().for_each(|line| drop(tell.send(line)));
    };
    // Without a thread the program would wait for its pipe for ever.
    let thread = std::thread::Builder::new().name("output".into()).spawn(copy);
    PassingOn { thread: thread.expect("a thread can be started"), waits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_first_group_or_what_matched() {
        let of = |pattern: &str, line: &str| matched(&Regex::new(pattern).unwrap(), line);
        assert_eq!(of("^query (Q[0-9]+)", "query Q17 begins"), Some("Q17".into()));
        assert_eq!(of("phase .*", "now phase two"), Some("phase two".into()));
        assert_eq!(of("phase", "none"), None);
    }

    /// A writer that takes a while for each byte, and may be looked at.
    struct Slow(Arc<parking_lot::Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            std::thread::sleep(Duration::from_millis(20));
            self.0.lock().push(bytes[0]);
            Ok(1)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_end_of_the_output_reaches_a_slow_reader() {
        let passed = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let (from, mut program) = std::io::pipe().unwrap();
        let left_open = program.try_clone().unwrap(); // by a process that was left behind
        let (tell, told) = channel();
        let marks = Marks { passing: vec![pass_on(from, Slow(passed.clone()), tell)], ..Marks::default() };
        program.write_all(b"first\nwithout an end").unwrap();
        drop(program);
        marks.pass_on_rest(&|| true);
        assert_eq!(*passed.lock(), b"first\nwithout an end");
        assert_eq!(told.try_recv().as_deref(), Ok("first"));
        drop(left_open);
        marks.pass_on_rest(&|| true);
        assert_eq!(told.recv().as_deref(), Ok("without an end"));
    }

    #[test]
    fn a_log_is_followed_over_cuts_and_new_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "old\n").unwrap();
        let mut log = LogFile::at_end(path.clone());
        let add = |text: &str| {
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        assert!(log.poll().is_empty(), "older lines are no marks");
        add("one\nha");
        assert_eq!(log.poll(), ["one"]);
        add("lf\n");
        assert_eq!(log.poll(), ["half"]);
        std::fs::write(&path, "cut\n").unwrap();
        assert_eq!(log.poll(), ["cut"]);
        std::fs::rename(&path, dir.path().join("log.1")).unwrap();
        assert!(log.poll().is_empty());
        add("next\n");
        assert_eq!(log.poll(), ["next"]);
    }

    #[test]
    fn marks_come_through_a_fifo() {
        let dir = tempfile::tempdir().unwrap();
        let undo = Undo::open_in(dir.path(), "test").unwrap();
        let path = dir.path().join("fifo");
        let mut marks = Marks::default();
        marks.add_fifo(&path, &undo).unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(b"load\nqueries\n").unwrap();
        assert_eq!(marks.poll(), ["load", "queries"]);
        undo.undo().unwrap();
        assert!(!path.exists(), "one that was made is removed");
        std::fs::write(&path, "").unwrap();
        let error = marks.add_fifo(&path, &undo).unwrap_err().to_string();
        assert!(error.contains("no FIFO") && error.contains("--marks"), "{error}");
    }
}
