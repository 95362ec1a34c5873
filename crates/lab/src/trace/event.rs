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
//!
//! The last three are not in every kernel. Plugs have a thread and no device.

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

/// Formats of the events beside those of requests, where they are traced.
#[derive(Debug, Clone, Default)]
pub struct OtherFormats {
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
}

/// Fields of one kind of block event.
struct BlockFormat {
    action: Action,
    sector: Field,
    sectors: Option<Field>,
    split_at: Option<Field>,
    rwbs: Field,
    error: Option<Field>,
    comm: Option<Field>,
}

/// Decodes payloads by the formats of this kernel.
pub struct Decoder {
    /// By event number.
    formats: Vec<(u16, BlockFormat)>,
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
            return Some(Decoded::Block(BlockEvent {
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
            }));
        }
        self.other(id, time_ns, cpu, event)
    }

    fn other(&self, id: u16, time_ns: u64, cpu: u16, event: &[u8]) -> Option<Decoded> {
        let plugged = |requests| {
            let pid = self.pid.number(event) as u32;
            Decoded::Plug(PlugEvent { time_ns, cpu, pid, requests })
        };
        if self.plug == Some(id) {
            return Some(plugged(None));
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
