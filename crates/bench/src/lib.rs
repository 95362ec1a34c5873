//! The laboratory's measurements of query mixes: on this engine, on any SPARQL endpoint, and of
//! several engines beside each other. The mixes are driven by `snowmelt_workload`.
//!
//! 1. `http`: an endpoint as the target of a run.
//! 2. `content`: the terms or rows of an answer; `report`: the benchmark's own figures from the
//!    records; `verify`: whether two runs gave the same answers; `measure`: warm-up and run;
//!    `warm_up`: when a target is warm, by rules, and what that took; `summary`: all of it as JSON,
//!    as the original driver's XML, and as a page.
//! 3. `warm_run` has any target warm up, as `cold_run` does a database here; `optimum`: the least
//!    time for the pages of a cold run.
//! 4. `modelled`: stores on modelled devices; `beliefs`: what is believed of one that changes.
//! 5. `scale`: what grows how with the data, and a flame graph of where the processors are.
//! 6. `ablation`: every read-ahead rule on and off, on modelled devices, in virtual time.
//! 7. `compare`: several engines with the same data, memory and queries, in turns.
//! 8. `oltp`: transactions beside a scan of the same disk.
//! 9. `repeat`: the published experiments.

#![forbid(unsafe_code)]

pub mod ablation;
pub mod beliefs;
pub mod cold_run;
pub mod compare;
pub mod content;
pub mod http;
pub mod measure;
pub mod modelled;
pub mod oltp;
pub mod optimum;
pub mod repeat;
pub mod report;
pub mod scale;
pub mod summary;
pub mod verify;
pub mod warm_run;
pub mod warm_up;
