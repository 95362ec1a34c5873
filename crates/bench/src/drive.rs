//! Clients that take mixes from one stream, in real or in virtual time.
//!
//! Mixes are drawn when they are taken, under a lock that is never held while anybody waits, so
//! a run of any length needs no memory for its texts, and in virtual time the same client
//! always gets the same mix.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Result;
use snowmelt_bsbm::{Mix, Query, Workload};
use snowmelt_io::Clock;

use super::curve::Curve;
use super::digest::digest;
use super::target::Target;

/// One execution of one query.
#[derive(Clone, Debug)]
pub struct Record {
    /// The query's number in its use case.
    pub number: u32,
    /// Start, in nanoseconds of the run's clock.
    pub start_ns: u64,
    /// End of serialisation.
    pub end_ns: u64,
    /// Solutions or triples.
    pub rows: u64,
    /// Bytes of the serialised answer.
    pub bytes: u64,
    /// Of the answer, independent of the order of rows.
    pub digest: u64,
    /// Modelled processor time in nanoseconds; 0 in real time.
    pub work_ns: u64,
    /// Nanoseconds of it until the first operator began, where the target tells.
    pub planning_ns: u64,
    /// True for the last query of a mix.
    pub ends_mix: bool,
    /// Why there is no answer (a limit was hit).
    pub failed: Option<String>,
}

/// Where mixes come from.
#[derive(Clone, Debug)]
pub enum Stream {
    /// The benchmark's, without end.
    Drawn(Box<Workload>),
    /// The same one again and again.
    Same(Mix),
}

impl Stream {
    fn next_mix(&mut self) -> Mix {
        match self {
            Self::Drawn(workload) => workload.next_mix(),
            Self::Same(mix) => mix.clone(),
        }
    }
}

/// The stream of mixes that clients share, ended by a number of mixes, a moment, or a flag.
pub struct Mixes<'a> {
    left: Mutex<(Stream, u64)>,
    until_ns: Option<u64>,
    stop: Vec<&'a AtomicBool>,
}

impl<'a> Mixes<'a> {
    /// At most `count` mixes; no query is begun after one of `stop` is set.
    pub fn new(stream: Stream, count: u64, stop: &[&'a AtomicBool]) -> Self {
        Self { left: Mutex::new((stream, count)), until_ns: None, stop: stop.to_vec() }
    }

    /// No query is begun at or after this moment of the run's clock.
    pub fn until(mut self, end_ns: u64) -> Self {
        self.until_ns = Some(end_ns);
        self
    }

    fn take(&self) -> Option<Mix> {
        let mut left = self.left.lock().expect("drawing parameters does not panic");
        left.1 = left.1.checked_sub(1)?;
        Some(left.0.next_mix())
    }

    fn over(&self, clock: &Clock) -> bool {
        self.stop.iter().any(|stop| stop.load(Ordering::Relaxed))
            || self.until_ns.is_some_and(|end| clock.now_ns() >= end)
    }

    /// The stream behind the mixes taken so far.
    pub fn into_stream(self) -> Stream {
        self.left.into_inner().expect("drawing parameters does not panic").0
    }
}

/// How mixes are driven.
pub struct Drive<'a> {
    /// The engine or endpoint that answers.
    pub target: &'a dyn Target,
    /// Real or virtual.
    pub clock: &'a Clock,
    /// Threads.
    pub clients: usize,
    /// Called after every query, from the client's thread.
    pub on_query: &'a (dyn Fn(&Record) + Sync),
}

/// All records of a run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// When its clients started, in nanoseconds of its clock.
    pub from_ns: u64,
    /// When the last one ended.
    pub to_ns: u64,
    /// Client by client.
    pub records: Vec<Record>,
}

impl Run {
    /// Wall time in seconds.
    pub fn seconds(&self) -> f64 {
        (self.to_ns - self.from_ns) as f64 / 1e9
    }

    /// Mixes completed.
    pub fn mixes(&self) -> usize {
        self.records.iter().filter(|record| record.ends_mix).count()
    }

    /// Queries over time.
    pub fn curve(&self) -> Curve {
        Curve::new(self.from_ns, self.records.iter().map(|r| (r.end_ns, 1.0)))
    }

    /// Modelled processor seconds over time: its rate is the number of busy processors.
    pub fn work_curve(&self) -> Curve {
        Curve::new(self.from_ns, self.records.iter().map(|r| (r.end_ns, r.work_ns as f64 / 1e9)))
    }
}

