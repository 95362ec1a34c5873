//! The command: its options, checked before anything is made, and its run folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use snowmelt_engines::Work;
use snowmelt_lab::machine::BlockDevice;
use snowmelt_lab::undo::Undo;
use snowmelt_lab::{LabError, Run, signals, size};

use crate::error::TpchError;
use crate::measure::measure;
use crate::page::report;
use crate::queries;

/// Run queries derived from TPC-H on PostgreSQL, and watch what the device gets.
#[derive(Debug, clap::Args)]
pub struct TpchArgs {
    /// Scale factor: 1 has 6 million rows in lineitem, and takes 2 GB
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Folder for the database, on the device to be measured; made, and removed at the end
    #[arg(long, value_name = "DIR", default_value = "snowmelt-tpch")]
    dir: PathBuf,
    /// Keep the database; the next run in the same folder uses it
    #[arg(long)]
    keep: bool,
    /// Memory of PostgreSQL's settings; a quarter of it are its shared buffers
    #[arg(long, value_name = "SIZE", default_value = "256m", value_parser = size::parse)]
    memory: u64,
    /// Processes of a parallel query beside the first; without, as many as processors
    #[arg(long)]
    threads: Option<usize>,
    /// Port of the server's socket; a free one without
    #[arg(long)]
    port: Option<u16>,
    /// Queries to run, by their numbers; `none` for only the others
    #[arg(long, value_delimiter = ',', value_name = "N", default_value = "all")]
    queries: Vec<String>,
    /// Leave out Q1 by full scan and by index scan
    #[arg(long)]
    no_q1: bool,
    /// Read-ahead of the device for these, KiB, or `default`
    #[arg(long, value_delimiter = ',', value_name = "KB", default_value = "0,default")]
    read_ahead_kb: Vec<String>,
    /// Seconds of each cell of the random reads beside; 0 for none
    #[arg(long, value_name = "S", default_value_t = 5.0)]
    random_s: f64,
    /// Length of the intervals
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    interval_ms: u64,
    /// Folder of the run
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Plain settings of [`measure`].
#[derive(Debug, Clone)]
pub struct TpchOptions {
    /// Scale factor.
    pub scale: f64,
    /// Folder of the database: an absolute path on a block device.
    pub dir: PathBuf,
    /// Bytes of memory PostgreSQL is told it has.
    pub memory: u64,
    /// Processes of a parallel query beside the first.
    pub threads: usize,
    /// Port of the socket; a free one without.
    pub port: Option<u16>,
    /// Numbers of the queries to run as planned, cold and warm.
    pub queries: Vec<u32>,
    /// Q1 by full scan and by index scan as well.
    pub q1: bool,
    /// With these settings of the device's read-ahead, KiB; `None` is as it is.
    pub read_ahead_kb: Vec<Option<u64>>,
    /// Seconds of each cell of the random reads; 0 for none.
    pub random_s: f64,
    /// Interval of the watch.
    pub interval: Duration,
}

/// Says in the folder that everything is loaded.
const MARKER: &str = "loaded.json";

/// Runs the command.
///
/// # Errors
/// PostgreSQL is missing or fails, the disk is too small, or root is missing.
pub fn run(args: &TpchArgs) -> Result<(), TpchError> {
    let options = args.options()?;
    let stop = signals::stop_on_signal();
    let undo = Undo::open("tpch")?;
    let work = Work { undo: undo.clone(), stop: stop.shared() };
    options.engine(work)?.find()?;
    let (was_there, was_kept) = (options.dir.exists(), options.is_loaded());
    options.check()?;
    let mut run = Run::create("tpch", args.out.as_deref())?;
    run.settings(&json!({
        "scale": options.scale, "memory_bytes": options.memory, "threads": options.threads,
        "queries": options.queries, "read_ahead_kb": options.read_ahead_kb, "dir": options.dir,
    }));
    run.compare_by("queries", &["name"], &[("seconds", false)]);
    run.device(options.device()?);
    fs::create_dir_all(&options.dir).map_err(|e| LabError::file("make the folder", &options.dir, e))?;
    let measured = options.reachable().and_then(|()| {
        let lines = run.lines("seconds")?;
        measure(&options, (&undo, &stop.shared()), Some(lines), &|line| println!("{line}"))
    });
    if !(was_kept || args.keep && options.is_loaded()) {
        let removed = if was_there { empty(&options.dir) } else { fs::remove_dir_all(&options.dir) };
        removed.map_err(|e| LabError::file("remove", &options.dir, e))?;
    }
    let result = measured?;
    let mut lines = run.lines("queries")?;
    result.queries.iter().try_for_each(|query| lines.write(query))?;
    let mut cells = run.lines("random")?;
    result.random.iter().try_for_each(|cell| cells.write(cell))?;
    result.doubts.iter().for_each(|doubt| run.doubt(doubt));
    undo.undo()?;
    let page = run.finish(report(&result))?;
    println!("\n{}", page.display());
    Ok(())
}

/// Removes all that is in a folder.
fn empty(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)?.flatten() {
        let path = entry.path();
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    Ok(())
}

impl TpchArgs {
    fn options(&self) -> Result<TpchOptions, TpchError> {
        let wrong = |why: String| TpchError::Lab(LabError::Argument(why));
        if !(self.scale >= 0.001 && self.scale <= 1000.0) {
            return Err(wrong("--scale must be between 0.001 and 1000".into()));
        }
        if !(self.random_s >= 0.0 && self.random_s <= 3600.0) || self.interval_ms == 0 {
            return Err(wrong("--random-s must be between 0 and 3600, --interval-ms at least 1".into()));
        }
        let mut queries = Vec::new();
        for word in &self.queries {
            match (word.as_str(), word.parse::<u32>()) {
                ("all", _) => queries.extend(1..=queries::COUNT),
                ("none", _) => {}
                (_, Ok(number @ 1..=queries::COUNT)) => queries.push(number),
                _ => return Err(wrong(format!("--queries {word}: they are 1 to 22, `all` or `none`"))),
            }
        }
        let read_ahead = |word: &String| match word.as_str() {
            "default" => Ok(None),
            word => word
                .parse()
                .map(Some)
                .map_err(|_| wrong(format!("--read-ahead-kb {word}: a number of KiB, or `default`"))),
        };
        let dir = std::path::absolute(&self.dir).map_err(|e| LabError::file("look at", &self.dir, e))?;
        Ok(TpchOptions {
            scale: self.scale,
            dir,
            memory: self.memory,
            threads: self
                .threads
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
            port: self.port,
            queries,
            q1: !self.no_q1,
            read_ahead_kb: self.read_ahead_kb.iter().map(read_ahead).collect::<Result<_, _>>()?,
            random_s: self.random_s,
            interval: Duration::from_millis(self.interval_ms),
        })
    }
}

impl TpchOptions {
    /// The device below the folder.
    ///
    /// # Errors
    /// There is none.
    pub fn device(&self) -> Result<BlockDevice, TpchError> {
        let place = nearest(&self.dir);
        BlockDevice::of(place)?.ok_or_else(|| {
            let why = "no block device is behind it (a file system in memory, or over a network)";
            LabError::refused(self.dir.display(), why, "name a folder on a disk with --dir").into()
        })
    }

