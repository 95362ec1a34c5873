//! A database is its open folder and the files that were opened in it, not a path: whatever is
//! moved, deleted or put in its place while it is open, no other database is touched, nothing is
//! acknowledged that will not be found again, and the error says what happened.
//!
//! A case is a file, what is done to it, and a moment of a random workload.

#[path = "support/rounds.rs"]
mod rounds;
mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rounds::Pages;
use snowmelt_io::set_notice;
use snowmelt_store::{
    Background, JournalConfig, Lost, Mode, ReadAhead, Seams, Store, StoreConfig, StoreError,
};
use support::{Random, seed};

/// Files that fill after a few commits, so that new ones are made all the time.
fn config() -> StoreConfig {
    StoreConfig {
        direct: false,
        close_ms: 0,
        journal: JournalConfig { file_bytes: 256 << 10, ..rounds::small() },
        seams: Seams { background: Background::Caller, ..support::config(64, ReadAhead::none()).seams },
        ..support::config(64, ReadAhead::none())
    }
}

/// A file of the database.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    SuperBlock,
    Stripe,
    /// A stripe in another folder.
    FarStripe,
    /// Any of the journal.
    Journal,
    /// The one that the last commit went to.
    NewestJournal,
    Lock,
    Reserve,
}

/// A change of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Delete,
    MoveAway,
    ReplaceByCopy,
    ReplaceByNothing,
    /// Moved away and back before the store looks.
    MoveAndBack,
}

const TARGETS: [Target; 7] = [
    Target::SuperBlock,
    Target::Stripe,
    Target::FarStripe,
    Target::Journal,
    Target::NewestJournal,
    Target::Lock,
    Target::Reserve,
];
const ACTS: [Act; 5] =
    [Act::Delete, Act::MoveAway, Act::ReplaceByCopy, Act::ReplaceByNothing, Act::MoveAndBack];

struct Case {
    dir: tempfile::TempDir,
    store: Option<Arc<Store>>,
    pages: Pages,
    random: Random,
    /// The last round that was acknowledged.
    acked: u64,
}

impl Case {
    fn new(seed: u64) -> Case {
        set_notice(|_| {});
        let dir = tempfile::tempdir().unwrap();
        let far = [dir.path().join("near/stripe-0"), dir.path().join("far/stripe-1")];
        fs::create_dir(dir.path().join("far")).unwrap();
        fs::create_dir(dir.path().join("near")).unwrap();
        let store = Store::create(&dir.path().join("db"), &far, config()).unwrap();
        let pages = Pages::create(&store, 20);
        pages.write(&store, 1).unwrap();
        Case { dir, store: Some(store), pages, random: Random::new(seed), acked: 1 }
    }

    fn db(&self) -> PathBuf {
        self.dir.path().join("db")
    }

    fn store(&self) -> &Arc<Store> {
        self.store.as_ref().expect("it is open")
    }

    /// Commits, checkpoints and steps.
    fn work(&mut self) {
        for _ in 0..1 + self.random.below(8) {
            match self.random.below(5) {
                0 => drop(self.store().checkpoint().unwrap()),
                1 => drop(self.store().step()),
                _ => self.commit().unwrap(),
            }
        }
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.pages.write(self.store(), self.acked + 1)?;
        self.acked += 1;
        Ok(())
    }

    fn file(&mut self, target: Target) -> PathBuf {
        let db = self.db();
        match target {
            Target::SuperBlock => db.join("superblock"),
            Target::Lock => db.join("lock"),
            Target::Reserve => db.join("reserve"),
            Target::Stripe => self.dir.path().join("near/stripe-0"),
            Target::FarStripe => self.dir.path().join("far/stripe-1"),
            Target::Journal | Target::NewestJournal => {
                self.commit().unwrap();
                let entries = fs::read_dir(&db).unwrap().map(|e| e.unwrap().path());
                let mut all: Vec<PathBuf> = entries
                    .filter(|p| p.file_name().unwrap().to_string_lossy().starts_with("journal-"))
                    .collect();
                all.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
                let any = self.random.below(all.len());
                if target == Target::Journal { all.swap_remove(any) } else { all.pop().unwrap() }
            }
        }
    }

