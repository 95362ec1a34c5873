//! `Store`: the interface of pyoxigraph's class of that name, on a Snowmelt database.
//!
//! Blank nodes keep the labels that a program gives them while the store is open: see
//! [`crate::labels`].

use std::path::PathBuf;
use std::sync::Arc;

use oxrdfio::RdfFormat;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use snowmelt::{Answer, Database, GraphName, Options, Quad, QuadPattern, Transaction};

use crate::database::{add_source, run_load};
use crate::documents;
use crate::errors;
use crate::formats;
use crate::functions::PyFunction;
use crate::handle::Handle;
use crate::interrupt::{self, Cancel};
use crate::labels::{Fresh, Labels};
use crate::question::Question;
use crate::results::PyQuads;
use crate::statements::PyQuad;
use crate::streams::{Input, Output};
use crate::terms::{AnyGraph, AnySubject, AnyTerm, PyNamedNode};
use crate::transaction::each_part;

/// A set of quads in a directory, or in memory without a path, as pyoxigraph's Store.
#[pyclass(name = "Store", module = "snowmelt", frozen)]
pub struct PyStore {
    handle: Handle,
    labels: Arc<Labels>,
}

impl PyStore {
    fn opened(py: Python<'_>, open: impl FnOnce() -> snowmelt::Result<Database> + Send) -> PyResult<Self> {
        let database = py.detach(open).map_err(errors::from_error)?;
        Ok(PyStore { handle: Handle::new(database), labels: Arc::default() })
    }

    /// Changes quads in one transaction; nodes for new labels are kept once it is committed.
    fn change(
        &self,
        py: Python<'_>,
        steps: impl FnOnce(&mut dyn FnMut(Step<'_>) -> PyResult<()>) -> PyResult<()>,
    ) -> PyResult<()> {
        let database = self.handle.to_write()?;
        let cancel = Cancel::default();
        let begun = interrupt::run(py, &cancel, || Handle::begin(&database, &cancel))?;
        let mut tx = begun.map_err(errors::from_error)?;
        let mut fresh = Fresh::default();
        // what Python code does between the steps must not wait for this transaction
        let writer = Writing::begin(&self.handle);
        steps(&mut |step| py.detach(|| step(&mut tx, &mut fresh)).map_err(errors::from_error))?;
        drop(writer);
        py.detach(|| tx.commit()).map_err(errors::from_error)?;
        self.labels.keep(fresh);
        Ok(())
    }

    fn update_text(&self, py: Python<'_>, text: &str) -> PyResult<()> {
        let question = Question::new(text);
        let database = self.handle.to_write()?;
        question.run(py, || question.on(database.prepare(&question.text)).update())?;
        Ok(())
    }

    fn pattern(&self, py: Python<'_>, pattern: QuadPattern) -> PyResult<PyQuads> {
        let database = self.handle.database()?;
        let quads = py.detach(|| database.quads(&pattern)).map_err(errors::from_error)?;
        Ok(PyQuads::new(quads, Cancel::default(), Some(self.labels.clone())))
    }

    /// A graph's name, with the stored node of a label.
    fn graph(&self, graph: AnyGraph) -> GraphName {
        match GraphName::from(graph) {
            GraphName::BlankNode(node) => self.labels.stored(node).into(),
            other => other,
        }
    }

    fn of_graph(&self, graph: AnyGraph) -> QuadPattern {
        QuadPattern { graph: Some(self.graph(graph)), ..QuadPattern::default() }
    }

    fn load_input(
        &self,
        py: Python<'_>,
        input: Input,
        format: Option<&Bound<'_, PyAny>>,
        base: Option<&str>,
        graph: Option<AnyGraph>,
        lenient: bool,
    ) -> PyResult<()> {
        let database = self.handle.to_write()?;
        let mut loader = add_source(database.loader().lenient(lenient), input);
        if let Some(format) = format {
            loader = loader.format(formats::rdf_format(format)?);
        }
        if let Some(base) = base {
            loader = loader.base(base);
        }
        match graph {
            None | Some(AnyGraph::DefaultGraph(_)) => {}
            Some(AnyGraph::NamedNode(iri)) => loader = loader.graph(iri.0.as_str()),
            Some(AnyGraph::BlankNode(_)) => return Err(no_blank_graph()),
        }
        run_load(py, loader, None).map(drop)
    }
}

/// A step of a transaction on quads.
type Step<'a> = Box<dyn FnOnce(&mut Transaction, &mut Fresh) -> snowmelt::Result<()> + Send + 'a>;

/// While it lives, this thread has a transaction open.
struct Writing<'a>(&'a Handle);

impl<'a> Writing<'a> {
    fn begin(handle: &'a Handle) -> Self {
        handle.set_writer(Some(std::thread::current().id()));
        Writing(handle)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.set_writer(None);
    }
}

#[pymethods]
impl PyStore {
    /// Opens the database in a directory, or makes one; without a path, one in memory.
    #[new]
    #[pyo3(signature = (path=None))]
    fn new(py: Python<'_>, path: Option<PathBuf>) -> PyResult<Self> {
        Self::opened(py, || match path {
            Some(path) => Options::new().open_or_create(path),
            None => Options::new().in_memory(),
        })
    }

