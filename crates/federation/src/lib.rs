//! Endpoints elsewhere: queries and documents that are asked for over HTTP.
//!
//! | module    | holds                                                                        |
//! |-----------|------------------------------------------------------------------------------|
//! | `fault`   | why there is no answer                                                        |
//! | `place`   | addresses of HTTP, normalised; the prefixes that allow them                   |
//! | `guard`   | addresses of machines: public ones, and those that were named                 |
//! | `lookup`  | names become addresses, each of which is checked                              |
//! | `slots`   | requests at the same time, of each endpoint and of all                        |
//! | `meter`   | requests, rows, bytes and time of each endpoint                               |
//! | `exchange`| one request: connections, redirects, what is tried again                      |
//! | `reading` | the bytes of an answer within bounds                                          |
//! | `columns` | the columns of an answer, and bounds in any format                            |
//! | `nesting` | bounds of answers in JSON, before their parser                                |
//! | `xml`     | rows in XML                                                                   |
//! | `tsv`     | rows in TSV                                                                   |
//! | `rows`    | the rows of an answer, in any format                                          |
//! | `answer`  | rows and documents, each from a thread of its own                             |
//! | `client`  | all of it together                                                            |
//!
//! An endpoint may never answer, answer without end, with other things than results, or send its
//! clients elsewhere. Each of these is a [`Fault`] of its own, and none of them keeps others
//! waiting: a request has a thread, its place among the requests under way ends when it waits for
//! its reader, and it is broken off when its reader goes.
//!
//! Nothing here knows plans, ids or a database.

#![forbid(unsafe_code)]

mod answer;
mod client;
mod columns;
mod exchange;
mod fault;
mod guard;
mod lookup;
mod meter;
mod nesting;
mod place;
mod reading;
mod rows;
mod slots;
mod tsv;
mod xml;

pub use answer::{Answer, AnswerPart, AnswerUse, Document};
pub use client::{Federation, FederationSettings};
pub use columns::SolutionRow;
pub use fault::Fault;
pub use guard::{AddressRange, NotARange};
pub use lookup::{Lookup, SystemLookup};
pub use meter::EndpointMeter;
pub use place::{NotAPrefix, PlacePrefix};
