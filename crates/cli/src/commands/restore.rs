//! `snowmelt restore`: make a database of a backup, or of a state of a set of backups.

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::bail;
use oxsdatatypes::{DateTime, DayTimeDuration, Decimal, Integer};
use snowmelt_graph::{BackupSet, RestoreAt, restore_backup};

use super::backup::{CopyBar, say};
use crate::switches::open::OpenArgs;

/// Make a database of a backup.
#[derive(clap::Args)]
pub struct RestoreArgs {
    /// The backup: a directory that `backup` made, with or without --incremental
    source: PathBuf,
    /// The directory of the new database, which must hold none
    #[arg(required_unless_present = "list")]
    target: Option<PathBuf>,
    /// Of a set: the newest state that is not younger than this transaction, or than this time
    /// (UTC, such as 2026-11-25T03:00)
    #[arg(long, value_name = "TXN|TIME")]
    at: Option<At>,
    /// Say which states a set has
    #[arg(long, conflicts_with_all = ["target", "at"])]
    list: bool,
    /// Put its data on these devices or directories instead (repeatable)
    #[arg(long, value_name = "PATH")]
    stripe: Vec<PathBuf>,
    #[command(flatten)]
    open: OpenArgs,
}

/// A transaction, or a time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct At(RestoreAt);

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(txn) = text.parse() {
            return Ok(Self(RestoreAt::Txn(txn)));
        }
        let text = text.replace(' ', "T");
        let forms = [text.clone(), format!("{text}Z"), format!("{text}:00Z"), format!("{text}T00:00:00Z")];
        let time = forms.iter().find_map(|form| form.parse::<DateTime>().ok().filter(has_zone));
        let since = time.and_then(|time| time.checked_sub(epoch()));
        let seconds = since.and_then(|since| Integer::try_from(since.as_seconds()).ok());
        let seconds = seconds.and_then(|seconds| u64::try_from(i64::from(seconds)).ok());
        let wrong = || "a transaction's number, or a time such as 2026-11-25T03:00:00Z".to_owned();
        Ok(Self(RestoreAt::UnixS(seconds.ok_or_else(wrong)?)))
    }
}

fn has_zone(time: &DateTime) -> bool {
    time.timezone_offset().is_some()
}

fn epoch() -> DateTime {
    "1970-01-01T00:00:00Z".parse().expect("a time")
}

fn shown_time(unix_s: u64) -> String {
    let since = DayTimeDuration::new(Decimal::from(unix_s as i64));
    epoch().checked_add_day_time_duration(since).map_or_else(|| unix_s.to_string(), |time| time.to_string())
}

/// Runs `restore`.
pub fn run(args: RestoreArgs) -> anyhow::Result<()> {
    let set = BackupSet::read(&args.source)?;
    if args.list {
        let mut out = std::io::stdout().lock();
        for part in set.parts() {
            let (time, txn) = (shown_time(part.head.unix_s), part.head.txn);
            match part.is_whole() {
                true => writeln!(out, "{}  {time}  transaction {txn}  all pages", part.name)?,
                false => {
                    writeln!(out, "{}  {time}  transaction {txn}  {} pages", part.name, part.head.pages)?
                }
            }
        }
        if set.parts().is_empty() {
            bail!("{}: no set of backups (see snowmelt backup --incremental)", args.source.display());
        }
        return Ok(());
    }
    let target = args.target.expect("required without --list");
    let mut bar = CopyBar::new()?;
    let config = args.open.config();
    let done = if set.parts().is_empty() {
        if args.at.is_some() {
            bail!("{}: one backup, not a set: leave out --at", args.source.display());
        }
        let copy = args.open.open_to_read(&args.source)?;
        copy.backup_until(&target, &args.stripe, |at| bar.show(at))?
    } else {
        let at = args.at.map_or(RestoreAt::Newest, |at| at.0);
        restore_backup(&args.source, at, (&target, &args.stripe), &config, |at| bar.show(at))?
    };
    bar.end();
    say(&target, done.pages, done.txn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_transactions() {
        let at = |text: &str| text.parse::<At>().map(|at| at.0);
        assert_eq!(at("77"), Ok(RestoreAt::Txn(77)));
        let day = 1_764_028_800;
        for (text, second) in [
            ("2025-11-25", day),
            ("2025-11-25T03:00", day + 3 * 3600),
            ("2025-11-25 03:00:01", day + 3 * 3600 + 1),
            ("2025-11-25T03:00:00Z", day + 3 * 3600),
            ("2025-11-25T03:00:00+01:00", day + 2 * 3600),
        ] {
            assert_eq!(at(text), Ok(RestoreAt::UnixS(second)), "{text}");
        }
        for text in ["", "yesterday", "-3", "1960-01-01", "2025-13-01"] {
            assert!(at(text).is_err(), "{text}");
        }
        assert_eq!(shown_time(day + 1), "2025-11-25T00:00:01Z");
    }
}
