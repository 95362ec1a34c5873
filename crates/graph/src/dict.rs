//! The dictionary.

/// Catalog record of the annotation and datatype tables.
pub const RECORD_CODES: &str = "codes";
