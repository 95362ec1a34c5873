//! A set of backups of one database: a whole copy, and files of what changed since the copy
//! before. A state is put together from the whole copy and the changes up to it.
//!
//! The set is a directory: `0001-whole` (a database), `0002-changes` and so on, and the
//! [manifest](crate::whole::manifest). The manifest alone says what belongs to the set, and in what
//! order. A part that is missing, damaged, exchanged or not of the set is an error that names it.
//!
//! A part is added in four steps, so that what a cut leaves is the set before or the set after:
//!
//! 1. it is written as `NAME.new`, and synced;
//! 2. the manifest with it is written, synced and renamed: from now on it is of the set;
//! 3. it gets its name;
//! 4. the next backup removes what is called `.new` and is not in the manifest, and gives parts
//!    that are their names.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

use crate::error::{Result, StoreError};
use crate::format::lineage::Relation;
use crate::settings::config::{Background, Mode, Seams, StoreConfig};
use crate::settings::opener::Directory;
use crate::store::Store;
use crate::store::making::make_dir;
use crate::superblock::SuperBlockFile;
use crate::whole::backup::{CopyProgress, copy_config};
use crate::whole::changes::{ChangesFile, ChangesSince, CopyHead, CopyState, PlaceInSet, now_s, unusable};
use crate::whole::manifest::{
    self, BackupPart, Manifest, ManifestPart, PartKind, is_part_name, part_name, seal_of,
};
use crate::whole::old_set;

/// The end of the name of a part that is not finished.
const NEW: &str = ".new";
/// Is locked while a part is added.
const LOCK_NAME: &str = "manifest.lock";

/// The backups in a directory, the oldest first.
#[derive(Debug)]
pub struct BackupSet {
    dir: PathBuf,
    parts: Vec<BackupPart>,
    vouched: Vouched,
    faults: Vec<SetFault>,
}

/// Something in the directory that is not as the manifest says.
#[derive(Clone, Debug)]
pub struct SetFault {
    /// The part's place in the set; `None`: it is not of the set.
    part: Option<usize>,
    /// The error, which names it.
    pub error: StoreError,
}

/// The source of the list of parts.
#[derive(Debug)]
enum Vouched {
    /// The parts themselves, as in sets of releases before the manifest.
    Parts,
    Manifest(Manifest),
}

/// The state that is wanted of a set: the newest that is not younger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreAt {
    /// The newest there is.
    Newest,
    /// As of this transaction, or before.
    Txn(u64),
    /// Made in this second since 1970, or before.
    UnixS(u64),
}

impl BackupSet {
    /// The backups in `dir`, which may be absent.
    ///
    /// # Errors
    /// The directory cannot be read; the manifest is missing or damaged. Faults of parts are in
    /// [`BackupSet::faults`].
    pub fn read(dir: &Path) -> Result<Self> {
        let names = names_in(dir)?;
        if let Some(manifest) = Manifest::read(dir)? {
            let parts = manifest.entries.iter().map(BackupPart::from_entry).collect();
            let faults = faults(dir, &manifest, &names);
            let vouched = Vouched::Manifest(manifest);
            return Ok(BackupSet { dir: dir.to_path_buf(), parts, vouched, faults });
        }
        let mut parts = Vec::new();
        let mut vouched = Vouched::Manifest(Manifest::default());
        if old_set::is_one(&names) {
            parts = old_set::parts(dir, &names)?;
            vouched = Vouched::Parts;
        } else if let Some(part) = names.iter().find(|name| is_part_name(name)) {
            let why =
                format!("there is none, but there is {part}: put the manifest back from a copy of the set");
            return Err(unusable(&dir.join(manifest::FILE_NAME), why));
        }
        Ok(BackupSet { dir: dir.to_path_buf(), parts, vouched, faults: Vec::new() })
    }

    /// Its parts, the oldest first.
    pub fn parts(&self) -> &[BackupPart] {
        &self.parts
    }

    /// Everything that is not as the manifest says.
    pub fn faults(&self) -> &[SetFault] {
        &self.faults
    }

