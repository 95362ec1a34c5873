//! Changes that transactions commit while a new generation of the trees is written beside them,
//! in the order of their commits.
//!
//! A transaction keeps a log of its own and joins it to the database's when its commit is
//! appended, so an abort leaves nothing. Changes beyond a limit go to temporary space.
//!
//! Invariant: the last change of a quad in the log says whether the quad exists.

use std::collections::VecDeque;
use std::sync::Arc;

use snowmelt_store::{Store, TempSpace};

use crate::error::{GraphError, Result};

/// Most changes taken at once.
pub(crate) const PART: usize = 1 << 13;
/// Changes kept in memory: 4 MiB.
const IN_MEMORY: usize = 1 << 17;
/// Bytes of a change in temporary space.
const BYTES: usize = 33;

/// A change of the indexes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// A quad (subject, predicate, object, graph) was inserted (`true`) or deleted.
    Quad([u64; 4], bool),
    /// All quads were deleted.
    Cleared,
}

/// The log; see the head of the file.
#[derive(Default)]
pub(crate) struct ChangeLog {
    parts: VecDeque<LogPart>,
    len: usize,
    in_memory: usize,
    space: Option<Arc<TempSpace>>,
    lost: bool,
}

enum LogPart {
    Memory(VecDeque<Change>),
    Aside { space: Arc<TempSpace>, at: u64, changes: usize },
}

impl LogPart {
    fn changes(&self) -> usize {
        match self {
            LogPart::Memory(changes) => changes.len(),
            LogPart::Aside { changes, .. } => *changes,
        }
    }
}

impl ChangeLog {
    /// Number of changes in the log.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends a change.
    pub(crate) fn push(&mut self, change: Change) {
        if !matches!(self.parts.back(), Some(LogPart::Memory(_))) {
            self.parts.push_back(LogPart::Memory(VecDeque::new()));
        }
        let Some(LogPart::Memory(changes)) = self.parts.back_mut() else { unreachable!("just made") };
        changes.push_back(change);
        self.in_memory += 1;
        self.len += 1;
    }

    /// Takes over the changes of a later log.
    pub(crate) fn join(&mut self, mut other: ChangeLog) {
        self.parts.append(&mut other.parts);
        self.len += other.len;
        self.in_memory += other.in_memory;
        self.lost |= other.lost;
    }

    /// Moves changes beyond the limit to temporary space. If that fails they are lost: a commit
    /// must not fail because of a compaction.
    pub(crate) fn shrink(&mut self, store: &Arc<Store>) {
        if self.in_memory > IN_MEMORY && !self.lost && self.put_aside(store).is_err() {
            *self = ChangeLog { lost: true, ..ChangeLog::default() };
        }
    }

    fn put_aside(&mut self, store: &Arc<Store>) -> Result<()> {
        let space = match &self.space {
            Some(space) => space.clone(),
            None => self.space.insert(Arc::new(store.temp_space()?)).clone(),
        };
        let mut bytes = Vec::with_capacity(PART * BYTES);
        let mut aside = VecDeque::new();
        let flush = |bytes: &mut Vec<u8>, aside: &mut VecDeque<LogPart>| -> Result<()> {
            if !bytes.is_empty() {
                let at = space.append(&[bytes])?;
                aside.push_back(LogPart::Aside { space: space.clone(), at, changes: bytes.len() / BYTES });
                bytes.clear();
            }
            Ok(())
        };
        for part in self.parts.drain(..) {
            match part {
                LogPart::Memory(changes) => {
                    for change in changes {
                        encode(change, &mut bytes);
                        if bytes.len() == PART * BYTES {
                            flush(&mut bytes, &mut aside)?;
                        }
                    }
                }
                part => {
                    flush(&mut bytes, &mut aside)?;
                    aside.push_back(part);
                }
            }
        }
        flush(&mut bytes, &mut aside)?;
        self.parts = aside;
        self.in_memory = 0;
        debug_assert_eq!(self.parts.iter().map(LogPart::changes).sum::<usize>(), self.len, "none is lost");
        Ok(())
    }

    /// Takes the first changes, at most [`PART`]; none at the end.
    ///
    /// # Errors
    /// Fails if changes were lost, or if temporary space cannot be read.
    pub(crate) fn take(&mut self) -> Result<Vec<Change>> {
        if self.lost {
            return Err(GraphError::ChangesLost);
        }
        let mut taken = Vec::new();
        while let Some(part) = self.parts.front_mut().filter(|_| taken.len() < PART) {
            match part {
                LogPart::Memory(changes) => {
                    let many = changes.len().min(PART - taken.len());
                    taken.extend(changes.drain(..many));
                    self.in_memory -= many;
                    if !changes.is_empty() {
                        break;
                    }
                }
                LogPart::Aside { changes, .. } if taken.len() + *changes > PART => break,
                LogPart::Aside { space, at, changes } => {
                    let bytes = space.read(*at, *changes * BYTES)?;
                    taken.extend(bytes.chunks_exact(BYTES).map(decode));
                }
            }
            self.parts.pop_front();
        }
        assert!(taken.len() <= self.len, "changes are handed out once");
        self.len -= taken.len();
        Ok(taken)
    }
}

fn encode(change: Change, out: &mut Vec<u8>) {
    let (quad, tag) = match change {
        Change::Quad(quad, came) => (quad, u8::from(came)),
        Change::Cleared => ([0; 4], 2),
    };
    out.push(tag);
    quad.iter().for_each(|id| out.extend(id.to_le_bytes()));
}

fn decode(bytes: &[u8]) -> Change {
    let id = |i: usize| u64::from_le_bytes(bytes[1 + 8 * i..][..8].try_into().expect("8 bytes"));
    match bytes[0] {
        2 => Change::Cleared,
        came => {
            assert!(came < 2, "temporary space gives back what it was given");
            Change::Quad(std::array::from_fn(id), came == 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes come back in order, from memory and from temporary space.
    #[test]
    fn changes_come_back_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path(), &[], Default::default()).unwrap();
        let change = |n: u64| match n % 1000 {
            999 => Change::Cleared,
            _ => Change::Quad([n, n << 32, u64::MAX - n, 7], n.is_multiple_of(3)),
        };
        let mut all = ChangeLog::default();
        let mut noted = 0;
        for many in [10, IN_MEMORY as u64 + 5, 3, 2 * IN_MEMORY as u64, 1, 9000] {
            let mut log = ChangeLog::default();
            for _ in 0..many {
                log.push(change(noted));
                noted += 1;
                log.shrink(&store);
            }
            all.join(log);
            all.shrink(&store);
        }
        assert!(all.in_memory <= IN_MEMORY && all.len() as u64 == noted);
        let mut seen = 0;
        loop {
            let part = all.take().unwrap();
            if part.is_empty() {
                break;
            }
            assert!(part.len() <= PART);
            part.iter().for_each(|got| {
                assert_eq!(*got, change(seen));
                seen += 1;
            });
        }
        assert_eq!((seen, all.len()), (noted, 0));
    }
}
