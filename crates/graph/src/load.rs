//! Bulk load: from RDF files to a database, in one pass over the text.
//!
//! 1. **Read** (`read`): chunks of text become partial dictionaries and rows of references
//!    (`ntriples`, `document`, `intern`); terms get numbers by first occurrence (`numbering`,
//!    `table`), strings go straight to the string trees (`dictionary`); rows with ids are
//!    sorted batch by batch into packed runs (`sorter`, `runs`, `pack`).
//! 2. **Terms** (`waiting`): only if the table of terms outgrew its memory: an external merge
//!    numbers the remaining terms.
//! 3. **Hashes**, **indexes** (`index`): runs are merged, trees are built from the bottom up.
//! 4. **Commit**: the super-block is switched. Nothing is visible before that; a new database gets
//!    its name after it.
//!
//! `compact` rewrites all trees with the same machinery, beside readers and writers (`rewrite`).
//!
//! A filled database is loaded into in one of two ways, the cheaper one (`fill`): a transaction
//! inserts the input, batch by batch; or the same four steps run with the existing contents before
//! the input (`merge`).
//!
//! Invariants: memory is bounded by the budget (`options`), whatever the input; the bytes of
//! the database depend on the input alone, not on threads or memory; temporary files (`temp`)
//! live in one folder that is removed when the load ends.

mod account;
mod at_hand;
mod dictionary;
mod fill;
mod index;
mod left_out;
mod merge;
mod numbering;
mod options;
mod pack;
mod progress;
mod read;
pub(crate) mod rebuild;
pub(crate) mod rewrite;
mod runs;
mod sorter;
mod strings;
mod table;
mod temp;
mod waiting;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use snowmelt_store::{Build, NewStore, Store, StoreConfig, StoreError, Waiter};

use self::account::LoadMemory;
use self::dictionary::{Dictionary, HashSorters, RECORD_KIND};
use self::fill::most_text_bytes;
use self::index::Indexer;
use self::merge::Old;
use self::numbering::Numbering;
use self::options::{LEAST_MEMORY, POOL_BYTES, Sizes};
use self::progress::Teller;
use self::read::{GraphsSeen, Reading};
use self::runs::RunStore;
use self::sorter::Sorter;
use self::strings::{MANY_STRINGS, MUCH_TEXT, SAMPLE_BYTES};
use self::temp::TempSpace;
use self::waiting::{Waiting, WaitingRows, WaitingSorters};
use crate::database::GraphDatabase;
use crate::dict::{self, GraphMeta};
use crate::input::{cancelled, graph_name};
use crate::namespaces::{Namespaces, RECORD_NAMESPACES};

pub use crate::input::error::{DocumentSetting, LoadError, LoadOption};
pub use crate::input::left_out::LeftOut;
pub use crate::input::source::{FormatToldBy, Source, format_named, format_of_media_type};
pub use dictionary::DictionaryCounts;
pub use options::{Fill, LoadOptions, LoadSizes};
pub use progress::{LoadProgress, LoadReport, Phase, Progress};
pub use snowmelt_jsonld::{Contexts, ContextsError};
pub use snowmelt_rdfxml::OddTerms;

/// The account that is charged for the reads of loads.
const ACCOUNT: &str = "load";

/// Loads `sources` into the database at `path`, which is created if there is none.
///
/// All or nothing: on an error, or when `cancel` becomes true, the database is as it was. The
/// bytes of a database that was empty depend on the input alone.
pub fn load(
    path: &Path,
    sources: Vec<Source>,
    options: &LoadOptions,
    progress: &dyn LoadProgress,
    cancel: &AtomicBool,
) -> Result<LoadReport, LoadError> {
    check(&sources, options)?;
    let opened = open(path, options)?;
    let store = match &opened {
        Opened::New(new) => new.store(),
        Opened::Old(store) => store,
    };
    let filled = match store.catalog(dict::RECORD_META) {
        Some(record) => GraphMeta::from_bytes(&record)?.quads > 0,
        None => false,
    };
    if filled {
        drop(opened);
        return fill::load(path, sources, options, progress, cancel);
    }
    let build = store.begin_build()?;
    let report = run(build, store, None, sources, options, progress, cancel)?;
    if let Opened::New(new) = opened {
        new.finish()?;
    }
    Ok(report)
}

