//! How long the disk takes to make a small write durable: measured in the database's folder.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::finding::Finding;

/// Writes that are timed, and the time after which no more are made.
const MOST: usize = 30;
const LONGEST: Duration = Duration::from_secs(2);

/// Times of synced writes.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncFacts {
    /// Their median.
    pub median: Duration,
    /// The longest.
    pub longest: Duration,
    /// How many.
    pub count: usize,
}

/// Takes the file away, however the measurement ends.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Times writes of 4 KiB into a file of its own in `dir`, each of them synced.
///
/// # Errors
/// The folder cannot be written, as text.
pub fn measure(dir: &Path) -> Result<SyncFacts, String> {
    let path = dir.join(format!("doctor-{}", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(|e| e.to_string())?;
    let _removed = Removed(path);
    let block = [0u8; 4096];
    // As a journal file is: it has its length before.
    let sized = (0..MOST).try_for_each(|i| file.write_all_at(&block, 4096 * i as u64));
    sized.and_then(|()| file.sync_all()).map_err(|e| e.to_string())?;
    let (begun, mut times) = (Instant::now(), Vec::new());
    while times.len() < MOST && (begun.elapsed() < LONGEST || times.len() < 3) {
        let start = Instant::now();
        let at = 4096 * times.len() as u64;
        file.write_all_at(&block, at).and_then(|()| file.sync_data()).map_err(|e| e.to_string())?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(SyncFacts {
        median: times[times.len() / 2],
        longest: *times.last().expect("some were made"),
        count: times.len(),
    })
}

/// Judges the times; on a file system in memory a sync has nothing to do.
pub fn judge(facts: &Result<SyncFacts, String>, is_in_memory: bool) -> Vec<Finding> {
    const ABOUT: &str = "syncs";
    const SLOW: Duration = Duration::from_millis(20);
    /// Shorter than any disk takes to make a write durable.
    const TOO_QUICK: Duration = Duration::from_micros(10);
    let facts = match facts {
        Ok(facts) => facts,
        Err(why) => return vec![Finding::ok(ABOUT, format!("not measured: {why}"))],
    };
    let ms = |time: Duration| format!("{:.2} ms", 1e3 * time.as_secs_f64());
    let measured = format!("{} of a synced write of 4 KiB, at most {}", ms(facts.median), ms(facts.longest));
    vec![match facts.median {
        median if median >= SLOW => Finding::advice(
            ABOUT,
            measured,
            "a commit returns when its record is durable: so many updates a second one client can make",
            "use a disk with a protected write cache, or change more in one update",
        ),
        median if median < TOO_QUICK && !is_in_memory => Finding::advice(
            ABOUT,
            measured,
            "no disk is so quick: syncs seem to be ignored, and a power loss may lose commits",
            "look for barrier=0, nobarrier or sync=disabled in the mount, or cache=unsafe of the virtual disk",
        ),
        _ => Finding::ok(ABOUT, measured),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn slow_and_ignored_syncs_are_told() {
        let level = |us: u64, is_in_memory| {
            let time = Duration::from_micros(us);
            let facts = SyncFacts { median: time, longest: time, count: 3 };
            judge(&Ok(facts), is_in_memory)[0].level
        };
        assert_eq!([level(45_000, false), level(3, false)], [Level::Advice; 2]);
        assert_eq!([level(19_000, false), level(900, false), level(3, true)], [Level::Ok; 3]);
        assert_eq!(judge(&Err("read-only".to_owned()), false)[0].level, Level::Ok);
    }

    #[test]
    fn a_measurement_leaves_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let facts = measure(dir.path()).expect("it can be written");
        assert!(facts.count >= 3 && facts.median <= facts.longest, "{facts:?}");
        assert_eq!(fs::read_dir(dir.path()).expect("it is there").count(), 0);
        assert!(measure(&dir.path().join("absent")).is_err());
    }
}
