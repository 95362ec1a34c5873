//! Reads the command line of a program, says why a command failed, and finds the other program.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgMatches, Command};
use snowmelt_base::output::{self, Stdout, StdoutFailure};
use snowmelt_base::{printable, signals, tell};

use crate::advice::{Told, faults};
use crate::{file, topics};

/// Prepares the process of a program.
///
/// # Errors
/// A signal cannot be handled.
pub fn begin() -> anyhow::Result<()> {
    signals::fail_beyond_file_size().context("cannot handle SIGXFSZ")
}

/// The command line of a program, with the switches of its configuration file. Ends the process for
/// help and for wrong usage.
///
/// # Errors
/// The configuration file cannot be used.
pub fn matches(command: Command, args: Vec<OsString>) -> anyhow::Result<ArgMatches> {
    let command = topics::hide(command);
    let name = command.get_name().to_owned();
    if let Some(help) = topics::asked(&command, &args) {
        end(&name, write!(Stdout, "{help}").map_err(anyhow::Error::new));
    }
    let args = file::with_config(&command, args)?;
    match command.try_get_matches_from(args) {
        Ok(matches) => Ok(matches),
        // help and version
        Err(asked) if !asked.use_stderr() => {
            end(&name, asked.print().map_err(|error| output::failed(error).into()))
        }
        Err(wrong) => wrong.exit(),
    }
}

fn end(program: &str, result: anyhow::Result<()>) -> ! {
    std::process::exit(i32::from(status(program, result.map(|()| 0))))
}

/// The exit status of a command; an error is told on standard error. A command whose reader has
/// gone (`| head`) ends quietly, one whose output is lost for another reason with an error.
pub fn status(program: &str, result: anyhow::Result<u8>) -> u8 {
    let failure = output::end();
    let is_reader_gone = failure == Some(StdoutFailure::ClosedPipe);
    match (result, failure) {
        (Err(error), _) if is_reader_gone && is_closed_pipe(&error) => 0,
        (Err(error), _) => {
            tell!("{program}: {}", printable::line(&one_line(&error)));
            // the first line of them is said
            let faults = faults(&error).unwrap_or_default();
            faults.lines().skip(1).for_each(|line| tell!("{}", printable::line(line)));
            1
        }
        (Ok(0), Some(StdoutFailure::Other(why))) => {
            tell!("{program}: cannot write to standard output: {why}");
            1
        }
        (Ok(status), _) => status,
    }
}

/// An error that comes of a reader which stopped reading.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let of_pipe = |cause: &std::io::Error| cause.kind() == ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(of_pipe))
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

/// The chain of causes in one line, with advice; a cause that the message before it already names
/// is left out.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let Told { text, advice } = Told::from_error(cause);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.contains(&text) {
            if !line.is_empty() {
                line.push_str(": ");
            }
            line.push_str(&text);
        }
        if !line.contains(&advice) {
            line.push_str(&advice);
        }
    }
    line
}
