//! SERVICE: rows of endpoints elsewhere, asked for the values of the input.
//!
//! 1. Of each batch of the input the *distinct* combinations of the values that are sent get
//!    numbers (seeds). Some hundred of them are one question: a VALUES with the numbers in a column
//!    of its own, beside the pattern. So an answer's row says which seed it is for. Its values are
//!    not compared with those that were sent: the endpoint has done that, and may write `01` as
//!    `1`.
//! 2. How many seeds a question has follows from how long answers take ([`ServicePace`]). A few
//!    questions are under way at the same time; their answers are taken in their order.
//! 3. A row is paired with all rows of the input that have its seed.
//!
//! A blank node is known here alone. It matches nothing elsewhere, so where the pattern always
//! binds the variable, its seed is not sent; elsewhere it is sent as unbound, and what comes with
//! another value does not match. Blank nodes of an answer are new ones.
//!
//! Without an input there is one question, for all that the endpoint has.
//!
//! A query with nothing to do until an endpoint answers lends its slot and the memory it does not
//! use ([`EndpointWait`]).

mod pace;
mod question;
mod received;
mod seeds;
mod wait;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use snowmelt_graph::{TermId, TermRef};

use super::nested::{grouped, number};
use super::rows::{Queue, append};
use super::{Boxed, Operator, Result, Run};
use crate::algebra::consts::GroundTerm;
use crate::error::QueryError;
use crate::exec::Batch;
use crate::plan::Src;
use crate::remote::{RemoteFault, RemoteFaultKind, RemotePart};
use pace::ServicePace;
use question::{Question, Questions};
use received::{Asked, Received, UnderWay};
pub(super) use seeds::ServiceSpec;
use seeds::{SeedRows, Waiting};
use wait::EndpointWait;

/// How long an answer is waited for before the limits of the query are looked at.
const LOOK: Duration = Duration::from_millis(10);
/// Questions under way at the same time.
const AT_ONCE: usize = 8;
/// Bytes of a worker for each of them: of parts that have come and wait.
const QUESTION_BYTES: usize = 1 << 20;

pub(super) struct ServiceJoin {
    spec: ServiceSpec,
    questions: Questions,
    input: Option<Boxed>,
    is_over: bool,
    waiting: VecDeque<Waiting>,
    under_way: VecDeque<UnderWay>,
    /// rows that are not all paired yet
    received: VecDeque<Received>,
    paces: FxHashMap<String, ServicePace>,
    /// paired rows not yet given out
    paired: Batch,
    queue: Queue,
}

impl ServiceJoin {
    pub fn new(spec: ServiceSpec, input: Option<Boxed>, run: &Run) -> Result<Self> {
        if run.query.remote.is_none() && !spec.service.is_silent {
            let fault = RemoteFault::none_allowed();
            let endpoint = match spec.endpoint {
                Src::Const(c) => told(&run.query.constant_term(c)),
                _ => "?".to_owned(),
            };
            return Err(QueryError::Service { endpoint, fault });
        }
        let questions = Questions::new(&spec, input.is_some(), run);
        Ok(Self {
            spec,
            questions,
            input,
            is_over: false,
            waiting: VecDeque::new(),
            under_way: VecDeque::new(),
            received: VecDeque::new(),
            paces: FxHashMap::default(),
            paired: Batch::default(),
            queue: Queue::default(),
        })
    }

    /// Takes more of the input while there are few seeds to be sent.
    fn take_input(&mut self, run: &mut Run) -> Result<()> {
        while self.wants_input() {
            let batch = match &mut self.input {
                Some(input) => input.next(run)?,
                None => {
                    self.is_over = true;
                    Some(Batch::unit())
                }
            };
            match batch {
                Some(batch) => self.add(batch, run)?,
                None => self.is_over = true,
            }
        }
        Ok(())
    }

    fn wants_input(&self) -> bool {
        !self.is_over && self.waiting.is_empty() && self.received.is_empty() && self.under_way.len() < 2
    }