    /// True when a database of this scale was kept there.
    pub fn is_loaded(&self) -> bool {
        fs::read_to_string(self.dir.join(MARKER)).is_ok_and(|text| text == self.marker())
    }

    pub(crate) fn note_loaded(&self) -> Result<(), TpchError> {
        let path = self.dir.join(MARKER);
        Ok(fs::write(&path, self.marker()).map_err(|e| LabError::file("write", &path, e))?)
    }

    fn marker(&self) -> String {
        json!({ "scale": self.scale, "with": "tpchgen 4, PostgreSQL" }).to_string()
    }

    /// Refuses what cannot work, before anything is made: no root, a folder in use, too little
    /// room.
    ///
    /// # Errors
    /// The refusal.
    pub fn check(&self) -> Result<(), TpchError> {
        if !rustix::process::geteuid().is_root() {
            return Err(LabError::refused(
                "lab tpch",
                "it sets the device's read-ahead and empties the cache of files of another user",
                "run it as root",
            )
            .into());
        }
        // PostgreSQL's limit of a socket's path, and its name there.
        if self.dir.as_os_str().len() > 70 {
            let why = "the path is too long for a socket in it";
            return Err(LabError::refused(self.dir.display(), why, "name a shorter one with --dir").into());
        }
        if self.is_loaded() {
            return Ok(());
        }
        if fs::read_dir(&self.dir).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(LabError::refused(
                self.dir.display(),
                format!("there is something in it, and no database of scale {} that was kept", self.scale),
                "name another folder with --dir, or empty that one",
            )
            .into());
        }
        let place = nearest(&self.dir);
        let room = rustix::fs::statvfs(place).map_err(|e| LabError::file("look at", place, e))?;
        let (free, needed) = (room.f_bavail * room.f_frsize, needed_bytes(self.scale));
        if free < needed {
            return Err(LabError::refused(
                format!("scale {} in {}", self.scale, self.dir.display()),
                format!("it takes {}, {} are free", size::about(needed as f64), size::about(free as f64)),
                "name a folder on a larger disk with --dir, or a smaller --scale",
            )
            .into());
        }
        Ok(())
    }

