//! The stripes: one file per device, each with its own queue and counters.
//!
//! A stripe's device is the file or block device, opened with or without O_DIRECT, and whatever
//! the configuration wraps around it (a simulated or a faulty device). Its costs begin with those
//! that were set for all, or those its device knows of itself, or what is `known` of its disk.

use std::io::{IoSlice, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use snowmelt_io::{
    Access, Belief, Class, Clock, CostModel, Device, DeviceCounters, DeviceQueue, DiskIdentity, IoError,
    KernelFiles, ProbedReads, ReadTimes, Request, Sink, WriteCost, is_block_device, notice,
};

use crate::error::{Result, StoreError};
use crate::files::beside::{Traffic, Turns};
use crate::files::block_stripe::Claim;
use crate::files::known::Known;
use crate::files::owner::OwnedStripe;
use crate::files::resolve;
use crate::page::geometry::{Geometry, Place};
use crate::settings::config::StoreConfig;
use crate::settings::opener::{Caching, Directory, Placed};

/// The devices of a store that is being opened: enough to read its meta run.
pub(crate) struct Devices {
    list: Vec<OpenDevice>,
    linked_journal: Vec<OwnedStripe>,
}

struct OpenDevice {
    path: PathBuf,
    /// The directory it lies in, and its name there.
    place: (Arc<Directory>, PathBuf),
    device: Arc<dyn Device>,
    placed: Option<Placed>,
    /// The configuration has put another device in the place of the file's.
    is_wrapped: bool,
    is_block: bool,
    /// On a block device that is written to.
    claim: Option<Claim>,
    /// Of a file outside of the folder, or a link in it, that is written to.
    owned: Option<OwnedStripe>,
}

impl OpenDevice {
    /// Opens the device that the super-block of the database in `dir` calls `named`.
    fn open(
        number: usize,
        dir: &Arc<Directory>,
        named: &Path,
        mut access: Access,
        config: &StoreConfig,
    ) -> Result<OpenDevice> {
        let path = &resolve(dir.path(), named);
        let is_new = matches!(access, Access::Create | Access::CreateNew);
        let what = if is_new { "create the stripe" } else { "open the stripe" };
        let caching = if config.direct { Caching::Direct } else { Caching::Buffered };
        let is_block = config.seams.files.is_none() && is_block_device(path);
        let claim = match access {
            Access::Create | Access::CreateNew if is_block => {
                Some(Claim::take_new(path, config.block_devices)?)
            }
            Access::ReadWrite if is_block => Some(Claim::take(path)?),
            _ => None,
        };
        if is_block && is_new {
            access = Access::ReadWrite;
        }
        let place = match named.file_name() {
            Some(name) if name == named.as_os_str() => (dir.clone(), named.to_path_buf()),
            _ => Directory::open_parent(path, config.seams.files.as_ref())?,
        };
        let opened = place.0.shared_device(&place.1, access, caching, config.descriptors);
        let file = opened.map_err(StoreError::device(path, what))?;
        let placed = Placed::from_device(&place.0, &place.1, &*file);
        let is_owned = !is_block && config.seams.files.is_none() && access != Access::Read;
        let is_outside = !Arc::ptr_eq(&place.0, dir) || path.is_symlink();
        let owned = (is_owned && is_outside)
            .then(|| OwnedStripe::take(dir, &place.0, &place.1, access))
            .transpose()?;
        let device = match &config.seams.devices {
            Some(wrap) => wrap.wrap(number, file.clone()).map_err(StoreError::device(path, what))?,
            None => file.clone(),
        };
        let is_wrapped = !Arc::ptr_eq(&device, &file);
        Ok(OpenDevice { path: path.clone(), place, device, placed, is_wrapped, is_block, claim, owned })
    }
}

impl Devices {
    /// Opens the files that the super-block of the database in `dir` calls so, making them when
    /// `access` says so.
    pub fn open(
        dir: &Arc<Directory>,
        named: &[PathBuf],
        access: Access,
        config: &StoreConfig,
    ) -> Result<Devices> {
        config.check()?;
        if let Some(wrap) = &config.seams.devices {
            wrap.check(named.len())?;
        }
        let open = |(number, named): (usize, &PathBuf)| OpenDevice::open(number, dir, named, access, config);
        let list = named.iter().enumerate().map(open).collect::<Result<_>>()?;
        let linked_journal = match access {
            Access::ReadWrite if config.seams.files.is_none() => OwnedStripe::take_linked_journal(dir)?,
            _ => Vec::new(),
        };
        Ok(Devices { list, linked_journal })
    }

    /// The files with their names, of those that can be deleted or replaced.
    pub fn take_placed(&mut self) -> Vec<Placed> {
        self.list.iter_mut().filter_map(|open| open.placed.take()).collect()
    }

    /// Checks that the files hold at least `extents` extents.
    pub fn check_lengths(&self, geometry: Geometry, extents: u64) -> Result<()> {
        for (i, OpenDevice { path, device, .. }) in self.list.iter().enumerate() {
            let found = device.len().map_err(StoreError::device(path, "look at the stripe"))?;
            let expected = geometry.stripe_bytes(i, extents);
            if found < expected {
                return Err(StoreError::Truncated { path: path.clone(), found, expected });
            }
        }
        Ok(())
    }

    /// Makes the files as long as `extents` extents need, with room for them if there is any. Bytes
    /// beyond were written by a build that never committed; missing ones belong to transactions
    /// whose pages are still in the journal.
    pub fn set_lengths(&self, geometry: Geometry, extents: u64) -> Result<()> {
        for (i, OpenDevice { path, device, .. }) in self.list.iter().enumerate() {
            let found = device.len().map_err(StoreError::device(path, "look at the stripe"))?;
            let whole = geometry.stripe_bytes(i, extents);
            // A full disk must not keep readers out.
            if found < whole && device.lengthen(whole).is_ok() {
                continue;
            }
            if found != whole {
                device.set_len(whole).map_err(StoreError::device(path, "set the length of the stripe"))?;
            }
        }
        Ok(())
    }

    /// Fills `buf` from a place.
    pub fn read(&self, place: Place, buf: &mut [u8]) -> std::result::Result<(), IoError> {
        self.list[place.stripe].device.read_at(&mut [IoSliceMut::new(buf)], place.offset)
    }

    /// Writes `bytes` to a place.
    pub fn write(&self, place: Place, bytes: &[u8]) -> Result<()> {
        let OpenDevice { path, device, .. } = &self.list[place.stripe];
        device
            .write_at(&[IoSlice::new(bytes)], place.offset)
            .map_err(StoreError::device(path, "write to the stripe"))
    }

    /// Puts a queue before each device. Completions go to `sink`.
    pub fn into_stripes(self, dir: &Path, config: &StoreConfig, sink: &Arc<dyn Sink>) -> Result<Stripes> {
        let mut list = Vec::new();
        for (number, open) in self.list.into_iter().enumerate() {
            let OpenDevice { path, place, device, is_wrapped, is_block, claim, owned, .. } = open;
            let mut settings = config.queue.clone();
            let mut known = Known::default();
            if settings.cost.is_none() && !is_wrapped && config.seams.files.is_none() {
                known = Known::find(&KernelFiles::real(), dir, number, &path, config.hints);
                known.doubts.iter().for_each(|line| notice(line));
                if let Some(prior) = &known.prior {
                    (settings.cost, settings.cost_source) = (Some(prior.cost), prior.source);
                }
            }
            let queue = DeviceQueue::open(device, settings, config.seams.clock.clone(), sink.clone())
                .map_err(StoreError::device(&path, "set up the queue of the stripe"))?;
            let place = Some(place).filter(|_| !is_block);
            let Known { probed, disk, prior, .. } = known;
            let begin = prior.map(|prior| prior.why).unwrap_or_default();
            let turns = Turns::default();
            list.push(Stripe {
                path,
                queue,
                place,
                probed,
                begin,
                disk,
                turns,
                _claim: claim,
                _owned: owned,
            });
        }
        Ok(Stripes {
            list,
            real: config.seams.files.is_none(),
            clock: config.seams.clock.clone(),
            traffic: Traffic::new(config.seams.clock.now_ns()),
            _linked_journal: self.linked_journal,
        })
    }
}

/// The open stripes of a store.
pub(crate) struct Stripes {
    list: Vec<Stripe>,
    /// They are files of the file system, with directories.
    real: bool,
    clock: Clock,
    traffic: Traffic,
    _linked_journal: Vec<OwnedStripe>,
}

struct Stripe {
    path: PathBuf,
    queue: Arc<DeviceQueue>,
    /// The directory it lies in, and its name there; `None` of a block device, whose name need
    /// not be made durable.
    place: Option<(Arc<Directory>, PathBuf)>,
    /// Times of reads as a probe measured them.
    probed: Option<ProbedReads>,
    /// Why its costs were believed at first, in words; empty where that is not known.
    begin: String,
    /// The disk it lies on, of which what is learned is kept.
    disk: Option<DiskIdentity>,
    /// Turns of long writes beside commits.
    turns: Turns,
    _claim: Option<Claim>,
    _owned: Option<OwnedStripe>,
}

impl Stripes {
    /// Number of stripes.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Costs of the requests of a stripe.
    pub fn cost(&self, stripe: usize) -> CostModel {
        self.list[stripe].queue.cost()
    }

    /// Costs of the writes to a stripe.
    pub fn write_cost(&self, stripe: usize) -> WriteCost {
        self.list[stripe].queue.write_cost()
    }

    /// False of files that simulate a disk whose power is cut: a run there follows from its seed
    /// alone, so nothing that is written may depend on the time that it takes.
    pub fn are_real(&self) -> bool {
        self.real
    }

    /// True when a lone read of a stripe with a waiting reader goes past its queue.
    pub fn reads_in_place(&self, stripe: usize) -> bool {
        self.list[stripe].queue.reads_in_place()
    }

    /// Hands requests to the queue of a stripe.
    pub fn submit(&self, stripe: usize, requests: &mut Vec<Request>) {
        self.list[stripe].queue.submit(requests);
    }

    /// A reader waits for the reads at these offsets of a stripe (sorted).
    pub fn hurry(&self, stripe: usize, offsets: &[u64], class: Class) {
        self.list[stripe].queue.hurry(offsets, class);
    }

    /// Requests of a stripe that wait or are under way.
    pub fn backlog(&self, stripe: usize) -> usize {
        self.list[stripe].queue.backlog()
    }

    /// Device requests of a stripe outstanding in the mean, lately.
    pub fn crowd(&self, stripe: usize) -> usize {
        self.list[stripe].queue.crowd()
    }

    /// Fills `buf` from a place, in the calling thread.
    pub fn read(&self, place: Place, buf: &mut [u8], class: Class) -> std::result::Result<(), IoError> {
        self.list[place.stripe].queue.read_now(place.offset, buf, class)
    }

    /// Notes that a transaction commits.
    pub fn note_commit(&self) {
        self.traffic.note(self.clock.now_ns());
    }

    /// True after a while without commits, and where nothing may depend on them.
    pub fn are_quiet(&self) -> bool {
        !self.real || self.traffic.is_over(self.clock.now_ns())
    }

    /// Longest piece of a long write to a stripe, where transactions commit.
    fn piece_bytes(&self, stripe: usize) -> Option<usize> {
        let is_beside = self.real && self.traffic.is_on(self.clock.now_ns());
        is_beside.then(|| self.write_cost(stripe).piece_bytes() as usize)
    }

    /// Writes `bytes` to a place, in the calling thread; beside commits in pieces, with pauses.
    pub fn write(&self, place: Place, bytes: &[u8]) -> Result<()> {
        let s = &self.list[place.stripe];
        let (mut at, mut rest) = (place.offset, bytes);
        while !rest.is_empty() {
            let write = |bytes: &[u8]| s.queue.write_now(at, &[IoSlice::new(bytes)], Class::WriteBack);
            let (now, written) = match self.piece_bytes(place.stripe) {
                None => (rest.len(), write(rest)),
                Some(piece) => {
                    let now = piece.min(rest.len());
                    let device_ns = s.queue.write_cost().request_ns(now as u64);
                    (now, s.turns.take(&self.clock, device_ns, || write(&rest[..now])))
                }
            };
            written.map_err(StoreError::device(&s.path, "write to the stripe"))?;
            (at, rest) = (at + now as u64, &rest[now..]);
        }
        Ok(())
    }

    /// Writes sorted pieces (offset, bytes) of one stripe behind whatever is more urgent; returns
    /// when all are written. On simulated files ([`Stripes::are_real`]), one after the other in the
    /// calling thread.
    pub fn write_back(&self, stripe: usize, parts: &[(u64, &[u8])]) -> Result<()> {
        let s = &self.list[stripe];
        assert!(
            parts.windows(2).all(|w| w[0].0 + w[0].1.len() as u64 <= w[1].0),
            "pieces are sorted and lie apart"
        );
        assert!(parts.iter().all(|(_, bytes)| !bytes.is_empty()), "a piece has bytes");
        let written = match self.real {
            true => s.queue.write_awaited(parts, Class::WriteBack),
            false => parts
                .iter()
                .try_for_each(|(at, bytes)| s.queue.write_now(*at, &[IoSlice::new(bytes)], Class::WriteBack)),
        };
        written.map_err(StoreError::device(&s.path, "write to the stripe"))
    }

    /// Writes what a query puts aside to a place, behind what is more urgent, and beside commits in
    /// pieces. On simulated files in the calling thread, as [`Stripes::write_back`].
    pub fn spill(&self, place: Place, bytes: &[u8]) -> Result<()> {
        let s = &self.list[place.stripe];
        let written = match self.real {
            true => {
                /// Shorter ones take less than a commit, and stay whole.
                const LONG: usize = 4;
                let piece = self.piece_bytes(place.stripe).filter(|piece| bytes.len() > LONG * piece);
                let piece = piece.unwrap_or(bytes.len()).max(1);
                let at = (place.offset..).step_by(piece);
                let parts: Vec<(u64, &[u8])> = at.zip(bytes.chunks(piece)).collect();
                s.queue.write_awaited(&parts, Class::SpillWrite)
            }
            false => s.queue.write_now(place.offset, &[IoSlice::new(bytes)], Class::SpillWrite),
        };
        written.map_err(StoreError::device(&s.path, "put aside what a query does not hold in memory"))
    }

    /// Fills `buf` with what a query has put aside.
    pub fn read_spilled(&self, place: Place, buf: &mut [u8]) -> Result<()> {
        let s = &self.list[place.stripe];
        let read = match self.real {
            true => s.queue.read_awaited(&mut [(place.offset, buf)], Class::SpillRead),
            false => s.queue.read_now(place.offset, buf, Class::SpillRead),
        };
        read.map_err(StoreError::device(&s.path, "read what a query has put aside"))
    }

    /// Makes what was written to a stripe durable, so that a cache holds little.
    pub fn flush(&self, stripe: usize) -> Result<()> {
        let s = &self.list[stripe];
        s.queue.sync().map_err(StoreError::device(&s.path, "sync the stripe"))
    }

    /// Makes everything written durable, the directory entries too.
    pub fn sync(&self) -> Result<()> {
        for s in &self.list {
            s.queue.sync().map_err(StoreError::device(&s.path, "sync the stripe"))?;
            s.place.iter().try_for_each(|(dir, _)| dir.sync())?;
        }
        Ok(())
    }

    /// Makes the files as long as `extents` extents need. Those that are so already are left
    /// alone: even setting the same length again has a file system wait for all that is being
    /// read.
    pub fn set_extents(&self, geometry: Geometry, extents: u64) -> Result<()> {
        for (i, s) in self.list.iter().enumerate() {
            let bytes = geometry.stripe_bytes(i, extents);
            let now = s.queue.device().len().map_err(StoreError::device(&s.path, "look at the stripe"))?;
            if now == bytes {
                continue;
            }
            let device = s.queue.device();
            let set = if now < bytes { device.lengthen(bytes) } else { device.set_len(bytes) };
            set.map_err(StoreError::device(&s.path, "set the length of the stripe"))?;
        }
        Ok(())
    }

    /// Makes the files at least as long as `extents` extents need, with room for all of them
    /// where the devices can promise that.
    pub fn lengthen(&self, geometry: Geometry, extents: u64) -> Result<()> {
        for (i, s) in self.list.iter().enumerate() {
            let bytes = geometry.stripe_bytes(i, extents);
            let longer = s.queue.device().lengthen(bytes);
            longer.map_err(StoreError::device(&s.path, "lengthen the stripe"))?;
        }
        Ok(())
    }

    /// Bytes of the files when there are so many extents; of a block device those that the
    /// extents take.
    pub fn bytes(&self, geometry: Geometry, extents: u64) -> Result<u64> {
        let bytes = |(i, s): (usize, &Stripe)| match s.place {
            None => Ok(geometry.stripe_bytes(i, extents)),
            Some(_) => s.queue.device().len().map_err(StoreError::device(&s.path, "look at the stripe")),
        };
        self.list.iter().enumerate().map(bytes).sum()
    }

    /// Bytes by which all stripes together can grow, each by as much; `None` when the system does
    /// not say, or a stripe is a block device.
    pub fn room(&self) -> Option<u64> {
        if !self.real {
            return None;
        }
        let mut rooms: Vec<(u64, u64)> = Vec::new();
        for stripe in &self.list {
            let (dir, name) = stripe.place.as_ref()?;
            let file = dir.folder().ok()?.open_file(name, OFlags::PATH).ok()?;
            let system = rustix::fs::fstatvfs(&file).ok()?;
            let device = rustix::fs::fstat(&file).ok()?.st_dev;
            rooms.push((device, system.f_bavail.saturating_mul(system.f_frsize)));
        }
        // Stripes of one file system share its room.
        let sharers = |device: u64| rooms.iter().filter(|(of, _)| *of == device).count() as u64;
        let least = rooms.iter().map(|(device, room)| room / sharers(*device)).min()?;
        Some(least.saturating_mul(rooms.len() as u64))
    }

    /// Beliefs about a stripe's device, and why.
    pub fn belief(&self, stripe: usize) -> Belief {
        self.list[stripe].queue.belief()
    }

    /// Why the costs of a stripe were believed at first, in words.
    pub fn begin(&self, stripe: usize) -> &str {
        &self.list[stripe].begin
    }

    /// The disk that a stripe lies on, where what is learned of it is kept.
    pub fn disk(&self, stripe: usize) -> Option<&DiskIdentity> {
        self.list[stripe].disk.as_ref()
    }

    /// The file of a stripe.
    pub fn path(&self, stripe: usize) -> &Path {
        &self.list[stripe].path
    }

    /// The directory that a stripe lies in, and its name there; `None` of a block device.
    pub fn place(&self, stripe: usize) -> Option<&(Arc<Directory>, PathBuf)> {
        self.list[stripe].place.as_ref()
    }

    /// Counters of every device.
    pub fn counters(&self) -> Vec<DeviceCounters> {
        self.list.iter().map(|s| s.queue.counters()).collect()
    }

    /// Name of a stripe's device, what reads of it took lately, and what a probe measured.
    pub fn read_times(&self, stripe: usize) -> (&str, ReadTimes, Option<ProbedReads>) {
        let s = &self.list[stripe];
        (s.queue.device().name(), s.queue.read_times(), s.probed)
    }

    /// Sets the devices' counters to zero.
    pub fn reset_counters(&self) {
        self.list.iter().for_each(|s| s.queue.reset_counters());
    }
}

/// Makes the directory entry of `path` durable.
pub(crate) fn sync_parent(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Directory::open(parent, None)?.sync()
}
