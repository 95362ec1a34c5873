//! Databases in object stores: published by one writer, opened by any number of readers.
//!
//! A published database is the files of a database, each as objects:
//!
//! | object | has |
//! |---|---|
//! | `extents/LINEAGE-HASH` | the pages in use of an extent, one after the other |
//! | `openers/LINEAGE-TXN-HASH` | the super-block, where each extent is, the pages that every start needs ([`opener`]) |
//! | `journal/LINEAGE-FILE-FROM-TO` | bytes of a journal file |
//! | `manifest` | which opener and which bytes of the journal are the newest ([`manifest`]) |
//!
//! All but the manifest never change. It is replaced on the condition that it still is the one that
//! was read: of two writers one is refused.
//!
//! *Publishing* ([`writer`]): a checkpoint is held, so that the stripes have just its state
//! ([`base`]). Extents that changed since the last publication become objects, as far as no object
//! has the same bytes. Then the opener, the journal since the checkpoint, and the manifest.
//!
//! *Opening* ([`reader`]): the manifest, then the opener and the journal together: two rounds,
//! whatever the size. They make a folder of virtual files, which is opened as any other folder
//! after a crash. Its stripes ([`stripe`]) read pages from the opener and from extent objects.

mod asks;
mod base;
mod manifest;
mod opener;
pub(crate) mod reader;
mod stripe;
mod uploads;
pub(crate) mod writer;
