//! The current state of the super-block, and the turn to write the next one.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use snowmelt_io::Clock;

use crate::error::Result;
use crate::superblock::{SuperBlock, SuperBlockFile};
use crate::sync::long_lock::LongLock;
use crate::sync::longest::Longest;

/// See the head of the file.
pub(crate) struct CurrentBlock {
    file: SuperBlockFile,
    /// The turn to write. Its holder may wait for the device, but for no other lock.
    turn: LongLock<()>,
    /// Not locked while it is written: commits look at it.
    block: Mutex<SuperBlock>,
}

impl CurrentBlock {
    /// The state `block`, which `file` has, or will have when it is first written.
    pub fn new(file: SuperBlockFile, block: SuperBlock, clock: &Clock) -> Arc<CurrentBlock> {
        Arc::new(CurrentBlock {
            file,
            turn: LongLock::new("the turn to write the super-block", (), clock),
            block: Mutex::new(block),
        })
    }

    /// The newest durable state.
    pub fn lock(&self) -> MutexGuard<'_, SuperBlock> {
        self.block.lock()
    }

    /// Writes the state as it is: a new database has its first one then.
    pub fn write(&self) -> Result<()> {
        let _turn = self.turn.lock();
        let block = self.block.lock().clone();
        self.file.write(&block)
    }

    /// Makes sure that the next write needs no room. When it fails nothing is in doubt.
    pub fn make_room(&self) -> Result<()> {
        let _turn = self.turn.lock();
        self.file.make_room()
    }

    /// Makes a new state durable. `held` learns how long the block is locked.
    pub fn switch(
        &self,
        held: &Longest,
        clock: &Clock,
        change: impl FnOnce(&SuperBlock) -> SuperBlock,
    ) -> Result<()> {
        let _turn = self.turn.lock();
        let old = self.block.lock().clone();
        let new = SuperBlock { sequence: old.sequence + 1, ..change(&old) };
        assert_eq!(new.identity, old.identity, "a database keeps its identity");
        assert!(new.txn >= old.txn, "the super-block goes forward");
        assert!(new.synced >= old.synced, "what was said to be durable stays said");
        assert!(new.slots >= old.slots, "journal files are not unmade");
        assert_eq!(new.extent_pages, old.extent_pages, "extents keep their size");
        assert_eq!(new.stripes.len(), old.stripes.len(), "pages keep their stripes");
        assert!(new.journal >= old.journal, "a journal file that was given up is not needed again");
        assert!(new.before.0 >= old.before.0, "the journal begins no earlier than it did");
        debug_assert!(
            new.encode().is_ok_and(|slot| SuperBlock::decode(&slot).as_ref() == Ok(&new)),
            "a super-block is read as it was written"
        );
        self.file.write(&new)?;
        let mut block = self.block.lock();
        let _held = held.hold(clock);
        *block = new;
        Ok(())
    }
}
