//! `Transaction`: a context manager of several steps.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use snowmelt::{Quad, Transaction};

use crate::database::{PyChanges, plain};
use crate::errors;
use crate::handle::{Handle, locked};
use crate::interrupt::{self, Cancel};
use crate::question::Question;
use crate::statements::PyQuad;

/// Quads taken from an iterable together.
pub const PART_QUADS: usize = 1 << 14;

/// Several steps as one transaction: `with db.transaction() as tx`. A step that fails dooms it.
#[pyclass(name = "Transaction", module = "snowmelt", frozen)]
pub struct PyTransaction {
    handle: Arc<Handle>,
    /// there from the beginning of the with statement to the commit, but not while a step runs
    under_way: Mutex<Option<Transaction>>,
    has_begun: AtomicBool,
}

impl PyTransaction {
    pub fn new(handle: Arc<Handle>) -> Self {
        PyTransaction { handle, under_way: Mutex::default(), has_begun: AtomicBool::new(false) }
    }

    fn step<T: Send>(
        &self,
        py: Python<'_>,
        question: &Question,
        work: impl FnOnce(&mut Transaction) -> snowmelt::Result<T> + Send,
    ) -> PyResult<T> {
        let mut tx = self.take()?;
        let done = question.run(py, || work(&mut tx));
        *locked(&self.under_way) = Some(tx);
        done
    }

    fn take(&self) -> PyResult<Transaction> {
        self.handle.database()?;
        let taken = locked(&self.under_way).take();
        taken.ok_or_else(|| {
            let why =
                "the transaction is not open: use it within its with statement, by one thread at a time";
            errors::named("TransactionError", why)
        })
    }

    /// The end: nothing is under way any more, and this thread may begin another one.
    fn end(&self) -> PyResult<Transaction> {
        let tx = self.take()?;
        self.handle.set_writer(None);
        Ok(tx)
    }
}

#[pymethods]
impl PyTransaction {
    fn __enter__<'py>(slf: PyRef<'py, Self>, py: Python<'py>) -> PyResult<PyRef<'py, Self>> {
        if slf.has_begun.swap(true, Ordering::Relaxed) {
            return Err(errors::named("TransactionError", "a transaction is used once: make another one"));
        }
        let database = slf.handle.to_write()?;
        let cancel = Cancel::default();
        let tx =
            interrupt::run(py, &cancel, || Handle::begin(&database, &cancel))?.map_err(errors::from_error)?;
        slf.handle.set_writer(Some(thread::current().id()));
        *locked(&slf.under_way) = Some(tx);
        Ok(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        class: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if locked(&self.under_way).is_none() {
            return Ok(());
        }
        if class.is_none() { self.commit(py) } else { self.rollback(py) }
    }

    /// Commits before the end of the with statement; when this returns, it is durable.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        let tx = self.end()?;
        py.detach(|| tx.commit()).map_err(errors::from_error)
    }

    /// Undoes everything, without an exception.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let tx = self.end()?;
        py.detach(|| drop(tx));
        Ok(())
    }

    /// Runs a query on the state so far: see `Database.query`.
    #[pyo3(signature = (query, bindings=None, /, *, base=None, timeout=None, memory=None, **parameters))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn query(
        &self,
        py: Python<'_>,
        query: &str,
        bindings: Option<&Bound<'_, PyDict>>,
        base: Option<String>,
        timeout: Option<f64>,
        memory: Option<usize>,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let question = Question::with_parameters(query, bindings, parameters)?;
        let question = Question { base, memory, ..question.with_timeout(timeout)? };
        let answer = self.step(py, &question, |tx| question.on(tx.prepare(&question.text)).answer())?;
        plain(py, question.answered(py, answer, None)?)
    }

    /// Runs an update request as a step.
    #[pyo3(signature = (update, bindings=None, /, *, base=None, timeout=None, memory=None, **parameters))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn update(
        &self,
        py: Python<'_>,
        update: &str,
        bindings: Option<&Bound<'_, PyDict>>,
        base: Option<String>,
        timeout: Option<f64>,
        memory: Option<usize>,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyChanges> {
        let question = Question::with_parameters(update, bindings, parameters)?;
        let question = Question { base, memory, ..question.with_timeout(timeout)? };
        Ok(self.step(py, &question, |tx| question.on(tx.prepare(&question.text)).update())?.into())
    }

    /// Adds quads; returns how many were not there before. A blank node whose label an answer gave
    /// is that node; any other label is a new node, the same one throughout the transaction.
    fn insert(&self, py: Python<'_>, quads: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut inserted = 0;
        each_part(quads, |part| {
            inserted += self.step(py, &Question::default(), |tx| tx.insert(part))?;
            Ok(())
        })?;
        Ok(inserted)
    }

    /// Removes quads; returns how many were there.
    fn remove(&self, py: Python<'_>, quads: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut removed = 0;
        each_part(quads, |part| {
            removed += self.step(py, &Question::default(), |tx| tx.remove(part))?;
            Ok(())
        })?;
        Ok(removed)
    }

    /// Adds the statements of a file, as a step; for large files `Database.load` is faster.
    fn load(&self, py: Python<'_>, path: PathBuf) -> PyResult<PyChanges> {
        Ok(self.step(py, &Question::default(), |tx| tx.load(path))?.into())
    }
}

impl Drop for PyTransaction {
    fn drop(&mut self) {
        if locked(&self.under_way).take().is_some() {
            self.handle.set_writer(None);
        }
    }
}

/// The quads of an iterable, part by part.
pub fn each_part(quads: &Bound<'_, PyAny>, mut f: impl FnMut(Vec<Quad>) -> PyResult<()>) -> PyResult<()> {
    let mut part = Vec::new();
    for quad in quads.try_iter()? {
        part.push(quad?.cast::<PyQuad>()?.get().0.clone());
        if part.len() == PART_QUADS {
            f(std::mem::take(&mut part))?;
        }
    }
    if part.is_empty() { Ok(()) } else { f(part) }
}
