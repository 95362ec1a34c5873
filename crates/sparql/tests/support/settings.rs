//! Settings under which answers must not change, and a database opened with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use oxrdf::{Quad, Triple};
use oxrdfio::{RdfFormat, RdfParser};
use snowmelt_database::OpenOptions;
use snowmelt_graph::load::{self, LoadOptions, Source};
use snowmelt_graph::{DumpFormat, GraphDatabase};
use snowmelt_io::{IoEngine, QueueConfig};
use snowmelt_sparql::results::ResultFormat;
use snowmelt_sparql::{
    QueryEngine, QueryError, QueryKind, QueryOptions, RemoteEndpoints, UpdateOptions, Updated,
};
use snowmelt_store::{PAGE_BYTES, ReadAhead};
use sparesults::QueryResultsFormat;

use super::answer::{self, Answer};
use super::data;

/// How a database is opened and queried.
#[derive(Clone)]
pub struct Settings {
    pub name: &'static str,
    pub store: OpenOptions,
    /// rows per batch; None: the engine's own choice
    pub batch_rows: Option<usize>,
    /// rows that surprise a plan; None: far more than expected
    pub surprise_rows: Option<u64>,
    /// work for which a thread is forked; None: so much that it pays
    pub thread_work: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        let store = OpenOptions { memory_bytes: 256 << 20, direct: false, ..OpenOptions::default() };
        Settings { name: "default settings", store, batch_rows: None, surprise_rows: None, thread_work: None }
    }
}

impl Settings {
    /// One hardship at a time, then several together.
    pub fn hostile() -> Vec<Settings> {
        let base = Settings::default();
        let store = |name: &'static str, change: &dyn Fn(&mut OpenOptions)| {
            let mut settings = Settings { name, ..base.clone() };
            change(&mut settings.store);
            settings
        };
        let ahead = |name: &'static str, change: &dyn Fn(&mut ReadAhead)| {
            store(name, &|s| {
                s.read_ahead = ReadAhead::all();
                change(&mut s.read_ahead);
            })
        };
        let engine =
            |name, engine| store(name, &|s| s.queue = QueueConfig { engine, ..QueueConfig::default() });
        vec![
            store("a pool of 64 pages", &|s| s.pool_bytes = Some(64 * PAGE_BYTES as u64)),
            engine("engine uring", IoEngine::Uring),
            engine("engine threads", IoEngine::Threads),
            engine("engine inline", IoEngine::Inline),
            ahead("no start-up rule", &|r| r.start_up = false),
            ahead("no extent rule", &|r| r.extent = false),
            ahead("no planned rule", &|r| r.planned = false),
            ahead("no scan rule", &|r| r.scan = false),
            store("extents of 8 pages", &|s| s.extent_pages = 8),
            Settings { name: "batches of one row", batch_rows: Some(1), ..base.clone() },
            Settings { name: "plans given up at once", surprise_rows: Some(0), ..base.clone() },
            Settings { name: "forks for nothing", thread_work: Some(Duration::ZERO), ..base.clone() },
            Settings {
                batch_rows: Some(3),
                surprise_rows: Some(1),
                ..store("64 pages, extents of 8, batches of 3, inline, no read-ahead, surprises", &|s| {
                    s.pool_bytes = Some(64 * PAGE_BYTES as u64);
                    s.extent_pages = 8;
                    s.queue = QueueConfig { engine: IoEngine::Inline, ..QueueConfig::default() };
                    s.read_ahead = ReadAhead::none();
                })
            },
        ]
    }
}

/// A loaded database in a folder of its own, which goes with it.
pub struct Stored {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Stored {
    /// A database of these quads.
    pub fn of_quads(quads: &[Quad], settings: &Settings) -> Arc<Self> {
        let text = data::n_quads(quads);
        let source =
            Source::Reader { name: "test data".to_owned(), read: Box::new(std::io::Cursor::new(text)) };
        Self::of_source(source, Some(RdfFormat::NQuads), settings)
    }

    /// A database of a file, compressed or not.
    pub fn of_file(file: &Path, settings: &Settings) -> Arc<Self> {
        Self::of_source(Source::File(file.to_owned()), None, settings)
    }

    fn of_source(source: Source, format: Option<RdfFormat>, settings: &Settings) -> Arc<Self> {
        let folder = tempfile::Builder::new().prefix("snowmelt-test-").tempdir().expect("a temporary folder");
        let path = folder.path().join("db");
        let load_options =
            LoadOptions { format, threads: 1, store: settings.store.clone(), ..LoadOptions::default() };
        load::load(&path, vec![source], &load_options, &(), &AtomicBool::new(false))
            .unwrap_or_else(|e| panic!("loading under {}: {e}", settings.name));
        Arc::new(Stored { path, _folder: folder })
    }
}

/// Rows of a query, and the most bytes that it held.
#[derive(Debug)]
pub struct Counted {
    pub rows: usize,
    pub most_bytes: usize,
}

/// An engine on a database opened with some settings. One at a time per database.
pub struct Fixture {
    engine: QueryEngine,
    options: QueryOptions,
    _stored: Arc<Stored>,
}

impl Fixture {
    /// A database of these quads, opened.
    pub fn open(quads: &[Quad], settings: &Settings) -> Self {
        Self::on(Stored::of_quads(quads, settings), settings)
    }

