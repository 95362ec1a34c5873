//! One module per command that is not the laboratory's own: its arguments, and `run`.

pub mod believed;
pub mod bsbm_drive;
pub mod bsbm_generate;
pub mod bsbm_run;
pub mod bsbm_scale;
pub mod compare_engines;
pub mod repeat;
pub mod scan_index;

use std::path::PathBuf;

use anyhow::Context;

/// The program of the database: it lies beside this one, or in the path.
fn snowmelt() -> anyhow::Result<PathBuf> {
    const NAME: &str = "snowmelt";
    let own = std::env::current_exe().context("cannot find where this program lies")?;
    let beside = own.with_file_name(NAME);
    Ok(if beside.is_file() { beside } else { PathBuf::from(NAME) })
}
