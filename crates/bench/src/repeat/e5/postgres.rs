//! PostgreSQL's scans of a table on an emulated disk: processes that share blocks, as its parallel
//! scan does, and processes with ranges of their own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use snowmelt_engines::{Adapter, Engine};

use super::SCHEDULERS;
use crate::repeat::server;
use crate::repeat::steps::{LabStep, Steps};

/// One row in each page of 8 KiB, as in the table of E5.
const TABLE: &str = "CREATE UNLOGGED TABLE scanned (id int, pad text);
ALTER TABLE scanned ALTER pad SET STORAGE PLAIN;
INSERT INTO scanned SELECT n, repeat('x', 7000) FROM generate_series(1, ROWS) n;
ALTER TABLE scanned SET (parallel_workers = 79);
";
/// Without it the first scan of each page would write.
const FROZEN: &str = "VACUUM (FREEZE) scanned;\nCHECKPOINT;\n";
/// Memory that PostgreSQL may use.
const MEMORY: u64 = 64 << 20;
const DATABASE: &str = "postgres";

/// Both ways, under each scheduler.
pub struct PostgresScans {
    /// Processes of one query, that take blocks from one counter.
    pub shared: LabStep,
    /// Queries of a range each.
    pub ranges: LabStep,
}

/// Scans a table of `pages` pages in a folder on the disk.
pub fn scans(steps: &mut Steps<'_>, folder: &Path, pages: u64, dop: &str) -> Result<PostgresScans> {
    let mut adapter = Adapter::named("postgresql")?;
    // A scan of a range fills all buffers, and the next would find its last pages there.
    let more =
        ["max_worker_processes=100", "max_parallel_workers=100", "max_connections=120", "shared_buffers=1MB"];
    adapter.start.extend(more.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]));
    let engine = server::engine(steps, adapter, &server::Place::without_data(folder), MEMORY)?;
    let running = engine.start()?;
    let done = table(steps, &engine, pages).and_then(|file| {
        let scripts = Scripts::write(steps, &engine, pages)?;
        let mut scan = |title: &str, name: &str, script: &Path| {
            let exec = format!("sh {} {{dop}}", quoted(&script.display().to_string()));
            let file = file.display().to_string();
            let args =
                ["scan", &file, "--exec", &exec, "--scheduler", SCHEDULERS, "--dop", dop, "--repeat", "3"];
            steps.lab(title, name, "cells", &args)
        };
        Ok(PostgresScans {
            shared: scan("PostgreSQL's parallel scan", "postgres-shared", &scripts.shared)?,
            ranges: scan("PostgreSQL, a query for each range", "postgres-ranges", &scripts.ranges)?,
        })
    });
    let stopped = running.stop();
    let done = done?;
    stopped?;
    Ok(done)
}

/// Makes the table; its file.
fn table(steps: &mut Steps<'_>, engine: &Engine, pages: u64) -> Result<PathBuf> {
    steps.say(&format!("PostgreSQL: a table of {pages} pages of one row"));
    let ask = |text: &str| engine.command("sql", &[("text", text), ("database", DATABASE)]);
    for statement in TABLE.replace("ROWS", &pages.to_string()).lines().chain(FROZEN.lines()) {
        ask(statement)?;
    }
    let lies_in = ask("SELECT pg_relation_filepath('scanned'), pg_relation_size('scanned') / 8192")?;
    let (path, got) =
        lies_in.trim().split_once('|').context("PostgreSQL does not say where its table lies")?;
    if got != pages.to_string() {
        bail!("PostgreSQL's table has {got} pages, not {pages}");
    }
    // A query with fewer processes than it asks for would be another experiment.
    let plan =
        ask(&format!("{}; EXPLAIN (ANALYZE, TIMING OFF) SELECT count(*) FROM scanned", parallel("7")))?;
    if !plan.contains("Workers Launched: 7") {
        bail!("PostgreSQL did not start 7 more processes for a scan:\n{plan}");
    }
    Ok(engine.data().join(path))
}

/// Settings of a session with this number of processes beside the first of a query.
fn parallel(beside: &str) -> String {
    format!(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; \
         SET max_parallel_workers_per_gather = {beside}"
    )
}

/// A word of a shell script, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Shell scripts with the number of processes as their argument. Each fails unless all rows were
/// counted.
struct Scripts {
    shared: PathBuf,
    ranges: PathBuf,
}

impl Scripts {
    fn write(steps: &Steps<'_>, engine: &Engine, pages: u64) -> Result<Self> {
        let [folder, port] = ["folder", "port"].map(|name| quoted(engine.value(name).unwrap_or_default()));
        let psql =
            format!("psql -h {folder} -p {port} -U postgres -d {DATABASE} -X -q -A -t -v ON_ERROR_STOP=1 -c");
        let shared = format!(
            "[ \"$({psql} \"{}; SELECT count(*) FROM scanned\")\" = {pages} ]\n",
            parallel("$(($1 - 1))")
        );
        let answers = quoted(&steps.path("postgres-answer"));
        let range = "SELECT count(*) FROM scanned WHERE ctid >= '($from,0)' AND ctid < '($to,0)'";
        let ranges = format!(
            "i=0\nwhile [ $i -lt $1 ]; do\n    from=$(({pages} * i / $1)) to=$(({pages} * (i + 1) / $1))\n    \
             {psql} \"SET max_parallel_workers_per_gather = 0; {range}\" >{answers}.$i &\n    \
             i=$((i + 1))\ndone\nwait\nsum=0 i=0\nwhile [ $i -lt $1 ]; do\n    \
             sum=$((sum + $(cat {answers}.$i)))\n    i=$((i + 1))\ndone\n[ $sum = {pages} ]\n"
        );
        let write = |name: &str, text: String| {
            let path = PathBuf::from(steps.path(name));
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            Ok::<_, anyhow::Error>(path)
        };
        Ok(Self { shared: write("shared.sh", shared)?, ranges: write("ranges.sh", ranges)? })
    }
}
