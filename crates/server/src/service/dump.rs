//! All graphs of a dataset, written out as the answer to one request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyper::{HeaderMap, StatusCode, header};
use snowmelt_database::Account;
use snowmelt_graph::{DumpFormat, GraphError, GraphView, Interrupt};
use snowmelt_sparql::{QueryError, RdfVersion, ResultFormat};
use tokio::sync::oneshot;

use super::answers::internal;
use super::wanted::Wanted;
use crate::body::{AnswerWriter, Begun, Head, Turn};
use crate::dataset::Dataset;
use crate::freshness::mark_volatile;
use crate::negotiate::Answer;
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
        let (format, media_type) = match wanted.format(Answer::Dataset) {
            Ok(format) => format,
            Err(refusal) => return refuse(head, refusal),
        };
        let database = dataset.engine.graph();
        let session = match database.session() {
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
        let (version, content_type) = wanted.version(media_type);
        if version == RdfVersion::Classic && session.state().meta().format.has_rdf_12() {
            let message = "the dataset has terms of RDF 1.2: ask for version=1.2";
            return refuse(head, Refusal::new(StatusCode::NOT_ACCEPTABLE, message));
        }
        let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]);
        if limits.view.is_some() {
            mark_volatile(&mut headers);
        } else if dataset.states.mark(session.state().txn(), format.name(), &wanted.kept, &mut headers) {
            return drop(head.send(Ok(Begun::kept(headers, Some(account)))));
        }
        let turn = Turn { slot, memory: None };
        let budget = database.database().memory();
        let mut writer = AnswerWriter::new(headers, head, turn, budget).coded(wanted.coding);
        match session.dump(dump_format(format), limits.view.as_deref(), &mut writer, limits) {
            Ok(_) => drop(writer.finish(&account.activity())),
            Err(GraphError::Stopped) => writer.fail(refusal(&limits.error())),
            Err(error) => writer.fail(refusal(&error.into())),
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
