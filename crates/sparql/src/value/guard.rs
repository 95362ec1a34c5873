//! Bounds on the terms of a worker: what they may hold, and how long they may take.
//!
//! Texts may be long and a batch has many rows. So what a batch holds is bounded: over the bound
//! the evaluation ends with [`TermError::TooMuch`], and fewer rows are done at a time. What a
//! single row needs is reserved. Functions that cannot fail note why they gave up.

use std::cell::{Cell, RefCell};

use super::TermError;
use crate::bounds::{Held, Limits};

/// Limits on the memory of a worker's terms, and on their time.
pub(crate) struct TermBounds {
    /// The query's.
    pub limits: Limits,
    /// bytes of the longest term
    pub longest: usize,
    /// of the query
    pub held: Held,
    /// bytes that the query holds for them before there is any
    pub counted: usize,
    /// bytes of decoded terms that are kept from batch to batch
    pub cache: usize,
    /// bytes of texts of a batch, beyond which fewer rows are done at a time
    pub room: usize,
}

#[cfg(test)]
impl TermBounds {
    /// Of no query.
    pub fn for_test(limits: Limits) -> Self {
        let (held, longest) = (Held::default(), 1 << 20);
        Self { limits, longest, held, counted: 0, cache: 1 << 20, room: usize::MAX }
    }
}

/// Bounds on what a thread's terms may hold, and what it cost so far.
pub(super) struct TermGuard {
    limits: Limits,
    /// bytes of the longest term
    longest: usize,
    /// what is held beyond `counted`
    held: Held,
    /// bytes that are held elsewhere
    counted: usize,
    /// for the long texts that functions make, until the batch is over
    making: RefCell<Held>,
    /// bytes of texts of a batch, beyond which fewer rows are done at a time
    room: usize,
    /// A single row is worked on: what it needs is reserved.
    pub is_whole: bool,
    /// bytes of work since the limits were checked
    worked: Cell<usize>,
    /// bytes of work after which the evaluation ends
    work_left: Cell<usize>,
    fault: RefCell<Option<TermError>>,
}

impl Default for TermGuard {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            longest: usize::MAX,
            held: Held::default(),
            counted: 0,
            making: RefCell::default(),
            room: usize::MAX,
            is_whole: false,
            worked: Cell::new(0),
            work_left: Cell::new(usize::MAX),
            fault: RefCell::new(None),
        }
    }
}

impl TermGuard {
    pub fn new(bounds: TermBounds) -> Self {
        let TermBounds { limits, longest, held, counted, room, .. } = bounds;
        let making = RefCell::new(held.another());
        Self { limits, longest, held, counted, making, room, ..Self::default() }
    }

    /// Texts take so many bytes now, or are about to.
    pub fn hold(&mut self, bytes: usize) -> Result<(), TermError> {
        /// Reserved ahead, so that not every text asks.
        const AHEAD: usize = 64 << 10;
        if bytes > self.room && !self.is_whole {
            return Err(TermError::TooMuch);
        }
        let beyond = bytes.saturating_sub(self.counted);
        if beyond > self.held.bytes() {
            self.held.set(beyond + AHEAD, "texts of a batch")?;
        }
        Ok(())
    }

    pub fn note(&self, error: TermError) {
        self.fault.borrow_mut().get_or_insert(error);
    }

    /// Texts take no more than so many bytes now.
    pub fn release(&mut self, bytes: usize) {
        let beyond = bytes.saturating_sub(self.counted);
        if beyond < self.held.bytes() {
            // giving back cannot fail
            let _ = self.held.set(beyond, "texts of a batch");
        }
    }

    /// The batch is over: the texts that its functions made are gone.
    pub fn begin_batch(&mut self) {
        self.making.get_mut().clear();
    }

    /// Counts a term that was read, and checks the limits now and then.
    pub fn count_term(&self) -> Result<(), TermError> {
        /// Work of a term, and work between two checks, in bytes.
        const TERM: usize = 64;
        const LOOK: usize = 1 << 16;
        let worked = self.worked.get() + TERM;
        self.worked.set(worked % LOOK);
        if worked >= LOOK { self.check() } else { Ok(()) }
    }

    /// Whether a text of so many bytes may be made; asked before it is. Otherwise the query
    /// ends.
    pub fn fits(&self, bytes: usize) -> Option<()> {
        if bytes > self.longest {
            let (bytes, most) = (bytes as u64, self.longest);
            self.note(TermError::TooLong { bytes, most });
            return None;
        }
        /// Longer ones are reserved before they are made: the text, and its copy among the terms.
        const LONG: usize = 256 << 10;
        let mut making = self.making.borrow_mut();
        if bytes > LONG
            && 2 * bytes > making.bytes()
            && let Err(error) = making.set(2 * bytes, "a text that a function makes")
        {
            self.note(error.into());
            return None;
        }
        Some(())
    }

    /// Ends the query: no search of so long a text for this pattern can be interrupted.
    pub fn refuse_search<T>(&self, text_bytes: usize, pattern_bytes: usize) -> Option<T> {
        self.note(TermError::Search { text_bytes, pattern_bytes });
        None
    }

    /// Evaluation ends after so many bytes of work from here on, whatever came before.
    pub fn allow(&mut self, bytes: usize) {
        self.work_left.set(bytes);
        self.take_fault();
    }

    /// Counts work, and checks the limits now and then: `None` if the query has to end.
    pub fn poll(&self, bytes: usize) -> Option<()> {
        /// Bytes between two checks: at most some milliseconds of work.
        const LOOK_BYTES: usize = 1 << 20;
        let left = self.work_left.get().saturating_sub(bytes + 32);
        self.work_left.set(left);
        if left == 0 {
            self.note(TermError::Cancelled);
        }
        let worked = self.worked.get() + bytes + 32;
        self.worked.set(if worked < LOOK_BYTES { worked } else { 0 });
        if worked >= LOOK_BYTES {
            return self.look();
        }
        self.fault.borrow().is_none().then_some(())
    }

    /// Checks the limits: `None` if the query has to end.
    pub fn look(&self) -> Option<()> {
        if let Err(stop) = self.limits.check() {
            self.note(stop.into());
        }
        self.fault.borrow().is_none().then_some(())
    }

    /// Whether the query has to end.
    pub fn check(&self) -> Result<(), TermError> {
        Ok(self.limits.check()?)
    }

    /// Takes the error that was noted.
    pub fn take_fault(&self) -> Option<TermError> {
        self.fault.borrow_mut().take()
    }
}
