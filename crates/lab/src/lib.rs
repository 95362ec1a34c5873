//! The I/O laboratory: measures what a device really does, under any program.
//!
//! Every command measures one thing. It writes a *run folder* ([`Run`]: raw JSON lines,
//! settings, machine) and one page to look at ([`report`]). A run that was disturbed says so
//! itself.
//!
//! Layers, bottom to top. A module needs modules of the rows above it only.
//!
//! | module   | holds                                                                        |
//! |----------|------------------------------------------------------------------------------|
//! | `undo`   | the journal of everything a command changes, and the signals that undo it    |
//! | `error`, `stats`, `http`, `room` | errors; percentiles and spread; GET of a server; free room |
//! | `machine` | processors, block devices, their counters, programs                         |
//! | `report` | figures and tables as one page, SVG and PNG                                  |
//! | `run`    | run folders, cells in turns, arguments in common, two runs compared          |
//! | `target` | the file or device that is measured: its state, cold caches, data files      |
//! | `group`  | control groups: their memory, and new ones with limits                       |
//! | `device` | emulated devices                                                             |
//! | `trace`  | block events of the kernel, matched and added up                             |
//! | `read`, `write`, `scan`, `cap`, `watch`, `restore` | the other commands                 |
//! | `file_systems` | the same reads and writes on several file systems                      |
//!
//! The crate stands on `snowmelt_io` alone: nothing here knows what a database is.

// When the reader of the output is gone (`| head`), the command goes on: its changes must be set
// back, and the results are in the run folder.
pub(crate) use snowmelt_base::{say, tell};

pub mod cap;
mod device;
mod error;
mod file_systems;
pub mod group;
pub mod http;
pub mod machine;
pub mod read;
pub mod report;
pub mod restore;
pub mod room;
mod run;
pub mod scan;
pub mod stats;
mod target;
pub mod trace;
pub mod undo;
pub mod watch;
mod write;

pub use device::scheduler::{Scheduler, SchedulerChoice, chosen as chosen_schedulers};
pub use device::{Behind, activity_of as device_activity_of, server_of as device_server_of};
pub use error::LabError;
pub use machine::{cpu, diskstats, program};
pub use run::arguments::{OnOff, check_text};
pub use run::functions;
pub use run::{JsonLines, Run};
pub use snowmelt_base::size;
pub use target::data_file::make as make_file;
pub use target::held::Busy;
pub use undo::signals;

/// Measure what storage really does, under this machine's kernel and any program.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Measure reads of a file or device, by size, depth, engine and cache
    Read(Box<read::ReadArgs>),
    /// Measure scattered writes until they are durable, by method and by when they are synced
    Write(Box<write::WriteArgs>),
    /// Put two runs of the same kind beside each other
    Compare(run::compare::CompareArgs),
    /// Write the page of a run folder again, or its figures as SVG and PNG
    Report(report::command::ReportArgs),
    /// One page of all runs below a folder, the newest first
    Gallery(report::gallery::GalleryArgs),
    /// Trace the requests a device gets
    Trace(trace::TraceArgs),
    /// Watch a program: processors, its I/O, devices, page faults, memory, once a second
    Watch(Box<watch::WatchArgs>),
    /// Begin a phase in a watch that runs
    Mark(watch::mark::MarkArgs),
    /// Cap the I/O of a program on a device: one to start, processes that run, or a control group
    Cap(cap::CapArgs),
    /// Scan a table in parallel under every scheduler
    Scan(Box<scan::ScanArgs>),
    /// Compare file systems: the same reads and writes on each, made anew on one device
    FileSystems(Box<file_systems::FileSystemsArgs>),
    /// Emulate a device as a block device that any program can use
    Device(device::DeviceArgs),
    /// Undo what killed commands left behind
    Restore(restore::RestoreArgs),
}

/// Carries a command out; the exit code, that of a program it was for.
///
/// # Errors
/// The command fails; see [`LabError`].
pub fn run(command: Command) -> Result<u8, LabError> {
    match command {
        Command::Cap(args) => return cap::run(&args),
        Command::Watch(args) => return watch::run(&args),
        Command::Trace(args) => return trace::run(&args),
        Command::Read(args) => read::run(&args),
        Command::Write(args) => write::run(&args),
        Command::Compare(args) => run::compare::run(&args),
        Command::Report(args) => report::command::run(&args),
        Command::Gallery(args) => report::gallery::run(&args),
        Command::Mark(args) => watch::mark::run(&args),
        Command::Scan(args) => scan::run(&args),
        Command::FileSystems(args) => file_systems::run(&args),
        Command::Device(args) => device::run(&args),
        Command::Restore(args) => Ok(restore::run(&args)?),
    }?;
    Ok(0)
}
