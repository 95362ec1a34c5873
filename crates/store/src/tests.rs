//! Whole trees against simple models, under default and hostile sizes.

mod damage;
mod format;
mod string;
pub(crate) mod string_codec;
pub(crate) mod trees;
mod tuple;
mod tuple_apply;
mod tuple_merge;
