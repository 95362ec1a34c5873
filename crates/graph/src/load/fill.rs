//! Loading into a filled database: the choice of the way, and the way by one transaction.
//!
//! A document to be inserted is parsed before its load takes the writer's turn, so others can
//! write meanwhile.
//!
//! Inserting costs per new quad: each changes a few leaves, in memory until the commit. Merging
//! costs per quad, old or new, but reads and writes sequentially. So a load that is small compared
//! with the database is inserted; all others, and those of unknown size, are merged.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use snowmelt_store::{Build, StoreConfig};

use super::ACCOUNT;
use super::dictionary::DictionaryCounts;
use super::left_out::AllLeftOut;
use super::merge::Old;
use super::options::{Fill, LoadOptions, filled_pool_bytes};
use super::progress::{LoadProgress, LoadReport, Phase, Teller, peak_bytes};
use crate::database::GraphDatabase;
use crate::dict::Tree;
use crate::input::error::LoadError;
use crate::input::source::Source;
use crate::namespaces::NamespaceSink;
use crate::progress::ChangeProgress;
use crate::transaction::document::{Document, DocumentReading};
use crate::transaction::staged::Staged;

/// Bytes of text per statement; most have more.
const STATEMENT_BYTES: u64 = 80;
/// Assumed ratio of text to compressed bytes.
const COMPRESSION: u64 = 20;
/// Bytes of memory a quad takes until its transaction is committed; rarely more.
const PRIVATE_BYTES: u64 = 400;

/// Loads into a filled database.
pub(super) fn load(
    path: &Path,
    sources: Vec<Source>,
    options: &LoadOptions,
    progress: &dyn LoadProgress,
    cancel: &AtomicBool,
) -> Result<LoadReport, LoadError> {
    let memory = options.store.memory_bytes;
    let config = StoreConfig { pool_bytes: Some(filled_pool_bytes(memory)), ..options.store.clone() };
    let database = GraphDatabase::open(path, &config)?;
    let build = database.database().store().begin_build()?;
    fill(&database, build, sources, options, progress, cancel)
}

/// Loads into an open, filled database; `build` holds the writer's turn.
pub(super) fn fill(
    database: &Arc<GraphDatabase>,
    build: Build,
    sources: Vec<Source>,
    options: &LoadOptions,
    progress: &dyn LoadProgress,
    cancel: &AtomicBool,
) -> Result<LoadReport, LoadError> {
    match way(database.state()?.quads(), &sources, options) {
        Fill::Insert => {
            drop(build);
            insert(database, sources, options, progress, cancel)
        }
        Fill::Merge => {
            let (old, store) = (Old::open(database)?, database.database().store());
            super::run(build, store, Some(old), sources, options, progress, cancel)
        }
    }
}

/// The cheaper way into a database of `quads` quads.
pub(super) fn way(quads: u64, sources: &[Source], options: &LoadOptions) -> Fill {
    let memory = options.store.memory_bytes;
    options.fill.unwrap_or_else(|| match most_statements(sources) {
        Some(new) if !options.lenient && new < quads / 4 && new * PRIVATE_BYTES < memory / 4 => Fill::Insert,
        _ => Fill::Merge,
    })
}

/// The most statements the sources may have, if their sizes are known.
fn most_statements(sources: &[Source]) -> Option<u64> {
    Some(most_text_bytes(sources)? / STATEMENT_BYTES + sources.len() as u64)
}

/// The most bytes the sources may have decompressed, if their sizes are known.
pub(super) fn most_text_bytes(sources: &[Source]) -> Option<u64> {
    let most = |source: &Source| {
        let text = if source.is_compressed()? { COMPRESSION } else { 1 };
        Some(source.len_bytes()? * text)
    };
    sources.iter().map(most).sum()
}

/// Inserts all sources in one transaction.
pub(super) fn insert(
    database: &Arc<GraphDatabase>,
    sources: Vec<Source>,
    options: &LoadOptions,
    progress: &dyn LoadProgress,
    cancel: &AtomicBool,
) -> Result<LoadReport, LoadError> {
    let bytes_total = sources.iter().map(Source::len_bytes).sum();
    let mut teller = Teller::new(progress, bytes_total);
    let read_bytes = Arc::new(AtomicU64::new(0));
    let (mut triples, mut left_out) = (0, AllLeftOut::default());
    let namespaces = NamespaceSink::default();
    let mut staged = Staged::new(database, Some(&database.database().account(ACCOUNT)));
    for source in sources {
        let input = source.open(options.format, &read_bytes, cancel)?;
        progress.input(&input.name, input.format, input.told_by);
        let document = Document {
            name: &input.name,
            format: input.format,
            base: options.base.as_deref().or(input.base.as_deref()),
            graph: options.graph.as_deref(),
            is_one_graph: false,
            reading: DocumentReading {
                contexts: options.contexts.clone(),
                odd_terms: options.odd_terms,
                lenient: options.lenient,
                namespaces: namespaces.clone(),
            },
        };
        staged.add_told(&document, input.read, cancel, &mut |parsed| {
            triples += parsed.rows.len() as u64;
            left_out.add(parsed, &input.name, 0);
            teller.read(triples, read_bytes.load(Ordering::Relaxed));
        })?;
    }
    left_out.check(triples, options.lenient_most)?;
    let begun = database.begin_while(&|| !cancel.load(Ordering::Relaxed))?;
    let mut txn = begun.ok_or(LoadError::Cancelled)?;
    txn.charge_to(&database.database().account(ACCOUNT));
    txn.insert_staged(staged, cancel, &ChangeProgress::default())?;
    txn.add_namespaces(&namespaces.take());
    teller.phase(Phase::Commit, None);
    super::cancelled(cancel)?;
    txn.commit()?;
    teller.end_phase();
    let state = database.state()?;
    let len = |tree: Tree| state.strings(tree).map_or(0, |strings| strings.len());
    Ok(LoadReport {
        triples,
        skipped: left_out.count,
        left_out: left_out.listed,
        quads: state.quads(),
        terms: DictionaryCounts {
            iris: len(Tree::Iri),
            literals: len(Tree::Literal),
            texts: len(Tree::Text),
            triple_terms: state.triple_terms(),
            blank_nodes: state.meta().blank_nodes,
        },
        input_bytes: read_bytes.load(Ordering::Relaxed),
        database_bytes: database.database().store().bytes(),
        seconds: teller.seconds,
        peak_bytes: peak_bytes(),
        meters: Some(database.database().report()),
        ..LoadReport::default()
    })
}
