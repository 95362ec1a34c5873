//! Memory: the budget of the process, what the machine gives it, and dictionaries that are shared.

pub(crate) mod budget;
pub(crate) mod codec_cache;
pub(crate) mod machine;
