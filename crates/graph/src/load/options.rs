//! Options of a load, and the division of its memory.

use std::path::PathBuf;

use oxrdfio::RdfFormat;
use snowmelt_jsonld::Contexts;
use snowmelt_rdfxml::OddTerms;
use snowmelt_store::StoreConfig;

/// Options of a load.
#[derive(Clone)]
pub struct LoadOptions {
    /// The graph for triples that name none; the default graph when absent.
    pub graph: Option<String>,
    /// Base IRI of formats with relative IRIs.
    pub base: Option<String>,
    /// Folders for the data of a new database; if empty, the data lies inside its directory.
    pub stripes: Vec<PathBuf>,
    /// Parser and sorter threads, besides the one that reads and the one that numbers.
    pub threads: usize,
    /// Leave malformed statements out instead of stopping.
    pub lenient: bool,
    /// The share of statements that may be left out, rounded up to whole ones; a load that would
    /// leave out more fails.
    pub lenient_most: f64,
    /// Treatment of terms that the RFCs do not allow.
    pub odd_terms: OddTerms,
    /// Contexts that JSON-LD documents may refer to.
    pub contexts: Contexts,
    /// The format of all inputs; if absent, that of the name or content of each.
    pub format: Option<RdfFormat>,
    /// Settings of the store. Its `memory_bytes` are the budget of the load.
    pub store: StoreConfig,
    /// The way into a filled database; the cheaper one if absent.
    pub fill: Option<Fill>,
    /// Sizes that follow from the memory budget unless set here. What is loaded does not depend
    /// on them.
    pub sizes: LoadSizes,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            graph: None,
            base: None,
            stripes: Vec::new(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            lenient: false,
            lenient_most: 1.0,
            odd_terms: OddTerms::Refused,
            contexts: Contexts::default(),
            format: None,
            store: StoreConfig::default(),
            fill: None,
            sizes: LoadSizes::default(),
        }
    }
}

/// The two ways into a filled database; its contents afterwards are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// One transaction inserts all; the cost depends on the input.
    Insert,
    /// All trees are built anew from old and new; the cost depends on both.
    Merge,
}

/// Sizes of the parts of a load; `None` means by the memory budget. Tests set them low to cover
/// every path.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadSizes {
    /// Bytes of text per chunk.
    pub chunk_bytes: Option<usize>,
    /// Rows sorted at once.
    pub batch_rows: Option<usize>,
    /// Bytes of the table of terms.
    pub table_bytes: Option<u64>,
    /// Bytes of sorted runs kept in memory.
    pub run_bytes: Option<u64>,
    /// Terms per part of the external dictionary merge.
    pub part_terms: Option<usize>,
    /// Runs merged at once.
    pub fan_in: Option<usize>,
}

/// Least memory budget of a load, in bytes.
pub(super) const LEAST_MEMORY: u64 = 64 << 20;
/// Divisor for the page pool's share of memory in a load into a filled database.
const POOL_SHARE: u64 = 4;

/// The pool of a load into a filled database.
pub(super) fn filled_pool_bytes(memory_bytes: u64) -> u64 {
    (memory_bytes / POOL_SHARE).clamp(8 << 20, 1 << 30)
}

/// The page pool of a load into a new database, which reads next to nothing.
pub(super) const POOL_BYTES: u64 = 1 << 20;

/// The final sizes of one load.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) chunk_bytes: usize,
    /// Chunks in circulation.
    pub(super) chunks: usize,
    /// Rows of quads per batch; sorters of narrower rows and hashes have fewer bytes.
    pub(super) batch_rows: usize,
    pub(super) table_bytes: u64,
    pub(super) run_bytes: u64,
    pub(super) part_terms: usize,
    pub(super) fan_in: usize,
}

impl Sizes {
    /// Divides the budget: about a third each for the table of terms and for sorted runs, a tenth
    /// for a part of waiting terms, a thirty-second per thread for rows being sorted, the rest for
    /// chunks, samples and pages.
    pub(super) fn new(options: &LoadOptions) -> Sizes {
        Sizes::within(options.store.memory_bytes.max(LEAST_MEMORY), options.threads, options.sizes)
    }

    /// Divides a budget of `memory` bytes; sizes set in `knobs` are kept.
    pub(super) fn within(memory: u64, threads: usize, knobs: LoadSizes) -> Sizes {
        let share = |divisor: u64, most: u64| (memory / divisor).min(most) as usize;
        Sizes {
            chunk_bytes: knobs.chunk_bytes.unwrap_or(share(256, 1 << 20)),
            chunks: 2 * threads + 2,
            batch_rows: knobs.batch_rows.unwrap_or(share(32 * 32, 1 << 17)),
            table_bytes: knobs.table_bytes.unwrap_or(memory / 100 * 35),
            run_bytes: knobs.run_bytes.unwrap_or(memory / 100 * 33),
            // A slot of 16 bytes per term, between 3/8 and 3/4 full.
            part_terms: knobs.part_terms.unwrap_or(share(10 * 30, u32::MAX.into())),
            // Reading a run takes a segment and a block.
            fan_in: knobs.fan_in.unwrap_or(share(384 << 10, 1024).max(16)),
        }
    }
}
