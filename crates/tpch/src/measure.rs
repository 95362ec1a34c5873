//! The measurement: load, 22 queries, Q1 by both of its ways, random reads beside it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use snowmelt_engines::{EngineError, Work};
use snowmelt_lab::machine::BlockDevice;
use snowmelt_lab::read::CellResult;
use snowmelt_lab::read::random::{self, RandomRead};
use snowmelt_lab::undo::Undo;
use snowmelt_lab::watch::observe::{Observation, Watcher};
use snowmelt_lab::watch::phase::Phase;
use snowmelt_lab::watch::tree::Tree;
use snowmelt_lab::{Behind, JsonLines, LabError};

use crate::answers::{digest, known};
use crate::database::Database;
use crate::error::TpchError;
use crate::load::load;
use crate::options::TpchOptions;
use crate::queries;
use crate::result::{QueryRun, State, TpchResult, Way};

/// One process, and only the wanted way.
const FULL_SCAN: &str =
    "SET max_parallel_workers_per_gather = 0; SET enable_indexscan = off; SET enable_bitmapscan = off;";
const INDEX_SCAN: &str =
    "SET max_parallel_workers_per_gather = 0; SET enable_seqscan = off; SET enable_bitmapscan = off;";

/// Measures everything that `options` asks for. `told` is called with a line for each step,
/// `seconds` gets the intervals of the watch as they end. The server is stopped and the device's
/// read-ahead set back when this returns; the folder stays.
///
/// # Errors
/// PostgreSQL is missing or fails, a setting is refused, or a signal asked for an end.
pub fn measure(
    options: &TpchOptions,
    work: &Work,
    seconds: Option<JsonLines>,
    told: &dyn Fn(&str),
) -> Result<TpchResult, TpchError> {
    let engine = options.engine(work.clone())?;
    let version = engine.find()?.version;
    let device = options.device()?;
    let name = snowmelt_lab::trace::target::TraceTarget::find(&options.dir)?.name;
    let is_there = options.is_loaded();
    if !is_there {
        engine.create()?;
    }
    let observation = Observation::begin(Tree::empty(), vec![name.clone()], options.interval, seconds);
    let watcher = Watcher::start(observation)?;
    let mut bench = TpchBench {
        options,
        database: Database::new(&engine, &watcher),
        read_ahead: ReadAheadSetting::read(&device)?,
        behind: Behind::find(&device.name),
        stop: &work.stop,
        told,
        queries: Vec::new(),
        plans: Vec::new(),
        doubts: Vec::new(),
    };
    let (bytes, random) = bench.run(is_there)?;
    let TpchBench { mut queries, plans, mut doubts, .. } = bench;
    let observed = watcher.finish()?;
    for query in &mut queries {
        query.phase = observed.phases.iter().find(|phase| phase.name == query.name).cloned();
    }
    for cell in &random {
        let name = snowmelt_lab::read::name_of(&cell.cell);
        doubts.extend(cell.doubts.iter().map(|doubt| format!("random reads, {name}: {doubt}")));
    }
    let is_load = |phase: &&Phase| !phase.name.is_empty() && queries.iter().all(|q| q.name != phase.name);
    let of_load =
        observed.phases.iter().filter(is_load).filter(|phase| phase.name != RANDOM).cloned().collect();
    Ok(TpchResult {
        scale: options.scale,
        version,
        shared_buffers_mb: engine.value("shared-buffers").and_then(|n| n.parse().ok()).unwrap_or(0),
        workers: options.threads,
        device: name,
        bytes,
        load: of_load,
        queries,
        plans,
        random,
        observed,
        doubts,
    })
}

/// Name of the phase of the random reads.
const RANDOM: &str = "random reads";

struct TpchBench<'a> {
    options: &'a TpchOptions,
    database: Database<'a>,
    read_ahead: ReadAheadSetting,
    behind: Option<Behind>,
    stop: &'a AtomicBool,
    told: &'a dyn Fn(&str),
    queries: Vec<QueryRun>,
    plans: Vec<(Way, String)>,
    doubts: Vec<String>,
}

