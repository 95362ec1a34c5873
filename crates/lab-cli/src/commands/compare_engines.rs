//! `snowmelt-lab compare-engines`: several engines with the same data, memory and queries.
//!
//! 1. Adapters are read and the engines looked for; missing ones are told and skipped.
//! 2. Room on the disk is checked, the data is generated (or given) and loaded into each engine.
//! 3. The engines are measured in turns (`snowmelt_bench::compare`).
//! 4. A run folder: `turns.jsonl`, `queries.jsonl`, `differences.jsonl`, `result.json`, the page.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;
use snowmelt_base::{say, size};
use snowmelt_bench::compare::data::DataSet;
use snowmelt_bench::compare::field::{self, Entrant, Skipped, skip_line};
use snowmelt_bench::compare::outcome::Standings;
use snowmelt_bench::compare::page::Page;
use snowmelt_bench::compare::workload::{Questions, WorkloadName};
use snowmelt_bench::compare::{ComparePlan, Comparison};
use snowmelt_bsbm::DEFAULT_SEED;
use snowmelt_engines::{Adapter, Settings, Work};
use snowmelt_lab::undo::Undo;
use snowmelt_lab::{Run, machine, signals};
use snowmelt_switches::program::neighbour;

use super::SNOWMELT;

/// Compare database engines: the same data, memory and queries, in turns, cold and warm.
#[derive(Debug, clap::Args)]
pub struct CompareEnginesArgs {
    /// The engines; the others are compared with the first. Those that are not installed are
    /// skipped, with a line that says how to install them
    #[arg(
        long,
        value_name = "E,E,...",
        value_delimiter = ',',
        default_value = "snowmelt,virtuoso,oxigraph,jena,fluree"
    )]
    engines: Vec<String>,
    /// An engine of your own: its adapter (repeatable)
    #[arg(long, value_name = "FILE")]
    adapter: Vec<PathBuf>,
    /// These must be there: a missing one is an error
    #[arg(long, value_name = "E,E,...", value_delimiter = ',')]
    require: Vec<String>,
    /// The queries: bsbm, the benchmark's Explore mix on generated data; tpch, 22 queries in SQL
    /// derived from TPC-H, on generated tables (needs postgresql or duckdb among the engines); or
    /// a folder of .rq files, or a file of queries between lines of ====, which need --data
    #[arg(long, value_name = "bsbm|tpch|FILE", default_value = "bsbm")]
    workload: WorkloadName,
    /// The data set for queries from files, as N-Triples
    #[arg(long, value_name = "FILE.nt")]
    data: Option<PathBuf>,
    /// Products of the benchmark's data set: 2785 give 1 million triples, 28480 give 10
    #[arg(long, value_name = "N", default_value = "2785", value_parser = clap::value_parser!(u32).range(1..))]
    products: u32,
    /// Scale factor of TPC-H's tables: 1 is about 1 GB
    #[arg(long, value_name = "SF", default_value = "1", value_parser = tables_scale)]
    scale: f64,
    /// Directory of titlewords.txt and givennames.txt, for the very data of the original tool
    /// [default: made-up words]
    #[arg(long, value_name = "DIR")]
    words: Option<PathBuf>,
    /// Memory that each engine may use, told to it by its own setting
    /// [default: half of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,
    /// Processors that each engine may use [default: all]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Clients: each has one query at a time
    #[arg(long, value_name = "C", default_value = "1")]
    clients: NonZeroUsize,
    /// Repetitions: there is a verdict from three on
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Mixes after a cold start [default: 50, of tpch 1]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..))]
    cold_mixes: Option<u64>,
    /// Mixes after those, not measured [default: 50, of tpch 1]
    #[arg(long, value_name = "W")]
    warmup: Option<u64>,
    /// Warm mixes to measure [default: 200, of tpch 3]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..))]
    mixes: Option<u64>,
    /// No phase of an engine lasts longer: slow ones run fewer mixes
    #[arg(long, value_name = "S", default_value = "120", value_parser = clap::value_parser!(u64).range(1..))]
    most_seconds: u64,
    /// Time limit of a query in milliseconds; one without an answer is counted
    #[arg(long, value_name = "MS", default_value = "60000", value_parser = clap::value_parser!(u64).range(1..))]
    timeout_ms: u64,
    /// Seed of the queries' parameters
    #[arg(long, value_name = "S", default_value_t = DEFAULT_SEED)]
    seed: i64,
    /// The port of all engines, which run one after the other, and the one after it
    /// [default: free ones]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..65535))]
    port: Option<u16>,
    /// Where data and databases are made, in a folder that is removed at the end
    /// [default: the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Leave that folder, with the databases and the engines' logs
    #[arg(long)]
    keep: bool,
    /// Engines that were installed by hand [default: ~/.local/share/snowmelt/engines]
    #[arg(long, value_name = "DIR")]
    engines_dir: Option<PathBuf>,
    /// Run folder, new or empty
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &CompareEnginesArgs) -> Result<()> {
    let adapters = args.adapters()?;
    let questions = args.questions()?;
    let stop = signals::stop_on_signal();
    let (stopped, undo) = (stop.shared(), Undo::open("compare-engines")?);
    let work = Work { undo: undo.clone(), stop: stopped.clone() };
    let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let (made, folder) = undo.make_tree(&parent, "snowmelt-engines")?;
    let settings = args.settings(&folder)?;
    let (mut field, skipped) = field::find(adapters, questions.language(), &args.require, &settings, &work)?;
    skipped.iter().for_each(|skipped| say!("{}", skip_line(skipped)));
    field.iter().for_each(|entrant| say!("{}: {}", entrant.title(), entrant.version));
    field.iter().try_for_each(|entrant| entrant.engine.check_ports())?;

    let run = Run::create("compare-engines", args.out.as_deref())?;
    let data = args.data_set(&settings, field.len())?;
    let items = format!("{} {}", data.items, questions.items());
    say!("{}; {items}, {}", questions.name, size::about(data.bytes as f64));
    if field.iter().any(|entrant| entrant.engine.wants_parts(questions.language())) {
        data.cut(&settings.parts, settings.threads)?;
    }
    let plan = args.plan(&settings);
    let comparison =
        Comparison { plan: &plan, questions: &questions, stop: &stopped, say: &|line| say!("{line}") };
    comparison.load(&mut field, &data)?;
    let mut lines = run.lines("turns")?;
    let mut outcome = comparison.run(&mut field, &mut lines)?;
    outcome.show_answers(run.path())?;
    outcome.tell_texts(&questions);
    let shown =
        Page { plan: &plan, questions: &questions, data: &data, outcome: &outcome, skipped: &skipped };
    let page = keep(run, &shown, &settings)?;
    if args.keep {
        undo.done(made)?;
        say!("data, databases and logs are in {}", folder.display());
    }
    say!("\n{}", page.display());
    refuse_failures(&field, &args.require)
}