    /// Numbers the seeds of a batch, and has them wait for their endpoints.
    fn add(&mut self, batch: Batch, run: &mut Run) -> Result<()> {
        let endpoint = if let Src::Col(c) = self.spec.endpoint { Some(usize::from(c)) } else { None };
        let sent = self.spec.sent.iter().map(|value| usize::from(value.col));
        let cols: Vec<usize> = endpoint.into_iter().chain(sent).collect();
        let (numbers, firsts) = number(&batch, &cols);
        let (rows, starts) = grouped(&numbers, firsts.len());
        let seeds = Arc::new(SeedRows { batch, firsts, rows, starts });
        let all = 0..seeds.firsts.len() as u32;
        let Some(endpoint) = endpoint else {
            let endpoint = match self.spec.endpoint {
                Src::Const(c) => told(&run.query.constant_term(c)),
                _ => unreachable!("an endpoint is a constant or a column"),
            };
            self.waiting.push_back(Waiting { seeds, endpoint, numbers: all.collect() });
            return Ok(());
        };
        let mut lists: Vec<(TermId, VecDeque<u32>)> = Vec::new();
        let mut places: FxHashMap<TermId, usize> = FxHashMap::default();
        for seed in all {
            let id = seeds.batch.cols[endpoint][seeds.firsts[seed as usize] as usize];
            let place = *places.entry(id).or_insert_with(|| {
                lists.push((id, VecDeque::new()));
                lists.len() - 1
            });
            lists[place].1.push_back(seed);
        }
        run.terms.begin_batch();
        run.terms.prefetch_whole(&mut run.source.session, lists.iter().map(|list| list.0))?;
        for (id, numbers) in lists {
            match endpoint_of(id, run) {
                Ok(endpoint) => {
                    self.waiting.push_back(Waiting { seeds: Arc::clone(&seeds), endpoint, numbers });
                }
                Err(_) if self.spec.service.is_silent => {
                    let columns = self.spec.new.len();
                    self.received.push_back(Received::unmatched(&seeds, numbers, columns, run)?);
                }
                Err(why) => {
                    let variable = self.spec.service.endpoint.var();
                    let variable = variable.map_or("?", |v| run.query.algebra.names[v.0 as usize].as_str());
                    return Err(QueryError::ServiceName { variable: variable.to_owned(), why });
                }
            }
        }
        Ok(())
    }

    /// Sends as many questions as there is room for.
    fn send(&mut self, run: &mut Run) -> Result<()> {
        let at_once = (run.memory.worker_bytes() / QUESTION_BYTES).clamp(1, AT_ONCE);
        let mut at = 0;
        while at < self.waiting.len() && self.under_way.len() < at_once {
            let waiting = &mut self.waiting[at];
            let pace = self.paces.entry(waiting.endpoint.clone()).or_default();
            let same = self.under_way.iter().filter(|other| other.question.endpoint == waiting.endpoint);
            if same.count() >= pace.at_once() {
                at += 1;
                continue;
            }
            let question = self.questions.next(waiting, pace.values(), run)?;
            if waiting.numbers.is_empty() {
                self.waiting.remove(at);
            }
            if let Some(question) = question {
                self.under_way.push_back(ask(question, run));
            }
        }
        Ok(())
    }

    /// The next part of the first answer. False when nothing has come and there is other work.
    fn receive(&mut self, run: &mut Run) -> Result<bool> {
        let has_work = self.paired.rows > 0 || self.wants_input();
        let Some(first) = self.under_way.front_mut() else { return Ok(true) };
        let part = match next_part(&mut first.answer, run) {
            Ok(RemotePart::Waiting) if !has_work => await_part(&mut first.answer, run)?,
            part => part,
        };
        match part {
            Ok(RemotePart::Waiting) => Ok(false),
            Ok(RemotePart::Rows(rows)) => {
                match first.resolve(rows, &self.spec, run)? {
                    Ok(received) if received.is_done() => {} // it has no rows
                    Ok(received) if !self.spec.service.is_silent || first.is_streamed => {
                        self.received.push_back(received);
                    }
                    Ok(received) => {
                        first.is_streamed = !first.keep(received);
                        if first.is_streamed {
                            self.received.extend(first.kept_back.drain(..));
                        }
                    }
                    Err(fault) => self.fail(fault, run)?,
                }
                Ok(true)
            }
            Ok(RemotePart::End(used)) => {
                let Some(first) = self.under_way.pop_front() else { return Ok(true) };
                let Question { endpoint, numbers, .. } = &first.question;
                self.paces.entry(endpoint.clone()).or_default().answered(numbers.len(), used.time);
                if let Some(profile) = &mut run.profile {
                    profile.operators[self.spec.id].asked(endpoint, used);
                }
                self.received.extend(first.kept_back);
                Ok(true)
            }
            Err(fault) => self.fail(fault, run).map(|()| true),
        }
    }

