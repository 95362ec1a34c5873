//! Marks: moments that a log, the program's own output, a FIFO or `lab mark` names.
//!
//! A mark begins a phase and ends the one before; an empty mark only ends it. Sources are looked
//! at every few milliseconds by the loop of the watch, so a mark is late by no more than that,
//! unless its writer holds its lines back: programs buffer what they write into a pipe.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

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
}

/// Lines of a file from where it ended when the watch began; of a file that comes later, or
/// takes its place, all.
struct LogFile {
    path: PathBuf,
    open: Option<(File, u64)>,
    rest: Lines,
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
        if let Some(out) = out {
            pass_on(out, std::io::stdout(), tell.clone());
        }
        if let Some(err) = err {
            pass_on(err, std::io::stderr(), tell);
        }
        self.output = Some(told);
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

/// Copies lines to our own output, and tells them. The thread ends with the pipe.
fn pass_on(from: impl Read + Send + 'static, mut to: impl Write + Send + 'static, tell: Sender<String>) {
    let copy = move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let _ = to.write_all(&line).and_then(|()| to.flush()); // its reader may be gone
            let _ = tell.send(String::from_utf8_lossy(&line).trim_end().to_owned());
            line.clear();
        }
    };
    // Without a thread the program would wait for its pipe for ever.
    std::thread::Builder::new().name("output".into()).spawn(copy).expect("a thread can be started");
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
