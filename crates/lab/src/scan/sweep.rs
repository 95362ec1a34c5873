//! The sweep: cell by cell, from cold, with everything counted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use snowmelt_io_experiments::TunedPolicy;

use super::beside::with_beside;
use super::cell::ScanCell;
use super::measure::{asked_at_once, counts, disagreements, not_at_once, work};
use super::plan::{Lists, Setup, order};
use super::table::ScanTable;
use super::workers::{Scanned, scan};
use super::{ScanArgs, length, page, setting};
use crate::device::Behind;
use crate::device::read_ahead::ReadAhead;
use crate::machine::BlockDevice;
use crate::machine::cpu::CpuTicks;
use crate::machine::program::{ProcessIo, Program};
use crate::target::cold::make_cold;
use crate::trace::session::{Follow, Options, Session, Snoop, Traced};
use crate::trace::target::TraceTarget;
use crate::trace::users::Touches;
use crate::undo::Undo;
use crate::undo::signals;
use crate::undo::signals::Stop;
use crate::{LabError, Run};

/// Everything a sweep needs.
pub(super) struct Sweep<'a> {
    pub args: &'a ScanArgs,
    pub lists: &'a Lists,
    pub setups: &'a [Setup],
    pub targets: Vec<TraceTarget>,
    pub devices: Vec<BlockDevice>,
    pub path: PathBuf,
    pub scratch: Option<PathBuf>,
    pub undo: Undo,
    /// Of the devices, where a setup has none of its own.
    pub read_ahead: Vec<ReadAhead>,
}

