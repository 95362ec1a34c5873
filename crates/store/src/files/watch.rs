//! Looks whether the files of an open database still have their names.
//!
//! A file that was deleted or replaced stays open, and everything seems to go well: reads, writes,
//! even syncs. What is written to it is lost when the process ends. So the super-block and the
//! stripes are looked at here, and the files of the journal by the journal: each must be the file
//! that has its name in its folder.
//!
//! A folder that was moved as a whole is no loss. Its files are found from its descriptor.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::error::Result;
use crate::settings::opener::{Directory, Placed};
use crate::superblock::{FILE_NAME, UNFINISHED_NAME};

/// See the head of the file.
pub(crate) struct Watch {
    dir: Arc<Directory>,
    super_block: OnceLock<Placed>,
    /// The super-block of a database that is being made, until it has its name.
    unfinished: Mutex<Option<Placed>>,
    stripes: Vec<Placed>,
    /// True once the move of the folder was reported.
    said: AtomicBool,
}

impl Watch {
    pub fn new(dir: Arc<Directory>, super_block: Option<Placed>, stripes: Vec<Placed>) -> Watch {
        let (unfinished, named) = match super_block {
            Some(placed) if placed.name() == Path::new(UNFINISHED_NAME) => (Some(placed), None),
            placed => (None, placed),
        };
        let super_block = named.map_or_else(OnceLock::new, OnceLock::from);
        Watch { dir, super_block, unfinished: Mutex::new(unfinished), stripes, said: AtomicBool::new(false) }
    }

    /// From now on the super-block has its name.
    pub fn super_block_is_named(&self) {
        if let Some(placed) = self.unfinished.lock().take() {
            let is_first = self.super_block.set(placed.renamed(Path::new(FILE_NAME))).is_ok();
            debug_assert!(is_first, "a super-block gets its name once");
        }
    }

    /// The database's directory.
    pub fn dir(&self) -> &Arc<Directory> {
        &self.dir
    }

    /// True when there is something to look at: files of the file system.
    pub fn is_needed(&self) -> bool {
        self.dir.is_real()
    }

    /// Looks at the super-block, without which nothing is a database.
    pub fn look_at_super_block(&self) -> Result<()> {
        self.super_block.get().map_or(Ok(()), Placed::look)
    }

    /// Looks at the super-block and the stripes.
    pub fn look(&self) -> Result<()> {
        self.look_at_super_block()?;
        self.stripes.iter().try_for_each(Placed::look)?;
        if !self.dir.is_at_its_path() && !self.said.swap(true, Ordering::Relaxed) {
            snowmelt_io::notice(&format!(
                "{}: the folder is no longer there; going on in it, where it was moved to",
                self.dir.path().display()
            ));
        }
        Ok(())
    }
}
