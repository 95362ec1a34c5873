//! A trace instance of our own: made in tracefs, its events and filters set, its per-processor
//! buffers read as raw pages.
//!
//! Removing the instance takes everything in it away, so it is the only thing journalled (and
//! the mount, where tracefs was not mounted). Its files are used while nothing takes it down
//! ([`Untouched`]): a kernel (6.18) failed when an instance was removed just then.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::mount::{MountFlags, mount};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use super::format::Format;
use crate::LabError;
use crate::undo::{Step, StepId, Undo, UndoError, Untouched, state_dir};

const WITHOUT: &str = "`snowmelt-lab watch` needs neither root nor tracefs and shows diskstats";

/// Where tracefs is; mounted if it was not.
///
/// # Errors
/// There is none, and it cannot be mounted.
pub fn find_tracefs(undo: &Undo) -> Result<PathBuf, LabError> {
    /// Of two threads one mounts it.
    static MOUNTING: Mutex<()> = Mutex::new(());
    let _mounting = MOUNTING.lock();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let own = state_dir().join(format!("tracefs-{}", std::process::id()));
    // Another command's mount goes when that command ends.
    let lasts = |target: &PathBuf| *target == own || !target.starts_with(state_dir());
    let mounted = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (target, kind) = (words.nth(1)?, words.next()?);
        Some(PathBuf::from(target)).filter(|target| kind == "tracefs" && lasts(target))
    });
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::refused("tracing block requests", "needs root", WITHOUT));
    }
    if let Some(path) = mounted {
        return Ok(path);
    }
    undo.make_dir(&own)?;
    let step = Step::Unmount { target: own.clone() };
    let attempt = || mount("tracefs", &own, "tracefs", MountFlags::empty(), None).map_err(io::Error::from);
    match undo.make(step, attempt) {
        Ok(_) => Ok(own),
        Err(e) => Err(LabError::refused("mounting tracefs", e.to_string(), WITHOUT)),
    }
}

/// One per traced device.
static INSTANCES: AtomicU32 = AtomicU32::new(0);

/// Our instance, removed by its step in the journal; when it is dropped, at the latest.
pub struct Instance {
    dir: PathBuf,
    /// Bytes of one page of the ring buffer.
    pub page_bytes: usize,
    processors: Vec<usize>,
    made: Option<Made>,
}

/// The step that made it.
struct Made {
    step: StepId,
    undo: Undo,
}

impl Made {
    fn undo(&self) -> Result<(), UndoError> {
        self.undo.undo_one(self.step)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        drop(self.undo()); // else it is undone with all steps
    }
}

/// Statistics of a processor's buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BufferStats {
    /// Events lost: overwritten, dropped, or interrupted while being written.
    pub lost: u64,
}

impl Instance {
    /// Makes an instance with `buffer_kb` of memory per processor. Nothing is traced yet.
    ///
    /// # Errors
    /// The instance cannot be made: most often a lack of rights.
    pub fn create(tracefs: &Path, undo: &Undo, buffer_kb: u64) -> Result<Instance, LabError> {
        let number = INSTANCES.fetch_add(1, Ordering::Relaxed);
        let name = format!("snowmelt-lab-{}-{number}", std::process::id());
        let dir = tracefs.join("instances").join(name);
        let made = Made { step: undo.make_dir(&dir)?, undo: undo.clone() };
        let instance = undo.standing(|standing| Instance::set_up(dir, buffer_kb, standing))?;
        Ok(Instance { made: Some(made), ..instance })
    }

    /// Removes it now.
    ///
    /// # Errors
    /// It is in use.
    pub fn remove(&mut self) -> Result<(), UndoError> {
        self.made.take().map_or(Ok(()), |made| made.undo())
    }

    fn set_up(dir: PathBuf, buffer_kb: u64, _: &Untouched) -> Result<Instance, LabError> {
        let (page_bytes, processors) = (page_bytes(&dir), processors(&dir)?);
        let instance = Instance { page_bytes, processors, dir, made: None };
        instance.write("tracing_on", "0")?;
        // The clock of CLOCK_MONOTONIC, the same on all processors.
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", &buffer_kb.to_string())?;
        // A full buffer drops the newest events and counts them. Names are in the events: no
        // probe at every task switch.
        instance.write("options/overwrite", "0")?;
        if instance.dir.join("options/record-cmd").exists() {
            instance.write("options/record-cmd", "0")?;
        }
        Ok(instance)
    }

    /// One at a folder that looks like one.
    #[cfg(test)]
    pub fn at(dir: &Path) -> Instance {
        Instance { dir: dir.to_path_buf(), page_bytes: 4096, processors: Vec::new(), made: None }
    }

    /// True when this kernel has the event.
    pub fn has(&self, event: &str) -> bool {
        self.dir.join("events").join(event).is_dir()
    }

    /// Turns an event on, for what `filter` lets through (all when empty), and answers its
    /// format.
    ///
    /// # Errors
    /// This kernel has no such event, or refuses the filter.
    pub fn enable(&self, event: &str, filter: &str, _: &Untouched) -> Result<Format, LabError> {
        let folder = format!("events/{event}");
        let path = self.dir.join(&folder).join("format");
        let text = std::fs::read_to_string(&path).map_err(|e| LabError::file("read", &path, e))?;
        let format = Format::parse(&text)
            .map_err(|why| LabError::refused(path.display(), why, "please report the kernel version"))?;
        if !filter.is_empty() {
            self.write(&format!("{folder}/filter"), filter)?;
        }
        self.write(&format!("{folder}/enable"), "1")?;
        Ok(format)
    }

