//! The reserve: room on the disk that is taken when a database is made, so that work that frees
//! space can go on when the disk is full.
//!
//! File `reserve` in the database's directory. It holds nothing. What only gives room back, or
//! makes the journal usable again, may have it when the disk is full: checkpoints, commits that
//! make no stripe longer, compacting. It is then cut to nothing, and taken again by the next
//! checkpoint that finds room: all of it, or as much as there is.

use std::path::Path;
use std::sync::Arc;

use snowmelt_io::{Access, Device};

use crate::settings::config::StoreConfig;
use crate::settings::opener::{Caching, Directory};
use crate::sync::long_lock::LongLock;

/// Name of the file.
pub const FILE_NAME: &str = "reserve";

/// See the head of the file.
pub(crate) struct Reserve {
    /// `None` when there is to be none.
    device: Option<Arc<dyn Device>>,
    /// Bytes it should have.
    bytes: u64,
    /// Bytes it has.
    held: LongLock<u64>,
}

/// Whether the reserve may be used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MayUse {
    /// Only for room in the journal, when no stripe gets longer.
    Journal,
    /// For any need: the work gives back more than it takes.
    Reserve,
}

impl Reserve {
    /// Opens or makes it, with `bytes` if there is so much room. That it cannot be had is no
    /// error: a database must open on a full disk.
    pub fn open(dir: &Directory, bytes: u64, config: &StoreConfig) -> Reserve {
        let open = || dir.device(Path::new(FILE_NAME), Access::Create, Caching::Buffered);
        let opened = (bytes > 0).then(|| open().and_then(|device| Ok((device.len()?, device))));
        let (held, device) = match opened {
            Some(Ok((held, device))) => (held, Some(device)),
            Some(Err(e)) => {
                snowmelt_io::notice(&format!("{e}; going on without a reserve for a full disk"));
                (0, None)
            }
            None => (0, None),
        };
        let this = Reserve { device, bytes, held: LongLock::new("the reserve", held, &config.seams.clock) };
        this.refill();
        this
    }

    /// Gives its room back to the file system. False when there is none left.
    pub fn release(&self) -> bool {
        let Some(device) = &self.device else { return false };
        let mut held = self.held.lock();
        let had = std::mem::take(&mut *held) > 0;
        had && device.set_len(0).is_ok()
    }

    /// Takes the room that the reserve should have, or as much of it as there is.
    pub fn refill(&self) {
        /// Less is not worth having.
        const LEAST: u64 = 64 << 10;
        let Some(device) = &self.device else { return };
        let mut held = self.held.lock();
        let mut wanted = self.bytes;
        while wanted > *held && wanted >= LEAST {
            if device.lengthen(wanted).is_ok() {
                *held = wanted;
                return;
            }
            wanted /= 2;
        }
    }
}