    /// The first question has no answer: it is asked in parts, passed over, or the query's error.
    fn fail(&mut self, fault: RemoteFault, run: &Run) -> Result<()> {
        let Some(first) = self.under_way.pop_front() else { return Ok(()) };
        let UnderWay { question, is_streamed, rows, .. } = first;
        let (values, is_silent) = (question.numbers.len(), self.spec.service.is_silent);
        if fault.kind == RemoteFaultKind::TooLong && values > 1 && rows == 0 {
            self.paces.entry(question.endpoint.clone()).or_default().too_many(values);
            let Question { seeds, endpoint, numbers, unsent, .. } = question;
            let numbers = numbers.into_iter().chain(unsent).collect();
            self.waiting.push_front(Waiting { seeds, endpoint, numbers });
            return Ok(());
        }
        // rows that were used cannot be taken back
        if !is_silent || is_streamed {
            return Err(QueryError::Service { endpoint: question.endpoint, fault });
        }
        let numbers = question.numbers.into_iter().chain(question.unsent).collect();
        let columns = self.spec.new.len();
        self.received.push_back(Received::unmatched(&question.seeds, numbers, columns, run)?);
        Ok(())
    }

    /// Pairs rows with those of the input, up to a batch of them.
    fn pair(&mut self, run: &Run) {
        let Some(first) = self.received.front_mut() else { return };
        let out = first.pair(&self.spec, run.query.batch.most.max(1));
        if first.is_done() {
            self.received.pop_front();
        }
        append(&mut self.paired, out);
        if self.paired.rows >= run.query.batch.first {
            self.give(run);
        }
    }

    fn give(&mut self, run: &Run) {
        self.queue.push(std::mem::take(&mut self.paired), run);
    }
}

/// Sends a question, unless the update has waited long enough.
fn ask(question: Question, run: &Run) -> UnderWay {
    let answer = match (&run.query.remote, over(run)) {
        (None, _) => Err(RemoteFault::none_allowed()),
        (Some(_), Some(late)) => Err(late),
        (Some(remote), None) => remote.select(question.remote()),
    };
    UnderWay::new(question, answer)
}

/// The next part of an answer, unless the update has waited long enough.
fn next_part(answer: &mut Asked, run: &Run) -> std::result::Result<RemotePart, RemoteFault> {
    let answer = answer.as_mut().map_err(|fault| fault.clone())?;
    if let Some(late) = over(run) {
        return Err(late);
    }
    let Some(wait) = &run.query.remote_wait else { return answer.next(LOOK) };
    let begun = Instant::now();
    let part = answer.next(LOOK);
    wait.add(begun.elapsed());
    over(run).map_or(part, Err)
}

/// The next part of an answer of which nothing has come for a moment.
fn await_part(answer: &mut Asked, run: &Run) -> Result<std::result::Result<RemotePart, RemoteFault>> {
    let mut wait = EndpointWait::begin(run);
    loop {
        run.check()?;
        match next_part(answer, run) {
            Ok(RemotePart::Waiting) => wait.goes_on(),
            part => {
                wait.end()?;
                return Ok(part);
            }
        }
    }
}

/// The fault once the update has waited long enough.
fn over(run: &Run) -> Option<RemoteFault> {
    run.query.remote_wait.as_ref().filter(|wait| wait.is_over()).map(|wait| wait.fault())
}

/// The text of a constant endpoint.
fn told(term: &GroundTerm) -> String {
    match term {
        GroundTerm::Iri(iri) => iri.as_str().to_owned(),
        GroundTerm::Literal(literal) => literal.value().to_owned(),
        GroundTerm::Triple(triple) => triple.to_string(),
    }
}

/// The address that a prefetched value of a variable endpoint is.
fn endpoint_of(id: TermId, run: &Run) -> std::result::Result<String, &'static str> {
    let iri = run.terms.with_term(id, |term| match term {
        TermRef::Iri(iri) => Some(iri.to_owned()),
        _ => None,
    });
    match iri {
        None => Err("a solution leaves the variable unbound"),
        Some(None) => Err("a value of it is no IRI"),
        Some(Some(iri)) => Ok(iri),
    }
}

impl Operator for ServiceJoin {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.queue.pop() {
                return Ok(Some(batch));
            }
            run.check()?;
            if !self.received.is_empty() {
                self.pair(run);
                continue;
            }
            self.take_input(run)?;
            self.send(run)?;
            if self.received.is_empty() && self.under_way.is_empty() {
                if self.is_over && self.waiting.is_empty() {
                    if self.paired.rows == 0 {
                        return Ok(None);
                    }
                    self.give(run);
                }
                continue;
            }
            if self.received.is_empty() && !self.receive(run)? && self.paired.rows > 0 {
                self.give(run);
            }
        }
    }

    fn reset(&mut self, seed: &Batch) {
        if let Some(input) = &mut self.input {
            input.reset(seed);
        }
        self.is_over = false;
        self.waiting.clear();
        self.under_way.clear();
        self.received.clear();
        self.paired = Batch::default();
        self.queue.clear();
    }
}
