//! The command: its arguments, its run folder, and the folder of the database removed at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use snowmelt_base::say;
use snowmelt_engines::Work;
use snowmelt_lab::undo::Undo;
use snowmelt_lab::{Busy, LabError, Run, signals, size};

use crate::error::TpchError;
use crate::measure::measure;
use crate::options::TpchOptions;
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
    #[command(flatten)]
    busy: Busy,
    /// Folder of the run
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// PostgreSQL is missing or fails, the disk is too small, or root is missing.
pub fn run(args: &TpchArgs) -> Result<(), TpchError> {
    let options = args.options()?;
    let stop = signals::stop_on_signal();
    let undo = Undo::open("tpch")?;
    let work = Work { undo: undo.clone(), stop: stop.shared() };
    options.engine(work.clone())?.find()?;
    let (was_there, was_kept) = (options.dir.exists(), options.is_loaded());
    options.check()?;
    args.busy.hold(&[options.device()?], &undo, stop.flag())?;
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
        measure(&options, &work, Some(lines), &|line| say!("{line}"))
    });
    if !(was_kept || args.keep && options.is_loaded()) {
        let removed = if was_there { empty(&options.dir) } else { fs::remove_dir_all(&options.dir) };
        removed.map_err(|e| LabError::file("remove", &options.dir, e))?;
    }
    let result = measured?;
    // The server is no child of this process.
    run.programs_io(result.observed.last.tree().io);
    let mut lines = run.lines("queries")?;
    result.queries.iter().try_for_each(|query| lines.write(query))?;
    let mut cells = run.lines("random")?;
    result.random.iter().try_for_each(|cell| cells.write(cell))?;
    result.doubts.iter().for_each(|doubt| run.doubt(doubt));
    undo.undo()?;
    let page = run.finish(report(&result))?;
    say!("\n{}", page.display());
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
        if self.no_q1 && self.read_ahead_kb != ["0", "default"] {
            return Err(wrong("--read-ahead-kb is of Q1's two ways: leave it out, or --no-q1".into()));
        }
        if self.no_q1 && self.queries == ["none"] && self.random_s == 0.0 {
            return Err(wrong("nothing to measure: --queries none, --no-q1 and --random-s 0".into()));
        }
        if !(self.random_s >= 0.0 && self.random_s <= 3600.0) {
            return Err(wrong("--random-s must be between 0 and 3600".into()));
        }
        if !(1..=86_400_000).contains(&self.interval_ms) {
            return Err(wrong("--interval-ms must be between 1 and 86400000, a day".into()));
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

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
            ("--no-q1 --read-ahead-kb 0", "Q1's two ways"),
            ("--no-q1 --queries none --random-s 0", "nothing to measure"),
            ("--interval-ms 0", "--interval-ms"),
            ("--interval-ms 18446744073709551615", "a day"),
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
