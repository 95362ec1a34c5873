//! Bounds on what clients may ask for and how long they may take, with their defaults in one place.
//!
//! | limit           | switch of `serve`  | beyond it                                                                 |
//! |-----------------|--------------------|---------------------------------------------------------------------------|
//! | `queries`       | `--queries`        | waits for its turn, after `wait` 503 with `Retry-After`                   |
//! | `changes`       | `--changes`        | the same                                                                  |
//! | `wait`          | `--wait`           |                                                                           |
//! | `threads`       | `--threads`        | is given so many                                                          |
//! | `timeout`       | `--timeout`        | 503; the connection breaks if rows have left already                      |
//! | `remote_wait`   | `--service-wait`   | 504; with SILENT the update goes on without answers                       |
//! | `body_bytes`    | `--max-update`     | 413                                                                       |
//! | `document_bytes`| `--max-document`   | 413                                                                       |
//! | `connections`   | `--connections`    | 503 with `Retry-After`; [`MOST_REFUSED`] more are answered, others closed |
//! | `per_address`   | `--connections-per-address` | 503 with `Retry-After`                                           |
//! | `head`          | `--head-deadline`  | 408                                                                       |
//! | `idle`          | `--idle-deadline`  | closed                                                                    |
//! | `stall`         | `--stall-deadline` | 408 for a body; a client that does not read is closed                     |

use std::time::Duration;

/// Connections that are told 503 at the same time; those beyond are closed without a word.
pub const MOST_REFUSED: usize = 64;
/// Bytes of a body that must come within each [`ServerLimits::stall`].
pub const LEAST_BODY_BYTES: u64 = 16 << 10;
/// Largest head of a request.
pub const HEAD_BYTES: usize = 128 << 10;

/// Bounds on what clients may ask for.
#[derive(Clone, Debug)]
pub struct ServerLimits {
    /// queries running at the same time; others wait
    pub queries: usize,
    /// threads that one query may use
    pub threads: usize,
    /// updates and graphs on their way at the same time; they change one after the other and
    /// become durable together
    pub changes: usize,
    /// the longest a query or change waits for its turn
    pub wait: Duration,
    /// the longest a query or update may run
    pub timeout: Option<Duration>,
    /// the longest an update waits for endpoints in all, while other changes wait for it
    pub remote_wait: Option<Duration>,
    /// the largest body of a query, and the largest operation of an update, which is held in memory
    pub body_bytes: u64,
    /// the largest graph or update that PUT and POST take, which passes through a file
    pub document_bytes: u64,
    /// connections served at the same time
    pub connections: usize,
    /// and of one address, loopback and trusted proxies aside; requests at the same time, of one
    /// that comes through a proxy
    pub per_address: usize,
    /// from the first byte of a request to the end of its head; from connecting to the first
    /// byte, too
    pub head: Duration,
    /// from one answer to the next request on a connection
    pub idle: Duration,
    /// in which a body must come on by [`LEAST_BODY_BYTES`], and in which a client must take
    /// some of its answer
    pub stall: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            queries: 64,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            changes: 64,
            wait: Duration::from_secs(30),
            timeout: Some(Duration::from_secs(300)),
            remote_wait: Some(Duration::from_secs(60)),
            body_bytes: 16 << 20,
            document_bytes: 16 << 30,
            connections: 256,
            per_address: 64,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            stall: Duration::from_secs(30),
        }
    }
}
