//! Drives query mixes through an engine in this process, one thread per client, and keeps what each query did.
//!
//! Clients take the next mix from a common queue. Every answer is serialised as SPARQL XML (RDF/XML for graphs), so that
//! the work is whole; the digest is taken after the clock stopped. The same code runs in real and in virtual time: there the
//! processor's share comes from a model of the query's meters, because measured CPU time would make runs differ.

pub mod report;
pub mod sampler;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use snowmelt_bsbm::{Mix, QueryKind};
use snowmelt_io::Clock;
use snowmelt_sparql::{Engine, QueryError, QueryOptions, ResultFormat};
use snowmelt_store::Activity;

/// What one execution of one query did.
#[derive(Clone, Debug)]
pub struct Record {
    /// the query's number in its use case
    pub number: u32,
    /// start and end, in nanoseconds of the run's clock
    pub start_ns: u64,
    /// end of serialisation
    pub end_ns: u64,
    /// solutions or triples
    pub rows: u64,
    /// bytes of the serialised answer
    pub bytes: u64,
    /// independent of the order of rows
    pub digest: u64,
    /// true for the last query of a mix
    pub ends_mix: bool,
    /// the query failed (timeout, memory)
    pub failed: Option<String>,
}

/// Modelled processor time of a query, for virtual time: nanoseconds per query, per index lookup, per row moved over and
/// per byte written, measured on one core of a 2.6 GHz server.
#[derive(Clone, Copy, Debug)]
pub struct CpuModel {
    /// fixed cost of a query
    pub query_ns: f64,
    /// per random lookup
    pub rnd_ns: f64,
    /// per row moved over
    pub seq_ns: f64,
    /// per byte of answer
    pub byte_ns: f64,
}

impl Default for CpuModel {
    fn default() -> Self {
        Self { query_ns: 60_000.0, rnd_ns: 250.0, seq_ns: 15.0, byte_ns: 4.0 }
    }
}

impl CpuModel {
    fn cost_ns(&self, activity: &Activity, bytes: u64) -> u64 {
        (self.query_ns
            + self.rnd_ns * activity.rnd as f64
            + self.seq_ns * activity.seq as f64
            + self.byte_ns * bytes as f64) as u64
    }
}

/// How mixes are driven.
pub struct Drive<'a> {
    /// the engine under test
    pub engine: &'a Engine,
    /// real or virtual
    pub clock: &'a Clock,
    /// threads
    pub clients: usize,
    /// set to end the run after the queries under way
    pub stop: &'a AtomicBool,
    /// called after every query with its record, from the client's thread
    pub on_query: &'a (dyn Fn(&Record) + Sync),
}

impl Drive<'_> {
    /// Runs `mixes` and returns what each query did, client by client. The first error that is not a query's own limit ends the run.
    pub fn run(&self, mixes: &[Mix]) -> Result<Vec<Record>, QueryError> {
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let results: Vec<Result<Vec<Record>, QueryError>> = thread::scope(|scope| {
            // Places are reserved in order, so that virtual time does not depend on which thread starts first.
            let tickets = self.clock.reserve(self.clients);
            let clients: Vec<_> = tickets
                .into_iter()
                .map(|ticket| {
                    let (next, failed) = (&next, &failed);
                    scope.spawn(move || {
                        let _turn = ticket.enter();
                        let result = self.client(mixes, next, failed);
                        if result.is_err() {
                            failed.store(true, Ordering::Relaxed);
                        }
                        result
                    })
                })
                .collect();
            clients.into_iter().map(|c| c.join().expect("a client thread panicked")).collect()
        });
        let mut records = Vec::new();
        for result in results {
            records.extend(result?);
        }
        Ok(records)
    }

    fn client(&self, mixes: &[Mix], next: &AtomicUsize, failed: &AtomicBool) -> Result<Vec<Record>, QueryError> {
        let mut records = Vec::new();
        let mut answer = Vec::with_capacity(1 << 16);
        while let Some(mix) = mixes.get(next.fetch_add(1, Ordering::Relaxed)) {
            for (i, query) in mix.queries.iter().enumerate() {
                if self.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                    return Ok(records);
                }
                let mut record = self.query(query, &mut answer)?;
                record.ends_mix = i + 1 == mix.queries.len();
                (self.on_query)(&record);
                records.push(record);
            }
        }
        Ok(records)
    }

    fn query(&self, query: &snowmelt_bsbm::Query, answer: &mut Vec<u8>) -> Result<Record, QueryError> {
        answer.clear();
        let start_ns = self.clock.now_ns();
        let outcome = self.execute(query, answer);
        let end_ns = self.clock.now_ns();
        let (rows, failed) = match outcome {
            Ok(rows) => (rows, None),
            Err(error @ (QueryError::Timeout { .. } | QueryError::Memory { .. })) => (0, Some(error.to_string())),
            Err(error) => return Err(error),
        };
        let digest = if failed.is_none() { digest(answer) } else { 0 };
        let bytes = answer.len() as u64;
        Ok(Record { number: query.number, start_ns, end_ns, rows, bytes, digest, ends_mix: false, failed })
    }

    fn execute(&self, query: &snowmelt_bsbm::Query, answer: &mut Vec<u8>) -> Result<u64, QueryError> {
        let result = self.engine.query(&query.text, &QueryOptions::default())?;
        let format = match query.kind {
            QueryKind::Select => ResultFormat::Xml,
            QueryKind::Describe | QueryKind::Construct => ResultFormat::RdfXml,
        };
        let written = result.write(format, answer)?;
        if self.clock.is_virtual() {
            self.clock.charge_cpu(CpuModel::default().cost_ns(&written.activity, answer.len() as u64));
        }
        Ok(written.rows)
    }
}

/// A digest that does not depend on the order of solutions or triples: the sum of the hashes of the pieces between the
/// element that starts each.
fn digest(answer: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(answer);
    let mark = if text.contains("<result>") { "<result>" } else { "<rdf:Description" };
    text.split(mark).map(|piece| snowmelt_store::hash(piece.as_bytes())).fold(0, u64::wrapping_add)
}

/// Sums per query number.
pub fn by_query(records: &[Record]) -> BTreeMap<u32, Vec<&Record>> {
    let mut groups: BTreeMap<u32, Vec<&Record>> = BTreeMap::new();
    for record in records {
        groups.entry(record.number).or_default().push(record);
    }
    groups
}
