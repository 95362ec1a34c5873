//! Generations of the trees: the one that sessions see, and the next one while `compact` writes
//! it.
//!
//! The trees and records of the next generation have the same names with the suffix [`NEXT`]. One
//! commit drops the old ones and gives their names to the new ones. After a crash or an
//! interruption, leftovers under such names are dropped.

use std::sync::Arc;

use snowmelt_database::layer_of;
use snowmelt_store::{Mode, Store};

use crate::error::Result;

/// Suffix of the names of the trees and records of the next generation.
pub(crate) const NEXT: &str = ".next";

/// Drops the leftovers of an unfinished compaction.
///
/// # Errors
/// Fails with errors of the store; then the leftovers stay until the database is opened again.
pub(crate) fn drop_unfinished(store: &Arc<Store>) -> Result<()> {
    if store.config().mode != Mode::ReadWrite {
        return Ok(());
    }
    let is_left = |name: &&String| name.ends_with(NEXT) && layer_of(name).is_none();
    let catalog = store.catalog_all();
    if !catalog.trees.values().chain(catalog.records.keys()).any(|name| is_left(&name)) {
        return Ok(());
    }
    let mut txn = store.begin()?;
    txn.use_reserve();
    let catalog = txn.snapshot().catalog().clone();
    catalog.trees.values().filter(is_left).for_each(|name| txn.drop_tree(name));
    catalog.records.keys().filter(is_left).for_each(|name| txn.drop_record(name));
    txn.commit()?;
    Ok(())
}
