//! Names of trees and records in the catalog, which layers share.
//!
//! Those of a layer begin with its name and a slash: `tables/orders`. Names without a slash are
//! the graph's, which was there before there were other layers, or the store's own records.

/// The layer whose tree or record it is; none: the graph's or the store's.
pub fn layer_of(name: &str) -> Option<&str> {
    name.split_once('/').map(|(layer, _)| layer)
}