    /// Whether a manifest says what belongs to it. In a set of an earlier release a newest part
    /// that is missing is not missed.
    pub fn has_manifest(&self) -> bool {
        matches!(self.vouched, Vouched::Manifest(_))
    }

    /// Parts that were made, by the clock of their machine, before a part that they build on: a
    /// time does not say which is meant.
    pub fn back_in_time(&self) -> Vec<&BackupPart> {
        let mut latest = 0;
        let is_earlier = |part: &&BackupPart| {
            let is_earlier = part.unix_s < latest;
            latest = latest.max(part.unix_s);
            is_earlier
        };
        self.parts.iter().filter(is_earlier).collect()
    }

    /// Adds the newest durable state of a database: what changed since the newest one that is
    /// here, or all of it where there is none. `None`: nothing has changed.
    ///
    /// # Errors
    /// The set is of another database, or of another history of this one; something is wrong with
    /// the set; another backup is being added; what writing meets.
    pub fn add(
        &mut self,
        store: &Store,
        progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<Option<(BackupPart, CopyProgress)>> {
        make_dir(&self.dir)?;
        let dir = Directory::open(&self.dir, None)?;
        let _lock = lock(&dir)?;
        // As it is now that no other backup changes it.
        *self = BackupSet::read(&self.dir)?;
        let manifest = self.manifest_to_add(store)?;
        self.tidy(&manifest)?;
        manifest.complete(&dir)?;
        let added = match manifest.entries.last() {
            None => Some(self.add_whole(store, progress)?),
            Some(last) => self.add_changes(store, &manifest, last, progress)?,
        };
        let Some((entry, done)) = added else { return Ok(None) };
        let (part, name) = (BackupPart::from_entry(&entry), entry.name.clone());
        let manifest = Manifest { entries: [manifest.entries, vec![entry]].concat(), ..manifest };
        dir.sync()?;
        manifest.write(&dir)?;
        rename_new(&self.dir, &name)?;
        dir.sync()?;
        self.vouched = Vouched::Manifest(manifest);
        self.parts.push(part.clone());
        Ok(Some((part, done)))
    }

    /// The manifest, if the database may be added.
    fn manifest_to_add(&self, store: &Store) -> Result<Manifest> {
        let Vouched::Manifest(manifest) = &self.vouched else {
            let why = "an earlier release made it, without a manifest: it can be restored, and is not added to; \
                       begin a new set in an empty directory";
            return Err(unusable(&self.dir, why));
        };
        if let Some(fault) = self.faults.first() {
            return Err(fault.error.clone());
        }
        if manifest.entries.is_empty() {
            let set = RandomState::new().hash_one(now_s());
            return Ok(Manifest { set, identity: store.identity(), entries: Vec::new() });
        }
        if manifest.identity != store.identity() {
            return Err(unusable(&self.dir, "it is of another database: name another directory"));
        }
        Ok(manifest.clone())
    }

    /// Removes what a backup that was cut left, and gives parts their names.
    fn tidy(&self, manifest: &Manifest) -> Result<()> {
        for name in names_in(&self.dir)? {
            let Some(part) = name.strip_suffix(NEW).filter(|part| is_part_name(part)) else { continue };
            let path = self.dir.join(&name);
            let is_listed = manifest.entries.iter().any(|entry| entry.name == part);
            if is_listed && !self.dir.join(part).exists() {
                rename_new(&self.dir, part)?;
                continue;
            }
            let removed =
                if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.map_err(StoreError::file(&path, "remove what an unfinished backup left"))?;
        }
        Ok(())
    }

    fn add_whole(
        &self,
        store: &Store,
        progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<(ManifestPart, CopyProgress)> {
        let name = part_name(1, PartKind::Whole);
        let path = self.dir.join(format!("{name}{NEW}"));
        let (done, state) = store.backup_named(&path, &[], progress)?;
        let seal = seal_of(&SuperBlockFile::peek(&path)?);
        let entry =
            ManifestPart { kind: PartKind::Whole, name, bytes: 0, seal, state, unix_s: now_s(), pages: 0 };
        Ok((entry, done))
    }

    fn add_changes(
        &self,
        store: &Store,
        manifest: &Manifest,
        last: &ManifestPart,
        progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<Option<(ManifestPart, CopyProgress)>> {
        let (snapshot, map) = store.state_and_map()?;
        let lineage = store.commits.lineage_of(snapshot.state())?;
        match lineage.relation(snapshot.txn(), last.state) {
            Relation::Same => return Ok(None),
            Relation::Past => {}
            Relation::Fork => {
                return Err(StoreError::Fork {
                    path: self.dir.clone(),
                    set: last.state,
                    txn: snapshot.txn(),
                    database: lineage.to_string(),
                });
            }
            Relation::Forgotten => {
                let why = "its newest state is so old that the database no longer knows whether it grew out of it: \
                           begin a new set in an empty directory";
                return Err(unusable(&self.dir, why));
            }
        }
        let number = manifest.entries.len() + 1;
        let name = part_name(number, PartKind::Changes);
        let place = PlaceInSet {
            lineage: lineage.name(snapshot.txn()).lineage,
            base_lineage: last.state.lineage,
            base_txn: last.state.txn,
            set: manifest.set,
            number: number as u64,
        };
        let base = &self.state(store, last)?;
        let changed = ChangesSince { base, base_seal: last.seal, snapshot: &snapshot, map, place };
        let (head, done) = store.write_changes(changed, &self.dir.join(format!("{name}{NEW}")), progress)?;
        let entry = ManifestPart {
            kind: PartKind::Changes,
            name,
            bytes: head.file_bytes(),
            seal: head.seal(),
            state: head.state(),
            unix_s: head.unix_s,
            pages: head.pages,
        };
        Ok(Some((entry, done)))
    }

    /// The state that a part has, without its pages.
    fn state(&self, store: &Store, part: &ManifestPart) -> Result<CopyState> {
        let path = path_of(&self.dir, &part.name);
        if part.kind == PartKind::Changes {
            return Ok(ChangesFile::open(&path)?.changes()?.state);
        }
        let copy = Store::open(&path, reading(copy_config(store)))?;
        let extents = copy.fetch.core.space.read().durable();
        Ok(CopyState { extents })
    }

    /// The place of the part that is wanted.
    fn wanted(&self, at: RestoreAt) -> Result<usize> {
        let is_early = |part: &BackupPart| match at {
            RestoreAt::Newest => true,
            RestoreAt::Txn(txn) => part.txn <= txn,
            RestoreAt::UnixS(unix_s) => part.unix_s <= unix_s,
        };
        let newest = self.parts.iter().rposition(is_early);
        newest.ok_or_else(|| unusable(&self.dir, "it has no state as old as that"))
    }

    /// Makes a database of a state of the set in `target`, with its data in `stripes` (none: in
    /// `target`). Every page is verified.
    ///
    /// # Errors
    /// There is no state as old as that; a part that is needed is missing or damaged, or there is
    /// one that is not of the set; what writing meets.
    pub fn restore(
        &self,
        at: RestoreAt,
        target: &Path,
        stripes: &[PathBuf],
        config: &StoreConfig,
        progress: impl FnMut(CopyProgress) -> ControlFlow<()>,
    ) -> Result<CopyProgress> {
        let wanted = self.wanted(at)?;
        if let Some(fault) = self.faults.iter().find(|fault| fault.part.is_none_or(|part| part <= wanted)) {
            return Err(fault.error.clone());
        }
        let paths: Vec<PathBuf> =
            self.parts[..=wanted].iter().map(|part| path_of(&self.dir, &part.name)).collect();
        let whole = Store::open(&paths[0], reading(config.clone()))?;
        match &paths[1..] {
            [] => whole.backup_until(target, stripes, progress),
            changes => whole.restore_with(changes, target, stripes, progress),
        }
    }
}

/// The names in a directory, which may be absent, sorted.
fn names_in(dir: &Path) -> Result<Vec<String>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(StoreError::file(dir, "read the set of backups")(e)),
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().into_string().ok()));
    let names: std::io::Result<Vec<Option<String>>> = names.collect();
    let names = names.map_err(StoreError::file(dir, "read the set of backups"))?;
    let mut names: Vec<String> = names.into_iter().flatten().collect();
    names.sort_unstable();
    Ok(names)
}

