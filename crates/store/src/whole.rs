//! A database as a whole: copied, checked, its pages counted, thrown out of the page cache.

pub(crate) mod backup;
pub(crate) mod check;
pub mod cold;
pub(crate) mod page_use;
