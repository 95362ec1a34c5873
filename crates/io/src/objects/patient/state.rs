//! All requests of a patient store, and how they go on. Nothing here calls: changes lead to acts,
//! which are done without the lock.
//!
//! Invariants: `ready` holds exactly the requests that wait for their turn; `times` holds each
//! request once, with the time of its next look; `outstanding` is the number of all attempts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hdrhistogram::Histogram;
use snowmelt_base::random::Random;

use crate::latency::{Latency, histogram};
use crate::objects::patient::counters::ObjectCounters;
use crate::objects::patient::patience::Patience;
use crate::objects::patient::request::{Attempt, PatientRequest, Stage, Verdict, sound};
use crate::objects::patient::times::GetTimes;
use crate::objects::patient::width::Width;
use crate::objects::{Answer, Ask, Done, ObjectError, ObjectErrorKind, Ongoing};

/// Hedges that may be saved up.
const MOST_HEDGES: f64 = 16.0;

/// Something to be done without the lock.
pub(super) enum Act {
    /// Asks the store.
    Begin { id: u64, attempt: u64, ask: Ask },
    /// Answers a caller.
    Answer(Done, Result<Answer, ObjectError>),
    /// Gives an attempt up.
    GiveUp(Ongoing),
}

/// See the head of the file.
pub(super) struct PatientState {
    name: Arc<str>,
    patience: Patience,
    random: Random,
    /// By number, in order of arrival.
    requests: BTreeMap<u64, PatientRequest>,
    requests_begun: u64,
    attempts_begun: u64,
    ready: BTreeSet<u64>,
    times: BTreeSet<(u64, u64)>,
    outstanding: usize,
    /// The last change of `busy_ns`.
    busy_at_ns: u64,
    /// When the store gave its last good answer.
    good_ns: u64,
    width: Width,
    get_times: GetTimes,
    /// Hedges that the gets so far allow.
    hedges: f64,
    counters: ObjectCounters,
    of_gets: Histogram<u64>,
    of_puts: Histogram<u64>,
}

impl PatientState {
    pub(super) fn new(name: Arc<str>, patience: Patience) -> PatientState {
        patience.check();
        PatientState {
            name,
            patience,
            random: Random(patience.seed),
            requests: BTreeMap::new(),
            requests_begun: 0,
            attempts_begun: 0,
            ready: BTreeSet::new(),
            times: BTreeSet::new(),
            outstanding: 0,
            busy_at_ns: 0,
            good_ns: 0,
            width: Width::new(patience.width),
            get_times: GetTimes::default(),
            hedges: 0.0,
            counters: ObjectCounters::default(),
            of_gets: histogram(),
            of_puts: histogram(),
        }
    }

    /// When there is something to look at; `u64::MAX`: never.
    pub(super) fn next_ns(&self) -> u64 {
        self.times.first().map_or(u64::MAX, |(at_ns, _)| *at_ns)
    }

    pub(super) fn counters(&self, now_ns: u64) -> ObjectCounters {
        let busy_since_ns = if self.outstanding > 0 { now_ns.saturating_sub(self.busy_at_ns) } else { 0 };
        ObjectCounters {
            waiting: self.ready.len() as u64,
            outstanding: self.outstanding as u64,
            width: self.width.get() as u64,
            busy_ns: self.counters.busy_ns + busy_since_ns,
            get_times: Latency::from_histogram(&self.of_gets),
            put_times: Latency::from_histogram(&self.of_puts),
            ..self.counters
        }
    }

    // --- callers ---

    /// Takes a request; returns its number.
    pub(super) fn begin(&mut self, ask: Ask, done: Done, now_ns: u64, acts: &mut Vec<Act>) -> u64 {
        let counters = &mut self.counters;
        let count = match &ask {
            Ask::Get { .. } => {
                self.hedges = (self.hedges + self.patience.hedged).min(MOST_HEDGES);
                &mut counters.gets
            }
            Ask::Put { .. } => &mut counters.puts,
            Ask::Delete { .. } => &mut counters.deletes,
            Ask::List { .. } => &mut counters.lists,
        };
        *count += 1;
        let id = self.requests_begun;
        self.requests_begun += 1;
        self.requests.insert(id, PatientRequest::new(ask, done, now_ns));
        self.ready.insert(id);
        self.plan(id);
        self.advance(now_ns, acts);
        id
    }