/// Where a part of the manifest is: a cut may have come before it got its name.
fn path_of(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    let new = dir.join(format!("{name}{NEW}"));
    if !path.exists() && new.exists() { new } else { path }
}

fn rename_new(dir: &Path, name: &str) -> Result<()> {
    let path = dir.join(name);
    std::fs::rename(dir.join(format!("{name}{NEW}")), &path)
        .map_err(StoreError::file(&path, "give the part its name"))
}

/// Keeps others from adding while the answer is there. A file is locked and not the directory:
/// that cannot be on NFS, where many backups go.
fn lock(dir: &Directory) -> Result<File> {
    let path = dir.join(LOCK_NAME);
    let flags = OFlags::RDWR | OFlags::CREATE;
    let file = dir.folder().and_then(|folder| folder.open_file(Path::new(LOCK_NAME), flags));
    let file = file.map_err(StoreError::file(&path, "open the lock file"))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => {
            Err(unusable(dir.path(), "another backup is being added to it: try again when that has ended"))
        }
        // Where files cannot be locked, two backups at a time are not noticed.
        _ => Ok(file),
    }
}

/// Everything that is not as the manifest says.
fn faults(dir: &Path, manifest: &Manifest, names: &[String]) -> Vec<SetFault> {
    let check = |(part, entry): (usize, &ManifestPart)| {
        let path = path_of(dir, &entry.name);
        let checked = match entry.kind {
            PartKind::Whole => check_whole(&path, entry),
            PartKind::Changes => check_changes(&path, manifest, part),
        };
        checked.err().map(|error| SetFault { part: Some(part), error })
    };
    let mut faults: Vec<SetFault> = manifest.entries.iter().enumerate().filter_map(check).collect();
    let is_listed = |name: &String| manifest.entries.iter().any(|entry| entry.name == *name);
    for name in names.iter().filter(|name| is_part_name(name) && !is_listed(name)) {
        let why = "it is not in the manifest: a part of another set, or the manifest is an older one; move it away \
                   or put the right manifest back";
        faults.push(SetFault { part: None, error: unusable(&dir.join(name), why) });
    }
    faults
}

