//! Dictionaries that the handles of a store's trees share for as long as one of them lives.
//!
//! Their bytes are reserved from the memory budget. A tree cannot be read without its dictionary,
//! so one for which there is no room is kept all the same.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::format::string::codec::Codec;
use crate::memory::budget::{MemoryBudget, Reservation};
use crate::page::TreeId;

/// A dictionary in use.
struct KnownCodec {
    checksum: u64,
    codec: Weak<Codec>,
    reserved: Option<Reservation>,
}

/// Dictionaries in use by tree.
#[derive(Default)]
pub(crate) struct CodecCache(Mutex<HashMap<TreeId, KnownCodec>>);

impl CodecCache {
    /// The dictionary of a tree, if a handle has it.
    pub(crate) fn get(&self, tree: TreeId, checksum: u64) -> Option<Arc<Codec>> {
        let codecs = self.0.lock();
        codecs.get(&tree).filter(|known| known.checksum == checksum).and_then(|known| known.codec.upgrade())
    }

    /// Shares a dictionary; returns the one to use, which another thread may have put before.
    pub(crate) fn put(
        &self,
        budget: &MemoryBudget,
        tree: TreeId,
        checksum: u64,
        codec: Arc<Codec>,
    ) -> Arc<Codec> {
        let mut codecs = self.0.lock();
        codecs.retain(|_, known| known.codec.strong_count() > 0);
        let known = codecs.get(&tree).filter(|known| known.checksum == checksum);
        if let Some(known) = known.and_then(|known| known.codec.upgrade()) {
            return known;
        }
        let reserved = budget.reserve("a dictionary of strings", codec.memory_bytes() as u64).ok();
        codecs.insert(tree, KnownCodec { checksum, codec: Arc::downgrade(&codec), reserved });
        codec
    }

    /// Reserves what a tree's dictionary has grown by: it has encoded strings.
    pub(crate) fn count(&self, tree: TreeId, checksum: Option<u64>, codec: &Codec) {
        let mut codecs = self.0.lock();
        let known = codecs.get_mut(&tree).filter(|known| Some(known.checksum) == checksum);
        if let Some(reserved) = known.and_then(|known| known.reserved.as_mut()) {
            let more = (codec.memory_bytes() as u64).saturating_sub(reserved.bytes());
            let _ = reserved.grow("a dictionary of strings", more); // see the head of the file
        }
    }

    /// Bytes of memory of all dictionaries.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let codecs: Vec<Arc<Codec>> =
            self.0.lock().values().filter_map(|known| known.codec.upgrade()).collect();
        codecs.iter().map(|codec| codec.memory_bytes() as u64).sum()
    }
}
