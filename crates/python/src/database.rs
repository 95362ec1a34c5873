//! `Database`: the façade, method by method.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use snowmelt::{Changes, Database, LoadProgress, Loaded, Loader, Options, QuadPattern};

use crate::errors;
use crate::formats;
use crate::functions::PyFunction;
use crate::handle::{Handle, locked};
use crate::interrupt::{self, Cancel};
use crate::question::Question;
use crate::results::{PyQuads, PyQueryBoolean};
use crate::streams::{Input, Output};
use crate::terms::{AnyGraph, AnySubject, AnyTerm, PyNamedNode};
use crate::transaction::PyTransaction;

/// Counts of an update.
#[pyclass(name = "Changes", module = "snowmelt", frozen, eq, get_all)]
#[derive(PartialEq, Eq)]
pub struct PyChanges {
    /// Quads that were not there before.
    inserted: u64,
    /// Quads that were, and are no more.
    deleted: u64,
}

impl From<Changes> for PyChanges {
    fn from(changes: Changes) -> Self {
        PyChanges { inserted: changes.inserted, deleted: changes.deleted }
    }
}

#[pymethods]
impl PyChanges {
    fn __repr__(&self) -> String {
        format!("<Changes inserted={} deleted={}>", self.inserted, self.deleted)
    }
}

/// Counts of a load.
#[pyclass(name = "Loaded", module = "snowmelt", frozen, get_all)]
pub struct PyLoaded {
    /// Statements read.
    statements: u64,
    /// Malformed statements left out.
    skipped: u64,
    /// Quads in the database now.
    quads: u64,
    /// Seconds it took.
    seconds: f64,
}

impl From<Loaded> for PyLoaded {
    fn from(loaded: Loaded) -> Self {
        let Loaded { statements, skipped, quads, seconds } = loaded;
        PyLoaded { statements, skipped, quads, seconds }
    }
}

#[pymethods]
impl PyLoaded {
    fn __repr__(&self) -> String {
        let PyLoaded { statements, skipped, quads, seconds } = self;
        format!("<Loaded statements={statements} skipped={skipped} quads={quads} seconds={seconds:.3}>")
    }
}

/// An open database. Open it with `open`, `create`, `open_or_create` or `in_memory`; close it with
/// `close`, or use it as a context manager. Threads may share it.
#[pyclass(name = "Database", module = "snowmelt", frozen)]
pub struct PyDatabase {
    handle: Arc<Handle>,
    path: Option<PathBuf>,
}

/// A setting, if it is given and not None.
fn setting<'py, T>(given: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    given.get_item(name)?.filter(|value| !value.is_none()).map(|value| value.extract()).transpose()
}

/// Settings of a database that is made, or opened where there is one.
const OF_NEW: [&str; 6] = ["memory", "direct", "hints", "read_ahead", "recovery_seconds", "stripes"];

/// The settings among keyword arguments, of which only `known` ones are allowed.
fn options(given: Option<&Bound<'_, PyDict>>, known: &[&str]) -> PyResult<Options> {
    let mut options = Options::new();
    let Some(given) = given else { return Ok(options) };
    for name in given.keys() {
        let name: String = name.extract()?;
        if !known.contains(&name.as_str()) {
            let known = known.join(", ");
            return Err(PyTypeError::new_err(format!("{name} is no setting here; there are: {known}")));
        }
    }
    if let Some(bytes) = setting(given, "memory")? {
        options = options.memory(bytes);
    }
    if let Some(read_only) = setting(given, "read_only")? {
        options = options.read_only(read_only);
    }
    if let Some(direct) = setting(given, "direct")? {
        options = options.direct(direct);
    }
    if let Some(hints) = setting(given, "hints")? {
        options = options.hints(hints);
    }
    if let Some(rules) = setting::<String>(given, "read_ahead")? {
        options = options.read_ahead(&rules).map_err(errors::from_error)?;
    }
    if let Some(seconds) = setting(given, "recovery_seconds")? {
        options = options.recovery_seconds(seconds);
    }
    Ok(match setting::<Vec<PathBuf>>(given, "stripes")? {
        Some(paths) => options.stripes(paths),
        None => options,
    })
}