fn check_whole(path: &Path, entry: &ManifestPart) -> Result<()> {
    if !path.exists() {
        return Err(missing(path));
    }
    match SuperBlockFile::peek(path).map(|block| seal_of(&block)) {
        Ok(seal) if seal == entry.seal => Ok(()),
        Ok(_) => {
            Err(unusable(path, "it is not the copy that was made: of another database, or changed since"))
        }
        Err(e) => Err(unusable(path, e)),
    }
}

/// Compares the head and the length of a part with what the manifest says. Its tail and its pages
/// have checksums of their own.
fn check_changes(path: &Path, manifest: &Manifest, part: usize) -> Result<()> {
    let entry = &manifest.entries[part];
    let len = match std::fs::metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Err(missing(path)),
        other => other.map_err(StoreError::file(path, "look at the part"))?.len(),
    };
    let Some(head) = CopyHead::read(path)? else { return Err(unusable(path, "its head is empty")) };
    if head.seal() != entry.seal {
        let seal = head.seal();
        let other = manifest.entries.iter().find(|other| other.seal == seal);
        let why = match other {
            Some(other) => format!("it is {}: the two were exchanged, or it is there twice", other.name),
            None if head.place.set != manifest.set => "it is a part of another set".to_owned(),
            None => "it is not the part that the manifest names".to_owned(),
        };
        return Err(unusable(path, why));
    }
    if Some(manifest.entries[part - 1].seal) != head.base {
        return Err(unusable(path, "it does not build on the part before it"));
    }
    if len != entry.bytes {
        return Err(unusable(path, format!("it has {len} bytes and had {} when it was made", entry.bytes)));
    }
    Ok(())
}

fn missing(path: &Path) -> StoreError {
    unusable(path, "the manifest names it, and it is missing: put it back from a copy of the set")
}

fn reading(config: StoreConfig) -> StoreConfig {
    StoreConfig {
        mode: Mode::ReadOnly,
        seams: Seams { background: Background::Caller, ..config.seams },
        ..config
    }
}
