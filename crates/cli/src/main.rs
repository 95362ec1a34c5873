//! The `snowmelt` command.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(snowmelt_cli::run(std::env::args_os()))
}