impl PyDatabase {
    fn opened(
        py: Python<'_>,
        path: Option<PathBuf>,
        open: impl FnOnce() -> snowmelt::Result<Database> + Send,
    ) -> PyResult<Self> {
        let database = py.detach(open).map_err(errors::from_error)?;
        Ok(PyDatabase { handle: Arc::new(Handle::new(database)), path })
    }

    /// Some work with the database that does not change it and cannot be interrupted.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Database) -> snowmelt::Result<T> + Send,
    ) -> PyResult<T> {
        let database = self.handle.database()?;
        interrupt::run(py, &Cancel::default(), || work(&database))?.map_err(errors::from_error)
    }
}

#[pymethods]
impl PyDatabase {
    /// Opens the database in a directory. Settings: memory (bytes), read_only, direct, hints (begin
    /// with what is known of the disks), read_ahead, recovery_seconds.
    #[staticmethod]
    #[pyo3(signature = (path, **settings))]
    fn open(py: Python<'_>, path: PathBuf, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let known = ["memory", "read_only", "direct", "hints", "read_ahead", "recovery_seconds"];
        let options = options(settings, &known)?;
        Self::opened(py, Some(path.clone()), move || options.open(path))
    }

    /// Makes an empty database in a directory. Settings: memory, direct, hints, read_ahead,
    /// recovery_seconds, stripes (files or directories for its data).
    #[staticmethod]
    #[pyo3(signature = (path, **settings))]
    fn create(py: Python<'_>, path: PathBuf, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let options = options(settings, &OF_NEW)?;
        Self::opened(py, Some(path.clone()), move || options.create(path))
    }

    /// Opens the database in a directory, or makes one if there is none.
    #[staticmethod]
    #[pyo3(signature = (path, **settings))]
    fn open_or_create(py: Python<'_>, path: PathBuf, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let options = options(settings, &OF_NEW)?;
        Self::opened(py, Some(path.clone()), move || options.open_or_create(path))
    }

    /// Makes an empty database in memory. Setting: memory (bytes).
    #[staticmethod]
    #[pyo3(signature = (**settings))]
    fn in_memory(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let options = options(settings, &["memory", "read_ahead"])?;
        Self::opened(py, None, move || options.in_memory())
    }