    /// A caller has dropped its handle.
    pub(super) fn give_up(&mut self, id: u64, now_ns: u64, acts: &mut Vec<Act>) {
        if let Some(done) = self.remove(id, now_ns, acts) {
            self.counters.given_up += 1;
            // Never called, but dropped without the lock.
            acts.push(Act::GiveUp(Ongoing::new(move || drop(done))));
            self.advance(now_ns, acts);
        }
    }

    /// Ends all requests with an error.
    pub(super) fn close(&mut self, acts: &mut Vec<Act>) {
        while let Some((&id, request)) = self.requests.first_key_value() {
            let kind = ObjectErrorKind::Unavailable("the store was closed".into());
            let error = ObjectError::new(&self.name, &request.ask, kind);
            self.end(id, Err(error), self.busy_at_ns, acts);
        }
        assert_eq!(self.outstanding, 0, "attempts belong to requests");
    }

    // --- attempts ---

    /// Begins attempts of waiting requests, as many as may be outstanding.
    fn advance(&mut self, now_ns: u64, acts: &mut Vec<Act>) {
        while self.outstanding < self.width.get()
            && let Some(id) = self.ready.pop_first()
        {
            self.attempt(id, false, now_ns, acts);
        }
    }

    fn attempt(&mut self, id: u64, is_hedge: bool, now_ns: u64, acts: &mut Vec<Act>) {
        self.count_busy(now_ns);
        self.outstanding += 1;
        let number = self.attempts_begun;
        self.attempts_begun += 1;
        let request = self.requests.get_mut(&id).expect("only requests have attempts");
        let (ask, bytes) = (request.next_ask(), request.bytes());
        self.counters.attempts += 1;
        self.counters.retries += u64::from(request.failures > 0 && !is_hedge);
        if let Ask::Put { bytes, .. } = &ask {
            self.counters.bytes_out += bytes.len() as u64;
        }
        request.first_ns.get_or_insert(now_ns);
        request.stage = Stage::Asking;
        request.hedge_ns = None;
        let is_first = matches!(ask, Ask::Get { .. }) && !request.finds_out && !is_hedge;
        if is_first && let Some(slow_ns) = self.get_times.slow_ns(bytes) {
            request.hedge_ns = Some(now_ns.saturating_add(slow_ns));
        }
        let until_ns = now_ns.saturating_add(self.patience.attempt_ns(bytes.unwrap_or(0)));
        request.attempts.push(Attempt { number, begun_ns: now_ns, until_ns, is_hedge, ongoing: None });
        acts.push(Act::Begin { id, attempt: number, ask });
        self.plan(id);
    }

    /// False when an attempt is over, or given up.
    pub(super) fn is_wanted(&mut self, id: u64, attempt: u64) -> bool {
        self.outstanding_attempt(id, attempt).is_some()
    }

    fn outstanding_attempt(&mut self, id: u64, attempt: u64) -> Option<&mut Attempt> {
        self.requests.get_mut(&id)?.attempts.iter_mut().find(|it| it.number == attempt)
    }

    /// Keeps the handle of an attempt; returns it if the attempt is over.
    pub(super) fn keep(&mut self, id: u64, attempt: u64, ongoing: Ongoing) -> Option<Ongoing> {
        match self.outstanding_attempt(id, attempt) {
            Some(attempt) => {
                attempt.ongoing = Some(ongoing);
                None
            }
            None => Some(ongoing),
        }
    }