/// Small enough for a disk of today, and large enough for rows in all tables.
fn tables_scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if (0.001..=1000.0).contains(&scale) => Ok(scale),
        _ => Err("a number from 0.001 to 1000 is wanted".into()),
    }
}

/// A required engine that failed is an error, too, once all is told.
fn refuse_failures(field: &[Entrant], required: &[String]) -> Result<()> {
    let failed =
        field.iter().find(|entrant| entrant.failed.is_some() && required.iter().any(|r| r == entrant.name()));
    match failed {
        Some(entrant) => {
            bail!("--require {}: {}", entrant.name(), entrant.failed.as_deref().unwrap_or_default())
        }
        None => Ok(()),
    }
}

impl CompareEnginesArgs {
    fn adapters(&self) -> Result<Vec<Adapter>> {
        let mut adapters = Vec::new();
        for path in &self.adapter {
            adapters.push(Adapter::read(path)?);
        }
        // A file of one's own replaces a built-in engine of the same name.
        let own: Vec<String> = adapters.iter().map(|adapter: &Adapter| adapter.name.clone()).collect();
        let mut all = Vec::new();
        for name in self.engines.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
            match own.iter().position(|own| own == name) {
                Some(i) => all.push(adapters[i].clone()),
                None => all.push(Adapter::named(name)?),
            }
        }
        let is_new = |adapter: &Adapter| !self.engines.iter().any(|name| name.trim() == adapter.name);
        all.extend(adapters.into_iter().filter(is_new));
        Ok(all)
    }

    fn questions(&self) -> Result<Questions> {
        match (&self.workload, &self.data) {
            (WorkloadName::Bsbm, None) => Questions::bsbm(self.products, self.seed),
            (WorkloadName::Bsbm | WorkloadName::Tpch, Some(_)) => {
                bail!("--data goes with queries from files: bsbm and tpch generate their own")
            }
            (WorkloadName::Tpch, None) => Ok(Questions::tpch(self.scale)),
            (WorkloadName::Files(path), Some(_)) => Questions::of_files(path),
            (WorkloadName::Files(path), None) => {
                // A misspelt name is told as such before the missing data.
                Questions::of_files(path)?;
                bail!("queries from files need --data FILE.nt, the data they are asked of")
            }
        }
    }

    fn settings(&self, folder: &Path) -> Result<Settings> {
        let engines = match &self.engines_dir {
            Some(dir) => dir.clone(),
            None => std::env::home_dir().unwrap_or_default().join(".local/share/snowmelt/engines"),
        };
        let here = machine::Machine::here();
        Ok(Settings {
            folder: folder.to_path_buf(),
            memory: self.memory.unwrap_or(here.memory_bytes / 2),
            threads: self.threads.map_or(here.cpus, NonZeroUsize::get),
            port: self.port,
            engines,
            snowmelt: neighbour(SNOWMELT)?,
            data: self.data.clone().unwrap_or_else(|| {
                folder.join(if self.workload == WorkloadName::Tpch { "tables" } else { "data.nt" })
            }),
            parts: folder.join("parts"),
        })
    }

    fn data_set(&self, settings: &Settings, engines: usize) -> Result<DataSet> {
        match &self.data {
            Some(file) => DataSet::given(file, &settings.folder, engines),
            None if self.workload == WorkloadName::Tpch => {
                DataSet::tables(&settings.folder, self.scale, engines)
            }
            None => DataSet::generate(&settings.folder, self.products, self.words.as_deref(), engines),
        }
    }

    fn plan(&self, settings: &Settings) -> ComparePlan {
        let is_tpch = self.workload == WorkloadName::Tpch;
        let mixes =
            |given: Option<u64>, usual, of_tpch| given.unwrap_or(if is_tpch { of_tpch } else { usual });
        ComparePlan {
            memory: settings.memory,
            threads: settings.threads,
            clients: self.clients.get(),
            repeats: self.repeats,
            cold_mixes: mixes(self.cold_mixes, 50, 1),
            warmup: mixes(self.warmup, 50, 1),
            mixes: mixes(self.mixes, 200, 3),
            most_seconds: self.most_seconds,
            timeout_ms: self.timeout_ms,
            seed: self.seed,
        }
    }
}

