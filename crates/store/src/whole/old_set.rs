//! Sets of backups as releases before the manifest made them: read, and never added to.
//!
//! Each part names the one it builds on by the checksum of its head, and that alone gives their
//! order. Nothing says what the newest part is: one that is missing leaves the state before it.

use std::path::Path;

use crate::error::{Result, StoreError};
use crate::whole::changes::{CopyHead, unusable};
use crate::whole::manifest::{BackupPart, PartKind, is_part_name};

/// The end of the name of the file with a whole copy's head.
const HEAD: &str = ".head";

/// True when these are the names of such a set.
pub(crate) fn is_one(names: &[String]) -> bool {
    names.iter().any(|name| name.strip_suffix(HEAD).is_some_and(is_part_name))
}

/// Its parts, the oldest first.
pub(crate) fn parts(dir: &Path, names: &[String]) -> Result<Vec<BackupPart>> {
    let mut found = Vec::new();
    for name in names.iter().filter(|name| is_part_name(name)) {
        let is_whole = name.ends_with("-whole");
        let head = dir.join(if is_whole { format!("{name}{HEAD}") } else { name.clone() });
        // A part gets its head when it is whole.
        if head.exists()
            && let Some(head) = CopyHead::read(&head)?
        {
            found.push((name.clone(), head));
        }
    }
    let mut parts = Vec::new();
    let mut base = None;
    while let Some(at) = found.iter().position(|(_, head)| head.base == base) {
        let (name, head) = found.swap_remove(at);
        base = Some(head.seal());
        let kind = if head.base.is_none() { PartKind::Whole } else { PartKind::Changes };
        let (txn, unix_s, pages) = (head.txn, head.unix_s, head.pages);
        parts.push(BackupPart { name, kind, txn, unix_s, pages });
    }
    match found.first() {
        None => Ok(parts),
        Some((name, _)) => Err(no_base(dir, name)),
    }
}

fn no_base(dir: &Path, name: &str) -> StoreError {
    unusable(&dir.join(name), "what it builds on is not in the set, or it is there twice")
}