    /// The server's user must be able to enter the folder.
    fn reachable(&self) -> Result<(), TpchError> {
        let closed = self
            .dir
            .ancestors()
            .find(|above| fs::metadata(above).is_ok_and(|meta| meta.permissions().mode() & 0o001 == 0));
        closed.map_or(Ok(()), |above| {
            Err(LabError::refused(
                self.dir.display(),
                format!("user postgres cannot enter {}", above.display()),
                "name a folder with --dir that all can reach, such as one below /var/tmp",
            )
            .into())
        })
    }
}

/// Tables and indexes take 2.0 GB per unit of scale, the journal of the load up to as much again
/// and 8 GB at most, sorts the rest.
fn needed_bytes(scale: f64) -> u64 {
    let data = 2.1e9 * scale;
    (data + (2.0e9 * scale).min(9e9) + 0.2e9) as u64
}

/// The path, or the nearest folder above it that is there.
fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: TpchArgs,
    }

    fn options(line: &str) -> Result<TpchOptions, String> {
        let words = std::iter::once("tpch").chain(line.split_whitespace());
        let args = Cli::try_parse_from(words).map_err(|e| e.to_string())?.args;
        args.options().map_err(|e| e.to_string())
    }

    #[test]
    fn arguments_are_checked() {
        let all = options("").unwrap();
        assert_eq!((all.queries.len(), all.read_ahead_kb.clone()), (22, vec![Some(0), None]));
        assert!(all.dir.is_absolute() && all.q1);
        assert_eq!(options("--queries 1,6,22").unwrap().queries, [1, 6, 22]);
        for (line, says) in [
            ("--scale 0", "--scale"),
            ("--scale nan", "--scale"),
            ("--queries 23", "1 to 22"),
            ("--read-ahead-kb x", "default"),
            ("--random-s -1", "unexpected"),
            ("--random-s 9999", "--random-s"),
            ("--interval-ms 0", "--interval-ms"),
        ] {
            let error = options(line).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
    }

    #[test]
    fn what_cannot_work_is_refused_before_anything_is_made() {
        if !rustix::process::geteuid().is_root() {
            return println!("skipped: no root");
        }
        let dir = tempfile::tempdir().unwrap();
        let check = |more: &str| {
            let options = options(&format!("--dir {}/db {more}", dir.path().display())).unwrap();
            options.check().map_err(|e| e.to_string())
        };
        check("--scale 0.01").unwrap();
        let error = check("--scale 1000").unwrap_err();
        assert!(error.contains("are free") && error.contains("--scale"), "{error}");
        fs::create_dir(dir.path().join("db")).unwrap();
        fs::write(dir.path().join("db/other"), "").unwrap();
        assert!(check("--scale 0.01").unwrap_err().contains("something in it"));
        let kept = options(&format!("--dir {}/db --scale 0.01", dir.path().display())).unwrap();
        kept.note_loaded().unwrap();
        check("--scale 0.01").unwrap();
        assert!(check("--scale 0.1").is_err(), "another scale was kept");
        // A folder for root alone.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let error = kept.reachable().unwrap_err().to_string();
        assert!(error.contains("postgres cannot enter") && error.contains("/var/tmp"), "{error}");
    }
}
