//! Forked work: the range of a pipeline's first scan is cut into parts, and threads run the
//! pipeline on one part after the other.
//!
//! Only where rows may come in any order: below operators that take their whole
//! input anyway (group, sort, distinct, the build side of a hash join), and at the root. Only
//! for pipelines of scans, look-ups and operators row by row, and only if the plan expects
//! [`THREAD_WORK`] of work for each thread; time that a device needs for look-ups counts
//! as work, because the threads wait for it together. Where much of the scan has to be read,
//! the parts are pieces of one stream ([`SharedScan`]). A thread has its own session and terms;
//! local terms are the query's. Batches come back through a bounded channel. An error of one
//! thread, or dropping the operator, stops all.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use snowmelt_database::meters::Activity;
use snowmelt_graph::{AnyIndex, TermId};

use super::run::Part;
use super::shared::SharedScan;
use super::{Boxed, Operator, Profile, Result, Run};
use crate::algebra::Var;
use crate::bounds::{Held, with_room};
use crate::error::QueryError;
use crate::exec::Batch;
use crate::plan::{Access, Op, Plan, PlanNode, Src};
use snowmelt_query::{Receiver, Sender, channel};

/// Expected work for which a thread is worth starting.
pub(crate) const THREAD_WORK: Duration = Duration::from_millis(5);

/// Expected microseconds of a right side that each thread may build on its own.
const RIGHT_SIDE: f64 = 1000.0;

/// Parts per thread, so that unequal parts even out.
const PARTS: usize = 4;

/// Batches on their way per thread.
const BATCHES: usize = 2;

#[cfg(test)]
thread_local! {
    /// Threads that this one forks are to panic.
    pub(crate) static PANIC: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Makes a node runnable for a part.
pub(super) type BuildPart = fn(&PlanNode, &mut Run) -> Result<Boxed>;

/// How the scan of a pipeline is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Anyhow,
    /// all rows with one value of the column after its key are in one part
    ByValue,
}

/// Work that threads share.
struct ForkedWork {
    plan: Arc<Plan>,
    node: usize,
    build_part: BuildPart,
    parts: Mutex<VecDeque<Part>>,
    /// activity of threads that have ended, until it is taken in
    activity: Mutex<Activity>,
}

/// A message of a thread.
enum Message {
    Batch(Batch),
    End(Option<Profile>),
    Failed(QueryError),
}

pub(super) struct Parallel {
    work: Arc<ForkedWork>,
    threads: usize,
    /// what the threads need beside what their operators hold
    #[expect(dead_code, reason = "held for its drop")]
    held: Held,
    stop: Arc<AtomicBool>,
    /// the query's, for activity that no next call takes in
    left_over: Arc<Mutex<Activity>>,
    running: Option<(Receiver<Message>, Vec<JoinHandle<()>>)>,
    /// all rows were given out
    is_ended: bool,
}

/// A node with a pipeline, itself or its input, in several threads, if that is worth it. If not,
/// the pipeline's scan may have a part to take.
pub(super) fn fork(
    node: &PlanNode,
    pipeline: &PlanNode,
    run: &mut Run,
    (cut, build_part): (Cut, BuildPart),
) -> Result<Option<Boxed>> {
    // the context is this thread's
    let can_fork = node.contexts.is_empty() && !run.is_forked && !run.is_repeated;
    let scan = if can_fork { first_scan(pipeline) } else { None };
    let Some((scan, access)) = scan else { return Ok(None) };
    // where pages have to be read, the pipeline is forked alone: its scan may be shared
    if cut == Cut::ByValue && node.cost.io > 0.0 {
        return Ok(None);
    }
    let Some(key) = constant_key(access, run) else { return Ok(None) };
    // look-ups of several threads wait for the device together; the one stream of a scan is no
    // faster for more readers
    let least_us = (run.query.thread_work.as_secs_f64() * 1e6).max(f64::MIN_POSITIVE);
    let work = node.cost.cpu + (node.cost.io - scan.cost.io).max(0.0);
    let mut threads = run.query.threads.min((work / least_us) as usize);
    // a thread has terms and batches of its own
    let mut held = run.memory.held();
    let each = run.memory.worker_bytes() / 2;
    while threads > 1 && (held.is_tight(threads * each) || held.set(threads * each, "threads").is_err()) {
        threads -= 1;
    }
    // a shared scan reads all
    let may_share = cut == Cut::Anyhow && !access.leaps() && access.bounds.is_none();
    let shared = if may_share { SharedScan::begin(access.index, &key, run)? } else { None };
    let parts = match shared {
        Some(shared) if threads > 1 => Some(std::iter::repeat_n(Part::Pieces(shared), threads).collect()),
        Some(shared) => {
            assert!(run.part.is_none(), "the part before has been taken by its scan");
            run.part = Some(Part::Pieces(shared));
            None
        }
        None if threads > 1 => ranges(access.index, &key, threads * PARTS, run)?,
        None => None,
    };
    let Some(parts) = parts else { return Ok(None) };
    assert!(!parts.is_empty(), "a forked pipeline has parts");
    assert!(threads <= run.query.threads, "a query forks to no more threads than it may");
    Ok(Some(Box::new(Parallel {
        work: Arc::new(ForkedWork {
            plan: run.query.plan.clone(),
            node: node.id,
            build_part,
            parts: Mutex::new(parts),
            activity: Mutex::default(),
        }),
        threads,
        held,
        stop: Arc::default(),
        left_over: run.query.left_over.clone(),
        running: None,
        is_ended: false,
    })))
}