    /// Does `act` to the file; the old one lies in `kept` afterwards, unless it was deleted.
    fn act(&self, act: Act, file: &Path, kept: &Path) {
        match act {
            Act::Delete => fs::remove_file(file).unwrap(),
            Act::MoveAway => fs::rename(file, kept).unwrap(),
            Act::MoveAndBack => {
                fs::rename(file, kept).unwrap();
                fs::rename(kept, file).unwrap();
            }
            Act::ReplaceByCopy => {
                fs::rename(file, kept).unwrap();
                fs::copy(kept, file).unwrap();
            }
            Act::ReplaceByNothing => {
                fs::rename(file, kept).unwrap();
                fs::write(file, b"").unwrap();
            }
        }
    }

    /// A background step that looks at all files.
    fn look(&self) {
        std::thread::sleep(Duration::from_millis(11));
        self.store().step();
    }

    /// Everything that was acknowledged is there again, and sound.
    fn is_whole(&mut self, db: &Path, what: &str) {
        drop(self.store.take());
        let store = Store::open(db, config()).unwrap_or_else(|e| panic!("{what}: {e}"));
        let round = self.pages.round(&store).unwrap();
        assert!(round >= self.acked, "{what}: round {round} of {}", self.acked);
        is_sound(&store, what);
        self.acked = round;
        self.pages.write(&store, round + 1).unwrap();
    }
}

fn is_sound(store: &Arc<Store>, what: &str) {
    store.checkpoint().unwrap();
    store.check_pages(|e| panic!("{what}: {e}"), |_| {});
}

/// The loss of this file, found first or told again.
fn is_loss(e: &StoreError, file: &Path, how: &[Lost]) -> bool {
    match e {
        StoreError::Lost { path, how: found } => path == file && how.contains(found),
        StoreError::Poisoned { cause } | StoreError::OutcomeUnknown { cause } => is_loss(cause, file, how),
        _ => false,
    }
}

fn round_of(target: Target, act: Act, seed: u64) {
    let what = format!("{target:?} {act:?}, seed {seed}");
    let mut case = Case::new(seed);
    case.work();
    let file = case.file(target);
    let kept = case.dir.path().join("kept");
    let harmless = act == Act::MoveAndBack || matches!(target, Target::Lock | Target::Reserve);
    case.act(act, &file, &kept);
    if harmless {
        case.look();
        case.work();
        assert!(case.store().poisoned().is_none(), "{what}");
        let db = case.db();
        return case.is_whole(&db, &what);
    }
    let how: &[Lost] = match act {
        Act::Delete | Act::MoveAway => &[Lost::Deleted],
        _ => &[Lost::Replaced],
    };
    // Files that a commit needs are looked at by the commit, all others soon.
    if !matches!(target, Target::SuperBlock | Target::NewestJournal) || case.random.below(2) == 0 {
        case.look();
        let cause = case.store().poisoned().unwrap_or_else(|| panic!("{what}: not seen"));
        assert!(is_loss(&cause, &file, how), "{what}: {cause}");
    }
    for _ in 0..3 {
        let refused = case.commit().expect_err(&what);
        assert!(is_loss(&refused, &file, how), "{what}: {refused}");
        let told = refused.to_string();
        assert!(told.contains("dump") && told.contains("while the database was open"), "{what}: {told}");
    }
    assert!(case.store().poisoned().is_some(), "{what}: /ready shows it");
    // Reads go on, also of the file that is gone.
    assert_eq!(case.pages.round(case.store()).unwrap(), case.acked, "{what}");
    if act == Act::Delete {
        drop(case.store.take());
        let opened = Store::open(&case.db(), config()).and_then(|store| case.pages.round(&store));
        // A journal file without records is not missed.
        assert!(opened.is_err() || opened.is_ok_and(|round| round >= case.acked), "{what}");
        return;
    }
    fs::rename(&kept, &file).unwrap();
    let db = case.db();
    case.is_whole(&db, &what);
}

