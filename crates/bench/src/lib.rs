//! Drives query mixes through an engine (in this process, or a SPARQL endpoint) and says what
//! they amounted to.
//!
//! 1. `drive`: clients take mixes from one stream, run their queries, and keep a record of each.
//! 2. `target`: who answers. The engine in this process, or an endpoint (`http`).
//! 3. `report`: the benchmark's own figures from the records; `curve`: throughput over time and
//!    when it was full; `content` and `digest`: rows and digest of an answer; `verify`: whether two
//!    runs gave the same answers; `measure`: warm-up and run; `summary`: all of it as JSON, as the
//!    original driver's XML, and as a page.
//! 4. `cold`: how a run is made cold and shown to be; `sampler`: what happens second by second;
//!    `beliefs`: what is believed of the devices meanwhile, and a picture of it (`drawing`).
//!    `warm_up`: when a target is warm, by rules, and what that took; `warm_run` has any target
//!    warm up, as `cold_run` does a database here.
//! 5. `scale`: what grows how with the data, and a flame graph of where the processors are.
//! 6. `ablation`: every read-ahead rule on and off, on modelled devices, in virtual time.
//! 7. `compare`: several engines with the same data, memory and queries, in turns.
//!
//! Every answer is serialised as SPARQL XML (RDF/XML for graphs) into memory, so that the work
//! is whole. There is no cache of results.

#![forbid(unsafe_code)]

pub mod ablation;
pub mod beliefs;
pub mod bench;
pub mod cold;
pub mod cold_run;
pub mod compare;
pub mod content;
pub mod cpu_model;
pub mod curve;
pub mod dataset;
pub mod digest;
mod drawing;
pub mod drive;
pub mod http;
pub mod in_process;
pub mod measure;
pub mod modelled;
pub mod optimum;
pub mod plot;
pub mod process;
pub mod race;
pub mod repeat;
pub mod report;
pub mod sampler;
pub mod scale;
pub mod scratch_dir;
pub mod summary;
pub mod target;
pub mod verify;
pub mod warm_run;
pub mod warm_up;
