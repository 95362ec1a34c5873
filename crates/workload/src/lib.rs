//! Drives query mixes through an engine, records them and shows the results: the parts that the
//! demo and the laboratory have in common.
//!
//! 1. `target`: what answers; `in_process`: the engine in this process, with a `cpu_model` in
//!    virtual time; `digest`: rows and digest of an answer.
//! 2. `curve`: throughput over time, and the time to full speed; `process`: processor time of this
//!    process; `kept`: answers as they came; `drive`: clients take mixes from one stream, run their
//!    queries, and keep a record of each.
//! 3. `beliefs`, `sampler`: counters second by second, and the learned costs of the
//!    devices.
//! 4. `dataset`, `cold`, `scratch_dir`: data generated into a database; cold files, and proof that
//!    they are; a folder for all that.
//! 5. `bench`: an open database and the queries it gets.
//! 6. `plot`, `drawing`, `race`: runs side by side, as text and as a picture.
//!
//! Every answer is serialised into memory as SPARQL XML (RDF/XML for graphs), so that serialisation
//! is a part of the measured time. There is no cache of results.

#![forbid(unsafe_code)]

pub mod beliefs;
pub mod bench;
pub mod cold;
pub mod cpu_model;
pub mod curve;
pub mod dataset;
pub mod digest;
pub mod drawing;
pub mod drive;
pub mod in_process;
pub mod kept;
pub mod plot;
pub mod process;
pub mod race;
pub mod sampler;
pub mod scratch_dir;
pub mod target;
