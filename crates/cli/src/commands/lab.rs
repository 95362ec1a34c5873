//! `snowmelt lab …`: runs the program `snowmelt-lab`, which is installed by itself.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, bail};
use snowmelt_switches::program;

const PROGRAM: &str = "snowmelt-lab";

/// Run snowmelt-lab.
#[derive(clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct LabArgs {
    /// Its command line
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

/// Becomes the program that lies beside this one, else that of the path.
pub fn run(args: &LabArgs) -> anyhow::Result<u8> {
    let error = Command::new(program::neighbour(PROGRAM)?).args(&args.arguments).exec();
    match error.kind() {
        std::io::ErrorKind::NotFound => bail!(
            "{PROGRAM} is neither beside this program nor in the path: build it with \
             `cargo build --release -p snowmelt-lab-cli`"
        ),
        _ => Err(error).with_context(|| format!("cannot run {PROGRAM}")),
    }
}