impl TpchBench<'_> {
    /// Runs all steps. Returns the bytes of the database and of lineitem, and the random reads.
    fn run(&mut self, is_there: bool) -> Result<((u64, u64), Vec<CellResult>), TpchError> {
        self.behind.as_ref().map_or(Ok(()), Behind::reset)?;
        self.database.start()?;
        if !is_there {
            load(&self.database, self.options.scale, self.told)?;
            self.options.note_loaded()?;
        }
        let size = |what: &str| self.database.number(what);
        let bytes = (size("SELECT pg_database_size('tpch')")?, size("SELECT pg_relation_size('lineitem')")?);
        self.power()?;
        if self.options.q1 {
            self.q1()?;
        }
        let file = self.database.file_of("lineitem")?;
        self.database.stop()?;
        let random = if self.options.random_s > 0.0 { self.random(&file)? } else { Vec::new() };
        self.read_ahead.back()?;
        self.doubts.extend(self.behind.as_ref().and_then(Behind::doubt));
        Ok((bytes, random))
    }

    /// The queries, each cold, then warm.
    fn power(&mut self) -> Result<(), TpchError> {
        for query in self.options.queries.clone() {
            for state in [State::Cold, State::Warm] {
                self.query(query, Way::Planned, state)?;
            }
        }
        Ok(())
    }

    /// Q1 by both ways, with each read-ahead.
    fn q1(&mut self) -> Result<(), TpchError> {
        for kb in self.options.read_ahead_kb.clone() {
            // The kernel takes it when a file is opened: the restart of a cold run does that.
            self.database.stop()?;
            self.read_ahead.set(kb)?;
            self.database.start()?;
            for way in [Way::FullScan, Way::IndexScan] {
                if !self.plans.iter().any(|(other, _)| *other == way) {
                    self.plan(way)?;
                }
                for state in [State::Cold, State::Warm] {
                    self.query(1, way, state)?;
                }
            }
        }
        self.database.stop()?;
        self.read_ahead.back()?;
        self.database.start()
    }

    /// Checks that the planner takes the wanted way.
    fn plan(&mut self, way: Way) -> Result<(), TpchError> {
        let explain = format!("EXPLAIN (COSTS OFF) {}", queries::text(1, self.options.scale));
        let plan = self.database.ask(settings(way), &explain)?.lines.join("\n");
        let wanted = match way {
            Way::IndexScan => "Index Scan using lineitem_shipdate",
            Way::FullScan | Way::Planned => "Seq Scan on lineitem",
        };
        if !plan.contains(wanted) {
            return Err(TpchError::Answer { wanted: format!("a plan with {wanted}"), got: plan });
        }
        self.plans.push((way, plan));
        Ok(())
    }

    fn query(&mut self, query: u32, way: Way, state: State) -> Result<(), TpchError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(EngineError::Interrupted.into());
        }
        let kb = self.read_ahead.now()?;
        let name = match way {
            Way::Planned => format!("Q{query} {}", state.words()),
            _ => format!("Q1 {}, read-ahead {kb}, {}", way.words(), state.words()),
        };
        let cached_pages = match state {
            State::Cold => Some(self.database.restart_cold()?),
            State::Warm => None,
        };
        if let Some(pages) = cached_pages.filter(|pages| *pages > 0) {
            self.doubts
                .push(format!("{name}: {pages} pages of the database stayed in the page cache: not cold"));
        }
        let before = self.blocks_read()?;
        self.database.watcher().mark(&name);
        let answered = self.database.ask(settings(way), &queries::text(query, self.options.scale));
        self.database.watcher().mark("");
        let answered = answered?;
        let blocks_read = self.blocks_read()?.saturating_sub(before);
        let digest = digest(answered.lines.iter().map(String::as_str));
        let correct = known(self.options.scale, query).map(|right| right == digest);
        if correct == Some(false) {
            self.doubts.push(format!("{name}: the answer is wrong ({} rows)", digest.rows));
        }
        (self.told)(&format!("{name:44} {:9.3} s {:6} rows", answered.seconds, digest.rows));
        self.queries.push(QueryRun {
            name,
            query,
            way,
            state,
            read_ahead_kb: kb,
            seconds: answered.seconds,
            rows: digest.rows,
            digest: format!("{:016x}", digest.hash),
            correct,
            cached_pages,
            blocks_read,
            phase: None,
        });
        Ok(())
    }

    /// A process adds its counts when it ends: each statement has one of its own.
    fn blocks_read(&self) -> Result<u64, TpchError> {
        self.database.number("SELECT blks_read FROM pg_stat_database WHERE datname = 'tpch'")
    }

    /// Random reads of a table's file as E4 made them of the device.
    fn random(&mut self, file: &Path) -> Result<Vec<CellResult>, TpchError> {
        self.database.watcher().mark(RANDOM);
        let mut cells = Vec::new();
        for bytes in [8 << 10, 16 << 10] {
            for align in [bytes, 512] {
                for (direct, read_ahead_kb) in [(true, None), (false, Some(0))] {
                    cells.push(RandomRead { bytes, align, direct, read_ahead_kb });
                }
            }
        }
        let kb = self.read_ahead.first;
        cells.push(RandomRead { bytes: 8 << 10, align: 8 << 10, direct: false, read_ahead_kb: Some(kb) });
        (self.told)(&format!("random reads of {}: {} cells", file.display(), cells.len()));
        let runtime = Duration::from_secs_f64(self.options.random_s);
        let results = random::measure(file, &cells, runtime, &self.read_ahead.undo, self.stop);
        self.database.watcher().mark("");
        Ok(results?)
    }
}

fn settings(way: Way) -> &'static str {
    match way {
        Way::Planned => "",
        Way::FullScan => FULL_SCAN,
        Way::IndexScan => INDEX_SCAN,
    }
}

/// The read-ahead of the device, set back when this is dropped, and by `lab restore`.
struct ReadAheadSetting {
    path: std::path::PathBuf,
    /// At the beginning.
    first: u64,
    undo: Undo,
}

impl ReadAheadSetting {
    fn read(device: &BlockDevice) -> Result<ReadAheadSetting, TpchError> {
        let path = device.sys().join("queue/read_ahead_kb");
        let mut setting = ReadAheadSetting { path, first: 0, undo: Undo::open("tpch-read-ahead")? };
        setting.first = setting.now()?;
        Ok(setting)
    }

    fn now(&self) -> Result<u64, TpchError> {
        let text = std::fs::read_to_string(&self.path).map_err(|e| LabError::file("read", &self.path, e))?;
        Ok(text.trim().parse().unwrap_or(0))
    }

    /// Sets it; without a number, as it was at the beginning.
    fn set(&self, kb: Option<u64>) -> Result<(), TpchError> {
        Ok(self.undo.set(&self.path, &kb.unwrap_or(self.first).to_string())?)
    }

    fn back(&self) -> Result<(), TpchError> {
        self.set(None)
    }
}
