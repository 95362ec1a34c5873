//! The `snowmelt-lab` command.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(snowmelt_lab_cli::run(std::env::args_os()))
}
