//! The `snowmelt-lab` command as a library: one match over the commands. Those that know nothing of
//! a database are `snowmelt_lab`'s.

#![forbid(unsafe_code)]

mod commands;
#[cfg(test)]
mod pages;
mod queue;
mod warm_up;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use snowmelt_switches::program;

use commands::{
    believed, bsbm_drive, bsbm_generate, bsbm_run, bsbm_scale, compare_engines, oltp, repeat, scan_index,
};

const NAME: &str = "snowmelt-lab";

/// Measures what storage, schedulers and databases really do.
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
    #[command(flatten)]
    Storage(snowmelt_lab::Command),
    /// The Berlin SPARQL Benchmark
    #[command(subcommand)]
    Bsbm(Bsbm),
    /// Compare database engines: the same data, memory and queries, in turns, cold and warm
    CompareEngines(Box<compare_engines::CompareEnginesArgs>),
    /// Run queries derived from TPC-H on PostgreSQL, and watch what the device gets
    Tpch(Box<snowmelt_tpch::TpchArgs>),
    /// Measure transactions beside a scan of the same disk: each alone and both, by scheduler
    Oltp(oltp::OltpArgs),
    /// Repeat a published experiment, and hold the findings against the published ones
    Repeat(repeat::RepeatArgs),
    /// Read a quad index from end to end with threads that share the scan
    ScanIndex(Box<scan_index::ScanIndexArgs>),
    /// Draw what is believed of a volume whose caps are halved for some seconds, in virtual time
    Believed(believed::BelievedArgs),
}

#[derive(Subcommand)]
enum Bsbm {
    /// Generate the data set as N-Triples
    Generate(bsbm_generate::BsbmGenerateArgs),
    /// Run a query mix in this process and measure it
    Run(Box<bsbm_run::BsbmRunArgs>),
    /// Run the Explore mix on data sets of several sizes, and say what grows how
    Scale(Box<bsbm_scale::BsbmScaleArgs>),
    /// Drive any SPARQL endpoint, or a database, as the original driver does
    Drive(Box<bsbm_drive::BsbmDriveArgs>),
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
    let folder = std::env::current_dir().unwrap_or_default(); // a relative name is one in it
    snowmelt_lab::check_text(args.iter().map(OsString::as_os_str).chain([folder.as_os_str()]))?;
    let matches = program::matches(command(), bsbm_drive::long_names(args))?;
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.command {
        Command::Storage(command) => return Ok(snowmelt_lab::run(command)?),
        Command::Bsbm(Bsbm::Generate(args)) => bsbm_generate::run(args),
        Command::Bsbm(Bsbm::Run(args)) => bsbm_run::run(*args),
        Command::Bsbm(Bsbm::Scale(args)) => bsbm_scale::run(*args),
        Command::Bsbm(Bsbm::Drive(args)) => bsbm_drive::run(&args),
        Command::CompareEngines(args) => compare_engines::run(&args),
        Command::Tpch(args) => snowmelt_tpch::run(&args).map_err(anyhow::Error::new),
        Command::Oltp(args) => oltp::run(&args),
        Command::Repeat(args) => repeat::run(&args),
        Command::ScanIndex(args) => scan_index::run(*args),
        Command::Believed(args) => believed::run(&args),
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