/// Writes the run folder; the path of its page.
fn keep(mut run: Run, shown: &Page<'_>, settings: &Settings) -> Result<PathBuf> {
    let Page { plan, questions, data, outcome, skipped } = shown;
    run.settings(
        &json!({ "plan": plan, "workload": questions.name, "items": data.items, "of": questions.items() }),
    );
    if let Ok(Some(device)) = machine::BlockDevice::find(&settings.folder) {
        // The engines serve from processes that are not this one's children.
        run.device_of_others(device);
    }
    let measures = [("warm_qmph", true), ("cold_qmph", true), ("first_answer_s", false)];
    run.compare_by("turns", &["engine"], &measures);
    write_queries(&run, outcome)?;
    let mut lines = run.lines("differences")?;
    for entry in &outcome.entries {
        for difference in entry.verification.iter().flat_map(|v| &v.differences) {
            lines.write(&json!({ "engine": entry.engine, "difference": difference }))?;
        }
    }
    let result = json!({ "entries": outcome.entries, "skipped": skipped as &[Skipped] });
    let path = run.path().join("result.json");
    fs::write(&path, format!("{result:#}\n")).with_context(|| format!("cannot write {}", path.display()))?;
    outcome.doubts(questions, data.items).into_iter().for_each(|doubt| run.doubt(doubt));
    Ok(run.finish(shown.report())?)
}

/// A line for each engine, repetition, phase and query.
fn write_queries(run: &Run, outcome: &Standings) -> Result<()> {
    let mut lines = run.lines("queries")?;
    for turn in &outcome.turns {
        for (phase, reports) in [("cold", &turn.cold_queries), ("warm", &turn.warm_queries)] {
            for report in reports {
                lines.write(&json!({
                    "engine": turn.engine, "repeat": turn.repeat, "phase": phase, "figures": report,
                }))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        args: CompareEnginesArgs,
    }

    fn parse(line: &str) -> CompareEnginesArgs {
        Alone::try_parse_from(["x"].into_iter().chain(line.split_whitespace())).unwrap().args
    }

    fn names(line: &str) -> Vec<String> {
        parse(line).adapters().unwrap().into_iter().map(|adapter| adapter.name).collect()
    }

    #[test]
    fn own_adapters_join_or_replace_built_in_ones() {
        assert_eq!(names(""), ["snowmelt", "virtuoso", "oxigraph", "jena", "fluree"]);
        assert_eq!(names("--engines duckdb,postgresql"), ["duckdb", "postgresql"]);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own.toml");
        let text = "name = \"mine\"\ntitle = \"Mine\"\nanswers = []\ninstall = []\ndata = \"x\"\n\
                    start = [\"x\"]\nready = { tcp = \"x\", seconds = 1 }\n";
        fs::write(&path, text).unwrap();
        let with = format!("--adapter {} --engines jena,", path.display());
        assert_eq!(names(&with), ["jena", "mine"]);
        assert_eq!(names(&format!("{with}mine,oxigraph")), ["jena", "mine", "oxigraph"]);
        let error = parse("--engines jena,ontop").adapters().unwrap_err().to_string();
        assert!(error.contains("\"ontop\"") && error.contains("virtuoso"), "{error}");
    }

    #[test]
    fn queries_and_data_go_together() {
        for (line, expected) in [
            ("--data x.nt", "--data goes with queries from files"),
            ("--workload tpch --data x.nt", "--data goes with queries from files"),
            ("--workload /no/such", "--workload /no/such"),
            ("--workload Cargo.toml", "no SPARQL query"),
        ] {
            let error = format!("{:#}", parse(line).questions().unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(parse("").questions().unwrap().per_mix, 25);
        assert_eq!(parse("--workload tpch").questions().unwrap().per_mix, 22);
        let error = Alone::try_parse_from(["x", "--scale", "0"]).err().unwrap().to_string();
        assert!(error.contains("0.001 to 1000"), "{error}");
    }
}