    /// Runs a query: solutions, triples, or a bool. Parameters by name are keyword arguments, or a
    /// dict, for names that are also settings. `functions` are callables by IRI, which get terms
    /// and return one, or None for an error; `varying_functions` are those that are called for each
    /// row. `describe` is cbd, symmetric or labelled.
    #[pyo3(signature = (query, bindings=None, /, *, base=None, timeout=None, memory=None,
                        default_graphs=None, named_graphs=None, functions=None, varying_functions=None,
                        describe=None, **parameters))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn query(
        &self,
        py: Python<'_>,
        query: &str,
        bindings: Option<&Bound<'_, PyDict>>,
        base: Option<String>,
        timeout: Option<f64>,
        memory: Option<usize>,
        default_graphs: Option<Vec<GraphIri>>,
        named_graphs: Option<Vec<GraphIri>>,
        functions: Option<&Bound<'_, PyDict>>,
        varying_functions: Option<&Bound<'_, PyDict>>,
        describe: Option<&str>,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let question = Question::with_parameters(query, bindings, parameters)?.with_describe(describe)?;
        let functions = both(functions, varying_functions)?;
        let question = Question { base, memory, functions, ..question.with_timeout(timeout)? };
        let (default_graphs, named_graphs) = (iris(default_graphs), iris(named_graphs));
        let question = Question { default_graphs, named_graphs, ..question };
        let database = self.handle.database()?;
        let answer = question.run(py, || question.on(database.prepare(&question.text)).answer())?;
        plain(py, question.answered(py, answer, None)?)
    }

    /// Runs an update request as one transaction; when this returns, it is durable.
    #[pyo3(signature = (update, bindings=None, /, *, base=None, timeout=None, memory=None, functions=None,
                        varying_functions=None, **parameters))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn update(
        &self,
        py: Python<'_>,
        update: &str,
        bindings: Option<&Bound<'_, PyDict>>,
        base: Option<String>,
        timeout: Option<f64>,
        memory: Option<usize>,
        functions: Option<&Bound<'_, PyDict>>,
        varying_functions: Option<&Bound<'_, PyDict>>,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyChanges> {
        let question = Question::with_parameters(update, bindings, parameters)?;
        let functions = both(functions, varying_functions)?;
        let question = Question { base, memory, functions, ..question.with_timeout(timeout)? };
        let database = self.handle.to_write()?;
        let changes = question.run(py, || question.on(database.prepare(&question.text)).update())?;
        Ok(changes.into())
    }

    /// A transaction of several steps, for a with statement: committed at its end, undone if an
    /// exception leaves it.
    fn transaction(&self) -> PyTransaction {
        PyTransaction::new(self.handle.clone())
    }

    /// Loads files (paths), contents (bytes) or file-like objects together, all or nothing.
    /// `progress` is called about ten times a second with a phase, statements read, and units
    /// of the phase that are done and in total (None where unknown).
    #[pyo3(signature = (*sources, format=None, graph=None, base=None, lenient=false, threads=None,
                        progress=None))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn load(
        &self,
        py: Python<'_>,
        sources: &Bound<'_, PyTuple>,
        format: Option<&Bound<'_, PyAny>>,
        graph: Option<GraphIri>,
        base: Option<&str>,
        lenient: bool,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyLoaded> {
        let database = self.handle.to_write()?;
        let mut loader = database.loader().lenient(lenient);
        for source in sources {
            loader = add_source(loader, Input::path_or_content(&source)?);
        }
        if let Some(format) = format {
            loader = loader.format(formats::rdf_format(format)?);
        }
        if let Some(graph) = graph {
            loader = loader.graph(&graph.text());
        }
        if let Some(base) = base {
            loader = loader.base(base);
        }
        if let Some(threads) = threads {
            loader = loader.threads(threads);
        }
        run_load(py, loader, progress)
    }

    /// Writes all quads: as bytes, or to a file or file-like object. In a format without graphs a
    /// triple that is in several graphs is written once for each.
    #[pyo3(signature = (output=None, format=None))]
    fn dump<'py>(
        &self,
        py: Python<'py>,
        output: Option<&Bound<'py, PyAny>>,
        format: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let format = formats::rdf_format_to_write(format, output)?;
        let mut output = Output::new(output)?;
        self.with(py, |database| database.dump(format, &mut output))?;
        output.finish(py)
    }

    /// The quads that have every term that is given, over all graphs unless one is given.
    #[pyo3(signature = (subject=None, predicate=None, object=None, graph_name=None))]
    fn quads(
        &self,
        py: Python<'_>,
        subject: Option<AnySubject>,
        predicate: Option<PyNamedNode>,
        object: Option<AnyTerm>,
        graph_name: Option<AnyGraph>,
    ) -> PyResult<PyQuads> {
        let pattern = QuadPattern {
            subject: subject.map(Into::into),
            predicate: predicate.map(|iri| iri.0),
            object: object.map(Into::into),
            graph: graph_name.map(Into::into),
        };
        let quads = self.with(py, |database| database.quads(&pattern))?;
        Ok(PyQuads::new(quads, Cancel::default(), None))
    }

    /// The prefixes that are kept with the database, as a dict: names without colon, and IRIs.
    #[getter]
    fn prefixes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let prefixes = PyDict::new(py);
        for (name, iri) in self.with(py, |database| Ok(database.prefixes()))? {
            prefixes.set_item(name, iri)?;
        }
        Ok(prefixes)
    }

    /// Keeps a prefix with the database.
    fn set_prefix(&self, py: Python<'_>, name: &str, iri: &str) -> PyResult<()> {
        self.handle.to_write()?;
        self.with(py, |database| database.set_prefix(name, iri))
    }

    /// Removes a prefix; whether it was there.
    fn remove_prefix(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.handle.to_write()?;
        self.with(py, |database| database.remove_prefix(name))
    }

    /// Counts and sizes, as a dict.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stats = self.with(py, |database| database.stats())?;
        let json = serde_json::to_string(&stats).map_err(|error| errors::value(error.to_string()))?;
        py.import("json")?.call_method1("loads", (json,))
    }

    /// All meters since the database was opened, as a dict: by account, tree and device.
    fn meters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let meters = self.with(py, |database| Ok(database.meters()))?;
        py.import("json")?.call_method1("loads", (meters.json().to_string(),))
    }

    /// The plan of a query with its estimates, as text; nothing is executed.
    #[pyo3(signature = (query, bindings=None, /, **parameters))]
    fn explain(
        &self,
        py: Python<'_>,
        query: &str,
        bindings: Option<&Bound<'_, PyDict>>,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let question = Question::with_parameters(query, bindings, parameters)?;
        let database = self.handle.database()?;
        question.run(py, || question.on(database.prepare(&question.text)).explain())
    }

    /// Runs a query, throws its rows away, and gives the plan with rows, time and reads of each
    /// operator, as text.
    #[pyo3(signature = (query, bindings=None, /, **parameters))]
    fn analyze(
        &self,
        py: Python<'_>,
        query: &str,
        bindings: Option<&Bound<'_, PyDict>>,
        parameters: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let question = Question::with_parameters(query, bindings, parameters)?;
        let database = self.handle.database()?;
        question.run(py, || question.on(database.prepare(&question.text)).analyze())
    }

    /// Reads every page and compares the indexes with each other; returns the problems, one text
    /// each.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.with(py, |database| database.check())?.problems)
    }

    /// Copies the newest durable state into a new database, while this one is used.
    fn backup(&self, py: Python<'_>, target: PathBuf) -> PyResult<()> {
        self.with(py, |database| database.backup(target))
    }

    /// Reclaims terms without quads if there are many, moves scattered pages into key order and
    /// gives free space back.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.to_write()?;
        self.with(py, |database| database.compact())
    }

    /// Closes it; more calls do nothing. Answers that are not read to their end keep the files open
    /// until they are dropped.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let database = self.handle.close()?;
        py.detach(|| drop(database));
        Ok(())
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Its directory; None in memory.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let quads = self.with(py, |database| database.quad_count())?;
        Ok(usize::try_from(quads)?)
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _class: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let place = self.path.as_ref().map_or("in memory".to_owned(), |path| format!("{path:?}"));
        let closed = if self.handle.is_closed() { " closed" } else { "" };
        format!("<Database {place}{closed}>")
    }
}

