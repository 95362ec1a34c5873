//! Bodies of requests, taken to their end before anything begins: decompressed, within a size, at a
//! pace, in memory that is accounted for.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body, Bytes, Incoming};
use snowmelt_database::Reservation;
use snowmelt_graph::GraphDatabase;
use snowmelt_sparql::QueryError;
use tokio::time::{Instant, timeout_at};

use crate::coding::{Coding, Decoder};
use crate::limits::{LEAST_BODY_BYTES, ServerLimits};
use crate::refusal::{Refusal, refusal};
use crate::running::{LOOK, Task};
use crate::spool::{MEMORY_BYTES, Place, Spool, Spooled, no_memory, unwritten};

/// The request that a body belongs to, and the time for it.
#[derive(Clone, Copy)]
pub struct BodyWatch<'a> {
    /// the entry that shows how much has come, and by which it can be ended; none: it is not listed
    pub task: Option<&'a Arc<Task>>,
    /// how long it may be worked on, the waiting for its client aside: a few bytes may turn into
    /// very many
    pub most_work: Option<Duration>,
}

impl BodyWatch<'_> {
    /// Refuses what has been ended.
    fn check(&self) -> Result<(), Refusal> {
        match self.task {
            Some(task) if task.is_cancelled() => Err(refusal(&QueryError::Cancelled)),
            _ => Ok(()),
        }
    }
}

/// The most bytes of a body, and the switch that says so.
#[derive(Clone, Copy)]
struct SizeLimit {
    bytes: u64,
    switch: &'static str,
}

impl SizeLimit {
    fn refusal(self) -> Refusal {
        let message = format!("the request body exceeds {} bytes ({})", self.bytes, self.switch);
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }
}

/// A body on its way in.
struct Intake<'a> {
    body: Incoming,
    watch: BodyWatch<'a>,
    most: SizeLimit,
    taken: u64,
    pace: Pace,
}

/// At each deadline, so many bytes must have come since the one before.
struct Pace {
    stall: Duration,
    until: Instant,
    bytes: u64,
}

impl<'a> Intake<'a> {
    fn new(
        body: Incoming,
        most: SizeLimit,
        limits: &ServerLimits,
        watch: BodyWatch<'a>,
    ) -> Result<Self, Refusal> {
        let stall = limits.stall;
        let pace = Pace { stall, until: Instant::now() + stall, bytes: 0 };
        let intake = Self { body, watch, most, taken: 0, pace };
        // Told at once, before the client sends it all.
        if intake.body.size_hint().lower() > most.bytes { Err(most.refusal()) } else { Ok(intake) }
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            self.watch.check()?;
            let look = match self.watch.task {
                Some(_) => self.pace.until.min(Instant::now() + LOOK),
                None => self.pace.until,
            };
            let Ok(frame) = timeout_at(look, self.body.frame()).await else {
                if Instant::now() >= self.pace.until {
                    self.pace.deadline()?;
                }
                continue;
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|e| {
                Refusal::new(StatusCode::BAD_REQUEST, format!("the request body broke off: {e}"))
            })?;
            let Ok(bytes) = frame.into_data() else { continue };
            self.taken += bytes.len() as u64;
            self.pace.bytes += bytes.len() as u64;
            if let Some(task) = self.watch.task {
                task.progress.add(bytes.len() as u64);
            }
            if Instant::now() >= self.pace.until {
                self.pace.deadline()?;
            }
            return if self.taken > self.most.bytes { Err(self.most.refusal()) } else { Ok(Some(bytes)) };
        }
    }
}

/// How long a body has been worked on.
#[derive(Default)]
struct Work(Mutex<WorkTime>);

#[derive(Default)]
struct WorkTime {
    spent: Duration,
    /// when the piece was begun that is worked on
    begun: Option<Instant>,
}

impl Work {
    /// Does a piece of the work.
    fn piece<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.lock().expect("no holder panics").begun = Some(Instant::now());
        let done = work();
        let mut time = self.0.lock().expect("no holder panics");
        let took = time.begun.take().map_or(Duration::ZERO, |begun| begun.elapsed());
        time.spent += took;
        done
    }

    fn so_far(&self) -> Duration {
        let time = self.0.lock().expect("no holder panics");
        time.spent + time.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }
}

/// A target with a limit on its bytes and on the time of the work.
struct Bounded<'a, W> {
    to: W,
    left: u64,
    most: SizeLimit,
    watch: BodyWatch<'a>,
    work: Arc<Work>,
}

