//! One module per command that is not the laboratory's own: its arguments, and `run`.

pub mod believed;
pub mod bsbm_drive;
pub mod bsbm_generate;
pub mod bsbm_run;
pub mod bsbm_scale;
pub mod compare_engines;
pub mod oltp;
pub mod repeat;
pub mod scan_index;

/// The program of the database.
const SNOWMELT: &str = "snowmelt";
