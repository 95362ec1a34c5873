//! Clients that take mixes from one stream, in real or in virtual time.
//!
//! Mixes are drawn when they are taken, so a run of any length needs no memory for its texts. No
//! client waits while it holds the lock of the stream, so in virtual time the same client always
//! gets the same mix.
//!
//! A *closed loop* sends a client's next query when its last one is answered. An *open loop*
//! ([`Rules::rate`]) has a moment for each query, however slow the answers are: the next free
//! client sends it then, or later if none is free, and its time counts from that moment.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Result, bail};
use snowmelt_bsbm::{Mix, Query, QueryKind, Workload};
use snowmelt_io::Clock;
use twox_hash::XxHash3_64;

use super::curve::Curve;
use super::digest::{Reading, as_written};
use super::kept::KeptAnswers;
use super::process::thread_cpu_ns;
use super::target::{Answered, Failure, Target};

/// One execution of one query.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The query's number in its use case.
    pub number: u32,
    /// The mix it belongs to, counted from 1 in its stream.
    pub mix: u64,
    /// A hash of its text.
    pub text: u64,
    /// True of an update: it has no rows to compare.
    pub is_update: bool,
    /// Due time in nanoseconds of the run's clock; in a closed loop the time of the start.
    pub due_ns: u64,
    /// Start, after a connection was made if there was none.
    pub start_ns: u64,
    /// End of serialisation.
    pub end_ns: u64,
    /// Time that making a connection took.
    pub connect_ns: u64,
    /// Solutions or triples.
    pub rows: u64,
    /// Bytes of the serialised answer.
    pub bytes: u64,
    /// Digest of the answer, independent of the order of rows.
    pub digest: u64,
    /// Modelled processor time in nanoseconds; 0 in real time.
    pub work_ns: u64,
    /// Nanoseconds of it until the first operator began, where the target tells.
    pub planning_ns: u64,
    /// True for the last query of a mix.
    pub ends_mix: bool,
    /// Why there is no answer.
    pub failed: Option<Failure>,
}

impl Record {
    /// Time of the query, from the moment it should start.
    pub fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.due_ns) as f64 / 1e9
    }

    /// Delay of its start.
    pub fn late_ns(&self) -> u64 {
        self.start_ns.saturating_sub(self.due_ns)
    }
}

/// A hash of a query's text, by which runs are compared.
pub fn text_hash(text: &str) -> u64 {
    XxHash3_64::oneshot(text.as_bytes())
}

/// Where mixes come from.
#[derive(Clone, Debug)]
pub enum Stream {
    /// The benchmark's, without end.
    Drawn(Box<Workload>),
    /// One mix again and again.
    Same(Mix),
}

impl Stream {
    /// The next one.
    pub fn next_mix(&mut self) -> Mix {
        match self {
            Self::Drawn(workload) => workload.next_mix(),
            Self::Same(mix) => mix.clone(),
        }
    }
}

/// Mixes not yet taken, their number, and the queries left of the mix that was begun.
struct Left {
    stream: Stream,
    mixes: u64,
    begun: VecDeque<Task>,
    /// Queries taken one by one.
    taken: u64,
}

/// A query and its place.
struct Task {
    query: Query,
    mix: u64,
    ends_mix: bool,
}

fn tasks(mix: Mix) -> impl Iterator<Item = Task> {
    let (last, number) = (mix.queries.len().saturating_sub(1), mix.number);
    let place = move |(i, query)| Task { query, mix: number, ends_mix: i == last };
    mix.queries.into_iter().enumerate().map(place)
}

/// The stream of mixes that clients share, ended by a number of mixes, a moment, or a flag.
pub struct Mixes<'a> {
    left: Mutex<Left>,
    until_ns: Option<u64>,
    stop: Vec<&'a AtomicBool>,
}

