//! Durable sorted trees: space, pool, pages, read-ahead, snapshots.
//!
//! The folders, in the order of their arrows: each needs only those above it.
//!
//! | folder       | what is in it                                                               |
//! |--------------|-----------------------------------------------------------------------------|
//! | `page`       | page numbers and headers, and where pages lie on the stripes                |
//! | `sync`       | locks that may be held while a device works, the writers' turn              |
//! | `format`     | the bytes of everything on disk: page bodies, differences, catalog; no I/O  |
//! | `memory`     | the memory budget of the process, and dictionaries that are shared          |
//! | `pool`       | pages in fixed frames, found without hashing                                |
//! | `settings`   | settings, and how files are opened                                          |
//! | `superblock` | which state of the database is the current one                              |
//! | `files`      | the stripes, the lock, the reserve                                          |
//! | `space`      | which extent belongs to which tree; the meta run                            |
//! | `journal`    | what makes a commit durable before its pages are on their stripes           |
//! | `history`    | states, snapshots, page versions: what readers may still see                |
//! | `read`       | from a page number to a pinned page; read-ahead                             |
//! | `commit`     | what writers, readers and the checkpointer share                            |
//! | `recovery`   | what the journal says beyond the super-block                                |
//! | `store`      | opening, background work, closing                                           |
//! | `access`     | what trees read and write through: reader, transaction, bulk build          |
//! | `tree`       | tuples and strings                                                          |
//! | `whole`      | a database as a whole: copy, check, eviction from the page cache            |
//! | `publish`    | databases in object stores: published by one writer, opened by many readers |
//! | `report`     | all meters at one moment, and how they are shown                            |
//!
//! A folder holds what changes together and hides its inside: the format of a page can be read and
//! fuzzed without a device, the pool knows neither journal nor versions, and nothing below `access`
//! knows a tree's shape but by the bytes in `format`.
//!
//! The way of a page: a tree asks its [`Reader`] (or wishes for many pages at once), the pool
//! has it or not, the stripes' queues bring it, it is verified and stays in a frame until it is
//! evicted. The way of a new page: a tree's builder appends it to a [`TreeWriter`], the build
//! writes whole extents, [`Build::commit`] switches the super-block.
//!
//! Nothing here knows RDF, SQL or terms; nothing above here names a frame or a device.

mod access;
mod commit;
mod error;
mod files;
mod format;
#[doc(hidden)]
pub mod fuzz;
mod history;
pub mod journal;
#[doc(hidden)]
pub mod measure;
mod memory;
pub mod page;
mod pool;
mod publish;
mod read;
mod recovery;
mod report;
mod settings;
pub mod space;
mod store;
pub mod superblock;
mod sync;
#[cfg(test)]
mod tests;
mod tree;
mod whole;

pub use access::build::{Build, BuildPlace, TreeWriter};
pub use access::reader::{Reader, WishKind};
pub use access::temp_space::{TempBytes, TempSpace};
pub use access::transaction::{Committed, Pending, Transaction};
pub use error::{Lost, Result, StoreError};
pub use files::known::{LearnedBefore, learned_path, profile_path};
pub use format::catalog;
pub use format::key::MAX_ARITY;
pub use format::lineage::StateName;
pub use format::placement::Placement;
pub use format::string::matcher::StringBatch;
pub use format::written_by::WrittenBy;
pub use history::snapshot::Snapshot;
pub use journal::meters::JournalStats;
pub use memory::budget::{Charge, MemoryBudget, Reservation};
pub use memory::machine::machine_memory;
pub use page::geometry::Geometry;
pub use page::{BODY_BYTES, Damage, HEADER_BYTES, PAGE_BYTES, PageBuf, PageId, PageKind, TreeId, header};
pub use pool::rule::Rule;
pub use pool::shared::{FrameStats, SharedFrames};
pub use pool::{LEAST_FRAMES, PageRef};
pub use publish::reader::Published;
pub use publish::writer::{PublishProgress, Publisher};
pub use read::account::Account;
pub use read::activity::{Activity, Short};
pub use read::priority::Priority;
pub use read::scan_ahead::{ScanAhead, Waited};
pub use read::system_statistics::{PageTimes, ReadTime, SystemStatistics, TimeSource};
pub use read::tree_meter::{AheadStats, JournaledPages, TreeStats};
pub use read::wait_log::WaitLog;
pub use read::waits::WaitStats;
pub use recovery::RecoveryTrace;
pub use report::interval::since;
pub use report::json::as_json;
pub use report::prometheus::as_prometheus;
pub use report::reset::{MeterScope, NoSuchMeter};
pub use report::sample::{Sample, SampleKind, SampleValue, Samples};
pub use report::table::{TREE_COLUMNS, as_text, sort_trees};
pub use report::{AccountStats, DeviceStats, PoolStats, Report};
#[cfg(feature = "plant")]
pub use settings::config::Plant;
pub use settings::config::{
    Background, BlockDevices, Checkpoints, DeviceWrap, DiskHints, JournalConfig, Mode, Salvage, Seams,
    StoreConfig,
};
pub use settings::first_uses::{FirstUse, FirstUses};
pub use settings::opener::FileOpener;
pub use settings::read_ahead::ReadAhead;
pub use snowmelt_io::{Clock, EventCount, ExtentCache, Folder, Objects, notice};
pub use store::background::IDLE_NS;
pub use store::making::{LOAD_DIR, is_vacant};
pub use store::open::NewStore;
pub use store::place::{remove_database, remove_dropped, rename_database, stripe_elsewhere};
pub use store::{DEFAULT_STRIPE, Store};
pub use sync::waits::{MeteredWait, ShownWait, UpperWaits, WaitFor, WaitSign, WaitTally, WaitTimes, Waiter};
pub use tree::announce::{AnyTree, Levels, announce};
pub use tree::consolidate::{Consolidated, Consolidation, MovableTree};
pub use tree::rows::{Columns, Keys, Matches, MergeKeys, ScanBounds};
pub use tree::string::StringTree;
pub use tree::string::build::StringTreeBuilder;
pub use tree::tuple::TupleTree;
pub use tree::tuple::build::TupleTreeBuilder;
pub use tree::tuple::changes::{Applied, Changes};
pub use tree::tuple::lookup::{LookupWay, TupleLookup};
pub use tree::tuple::merge::MergeWay;
pub use tree::tuple::pieces::{ScanPieces, ScanPlace};
pub use tree::tuple::relocate::{Relocated, Relocation};
pub use tree::tuple::salvage::{LostRows, OnRows};
pub use tree::tuple::scan::TupleScan;
pub use whole::backup::CopyProgress;
pub use whole::check::CheckProgress;
pub use whole::cold;
pub use whole::manifest::{BackupPart, PartKind};
pub use whole::page_use::PageUse;
pub use whole::set::{BackupSet, RestoreAt, SetFault};
