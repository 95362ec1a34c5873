//! Reads the source tree and finds what breaks its habits.
//!
//! | module      | finds                                                              |
//! |-------------|--------------------------------------------------------------------|
//! | `circles`   | modules that need each other, at each level of folders             |
//! | `folders`   | folders in circles, arrows against the table of folders in `lib.rs`    |
//! | `functions` | functions that are too long to be seen at once                     |
//! | `links`     | crates that a program links                                        |
//! | `messages`  | messages of libraries that name a switch of a program              |
//! | `names`     | types of one crate with the same bare name                         |
//! | `prose`     | comments without a subject, lines that are too wide, missing heads |
//! | `ratchet`   | differences to the list of what is tolerated, which only shrinks   |
//! | `unsafe_code` | unsafe code outside of its places                                |
//!
//! The rules themselves are in `tests/tidy.rs`; `ratchet.tsv` is the list.

#![forbid(unsafe_code)]

pub mod arrows;
pub mod circles;
pub mod folders;
pub mod functions;
pub mod lexer;
pub mod links;
pub mod messages;
pub mod names;
pub mod prose;
pub mod ratchet;
pub mod tree;
pub mod unsafe_code;
