//! Creating and opening a store.
//!
//! 1. the lock is taken, and the super-block read, or made for a new store;
//! 2. the meta run gives the catalog and the extent map, the journal what was committed since;
//! 3. the stripes get their lengths: leftovers of an unfinished build are cut off;
//! 4. an empty pool, queues, the version table and the journal's end are put together.
//!
//! Nothing else is read, and of the stripes nothing is written, so that opening takes a few device
//! requests whatever the size of the database, and the time to read the journal.

use super::making::{self, Creation, make_dir};
use super::{DEFAULT_STRIPE, Store};
use crate::commit::Commits;
use crate::commit::checkpoint::Checkpointer;
use crate::commit::room::JournalRoom;
use crate::error::{Result, StoreError};
use crate::files::known;
use crate::files::lock::Lock;
use crate::files::reserve::Reserve;
use crate::files::resolve;
use crate::files::stripes::Devices;
use crate::files::watch::Watch;
use crate::format::placement::Placement;
use crate::history::state::{State, States};
use crate::journal::Journal;
use crate::memory::codec_cache::CodecCache;
use crate::page::PAGE_BYTES;
use crate::page::geometry::Geometry;
use crate::pool::Pool;
use crate::pool::shared::SharedFrames;
use crate::read::core::Core;
use crate::read::fetch::Fetch;
use crate::read::meters::Meters;
use crate::read::visible::VisiblePages;
use crate::read::warm::{self, WarmUp};
use crate::recovery::{CheckpointState, Recovered, RecoveryTrace, recover};
use crate::settings::config::{Mode, StoreConfig};
use crate::settings::opener::Directory;
use crate::space::Space;
use crate::space::meta::{Meta, read_meta};
use crate::space::meta_pages::MetaState;
use crate::store::background::{BackgroundThread, Work};
use crate::superblock::TailPlace;
use crate::superblock::current::CurrentBlock;
use crate::superblock::file::Opened;
use crate::superblock::{MetaForm, SuperBlock, SuperBlockFile, UNFINISHED_NAME};
use crate::sync::bell::Bell;
use crate::sync::long_lock::LongLock;
use crate::sync::turn::WriterGate;
use crate::sync::waits::UpperWaits;
use parking_lot::{Mutex, RwLock};
use snowmelt_io::{Access, Sink, is_block_device};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A store that is being made: no database yet, and taken back when this is dropped.
pub struct NewStore {
    // Closed before it is taken back: fields are dropped in order.
    store: Arc<Store>,
    /// `None` on simulated disks.
    making: Option<Creation>,
}

impl NewStore {
    /// The store, to be filled. The last handle must be this one when it is taken back.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Makes it a database. What was committed and checkpointed is durable before.
    ///
    /// # Errors
    /// The super-block does not get its name.
    pub fn finish(mut self) -> Result<Arc<Store>> {
        self.making.as_mut().map_or(Ok(()), Creation::finish)?;
        self.store.commits.journal.super_block_is_named();
        Ok(self.store)
    }
}

impl Store {
    /// Makes an empty database in `dir` (made if absent) and opens it. Without `stripes` the
    /// data lies in one file in `dir`; a stripe that is a directory gets a file in it. A process
    /// that is killed meanwhile leaves the whole database, or what the next try takes away.
    pub fn create(dir: &Path, stripes: &[PathBuf], config: StoreConfig) -> Result<Arc<Store>> {
        Self::create_unfinished(dir, stripes, config)?.finish()
    }

    /// As [`Store::create`], but the store is to be filled first: until [`NewStore::finish`] it is
    /// no database.
    pub fn create_unfinished(dir: &Path, stripes: &[PathBuf], config: StoreConfig) -> Result<NewStore> {
        let placement = config.placement.clone();
        let new = Self::create_nameless(dir, stripes, config)?;
        new.store().commits.block.write()?;
        if !placement.is_empty() {
            new.store().keep_placement(placement)?;
        }
        Ok(new)
    }