impl<'a> Mixes<'a> {
    /// At most `count` mixes; no query is begun after one of `stop` is set.
    pub fn new(stream: Stream, count: u64, stop: &[&'a AtomicBool]) -> Self {
        let left = Left { stream, mixes: count, begun: VecDeque::new(), taken: 0 };
        Self { left: Mutex::new(left), until_ns: None, stop: stop.to_vec() }
    }

    /// No query is begun at or after this moment of the run's clock.
    pub fn until(mut self, end_ns: u64) -> Self {
        self.until_ns = Some(end_ns);
        self
    }

    fn take(&self) -> Option<Mix> {
        let mut left = self.left.lock().expect("drawing parameters does not panic");
        left.next_mix()
    }

    /// The next query, and how many were taken before.
    fn take_query(&self) -> Option<(u64, Task)> {
        let mut left = self.left.lock().expect("drawing parameters does not panic");
        if left.begun.is_empty() {
            let mix = left.next_mix()?;
            left.begun.extend(tasks(mix));
        }
        left.taken += 1;
        Some((left.taken - 1, left.begun.pop_front()?))
    }

    fn over(&self, clock: &Clock) -> bool {
        self.stop.iter().any(|stop| stop.load(Ordering::Relaxed))
            || self.until_ns.is_some_and(|end| clock.now_ns() >= end)
    }

    /// The stream behind the mixes taken so far.
    pub fn into_stream(self) -> Stream {
        self.left.into_inner().expect("drawing parameters does not panic").stream
    }
}

impl Left {
    fn next_mix(&mut self) -> Option<Mix> {
        self.mixes = self.mixes.checked_sub(1)?;
        Some(self.stream.next_mix())
    }
}

/// How queries are sent and their answers taken.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Open loop: queries per second that are due, evenly. `None`: a closed loop.
    pub rate: Option<f64>,
    /// How answers become rows and digests.
    pub reading: Reading,
    /// A broken answer is counted; otherwise it ends the run.
    pub keeps_going: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { rate: None, reading: as_written, keeps_going: false }
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
    /// Closed loop, answers digested as they are written, unless set.
    pub rules: Rules,
    /// Keeps answers.
    pub kept: Option<&'a KeptAnswers>,
}

/// Processor time of the clients' threads, in nanoseconds; none in virtual time. Two looks at a
/// thread's clock around each query, outside of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientWork {
    /// Between two queries: parameters are drawn, records kept.
    pub drawing_ns: u64,
    /// A query is sent and its answer received; of an engine in this process, its work in the
    /// client's thread.
    pub asking_ns: u64,
    /// Answers become rows and digests.
    pub reading_ns: u64,
}

impl ClientWork {
    /// Both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            drawing_ns: self.drawing_ns + other.drawing_ns,
            asking_ns: self.asking_ns + other.asking_ns,
            reading_ns: self.reading_ns + other.reading_ns,
        }
    }
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
    /// Processor time of all clients.
    pub work: ClientWork,
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

impl<'a> Drive<'a> {
    /// A drive of `target` by `clients` clients.
    pub fn new(target: &'a dyn Target, clock: &'a Clock, clients: usize) -> Self {
        Self { target, clock, clients, on_query: &|_| {}, rules: Rules::default(), kept: None }
    }

    /// Keeps answers there.
    pub fn keeping(self, kept: Option<&'a KeptAnswers>) -> Self {
        Self { kept, ..self }
    }

    /// Calls `on_query` after every query, from the client's thread.
    pub fn on_query(self, on_query: &'a (dyn Fn(&Record) + Sync)) -> Self {
        Self { on_query, ..self }
    }

    /// Under other rules.
    pub fn rules(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }
}

