//! `snowmelt-lab …` without the database around it, so that it builds in seconds.

use clap::Parser;

#[derive(Parser)]
#[command(name = "lab", about = "The I/O laboratory")]
struct Cli {
    #[command(subcommand)]
    command: snowmelt_lab::Command,
}

fn main() -> std::process::ExitCode {
    match snowmelt_lab::run(Cli::parse().command) {
        Ok(code) => code.into(),
        Err(e) => {
            eprintln!("lab: {e}");
            std::process::ExitCode::FAILURE
        }
    }
}
