//! The files of a database from outside: their bytes beside the memory, and the room around them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use snowmelt_base::size;

use super::finding::Finding;

/// Sizes of a database's files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredFacts {
    /// Bytes of the stripes.
    pub data_bytes: u64,
    /// Bytes of the journal's files.
    pub journal_bytes: u64,
    /// Folders that files grow in, with the bytes free on their file systems.
    pub free: Vec<(PathBuf, u64)>,
}

/// The process that has the database open, as it wrote it.
pub fn holder(dir: &Path) -> Option<String> {
    let number = fs::read_to_string(dir.join("lock")).ok()?.trim().to_owned();
    number.parse::<u32>().ok().map(|_| number)
}

/// Looks at the files.
pub fn collect(dir: &Path, stripes: &[PathBuf]) -> StoredFacts {
    let len = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let journal = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("journal-"));
    let folder = |path: &PathBuf| path.is_file().then(|| path.parent().map(Path::to_owned)).flatten();
    let mut folders: Vec<PathBuf> = stripes.iter().filter_map(folder).chain([dir.to_owned()]).collect();
    folders.sort();
    folders.dedup();
    let free = |folder: PathBuf| {
        let room = rustix::fs::statvfs(&folder).ok()?;
        Some((folder, room.f_bavail.saturating_mul(room.f_frsize)))
    };
    StoredFacts {
        data_bytes: stripes.iter().map(|path| len(path)).sum(),
        journal_bytes: journal.map(|entry| len(&entry.path())).sum(),
        free: folders.into_iter().filter_map(free).collect(),
    }
}

/// Whether the files are their owner's alone, as new ones are. Older ones stay as they were made.
pub fn privacy(dir: &Path, stripes: &[PathBuf]) -> Finding {
    let inside = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let outside = stripes.iter().filter(|stripe| !stripe.starts_with(dir)).cloned();
    let is_plain = |meta: &fs::Metadata| meta.is_file() || meta.is_dir();
    let loose = |path: &PathBuf| {
        let meta = fs::metadata(path).ok().filter(is_plain)?;
        Some(meta.mode() & 0o777).filter(|mode| mode & 0o077 != 0)
    };
    // A closed folder closes what is in it.
    let is_closed = loose(&dir.to_owned()).is_none();
    let own = if is_closed { Vec::new() } else { inside.collect() };
    let mut looked_at = [dir.to_owned()].into_iter().chain(own).chain(outside);
    match looked_at.find_map(|path| loose(&path).map(|mode| (path, mode))) {
        None => Finding::ok("permissions", "for the owner alone"),
        Some((path, mode)) => Finding::advice(
            "permissions",
            format!("{} is {mode:o}", path.display()),
            "other users of this machine may read the data",
            format!("chmod 700 {}, and 600 for the files of stripes elsewhere", dir.display()),
        ),
    }
}

/// Judges them; `budget` is the memory of the database in bytes.
pub fn judge(facts: &StoredFacts, budget: u64) -> Vec<Finding> {
    let mut findings = vec![pool(facts, budget)];
    findings.extend(facts.free.iter().map(|(folder, free)| room(facts, folder, *free)));
    findings
}

/// The part of the budget that is the pool's.
fn pool_bytes(budget: u64) -> u64 {
    budget / 4 * 3
}

fn pool(facts: &StoredFacts, budget: u64) -> Finding {
    let pool = pool_bytes(budget);
    let share = if facts.data_bytes == 0 { 1.0 } else { pool as f64 / facts.data_bytes as f64 };
    let measured = format!(
        "{} for {} of data: {}",
        size::about(pool as f64),
        size::about(facts.data_bytes as f64),
        if share >= 1.0 { "all fits".to_owned() } else { format!("{:.1} % fit", 100.0 * share) },
    );
    if share < 0.01 {
        let most = facts.data_bytes / 20;
        return Finding::advice(
            "pool",
            measured,
            "even the upper levels of the indexes do not stay in memory: most lookups read several pages",
            format!(
                "--memory {} or more, or memory in snowmelt.toml",
                size::exact(most.next_multiple_of(1 << 30))
            ),
        );
    }
    Finding::ok("pool", measured)
}

fn room(facts: &StoredFacts, folder: &Path, free: u64) -> Finding {
    /// Four extents are kept as a reserve; a file grows by more than that at a time.
    const LEAST: u64 = 64 << 20;
    let wanted = (facts.data_bytes / 10).max(256 << 20);
    let about = format!("room in {}", folder.display());
    let measured = format!(
        "{} free, beside {} of data and {} of journal",
        size::about(free as f64),
        size::about(facts.data_bytes as f64),
        size::about(facts.journal_bytes as f64)
    );
    let change = format!("make room: {} or more", size::about(wanted as f64));
    match free {
        free if free < LEAST => {
            Finding::problem(about, measured, "updates are about to fail: a checkpoint needs room", change)
        }
        free if free < wanted => Finding::advice(
            about,
            measured,
            "compact writes pages beside the old ones, spills of queries and the journal take room, too",
            change,
        ),
        _ => Finding::ok(about, measured),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    fn levels(data: u64, free: u64, budget: u64) -> Vec<Level> {
        let facts = StoredFacts { data_bytes: data, journal_bytes: 0, free: vec![("/db".into(), free)] };
        judge(&facts, budget).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn looser_permissions_are_said() {
        let dir = tempfile::tempdir().expect("a folder");
        let set = |path: &Path, mode: u32| {
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("one's own");
        };
        let (db, stripe) = (dir.path().join("db"), dir.path().join("stripe"));
        fs::create_dir(&db).expect("a folder");
        for file in [&db.join("superblock"), &stripe] {
            fs::write(file, "x").expect("a file");
            set(file, 0o644);
        }
        let level = || privacy(&db, std::slice::from_ref(&stripe)).level;
        set(&db, 0o700);
        assert_eq!(level(), Level::Advice, "the stripe is elsewhere");
        set(&stripe, 0o600);
        assert_eq!(level(), Level::Ok, "the folder closes its files");
        set(&db, 0o755);
        assert_eq!(level(), Level::Advice);
    }

    #[test]
    fn pools_and_room_are_judged_beside_the_data() {
        assert_eq!(levels(1 << 30, 1 << 40, 8 << 30), [Level::Ok; 2]);
        assert_eq!(levels(100 << 30, 1 << 40, 8 << 30), [Level::Ok; 2], "far larger than memory");
        assert_eq!(levels(2000 << 30, 1 << 40, 8 << 30), [Level::Advice, Level::Ok]);
        assert_eq!(levels(100 << 30, 5 << 30, 8 << 30), [Level::Ok, Level::Advice]);
        assert_eq!(levels(1 << 20, 1 << 20, 8 << 30), [Level::Ok, Level::Problem]);
        assert_eq!(levels(0, 300 << 20, 8 << 30), [Level::Ok; 2]);
    }

    #[test]
    fn files_are_found() {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, bytes) in [("data", 10), ("journal-0", 3), ("journal-1", 4), ("lock", 2)] {
            fs::write(dir.path().join(name), "12345678901".get(..bytes).expect("long enough"))
                .expect("written");
        }
        let facts = collect(dir.path(), &[dir.path().join("data")]);
        assert_eq!((facts.data_bytes, facts.journal_bytes, facts.free.len()), (10, 7, 1));
        assert_eq!(holder(dir.path()).as_deref(), Some("12"));
    }
}
