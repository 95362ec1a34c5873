//! Bodies of requests, taken to their end before anything begins: within a size, at a pace, in
//! memory that is accounted for.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Bytes, Incoming};
use snowmelt_graph::{Database, Reservation};
use tokio::time::{Instant, timeout_at};

use crate::limits::{LEAST_BODY_BYTES, Limits};
use crate::refusal::Refusal;
use crate::spool::{Spool, Spooled, no_memory};

/// A body on its way in.
struct Intake {
    body: Incoming,
    most: u64,
    switch: &'static str,
    taken: u64,
    pace: Pace,
}

/// At each deadline, so many bytes must have come since the one before.
struct Pace {
    stall: Duration,
    until: Instant,
    bytes: u64,
}

impl Intake {
    fn new(body: Incoming, most: u64, switch: &'static str, limits: &Limits) -> Result<Self, Refusal> {
        let stall = limits.stall;
        let pace = Pace { stall, until: Instant::now() + stall, bytes: 0 };
        let intake = Self { body, most, switch, taken: 0, pace };
        // Told at once, before the client sends it all.
        if intake.body.size_hint().lower() > most { Err(intake.too_large()) } else { Ok(intake) }
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let Ok(frame) = timeout_at(self.pace.until, self.body.frame()).await else {
                self.pace.deadline()?;
                continue;
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame =
                frame.map_err(|e| (StatusCode::BAD_REQUEST, format!("the request body broke off: {e}")))?;
            let Ok(bytes) = frame.into_data() else { continue };
            self.taken += bytes.len() as u64;
            self.pace.bytes += bytes.len() as u64;
            if Instant::now() >= self.pace.until {
                self.pace.deadline()?;
            }
            return if self.taken > self.most { Err(self.too_large()) } else { Ok(Some(bytes)) };
        }
    }

    fn too_large(&self) -> Refusal {
        let message = format!("the request body exceeds {} bytes ({})", self.most, self.switch);
        (StatusCode::PAYLOAD_TOO_LARGE, message)
    }
}

impl Pace {
    fn deadline(&mut self) -> Result<(), Refusal> {
        if self.bytes < LEAST_BODY_BYTES {
            let message = format!(
                "the request body came too slowly: {} bytes in {:?}, at least {LEAST_BODY_BYTES} are wanted (--stall-deadline)",
                self.bytes, self.stall
            );
            return Err((StatusCode::REQUEST_TIMEOUT, message));
        }
        (self.until, self.bytes) = (Instant::now() + self.stall, 0);
        Ok(())
    }
}

/// A body in memory, and what it takes of the budget.
pub struct Held {
    pub bytes: Vec<u8>,
    _memory: Reservation,
}

/// Takes the body of a query or an update.
pub async fn hold(body: Incoming, limits: &Limits, database: &Database) -> Result<Held, Refusal> {
    /// The body, and the text that is made of it.
    const COPIES: u64 = 2;
    let mut intake = Intake::new(body, limits.body_bytes, "--max-update", limits)?;
    let mut memory = database.memory().reserve("a request", 0).map_err(|e| no_memory(&e))?;
    let mut bytes = Vec::new();
    while let Some(more) = intake.next().await? {
        if bytes.len() + more.len() > bytes.capacity() {
            let capacity = (bytes.capacity() * 2).max(bytes.len() + more.len());
            memory.resize("a request", capacity as u64 * COPIES).map_err(|e| no_memory(&e))?;
            bytes.reserve_exact(capacity - bytes.len());
        }
        bytes.extend_from_slice(&more);
    }
    Ok(Held { bytes, _memory: memory })
}

/// Takes a graph, through a file when it is large.
pub async fn spool(body: Incoming, limits: &Limits, database: &Database) -> Result<Spooled, Refusal> {
    let unwritten =
        |e: std::io::Error| (StatusCode::INSUFFICIENT_STORAGE, format!("the body cannot be kept: {e}"));
    let mut intake = Intake::new(body, limits.document_bytes, "--max-document", limits)?;
    let mut spool = Spool::new(database.memory(), database.dir());
    while let Some(bytes) = intake.next().await? {
        // A write to a file waits for the disk when there is much to write.
        tokio::task::block_in_place(|| spool.write(&bytes)).map_err(unwritten)?;
    }
    spool.finish().map_err(unwritten)
}