/// The scan that a pipeline begins with, if it is nothing but a pipeline.
fn first_scan(node: &PlanNode) -> Option<(&PlanNode, &Access)> {
    match &node.op {
        Op::Scan { access } => {
            let whole = !access.default_graph && !access.merge_graphs && !access.counts();
            (whole && access.key.len() < access.index.arity()).then_some((node, access))
        }
        Op::Lookup { input, .. }
        | Op::Filter { input, .. }
        | Op::Extend { input, .. }
        | Op::Project { input, .. }
        | Op::Fold { input, .. }
        | Op::Repeat { input, .. }
        | Op::Distinct { input, optional: true } => first_scan(input),
        Op::Nested { left, right, .. } if is_light(right) => first_scan(left),
        // the build side is built by each thread
        Op::Hash { left, right, .. } if right.cost.cpu < RIGHT_SIDE => first_scan(left),
        _ => None,
    }
}

/// The variable of the column that the scan of a pipeline is cut by.
pub(super) fn cut_by(pipeline: &PlanNode) -> Option<Var> {
    let (scan, access) = first_scan(pipeline)?;
    access.new.iter().position(|column| *column == 0).map(|at| scan.vars[at])
}

/// The ids of a scan's key; `None`: one is not in the data, and nothing is found.
fn constant_key(access: &Access, run: &Run) -> Option<Vec<TermId>> {
    let id = |src: &Src| match src {
        Src::Const(c) => run.constant(*c),
        Src::Fixed(id) => Some(*id),
        Src::Col(_) => None,
    };
    access.key.iter().map(id).collect()
}

/// Whether a seeded plan can be run by each thread on its own.
fn is_light(node: &PlanNode) -> bool {
    let light = match &node.op {
        Op::Seed | Op::Context { .. } => return true,
        // an endpoint is rather asked for many values at once
        Op::Service { .. } => false,
        Op::Group { .. } | Op::GroupWithout { .. } => false,
        Op::Sort { .. } | Op::Distinct { optional: false, .. } | Op::Slice { .. } => false,
        Op::Hash { right, .. } => right.cost.cpu < RIGHT_SIDE,
        _ => true,
    };
    light
        && crate::plan::children(&node.op).into_iter().all(|c| {
            is_light(c) || matches!(c.op, Op::Scan { .. } | Op::Unit | Op::Values { .. } | Op::Nothing)
        })
}