/// Loads `sources` into an open database, beside its readers: they see the old state until all is
/// loaded. The settings of the open store apply, not those of `options`; memory is taken from the
/// store's budget.
///
/// A load that is small compared with the database is parsed before it takes the writer's turn.
/// For a larger one, inputs that are readers are read to their end before that, however slow they
/// are; then writers wait until the load ends.
///
/// # Errors
/// Fails as [`load`] does; then nothing is loaded.
pub fn load_into(
    database: &Arc<GraphDatabase>,
    sources: Vec<Source>,
    options: &LoadOptions,
    progress: &dyn LoadProgress,
    cancel: &AtomicBool,
) -> Result<LoadReport, LoadError> {
    let store = database.database().store();
    // Half of the free memory, since queries go on. If that is too little for building trees, the
    // load inserts.
    let share = (store.memory().free() / 2).max(LEAST_MEMORY);
    let reserved = store.memory().reserve("a load", share);
    let memory_bytes = reserved.as_ref().map_or(LEAST_MEMORY, |_| share);
    let config = StoreConfig { memory_bytes, ..store.config().clone() };
    let options = LoadOptions { store: config, ..options.clone() };
    check(&sources, &options)?;
    let quads = database.state()?.quads();
    if reserved.is_err() || quads > 0 && fill::way(quads, &sources, &options) == Fill::Insert {
        drop(reserved);
        return fill::insert(database, sources, &options, progress, cancel);
    }
    let sources = at_hand::all(database, sources, cancel)?;
    // During a rewrite of the trees the load inserts, so that the rewrite receives its changes.
    let go_on = || !cancel.load(Ordering::Relaxed);
    let build = match store.begin_build_for(&Waiter { go_on: &go_on, sign: None }) {
        Err(StoreError::BuildBusy) if database.is_rewritten() => None,
        build => Some(build?.ok_or(LoadError::Cancelled)?),
    };
    // From here on no rewrite can begin.
    let Some(build) = build.filter(|_| !database.is_rewritten()) else {
        drop(reserved);
        return fill::insert(database, sources, &options, progress, cancel);
    };
    if database.state()?.quads() == 0 {
        return run(build, store, None, sources, &options, progress, cancel);
    }
    fill::fill(database, build, sources, &options, progress, cancel)
}

fn run(
    build: Build,
    store: &Arc<Store>,
    old: Option<Old>,
    sources: Vec<Source>,
    options: &LoadOptions,
    progress: &dyn LoadProgress,
    cancel: &AtomicBool,
) -> Result<LoadReport, LoadError> {
    let temp = TempSpace::create(&store.work_dir())?;
    let bytes_total = sources.iter().map(Source::len_bytes).sum();
    let mut teller = Teller::new(progress, bytes_total);
    let sizes = Sizes::new(options);
    let namespaces = kept_namespaces(store);
    let loading = Loading { options, sizes, build, old, namespaces, temp, cancel };
    let report = loading.run(sources, &mut teller)?;
    Ok(LoadReport {
        database_bytes: store.bytes(),
        seconds: teller.seconds,
        peak_bytes: progress::peak_bytes(),
        meters: Some(store.report()),
        ..report
    })
}

/// The prefixes in the catalog.
fn kept_namespaces(store: &Store) -> Namespaces {
    store.catalog(RECORD_NAMESPACES).map_or_else(Namespaces::default, |bytes| Namespaces::from_bytes(&bytes))
}

/// Checks options and sources before anything is changed.
fn check(sources: &[Source], options: &LoadOptions) -> Result<(), LoadError> {
    if options.store.memory_bytes < LEAST_MEMORY {
        return Err(LoadError::Option {
            option: LoadOption::Memory,
            message: format!("a load needs at least {} MiB", LEAST_MEMORY >> 20),
        });
    }
    for source in sources {
        source.check()?;
    }
    graph_name(options.graph.as_deref())?;
    Ok(())
}

/// The database that is loaded into.
enum Opened {
    /// A new database: a load that fails or is killed leaves none.
    New(NewStore),
    Old(Arc<Store>),
}

/// Opens the database, or creates it.
fn open(path: &Path, options: &LoadOptions) -> Result<Opened, LoadError> {
    let config = StoreConfig { pool_bytes: Some(POOL_BYTES), ..options.store.clone() };
    match Store::create_unfinished(path, &options.stripes, config.clone()) {
        Err(StoreError::Exists { .. }) => Ok(Opened::Old(Store::open(path, config)?)),
        made => Ok(Opened::New(made?)),
    }
}

