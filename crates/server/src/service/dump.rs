//! All graphs of a dataset, written out as the answer to one request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyper::{HeaderMap, StatusCode, header};
use snowmelt_database::Account;
use snowmelt_graph::{DumpFormat, GraphError, GraphView, Interrupt, NewerTerms, Session};
use snowmelt_sparql::{QueryError, RdfVersion, ResultFormat};
use tokio::sync::oneshot;

use super::answers::internal;
use super::wanted::{Shape, Wanted};
use crate::body::{AnswerWriter, Begun, Head, Turn};
use crate::dataset::Dataset;
use crate::freshness::mark_volatile;
use crate::negotiate::{Answer, Choice};
use crate::refusal::{Refusal, refusal};
use crate::slots::Slot;

/// A dump to be written, on behalf of the account.
pub struct Dump {
    pub dataset: Arc<Dataset>,
    pub account: Arc<Account>,
    pub wanted: Wanted,
    pub limits: DumpLimits,
}

/// How far a dump may go.
pub struct DumpLimits {
    pub cancel: Arc<AtomicBool>,
    pub deadline: Option<Deadline>,
    pub rows: Option<u64>,
    pub view: Option<Arc<GraphView>>,
}

/// The end of the time that something may take.
#[derive(Clone, Copy)]
pub struct Deadline {
    at: Instant,
    timeout: Duration,
}

impl Deadline {
    /// So long from now.
    pub fn after(timeout: Duration) -> Self {
        Self { at: Instant::now() + timeout, timeout }
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.at
    }
}

impl Interrupt for DumpLimits {
    fn is_set(&self) -> bool {
        self.cancel.load(Ordering::Relaxed) || self.deadline.is_some_and(|deadline| deadline.is_over())
    }
}

impl DumpLimits {
    /// Why it has stopped.
    fn error(&self) -> QueryError {
        match self.deadline.filter(Deadline::is_over) {
            Some(late) => QueryError::Timeout(late.timeout),
            None => QueryError::Cancelled,
        }
    }
}

impl Dump {
    /// Writes all graphs out, on this thread.
    pub fn write(&self, slot: Slot, head: oneshot::Sender<Head>) {
        let Self { dataset, account, wanted, limits } = self;
        let refuse = |head: oneshot::Sender<Head>, refusal| drop(head.send(Err(refusal)));
        let choices = match wanted.choices(Answer::Dataset) {
            Ok(choices) => choices,
            Err(refusal) => return refuse(head, refusal),
        };
        let database = dataset.engine.graph();
        let mut session = match database.session() {
            Ok(session) => dataset.engine.seen_session(session.charged_to(account), limits.view.as_ref()),
            Err(error) => return refuse(head, internal(&error)),
        };
        if limits.view.is_some() && limits.rows.is_some() {
            let what = "the whole of it, which has no limit on rows,".to_owned();
            return refuse(head, refusal(&QueryError::Forbidden { what }));
        }
        if let Some(most) = limits.rows.filter(|most| session.state().quads() > *most) {
            return refuse(head, refusal(&QueryError::Rows(most)));
        }
        let choice = match self.choose(&mut session, &choices) {
            Ok(choice) => choice,
            Err(refusal) => return refuse(head, refusal),
        };
        let Shape { content_type, form, .. } = Shape::of(choice);
        let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]);
        if limits.view.is_some() {
            mark_volatile(&mut headers);
        } else if dataset.states.mark(session.state().txn(), &form, &wanted.kept, &mut headers) {
            return drop(head.send(Ok(Begun::kept(headers, Some(account)))));
        }
        let turn = Turn { slot: Arc::new(slot), memory: None };
        let budget = database.database().memory();
        let mut writer = AnswerWriter::new(headers, head, turn, budget).coded(wanted.coding);
        match session.dump(dump_format(choice.format), limits.view.as_deref(), &mut writer, limits) {
            Ok(_) => drop(writer.finish(&account.activity())),
            Err(error) => writer.fail(self.refusal(error)),
        }
    }

    /// The first choice that has a notation for all terms, before any of them goes out; or the
    /// refusal of the last.
    fn choose<'c>(&self, session: &mut Session, choices: &'c [Choice]) -> Result<&'c Choice, Refusal> {
        let (last, others) = choices.split_last().expect("there is a choice");
        for choice in others {
            if self.lacks(session, choice)?.is_none() {
                return Ok(choice);
            }
        }
        match self.lacks(session, last)? {
            None => Ok(last),
            Some(why) => Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, why)),
        }
    }

    /// Why a choice cannot write all terms, if so.
    fn lacks(&self, session: &mut Session, choice: &Choice) -> Result<Option<String>, Refusal> {
        let (terms, why) = match (choice.version, choice.format) {
            (RdfVersion::Classic, _) => {
                (NewerTerms::All, "the dataset has terms of RDF 1.2: ask for version=1.2".to_owned())
            }
            (_, ResultFormat::JsonLd) => (NewerTerms::Triples, GraphError::NotInJsonLd.to_string()),
            (RdfVersion::Basic, _) => {
                (NewerTerms::Triples, "the dataset has triple terms: ask for version=1.2".to_owned())
            }
            (RdfVersion::Newest, _) => return Ok(None),
        };
        match session.has_newer_terms(terms, self.limits.view.as_deref(), &self.limits) {
            Ok(lacks) => Ok(lacks.then_some(why)),
            Err(error) => Err(self.refusal(error)),
        }
    }

    fn refusal(&self, error: GraphError) -> Refusal {
        match error {
            GraphError::Stopped => refusal(&self.limits.error()),
            error => refusal(&error.into()),
        }
    }
}

fn dump_format(format: ResultFormat) -> DumpFormat {
    match format {
        ResultFormat::TriG => DumpFormat::TriG,
        ResultFormat::JsonLd => DumpFormat::JsonLd,
        _ => DumpFormat::NQuads,
    }
}
