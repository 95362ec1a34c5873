//! One database, opened many times at once: every view has a directory and a super-block of its
//! own and shares the bytes.
//!
//! A view may have another number of stripes than the database: pages keep their numbers, and
//! the extents are dealt anew.
//!
//! The bytes are held in memory, below the modelled devices, where they fit; else each view reads
//! the files. The database itself stays open meanwhile, and so locked. No view writes to it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use snowmelt_graph::GraphDatabase;
use snowmelt_io::{Device, MemoryDevice};
use snowmelt_store::superblock::{SuperBlock, SuperBlockFile};
use snowmelt_store::{Background, DeviceWrap, Geometry, ReadAhead, Store, StoreConfig};

use snowmelt_workload::scratch_dir::ScratchDir;

/// Databases up to this size are held in memory.
const MOST_IN_MEMORY: u64 = 4 << 30;

/// The database that is shared.
pub(super) struct SharedDatabase {
    /// Keeps it locked.
    _held: Arc<Store>,
    block: SuperBlock,
    /// By number of stripes: their bytes; empty when they are too many.
    memory: HashMap<u32, Vec<Arc<dyn Device>>>,
    /// Pages written.
    pub pages: u64,
    /// Bytes of all stripes.
    pub bytes: u64,
}

impl SharedDatabase {
    /// Opens and locks the database in `dir`, and reads it, for views of these numbers of
    /// stripes.
    pub fn open(dir: &Path, stripes: &[u32]) -> Result<Self> {
        let config = StoreConfig { read_ahead: ReadAhead::none(), ..StoreConfig::default() };
        let held = Store::open(dir, config)?;
        // Changes in the journal are not on the stripes, and views have no journal.
        held.checkpoint()?;
        let mut block = SuperBlockFile::peek(dir)?;
        (block.slots, block.synced) = (0, block.before.0);
        (block.tail_file, block.tail_offset) = (0, 0);
        block.stripes = held.stripe_files().iter().map(std::path::absolute).collect::<Result<_, _>>()?;
        let bytes: u64 = block.stripes.iter().map(|path| fs::metadata(path).map_or(0, |m| m.len())).sum();
        let mut memory = HashMap::new();
        if bytes <= MOST_IN_MEMORY {
            let read =
                |path: &PathBuf| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
            let files = block.stripes.iter().map(read).collect::<Result<Vec<_>>>()?;
            for n in stripes {
                memory.insert(*n, dealt(held.geometry(), block.extents, &files, *n));
            }
        }
        let pages = held.tree_stats().iter().map(|tree| tree.pages).sum();
        Ok(Self { _held: held, block, memory, pages, bytes })
    }

    /// True when there can be a view with this number of stripes.
    pub fn has_stripes(&self, stripes: u32) -> bool {
        self.memory.contains_key(&stripes) || stripes as usize == self.block.stripes.len()
    }

    /// A view with this number of stripes.
    pub fn view(&self, stripes: u32) -> Result<View<'_>> {
        let dir = ScratchDir::new("snowmelt-view")?;
        let mut block = self.block.clone();
        if self.memory.contains_key(&stripes) {
            // The files only have the names; the bytes are in memory.
            block.stripes = (0..stripes).map(|i| PathBuf::from(format!("stripe-{i}"))).collect();
            block.stripes.iter().try_for_each(|name| fs::write(dir.path().join(name), ""))?;
        }
        SuperBlockFile::create(dir.path(), None)?.write(&block)?;
        Ok(View { database: self, dir, stripes })
    }
}

/// The bytes of `n` stripes to which the extents in `files` are dealt.
fn dealt(geometry: Geometry, extents: u64, files: &[Vec<u8>], n: u32) -> Vec<Arc<dyn Device>> {
    let to = Geometry { stripes: n, ..geometry };
    let len = to.extent_bytes() as usize;
    let mut stripes: Vec<Vec<u8>> =
        (0..n as usize).map(|i| vec![0; to.stripe_bytes(i, extents) as usize]).collect();
    for extent in 0..extents {
        let (old, new) = (geometry.extent_place(extent), to.extent_place(extent));
        let (from, at) = (old.offset as usize, new.offset as usize);
        // The last extent of a file may be cut short.
        let from = files[old.stripe].get(from..).unwrap_or_default();
        let here = from.len().min(len);
        stripes[new.stripe][at..at + here].copy_from_slice(&from[..here]);
    }
    let device =
        |(i, bytes)| Arc::new(MemoryDevice::from_bytes(&format!("stripe {i}"), bytes)) as Arc<dyn Device>;
    stripes.into_iter().enumerate().map(device).collect()
}

/// The database under a name of its own.
pub(super) struct View<'a> {
    pub database: &'a SharedDatabase,
    dir: ScratchDir,
    stripes: u32,
}

impl View<'_> {
    /// Opens it. `model` puts a modelled device over the bytes of each stripe; `list` is the
    /// warm list it finds.
    pub fn open(
        &self,
        mut config: StoreConfig,
        model: impl Fn(Arc<dyn Device>) -> Result<Arc<dyn Device>, snowmelt_io::IoError> + Send + Sync + 'static,
        list: Option<&[u8]>,
    ) -> Result<Arc<GraphDatabase>> {
        let memory = self.database.memory.get(&self.stripes).cloned().unwrap_or_default();
        config.seams.devices =
            Some(DeviceWrap::new(move |stripe, file| model(memory.get(stripe).cloned().unwrap_or(file))));
        config.direct = false;
        config.seams.background = Background::Caller;
        let path = self.list_path();
        match list {
            Some(list) => fs::write(&path, list)?,
            None if path.exists() => fs::remove_file(&path)?,
            None => {}
        }
        Ok(GraphDatabase::open(self.dir.path(), &config)?)
    }

    /// The warm list of the view.
    pub fn list_path(&self) -> PathBuf {
        self.dir.path().join("warm")
    }
}
