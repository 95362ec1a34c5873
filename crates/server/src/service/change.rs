//! Changes of data: common to updates and to graphs that are put, added to and deleted.
//!
//! A change is listed from the first byte of its body to its answer, with its phase: it comes in,
//! is parsed, waits for its turn, writes. In each it can be ended: by its client, who leaves; by
//! DELETE of its entry; by the end of the server; and, from when it has all of its body, by the
//! time limit.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::body::Incoming;
use hyper::http::request::Parts;
use snowmelt_database::{Account, Priority, Reservation};
use snowmelt_graph::ChangePhase;
use snowmelt_graph::load::Contexts;
use snowmelt_sparql::QueryError;

use super::answers::{Failure, lost};
use super::context::{Context, DatasetRequest};
use crate::coding::Coding;
use crate::durations::RequestKind;
use crate::intake::{self, BodyWatch};
use crate::logs::Logs;
use crate::refusal::{Refusal, refusal};
use crate::request::ProtocolRequest;
use crate::running::{Asker, Running};
use crate::slots::Slot;
use crate::spool::Spooled;

/// Makes changes.
pub struct Changes {
    context: Arc<Context>,
    contexts: Contexts,
}

/// A change that is listed, and on whose behalf it reads.
pub struct ListedChange {
    pub running: Running,
    pub account: Arc<Account>,
    /// of its text
    pub memory: Option<Reservation>,
    /// its line in the audit log, if there is one
    pub audit: Option<AuditLine>,
}

/// The line of a change in the audit log. The thread that makes the change writes it: the client
/// may have left by then.
pub struct AuditLine {
    logs: Arc<Logs>,
    peer: SocketAddr,
    user: Option<String>,
    what: serde_json::Value,
}

impl AuditLine {
    /// The change was made; `report` is what came of it.
    pub fn write(mut self, report: &serde_json::Value) {
        if let (Some(what), Some(report)) = (self.what.as_object_mut(), report.as_object()) {
            what.extend(report.clone());
        }
        self.logs.change(self.peer, self.user.as_deref(), &self.what);
    }
}

impl Changes {
    /// Documents of changes may name the `contexts`.
    pub fn new(context: Arc<Context>, contexts: Contexts) -> Self {
        Self { context, contexts }
    }

    /// Contexts that documents of JSON-LD may name; others are not fetched.
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// Lists a change, of which `text` is known.
    pub fn list(
        &self,
        kind: RequestKind,
        text: &str,
        request: &DatasetRequest<'_>,
        priority: Priority,
    ) -> ListedChange {
        let account = request.update_account(priority);
        let running = self.context.running.enter(kind, &request.dataset.name, text, &account);
        ListedChange { running, account, memory: None, audit: None }
    }

    /// The body of a change, taken to its end.
    pub async fn spool(
        &self,
        head: &Parts,
        body: Incoming,
        request: &DatasetRequest<'_>,
        listed: &ListedChange,
    ) -> Result<Spooled, Failure> {
        let coding = Coding::of_body(&head.headers)?;
        let task = &listed.running.task;
        task.progress.enter(ChangePhase::Reading);
        let limits = &self.context.limits;
        let watch = BodyWatch { task: Some(task), most_work: limits.timeout };
        Ok(intake::spool(body, coding, limits, request.dataset.engine.graph(), watch).await?)
    }

    /// A slot for a change, unless it is ended before there is one.
    pub async fn slot(&self, listed: &ListedChange) -> Result<Slot, Failure> {
        let task = &listed.running.task;
        task.progress.enter(ChangePhase::Waiting);
        tokio::select! {
            slot = self.context.admission.change() => {
                task.works();
                slot
            }
            () = task.cancelled() => Err(refusal(&QueryError::Cancelled).into()),
        }
    }

    /// The line of a change in the audit log, if there is one.
    pub fn audit_line(&self, request: &DatasetRequest<'_>, kind: &str, text: &str) -> Option<AuditLine> {
        self.context.logs.audit.as_ref()?;
        let mut what = serde_json::json!({ "kind": kind, "text": text });
        if !request.dataset.name.is_empty() {
            what["dataset"] = request.dataset.name.as_str().into();
        }
        let (logs, client) = (Arc::clone(&self.context.logs), &request.client);
        Some(AuditLine { logs, peer: client.peer, user: client.name().map(str::to_owned), what })
    }

    /// Runs a change on a blocking thread; it is told to stop when the client leaves, or at the
    /// time limit.
    pub async fn run<T: Send + 'static>(
        &self,
        request: &DatasetRequest<'_>,
        listed: ListedChange,
        change: impl FnOnce(&Asker) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Failure> {
        let slot = self.slot(&listed).await?;
        let ListedChange { running, account, audit, .. } = listed;
        let (cancel, progress) = (Arc::clone(&running.task.cancel), Arc::clone(&running.task.progress));
        let asker = Asker { account, view: request.view.clone(), cancel, progress };
        let mut done = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            let changed = change(&asker)?;
            if let Some(audit) = audit {
                audit.write(&serde_json::json!({}));
            }
            Ok::<T, Refusal>(changed)
        });
        let most = self.context.timeout(&ProtocolRequest::default(), &request.client.user);
        let limit = async {
            match most {
                Some(most) => tokio::time::sleep(most).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = &mut done => return Ok(changed.map_err(|_| lost())??),
            () = limit => running.task.cancel.store(true, Ordering::Relaxed),
        }
        // It may have come to its end all the same.
        match done.await.map_err(|_| lost())? {
            Ok(changed) => Ok(changed),
            Err(_) => Err(refusal(&QueryError::Timeout(most.unwrap_or_default())).into()),
        }
    }
}