impl Drive<'_> {
    /// Runs mixes until they end. The first error that is not a query's own limit ends the run.
    pub fn run(&self, mixes: &Mixes<'_>) -> Result<Run> {
        self.run_beside(mixes, None)
    }

    /// Runs mixes until they end, as [`Drive::run`] does, with background work in a thread of its
    /// own.
    pub fn run_beside(&self, mixes: &Mixes<'_>, work: Option<&(dyn Fn() + Sync)>) -> Result<Run> {
        let failed = AtomicBool::new(false);
        let from_ns = self.clock.now_ns();
        let results: Vec<Result<(Vec<Record>, ClientWork)>> = thread::scope(|scope| {
            // Places are reserved in order before the first thread starts, so that virtual time
            // does not depend on which thread is faster.
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
                    let result = self.client(mixes, from_ns, failed);
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    result
                })
            };
            let clients: Vec<_> = tickets.into_iter().map(client).collect();
            clients.into_iter().map(|client| client.join().expect("a client thread panicked")).collect()
        });
        let (records, work): (Vec<_>, Vec<_>) =
            results.into_iter().collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let work = work.into_iter().fold(ClientWork::default(), ClientWork::plus);
        Ok(Run { from_ns, to_ns: self.clock.now_ns(), records: records.concat(), work })
    }

    fn client(
        &self,
        mixes: &Mixes<'_>,
        from_ns: u64,
        failed: &AtomicBool,
    ) -> Result<(Vec<Record>, ClientWork)> {
        let mut client = Client {
            drive: self,
            records: Vec::new(),
            answer: Vec::with_capacity(1 << 16),
            work: ClientWork::default(),
            looked_ns: 0,
        };
        client.looked_ns = client.cpu_ns();
        let over = || mixes.over(self.clock) || failed.load(Ordering::Relaxed);
        match self.rules.rate {
            None => client.closed_loop(mixes, &over)?,
            Some(rate) => client.open_loop(mixes, from_ns, rate, &over)?,
        }
        Ok((client.records, client.work))
    }

    /// Sleeps until shortly before `due_ns`, then looks at the clock; false if the run is over
    /// before.
    fn wait_until(&self, due_ns: u64, over: &dyn Fn() -> bool) -> bool {
        /// More than a sleep overshoots.
        const WATCHED_NS: u64 = 100_000;
        const NAP_NS: u64 = 50_000_000;
        loop {
            let left = due_ns.saturating_sub(self.clock.now_ns());
            if left == 0 {
                return true;
            } else if over() {
                return false;
            } else if self.clock.is_virtual() {
                self.clock.sleep_ns(left);
            } else if left > WATCHED_NS {
                self.clock.sleep_ns((left - WATCHED_NS).min(NAP_NS));
            } else {
                thread::yield_now();
            }
        }
    }
}

/// One client at work.
struct Client<'a> {
    drive: &'a Drive<'a>,
    records: Vec<Record>,
    answer: Vec<u8>,
    work: ClientWork,
    /// The thread's processor time at the last look.
    looked_ns: u64,
}

