//! `snowmelt config check`: whether a configuration file says what it should.

use std::path::PathBuf;

use snowmelt_base::say;
use snowmelt_switches::file;

/// Configuration files.
#[derive(clap::Subcommand)]
pub enum ConfigCommand {
    /// Look at a file without running anything: its keys, and the values of each
    Check {
        /// The file
        file: PathBuf,
    },
}

/// Runs the command; `all` are the commands that a file may be for.
pub fn run(config: ConfigCommand, all: &clap::Command) -> anyhow::Result<()> {
    let ConfigCommand::Check { file } = config;
    let taken = file::check(all, &file)?;
    if taken.is_empty() {
        say!("{}: nothing is set", file.display());
    }
    for (command, switches) in taken {
        let s = if switches == 1 { "" } else { "es" };
        say!("{}: {command}: {switches} switch{s}", file.display());
    }
    Ok(())
}