struct Loading<'a> {
    options: &'a LoadOptions,
    sizes: Sizes,
    build: Build,
    /// existing contents, which go before the input
    old: Option<Old>,
    /// the prefixes of before
    namespaces: Namespaces,
    temp: Arc<TempSpace>,
    cancel: &'a AtomicBool,
}

impl Loading<'_> {
    fn run(self, sources: Vec<Source>, teller: &mut Teller<'_>) -> Result<LoadReport, LoadError> {
        let Loading { options, sizes, build, mut old, mut namespaces, temp, cancel } = self;
        let account = LoadMemory::new(sizes.run_bytes);
        let run_store = |name| RunStore::new(name, &temp, &account);
        // Hashes are sorted by the numbering thread alone, three trees at a time.
        let hash_rows = (sizes.batch_rows / 2).max(1);
        let hashes = HashSorters::new(run_store, hash_rows, sizes.fan_in);
        let quads = Sorter::new(run_store("psog"), sizes.batch_rows, sizes.fan_in);
        let waiting_rows = WaitingRows::new(run_store("waiting-rows"));

        let is_much = most_text_bytes(&sources).is_none_or(|bytes| bytes >= MUCH_TEXT)
            || old.as_ref().is_some_and(|old| old.string_bytes() >= MANY_STRINGS);
        let dictionary = Dictionary::new(&build, &hashes, SAMPLE_BYTES, is_much);
        let mut numbering = Numbering::new(dictionary, sizes.table_bytes, || {
            let sorters = WaitingSorters::new(run_store, hash_rows, sizes.fan_in);
            Ok(Waiting::new(sorters, temp.file("waiting-terms")?, sizes.part_terms))
        });
        let mut graphs = GraphsSeen::None;
        let old_quads = old.as_ref().map_or(0, Old::quads);
        if let Some(old) = &mut old {
            let codes = |name| Sorter::new(run_store(name), hash_rows, sizes.fan_in);
            old.number_terms(&mut numbering, &codes, cancel)?;
            let mut batch = quads.batch();
            graphs = old.each_quad(|quad| batch.push(quad), cancel)?;
            batch.finish()?;
        }
        let reading = Reading { options, sizes, quads: &quads, waiting_rows: &waiting_rows, cancel };
        let summary = read::read(reading, sources, &mut numbering, teller)?;
        graphs.join(summary.graphs);

        let Numbering { mut dictionary, waiting, .. } = numbering;
        if let Some(waiting) = waiting {
            teller.phase(Phase::Terms, Some(waiting.terms() * 2));
            let mut batch = quads.batch();
            waiting.resolve(&mut dictionary, waiting_rows, &mut batch, cancel, |done| teller.done(done))?;
            batch.finish()?;
        }
        let format = dictionary.format();
        let terms = dictionary.finish(&build)?;
        let mut indexer =
            Indexer { build: &build, sizes, threads: options.threads, store: &run_store, cancel, teller };
        indexer.hashes(&hashes, terms.iris + terms.literals + terms.texts)?;
        indexer.triple_terms(&hashes.triple, terms.triple_terms)?;
        let rows = old_quads + summary.triples;
        let distinct = indexer.quads(quads, rows, graphs)?;
        assert!(distinct <= rows, "no quad was made up");

        teller.phase(Phase::Commit, None);
        let meta = GraphMeta {
            format,
            quads: distinct,
            blank_nodes: terms.blank_nodes,
            plain: graphs.is_plain(),
            ..GraphMeta::default()
        };
        namespaces.join(&summary.namespaces);
        commit(build, &meta, &namespaces, cancel)?;
        teller.end_phase();
        Ok(LoadReport {
            triples: summary.triples,
            skipped: summary.left_out.count,
            left_out: summary.left_out.listed,
            quads: distinct,
            terms,
            input_bytes: summary.bytes,
            temporary_bytes: temp.bytes(),
            ..LoadReport::default()
        })
    }
}

/// Commits the built trees as the database.
fn commit(
    build: Build,
    meta: &GraphMeta,
    namespaces: &Namespaces,
    cancel: &AtomicBool,
) -> Result<(), LoadError> {
    build.put_record(dict::RECORD_META, RECORD_KIND, &meta.to_bytes());
    if !namespaces.is_empty() {
        build.put_record(RECORD_NAMESPACES, RECORD_KIND, &namespaces.to_bytes());
    }
    cancelled(cancel)?;
    Ok(build.commit()?)
}
