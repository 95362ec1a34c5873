//! The commands themselves.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use snowmelt_graph::{CompactOptions, CompactTerms, GraphDatabase, GraphError};
use tokio::sync::mpsc;

use super::{Command, Reply};
use crate::dataset::Dataset;
use crate::service::Admin;

/// Pause between two words about progress.
const PAUSE: Duration = Duration::from_millis(100);

/// Sends the progress of a command, and knows whether it goes on.
struct Teller<'a> {
    cancel: &'a AtomicBool,
    replies: &'a mpsc::Sender<Reply>,
    last: Option<Instant>,
}

impl Teller<'_> {
    fn tell(&mut self, step: &str, done: u64, total: u64) -> ControlFlow<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if self.last.is_none_or(|last| last.elapsed() >= PAUSE) {
            self.last = Some(Instant::now());
            // A client that reads slowly misses some.
            let _ = self.replies.try_send(Reply::Progress { step: step.to_owned(), done, total });
        }
        ControlFlow::Continue(())
    }
}

/// The server and the dataset that a command is for.
pub struct CommandTarget {
    pub admin: Arc<Admin>,
    pub dataset: Arc<Dataset>,
}

/// Runs a command on this thread. The last reply is its result.
pub fn perform(target: &CommandTarget, command: Command, cancel: &AtomicBool, replies: &mpsc::Sender<Reply>) {
    let teller = Teller { cancel, replies, last: None };
    let CommandTarget { admin, dataset } = target;
    let database = dataset.engine.graph();
    let done = match command {
        Command::Stats => database.stats().map(|stats| stored(&stats)),
        Command::Statistics => database.statistics_report().map(|report| stored(&report)),
        Command::Meters => {
            let mut samples = admin.meters(dataset).samples();
            samples.extend(admin.advice(Some(dataset)));
            Ok(Reply::Meters(samples))
        }
        Command::Reset(scope) => Ok(match admin.reset_meters(dataset, &scope) {
            Ok(()) => Reply::Reset,
            Err(message) => Reply::Failed { message },
        }),
        Command::Check => check(database, teller),
        Command::Compact { terms } => compact(database, terms, teller),
        Command::Backup { target, stripes } => backup(database, &target, &stripes, teller),
        Command::BackupToSet { set } => backup_to_set(database, &set, teller),
    };
    let last = done.unwrap_or_else(|error| Reply::Failed { message: error.to_string() });
    let _ = replies.blocking_send(last);
}

type Done = Result<Reply, GraphError>;

/// A report on what is stored, for people and for programs.
fn stored(report: &(impl serde::Serialize + std::fmt::Display)) -> Reply {
    let json = serde_json::to_value(report).unwrap_or_default();
    Reply::Stats { table: report.to_string(), json }
}

fn check(database: &Arc<GraphDatabase>, mut teller: Teller<'_>) -> Done {
    let report = database.check_until(&mut |at| teller.tell(at.step, at.done, at.total))?;
    Ok(Reply::Checked {
        pages: report.pages,
        rows: report.rows,
        strings: report.strings,
        problems: report.problems,
        problem_count: report.problem_count,
    })
}

fn compact(database: &Arc<GraphDatabase>, terms: CompactTerms, mut teller: Teller<'_>) -> Done {
    let options = CompactOptions { terms, ..CompactOptions::default() };
    let done = database.compact(&options, |step| {
        let (step, done, total) = step.told();
        teller.tell(&step, done, total)
    })?;
    Ok(Reply::Compacted {
        before: done.before_bytes,
        after: done.after_bytes,
        terms: done.terms.to_string(),
        moved: done.leaves + done.consolidated,
    })
}

fn backup(database: &Arc<GraphDatabase>, target: &Path, stripes: &[PathBuf], mut teller: Teller<'_>) -> Done {
    let done = database
        .database()
        .backup_until(target, stripes, |at| teller.tell("copying extents", at.extents_done, at.extents))?;
    Ok(Reply::BackedUp { pages: done.pages, txn: done.txn })
}

fn backup_to_set(database: &Arc<GraphDatabase>, set: &Path, mut teller: Teller<'_>) -> Done {
    let added = database
        .database()
        .backup_to_set(set, |at| teller.tell("looking at extents", at.extents_done, at.extents))?;
    Ok(match added {
        Some((part, done)) => Reply::AddedToSet { name: Some(part.name), pages: done.pages, txn: done.txn },
        None => Reply::AddedToSet { name: None, pages: 0, txn: database.database().newest() },
    })
}