    /// As [`Store::create_unfinished`], but it has no state until a checkpoint writes the
    /// super-block.
    pub(crate) fn create_nameless(dir: &Path, stripes: &[PathBuf], config: StoreConfig) -> Result<NewStore> {
        if !(1..=65536).contains(&config.extent_pages) {
            return Err(StoreError::Config(format!(
                "extents of {} pages do not work: 1 to 65536",
                config.extent_pages
            )));
        }
        if config.is_read_only() {
            return Err(StoreError::ReadOnly { path: dir.to_path_buf() });
        }
        config.check()?;
        if config.seams.files.is_none() && dir.join(crate::superblock::FILE_NAME).exists() {
            return Err(StoreError::Exists { path: dir.to_path_buf() });
        }
        let named = stripe_files(dir, stripes)?;
        check_placement(&config, named.len())?;
        let paths: Vec<PathBuf> = named.iter().map(|p| resolve(dir, p)).collect();
        let (making, folder, lock) = match config.seams.files {
            // A simulated disk has no names and no processes.
            Some(_) => {
                make_dir(dir)?;
                let folder = Directory::open(dir, config.seams.files.as_ref())?;
                let lock = Arc::new(Lock::take(&folder)?);
                (None, folder, lock)
            }
            None => {
                let files = named.iter().zip(&paths).filter(|(_, path)| !is_block_device(path));
                let files: Vec<PathBuf> = files.map(|(named, _)| named.clone()).collect();
                let making = Creation::begin(dir, &files)?;
                files.iter().try_for_each(|named| making.make_stripe(named))?;
                let (folder, lock) = (making.dir().clone(), making.lock().clone());
                (Some(making), folder, lock)
            }
        };
        keep_profiles(dir, &paths, &config)?;
        let access = if making.is_some() { Access::Create } else { Access::CreateNew };
        let devices = Devices::open(&folder, &named, access, &config)?;
        let block = SuperBlock {
            extent_pages: config.extent_pages,
            sequence: 0,
            txn: 0,
            extents: 0,
            meta: None,
            meta_form: MetaForm::Whole,
            identity: RandomState::new().hash_one(dir),
            journal: 1,
            slots: 0,
            before: (0, 0),
            synced: 0,
            tail_file: 0,
            tail_offset: 0,
            stripes: named,
        };
        let super_file = SuperBlockFile::create_unfinished(&folder)?;
        if making.is_some() {
            lock.take_super_block(&folder, UNFINISHED_NAME)?;
        }
        let store = Self::assemble(folder, config, lock, super_file, block, devices)?;
        Ok(NewStore { store, making })
    }

    /// Opens the database in `dir`.
    pub fn open(dir: &Path, config: StoreConfig) -> Result<Arc<Store>> {
        if config.seams.files.is_none() && !dir.join(crate::superblock::FILE_NAME).exists() {
            let why = match dir.is_dir() {
                true if making::is_unfinished(dir) => "one is being made, or was not finished",
                true => "it has no super-block",
                false => "no such directory",
            };
            return Err(StoreError::NotADatabase { path: dir.to_path_buf(), why: why.into() });
        }
        let folder = Directory::open(dir, config.seams.files.as_ref())?;
        let lock = if config.is_read_only() { Lock::share(&folder)? } else { Lock::take(&folder)? };
        let lock = Arc::new(lock);
        if !config.is_read_only() && config.seams.files.is_none() {
            making::sweep(&folder);
        }
        let Opened { file: super_file, block, notice, doubt } =
            SuperBlockFile::open_as(&folder, config.access())?;
        if let Some(line) = notice {
            snowmelt_io::notice(&line);
        }
        // A process that was killed may have left the super-block written and not synced. It must
        // be durable before anything that it gives up is used again.
        if !config.is_read_only() {
            super_file.sync()?;
        }
        let devices = Devices::open(&folder, &block.stripes, config.access(), &config)?;
        let opened = Self::assemble(folder, config, lock, super_file, block, devices);
        let store = opened.map_err(|e| match doubt {
            Some(doubt) if e.is_damage() => {
                let path = dir.join(crate::superblock::FILE_NAME);
                StoreError::Corrupt { path, why: format!("{doubt}: {e}") }
            }
            _ => e,
        })?;
        store.refuse_another_placement()?;
        Ok(store)
    }

