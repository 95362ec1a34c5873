//! Block events, decoded: what happened to which sectors, when, on which processor, by whom.
//!
//! | letter | event | meaning |
//! |---|---|---|
//! | Q | block_bio_queue | a bio is handed to the block layer: what the kernel asks for |
//! | X | block_split | a bio is too long and is split |
//! | M, F | block_bio_backmerge, _frontmerge | a bio joins a request at its end, its front |
//! | M | block_rq_merge | two requests become one |
//! | G | block_getrq | a request is made for a bio |
//! | I | block_rq_insert | the request is given to the scheduler |
//! | R | block_rq_requeue | the device did not take it; it waits again |
//! | D | block_rq_issue | the request is issued to the device: what the device gets |
//! | C | block_rq_complete | the device has answered, for all or a part of it |
//! | C | block_bio_complete | a bio is over that never was a request: of a device without them |
//! | P | block_plug | a thread holds requests back, to hand them over together |
//! | U | block_unplug | it hands them over |
//! | A | block_bio_remap | a bio goes on to another device: of a partition, md or dm |
//!
//! The last four are not in every kernel. Plugs have a thread and no device.
//!
//! Other events tell the file that a thread works on, and who made a file dirty ([`Touch`]).
//! Events of the devices below the traced one are [`Decoded::Below`].

use super::device_number;
use super::format::{Field, Format};

/// The kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the table above
pub enum Action {
    Queue,
    Split,
    BackMerge,
    FrontMerge,
    GetRequest,
    Insert,
    Requeue,
    RequestMerge,
    Issue,
    Complete,
    BioComplete,
}

impl Action {
    /// Actions with their events.
    pub const EVENTS: [(Action, &'static str); 10] = [
        (Action::Queue, "block/block_bio_queue"),
        (Action::Split, "block/block_split"),
        (Action::BackMerge, "block/block_bio_backmerge"),
        (Action::FrontMerge, "block/block_bio_frontmerge"),
        (Action::GetRequest, "block/block_getrq"),
        (Action::Insert, "block/block_rq_insert"),
        (Action::Requeue, "block/block_rq_requeue"),
        (Action::RequestMerge, "block/block_rq_merge"),
        (Action::Issue, "block/block_rq_issue"),
        (Action::Complete, "block/block_rq_complete"),
    ];

    /// Those that a kernel may lack.
    pub const OPTIONAL: [(Action, &'static str); 1] = [(Action::BioComplete, "block/block_bio_complete")];
}

/// Kinds of requests, as the columns of diskstats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum RequestKind {
    Read,
    Write,
    Discard,
    Flush,
    Other,
}

impl RequestKind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
            RequestKind::Discard => "discard",
            RequestKind::Flush => "flush",
            RequestKind::Other => "other",
        }
    }
}

/// The letters of `rwbs`, as bits for export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Its operation.
    pub kind: RequestKind,
    /// A program waits for it.
    pub sync: bool,
    /// Read-ahead.
    pub ahead: bool,
    /// About the file system's own structures.
    pub meta: bool,
    /// The device's cache is emptied first.
    pub flush: bool,
    /// Durable when it is over.
    pub fua: bool,
}

impl Operation {
    /// Reads letters such as `RA`, `WS`, `FWFSM`. An F before the kind is a flush, behind it
    /// FUA.
    pub fn parse(letters: &[u8]) -> Operation {
        let mut op = Operation {
            kind: RequestKind::Other,
            sync: false,
            ahead: false,
            meta: false,
            flush: false,
            fua: false,
        };
        let (first, rest) = match letters {
            [b'F', b'W' | b'R' | b'D' | b'N' | b'F', ..] => {
                op.flush = true;
                (letters[1], &letters[2..])
            }
            [first, rest @ ..] => (*first, rest),
            [] => return op,
        };
        op.kind = match first {
            b'R' => RequestKind::Read,
            b'W' => RequestKind::Write,
            b'D' => RequestKind::Discard,
            b'F' => RequestKind::Flush,
            _ => RequestKind::Other,
        };
        for letter in rest {
            match letter {
                b'F' => op.fua = true,
                b'A' => op.ahead = true,
                b'S' => op.sync = true,
                b'M' => op.meta = true,
                _ => {}
            }
        }
        op
    }
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEvent {
    /// CLOCK_MONOTONIC, in ns.
    pub time_ns: u64,
    /// The processor it happened on.
    pub cpu: u16,
    /// The event.
    pub action: Action,
    /// The operation of the request.
    pub op: Operation,
    /// First sector (of 512 bytes).
    pub sector: u64,
    /// Sectors; of a split: none.
    pub sectors: u32,
    /// The second part of a split bio begins here.
    pub split_at: u64,
    /// Thread that was running. Of Q it is the one that asked; of D and C it may be any.
    pub pid: u32,
    /// Error number of a completion, as a negative number; 0 is success.
    pub error: i32,
    /// Name of the thread.
    pub comm: [u8; 16],
}

/// A thread plugs or unplugs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlugEvent {
    /// CLOCK_MONOTONIC, in ns.
    pub time_ns: u64,
    /// The processor it happened on.
    pub cpu: u16,
    /// The thread.
    pub pid: u32,
    /// Requests that an unplug hands over; none for a plug.
    pub requests: Option<u32>,
}

