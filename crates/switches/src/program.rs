//! Reads the command line of a program, says why a command failed, and finds the other program.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgMatches, Command};

use crate::{file, topics};

/// The command line of a program, with the switches of its configuration file. Ends the process for
/// help and for wrong usage.
///
/// # Errors
/// The configuration file cannot be used.
pub fn matches(command: Command, args: Vec<OsString>) -> anyhow::Result<ArgMatches> {
    let command = topics::hide(command);
    if let Some(help) = topics::asked(&command, &args) {
        print!("{help}");
        std::process::exit(0);
    }
    let args = file::with_config(&command, args)?;
    Ok(command.get_matches_from(args))
}

/// The exit status of a command; an error is told on standard error.
pub fn status(program: &str, result: anyhow::Result<u8>) -> u8 {
    match result {
        Ok(status) => status,
        Err(error) => {
            // Not eprintln!, which panics when the reader is gone.
            let _ = writeln!(std::io::stderr(), "{program}: {}", one_line(&error));
            1
        }
    }
}

/// Another program of ours: the file that lies beside this one, else the name, for the path.
///
/// # Errors
/// The system does not say where this program lies.
pub fn neighbour(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find where this program lies")?;
    let beside = own.with_file_name(name);
    Ok(if beside.is_file() { beside } else { PathBuf::from(name) })
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
