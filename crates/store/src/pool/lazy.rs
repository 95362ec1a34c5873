//! Flat arrays beside the frames, in memory that exists when it is touched.
//!
//! Reserving address space costs nothing, so the translation array can cover a database that is
//! yet to grow, and opening a large pool takes no time. Untouched memory reads as zero.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;

use snowmelt_io::{Huge, Mapping};

use crate::error::{Result, StoreError};

/// Reserves memory.
pub fn reserve(bytes: usize, huge: Huge) -> Result<Mapping> {
    Mapping::new(bytes, huge)
        .map_err(|e| StoreError::Config(format!("cannot reserve {bytes} bytes of address space: {e}")))
}

/// A flat array of atomic words, zero until touched.
#[derive(Debug)]
pub struct LazyWords {
    mapping: Mapping,
    len: usize,
    _words: PhantomData<[AtomicU64]>,
}

impl LazyWords {
    /// `len` zero words.
    pub fn new(len: usize) -> Result<LazyWords> {
        let bytes = len.checked_mul(8).ok_or_else(|| StoreError::Config("the pool is too large".into()))?;
        Ok(LazyWords { mapping: reserve(bytes, Huge::No)?, len, _words: PhantomData })
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Word `i`, `None` beyond the end.
    #[inline]
    pub fn get(&self, i: u64) -> Option<&AtomicU64> {
        if i < self.len as u64 {
            // SAFETY: i is within the mapping, which is zeroed (a valid AtomicU64), 8-byte
            // aligned and lives as long as self; all access is through atomics.
            Some(unsafe { &*self.mapping.start().cast::<AtomicU64>().add(i as usize) })
        } else {
            None
        }
    }

    /// Word `i`, which must exist.
    #[inline]
    pub fn at(&self, i: u64) -> &AtomicU64 {
        self.get(i).expect("index within the array")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn far_words_are_zero_and_keep_what_is_stored() {
        let len = if cfg!(miri) { 1 << 10 } else { 1 << 30 };
        let words = LazyWords::new(len).unwrap();
        let len = len as u64;
        let far = words.at(len - 1);
        assert_eq!(far.load(Ordering::Relaxed), 0);
        far.store(7, Ordering::Relaxed);
        assert_eq!(words.at(len - 1).load(Ordering::Relaxed), 7);
        assert!(words.get(len).is_none());
    }
}