    /// Opens a database that was loaded with the same extents.
    pub fn on(stored: Arc<Stored>, settings: &Settings) -> Self {
        let db = GraphDatabase::open(&stored.path, &settings.store)
            .unwrap_or_else(|e| panic!("opening under {}: {e}", settings.name));
        let Settings { batch_rows, surprise_rows, thread_work, .. } = *settings;
        let threads = if thread_work.is_some() { 3 } else { 0 };
        let options =
            QueryOptions { batch_rows, surprise_rows, thread_work, threads, ..QueryOptions::default() };
        Fixture { engine: QueryEngine::new(db), options, _stored: stored }
    }

    /// With endpoints that queries and updates may ask.
    #[must_use]
    pub fn asking(mut self, remote: Option<Arc<dyn RemoteEndpoints>>) -> Self {
        self.options.remote = remote;
        self
    }

    /// The answer to a query that may ask these endpoints.
    pub fn answer_with(
        &self,
        query: &str,
        remote: Option<Arc<dyn RemoteEndpoints>>,
    ) -> Result<Answer, QueryError> {
        self.answer_of(query, &QueryOptions { remote, ..self.options.clone() })
    }

    /// The work of a query that has so much memory at most.
    #[allow(dead_code, reason = "not all test programs measure it")]
    pub fn counted(&self, query: &str, memory: Option<usize>) -> Result<Counted, QueryError> {
        let options = QueryOptions { memory, ..self.options.clone() };
        let mut result = self.engine.query(query, &options)?;
        let mut rows = 0;
        while let Some(batch) = result.next_batch()? {
            rows += batch.rows;
        }
        Ok(Counted { rows, most_bytes: result.memory().most_bytes() })
    }

    /// The plan of a query, with what running it did.
    pub fn analyze(&self, query: &str) -> Result<String, QueryError> {
        self.engine.analyze(query, &self.options)
    }

    /// The answer to a query, by way of the text it is written as.
    pub fn answer(&self, query: &str, base: Option<&str>) -> Result<Answer, QueryError> {
        let mut options = self.options.clone();
        options.base = base.map(str::to_owned);
        self.answer_of(query, &options)
    }

    fn answer_of(&self, query: &str, options: &QueryOptions) -> Result<Answer, QueryError> {
        let _named = NamedPanic { engine: &self.engine, query, options };
        let result = self.engine.query(query, options)?;
        let format = match result.kind() {
            QueryKind::Graph => ResultFormat::NTriples,
            _ => ResultFormat::Json,
        };
        let is_graph = matches!(result.kind(), QueryKind::Graph);
        let mut bytes = Vec::new();
        result.write(format, &mut bytes)?;
        if is_graph {
            let parser = RdfParser::from_format(RdfFormat::NTriples);
            let triples =
                parser.for_slice(&bytes).map(|q| Triple::from(q.expect("what we write can be read")));
            return Ok(Answer::Graph(triples.collect()));
        }
        Ok(answer::read(QueryResultsFormat::Json, &bytes).expect("what we write can be read"))
    }

    /// Runs an update; its commit is durable.
    #[allow(dead_code, reason = "not all test programs change data")]
    pub fn update(&self, text: &str, base: Option<&str>) -> Result<Updated, QueryError> {
        let options = UpdateOptions {
            base: base.map(str::to_owned),
            batch_rows: self.options.batch_rows,
            surprise_rows: self.options.surprise_rows,
            thread_work: self.options.thread_work,
            threads: self.options.threads,
            remote: self.options.remote.clone(),
            ..UpdateOptions::default()
        };
        self.engine.update(text, &options)
    }

    /// Runs an update that may wait so long for endpoints.
    #[allow(dead_code, reason = "not all test programs ask endpoints")]
    pub fn update_waiting(&self, text: &str, longest: Duration) -> Result<Updated, QueryError> {
        let remote = self.options.remote.clone();
        let options = UpdateOptions { remote, remote_wait: Some(longest), ..UpdateOptions::default() };
        self.engine.update(text, &options)
    }

    /// All quads there are.
    #[allow(dead_code, reason = "not all test programs change data")]
    pub fn quads(&self) -> Vec<Quad> {
        let mut bytes = Vec::new();
        self.engine.graph().dump(DumpFormat::NQuads, &mut bytes).expect("a dump of a sound database");
        let parser = RdfParser::from_format(RdfFormat::NQuads);
        parser.for_slice(&bytes).map(|q| q.expect("what we write can be read")).collect()
    }

    /// A fault of the database, if it has one.
    #[allow(dead_code, reason = "not all test programs change data")]
    pub fn check(&self) -> Result<(), String> {
        let report = self.engine.graph().check(&mut |_| {}).map_err(|e| e.to_string())?;
        if report.is_sound() { Ok(()) } else { Err(format!("not sound: {:?}", report.problems)) }
    }

    /// The answer as text.
    pub fn text(&self, query: &str, base: Option<&str>, format: ResultFormat) -> Result<String, QueryError> {
        let mut options = self.options.clone();
        options.base = base.map(str::to_owned);
        let mut bytes = Vec::new();
        self.engine.query(query, &options)?.write(format, &mut bytes)?;
        Ok(String::from_utf8(bytes).expect("results are UTF-8"))
    }
}

/// Tells query and plan when it ends in a panic: a seed of a long run may be far from it.
struct NamedPanic<'a> {
    engine: &'a QueryEngine,
    query: &'a str,
    options: &'a QueryOptions,
}

impl Drop for NamedPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let plan = self.engine.explanation(self.query, self.options).map(|plan| plan.to_string());
            eprintln!("the panic is of the query:\n{}\n{}", self.query, plan.unwrap_or_default());
        }
    }
}
