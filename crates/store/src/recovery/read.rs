//! From the journal's records to the shares that take them in.

use std::panic::resume_unwind;
use std::sync::{Arc, mpsc};
use std::thread::ScopedJoinHandle;

use super::damaged;
use super::part::Payload;
use super::replay::Replay;
use crate::error::{Result, StoreError};
use crate::journal::file::JournalFile;
use crate::journal::record::{self, Head};
use crate::journal::scan::{self, Found, Needed};
use crate::settings::config::StoreConfig;
use crate::settings::opener::Directory;

/// Reads and unpacks the records and has each share take in what they say: in a thread of its
/// own when there are several.
pub(super) fn read_journal(
    dir: &Arc<Directory>,
    config: &StoreConfig,
    needed: Needed,
    shares: &mut [&mut Replay],
) -> Result<Found> {
    /// Records on their way to a share.
    const MOST: u64 = 32;
    let most = (config.recovery_bytes() / 64 / config.journal.part_bytes as u64).clamp(1, MOST) as usize;
    let (give_back, spare) = mpsc::channel();
    let unpack = |head: &Head, offset: u64, stored: &[u8]| {
        let mut bytes = spare.try_recv().unwrap_or_default();
        record::unpack_into(head, stored, &mut bytes)
            .ok_or_else(|| damaged(dir.path(), head.file, offset, "the record cannot be unpacked"))?;
        Ok::<_, StoreError>(Arc::new(Payload { bytes, give_back: give_back.clone() }))
    };
    if let [replay] = shares {
        return scan::scan(dir, config, needed, &mut |head, file, offset, stored| {
            replay.record(head, file, offset, unpack(head, offset, stored)?)
        });
    }
    std::thread::scope(|scope| {
        let (mut send, mut takers) = (Vec::new(), Vec::new());
        for replay in shares {
            let (to_share, taken) = mpsc::sync_channel::<(Head, Arc<JournalFile>, u64, Arc<Payload>)>(most);
            send.push(to_share);
            takers.push(scope.spawn(move || {
                taken.into_iter().try_for_each(|(head, file, offset, payload)| {
                    replay.record(&head, &file, offset, payload)
                })
            }));
        }
        let found = scan::scan(dir, config, needed, &mut |head, file, offset, stored| {
            let payload = unpack(head, offset, stored)?;
            // The error of the share that ended says more.
            let ended = |_| damaged(dir.path(), head.file, offset, "the record could not be replayed");
            send.iter()
                .try_for_each(|s| s.send((*head, file.clone(), offset, payload.clone())).map_err(ended))
        });
        drop(send);
        let join = |t: ScopedJoinHandle<'_, _>| t.join().unwrap_or_else(|e| resume_unwind(e));
        takers.into_iter().map(join).fold(Ok(()), Result::and)?;
        found
    })
}