/// Turns of each case: 1, or as many as `SNOWMELT_ROUNDS` says.
fn turns() -> u64 {
    std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

#[test]
fn a_file_that_is_no_longer_under_its_name_ends_writing() {
    let seed = seed();
    for (n, (target, act)) in TARGETS.iter().flat_map(|t| ACTS.iter().map(move |a| (*t, *a))).enumerate() {
        for turn in 0..turns() {
            round_of(target, act, seed.wrapping_mul(1000) + n as u64 * 10 + turn);
        }
    }
}

/// The folder is moved away under the open database and another database is put at its name: both
/// go on, each in its own files, and both are whole afterwards.
#[test]
fn a_folder_that_is_moved_takes_its_database_along() {
    for n in 0..12 {
        let mut case = Case::new(seed().wrapping_mul(77) + n);
        case.work();
        let (db, moved) = (case.db(), case.dir.path().join("moved"));
        fs::rename(&db, &moved).unwrap();
        if n % 3 == 0 {
            case.look();
            case.work();
            fs::rename(&moved, &db).unwrap();
            case.work();
            case.is_whole(&db, "moved and put back");
            continue;
        }
        let other = Store::create(&db, &[], config()).unwrap();
        let pages = Pages::create(&other, 20);
        for round in 1..12 {
            pages.write(&other, round).unwrap();
            case.commit().unwrap();
            if case.random.below(3) == 0 {
                case.look();
                case.work();
                other.checkpoint().unwrap();
            }
        }
        drop(other);
        case.is_whole(&moved, "moved away");
        let other = Store::open(&db, config()).unwrap();
        assert_eq!(pages.round(&other).unwrap(), 11);
        is_sound(&other, "put at its name");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A copy of the folder names the stripes elsewhere, too, and they are not its own: neither while
/// the database is open, nor later, where it would cut them to what it knows.
#[test]
fn a_copy_of_the_folder_does_not_write_to_stripes_elsewhere() {
    for n in 0..12 {
        let mut case = Case::new(seed().wrapping_mul(55) + n);
        case.work();
        if n % 2 == 0 {
            drop(case.store.take());
        }
        let (db, copied) = (case.db(), case.dir.path().join("copied"));
        copy(&db, &copied);
        if n % 2 == 1 {
            let refused = Store::open(&copied, config()).unwrap_err();
            assert!(
                matches!(&refused, StoreError::Locked { path, .. } if !path.starts_with(&copied)),
                "{refused}"
            );
            case.work();
        }
        // It grows, so that the copy would cut what is new.
        case.store.get_or_insert_with(|| Store::open(&db, config()).unwrap());
        case.work();
        let mut txn = case.store().begin().unwrap();
        let tree = txn.new_tree("more");
        for _ in 0..200 {
            txn.allocate(tree, None).unwrap();
        }
        txn.commit().unwrap();
        drop(case.store.take());
        let mut at = db.clone();
        if n % 3 == 0 {
            at = case.dir.path().join("moved");
            fs::rename(&db, &at).unwrap();
            case.is_whole(&at, "moved");
            drop(case.store.take());
        }
        let refused = Store::open(&copied, config()).unwrap_err();
        let told = refused.to_string();
        assert!(
            matches!(&refused, StoreError::StripeOf { owner, .. } if *owner == fs::canonicalize(&at).unwrap()),
            "{told}"
        );
        assert!(told.contains("copied") && told.contains("backup"), "{told}");
        case.is_whole(&at, "copied");
        drop(case.store.take());
        // A stripe that was deleted can be made anew for another one.
        let (other, far) = (case.dir.path().join("other"), case.dir.path().join("far/stripe-1"));
        let kept = case.dir.path().join("kept");
        fs::rename(&far, &kept).unwrap();
        drop(Store::create(&other, std::slice::from_ref(&far), config()).unwrap());
        fs::rename(&kept, &far).unwrap();
        // Where the databases are gone the folder was put back from the copy.
        fs::remove_dir_all(&other).unwrap();
        fs::remove_dir_all(&at).unwrap();
        let kept = if n % 4 < 2 { copied } else { fs::rename(&copied, &db).map(|()| db).unwrap() };
        let _ = Store::open(&kept, config())
            .map_err(|e| assert!(!matches!(e, StoreError::StripeOf { .. }), "{e}"));
    }
}

/// Stripes and journal files that were put elsewhere, with links to them in the folder: a copy of
/// that has the same links.
#[test]
fn a_copy_of_the_folder_does_not_write_through_links() {
    set_notice(|_| {});
    for linked in [["stripe-0"].as_slice(), &["journal-"], &["stripe-0", "journal-"]] {
        let dir = tempfile::tempdir().unwrap();
        let (db, far, copied) = (dir.path().join("db"), dir.path().join("far"), dir.path().join("copied"));
        fs::create_dir(&far).unwrap();
        let store = Store::create(&db, &[], config()).unwrap();
        let pages = Pages::create(&store, 20);
        pages.write(&store, 1).unwrap();
        drop(store);
        for name in fs::read_dir(&db).unwrap().map(|entry| entry.unwrap().file_name()) {
            if linked.iter().any(|linked| name.to_str().unwrap().starts_with(linked)) {
                fs::rename(db.join(&name), far.join(&name)).unwrap();
                std::os::unix::fs::symlink(far.join(&name), db.join(&name)).unwrap();
            }
        }
        let store = Store::open(&db, config()).unwrap();
        fs::create_dir(&copied).unwrap();
        for path in fs::read_dir(&db).unwrap().map(|entry| entry.unwrap().path()) {
            let to = copied.join(path.file_name().unwrap());
            match fs::read_link(&path) {
                Ok(link) => std::os::unix::fs::symlink(link, to).unwrap(),
                Err(_) => drop(fs::copy(&path, to).unwrap()),
            }
        }
        let refused = Store::open(&copied, config()).unwrap_err();
        assert!(matches!(&refused, StoreError::Locked { .. }), "{linked:?}: {refused}");
        // It grows, so that the copy would cut what is new.
        pages.write(&store, 2).unwrap();
        let mut txn = store.begin().unwrap();
        let tree = txn.new_tree("more");
        for _ in 0..200 {
            txn.allocate(tree, None).unwrap();
        }
        txn.commit().unwrap();
        drop(store);
        let refused = Store::open(&copied, config()).unwrap_err();
        let is_told = matches!(&refused, StoreError::StripeOf { owner, .. } if *owner == fs::canonicalize(&db).unwrap());
        assert!(is_told, "{linked:?}: {refused}");
        let store = Store::open(&db, config()).unwrap();
        assert_eq!(pages.round(&store).unwrap(), 2, "{linked:?}");
        is_sound(&store, "linked");
    }
}

/// A stripe that was asked for in the folder goes with it, however that was named; and has no name
/// that the database gives to another file.
#[test]
fn a_stripe_in_the_folder_moves_with_it() {
    set_notice(|_| {});
    for named in ["db/data", "db/../db/data", "link/data"] {
        let dir = tempfile::tempdir().unwrap();
        let (db, moved) = (dir.path().join("db"), dir.path().join("moved"));
        fs::create_dir(&db).unwrap();
        std::os::unix::fs::symlink(&db, dir.path().join("link")).unwrap();
        let store = Store::create(&db, &[dir.path().join(named)], config()).unwrap();
        let pages = Pages::create(&store, 20);
        pages.write(&store, 1).unwrap();
        drop(store);
        fs::rename(&db, &moved).unwrap();
        let store = Store::open(&moved, config()).unwrap_or_else(|e| panic!("{named}: {e}"));
        assert_eq!(pages.round(&store).unwrap(), 1);
    }
    for name in
        ["superblock", "superblock.making", "lock", "making", "journal-7", "reserve", "warm", "server"]
    {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("db");
        let error = Store::create(&db, &[db.join(name)], config()).map(drop).unwrap_err();
        assert!(matches!(error, StoreError::Config(_)), "{name}: {error}");
        assert!(!db.exists(), "{name}");
    }
}

#[test]
fn a_folder_that_is_deleted_ends_writing() {
    for (n, how) in [(0, Lost::WithFolder), (1, Lost::WithFolder), (2, Lost::Deleted)] {
        let mut case = Case::new(seed().wrapping_mul(99) + n);
        case.work();
        fs::remove_dir_all(case.db()).unwrap();
        if n == 1 {
            case.look();
            assert!(case.store().poisoned().is_some());
        }
        if n == 2 {
            // Also where another database is at the name by now.
            let other = Store::create(&case.db(), &[], config()).unwrap();
            let pages = Pages::create(&other, 20);
            let refused = case.commit().unwrap_err();
            assert!(is_loss(&refused, &case.db().join("superblock"), &[how, Lost::WithFolder]), "{refused}");
            pages.write(&other, 1).unwrap();
            drop((case.store.take(), other));
            assert_eq!(pages.round(&Store::open(&case.db(), config()).unwrap()).unwrap(), 1);
            continue;
        }
        let refused = (0..20).find_map(|_| case.commit().err()).expect("refused");
        assert!(is_loss(&refused, &case.db().join("superblock"), &[how]), "{refused}");
        assert_eq!(case.pages.round(case.store()).unwrap(), case.acked);
    }
}

/// A reader looks at nothing and needs nothing.
#[test]
fn a_reader_goes_on_with_files_that_are_gone() {
    let mut case = Case::new(5);
    case.work();
    drop(case.store.take());
    let store = Store::open(&case.db(), StoreConfig { mode: Mode::ReadOnly, ..config() }).unwrap();
    fs::remove_dir_all(case.db()).unwrap();
    std::thread::sleep(Duration::from_millis(11));
    store.step();
    assert!(store.poisoned().is_none());
    assert_eq!(case.pages.round(&store).unwrap(), case.acked);
    assert!(matches!(store.look(), Err(StoreError::Lost { .. })), "a check says so");
}