    fn refuse_another_placement(&self) -> Result<()> {
        let (asked, space) = (&self.config.placement, self.fetch.core.space.read());
        if asked.is_empty() || asked == space.placement() {
            return Ok(());
        }
        Err(StoreError::Config(format!(
            "{}: its trees are placed as \"{}\", and stay so; \"{asked}\" is for a new database",
            self.dir().display(),
            space.placement()
        )))
    }

    /// Keeps the placement of a database that has just been made.
    fn keep_placement(self: &Arc<Self>, placement: Placement) -> Result<()> {
        let mut txn = self.begin()?;
        let (name, kind, bytes) = placement.as_record();
        txn.put_record(name, kind, &bytes);
        txn.commit()?;
        self.checkpoint()?;
        let mut space = self.fetch.core.space.write();
        let now = std::mem::replace(&mut *space, Space::new(self.geometry, Vec::new()));
        *space = now.with_placement(placement);
        Ok(())
    }

    fn assemble(
        folder: Arc<Directory>,
        config: StoreConfig,
        lock: Arc<Lock>,
        mut super_file: SuperBlockFile,
        block: SuperBlock,
        mut devices: Devices,
    ) -> Result<Arc<Store>> {
        let dir = folder.path();
        let placed = super_file.take_placed();
        lock.is_of(placed.as_ref())?;
        let watch = Watch::new(folder.clone(), placed, devices.take_placed());
        let geometry = Geometry { extent_pages: block.extent_pages, stripes: block.stripes.len() as u32 };
        devices.check_lengths(geometry, block.extents)?;
        let Meta { catalog, extents, state: mut meta } =
            read_meta(dir, &block, geometry, &|place, buf| devices.read(place, buf))?;
        let checkpoint = CheckpointState { txn: block.txn, geometry, catalog, extents };
        let mut found = recover(&folder, &config, &block, checkpoint, &devices)?;
        meta.adopt_extents(&mut found.extents, geometry);
        say_recovered(dir, &found.trace);
        devices.check_lengths(geometry, found.least_extents)?;
        if !config.is_read_only() {
            devices.set_lengths(geometry, block.extents.max(found.extents.len() as u64))?;
        }
        let memory = config.memory();
        let frames = match &config.shared_frames {
            Some(shared) => shared.clone(),
            None => SharedFrames::new(u64::from(config.frames()?) * PAGE_BYTES as u64, &memory)?,
        };
        let extents = std::mem::take(&mut found.extents);
        let placement = Placement::of_catalog(&found.catalog, geometry.stripes);
        let mut space = Space::new(geometry, extents).with_placement(placement);
        found.catalog.trees.iter().for_each(|(id, name)| space.name_tree(*id, name));
        let core = new_core(dir, &config, &block, space, frames)?;
        let fetch = new_fetch(&folder, &config, core, devices)?;
        let recovery = found.trace.clone();
        let commits = new_commits(watch, &config, fetch.clone(), super_file, block, meta, found)?;
        let work = Arc::new(Work::new(commits.clone(), folder.clone()));
        let background = config
            .runs_background()
            .then(|| BackgroundThread::start(work.clone(), memory.clone()))
            .transpose()
            .map_err(StoreError::file(dir, "start the background thread"))?;
        Ok(Arc::new(Store {
            dir: folder,
            geometry,
            fetch,
            work,
            background,
            commits,
            writers: WriterGate::new(&config.seams.clock),
            upper_waits: UpperWaits::default(),
            codecs: CodecCache::default(),
            config,
            building: AtomicBool::new(false),
            recovery,
            memory,
            _lock: lock,
        }))
    }
}

/// An empty pool over the space.
fn new_core(
    dir: &Path,
    config: &StoreConfig,
    block: &SuperBlock,
    space: Space,
    frames: Arc<SharedFrames>,
) -> Result<Arc<Core>> {
    let meters = Arc::new(Meters::default());
    let told = meters.clone();
    let on_evicted = Box::new(move |tree, unused| told.evicted(tree, unused));
    let most_pages = most_pages(space.geometry(), space.len());
    let pool = Pool::new(frames, most_pages, &config.seams.clock, on_evicted)?;
    let core = Arc::new(Core {
        pages: VisiblePages::new(pool),
        space: RwLock::new(space),
        meters,
        files: block.stripes.iter().map(|p| resolve(dir, p)).collect(),
        failures: Default::default(),
    });
    core.count_pages();
    Ok(core)
}

