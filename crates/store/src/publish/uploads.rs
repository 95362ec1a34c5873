//! Objects on their way to a store: a few at a time, so that memory stays bounded.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_io::{Answer, Ask, Clock, EventCount, ObjectError, Objects, Ongoing, PutIf};

use crate::error::StoreError;

/// Objects on their way at a time: with requests of 30 ms and extents of 2 MiB enough for 4 Gbit/s.
pub(super) const WIDTH: usize = 8;

/// See the head of the file.
pub(super) struct Uploads<'a> {
    objects: &'a dyn Objects,
    shared: Arc<UploadState>,
    /// By key. Dropped, they are given up.
    ongoing: BTreeMap<Arc<str>, Ongoing>,
    there: HashSet<Arc<str>>,
}

struct UploadState {
    over: Mutex<EndedUploads>,
    changed: EventCount,
}

#[derive(Default)]
struct EndedUploads {
    /// Keys of those that are over, and whether they are there, since that was last looked at.
    keys: Vec<(Arc<str>, Result<(), ObjectError>)>,
}

impl<'a> Uploads<'a> {
    /// Nothing on its way.
    pub fn new(objects: &'a dyn Objects, clock: &Clock) -> Uploads<'a> {
        let changed = EventCount::named(clock, "an upload to an object store");
        let shared = Arc::new(UploadState { over: Mutex::default(), changed });
        Uploads { objects, shared, ongoing: BTreeMap::new(), there: HashSet::new() }
    }

    /// True while this key is on its way, and once it is there.
    pub fn has(&self, key: &str) -> bool {
        self.ongoing.contains_key(key) || self.there.contains(key)
    }

    /// Keys that the store has said to be there.
    pub fn there(&self) -> &HashSet<Arc<str>> {
        &self.there
    }

    /// Sends an object once fewer than [`WIDTH`] are on their way.
    ///
    /// # Errors
    /// One that was sent before has failed.
    pub fn send(&mut self, key: String, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.wait_for(WIDTH - 1)?;
        let (key, shared): (Arc<str>, _) = (key.into(), self.shared.clone());
        let ask = Ask::Put { key: key.clone(), bytes: bytes.into(), only: PutIf::Always };
        let told = key.clone();
        let done = move |answer: Result<Answer, ObjectError>| {
            shared.over.lock().keys.push((told, answer.map(drop)));
            shared.changed.notify_all();
        };
        let ongoing = self.objects.begin(ask, Box::new(done));
        self.ongoing.insert(key, ongoing);
        Ok(())
    }

    /// Returns when all that was sent is there.
    ///
    /// # Errors
    /// One of them has failed.
    pub fn finish(&mut self) -> Result<(), StoreError> {
        self.wait_for(0)
    }

    /// Waits until at most `most` are on their way.
    fn wait_for(&mut self, most: usize) -> Result<(), StoreError> {
        loop {
            let over = std::mem::take(&mut self.shared.over.lock().keys);
            for (key, answer) in over {
                drop(self.ongoing.remove(&key));
                answer?;
                self.there.insert(key);
            }
            if self.ongoing.len() <= most {
                return Ok(());
            }
            let shared = &self.shared;
            shared.changed.wait_until(|| !shared.over.lock().keys.is_empty());
        }
    }
}
