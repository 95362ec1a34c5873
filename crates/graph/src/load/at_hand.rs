//! Inputs that are read to their end before a load takes the writer's turn. A reader may be as slow
//! as a network, and all other writers would wait for it. Its bytes wait in temporary space.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use snowmelt_store::TempSpace;

use crate::database::GraphDatabase;
use crate::input::cancelled;
use crate::input::error::LoadError;
use crate::input::source::Source;

/// Bytes written and read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// The bytes of an input that was read to its end.
struct AtHand {
    space: TempSpace,
    /// place and length of the remaining pieces
    pieces: VecDeque<(u64, usize)>,
    piece: io::Cursor<Vec<u8>>,
}

impl Read for AtHand {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.piece.read(buf)?;
            let Some((at, len)) = self.pieces.front().copied().filter(|_| n == 0 && !buf.is_empty()) else {
                return Ok(n);
            };
            self.piece = io::Cursor::new(self.space.read(at, len).map_err(io::Error::other)?.to_vec());
            self.pieces.pop_front();
        }
    }
}

/// Reads the inputs that are readers to their end, and returns all sources.
pub(super) fn all(
    database: &Arc<GraphDatabase>,
    sources: Vec<Source>,
    cancel: &AtomicBool,
) -> Result<Vec<Source>, LoadError> {
    let at_hand = |source| match source {
        Source::Reader { name, read } => one(database, name, read, cancel),
        other => Ok(other),
    };
    sources.into_iter().map(at_hand).collect()
}

fn one(
    database: &Arc<GraphDatabase>,
    name: String,
    mut read: Box<dyn Read + Send>,
    cancel: &AtomicBool,
) -> Result<Source, LoadError> {
    let (space, mut pieces) = (database.database().temp_space()?, VecDeque::new());
    let (mut buffer, mut filled) = (vec![0; PIECE_BYTES], 0);
    loop {
        cancelled(cancel)?;
        let got = match read.read(&mut buffer[filled..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            got => got.map_err(|source| LoadError::Input { file: name.clone(), source })?,
        };
        filled += got;
        if filled == buffer.len() || got == 0 && filled > 0 {
            pieces.push_back((space.append(&[&buffer[..filled]])?, filled));
            filled = 0;
        }
        if got == 0 {
            let read = Box::new(AtHand { space, pieces, piece: io::Cursor::default() });
            return Ok(Source::Reader { name, read });
        }
    }
}