/// The IRI of a graph: a NamedNode or a str.
#[derive(FromPyObject)]
pub enum GraphIri {
    Term(PyNamedNode),
    Text(String),
}

impl GraphIri {
    pub fn text(&self) -> String {
        match self {
            GraphIri::Term(iri) => iri.0.as_str().to_owned(),
            GraphIri::Text(text) => text.clone(),
        }
    }
}

/// Functions that are called once for equal arguments, and those that are called for each row.
fn both(
    functions: Option<&Bound<'_, PyDict>>,
    varying: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<PyFunction>> {
    let mut all = PyFunction::of_dict(functions, true)?;
    all.extend(PyFunction::of_dict(varying, false)?);
    Ok(all)
}

fn iris(graphs: Option<Vec<GraphIri>>) -> Vec<String> {
    graphs.iter().flatten().map(GraphIri::text).collect()
}

/// The answer of ASK as a bool of Python.
pub fn plain(py: Python<'_>, answer: Py<PyAny>) -> PyResult<Py<PyAny>> {
    match answer.cast_bound::<PyQueryBoolean>(py) {
        Ok(answer) => Ok(answer.get().0.into_pyobject(py)?.to_owned().into_any().unbind()),
        Err(_) => Ok(answer),
    }
}

/// Adds an input to a load.
pub fn add_source(loader: Loader<'_>, source: Input) -> Loader<'_> {
    match source {
        Input::File(path) => loader.file(path),
        Input::Reader(read) => loader.reader("<input>", read),
    }
}

/// Runs a load, which Ctrl-C or an exception of `progress` ends.
pub fn run_load(py: Python<'_>, loader: Loader<'_>, progress: Option<Py<PyAny>>) -> PyResult<PyLoaded> {
    let cancel = Cancel::default();
    let raised: Mutex<Option<PyErr>> = Mutex::default();
    let report = |at: LoadProgress| {
        let Some(progress) = &progress else { return };
        let args = (at.phase, at.statements, at.done, at.total);
        if let Err(error) = Python::attach(|py| progress.call1(py, args)) {
            cancel.flag().store(true, Ordering::Relaxed);
            locked(&raised).get_or_insert(error);
        }
    };
    let loader = loader.cancel(Arc::clone(cancel.flag())).progress(report);
    let loaded = interrupt::run(py, &cancel, || loader.run())?;
    if let Some(error) = locked(&raised).take() {
        return Err(error);
    }
    Ok(loaded.map_err(errors::from_error)?.into())
}
