//! Durable sorted trees: space, pool, pages, read-ahead, snapshots.
//!
//! The way of a page: a tree asks its [`Reader`] (or wishes for many pages at once), the pool has it or not, the stripes' queues bring it,
//! it is verified and stays in a frame until it is evicted. The way of a new page: a tree's builder appends it to a
//! [`TreeWriter`], the build writes whole extents, [`Build::commit`] switches the super-block.
//!
//! Nothing here knows RDF, SQL or terms; nothing above here names a frame or a device.

mod announce;
mod background;
mod build;
pub mod catalog;
mod check;
pub mod cold;
mod config;
mod core;
mod error;
mod fetch;
mod lock;
mod memory;
mod meters;
pub mod page;
mod pool;
mod readahead;
mod reader;
mod snapshot;
pub mod space;
mod store;
mod stripes;
pub mod superblock;
mod versions;
mod warm;

pub use announce::{AnyTree, Levels, announce};
pub use build::{Build, TreeWriter};
pub use check::CheckProgress;
pub use config::{Background, DeviceWrap, LEAST_FRAMES, StoreConfig, machine_memory};
pub use error::{Result, StoreError};
pub use memory::{MemoryBudget, Reservation};
pub use meters::{Activity, AheadStats, Short, TreeStats};
pub use page::{BODY_BYTES, Damage, HEADER_BYTES, PAGE_BYTES, PageBuf, PageId, PageKind, TreeId, header};
pub use pool::PageRef;
pub use readahead::{ReadAhead, Rule, ScanAhead, Waited};
pub use reader::{Reader, WishKind};
pub use snapshot::Snapshot;
pub use space::Geometry;
pub use store::{DEFAULT_STRIPE, Store};
pub use stripes::profile_path;

mod encoding;
mod encoding_bits;
mod encoding_column;
mod encoding_dict;
mod encoding_table;
mod long_value;
mod record;
mod record_build;
mod record_key;
mod record_page;
mod string;
mod string_build;
mod string_leaf;
mod string_symbols;
mod tree_read;
mod tree_spare;
mod tuple;
mod tuple_build;
mod tuple_descent;
mod tuple_inner;
mod tuple_leaf;
mod tuple_leaf_build;
mod tuple_lookup;
mod tuple_scan;

pub use record::{RecordScan, RecordTree};
pub use record_build::RecordTreeBuilder;
pub use record_key::{BadKey, KeyReader, KeyWriter};
pub use string::StringTree;
pub use string_build::StringTreeBuilder;
pub use tuple::{Columns, Keys, Matches, ScanBounds, TupleTree};
pub use tuple_build::TupleTreeBuilder;
pub use tuple_leaf_build::MAX_ARITY;
pub use tuple_lookup::TupleLookup;
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
mod tree_tests;
#[cfg(test)]
mod tuple_tests;
