//! Page versions that only the journal has: an image and the changes after it, read back.

use crate::error::Result;
use crate::history::waiting::{How, WaitingPage};
use crate::journal::change::{self, Change};
use crate::journal::{Journal, Loc};
use crate::page::{PageBuf, PageId};

/// The page that these changes describe: an image and the diffs after it.
pub(crate) fn rebuild(journal: &Journal, page: PageId, txn: u64, changes: &[Loc]) -> Result<PageBuf> {
    let mut waiting = WaitingPage::default();
    for loc in changes {
        let payload = journal.payload(*loc)?;
        let mut rest = payload.get(loc.at as usize..).unwrap_or_default();
        let damaged = |why| Err(journal.damaged(loc.file, loc.offset, why));
        match change::next(&mut rest) {
            Ok(Change::Image { page: p, bytes }) if p == page => waiting.set_image(txn, *loc, bytes),
            Ok(Change::Diff { page: p, diff }) if p == page => waiting.add(txn, *loc, How::Bytes, diff),
            Ok(Change::Rows { page: p, diff }) if p == page => waiting.add(txn, *loc, How::Rows, diff),
            Ok(_) => return damaged("the record there is about something else"),
            Err(bad) => return damaged(bad.0),
        }
    }
    waiting.into_page(page).map_err(|(loc, why)| journal.damaged(loc.file, loc.offset, why))
}
