//! The `snowmelt` command, for the script that the package installs.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs a command line and returns its exit status. It takes the process over: help and wrong
/// usage end it.
#[pyfunction]
pub fn run_command(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| snowmelt_cli::run(args))
}