    /// Opens the database in a directory for reading only; other processes may read it too.
    #[staticmethod]
    fn read_only(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::opened(py, || Options::new().read_only(true).open(path))
    }

    /// Adds a quad. Each call is a transaction: `extend` is faster for many.
    fn add(&self, py: Python<'_>, quad: PyQuad) -> PyResult<()> {
        self.change(py, |step| step(Box::new(|tx, fresh| self.insert(tx, fresh, [quad.0].into()))))
    }

    /// Adds quads, all or nothing.
    fn extend(&self, py: Python<'_>, quads: &Bound<'_, PyAny>) -> PyResult<()> {
        self.change(py, |step| {
            each_part(quads, |part| step(Box::new(|tx, fresh| self.insert(tx, fresh, part))))
        })
    }

    /// Adds quads, all or nothing, as `extend` does.
    fn bulk_extend(&self, py: Python<'_>, quads: &Bound<'_, PyAny>) -> PyResult<()> {
        self.extend(py, quads)
    }

    /// Removes a quad.
    fn remove(&self, py: Python<'_>, quad: PyQuad) -> PyResult<()> {
        let quad = self.labels.quad_to_find(quad.0);
        self.change(py, |step| step(Box::new(|tx, _| tx.remove([quad]).map(drop))))
    }

    /// Removes quads, all or nothing: faster than one by one. Not in pyoxigraph.
    fn remove_all(&self, py: Python<'_>, quads: &Bound<'_, PyAny>) -> PyResult<()> {
        self.change(py, |step| {
            each_part(quads, |part| {
                let part: Vec<Quad> = part.into_iter().map(|quad| self.labels.quad_to_find(quad)).collect();
                step(Box::new(|tx, _| tx.remove(part).map(drop)))
            })
        })
    }

    /// The quads that have every term that is given; all graphs are looked at unless one is given.
    #[pyo3(signature = (subject, predicate, object, graph_name=None))]
    fn quads_for_pattern(
        &self,
        py: Python<'_>,
        subject: Option<AnySubject>,
        predicate: Option<PyNamedNode>,
        object: Option<AnyTerm>,
        graph_name: Option<AnyGraph>,
    ) -> PyResult<PyQuads> {
        let subject = subject.map(|subject| match subject {
            AnySubject::NamedNode(iri) => iri.0.into(),
            AnySubject::BlankNode(node) => self.labels.stored(node.0).into(),
        });
        let object = object.map(|object| match object {
            AnyTerm::BlankNode(node) => self.labels.stored(node.0).into(),
            other => self.labels.term_to_find(other.into()),
        });
        let graph = graph_name.map(|graph| self.graph(graph));
        self.pattern(py, QuadPattern { subject, predicate: predicate.map(|iri| iri.0), object, graph })
    }

