//! One module per subcommand: its arguments, and `run`.

pub mod backup;
pub mod check;
pub mod compact;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod dump;
pub mod lab;
pub mod load;
pub mod prefix;
pub mod probe;
pub mod publish;
pub mod query;
pub mod restore;
pub mod serve;
pub mod stats;
pub mod token;
pub mod update;
