//! Random reads of a file, one at a time, for other experiments: the micro-benchmark beside them.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use snowmelt_io::{JobEngine, Pattern};

use super::bench::ReadBench;
use super::cell::{BufferMemory, CellResult, ReadCell};
use super::plan::Planned;
use crate::LabError;
use crate::device::Behind;
use crate::run::arguments::{EngineName, show_pattern};
use crate::run::load::Load;
use crate::target::Target;
use crate::undo::Undo;

/// Settings of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomRead {
    /// Bytes per read.
    pub bytes: u64,
    /// Offsets are multiples of this.
    pub align: u64,
    /// Past the page cache.
    pub direct: bool,
    /// The device's read-ahead meanwhile, KiB; left alone without.
    pub read_ahead_kb: Option<u64>,
}

/// Runs the cells on a file or device, each for at most `runtime` and with the block layer traced;
/// buffered ones from a cold page cache, every place once.
///
/// # Errors
/// The file cannot be read, is smaller than a read, or a setting is refused.
pub fn measure(
    path: &Path,
    cells: &[RandomRead],
    runtime: Duration,
    undo: &Undo,
    stop: &AtomicBool,
) -> Result<Vec<CellResult>, LabError> {
    let target = Target::look(path)?;
    let bench = ReadBench {
        target: &target,
        range: target.range(None)?,
        runtime,
        once: true,
        seed: 1,
        hint: true,
        most: None,
        model: None,
        shown: Vec::new(),
        histogram: false,
        trace: Some(undo),
        stop,
    };
    let engine = EngineName(JobEngine::Inline);
    let behind = Behind::find(&target.device.name);
    let run = |cell: &RandomRead| {
        if let Some(kb) = cell.read_ahead_kb {
            undo.set(&target.device.sys().join("queue/read_ahead_kb"), &kb.to_string())?;
        }
        behind.as_ref().map_or(Ok(()), Behind::reset)?;
        let cell = ReadCell {
            ioengine: engine.name().into(),
            rw: "randread".into(),
            rwmixread: None,
            bs: cell.bytes,
            iodepth: 1,
            direct: cell.direct,
            align: cell.align,
            pattern: show_pattern(Pattern::Random),
            load: Load::USUAL.fields(),
            read_ahead_kb: cell.read_ahead_kb,
            prefetch: false,
            mem: BufferMemory::Malloc,
            scheduler: None,
        };
        let (pattern, load) = (Pattern::Random, Load::USUAL);
        let planned = Planned { cell, engine, pattern, load, read_percent: 100, scheduler: None };
        let mut result = bench.run(&planned, 1)?;
        result.doubts.extend(behind.as_ref().and_then(Behind::doubt));
        Ok(result)
    };
    cells.iter().map(run).collect()
}