/// Cuts the column after a scan's key into ranges of about equally many rows, by exact counts.
fn ranges(index: AnyIndex, key: &[TermId], parts: usize, run: &mut Run) -> Result<Option<VecDeque<Part>>> {
    let total = run.source.count(index, key, None)?;
    let mut ranges = VecDeque::with_capacity(parts);
    let mut from = 0u64;
    for part in 1..parts as u64 {
        let goal = total * part / parts as u64;
        let near = total / parts as u64 / 8;
        let (mut low, mut high) = (from, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            let rows = run.source.count(index, key, Some((0, middle)))?;
            if rows.abs_diff(goal) <= near {
                (low, high) = (middle, middle);
            } else if rows < goal {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low > from && low < u64::MAX {
            ranges.push_back((from, low));
            from = low + 1;
        }
    }
    ranges.push_back((from, u64::MAX));
    let follow = |a: &(u64, u64), b: &(u64, u64)| a.0 <= a.1 && a.1.checked_add(1) == Some(b.0);
    assert!(ranges.iter().is_sorted_by(|a, b| follow(a, b)), "parts leave no value out and have none twice");
    // one value holds nearly everything
    let is_cut = ranges.len() > 1;
    Ok(is_cut.then(|| ranges.into_iter().map(|(low, high)| Part::Range(low, high)).collect()))
}

impl Parallel {
    fn start(&mut self, run: &mut Run) -> Result<()> {
        assert!(self.running.is_none() && self.threads > 1, "a pipeline is forked once, to several threads");
        let clock = run.source.session.graph().database().clock().clone();
        let (senders, receiver) = channel(self.threads, self.threads * BATCHES, &clock);
        // before the first starts: those that did are joined when another does not
        let (_, handles) = self.running.insert((receiver, Vec::with_capacity(self.threads)));
        for (sender, ticket) in senders.into_iter().zip(clock.reserve(self.threads)) {
            let own = run.fork(self.stop.clone());
            let stop = self.stop.clone();
            let work = self.work.clone();
            #[cfg(test)]
            let is_planted = PANIC.get();
            let body = move || {
                #[cfg(test)]
                assert!(!is_planted, "a planted panic");
                let _taking_part = ticket.enter();
                // gone before the thread leaves the time it takes part in
                let sender = sender;
                let done = with_room(work.plan.room, || work.run(own(), &sender));
                if let Err(error) = done {
                    // the first error is the query's: the others only follow from it
                    let stopped = stop.swap(true, Ordering::Relaxed);
                    if !stopped {
                        drop(sender.send(Message::Failed(error)));
                    }
                }
            };
            match std::thread::Builder::new().name("query".to_owned()).spawn(body) {
                Ok(handle) => handles.push(handle),
                // The parts are taken by those that there are.
                Err(_) if !handles.is_empty() => {}
                Err(error) => return Err(QueryError::Write(error)),
            }
        }
        let forked = handles.len();
        run.source.session.count_forks(forked);
        if let Some(profile) = &mut run.profile {
            profile.operators[self.work.node].threads = forked;
        }
        Ok(())
    }

    /// Ends the threads; goes on with the panic of one that panicked.
    fn join(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some((receiver, handles)) = self.running.take() {
            receiver.close();
            for handle in handles {
                if let Err(panic) = handle.join()
                    && !std::thread::panicking()
                {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}

impl ForkedWork {
    /// One thread: part after part until there are none.
    fn run(&self, mut run: Run, sender: &Sender<Message>) -> Result<()> {
        let done = self.parts_of(&mut run, sender);
        *self.activity.lock() += run.source.session.activity();
        if done? == Ended::Whole {
            // the operator is gone: then its counters are, too
            drop(sender.send(Message::End(run.profile.take())));
        }
        Ok(())
    }

    fn parts_of(&self, run: &mut Run, sender: &Sender<Message>) -> Result<Ended> {
        assert!(run.is_forked, "a part is worked on by a forked worker");
        let node = find(&self.plan.root, self.node).expect("the node is of this plan");
        loop {
            let Some(part) = self.parts.lock().pop_front() else { break };
            run.part = Some(part);
            let mut pipeline = (self.build_part)(node, run)?;
            assert!(run.part.is_none(), "the first scan takes the part");
            while let Some(batch) = pipeline.next(run)? {
                if sender.send(Message::Batch(batch)).is_err() {
                    return Ok(Ended::Early);
                }
            }
        }
        Ok(Ended::Whole)
    }

    /// The activity of threads that have ended since it was asked for.
    fn ended(&self) -> Activity {
        std::mem::take(&mut *self.activity.lock())
    }
}

/// How a thread ended.
#[derive(PartialEq, Eq)]
enum Ended {
    Whole,
    /// the operator wants no more
    Early,
}

fn find(node: &PlanNode, id: usize) -> Option<&PlanNode> {
    if node.id == id {
        return Some(node);
    }
    crate::plan::children(&node.op).into_iter().find_map(|c| find(c, id))
}

impl Operator for Parallel {
    fn next(&mut self, run: &mut Run) -> Result<Option<Batch>> {
        if self.is_ended {
            return Ok(None);
        }
        if self.running.is_none() {
            self.start(run)?;
        }
        loop {
            run.check()?;
            let (receiver, _) = self.running.as_ref().expect("started above");
            match receiver.receive() {
                Some(Message::Batch(batch)) => {
                    assert!(batch.rows > 0, "workers send no empty batch");
                    batch.check();
                    return Ok(Some(batch));
                }
                Some(Message::End(profile)) => {
                    run.forked += self.work.ended();
                    if let (Some(all), Some(profile)) = (&mut run.profile, profile) {
                        all.add(&profile);
                    }
                }
                Some(Message::Failed(error)) => return Err(error),
                // all threads have ended; one that panicked has not given out all its rows
                None => {
                    self.join();
                    self.is_ended = true;
                    return Ok(None);
                }
            }
        }
    }

    fn reset(&mut self, _: &Batch) {
        unreachable!("what is reset is not forked");
    }
}

impl Drop for Parallel {
    fn drop(&mut self) {
        self.join();
        *self.left_over.lock() += self.work.ended();
    }
}
