//! The trace in the binary format of blktrace, one file per processor, for blkparse, btt, and
//! replay by fio.
//!
//! One record is 48 bytes, little endian here, and a payload:
//!
//! | bytes | field | |
//! |---|---|---|
//! | 0..4 | magic | 0x65617400 and version 7 |
//! | 4..8 | sequence | counted per file |
//! | 8..16 | time | ns |
//! | 16..24 | sector | |
//! | 24..28 | bytes | |
//! | 28..32 | action | number of the action, and from bit 16 the categories |
//! | 32..36 | pid | |
//! | 36..40 | device | major · 2^20 + minor |
//! | 40..44 | cpu | |
//! | 44..46 | error | |
//! | 46..48 | payload bytes | |

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::event::{Action, BlockEvent, Operation, PlugEvent, RemapEvent, RequestKind};

const MAGIC: u32 = 0x6561_7407;

const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const SYNC: u32 = 1 << 19;
const QUEUE: u32 = 1 << 20;
const REQUEUE: u32 = 1 << 21;
const ISSUE: u32 = 1 << 22;
const COMPLETE: u32 = 1 << 23;
const FS: u32 = 1 << 24;
const NOTIFY: u32 = 1 << 26;
const AHEAD: u32 = 1 << 27;
const META: u32 = 1 << 28;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;

/// Numbers of the actions of plugs.
const PLUG: u32 = 9;
const UNPLUG: u32 = 10;
/// Of a remap, with the devices and the sector it came from behind it.
const REMAP: u32 = 15;

/// The fields of a record that all events have.
struct Head {
    time_ns: u64,
    cpu: u16,
    pid: u32,
    error: i32,
}

impl From<&BlockEvent> for Head {
    fn from(event: &BlockEvent) -> Head {
        Head { time_ns: event.time_ns, cpu: event.cpu, pid: event.pid, error: event.error }
    }
}

/// Writes `NAME.blktrace.N`.
pub struct BlktraceFiles {
    device: u32,
    files: Vec<(BufWriter<File>, u32)>,
    named: HashSet<u32>,
    base: PathBuf,
}

impl BlktraceFiles {
    /// Files beginning with `base`, for a device of the kernel's number (major · 2^20 + minor).
    pub fn create(base: &Path, device: u32) -> BlktraceFiles {
        BlktraceFiles { device, files: Vec::new(), named: HashSet::new(), base: base.to_path_buf() }
    }

    /// Adds an event; they come in order of time.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&mut self, event: &BlockEvent) -> io::Result<()> {
        self.files_to(event.cpu)?;
        let asks = matches!(event.action, Action::Queue | Action::GetRequest | Action::Issue);
        if asks && self.named.insert(event.pid) {
            let notice = NOTIFY; // number 0: the name of a process
            self.record(&event.into(), notice, 0, 0, &event.comm)?;
        }
        let split = event.split_at.to_be_bytes();
        let (sectors, payload): (u32, &[u8]) = match event.action {
            Action::Split => {
                (u32::try_from(event.split_at.saturating_sub(event.sector)).unwrap_or(u32::MAX), &split)
            }
            _ => (event.sectors, &[]),
        };
        self.record(&event.into(), action(event), event.sector, sectors, payload)
    }

    /// Adds a plug or an unplug; in order of time as the others.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_plug(&mut self, event: &PlugEvent) -> io::Result<()> {
        self.files_to(event.cpu)?;
        let head = Head { time_ns: event.time_ns, cpu: event.cpu, pid: event.pid, error: 0 };
        match event.requests {
            None => self.record(&head, PLUG | QUEUE | READ, 0, 0, &[]),
            Some(requests) => {
                self.record(&head, UNPLUG | QUEUE | READ, 0, 0, &u64::from(requests).to_be_bytes())
            }
        }
    }

    /// Adds a remap; in order of time as the others.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_remap(&mut self, event: &RemapEvent) -> io::Result<()> {
        self.files_to(event.cpu)?;
        let head = Head { time_ns: event.time_ns, cpu: event.cpu, pid: event.pid, error: 0 };
        let mut from = [0; 16];
        from[..4].copy_from_slice(&event.old_dev.to_be_bytes());
        from[4..8].copy_from_slice(&event.dev.to_be_bytes());
        from[8..].copy_from_slice(&event.old_sector.to_be_bytes());
        let action = REMAP | QUEUE | flags(event.op);
        self.record(&head, action, event.sector, event.sectors, &from)
    }

    fn files_to(&mut self, cpu: u16) -> io::Result<()> {
        while self.files.len() <= usize::from(cpu) {
            let path = PathBuf::from(format!("{}.blktrace.{}", self.base.display(), self.files.len()));
            self.files.push((BufWriter::with_capacity(1 << 18, File::create(path)?), 0));
        }
        Ok(())
    }

    fn record(
        &mut self,
        event: &Head,
        action: u32,
        sector: u64,
        sectors: u32,
        payload: &[u8],
    ) -> io::Result<()> {
        let (file, sequence) = &mut self.files[usize::from(event.cpu)];
        *sequence += 1;
        let mut record = [0; 48];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            record[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC.to_ne_bytes());
        put(&sequence.to_ne_bytes());
        put(&event.time_ns.to_ne_bytes());
        put(&sector.to_ne_bytes());
        put(&bytes_of(sectors).to_ne_bytes());
        put(&action.to_ne_bytes());
        put(&event.pid.to_ne_bytes());
        put(&self.device.to_ne_bytes());
        put(&u32::from(event.cpu).to_ne_bytes());
        put(&(event.error.unsigned_abs() as u16).to_ne_bytes());
        put(&(payload.len() as u16).to_ne_bytes());
        file.write_all(&record)?;
        file.write_all(payload)
    }

    /// Everything is in the files; how many there are.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(mut self) -> io::Result<usize> {
        for (file, _) in &mut self.files {
            file.flush()?;
        }
        Ok(self.files.len())
    }
}

/// Of more than the field holds (a discard of 4 GiB), the most whole sectors that it does.
fn bytes_of(sectors: u32) -> u32 {
    const MOST: u32 = u32::MAX / 512;
    sectors.min(MOST) * 512
}

fn action(event: &BlockEvent) -> u32 {
    let (number, category) = match event.action {
        Action::Queue => (1, QUEUE),
        Action::BackMerge | Action::RequestMerge => (2, QUEUE),
        Action::FrontMerge => (3, QUEUE),
        Action::GetRequest => (4, QUEUE),
        Action::Requeue => (6, REQUEUE),
        Action::Issue => (7, ISSUE),
        Action::Complete | Action::BioComplete => (8, COMPLETE),
        Action::Insert => (12, QUEUE),
        Action::Split => (13, 0),
    };
    number | category | flags(event.op)
}

fn flags(op: Operation) -> u32 {
    let direction = match op.kind {
        RequestKind::Read => READ,
        RequestKind::Write => WRITE,
        RequestKind::Discard => WRITE | DISCARD,
        RequestKind::Flush => FLUSH,
        RequestKind::Other => 0,
    };
    let flag = |on: bool, bit: u32| if on { bit } else { 0 };
    let others = flag(op.sync, SYNC)
        | flag(op.ahead, AHEAD)
        | flag(op.meta, META)
        | flag(op.flush, FLUSH)
        | flag(op.fua, FUA);
    direction | others | FS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discard_of_4_gib_is_not_one_of_nothing() {
        assert_eq!([0, 1, 8, 1 << 22].map(bytes_of), [0, 512, 4096, 1 << 31]);
        assert_eq!([1 << 23, u32::MAX].map(bytes_of), [u32::MAX - 511; 2]);
    }
}
