//! Events of all processors in the order of time, while tracing goes on.
//!
//! Each processor's buffer is in order by itself. Everything written before a round began is
//! read in that round, so what is older than the beginning of the round (less a little, for an
//! event being written just then) can be handed on in order; the rest waits for the next round.

use std::io;

use super::event::{Decoded, Decoder};
use super::ring_page::RingPage;
use super::tracefs::PageReader;

/// An event is written within this time of its time stamp.
const SLACK_NS: u64 = 5_000_000;

/// Reads, decodes and orders.
pub struct Collector {
    readers: Vec<PageReader>,
    decoder: Decoder,
    waiting: Vec<Decoded>,
    /// Pages that say of themselves that events were lost before them.
    pub pages_after_loss: u64,
    /// Bytes of pages read.
    pub bytes: u64,
}

impl Decoded {
    /// When it happened: CLOCK_MONOTONIC, in ns.
    pub fn time_ns(&self) -> u64 {
        match self {
            Decoded::Block(event) => event.time_ns,
            Decoded::Plug(event) => event.time_ns,
            Decoded::Remap(event) => event.time_ns,
            Decoded::Touch(event) => event.time_ns,
            Decoded::Below(_, event) => event.time_ns,
            Decoded::Fork { time_ns, .. } => *time_ns,
        }
    }
}

impl Collector {
    /// Over the buffers of all processors.
    pub fn new(readers: Vec<PageReader>, decoder: Decoder) -> Collector {
        Collector { readers, decoder, waiting: Vec::new(), pages_after_loss: 0, bytes: 0 }
    }

    /// Reads what there is and hands on, in order, what is older than the round. Answers the
    /// bytes read.
    ///
    /// # Errors
    /// A buffer of the kernel cannot be read.
    pub fn round(&mut self, take: &mut dyn FnMut(Decoded)) -> io::Result<u64> {
        let until = monotonic_ns().saturating_sub(SLACK_NS);
        let read = self.read_all()?;
        self.hand_on(until, take);
        Ok(read)
    }

    /// The last round, when nothing is written any more.
    ///
    /// # Errors
    /// A buffer of the kernel cannot be read.
    pub fn finish(&mut self, take: &mut dyn FnMut(Decoded)) -> io::Result<()> {
        self.read_all()?;
        self.hand_on(u64::MAX, take);
        Ok(())
    }

    fn read_all(&mut self) -> io::Result<u64> {
        let before = self.bytes;
        for reader in &mut self.readers {
            let cpu = reader.cpu as u16;
            reader.drain(&mut |bytes| {
                self.bytes += bytes.len() as u64;
                let Some(page) = RingPage::new(bytes) else { return };
                self.pages_after_loss += u64::from(page.lost_before);
                let events = page.events().filter_map(|(t, event)| self.decoder.decode(t, cpu, event));
                self.waiting.extend(events);
            })?;
        }
        Ok(self.bytes - before)
    }

    fn hand_on(&mut self, until: u64, take: &mut dyn FnMut(Decoded)) {
        // A few sorted runs behind each other, which the sort finds and merges; it is stable,
        // so the order within a processor stays.
        self.waiting.sort_by_key(Decoded::time_ns);
        let end = self.waiting.partition_point(|event| event.time_ns() < until);
        self.waiting.drain(..end).for_each(take);
    }
}

/// CLOCK_MONOTONIC, in ns, as the instance's clock.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
