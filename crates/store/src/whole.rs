//! A database as a whole: copied, in sets of copies, checked, its pages counted, thrown out of
//! the page cache.

pub(crate) mod backup;
pub(crate) mod changes;
pub(crate) mod check;
pub mod cold;
pub(crate) mod manifest;
pub(crate) mod old_set;
pub(crate) mod page_use;
pub(crate) mod restore;
pub mod set;
