//! Generations of the trees: the one that sessions see, and the next one while `compact` writes
//! it.
//!
//! The trees and records of the next generation have the same names with [`NEXT`] behind them.
//! One commit gives them the names of the old ones and drops these. What a crash or an
//! interruption leaves under such names is dropped.

use std::sync::Arc;

use snowmelt_database::layer_of;
use snowmelt_store::{Mode, Store};

use crate::error::Result;

/// Follows the names of the trees and records of the next generation.
pub(crate) const NEXT: &str = ".next";

/// Drops what an unfinished compaction left.
///
/// # Errors
/// Those of the store; then it stays until the database is opened again.
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
