//! Opening a published database: the manifest, then the opener and the journal at the same time.
//!
//! Together they make a folder of virtual files, which a store opens for reading as it opens any
//! folder after a crash:
//!
//! | file | bytes |
//! |---|---|
//! | `superblock` | the opener's |
//! | `journal-0`, `journal-1`, … | the journal objects, put together |
//! | the stripes | see [`stripe`](crate::publish::stripe) |

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use snowmelt_io::{
    Access, Clock, Device, ExtentCache, IoError, IoErrorKind, MemoryDevice, ObjectErrorKind, Objects,
    Operation, ReadOnly, SparseMemoryDevice, ask, ask_all,
};

use twox_hash::XxHash3_64;

use crate::error::{Result, StoreError};
use crate::format::lineage::StateName;
use crate::journal::record::FileHead;
use crate::page::geometry::Geometry;
use crate::publish::asks::{got, unusable, whole};
use crate::publish::manifest::{self, Publication};
use crate::publish::opener::Opener;
use crate::publish::stripe::PublishedStripe;
use crate::settings::config::{Mode, Seams, StoreConfig};
use crate::settings::opener::FileOpener;
use crate::store::Store;
use crate::superblock::file::{COPIES, COPY_DISTANCE};
use crate::superblock::{self, SLOT_BYTES};

/// The newest state of a published database, ready to be opened.
pub struct Published {
    objects: Arc<dyn Objects>,
    clock: Clock,
    manifest: Publication,
    opener: Arc<Opener>,
    journal: Vec<Arc<dyn Device>>,
}

impl Published {
    /// Looks the newest state up: two rounds of requests.
    ///
    /// # Errors
    /// Nothing is published there; an object that is missing or damaged, or of another format; the
    /// store cannot be read.
    pub fn find(objects: Arc<dyn Objects>, clock: &Clock) -> Result<Published> {
        /// Publications that may take the objects of a manifest away while they are asked for.
        const TRIES: usize = 3;
        let mut tries = 0;
        loop {
            let manifest = read_manifest(&*objects, clock)?;
            tries += 1;
            match Self::read(objects.clone(), clock, manifest) {
                Err(StoreError::Object { cause })
                    if cause.kind == ObjectErrorKind::Missing && tries < TRIES => {}
                other => return other,
            }
        }
    }

    fn read(objects: Arc<dyn Objects>, clock: &Clock, manifest: Publication) -> Result<Published> {
        let keys = manifest.journal.iter().map(|object| &object.key);
        let asks = std::iter::once(&manifest.opener).chain(keys).map(|key| whole(key)).collect();
        let mut answers = ask_all(&*objects, clock, asks).into_iter().map(|answer| Ok(got(answer?)));
        let opener = answers.next().expect("the opener was asked for")?;
        let opener = Opener::decode(&opener).map_err(|why| unusable(&*objects, why))?;
        if (opener.block.txn, opener.block.identity) != (manifest.txn, manifest.database) {
            return Err(unusable(&*objects, "manifest and opener are of different states"));
        }
        let pieces = answers.collect::<Result<Vec<_>>>()?;
        let journal = journal_files(&*objects, &manifest, &pieces, opener.block.slots)?;
        Ok(Published { objects, clock: clock.clone(), manifest, opener: Arc::new(opener), journal })
    }

    /// The newest state that is published.
    pub fn newest(&self) -> StateName {
        self.manifest.newest()
    }

