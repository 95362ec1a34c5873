//! Levels of a stacked device (md, dm, a partition): where its bios went, and what the devices
//! below made of them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::event::{Action, BlockEvent, RemapEvent};
use super::target::TraceTarget;
use crate::machine::others::Moved;

/// Counts of a device below the traced one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BelowCounts {
    /// Bios that reached it.
    pub queued: u64,
    /// Bios that were split there.
    pub split: u64,
    /// Bios and requests merged there.
    pub merged: u64,
    /// Requests issued to it.
    pub issued: u64,
    /// Their bytes.
    pub issued_bytes: u64,
}

/// Remaps and counts by device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels {
    /// Bios that went from one device to another.
    remaps: BTreeMap<(u32, u32), Moved>,
    below: BTreeMap<u32, BelowCounts>,
}

/// A remap for reports: `md0 -> sda`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RemapLine {
    /// The device that bios came from.
    pub from: String,
    /// The device they went to.
    pub to: String,
    /// How many, and their bytes.
    #[serde(flatten)]
    pub moved: Moved,
}

/// A device below, for reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BelowLine {
    /// Its name.
    pub device: String,
    /// Its counts.
    #[serde(flatten)]
    pub counts: BelowCounts,
}

impl Levels {
    /// A bio goes on to another device.
    pub fn remapped(&mut self, event: &RemapEvent) {
        self.remaps.entry((event.old_dev, event.dev)).or_default().add(event.sectors);
    }

    /// An event of device `dev` below.
    pub fn below(&mut self, dev: u32, event: &BlockEvent) {
        let counts = self.below.entry(dev).or_default();
        match event.action {
            Action::Queue => counts.queued += 1,
            Action::Split => counts.split += 1,
            Action::BackMerge | Action::FrontMerge | Action::RequestMerge => counts.merged += 1,
            Action::Issue => {
                counts.issued += 1;
                counts.issued_bytes += u64::from(event.sectors) * 512;
            }
            _ => {}
        }
    }

    /// The remaps, with names.
    pub fn remap_lines(&self, target: &TraceTarget) -> Vec<RemapLine> {
        let name = |dev: u32| target.name_of(dev);
        let line = |((from, to), moved): (&(u32, u32), &Moved)| RemapLine {
            from: name(*from),
            to: name(*to),
            moved: *moved,
        };
        self.remaps.iter().map(line).collect()
    }

    /// The devices below, with names.
    pub fn below_lines(&self, target: &TraceTarget) -> Vec<BelowLine> {
        let line =
            |(dev, counts): (&u32, &BelowCounts)| BelowLine { device: target.name_of(*dev), counts: *counts };
        self.below.iter().map(line).collect()
    }
}