/// A bio goes on to another device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemapEvent {
    /// CLOCK_MONOTONIC, in ns.
    pub time_ns: u64,
    /// The processor it happened on.
    pub cpu: u16,
    /// Thread that was running.
    pub pid: u32,
    /// The operation of the bio.
    pub op: Operation,
    /// The device it goes to: major · 2^20 + minor.
    pub dev: u32,
    /// Its first sector there.
    pub sector: u64,
    /// Sectors.
    pub sectors: u32,
    /// The device it came from.
    pub old_dev: u32,
    /// Its first sector there.
    pub old_sector: u64,
}

/// A relation of a thread to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Its next bios are of the file.
    Begin,
    /// They are not any more.
    End,
    /// The file was clean, and is to be written back because of the thread.
    Dirty,
    /// The thread gave a page of the file new data, which is to be written back.
    Written,
}

impl Touch {
    /// Events, with the names of the fields of device and inode. A kernel may lack any.
    pub const EVENTS: [(Touch, &'static str, &'static str, &'static str); 8] = [
        (Touch::Dirty, "writeback/writeback_dirty_inode_enqueue", "dev", "ino"),
        (Touch::Begin, "writeback/writeback_single_inode_start", "name", "ino"),
        (Touch::End, "writeback/writeback_single_inode", "name", "ino"),
        (Touch::Begin, "ext4/ext4_writepages", "dev", "ino"),
        (Touch::Begin, "iomap/iomap_writeback_folio", "dev", "ino"),
        (Touch::Begin, "iomap/iomap_dio_rw_begin", "dev", "ino"),
        (Touch::Begin, "filemap/mm_filemap_add_to_page_cache", "s_dev", "i_ino"),
        (Touch::Written, "writeback/writeback_dirty_folio", "name", "ino"),
    ];

    /// How many of them, from the first, tell of writing back only: they are rare.
    pub const OF_WRITE_BACK: usize = 5;
}

/// See [`Touch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TouchEvent {
    /// CLOCK_MONOTONIC, in ns.
    pub time_ns: u64,
    /// The thread.
    pub pid: u32,
    /// The relation.
    pub touch: Touch,
    /// Device of the file system; of events that tell the disk, that.
    pub dev: u32,
    /// Number of the inode.
    pub ino: u64,
}

/// Formats of the events beside those of requests, where they are traced.
#[derive(Debug, Clone, Default)]
pub struct OtherFormats {
    /// [`OtherFormats::REMAP`].
    pub remap: Option<Format>,
    /// Of [`Touch::EVENTS`], with their place there.
    pub touches: Vec<(usize, Format)>,
    /// File systems whose write-back is not named by the number of a disk: its name, and their
    /// number.
    pub file_systems: Vec<(String, u32)>,
    /// The traced device; events of other ones are [`Decoded::Below`]. 0: of none.
    pub dev: u32,
    /// `sched_process_fork`.
    pub fork: Option<Format>,
    /// [`OtherFormats::PLUG`].
    pub plug: Option<Format>,
    /// [`OtherFormats::UNPLUG`].
    pub unplug: Option<Format>,
}

impl OtherFormats {
    /// The event of a plug.
    pub const PLUG: &'static str = "block/block_plug";
    /// The event of an unplug.
    pub const UNPLUG: &'static str = "block/block_unplug";
    /// The event of a remap.
    pub const REMAP: &'static str = "block/block_bio_remap";
}

