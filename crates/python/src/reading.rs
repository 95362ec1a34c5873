//! Answers that are read step by step: some items at a time without the GIL, handed out one by one.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::interrupt::{self, Cancel};

/// Items read together at first, and at most.
const FIRST_ITEMS: usize = 16;
const MOST_ITEMS: usize = 1024;
/// Once this long, a part is handed out as it is: the first rows of a slow query are not held back.
const PART_TIME: Duration = Duration::from_millis(20);

/// Something that is read once, from its first item to its last.
pub struct Reading<T> {
    state: Mutex<State<T>>,
    cancel: Cancel,
}

type Items<T> = Box<dyn Iterator<Item = PyResult<T>> + Send>;

struct State<T> {
    /// none at the end, or after an error
    source: Option<Items<T>>,
    ready: VecDeque<T>,
    /// an error behind what is ready
    failed: Option<PyErr>,
    at_once: usize,
}

impl<T: Send> Reading<T> {
    /// `cancel` is the flag that ends the source.
    pub fn new(source: impl Iterator<Item = PyResult<T>> + Send + 'static, cancel: Cancel) -> Self {
        let source: Option<Items<T>> = Some(Box::new(source));
        let state = State { source, ready: VecDeque::new(), failed: None, at_once: FIRST_ITEMS };
        Reading { state: Mutex::new(state), cancel }
    }

    /// The next item; none at the end.
    pub fn next(&self, py: Python<'_>) -> PyResult<Option<T>> {
        let mut state = self.held()?;
        if state.ready.is_empty() && state.failed.is_none() && state.source.is_some() {
            let state = &mut *state;
            interrupt::run(py, &self.cancel, || state.fill())?;
        }
        match state.ready.pop_front() {
            Some(item) => Ok(Some(item)),
            None => state.failed.take().map_or(Ok(None), Err),
        }
    }

    /// Reads to the end without the GIL and hands every item that is left to `each`.
    pub fn drain(&self, py: Python<'_>, mut each: impl FnMut(T) -> PyResult<()> + Send) -> PyResult<()> {
        let mut state = self.held()?;
        let state = &mut *state;
        interrupt::run(py, &self.cancel, || {
            state.ready.drain(..).try_for_each(&mut each)?;
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            state.source.take().into_iter().flatten().try_for_each(|item| each(item?))
        })?
    }

    /// Waiting for another thread here, with the GIL, could be for ever: it may need the GIL.
    fn held(&self) -> PyResult<MutexGuard<'_, State<T>>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("another thread reads this answer at the moment"))
            }
        }
    }
}

impl<T> State<T> {
    fn fill(&mut self) {
        let Some(source) = &mut self.source else { return };
        let begun = Instant::now();
        while self.ready.len() < self.at_once {
            match source.next() {
                Some(Ok(item)) => self.ready.push_back(item),
                other => {
                    self.failed = other.and_then(Result::err);
                    self.source = None;
                    return;
                }
            }
            if begun.elapsed() >= PART_TIME {
                return;
            }
        }
        self.at_once = (self.at_once * 2).min(MOST_ITEMS);
    }
}
