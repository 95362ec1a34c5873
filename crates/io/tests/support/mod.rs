//! Tools of the tests: a sink that remembers, a batch of buffers, bytes that tell
//! their place.
#![allow(dead_code, unsafe_code)]

use std::collections::HashMap;
use std::sync::Arc;

use snowmelt_base::random::GOLDEN;
use snowmelt_io::*;

/// Remembers every completion; a second one for the same tag fails the test.
pub struct Remember {
    results: std::sync::Mutex<HashMap<u64, Result<(), IoError>>>,
    order: std::sync::Mutex<Vec<u64>>,
    done: EventCount,
}

impl Remember {
    pub fn new(clock: &Clock) -> Arc<Remember> {
        Arc::new(Remember {
            results: Default::default(),
            order: Default::default(),
            done: EventCount::new(clock),
        })
    }

    pub fn wait_for(&self, n: usize) {
        self.done.wait_until(|| self.results.lock().unwrap().len() >= n);
    }

    pub fn wait_for_all(&self, tags: std::ops::Range<u64>) {
        self.done.wait_until(|| {
            let results = self.results.lock().unwrap();
            tags.clone().all(|tag| results.contains_key(&tag))
        });
    }

    pub fn result(&self, tag: u64) -> Option<Result<(), IoError>> {
        self.results.lock().unwrap().get(&tag).cloned()
    }

    pub fn count(&self) -> usize {
        self.results.lock().unwrap().len()
    }

    /// Tags in order of completion.
    pub fn order(&self) -> Vec<u64> {
        self.order.lock().unwrap().clone()
    }
}

impl Sink for Remember {
    fn complete(&self, tag: u64, result: Result<(), IoError>) {
        self.order.lock().unwrap().push(tag);
        let before = self.results.lock().unwrap().insert(tag, result);
        assert!(before.is_none(), "tag {tag} was completed twice");
        self.done.notify_all();
    }
}

/// Buffers of one batch, tagged by their place.
pub struct Batch {
    pub bufs: Vec<AlignedBuf>,
    pub requests: Vec<Request>,
}

impl Batch {
    /// Reads of (offset, length), with a buffer each; tags count from `first_tag`.
    pub fn reads(places: &[(u64, usize)], class: Class, first_tag: u64) -> Batch {
        let mut bufs: Vec<AlignedBuf> = places.iter().map(|p| AlignedBuf::new(p.1)).collect();
        let requests = places.iter().zip(&mut bufs).enumerate();
        let requests = requests.map(|(i, (&(offset, len), buf))| {
            // SAFETY: the batch owns the buffer; the tests wait for completion before they look
            // or drop.
            let buf = unsafe { RawBuf::read_into(buf.as_mut_ptr(), len) };
            Request { offset, buf, class, tag: first_tag + i as u64 }
        });
        let requests = requests.collect();
        Batch { bufs, requests }
    }
}

/// Bytes that tell their offset.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(GOLDEN) >> 29) as u8).collect()
}