    /// Takes the answer to an attempt.
    pub(super) fn heard(
        &mut self,
        id: u64,
        attempt: u64,
        answer: Result<Answer, ObjectError>,
        now_ns: u64,
        acts: &mut Vec<Act>,
    ) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let Some(at) = request.attempts.iter().position(|it| it.number == attempt) else { return };
        let attempt = request.attempts.swap_remove(at);
        let asked = request.next_ask();
        request.count_shorts(&answer);
        let answer = answer.and_then(|answer| {
            sound(&asked, answer).map_err(|kind| {
                self.counters.short_bodies += u64::from(matches!(kind, ObjectErrorKind::Short { .. }));
                ObjectError::new(&self.name, &asked, kind)
            })
        });
        self.count_busy(now_ns);
        self.outstanding -= 1;
        self.learn(&asked, &attempt, &answer, now_ns);
        acts.extend(attempt.ongoing.map(Act::GiveUp));
        self.go_on(id, attempt.is_hedge, answer, now_ns, acts);
        self.advance(now_ns, acts);
    }

    /// Learns from the answer to an attempt.
    fn learn(&mut self, asked: &Ask, attempt: &Attempt, answer: &Result<Answer, ObjectError>, now_ns: u64) {
        let ns = now_ns.saturating_sub(attempt.begun_ns);
        match answer {
            Err(e) if e.kind == ObjectErrorKind::TooOften => {
                self.counters.throttled += 1;
                self.width.too_often(attempt.begun_ns, now_ns);
                return;
            }
            Err(e) if e.kind.is_passing() => return,
            Err(_) => {}
            Ok(Answer::Got { bytes, .. }) => {
                let Ask::Get { range, .. } = asked else { unreachable!("a sound answer") };
                self.get_times.add(range.as_ref().map(|it| it.end - it.start), ns);
                self.of_gets.saturating_record(ns);
                self.counters.bytes_in += bytes.len() as u64;
            }
            Ok(Answer::Put(_)) => self.of_puts.saturating_record(ns),
            Ok(Answer::Deleted | Answer::Listed(_)) => {}
        }
        self.width.good();
        self.good_ns = now_ns;
    }

    /// Ends a request, or has it go on, after the answer to one of its attempts.
    fn go_on(
        &mut self,
        id: u64,
        is_hedge: bool,
        answer: Result<Answer, ObjectError>,
        now_ns: u64,
        acts: &mut Vec<Act>,
    ) {
        let request = self.requests.get_mut(&id).expect("just looked for");
        match request.judge(answer) {
            Verdict::Over(answer) => {
                self.counters.hedges_won += u64::from(is_hedge && answer.is_ok());
                self.end(id, answer, now_ns, acts);
            }
            Verdict::Found(answer) => {
                self.counters.puts_found += 1;
                self.end(id, Ok(answer), now_ns, acts);
            }
            // The other attempt is still outstanding.
            Verdict::Again if !request.attempts.is_empty() => self.plan(id),
            Verdict::Again => self.pause(id, now_ns, acts),
        }
    }

    /// Has a request wait before its next attempt, or ends it if that would come too late.
    fn pause(&mut self, id: u64, now_ns: u64, acts: &mut Vec<Act>) {
        let request = self.requests.get_mut(&id).expect("a request that goes on");
        request.failures += 1;
        let pause_ns = self.random.below(self.patience.pause_ns(request.failures).saturating_add(1));
        let until_ns = now_ns.saturating_add(pause_ns);
        request.stage = Stage::Pausing { until_ns };
        if until_ns < deadline_ns(request, &self.patience, self.good_ns) {
            self.plan(id);
        } else {
            self.end_late(id, now_ns, acts);
        }
    }

    // --- times ---

    /// Does what is due.
    pub(super) fn look(&mut self, now_ns: u64, acts: &mut Vec<Act>) {
        while let Some(&(at_ns, id)) = self.times.first()
            && at_ns <= now_ns
        {
            self.look_at(id, now_ns, acts);
            // Begun at once, so that one that comes later does not hedge before it.
            self.advance(now_ns, acts);
        }
    }

    fn look_at(&mut self, id: u64, now_ns: u64, acts: &mut Vec<Act>) {
        let request = self.requests.get_mut(&id).expect("only requests have times");
        if deadline_ns(request, &self.patience, self.good_ns) <= now_ns {
            return self.end_late(id, now_ns, acts);
        }
        match request.stage {
            Stage::Pausing { until_ns } if until_ns <= now_ns => {
                request.stage = Stage::Ready;
                self.ready.insert(id);
            }
            Stage::Asking => {
                if let Some(late) = request.attempts.iter().find(|it| it.until_ns <= now_ns) {
                    let ms = (now_ns - late.begun_ns) / 1_000_000;
                    let (number, asked) = (late.number, request.next_ask());
                    let error = ObjectError::new(&self.name, &asked, ObjectErrorKind::Late { ms });
                    return self.heard(id, number, Err(error), now_ns, acts);
                }
                if request.hedge_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                    request.hedge_ns = None;
                    if self.hedges >= 1.0 && self.outstanding < self.width.get() {
                        self.hedges -= 1.0;
                        self.counters.hedges += 1;
                        return self.attempt(id, true, now_ns, acts);
                    }
                }
            }
            Stage::Pausing { .. } | Stage::Ready => {}
        }
        self.plan(id);
    }

    /// Enters the time at which a request is to be looked at next.
    fn plan(&mut self, id: u64) {
        let request = self.requests.get_mut(&id).expect("a request that goes on");
        let deadline_ns = deadline_ns(request, &self.patience, self.good_ns);
        let next_ns = match request.stage {
            Stage::Ready => deadline_ns,
            Stage::Pausing { until_ns } => until_ns.min(deadline_ns),
            Stage::Asking => {
                let given_up_ns = request.attempts.iter().map(|it| it.until_ns);
                given_up_ns.chain(request.hedge_ns).fold(deadline_ns, u64::min)
            }
        };
        self.times.remove(&(request.next_ns, id));
        request.next_ns = next_ns;
        self.times.insert((next_ns, id));
    }

    // --- ends ---

    /// Answers with the last error, or that it is too late.
    fn end_late(&mut self, id: u64, now_ns: u64, acts: &mut Vec<Act>) {
        let request = self.requests.get_mut(&id).expect("a request that goes on");
        let ms = self.patience.deadline_ns(request.bytes().unwrap_or(0)) / 1_000_000;
        let late = ObjectError::new(&self.name, &request.ask, ObjectErrorKind::Late { ms });
        let error = request.last_error.take().unwrap_or(late);
        self.end(id, Err(error), now_ns, acts);
        self.advance(now_ns, acts);
    }

    fn end(&mut self, id: u64, answer: Result<Answer, ObjectError>, now_ns: u64, acts: &mut Vec<Act>) {
        if let Err(e) = &answer {
            let is_answer = matches!(e.kind, ObjectErrorKind::Missing | ObjectErrorKind::Changed);
            self.counters.failures += u64::from(!is_answer);
        }
        let done = self.remove(id, now_ns, acts).expect("a request ends once");
        acts.push(Act::Answer(done, answer));
    }

    /// Takes a request out, and gives its attempts up.
    fn remove(&mut self, id: u64, now_ns: u64, acts: &mut Vec<Act>) -> Option<Done> {
        let request = self.requests.remove(&id)?;
        self.ready.remove(&id);
        self.times.remove(&(request.next_ns, id));
        self.count_busy(now_ns);
        self.outstanding -= request.attempts.len();
        for attempt in request.attempts {
            let ns = now_ns.saturating_sub(attempt.begun_ns);
            if let Ask::Get { range, .. } = &request.ask {
                self.get_times.add_unanswered(range.as_ref().map(|it| it.end - it.start), ns);
            }
            acts.extend(attempt.ongoing.map(Act::GiveUp));
        }
        Some(request.done)
    }

    fn count_busy(&mut self, now_ns: u64) {
        if self.outstanding > 0 {
            self.counters.busy_ns += now_ns.saturating_sub(self.busy_at_ns);
        }
        self.busy_at_ns = now_ns;
    }
}

/// When a request is given up. One that waits has time while others are answered.
fn deadline_ns(request: &PatientRequest, patience: &Patience, good_ns: u64) -> u64 {
    let from_ns = request.first_ns.unwrap_or(request.begun_ns.max(good_ns));
    from_ns.saturating_add(patience.deadline_ns(request.bytes().unwrap_or(0)))
}