impl Sweep<'_> {
    pub(super) fn run(&self, mut run: Run) -> Result<(), LabError> {
        let stop = signals::stop_on_signal();
        let mut lines = run.lines("cells")?;
        run.compare_by("cells", &["setup", "dop"], &[("elapsed_s", false), ("mb_per_s", true)]);
        let mut cells: Vec<ScanCell> = Vec::new();
        let mut checksums = HashMap::new();
        let total = self.setups.len() * self.args.dop.len() * self.args.repeat;
        'sweep: for round in 0..self.args.repeat {
            for s in order(self.setups.len(), round) {
                let setup = &self.setups[s];
                for d in order(self.args.dop.len(), round) {
                    if stop.requested() {
                        run.doubt("stopped by a signal before all cells were measured");
                        break 'sweep;
                    }
                    let (cell, checksum, doubts) = self.cell(setup, self.args.dop[d], round, &stop)?;
                    if stop.requested() {
                        continue; // cut short
                    }
                    for doubt in doubts {
                        run.doubt(format!("{} with {}: {doubt}", cell.setup, cell.dop));
                    }
                    let first = *checksums.entry((cell.bytes, setup.layout.to_string())).or_insert(checksum);
                    if first != checksum {
                        run.doubt(format!(
                            "{} at {} workers read other bytes than the first scan",
                            cell.setup, cell.dop
                        ));
                    }
                    cell.parties.iter().for_each(|(disk, parties)| run.traced(disk, *parties));
                    lines.write(&cell)?;
                    cells.push(cell);
                    let cell = cells.last().expect("just added");
                    crate::say!("{:3}/{total} {}", cells.len(), cell.line());
                }
            }
        }
        let by_command = self.args.command().is_some();
        let scans: Vec<(String, u64)> =
            cells.iter().map(|c| (format!("{} with {}", c.setup, c.dop), c.bytes)).collect();
        if let Some(doubt) = unlike_bytes(&scans).filter(|_| by_command && !self.targets.is_empty()) {
            run.doubt(doubt);
        }
        let mut report = page::report(self.lists, self.setups, &cells, by_command);
        let emulated = self.devices.iter().filter_map(|d| Some((d, Behind::find(&d.name)?.model())));
        for (device, model) in emulated {
            report.summary.push(format!("{} is emulated, by the model {model}.", device.name));
        }
        self.undo.undo()?;
        let page = run.finish(report)?;
        crate::say!("\n{}", page.display());
        if stop.requested() { Err(LabError::Stopped) } else { Ok(()) }
    }

    fn cell(
        &self,
        setup: &Setup,
        dop: u32,
        round: usize,
        stop: &Stop,
    ) -> Result<(ScanCell, u64, Vec<String>), LabError> {
        setting::apply(setup, &self.devices, &self.undo)?;
        if setup.read_ahead_kb.is_none() {
            self.read_ahead.iter().try_for_each(|read_ahead| read_ahead.hold(&self.undo))?;
        }
        let table = self.table(setup)?;
        let mut doubts = Vec::new();
        if let Some(command) = &self.args.before {
            self.shell(&fill_in(command, dop, setup.queue, &table.files[0]), stop)?;
        }
        let command = self.args.command();
        let cached_pages = self.cold(&table, setup, command.is_some())?;
        if cached_pages > 0 {
            doubts
                .push(format!("{cached_pages} pages of the table could not be thrown out of the page cache"));
        }
        let emulated: Vec<Behind> = self.devices.iter().filter_map(|d| Behind::find(&d.name)).collect();
        emulated.iter().try_for_each(Behind::reset)?;
        let sessions = self.trace(&mut doubts);
        let (before, io) = (counts(&self.targets)?, ProcessIo::own());
        let ticks = CpuTicks::now();
        let begun = Instant::now();
        let (scanned, read_beside) = self.scanned(setup, dop, &table, stop)?;
        let span_s = begun.elapsed().as_secs_f64();
        let cpu = CpuTicks::now().since(&ticks);
        let after = counts(&self.targets)?;
        let traces = sessions.into_iter().map(Session::finish).collect::<Result<Vec<Traced>, LabError>>()?;
        let mut device = work(&before, &after, span_s).with_traces(&traces);
        if self.args.exec.is_none() {
            device = device.with_own(&traces, ProcessIo::own().since(io));
        }
        doubts.extend(disagreements(&traces, &device));
        doubts.extend(not_at_once(setup, dop, scanned.bytes, &device));
        doubts.extend(emulated.iter().filter_map(Behind::doubt));
        let read = match (&command, device.own) {
            (None, _) => scanned.bytes,
            (Some(_), Some(own)) => own.bytes.saturating_sub(read_beside),
            (Some(_), None) => device.read_bytes.saturating_sub(read_beside),
        };
        let cell = ScanCell {
            setup: self.lists.name(setup),
            dop,
            round,
            elapsed_s: scanned.elapsed_s,
            bytes: read,
            mb_per_s: read as f64 / 1e6 / scanned.elapsed_s.max(1e-9),
            user_s: scanned.user_s,
            cpu,
            device,
            parties: traces.iter().map(|t| (t.target.device.name.clone(), t.users.parties)).collect(),
            asked_at_once: asked_at_once(setup, dop).filter(|_| command.is_none()),
            beside: scanned.beside,
            cached_pages,
            settings: setup.clone(),
        };
        Ok((cell, scanned.checksum, doubts))
    }

    /// Throws the files of the table and the further ones out of the page cache; pages that stayed.
    /// Direct reads take nothing from there. A command may read in any way.
    fn cold(&self, table: &ScanTable, setup: &Setup, by_command: bool) -> Result<u64, LabError> {
        let uses_cache = by_command || !setup.direct.is_on();
        let further = files_below(&self.args.cold)?;
        let mut cached_pages = 0;
        for path in table.files.iter().filter(|_| uses_cache).chain(&further) {
            let file = std::fs::File::open(path).map_err(|e| LabError::file("open", path, e))?;
            cached_pages += make_cold(&file, path)?;
        }
        Ok(cached_pages)
    }

    /// Scans once, by the workers or by the command; with the bytes that the load beside it read.
    fn scanned(
        &self,
        setup: &Setup,
        dop: u32,
        table: &ScanTable,
        stop: &Stop,
    ) -> Result<(Scanned, u64), LabError> {
        let scratch = self.scratch.as_deref();
        let Some(command) = self.args.command() else {
            return Ok((scan(table, setup, dop, scratch, stop.flag())?, 0));
        };
        let command = fill_in(&command, dop, setup.queue, &table.files[0]);
        let work = || self.shell(&command, stop);
        let (elapsed_s, beside) = with_beside(table, setup, scratch, work)?;
        let scanned =
            Scanned { elapsed_s, user_s: vec![elapsed_s], beside: beside.times, ..Scanned::default() };
        Ok((scanned, beside.read_bytes))
    }

    fn table(&self, setup: &Setup) -> Result<ScanTable, LabError> {
        let with_len = |path: &PathBuf| Ok((path.clone(), length(path)?));
        let files: Vec<(PathBuf, u64)> = std::iter::once(&self.path)
            .chain(&self.args.files)
            .map(with_len)
            .collect::<Result<_, LabError>>()?;
        ScanTable::new(files, setup.layout, self.args.size).map_err(LabError::Argument)
    }

    /// A trace of every device; without the rights for it, a doubt once.
    fn trace(&self, doubts: &mut Vec<String>) -> Vec<Session> {
        if self.args.no_trace {
            return Vec::new();
        }
        let options = Options {
            interval: Duration::from_secs(1),
            buffer_kb: 8 << 10,
            blktrace: None,
            requests: None,
            follow: Follow::Program,
            touches: Touches::WriteBack,
            snoop: Snoop::Silent,
        };
        let start = |target: &TraceTarget| {
            let mut session = Session::start(target.clone(), options.clone(), &self.undo)?;
            session.follow(Some(std::process::id())).map(|()| session)
        };
        match self.targets.iter().map(start).collect::<Result<Vec<Session>, LabError>>() {
            Ok(sessions) => sessions,
            Err(e) => {
                doubts.push(format!("seeks and depth were not traced: {e}"));
                Vec::new()
            }
        }
    }

    /// Runs a command to its end; seconds. One that fails has scanned nothing, or emptied nothing.
    fn shell(&self, command: &str, stop: &Stop) -> Result<f64, LabError> {
        let shell = ["sh".to_string(), "-c".to_string(), command.to_string()];
        let program = Program::start(&shell, &self.undo)?;
        program.wait(Duration::from_millis(2), &mut || !stop.requested());
        let ended = program.end();
        match ended.code {
            Some(0) => Ok(ended.elapsed_s),
            None if stop.requested() => Ok(ended.elapsed_s), // the cell is dropped
            code => {
                let code = code.map_or("no code".to_owned(), |code| format!("code {code}"));
                let why = format!("it ended with {code}, so there is no scan to be measured");
                Err(LabError::refused(format!("`{command}`"), why, "see what it says above, or run it alone"))
            }
        }
    }
}

