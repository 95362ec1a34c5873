//! Memory: the budget of the process, and what the machine gives it.

pub(crate) mod budget;
pub(crate) mod machine;
