//! Loads: files and readers into a database, in bulk.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use snowmelt_graph::load::{LoadOptions, LoadProgress as EngineProgress, Progress, Source, load_into};

use crate::error::Result;
use crate::open::Open;

/// A format of RDF documents: [`oxrdfio::RdfFormat`].
pub use oxrdfio::RdfFormat as Format;

/// A load with its options. Several inputs are loaded together, all or nothing.
///
/// ```
/// # let db = snowmelt::Database::in_memory()?;
/// let text: &[u8] = b"<urn:ann> <urn:name> 'Ann' .";
/// let loaded = db
///     .loader()
///     .reader("made up", text)
///     .format(snowmelt::Format::Turtle)
///     .graph("urn:people")
///     .progress(|at| println!("{} statements", at.statements))
///     .run()?;
/// assert_eq!((loaded.statements, loaded.quads), (1, 1));
/// # Ok::<(), snowmelt::Error>(())
/// ```
#[must_use = "nothing is loaded before run"]
pub struct Loader<'a> {
    open: &'a Open,
    sources: Vec<Source>,
    options: LoadOptions,
    progress: Option<ProgressFn<'a>>,
    cancel: Arc<AtomicBool>,
}

type ProgressFn<'a> = Box<dyn Fn(LoadProgress) + Send + Sync + 'a>;

/// How far a load is: see [`Loader::progress`].
///
/// ```
/// fn show(at: snowmelt::LoadProgress) {
///     match at.total {
///         Some(total) => eprintln!("{}: {} of {total}", at.phase, at.done),
///         None => eprintln!("{}: {}", at.phase, at.done),
///     }
/// }
/// # let db = snowmelt::Database::in_memory()?;
/// # let text: &[u8] = b"<urn:a> <urn:p> 1 .";
/// # db.loader().reader("x", text).format(snowmelt::Format::Turtle).progress(show).run()?;
/// # Ok::<(), snowmelt::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadProgress {
    /// The phase: `read`, then the trees that are built, then `commit`.
    pub phase: &'static str,
    /// Statements read so far.
    pub statements: u64,
    /// Units of the phase that are done: bytes while reading, otherwise rows.
    pub done: u64,
    /// All units of the phase, where they are known.
    pub total: Option<u64>,
}

/// Counts of a load.
///
/// ```
/// # let db = snowmelt::Database::in_memory()?;
/// let text: &[u8] = b"<urn:a> <urn:p> 1, 2, 1 .";
/// let loaded = db.loader().reader("text", text).format(snowmelt::Format::Turtle).run()?;
/// assert_eq!((loaded.statements, loaded.quads, loaded.skipped), (3, 2, 0));
/// # Ok::<(), snowmelt::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loaded {
    /// Statements read.
    pub statements: u64,
    /// Malformed statements left out: see [`Loader::lenient`].
    pub skipped: u64,
    /// Quads in the database now.
    pub quads: u64,
    /// Seconds it took.
    pub seconds: f64,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(open: &'a Open) -> Self {
        Loader {
            open,
            sources: Vec::new(),
            options: LoadOptions::default(),
            progress: None,
            cancel: Arc::default(),
        }
    }

    /// Adds a file, plain or compressed (gzip, zstd). Its relative IRIs are resolved against it.
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.sources.push(Source::File(path.as_ref().to_owned()));
        self
    }

    /// Adds something that can be read; errors call it `name`.
    pub fn reader(mut self, name: &str, read: impl Read + Send + 'static) -> Self {
        self.sources.push(Source::Reader { name: name.to_owned(), read: Box::new(read) });
        self
    }

    /// The format of all inputs. By default the name of a file tells it, or else its first bytes.
    pub fn format(mut self, format: Format) -> Self {
        self.options.format = Some(format);
        self
    }

    /// The graph of statements that name none; by default the default graph.
    pub fn graph(mut self, iri: &str) -> Self {
        self.options.graph = Some(iri.to_owned());
        self
    }

    /// The base of relative IRIs, instead of the file's own.
    pub fn base(mut self, iri: &str) -> Self {
        self.options.base = Some(iri.to_owned());
        self
    }

    /// Leaves malformed statements out and counts them, instead of stopping at the first.
    pub fn lenient(mut self, lenient: bool) -> Self {
        self.options.lenient = lenient;
        self
    }

    /// Threads that parse and sort; by default one per core.
    pub fn threads(mut self, threads: usize) -> Self {
        self.options.threads = threads.max(1);
        self
    }

    /// Calls `f` about ten times a second, from any thread.
    pub fn progress(mut self, f: impl Fn(LoadProgress) + Send + Sync + 'a) -> Self {
        self.progress = Some(Box::new(f));
        self
    }

    /// Ends in [`Error::Cancelled`](crate::Error::Cancelled) once the flag is set, by another
    /// thread; nothing has changed then.
    pub fn cancel(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancel = flag;
        self
    }

    /// Loads. Readers see the state before until all is loaded; writers wait.
    ///
    /// # Errors
    /// Nothing has changed then: [`Error::Document`](crate::Error::Document) with the place of a
    /// malformed statement, [`Error::Input`](crate::Error::Input),
    /// [`Error::DiskFull`](crate::Error::DiskFull).
    pub fn run(self) -> Result<Loaded> {
        let begun = Instant::now();
        let Loader { open, sources, options, progress, cancel } = self;
        open.may_wait()?;
        let report = load_into(open.graph(), sources, &options, &Listener(progress), &cancel)?;
        Ok(Loaded {
            statements: report.triples,
            skipped: report.skipped,
            quads: report.quads,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }
}

struct Listener<'a>(Option<ProgressFn<'a>>);

impl EngineProgress for Listener<'_> {
    fn report(&self, at: &Progress) {
        if let Some(listen) = &self.0 {
            let Progress { phase, triples, done, total, .. } = *at;
            listen(LoadProgress { phase: phase.name(), statements: triples, done, total });
        }
    }
}
