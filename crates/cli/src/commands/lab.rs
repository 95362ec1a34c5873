//! `snowmelt lab …`: runs the program `snowmelt-lab`, which is installed by itself.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
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

/// Becomes the program that lies beside this one, else that of the path. A configuration file that
/// was named before its command line is one for it, too.
pub fn run(args: &LabArgs, config: Option<&Path>) -> anyhow::Result<u8> {
    let mut program = Command::new(program::neighbour(PROGRAM)?);
    if let Some(file) = config {
        program.arg("--config").arg(file);
    }
    let error = program.args(&args.arguments).exec();
    match error.kind() {
        std::io::ErrorKind::NotFound => bail!(
            "{PROGRAM} is neither beside this program nor in the path: build it with \
             `cargo build --release -p snowmelt-lab-cli`"
        ),
        _ => Err(error).with_context(|| format!("cannot run {PROGRAM}")),
    }
}