    /// Opens it for reading. Extents that are read are kept in `cache`, if there is one.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open(&self, cache: Option<Arc<ExtentCache>>, config: StoreConfig) -> Result<Arc<Store>> {
        let seams = Seams { files: Some(self.files(cache)), ..config.seams };
        let path = PathBuf::from(&**self.objects.name());
        Store::open(&path, StoreConfig { mode: Mode::ReadOnly, seams, ..config })
    }

    /// Its virtual files.
    fn files(&self, cache: Option<Arc<ExtentCache>>) -> FileOpener {
        let block = &self.opener.block;
        let geometry = Geometry { extent_pages: block.extent_pages, stripes: block.stripes.len() as u32 };
        let device = |stripe: usize| {
            let name = format!("{}/{}", self.objects.name(), block.stripes[stripe].display());
            let device = PublishedStripe {
                name: name.into(),
                stripe,
                geometry,
                opener: self.opener.clone(),
                objects: self.objects.clone(),
                clock: self.clock.clone(),
                cache: cache.clone(),
            };
            (block.stripes[stripe].clone(), Arc::new(ReadOnly(device)) as Arc<dyn Device>)
        };
        let mut files: Vec<(PathBuf, Arc<dyn Device>)> = (0..block.stripes.len()).map(device).collect();
        files.push((superblock::FILE_NAME.into(), self.super_block()));
        let journal = self.journal.iter().enumerate();
        files.extend(journal.map(|(slot, file)| (format!("journal-{slot}").into(), file.clone())));
        let store = self.objects.name().clone();
        FileOpener::new(move |path: &Path, access| {
            let found = files.iter().find(|(name, _)| path.file_name() == Some(name.as_os_str()));
            let errno = match (found, access) {
                (Some((_, device)), Access::Read) => return Ok(device.clone()),
                (Some(_), _) => libc::EROFS,
                (None, _) => libc::ENOENT,
            };
            let kind = IoErrorKind::Os { errno };
            Err(IoError { device: store.clone(), operation: Operation::Open, offset: 0, len: 0, kind })
        })
    }

    /// A file with the super-block in one of its slots, in both copies.
    fn super_block(&self) -> Arc<dyn Device> {
        let slot = self.opener.block.encode().expect("it was decoded from one");
        let mut bytes = vec![0; ((COPIES - 1) * COPY_DISTANCE) as usize + 2 * SLOT_BYTES];
        for copy in 0..COPIES {
            bytes[(copy * COPY_DISTANCE) as usize..][..SLOT_BYTES].copy_from_slice(&slot);
        }
        Arc::new(ReadOnly(MemoryDevice::from_bytes("superblock", bytes)))
    }
}

fn read_manifest(objects: &dyn Objects, clock: &Clock) -> Result<Publication> {
    match ask(objects, clock, whole(manifest::KEY)) {
        Ok(answer) => Publication::decode(&got(answer)).map_err(|why| unusable(objects, why)),
        Err(e) if e.kind == ObjectErrorKind::Missing => {
            Err(unusable(objects, "no database is published here; publish one with `snowmelt publish`"))
        }
        Err(e) => Err(e.into()),
    }
}

/// The journal files, in the order of their numbers, and empty ones up to the number of slots that
/// the super-block says there are.
fn journal_files(
    objects: &dyn Objects,
    manifest: &Publication,
    pieces: &[Vec<u8>],
    slots: u32,
) -> Result<Vec<Arc<dyn Device>>> {
    let mut files: Vec<Arc<dyn Device>> = Vec::new();
    let mut of_file = None;
    for (object, bytes) in manifest.journal.iter().zip(pieces) {
        if (object.bytes, object.checksum) != (bytes.len() as u64, XxHash3_64::oneshot(bytes)) {
            return Err(unusable(objects, format!("{} is damaged: it has other bytes", object.key)));
        }
        let file = match (&of_file, FileHead::decode(bytes)) {
            (Some((number, file)), _) if *number == object.file => Arc::clone(file),
            (_, Some(head)) if object.from == 0 && head.file == object.file => {
                let name = format!("journal file {}", object.file);
                let file = Arc::new(SparseMemoryDevice::new(&name, head.bytes, u64::MAX));
                files.push(file.clone());
                of_file = Some((object.file, file.clone()));
                file
            }
            _ => return Err(unusable(objects, format!("{} is not the begin of a journal file", object.key))),
        };
        file.write_at(&[IoSlice::new(bytes)], object.from)
            .map_err(StoreError::device(Path::new(&object.key), "keep the journal"))?;
    }
    while files.len() < slots as usize {
        files.push(Arc::new(ReadOnly(MemoryDevice::new("empty journal file"))));
    }
    Ok(files)
}