/// Queues before the stripes' devices, and the warm list.
fn new_fetch(
    dir: &Arc<Directory>,
    config: &StoreConfig,
    core: Arc<Core>,
    devices: Devices,
) -> Result<Arc<Fetch>> {
    let geometry = core.space.read().geometry();
    let frames = core.pages.pool.frame_count();
    let sink: Arc<dyn Sink> = core.clone();
    let stripes = devices.into_stripes(dir.path(), config, &sink)?;
    let listed = config.read_ahead.warm_list.then(|| warm::load(dir, geometry.extent_pages)).flatten();
    let warm_up = WarmUp::new(listed.unwrap_or_default(), frames.into(), geometry);
    Ok(Arc::new(Fetch::new(core, stripes, geometry, warm_up, config)))
}

/// The state that the super-block and the journal give, ready for commits.
fn new_commits(
    watch: Watch,
    config: &StoreConfig,
    fetch: Arc<Fetch>,
    super_file: SuperBlockFile,
    block: SuperBlock,
    meta: MetaState,
    found: Recovered,
) -> Result<Arc<Commits>> {
    let folder = watch.dir().clone();
    let dir = folder.path();
    for p in found.pages {
        fetch.core.pages.restore_version(p.page, p.txn, p.waiting, p.history);
    }
    let replayed_per_s = replayed_per_s(&found.trace, fetch.stripes.cost(0).bytes_per_s);
    let poison: Arc<OnceLock<_>> = Arc::default();
    if config.is_read_only() {
        let _ = poison.set(Arc::new(StoreError::ReadOnly { path: dir.to_path_buf() }));
    }
    let reserve_bytes = match config.mode {
        Mode::ReadWrite => config.reserve_bytes.unwrap_or(4 * fetch.geometry.extent_bytes()),
        Mode::ReadOnly => 0,
    };
    let spare = Reserve::open(&folder, reserve_bytes, config);
    let block = CurrentBlock::new(super_file, cut_at_damage(block, found.found.place), &config.seams.clock);
    let poisoned = Arc::clone(&poison);
    let journal = Journal::new(
        folder.clone(),
        config,
        block.clone(),
        poisoned,
        found.found,
        watch,
        fetch.stripes.cost(0),
    );
    Ok(Arc::new(Commits {
        dir: dir.to_path_buf(),
        fetch,
        states: States::new(State { txn: found.txn, catalog: found.catalog }),
        snapshots: Arc::default(),
        journal: Arc::new(journal),
        meta: Mutex::new(meta),
        block,
        spare,
        lengths: LongLock::new("the lengths of the stripes", Default::default(), &config.seams.clock),
        replayed_per_s,
        poison,
        order: Mutex::default(),
        generation: AtomicU64::new(0),
        next_txn: AtomicU64::new(found.last_number + 1),
        next_tree: AtomicU32::new(0),
        room: JournalRoom::new(&config.seams.clock),
        bell: Bell::new(&config.seams.clock),
        meta_again: Mutex::default(),
        checkpointer: Checkpointer::new(&config.seams.clock),
        lineage: match &config.seams.openings {
            Some(next) => next.fetch_add(1, Ordering::Relaxed),
            None => RandomState::new().hash_one((found.txn, config.seams.clock.now_ns())),
        },
        version_pages: config.version_pages()? as u64,
        config: config.clone(),
    }))
}

/// Where the journal was cut at damage, as asked, what is behind the cut is no longer missed.
fn cut_at_damage(block: SuperBlock, place: TailPlace) -> SuperBlock {
    if place.sequence < block.synced {
        return SuperBlock {
            synced: place.sequence,
            tail_file: place.file,
            tail_offset: place.offset,
            ..block
        };
    }
    block
}