/// The files at these paths, and below those that are folders.
fn files_below(paths: &[PathBuf]) -> Result<Vec<PathBuf>, LabError> {
    let mut files = Vec::new();
    let mut rest = paths.to_vec();
    while let Some(path) = rest.pop() {
        if !path.is_dir() {
            files.push(path);
            continue;
        }
        for entry in std::fs::read_dir(&path).map_err(|e| LabError::file("read", &path, e))? {
            let entry = entry.map_err(|e| LabError::file("read", &path, e))?;
            if entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_file()) {
                rest.push(entry.path());
            }
        }
    }
    Ok(files)
}

/// Scans by commands are alike only if the device gave all of them the same bytes: one that gave
/// fewer answered from memory.
fn unlike_bytes(scans: &[(String, u64)]) -> Option<String> {
    let most = scans.iter().map(|(_, bytes)| *bytes).max()?;
    let less = scans.iter().filter(|(_, bytes)| (*bytes as f64) < most as f64 * (1.0 - UNLIKE));
    let (name, least) = less.clone().min_by_key(|(_, bytes)| *bytes)?;
    Some(format!(
        "{} of {} scans read less from the device than the one that read most ({}), {name} only {}: they were \
         answered from memory in part, and their times cannot be compared; empty the program's buffers with --before, \
         and name its files with --cold",
        less.count(),
        scans.len(),
        crate::size::about(most as f64),
        crate::size::about(*least as f64)
    ))
}

/// The part by which scans may read less than another.
const UNLIKE: f64 = 0.05;

fn fill_in(command: &str, dop: u32, queue: Option<TunedPolicy>, path: &Path) -> String {
    let queue = queue.map_or_else(|| "elevator".to_owned(), |queue| queue.to_string());
    let text = command.replace("{dop}", &dop.to_string()).replace("{queue}", &queue);
    text.replace("{path}", &path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_that_read_less_are_in_doubt() {
        let scan = |bytes| ("none with 2".to_owned(), bytes);
        assert_eq!(unlike_bytes(&[]), None);
        assert_eq!(unlike_bytes(&[scan(100_000), scan(99_000)]), None);
        let doubt = unlike_bytes(&[scan(182 << 20), scan(161 << 20), scan(0)]).unwrap();
        assert!(doubt.contains("2 of 3") && doubt.contains("none with 2 only 0"), "{doubt}");
    }

    #[test]
    fn folders_are_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        for name in ["a", "sub/b"] {
            std::fs::write(dir.path().join(name), "x").unwrap();
        }
        let mut files = files_below(&[dir.path().to_owned()]).unwrap();
        files.sort();
        assert_eq!(files, [dir.path().join("a"), dir.path().join("sub/b")]);
    }

    #[test]
    fn commands_are_filled_in() {
        let command = "psql -v dop={dop} -f {path} # {dop} {queue}";
        let queue = "fair:quantum=5".parse().ok();
        assert_eq!(fill_in(command, 8, queue, Path::new("/t")), "psql -v dop=8 -f /t # 8 fair:quantum=5");
        assert_eq!(fill_in("{queue}", 1, None, Path::new("/t")), "elevator");
    }
}