impl<W: Write> Write for Bounded<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.watch.check()?;
        if let Some(most) = self.watch.most_work.filter(|most| self.work.so_far() >= *most) {
            return Err(refusal(&QueryError::Timeout(most)).into());
        }
        let too_large = || self.most.refusal();
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(too_large)?;
        self.to.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Takes a whole body, and writes it decompressed to `to`.
async fn take<W: Place>(
    mut intake: Intake<'_>,
    coding: Option<Coding>,
    to: W,
    database: &GraphDatabase,
) -> Result<W, Refusal> {
    let _memory = match coding {
        Some(coding) => {
            let bytes = coding.decoder_bytes();
            Some(database.database().memory().reserve("a request", bytes).map_err(|e| no_memory(&e))?)
        }
        None => None,
    };
    let work = Arc::new(Work::default());
    // An uncompressed body takes as long as its client takes, and no longer.
    let watch = BodyWatch { most_work: intake.watch.most_work.filter(|_| coding.is_some()), ..intake.watch };
    let most = intake.most;
    let to = Bounded { to, left: most.bytes, most, watch, work: Arc::clone(&work) };
    let wrong = |error: io::Error| match (error.downcast::<Refusal>(), coding) {
        (Ok(refusal), _) => refusal,
        (Err(error), Some(coding)) => Refusal::new(
            StatusCode::BAD_REQUEST,
            format!("the request body is no {}: {error}", coding.name()),
        ),
        (Err(error), None) => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    };
    let mut decoder = Decoder::new(coding, to).map_err(wrong)?;
    while let Some(bytes) = intake.next().await? {
        // Decompressing takes its time, and a file waits for the disk when there is much to write.
        // But each step aside may take a thread more.
        let is_quick = decoder.plain().is_some_and(|bounded| bounded.to.is_quick(bytes.len()));
        let mut write = || work.piece(|| decoder.write(&bytes));
        if is_quick { write() } else { tokio::task::block_in_place(write) }.map_err(wrong)?;
    }
    work.piece(|| decoder.finish()).map(|bounded| bounded.to).map_err(wrong)
}

impl Pace {
    fn deadline(&mut self) -> Result<(), Refusal> {
        if self.bytes < LEAST_BODY_BYTES {
            let message = format!(
                "the request body came too slowly: {} bytes in {:?}, at least {LEAST_BODY_BYTES} are wanted (--stall-deadline)",
                self.bytes, self.stall
            );
            return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, message));
        }
        (self.until, self.bytes) = (Instant::now() + self.stall, 0);
        Ok(())
    }
}

/// A body in memory, and what it takes of the budget.
pub struct HeldBody {
    pub bytes: Vec<u8>,
    memory: Reservation,
}

impl Place for HeldBody {
    fn is_quick(&self, more: usize) -> bool {
        let len = self.bytes.len() + more;
        len <= self.bytes.capacity() || len <= MEMORY_BYTES
    }
}

impl Write for HeldBody {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        /// The body, and the text that is made of it.
        const COPIES: u64 = 2;
        if self.bytes.len() + more.len() > self.bytes.capacity() {
            let capacity = (self.bytes.capacity() * 2).max(self.bytes.len() + more.len());
            let reserved = self.memory.resize("a request", capacity as u64 * COPIES);
            reserved.map_err(|e| no_memory(&e))?;
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes the body of a query or an update.
pub async fn hold(
    body: Incoming,
    coding: Option<Coding>,
    limits: &ServerLimits,
    database: &GraphDatabase,
    watch: BodyWatch<'_>,
) -> Result<HeldBody, Refusal> {
    let most = SizeLimit { bytes: limits.body_bytes, switch: "--max-update" };
    let intake = Intake::new(body, most, limits, watch)?;
    let memory = database.database().memory().reserve("a request", 0).map_err(|e| no_memory(&e))?;
    take(intake, coding, HeldBody { bytes: Vec::new(), memory }, database).await
}

/// Takes a graph, through a file when it is large.
pub async fn spool(
    body: Incoming,
    coding: Option<Coding>,
    limits: &ServerLimits,
    database: &GraphDatabase,
    watch: BodyWatch<'_>,
) -> Result<Spooled, Refusal> {
    let most = SizeLimit { bytes: limits.document_bytes, switch: "--max-document" };
    let intake = Intake::new(body, most, limits, watch)?;
    let dir = || database.database().work_dir();
    let spool = take(intake, coding, Spool::new(database.database().memory(), &dir), database).await?;
    spool.finish().map_err(|e| unwritten(&e))
}
