//! Snowmelt: a graph database that plans its reads. This façade is for embedding; the `snowmelt` command uses it too.

#![forbid(unsafe_code)]

pub mod control;
pub mod device;
pub mod driver;
pub mod open;
pub mod running;
pub mod scratch_dir;
pub mod signals;
pub mod size;
pub mod texts;

pub use snowmelt_bsbm as bsbm;
pub use snowmelt_graph as graph;
pub use snowmelt_io as io;
pub use snowmelt_server as server;
pub use snowmelt_sparql as sparql;
pub use snowmelt_store as store;