/// Fields of one kind of block event.
struct BlockFormat {
    action: Action,
    dev: Field,
    sector: Field,
    sectors: Option<Field>,
    split_at: Option<Field>,
    rwbs: Field,
    error: Option<Field>,
    comm: Option<Field>,
}

struct RemapFormat {
    id: u16,
    dev: Field,
    sector: Field,
    sectors: Field,
    old_dev: Field,
    old_sector: Field,
    rwbs: Field,
}

struct TouchFormat {
    id: u16,
    touch: Touch,
    /// A number, or the text `7:0` of a disk.
    dev: Field,
    is_text: bool,
    ino: Field,
}

/// Decodes payloads by the formats of this kernel.
pub struct Decoder {
    /// By event number.
    formats: Vec<(u16, BlockFormat)>,
    remap: Option<RemapFormat>,
    touches: Vec<TouchFormat>,
    file_systems: Vec<(String, u32)>,
    dev: u32,
    fork: Option<(u16, Field, Field)>,
    plug: Option<u16>,
    unplug: Option<(u16, Field)>,
    kind: Field,
    pid: Field,
}

/// A payload, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// A block event.
    Block(BlockEvent),
    /// A plug or an unplug.
    Plug(PlugEvent),
    /// A bio goes on to another device.
    Remap(RemapEvent),
    /// A thread works on a file.
    Touch(TouchEvent),
    /// An event of a device below the traced one, and that device.
    Below(u32, BlockEvent),
    /// A process or thread was made.
    Fork {
        /// When, in ns.
        time_ns: u64,
        /// By whom.
        parent: u32,
        /// Its number.
        child: u32,
    },
}

impl Decoder {
    /// A decoder for the given formats.
    ///
    /// # Errors
    /// A format lacks a field; the message names it.
    pub fn new(blocks: &[(Action, Format)], others: &OtherFormats) -> Result<Decoder, String> {
        let any = &blocks.first().ok_or("no events")?.1;
        let mut formats = Vec::new();
        for (action, format) in blocks {
            let needs_size = *action != Action::Split;
            formats.push((
                format.id,
                BlockFormat {
                    action: *action,
                    dev: format.field("dev")?,
                    sector: format.field("sector")?,
                    sectors: needs_size.then(|| format.field("nr_sector")).transpose()?,
                    split_at: (!needs_size).then(|| format.field("new_sector")).transpose()?,
                    rwbs: format.field("rwbs")?,
                    error: format.field("error").ok(),
                    comm: format.field("comm").ok(),
                },
            ));
        }
        let fork = |f: &Format| Ok::<_, String>((f.id, f.field("parent_pid")?, f.field("child_pid")?));
        let fork = others.fork.as_ref().map(fork).transpose()?;
        let unplug = |f: &Format| Ok::<_, String>((f.id, f.field("nr_rq")?));
        let unplug = others.unplug.as_ref().map(unplug).transpose()?;
        let plug = others.plug.as_ref().map(|format| format.id);
        Ok(Decoder {
            formats,
            remap: others.remap.as_ref().map(RemapFormat::new).transpose()?,
            touches: others.touches.iter().map(TouchFormat::new).collect::<Result<_, _>>()?,
            file_systems: others.file_systems.clone(),
            dev: others.dev,
            fork,
            plug,
            unplug,
            kind: any.field("common_type")?,
            pid: any.field("common_pid")?,
        })
    }

    /// Decodes one payload; nothing for events that were not asked for.
    pub fn decode(&self, time_ns: u64, cpu: u16, event: &[u8]) -> Option<Decoded> {
        let id = self.kind.number(event) as u16;
        if let Some((_, format)) = self.formats.iter().find(|(other, _)| *other == id) {
            let number = |field: &Option<Field>| field.map_or(0, |f| f.number(event));
            let mut comm = [0; 16];
            if let Some(field) = format.comm {
                let text = field.text(event);
                let len = text.len().min(16);
                comm[..len].copy_from_slice(&text[..len]);
            }
            let block = BlockEvent {
                time_ns,
                cpu,
                action: format.action,
                op: Operation::parse(format.rwbs.text(event)),
                sector: place(format.sector.number(event)),
                sectors: number(&format.sectors) as u32,
                split_at: number(&format.split_at) as u64,
                pid: self.pid.number(event) as u32,
                error: number(&format.error) as i32,
                comm,
            };
            let dev = format.dev.number(event) as u32;
            let is_below = self.dev != 0 && dev != self.dev;
            return Some(if is_below { Decoded::Below(dev, block) } else { Decoded::Block(block) });
        }
        self.other(id, time_ns, cpu, event)
    }