impl Drive<'_> {
    /// Runs mixes until they end. The first error that is not a query's own limit ends the run.
    pub fn run(&self, mixes: &Mixes<'_>) -> Result<Run> {
        self.run_beside(mixes, None)
    }

    /// The same, with background work in a thread of its own.
    pub fn run_beside(&self, mixes: &Mixes<'_>, work: Option<&(dyn Fn() + Sync)>) -> Result<Run> {
        let failed = AtomicBool::new(false);
        let from_ns = self.clock.now_ns();
        let results: Vec<Result<Vec<Record>>> = thread::scope(|scope| {
            // All places are reserved, in order, before the first thread starts, so that
            // virtual time does not depend on which is faster.
            let mut tickets = self.clock.reserve(usize::from(work.is_some()) + self.clients);
            if let Some(work) = work {
                let ticket = tickets.remove(0);
                scope.spawn(move || {
                    let _turn = ticket.enter();
                    work();
                });
            }
            let failed = &failed;
            let client = |ticket: snowmelt_io::ClientTicket| {
                scope.spawn(move || {
                    let _turn = ticket.enter();
                    let result = self.client(mixes, failed);
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    result
                })
            };
            let clients: Vec<_> = tickets.into_iter().map(client).collect();
            clients.into_iter().map(|client| client.join().expect("a client thread panicked")).collect()
        });
        let records = results.into_iter().collect::<Result<Vec<_>>>()?.concat();
        Ok(Run { from_ns, to_ns: self.clock.now_ns(), records })
    }

    fn client(&self, mixes: &Mixes<'_>, failed: &AtomicBool) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        let mut answer = Vec::with_capacity(1 << 16);
        while !mixes.over(self.clock) {
            let Some(mix) = mixes.take() else { break };
            for (i, query) in mix.queries.iter().enumerate() {
                if mixes.over(self.clock) || failed.load(Ordering::Relaxed) {
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

    fn query(&self, query: &Query, answer: &mut Vec<u8>) -> Result<Record> {
        answer.clear();
        let start_ns = self.clock.now_ns();
        let answered = self.target.answer(query, answer)?;
        let end_ns = self.clock.now_ns();
        Ok(Record {
            number: query.number,
            start_ns,
            end_ns,
            rows: answered.rows,
            bytes: answer.len() as u64,
            digest: if answered.failed.is_none() { digest(answer) } else { 0 },
            work_ns: answered.work_ns,
            planning_ns: answered.planning_ns,
            ends_mix: false,
            failed: answered.failed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::target::Answered;
    use super::*;
    use snowmelt_bsbm::{DEFAULT_SEED, UseCase};

    /// Answers everything in 2 ms of processor time.
    struct Constant(Clock);

    impl Target for Constant {
        fn answer(&self, query: &Query, answer: &mut Vec<u8>) -> Result<Answered> {
            answer.extend_from_slice(query.text.as_bytes());
            self.0.charge_cpu(2_000_000);
            Ok(Answered { rows: 1, work_ns: 2_000_000, ..Answered::default() })
        }
    }

    fn run(clients: usize, mixes: u64, until: Option<u64>, stop: bool) -> Run {
        let clock = Clock::virtual_time(2);
        let target = Constant(clock.clone());
        let workload = Workload::new(100, DEFAULT_SEED, UseCase::Explore).unwrap();
        let stop = AtomicBool::new(stop);
        let mut mixes = Mixes::new(Stream::Drawn(Box::new(workload)), mixes, &[&stop]);
        mixes.until_ns = until;
        Drive { target: &target, clock: &clock, clients, on_query: &|_| {} }.run(&mixes).unwrap()
    }

    #[test]
    fn clients_share_the_mixes_and_the_processors() {
        let one = run(1, 4, None, false);
        assert_eq!((one.mixes(), one.records.len()), (4, 100));
        assert!((one.seconds() - 0.2).abs() < 1e-6, "{}", one.seconds());
        let four = run(4, 4, None, false);
        assert!((four.seconds() - 0.1).abs() < 2e-3, "{}", four.seconds());
        assert!((four.work_curve().final_rate(50) - 2.0).abs() < 0.1);
        let sum = |run: &Run| run.records.iter().map(|r| r.digest).fold(0, u64::wrapping_add);
        assert_eq!(sum(&one), sum(&four), "the same queries, whoever ran them");
    }

    #[test]
    fn virtual_time_repeats_exactly() {
        let times = |run: Run| run.records.iter().map(|r| (r.start_ns, r.end_ns)).collect::<Vec<_>>();
        assert_eq!(times(run(5, 7, None, false)), times(run(5, 7, None, false)));
    }

    #[test]
    fn runs_end_in_time() {
        assert_eq!(run(1, 4, Some(20_000_000), false).records.len(), 10);
        assert_eq!(run(3, 4, None, true).records.len(), 0);
    }
}
