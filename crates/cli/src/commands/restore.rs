//! `snowmelt restore`: make a database of a backup, or of a state of a set of backups.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::bail;
use oxsdatatypes::{DateTime, DayTimeDuration, Decimal, Integer};
use snowmelt_database::{BackupSet, RestoreAt, restore_backup};

use super::backup::{CopyBar, say_copied};
use snowmelt_base::{say, tell};
use snowmelt_switches::open::OpenArgs;

/// Make a database of a backup.
#[derive(clap::Args)]
pub struct RestoreArgs {
    /// The backup: a directory that `backup` made, with or without --incremental
    source: PathBuf,
    /// The directory of the new database, which must hold none
    #[arg(required_unless_present = "list")]
    target: Option<PathBuf>,
    /// Of a set: the newest state that is not younger than this transaction, or than this time
    /// (such as 2026-11-25T03:00:00Z or 2026-11-25T04:00+01:00; UTC without a zone)
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
        let wrong = || "a transaction's number, or a time such as 2026-11-25T03:00:00Z".to_owned();
        seconds_of(text).map(|seconds| Self(RestoreAt::UnixS(seconds))).ok_or_else(wrong)
    }
}

/// Seconds since 1970 of a time as RFC 3339 writes it; what is left out of it is zero, and the zone
/// is UTC.
fn seconds_of(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_uppercase().replacen(' ', "T", 1).replace(' ', "");
    let (day, rest) = match text.split_once('T') {
        Some((day, rest)) => (day, rest),
        None => (text.strip_suffix('Z').unwrap_or(&text), ""),
    };
    let (clock, zone) = rest.split_at(rest.find(['Z', '+', '-']).unwrap_or(rest.len()));
    let clock = match clock.len() {
        0 => "00:00:00".to_owned(),
        5 => format!("{clock}:00"),
        _ => clock.to_owned(),
    };
    let zone = if zone.is_empty() { "Z" } else { zone };
    let time: DateTime = format!("{day}T{clock}{zone}").parse().ok()?;
    let since = time.checked_sub(epoch())?;
    u64::try_from(i64::from(Integer::try_from(since.as_seconds()).ok()?)).ok()
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
    if !set.has_manifest() {
        tell!(
            "{}: an earlier release made this set, without a manifest: were its newest parts missing, nothing \
             would say so",
            args.source.display()
        );
    }
    if args.list {
        return list(&args, &set);
    }
    let target = args.target.expect("required without --list");
    let mut bar = CopyBar::new()?;
    let config = args.open.config();
    let done = if set.parts().is_empty() {
        if args.at.is_some() {
            bail!("{}: one backup, not a set: leave out --at", args.source.display());
        }
        let copy = args.open.open_to_read(&args.source)?;
        copy.database().backup_until(&target, &args.stripe, |at| bar.show(at))?
    } else {
        let at = args.at.map_or(RestoreAt::Newest, |at| at.0);
        restore_backup(&args.source, at, &target, &args.stripe, &config, |at| bar.show(at))?
    };
    bar.end();
    if let (Some(At(RestoreAt::UnixS(_))), Some(back)) = (args.at, set.back_in_time().first()) {
        tell!(
            "the times of this set go back at {}: of the states made by that time the last one was taken; \
             --list shows all, --at TXN names one",
            back.name
        );
    }
    say_copied(&target, done.pages, done.txn);
    Ok(())
}

/// Says which states a set has, and what is wrong with it.
fn list(args: &RestoreArgs, set: &BackupSet) -> anyhow::Result<()> {
    let back = set.back_in_time();
    for part in set.parts() {
        let (time, txn) = (shown_time(part.unix_s), part.txn);
        let pages = if part.is_whole() { "all pages".to_owned() } else { format!("{} pages", part.pages) };
        let note = if back.contains(&part) { "  (the clock had been set back)" } else { "" };
        say!("{}  {time}  transaction {txn}  {pages}{note}", part.name);
    }
    if set.parts().is_empty() {
        bail!("{}: no set of backups (see snowmelt backup --incremental)", args.source.display());
    }
    match set.faults() {
        [] => Ok(()),
        faults => {
            faults.iter().for_each(|fault| tell!("{}", fault.error));
            bail!("{}: not as its manifest says", args.source.display())
        }
    }
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
            ("2025-11-25T03:00Z", day + 3 * 3600),
            ("2025-11-25T03:00+01:00", day + 2 * 3600),
            ("2025-11-25 03:00:00 -05:30", day + 8 * 3600 + 1800),
            ("2025-11-25t03:00:00z", day + 3 * 3600),
            ("2025-11-25T03:00:00.75Z", day + 3 * 3600),
            ("2025-11-25Z", day),
            (" 2025-11-25 ", day),
        ] {
            assert_eq!(at(text), Ok(RestoreAt::UnixS(second)), "{text}");
        }
        for text in
            ["", "yesterday", "-3", "1960-01-01", "2025-13-01", "2025-11-25T03", "2025-11-25T03:00:00+25:00"]
        {
            assert!(at(text).is_err(), "{text}");
        }
        assert_eq!(shown_time(day + 1), "2025-11-25T00:00:01Z");
    }
}