    fn touch(&self, id: u16, time_ns: u64, event: &[u8]) -> Option<Decoded> {
        let format = self.touches.iter().find(|format| format.id == id)?;
        let named = |name: &[u8]| self.file_systems.iter().find(|(of, _)| of.as_bytes() == name);
        let dev = match format.is_text {
            true => {
                let name = format.dev.text(event);
                disk_number(name).or_else(|| named(name).map(|(_, dev)| *dev))?
            }
            false => format.dev.number(event) as u32,
        };
        let (pid, ino) = (self.pid.number(event) as u32, format.ino.number(event) as u64);
        Some(Decoded::Touch(TouchEvent { time_ns, pid, touch: format.touch, dev, ino }))
    }

    fn remapped(&self, format: &RemapFormat, time_ns: u64, cpu: u16, event: &[u8]) -> Decoded {
        Decoded::Remap(RemapEvent {
            time_ns,
            cpu,
            pid: self.pid.number(event) as u32,
            op: Operation::parse(format.rwbs.text(event)),
            dev: format.dev.number(event) as u32,
            sector: place(format.sector.number(event)),
            sectors: format.sectors.number(event) as u32,
            old_dev: format.old_dev.number(event) as u32,
            old_sector: place(format.old_sector.number(event)),
        })
    }

    fn other(&self, id: u16, time_ns: u64, cpu: u16, event: &[u8]) -> Option<Decoded> {
        let plugged = |requests| {
            let pid = self.pid.number(event) as u32;
            Decoded::Plug(PlugEvent { time_ns, cpu, pid, requests })
        };
        if self.plug == Some(id) {
            return Some(plugged(None));
        }
        if let Some(format) = self.remap.as_ref().filter(|format| format.id == id) {
            return Some(self.remapped(format, time_ns, cpu, event));
        }
        if let Some(touch) = self.touch(id, time_ns, event) {
            return Some(touch);
        }
        match (&self.unplug, &self.fork) {
            (Some((unplug, requests)), _) if *unplug == id => {
                Some(plugged(Some(u32::try_from(requests.number(event)).unwrap_or(0))))
            }
            (_, Some((fork, parent, child))) if *fork == id => Some(Decoded::Fork {
                time_ns,
                parent: parent.number(event) as u32,
                child: child.number(event) as u32,
            }),
            _ => None,
        }
    }
}

impl RemapFormat {
    fn new(format: &Format) -> Result<RemapFormat, String> {
        Ok(RemapFormat {
            id: format.id,
            dev: format.field("dev")?,
            sector: format.field("sector")?,
            sectors: format.field("nr_sector")?,
            old_dev: format.field("old_dev")?,
            old_sector: format.field("old_sector")?,
            rwbs: format.field("rwbs")?,
        })
    }
}

impl TouchFormat {
    fn new((place, format): &(usize, Format)) -> Result<TouchFormat, String> {
        let (touch, _, dev, ino) = Touch::EVENTS[*place];
        let (is_text, dev) = (dev == "name", format.field(dev)?);
        Ok(TouchFormat { id: format.id, touch, dev, is_text, ino: format.field(ino)? })
    }
}

/// The number of a disk by the name of its write-back: `7:0`.
fn disk_number(name: &[u8]) -> Option<u32> {
    device_number::parse(std::str::from_utf8(name).ok()?)
}

/// A flush has no sector: it is issued with 0 and completed with -1.
fn place(sector: i64) -> u64 {
    u64::try_from(sector).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_understood_by_their_place() {
        let op = |letters: &str| Operation::parse(letters.as_bytes());
        assert_eq!((op("RA").kind, op("RA").ahead, op("RA").sync), (RequestKind::Read, true, false));
        let both = op("FWFSM");
        assert_eq!(
            (both.kind, both.flush, both.fua, both.sync, both.meta),
            (RequestKind::Write, true, true, true, true)
        );
        assert_eq!((op("WFS").flush, op("WFS").fua), (false, true));
        assert_eq!(op("FF").kind, RequestKind::Flush);
        assert_eq!(op("F").kind, RequestKind::Flush);
        assert_eq!(op("DE").kind, RequestKind::Discard);
        assert_eq!(op("").kind, RequestKind::Other);
    }
}