    /// Runs a query. `substitutions` are values of variables by `Variable` or name;
    /// `custom_functions` are callables by IRI, which get terms and return one, or None for an
    /// error.
    #[pyo3(signature = (query, *, base_iri=None, prefixes=None, use_default_graph_as_union=false,
                        default_graph=None, named_graphs=None, substitutions=None,
                        custom_functions=None, custom_aggregate_functions=None))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn query(
        &self,
        py: Python<'_>,
        query: &str,
        base_iri: Option<String>,
        prefixes: Option<&Bound<'_, PyDict>>,
        use_default_graph_as_union: bool,
        default_graph: Option<OneOrMore>,
        named_graphs: Option<Vec<AnyGraph>>,
        substitutions: Option<&Bound<'_, PyDict>>,
        custom_functions: Option<&Bound<'_, PyDict>>,
        custom_aggregate_functions: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        if use_default_graph_as_union {
            return Err(unsupported("use_default_graph_as_union", "name the graphs in default_graph"));
        }
        refuse_aggregates(custom_aggregate_functions)?;
        let functions = PyFunction::of_dict(custom_functions, false)?;
        let labels = Some(self.labels.clone());
        let question = Question::new(query).with_prefixes(prefixes)?.with_bindings(substitutions)?;
        let question = Question { functions, labels, ..question };
        let default_graphs = match default_graph {
            None | Some(OneOrMore::One(AnyGraph::DefaultGraph(_))) => Vec::new(),
            Some(OneOrMore::One(graph)) => vec![graph_iri(graph)?],
            Some(OneOrMore::More(graphs)) => graphs.into_iter().map(graph_iri).collect::<PyResult<_>>()?,
        };
        let named_graphs: PyResult<Vec<_>> = named_graphs.into_iter().flatten().map(graph_iri).collect();
        let question = Question { base: base_iri, default_graphs, named_graphs: named_graphs?, ..question };
        let database = self.handle.database()?;
        let answer = question.run(py, || question.on(database.prepare(&question.text)).answer())?;
        question.answered(py, answer, Some(self.labels.clone()))
    }

    /// Runs an update request as one transaction.
    #[pyo3(signature = (update, *, base_iri=None, prefixes=None, custom_functions=None,
                        custom_aggregate_functions=None))]
    fn update(
        &self,
        py: Python<'_>,
        update: &str,
        base_iri: Option<String>,
        prefixes: Option<&Bound<'_, PyDict>>,
        custom_functions: Option<&Bound<'_, PyDict>>,
        custom_aggregate_functions: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        refuse_aggregates(custom_aggregate_functions)?;
        let functions = PyFunction::of_dict(custom_functions, false)?;
        let labels = Some(self.labels.clone());
        let question = Question::new(update).with_prefixes(prefixes)?;
        let question = Question { base: base_iri, functions, labels, ..question };
        let database = self.handle.to_write()?;
        question.run(py, || question.on(database.prepare(&question.text)).update())?;
        Ok(())
    }

    /// Loads a document, all or nothing. `lenient` leaves malformed statements out.
    #[pyo3(signature = (input=None, format=None, *, path=None, base_iri=None, to_graph=None, lenient=false))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn load(
        &self,
        py: Python<'_>,
        input: Option<&Bound<'_, PyAny>>,
        format: Option<&Bound<'_, PyAny>>,
        path: Option<PathBuf>,
        base_iri: Option<&str>,
        to_graph: Option<AnyGraph>,
        lenient: bool,
    ) -> PyResult<()> {
        self.load_input(py, Input::new(input, path)?, format, base_iri, to_graph, lenient)
    }

    /// Loads a document as `load` does: every load is in bulk where that is faster.
    #[pyo3(signature = (input=None, format=None, *, path=None, base_iri=None, to_graph=None, lenient=false))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's keyword arguments")]
    fn bulk_load(
        &self,
        py: Python<'_>,
        input: Option<&Bound<'_, PyAny>>,
        format: Option<&Bound<'_, PyAny>>,
        path: Option<PathBuf>,
        base_iri: Option<&str>,
        to_graph: Option<AnyGraph>,
        lenient: bool,
    ) -> PyResult<()> {
        self.load_input(py, Input::new(input, path)?, format, base_iri, to_graph, lenient)
    }

    /// Writes all quads, or the triples of one graph: as bytes, or to a file or file-like object.
    #[pyo3(signature = (output=None, format=None, *, from_graph=None, prefixes=None, base_iri=None))]
    fn dump<'py>(
        &self,
        py: Python<'py>,
        output: Option<&Bound<'py, PyAny>>,
        format: Option<&Bound<'py, PyAny>>,
        from_graph: Option<AnyGraph>,
        prefixes: Option<&Bound<'py, PyDict>>,
        base_iri: Option<&str>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let format = formats::rdf_format_to_write(format, output)?;
        if from_graph.is_none() && !format.supports_datasets() {
            return Err(errors::value(format!("{format} has no named graphs: give from_graph")));
        }
        let serializer = documents::serializer(format, prefixes, base_iri)?;
        let mut output = Output::new(output)?;
        let is_one_graph = from_graph.is_some();
        let pattern = from_graph.map_or_else(QuadPattern::default, |graph| self.of_graph(graph));
        let (database, cancel) = (self.handle.database()?, Cancel::default());
        let written = interrupt::run(py, &cancel, || -> PyResult<()> {
            let mut writer = serializer.for_writer(&mut output);
            for quad in
                database.quads(&pattern).map_err(errors::from_error)?.cancel(Arc::clone(cancel.flag()))
            {
                let mut quad = self.labels.quad_found(quad.map_err(errors::from_error)?);
                if is_one_graph {
                    quad.graph_name = GraphName::DefaultGraph;
                }
                writer.serialize_quad(&quad).map_err(errors::of_io)?;
            }
            writer.finish().map(drop).map_err(errors::of_io)
        })?;
        written?;
        output.finish(py)
    }

    /// The names of the graphs that have quads.
    fn named_graphs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let question = Question::new("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }");
        let database = self.handle.database()?;
        let names = question.run(py, || match question.on(database.prepare(&question.text)).answer()? {
            Answer::Rows(rows) => rows.map(|row| Ok(row?["g"].clone())).collect::<snowmelt::Result<Vec<_>>>(),
            _ => Ok(Vec::new()),
        })?;
        let names = names.into_iter().map(|name| AnyTerm::from(self.labels.term_found(name)));
        Ok(PyList::new(py, names.collect::<Vec<_>>())?.try_iter()?.into_any())
    }

    /// Whether a graph has quads; the default graph is always there.
    fn contains_named_graph(&self, py: Python<'_>, graph_name: AnyGraph) -> PyResult<bool> {
        if let AnyGraph::DefaultGraph(_) = graph_name {
            return Ok(true);
        }
        let (database, pattern) = (self.handle.database()?, self.of_graph(graph_name));
        let first = py.detach(|| database.quads(&pattern)?.next().transpose()).map_err(errors::from_error)?;
        Ok(first.is_some())
    }

    /// Does nothing: a graph is there while it has quads.
    fn add_graph(&self, graph_name: AnyGraph) -> PyResult<()> {
        let _ = graph_name;
        self.handle.to_write().map(drop)
    }

    /// Removes the quads of a graph.
    fn clear_graph(&self, py: Python<'_>, graph_name: AnyGraph) -> PyResult<()> {
        match &graph_name {
            AnyGraph::DefaultGraph(_) => self.update_text(py, "CLEAR DEFAULT"),
            AnyGraph::NamedNode(iri) => self.update_text(py, &format!("CLEAR GRAPH {}", iri.0)),
            AnyGraph::BlankNode(_) => {
                let pattern = self.of_graph(graph_name);
                self.change(py, |step| {
                    step(Box::new(|tx, _| {
                        let quads = tx.quads(&pattern)?.collect::<snowmelt::Result<Vec<_>>>()?;
                        tx.remove(quads).map(drop)
                    }))
                })
            }
        }
    }

    /// Removes the quads of a graph, as `clear_graph` does: a graph without quads is not there.
    fn remove_graph(&self, py: Python<'_>, graph_name: AnyGraph) -> PyResult<()> {
        self.clear_graph(py, graph_name)
    }

    /// Removes all quads.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.update_text(py, "CLEAR ALL")
    }

    /// Does nothing: what a method changed is durable when it returns.
    fn flush(&self) -> PyResult<()> {
        self.handle.database().map(drop)
    }

    /// Reclaims terms without quads if there are many, moves scattered pages into key order and
    /// gives free space back.
    fn optimize(&self, py: Python<'_>) -> PyResult<()> {
        let database = self.handle.to_write()?;
        interrupt::run(py, &Cancel::default(), || database.compact())?.map_err(errors::from_error)
    }

    /// Copies the newest durable state into a new database, while this one is used.
    fn backup(&self, py: Python<'_>, target_directory: PathBuf) -> PyResult<()> {
        let database = self.handle.database()?;
        interrupt::run(py, &Cancel::default(), || database.backup(target_directory))?
            .map_err(errors::from_error)
    }

    /// Closes it; more calls do nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let database = self.handle.close()?;
        py.detach(|| drop(database));
        Ok(())
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

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let database = self.handle.database()?;
        Ok(usize::try_from(py.detach(|| database.quad_count()).map_err(errors::from_error)?)?)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.__len__(py)? > 0)
    }

    fn __contains__(&self, py: Python<'_>, quad: PyQuad) -> PyResult<bool> {
        let (database, quad) = (self.handle.database()?, self.labels.quad_to_find(quad.0));
        py.detach(|| database.contains(&quad)).map_err(errors::from_error)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<PyQuads> {
        self.pattern(py, QuadPattern::default())
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        let format = super::formats::PyRdfFormat(RdfFormat::NQuads).into_pyobject(py)?;
        let text = self.dump(py, None, Some(format.as_any()), None, None, None)?;
        let bytes: Vec<u8> = text.map(|bytes| bytes.extract()).transpose()?.unwrap_or_default();
        String::from_utf8(bytes).map_err(|error| errors::value(error.to_string()))
    }
}

