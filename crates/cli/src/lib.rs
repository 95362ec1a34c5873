//! The `snowmelt` command as a library: the program and the Python package run the same one.
//! One match over the subcommands.

#![forbid(unsafe_code)]

mod answer;
mod commands;
mod control;
mod costs;
mod foreign;
mod prompt;
mod running;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use snowmelt_switches::program;

use commands::{
    backup, check, compact, config, demo, doctor, dump, lab, load, prefix, probe, publish, query, restore,
    serve, stats, token, update,
};

const NAME: &str = "snowmelt";

/// A graph database that plans its reads.
#[derive(Parser)]
#[command(name = NAME, version, about, propagate_version = true)]
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
    /// Publish a database to an object store, where other machines open it at once
    Publish(publish::PublishArgs),
    /// Reclaim terms without quads and give free space at the end of the files back
    Compact(compact::CompactArgs),
    /// Write all quads as RDF
    Dump(dump::DumpArgs),
    /// List, add and remove the prefixes that are kept with a database
    Prefix(prefix::PrefixArgs),
    /// Measure what a device costs per request and per byte, read-only
    Probe(probe::ProbeArgs),
    /// Run snowmelt-lab, which measures devices, schedulers and databases
    Lab(lab::LabArgs),
}

/// The commands, their arguments and switches.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs a command line, whose first word is the program, and returns the exit status. Ends the
/// process for help and for wrong usage, and binds its heap: call it from a process that does
/// nothing else.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    snowmelt_io::bound_heap();
    program::status(NAME, program::begin().and_then(|()| carried_out(args.into_iter().collect())))
}

fn carried_out(args: Vec<OsString>) -> anyhow::Result<u8> {
    let matches = program::matches(command(), args)?;
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Load(args) => load::run(args),
        Command::Query(args) => query::run(args),
        Command::Update(args) => update::run(args),
        Command::Serve(args) => serve::run(*args),
        Command::Token(args) => token::run(args),
        Command::Config(args) => config::run(args, &command()),
        Command::Stats(args) => stats::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Check(args) => check::run(args),
        Command::Backup(args) => backup::run(args),
        Command::Restore(args) => restore::run(args),
        Command::Publish(args) => publish::run(args),
        Command::Compact(args) => compact::run(args),
        Command::Dump(args) => dump::run(args),
        Command::Prefix(args) => prefix::run(args),
        Command::Probe(args) => probe::run(args),
        Command::Lab(args) => return lab::run(&args, cli.config.as_deref()),
    }?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_switches_are_listed_for_the_other_program() {
        snowmelt_switches::names::assert_listed(&super::command());
    }
}
