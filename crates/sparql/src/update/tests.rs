//! Parts of an update, for tests.

use snowmelt_graph::QuadBatch;
use spargebra::GraphUpdateOperation;

use super::data::fill;
use super::{UpdateOptions, parse_bound};
use crate::error::QueryError;

/// Parses an update, and puts its data into a batch.
pub(crate) fn staged_data(text: &str) -> Result<(), QueryError> {
    let options = UpdateOptions::default();
    let update = parse_bound(text, &options)?;
    for operation in &update.operations {
        if let GraphUpdateOperation::InsertData { data } = operation {
            fill(&mut QuadBatch::new(0), data, &options)?;
        }
    }
    Ok(())
}