impl Client<'_> {
    fn cpu_ns(&self) -> u64 {
        if self.drive.clock.is_virtual() { 0 } else { thread_cpu_ns() }
    }

    /// Processor time since the last look.
    fn worked_ns(&mut self) -> u64 {
        let now_ns = self.cpu_ns();
        now_ns - std::mem::replace(&mut self.looked_ns, now_ns)
    }

    fn closed_loop(&mut self, mixes: &Mixes<'_>, over: &dyn Fn() -> bool) -> Result<()> {
        while !over() {
            let Some(mix) = mixes.take() else { break };
            for task in tasks(mix) {
                if over() {
                    return Ok(());
                }
                self.query(&task, None)?;
            }
        }
        Ok(())
    }

    fn open_loop(
        &mut self,
        mixes: &Mixes<'_>,
        from_ns: u64,
        rate: f64,
        over: &dyn Fn() -> bool,
    ) -> Result<()> {
        while !over() {
            let Some((before, task)) = mixes.take_query() else { break };
            let due_ns = from_ns + (before as f64 * 1e9 / rate) as u64;
            if !self.drive.wait_until(due_ns, over) {
                break;
            }
            self.query(&task, Some(due_ns))?;
        }
        Ok(())
    }

    fn query(&mut self, task: &Task, due_ns: Option<u64>) -> Result<()> {
        let Drive { target, clock, rules, .. } = self.drive;
        let query = &task.query;
        self.answer.clear();
        self.work.drawing_ns += self.worked_ns();
        let begun_ns = clock.now_ns();
        let Answered { mut rows, work_ns, planning_ns, connect_ns, mut failed } =
            target.answer(query, &mut self.answer)?;
        let end_ns = clock.now_ns();
        self.work.asking_ns += self.worked_ns();
        let start_ns = begun_ns + connect_ns;
        let mut digest = 0;
        if failed.is_none() {
            match (rules.reading)(query.kind, &self.answer, rows) {
                Ok(content) => (rows, digest) = (content.rows, content.digest),
                Err(error) => failed = Some(Failure::Broken(format!("malformed answer: {error}"))),
            }
        }
        self.work.reading_ns += self.worked_ns();
        let text = text_hash(&query.text);
        if let Some(kept) = self.drive.kept.filter(|_| failed.is_none() && query.kind != QueryKind::Update) {
            kept.offer(text, (rows, digest), &self.answer);
        }
        if let (Some(Failure::Broken(why)), false) = (&failed, rules.keeps_going) {
            bail!("query {} of mix {}: {why}", query.number, task.mix);
        }
        let record = Record {
            number: query.number,
            mix: task.mix,
            text,
            is_update: query.kind == QueryKind::Update,
            due_ns: due_ns.unwrap_or(start_ns),
            start_ns,
            end_ns,
            connect_ns,
            rows,
            bytes: self.answer.len() as u64,
            digest,
            work_ns,
            planning_ns,
            ends_mix: task.ends_mix,
            failed,
        };
        (self.drive.on_query)(&record);
        self.records.push(record);
        Ok(())
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
        Drive::new(&target, &clock, clients).run(&mixes).unwrap()
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
    fn an_open_loop_has_a_moment_for_each_query() {
        let clock = Clock::virtual_time(2);
        let target = Constant(clock.clone());
        let open = |rate, clients| {
            let workload = Workload::new(100, DEFAULT_SEED, UseCase::Explore).unwrap();
            let mixes = Mixes::new(Stream::Drawn(Box::new(workload)), 2, &[]);
            let rules = Rules { rate: Some(rate), ..Rules::default() };
            let mut run = Drive::new(&target, &clock, clients).rules(rules).run(&mixes).unwrap();
            run.records.sort_by_key(|record| record.due_ns);
            run
        };
        let relaxed = open(100.0, 1);
        assert_eq!((relaxed.records.len(), relaxed.mixes()), (50, 2));
        for (i, record) in (0..).zip(&relaxed.records) {
            assert_eq!((record.due_ns - relaxed.from_ns, record.late_ns()), (i * 10_000_000, 0));
        }
        // One query of 2 ms each ms: each is a ms later than the one before.
        let busy = open(1000.0, 1);
        for (i, record) in (0..).zip(&busy.records) {
            assert_eq!((record.late_ns(), record.seconds()), (i * 1_000_000, (i + 2) as f64 / 1e3));
        }
    }

    #[test]
    fn the_clients_own_work_is_told_by_its_kind() {
        /// Is busy for 2 ms to ask, and for 1 ms to read.
        fn busy(ms: u64) {
            let from = thread_cpu_ns();
            while thread_cpu_ns() < from + ms * 1_000_000 {}
        }
        struct Busy;
        impl Target for Busy {
            fn answer(&self, _: &Query, answer: &mut Vec<u8>) -> Result<Answered> {
                busy(2);
                answer.extend_from_slice(b"answer");
                Ok(Answered::default())
            }
        }
        let reading: Reading = |_, _, rows| {
            busy(1);
            Ok(super::super::digest::Content { rows, digest: 7 })
        };
        let workload = Workload::new(100, DEFAULT_SEED, UseCase::Explore).unwrap();
        let mixes = Mixes::new(Stream::Drawn(Box::new(workload)), 2, &[]);
        let (clock, kept) = (Clock::real(), KeptAnswers::new(1 << 20));
        let rules = Rules { reading, ..Rules::default() };
        let run = Drive::new(&Busy, &clock, 2).rules(rules).keeping(Some(&kept)).run(&mixes).unwrap();
        let ClientWork { drawing_ns, asking_ns, reading_ns } = run.work;
        assert!((100_000_000..150_000_000).contains(&asking_ns), "50 queries of 2 ms: {:?}", run.work);
        assert!((50_000_000..75_000_000).contains(&reading_ns), "{:?}", run.work);
        assert!(drawing_ns > 0 && drawing_ns < reading_ns, "{:?}", run.work);
        assert!(run.records.iter().all(|record| kept.get(record.text) == Some(b"answer".to_vec())));
        assert_eq!(self::run(1, 1, None, false).work, ClientWork::default(), "nothing in virtual time");
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