impl PyStore {
    fn insert(&self, tx: &mut Transaction, fresh: &mut Fresh, quads: Vec<Quad>) -> snowmelt::Result<()> {
        let mut stored = Vec::with_capacity(quads.len());
        for quad in quads {
            stored.push(self.labels.quad_to_add(quad, tx, fresh)?);
        }
        tx.insert(stored).map(drop)
    }
}

/// A graph or a list of them.
#[derive(FromPyObject)]
enum OneOrMore {
    One(AnyGraph),
    More(Vec<AnyGraph>),
}

/// The IRI of a graph that a dataset is made of.
fn graph_iri(graph: AnyGraph) -> PyResult<String> {
    match graph {
        AnyGraph::NamedNode(iri) => Ok(iri.0.into_string()),
        AnyGraph::BlankNode(_) => Err(no_blank_graph()),
        AnyGraph::DefaultGraph(_) => {
            Err(unsupported("the default graph among others in a dataset", "copy it into a named graph"))
        }
    }
}

fn no_blank_graph() -> PyErr {
    unsupported("a blank node as the name of this graph", "give an IRI")
}

fn unsupported(what: &str, instead: &str) -> PyErr {
    errors::named("UnsupportedError", &format!("{what} is not supported; {instead}"))
}

fn refuse_aggregates(aggregates: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match aggregates {
        Some(given) if given.is_truthy().map_err(|_| PyTypeError::new_err("functions are a dict"))? => {
            Err(unsupported("an aggregate of one's own", "work on the answer instead"))
        }
        _ => Ok(()),
    }
}