    /// Starts or stops writing events.
    ///
    /// # Errors
    /// The switch cannot be set.
    pub fn switch(&self, on: TraceSwitch, _: &Untouched) -> Result<(), LabError> {
        self.write("tracing_on", if on == TraceSwitch::On { "1" } else { "0" })
    }

    /// One reader per processor.
    ///
    /// # Errors
    /// A buffer cannot be opened.
    pub fn readers(&self, _: &Untouched) -> Result<Vec<PageReader>, LabError> {
        self.processors.iter().map(|cpu| PageReader::open(&self.dir, *cpu, self.page_bytes)).collect()
    }

    /// Sums over the processors.
    ///
    /// # Errors
    /// The statistics cannot be read.
    pub fn stats(&self, _: &Untouched) -> Result<BufferStats, LabError> {
        let mut sum = BufferStats::default();
        for cpu in &self.processors {
            let path = self.dir.join(format!("per_cpu/cpu{cpu}/stats"));
            let text = std::fs::read_to_string(&path).map_err(|e| LabError::file("read", &path, e))?;
            sum.lost += parse_lost(&text);
        }
        Ok(sum)
    }

    fn write(&self, name: &str, value: &str) -> Result<(), LabError> {
        let path = self.dir.join(name);
        std::fs::write(&path, value).map_err(|e| LabError::file("write", &path, e))
    }
}

/// See [`Instance::switch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceSwitch {
    /// Events are written.
    On,
    /// Events are not written.
    Off,
}

/// The raw pages of one processor's buffer.
pub struct PageReader {
    /// The processor.
    pub cpu: usize,
    source: File,
    pipe: (OwnedFd, File),
    page_bytes: usize,
    buffer: Vec<u8>,
}

/// Bytes of the pipe the pages travel through.
const PIPE_BYTES: usize = 1 << 20;

impl PageReader {
    fn open(dir: &Path, cpu: usize, page_bytes: usize) -> Result<PageReader, LabError> {
        let path = dir.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let mut options = File::options();
        options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
        let source = options.open(&path).map_err(|e| LabError::file("open", &path, e))?;
        let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
        let (out, into) = pipe.map_err(|e| LabError::system("make a pipe", e))?;
        // The limit for users may be lower.
        let size = fcntl_setpipe_size(&into, PIPE_BYTES).unwrap_or(64 << 10);
        let buffer = vec![0; size.max(page_bytes)];
        Ok(PageReader { cpu, source, pipe: (into, out.into()), page_bytes, buffer })
    }

    /// Hands all pages there are to `take`: whole ones by splice (they move, nothing is copied
    /// in the kernel), then the page still being filled by read.
    ///
    /// # Errors
    /// The buffer cannot be read.
    pub fn drain(&mut self, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        loop {
            let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
            let whole = self.buffer.len() / self.page_bytes * self.page_bytes;
            match splice(&self.source, None, &self.pipe.0, None, whole, flags) {
                Ok(0) => break,
                Ok(n) => {
                    self.pipe.1.read_exact(&mut self.buffer[..n])?;
                    self.buffer[..n].chunks(self.page_bytes).for_each(&mut *take);
                }
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        loop {
            match self.source.read(&mut self.buffer[..self.page_bytes]) {
                Ok(0) => return Ok(()),
                Ok(n) => take(&self.buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

fn page_bytes(dir: &Path) -> usize {
    let text = std::fs::read_to_string(dir.join("buffer_subbuf_size_kb")).unwrap_or_default();
    text.trim().parse::<usize>().map_or(4096, |kb| kb << 10) // kernels before 6.8 have pages
}

fn processors(dir: &Path) -> Result<Vec<usize>, LabError> {
    let path = dir.join("per_cpu");
    let entries = std::fs::read_dir(&path).map_err(|e| LabError::file("list", &path, e))?;
    let mut found: Vec<usize> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_prefix("cpu")?.parse().ok())
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// Lines such as `overrun: 0`, `commit overrun: 0`, `dropped events: 12`.
fn parse_lost(text: &str) -> u64 {
    let lost = |line: &str| match line.split_once(':')? {
        ("overrun" | "commit overrun" | "dropped events", n) => n.trim().parse::<u64>().ok(),
        _ => None,
    };
    text.lines().filter_map(lost).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a folder that is no tracefs: nothing can be set up.
    #[test]
    fn an_instance_that_is_not_used_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("instances")).unwrap();
        let undo = Undo::open_in(&dir.path().join("state"), "test").unwrap();
        let left = || std::fs::read_dir(dir.path().join("instances")).unwrap().count();
        assert!(Instance::create(dir.path(), &undo, 64).is_err());
        assert_eq!(left(), 0, "the journal is still there");
        let step = undo.make_dir(&dir.path().join("instances/other")).unwrap();
        let made = Some(Made { step, undo: undo.clone() });
        drop(Instance { made, ..Instance::at(dir.path()) });
        assert_eq!(left(), 0);
    }

    #[test]
    fn every_way_of_losing_events_counts() {
        let text = "entries: 0\noverrun: 3\ncommit overrun: 1\nbytes: 0\noldest event ts:  0.0\nnow ts: 7.1\n\
                    dropped events: 40\nread events: 129\n";
        assert_eq!(parse_lost(text), 44);
    }
}
