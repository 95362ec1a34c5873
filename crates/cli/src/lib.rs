//! The `snowmelt` command as a library: the program and the Python package run the same one.
//! One match over the subcommands.

#![forbid(unsafe_code)]

mod answer;
mod commands;
mod control;
mod costs;
#[cfg(test)]
mod pages;
mod prompt;
mod running;
mod switches;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use commands::{
    backup, bsbm_generate, bsbm_run, bsbm_scale, check, compact, config, demo, doctor, dump, lab_bsbm,
    lab_compare_engines, lab_repeat, load, probe, query, restore, scan, serve, stats, token, update,
};

/// A graph database that plans its reads.
#[derive(Parser)]
#[command(name = "snowmelt", version, about, propagate_version = true)]
struct Cli {
    /// Switches from a file in TOML [default: snowmelt.toml in the database directory, if it is
    /// there]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show what planning the reads is worth: generate, load, and query from cold on a slow
    /// simulated volume
    Demo(demo::DemoArgs),
    /// Load RDF files: a new database is built, into a filled one they are inserted or merged
    Load(load::LoadArgs),
    /// Answer a SPARQL query, or ask for queries at a prompt
    Query(query::QueryArgs),
    /// Run one SPARQL Update request, all of it or nothing
    Update(update::UpdateArgs),
    /// Serve the SPARQL Protocol over HTTP
    Serve(Box<serve::ServeArgs>),
    /// Add, list and remove the tokens of a server
    Token(token::TokenArgs),
    /// Look at a configuration file
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Say what is stored: quads, terms, bytes per tree and per quad
    Stats(stats::StatsArgs),
    /// Look at what makes a database slow or fragile, and say what to change
    Doctor(doctor::DoctorArgs),
    /// Verify every page, every tree, and the indexes against each other
    Check(check::CheckArgs),
    /// Copy one consistent state of a database while it is used, verifying every page
    Backup(backup::BackupArgs),
    /// Make a database from a backup
    Restore(restore::RestoreArgs),
    /// Reclaim terms without quads and give free space at the end of the files back
    Compact(compact::CompactArgs),
    /// Write all quads as RDF
    Dump(dump::DumpArgs),
    /// The Berlin SPARQL Benchmark
    #[command(subcommand)]
    Bsbm(Bsbm),
    /// Measure what a device costs per request and per byte, read-only
    Probe(probe::ProbeArgs),
    /// Read a quad index from end to end with threads that share the scan
    Scan(scan::ScanArgs),
    /// Measure what storage really does, under any program
    #[command(subcommand)]
    Lab(Lab),
}

#[derive(Subcommand)]
enum Lab {
    /// Drive any SPARQL endpoint, or a database, with the Berlin SPARQL Benchmark
    Bsbm(Box<lab_bsbm::LabBsbmArgs>),
    /// Compare database engines: the same data, memory and queries, in turns, cold and warm
    CompareEngines(Box<lab_compare_engines::LabCompareEnginesArgs>),
    /// Repeat a published experiment, and hold the findings against the published ones
    Repeat(lab_repeat::LabRepeatArgs),
    /// Run queries derived from TPC-H on PostgreSQL, and watch what the device gets
    Tpch(Box<snowmelt_tpch::TpchArgs>),
    #[command(flatten)]
    Storage(snowmelt_lab::Command),
}

#[derive(Subcommand)]
enum Bsbm {
    /// Generate the data set as N-Triples
    Generate(bsbm_generate::BsbmGenerateArgs),
    /// Run a query mix in this process and measure it
    Run(Box<bsbm_run::BsbmRunArgs>),
    /// Run the Explore mix on data sets of several sizes, and say what grows how
    Scale(Box<bsbm_scale::BsbmScaleArgs>),
}

/// Runs a command line, whose first word is the program, and returns the exit status. Ends the
/// process for help and for wrong usage, and binds its heap: call it from a process that does
/// nothing else.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    snowmelt_io::bound_heap();
    let cli = match parsed(args.into_iter().collect()) {
        Ok(cli) => cli,
        Err(error) => return failed(&error),
    };
    let result = match cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Load(args) => load::run(args),
        Command::Query(args) => query::run(args),
        Command::Update(args) => update::run(args),
        Command::Serve(args) => serve::run(*args),
        Command::Token(args) => token::run(args),
        Command::Config(args) => config::run(args, &Cli::command()),
        Command::Stats(args) => stats::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Check(args) => check::run(args),
        Command::Backup(args) => backup::run(args),
        Command::Restore(args) => restore::run(args),
        Command::Compact(args) => compact::run(args),
        Command::Dump(args) => dump::run(args),
        Command::Bsbm(Bsbm::Generate(args)) => bsbm_generate::run(args),
        Command::Bsbm(Bsbm::Run(args)) => bsbm_run::run(*args),
        Command::Bsbm(Bsbm::Scale(args)) => bsbm_scale::run(*args),
        Command::Probe(args) => probe::run(args),
        Command::Scan(args) => scan::run(args),
        Command::Lab(Lab::Bsbm(args)) => lab_bsbm::run(&args),
        Command::Lab(Lab::CompareEngines(args)) => lab_compare_engines::run(&args),
        Command::Lab(Lab::Repeat(args)) => lab_repeat::run(&args),
        Command::Lab(Lab::Tpch(args)) => snowmelt_tpch::run(&args).map_err(anyhow::Error::new),
        Command::Lab(Lab::Storage(command)) => {
            return snowmelt_lab::run(command).unwrap_or_else(|error| failed(&error.into()));
        }
    };
    match result {
        Ok(()) => 0,
        Err(error) => failed(&error),
    }
}

/// The command line and what a configuration file adds to it. Ends the process for help and for
/// wrong usage.
fn parsed(args: Vec<OsString>) -> anyhow::Result<Cli> {
    let args = lab_bsbm::long_names(args);
    let command = switches::topics::hide(Cli::command());
    if let Some(help) = switches::topics::asked(&command, &args) {
        print!("{help}");
        std::process::exit(0);
    }
    let args = switches::file::with_config(&command, args)?;
    Ok(Cli::from_arg_matches(&command.get_matches_from(args)).unwrap_or_else(|error| error.exit()))
}

fn failed(error: &anyhow::Error) -> u8 {
    // Not eprintln!, which panics when the reader is gone.
    let _ = writeln!(std::io::stderr(), "snowmelt: {}", one_line(error));
    1
}

/// The chain of causes in one line; a cause that the message before it already names is left out.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.contains(&text) {
            if !line.is_empty() {
                line.push_str(": ");
            }
            line.push_str(&text);
        }
    }
    line
}
