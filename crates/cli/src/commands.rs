//! One module per subcommand: its arguments, and `run`.

pub mod backup;
pub mod bsbm_generate;
pub mod bsbm_run;
pub mod bsbm_scale;
pub mod check;
pub mod compact;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod dump;
pub mod lab_bsbm;
pub mod lab_compare_engines;
pub mod lab_repeat;
pub mod load;
pub mod probe;
pub mod query;
pub mod restore;
pub mod scan;
pub mod serve;
pub mod stats;
pub mod token;
pub mod update;
