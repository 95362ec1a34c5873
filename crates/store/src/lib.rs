//! Durable sorted trees: space, pool, pages, read-ahead, snapshots.
//!
//! The way of a page: a tree asks its [`Reader`] (or wishes for many pages at once), the pool
//! has it or not, the stripes' queues bring it, it is verified and stays in a frame until it is
//! evicted. The way of a new page: a tree's builder appends it to a [`TreeWriter`], the build
//! writes whole extents, [`Build::commit`] switches the super-block.
//!
//! Nothing here knows RDF, SQL or terms; nothing above here names a frame or a device.

mod announce;
mod background;
mod backup;
mod build;
pub mod catalog;
mod check;
mod checkpoint;
pub mod cold;
mod commit;
mod config;
mod core;
mod current;
mod cursor;
mod error;
mod extent;
mod fetch;
mod format_version;
#[doc(hidden)]
pub mod fuzz;
mod geometry;
pub mod journal;
mod journal_meters;
mod leaf_diff;
mod lock;
mod machine;
mod map_segment;
mod memory;
mod meta;
mod meta_pages;
mod meters;
mod opener;
pub mod page;
mod page_image;
mod page_use;
mod pool;
mod readahead;
mod reader;
mod rebuild;
mod recovery;
mod reserve;
mod rules;
mod snapshot;
pub mod space;
mod state;
mod step;
mod store;
mod stripes;
pub mod superblock;
mod superblock_file;
mod transaction;
mod transaction_pack;
mod transaction_pages;
mod transaction_space;
mod varint;
mod versions;
mod visible;
mod waiting;
mod warm;
mod warming;
mod writer;
mod written_by;

pub use announce::{AnyTree, Levels, announce};
pub use background::IDLE_NS;
pub use backup::CopyProgress;
pub use build::{Build, TreeWriter};
pub use check::CheckProgress;
pub use config::{
    Background, Checkpoints, DeviceWrap, JournalConfig, LEAST_FRAMES, Mode, Plant, Salvage, StoreConfig,
};
pub use error::{Result, StoreError};
pub use geometry::Geometry;
pub use journal_meters::JournalStats;
pub use machine::machine_memory;
pub use memory::{Charge, MemoryBudget, Reservation};
pub use meters::{Activity, AheadStats, JournaledPages, Short, TreeStats};
pub use opener::FileOpener;
pub use page::{BODY_BYTES, Damage, HEADER_BYTES, PAGE_BYTES, PageBuf, PageId, PageKind, TreeId, header};
pub use page_use::PageUse;
pub use pool::PageRef;
pub use readahead::{ScanAhead, Waited};
pub use reader::{Reader, WishKind};
pub use recovery::RecoveryTrace;
pub use rules::{ReadAhead, Rule};
pub use snapshot::Snapshot;
pub use store::{DEFAULT_STRIPE, Store, remove_unfinished};
pub use stripes::profile_path;
pub use transaction::{Committed, Pending, Transaction};
pub use written_by::WrittenBy;

mod encoding;
mod encoding_bits;
mod encoding_column;
mod encoding_dict;
mod encoding_table;
mod long_lock;
mod long_value;
mod longest;
mod record;
mod record_apply;
mod record_build;
mod record_check;
mod record_key;
mod record_page;
mod string;
mod string_append;
mod string_build;
mod string_check;
mod string_leaf;
mod string_leaf_diff;
mod string_symbols;
mod tree_change;
mod tree_levels;
mod tree_read;
mod tree_spare;
mod tuple;
mod tuple_apply;
mod tuple_build;
mod tuple_changes;
mod tuple_check;
mod tuple_descent;
mod tuple_distinct;
mod tuple_inner;
mod tuple_leaf;
mod tuple_leaf_build;
mod tuple_leaf_change;
mod tuple_leaf_diff;
mod tuple_lookup;
mod tuple_relocate;
mod tuple_rows;
mod tuple_scan;
mod tuple_tail;

pub use record::{RecordScan, RecordTree};
pub use record_apply::{RecordChange, RecordsApplied};
pub use record_build::RecordTreeBuilder;
pub use record_key::{BadKey, KeyReader, KeyWriter};
pub use string::StringTree;
pub use string_build::StringTreeBuilder;
pub use tuple::TupleTree;
pub use tuple_build::TupleTreeBuilder;
pub use tuple_changes::{Applied, Changes};
pub use tuple_leaf_build::MAX_ARITY;
pub use tuple_lookup::{LookupWay, TupleLookup};
pub use tuple_relocate::{Relocated, Relocation};
pub use tuple_rows::{Columns, Keys, Matches, ScanBounds};
pub use tuple_scan::TupleScan;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod string_tests;
#[cfg(test)]
mod superblock_tests;
#[cfg(test)]
mod tree_tests;
#[cfg(test)]
mod tuple_apply_tests;
#[cfg(test)]
mod tuple_tests;
#[cfg(test)]
mod visible_tests;