/// Keeps the profiles that were given, before the queues are set up by them.
fn keep_profiles(dir: &Path, stripes: &[PathBuf], config: &StoreConfig) -> Result<()> {
    for (i, profile) in config.new_profiles.iter().filter(|(i, _)| *i < stripes.len()) {
        let path = known::profile_path(dir, *i, &stripes[*i]);
        profile.keep(&path).map_err(StoreError::device(&path, "keep the profile"))?;
    }
    Ok(())
}

/// Trees are placed on stripes that there are.
fn check_placement(config: &StoreConfig, stripes: usize) -> Result<()> {
    match config.placement.iter().find(|(_, stripe)| *stripe as usize >= stripes) {
        None => Ok(()),
        Some((name, stripe)) => Err(StoreError::Config(format!(
            "the tree {name} cannot be placed on stripe {stripe}: there are the stripes 0 to {}",
            stripes - 1
        ))),
    }
}

/// A line for the log when there was something to recover.
fn say_recovered(dir: &Path, trace: &RecoveryTrace) {
    if trace.commits > 0 {
        snowmelt_io::notice(&format!(
            "{}: recovered {} commits after the checkpoint: {} bytes of journal in {} requests, {} at a time, {:.3} s; {} pages will be written back",
            dir.display(),
            trace.commits,
            trace.read_bytes,
            trace.requests,
            trace.concurrency,
            trace.seconds,
            trace.pages
        ));
    }
}

/// Bytes of journal that a recovery reads and works through per second: as measured at this open if
/// it read enough, at most what the device reads.
fn replayed_per_s(trace: &RecoveryTrace, device_bytes_per_s: u64) -> u64 {
    /// Without a measurement: commits of one quad take twice as long, of a hundred a quarter.
    const USUAL: u64 = 100_000_000;
    /// Less says more about opening files than about reading.
    const ENOUGH_BYTES: u64 = 64 << 20;
    let measured = (trace.read_bytes >= ENOUGH_BYTES)
        .then(|| (trace.read_bytes as f64 / trace.seconds.max(1e-3)) as u64);
    measured.unwrap_or(USUAL).min(device_bytes_per_s).max(1)
}

/// Pages the translation array covers: room to grow costs only address space.
fn most_pages(geometry: Geometry, extents: u64) -> u64 {
    (extents * geometry.extent_pages as u64 * 4).max(1 << 28)
}

/// How the super-block names a stripe: one that is in the folder by its name alone, so that both
/// can be moved together.
fn named_in(dir: &Path, file: PathBuf) -> Result<PathBuf> {
    let is_same = |parent: &Path| {
        let both = || Some((parent.canonicalize().ok()?, dir.canonicalize().ok()?));
        parent == dir || both().is_some_and(|(parent, dir)| parent == dir)
    };
    let Some(name) = file.file_name().filter(|_| file.parent().is_some_and(is_same)) else { return Ok(file) };
    match name.to_str().is_some_and(making::is_reserved) {
        true => Err(StoreError::Config(format!(
            "{}: no stripe can have this name in the directory of its database: choose another one",
            file.display()
        ))),
        false => Ok(PathBuf::from(name)),
    }
}

/// The paths the super-block will name.
fn stripe_files(dir: &Path, stripes: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if stripes.is_empty() {
        return Ok(vec![PathBuf::from(DEFAULT_STRIPE)]);
    }
    let name = dir.file_name().map_or("database".into(), |n| n.to_string_lossy().into_owned());
    let absolute = |p: &Path| std::path::absolute(p).map_err(StoreError::file(p, "find the stripe"));
    let file = |(i, p): (usize, &PathBuf)| {
        let file = if p.is_dir() { absolute(&p.join(format!("{name}.stripe-{i}"))) } else { absolute(p) };
        named_in(&absolute(dir)?, file?)
    };
    let files = stripes.iter().enumerate().map(file).collect::<Result<Vec<_>>>()?;
    for (i, f) in files.iter().enumerate() {
        if files[..i].contains(f) {
            return Err(StoreError::Config(format!("the stripe {} is named twice", f.display())));
        }
    }
    Ok(files)
}
