//! Updates that are read in pieces: as long as the disk has room for what they change.

use std::io::Read;

use super::{Begun, UpdateOptions, Updated};
use crate::bounds::Limits;
use crate::engine::Engine;
use crate::error::QueryError;
use crate::text::pieces::Pieces;

impl Engine {
    /// Runs an update of any length, of which about a MiB is in memory at a time; when it
    /// returns, what it did is durable. The data of INSERT DATA and DELETE DATA is cut between
    /// its triples; any other operation may have `longest` bytes.
    ///
    /// A text of less than a MiB is parsed whole before anything begins. A longer one holds the
    /// place of the writer while it is read: give it a file rather than a slow client.
    ///
    /// # Errors
    /// As [`Self::update`], with places in the whole text; a source that cannot be read or is
    /// not UTF-8; an operation that is too long; parameters, which it cannot have. Nothing has
    /// changed then.
    pub fn update_from(
        &self,
        source: impl Read,
        longest: usize,
        options: &UpdateOptions,
    ) -> Result<Updated, QueryError> {
        let limits = Limits::from_now(options.timeout, options.cancel.clone());
        let mut pieces = Pieces::of(source, longest);
        let first = pieces.next()?;
        if pieces.is_over() {
            return self.update(first.as_ref().map_or("", |piece| &piece.text), options);
        }
        if let Some((name, _)) = options.bindings.first() {
            let why = "an update that is read in pieces has none";
            return Err(QueryError::Parameter { name: name.clone(), why });
        }
        let mut txn = self.begin(options, &limits)?;
        let mut memory = self.database().memory().charge("an update");
        let (mut changed, mut begun, mut next) = (Default::default(), Begun::default(), first);
        while let Some(piece) = next {
            let held = pieces.held_bytes() + piece.text.len() + begun.blanks.bytes();
            memory.set(held as u64).map_err(snowmelt_graph::GraphError::from)?;
            begun.goes_on = piece.goes_on;
            let done = self.piece_in(&mut txn, &piece.text, options, &limits, &mut begun);
            changed += done.map_err(|error| piece.placed(error))?;
            next = pieces.next()?;
        }
        Ok(Updated { txn: txn.commit_unless_unchanged(changed)?, changed })
    }
}
