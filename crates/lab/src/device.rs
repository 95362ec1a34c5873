//! `snowmelt-lab device`: emulated devices that any program can use, as block devices.
//!
//! The way of a request: file system or program → `/dev/loopN` (direct I/O, with the chosen
//! scheduler) → a file of a FUSE mount → our server process. The server asks the model of the
//! device (`io`) when the request is over, moves its bytes, and answers at that moment.
//!
//! 1. `create` starts the server as a process of its own and waits until it says that the
//!    device stands (or why not).
//! 2. The server journals everything it makes (see [`crate::undo`]), so that `remove`, a
//!    signal, or `lab restore` after kill -9 takes down the file systems mounted from it, the
//!    loop device, the mount, in that order.
//! 3. Nothing waits for ever: models answer within bounds (see `snowmelt_io::ModelError`),
//!    creation has a deadline, and a server that does not answer is cut off by aborting its
//!    FUSE connection, which fails whatever waits for it.
//! 4. `status`, `reset`, `spend-credits`, `cut` and `power-on` talk to it through a socket.

mod behind;
mod check;
mod control;
mod create;
mod disk_file;
mod expected;
mod hung;
mod list;
mod measure;
mod medium;
mod queue;
pub(crate) mod read_ahead;
mod remove;
pub(crate) mod scheduler;
mod self_test;
mod server;
mod spec;
mod state;
mod unsynced;

pub use behind::Behind;

pub(crate) use hung::hung;

use crate::LabError;

/// Emulate a device as a block device that any program can use.
#[derive(Debug, clap::Args)]
pub struct DeviceArgs {
    #[command(subcommand)]
    command: DeviceCommand,
}

#[derive(Debug, clap::Subcommand)]
enum DeviceCommand {
    /// Make a device (needs root): prints its path, ready for mkfs and mount
    Create(create::CreateArgs),
    /// The devices there are
    List(list::ListArgs),
    /// Requests of a device, how deep its queue was, how late it answered
    Status(control::NameArgs),
    /// Empty the device's own buffers and start its counts anew (the page cache is another
    /// matter)
    Reset(control::NameArgs),
    /// Spend the burst credits of a volume: from now on it is as slow as after a long load,
    /// until they come back or reset
    SpendCredits(control::NameArgs),
    /// Cut the power: unsynced writes are lost, whole or in part, and everything fails until
    /// power-on
    Cut(control::CutArgs),
    /// Switch the device on again, with what survived
    PowerOn(control::NameArgs),
    /// Take a device down: unmount, detach, end the server
    Remove(remove::RemoveArgs),
    /// Measure a model, or a device that was made, against the published figures
    Check(check::CheckArgs),
    /// The server itself, started by create with its description on standard input
    #[command(hide = true)]
    Serve,
}

/// Runs the command.
pub fn run(args: &DeviceArgs) -> Result<(), LabError> {
    match &args.command {
        DeviceCommand::Create(args) => create::run(args),
        DeviceCommand::List(args) => list::run(args),
        DeviceCommand::Status(args) => control::status(args),
        DeviceCommand::Reset(args) => control::reset(args),
        DeviceCommand::SpendCredits(args) => control::spend_credits(args),
        DeviceCommand::Cut(args) => control::cut(args),
        DeviceCommand::PowerOn(args) => control::power_on(args),
        DeviceCommand::Remove(args) => remove::run(args),
        DeviceCommand::Check(args) => check::run(args),
        DeviceCommand::Serve => server::run(),
    }
}

/// The process that serves a device; asked to end by SIGTERM it takes everything of it down.
///
/// # Errors
/// There is no such device.
pub fn server_of(name: &str) -> Result<u32, LabError> {
    Ok(state::load(name)?.pid)
}

/// Requests that an emulated device got since it was made.
///
/// # Errors
/// There is no such device, or it does not answer.
pub fn activity_of(name: &str) -> Result<snowmelt_io::Activity, LabError> {
    Ok(control::status_of(&state::load(name)?)?.activity)
}
