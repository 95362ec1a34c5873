//! Object stores of clouds behind the seam [`Objects`]: S3 and servers that speak it, Azure Blob,
//! Google Cloud Storage. Crate `object_store` speaks their protocols.
//!
//! Async stays inside: requests run on one small runtime of the process, and an answer comes
//! through a callback. The layers above retry, set deadlines and bound how many requests are on
//! their way, so nothing here does. Nothing here reads the environment: its variables come with
//! [`CloudOptions::settings`]. (`object_store` itself looks for Google's default credentials in
//! the home directory.)
//!
//! | module     | holds                                                                           |
//! |------------|---------------------------------------------------------------------------------|
//! | `secret`   | [`Secret`] and [`KeyId`], which are not shown                                   |
//! | `options`  | [`CloudOptions`]: credentials, endpoint, encryption                             |
//! | `address`  | `s3://bucket/prefix` and its like                                               |
//! | `profile`  | the file of S3 credentials                                                      |
//! | `runtime`  | the threads that requests run on                                                |
//! | `watch`    | the HTTP client, which keeps what a store said when it refused                  |
//! | `identity` | whose credentials are used, for messages                                        |
//! | `fault`    | refusals as kinds of errors                                                     |
//! | `client`   | settings of connections                                                         |
//! | `service`  | the stores of the three services                                                |
//! | `requests` | get, put, delete, list                                                          |
//! | `objects`  | [`open`] and the implementation of the seam                                     |
//! | `check`    | [`conditional_puts_work`]                                                       |
//!
//! Invariant: a secret is in no name, error or debug text.

mod address;
mod check;
mod client;
mod fault;
mod identity;
mod objects;
mod options;
mod profile;
mod requests;
mod runtime;
mod secret;
mod service;
mod watch;

pub use check::conditional_puts_work;
pub use objects::open;
pub use options::{Addressing, CloudOptions, Credentials, Encryption};
pub use secret::{KeyId, Secret};
#[doc(no_inline)]
pub use snowmelt_io::Objects;
