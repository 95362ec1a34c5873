//! The I/O laboratory: what a device really does, under any program.
//!
//! Every command measures one thing, writes a *run folder* ([`Run`]: raw JSON lines, settings, machine) and one page to look
//! at ([`report`]). A run that was disturbed says so itself.
//!
//! Stands on `io` alone: nothing here knows what a database is.

/// Prints a line; when nobody reads any more (`| head`), the command goes on: what it changed must be set back, and the results are
/// in the run folder.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}
pub(crate) use say;

mod awake;
mod cell_trace;
mod cold;
mod compare;
pub mod cpu;
mod device;
mod device_work;
pub mod diskstats;
mod error;
mod in_use;
mod load;
pub mod machine;
mod picture;
pub mod program;
mod read;
mod read_ahead;
mod read_report;
pub mod report;
mod report_command;
pub mod restore;
mod run;
mod rung;
pub mod scan;
pub mod signals;
pub mod size;
pub mod stats;
mod target;
pub mod trace;
mod turns;
pub mod undo;
pub mod watch;
mod write;
mod write_report;

pub use error::LabError;
pub use run::{JsonLines, Run};

/// Measure what storage really does, under this machine's kernel and any program.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Measure reads of a file or device, by size, depth, engine and cache
    Read(Box<read::Args>),
    /// Measure scattered writes until they are durable, by method and by when they are synced
    Write(Box<write::Args>),
    /// Put two runs of the same kind beside each other
    Compare(compare::Args),
    /// Write the page of a run folder again, or its figures as SVG and PNG
    Report(report_command::Args),
    /// Trace the requests a device gets
    Trace(trace::Args),
    /// Watch a program: processors, its I/O, devices, page faults, memory, once a second
    Watch(watch::Args),
    /// Scan a table in parallel under every scheduler
    Scan(Box<scan::Args>),
    /// Emulate a device as a block device that any program can use
    Device(device::Args),
    /// Undo what killed commands left behind
    Restore(restore::Args),
}

/// Carries a command out.
pub fn run(command: Command) -> Result<(), LabError> {
    match command {
        Command::Read(args) => read::run(&args),
        Command::Write(args) => write::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Report(args) => report_command::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Scan(args) => scan::run(&args),
        Command::Device(args) => device::run(&args),
        Command::Restore(args) => Ok(restore::run(&args)?),
    }
}
