//! Updates: one request is one transaction, answered once it is durable.

use std::sync::Arc;
use std::time::Instant;

use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::http::request::Parts;
use snowmelt_database::Priority;
use snowmelt_graph::Changed;
use snowmelt_sparql::{LoadPermission, QuerySlot, UpdateOptions, Updated};

use super::answers::{Answered, internal, lost, response, with_account, with_activity};
use super::change::{Changes, ListedChange};
use super::context::{Context, DatasetRequest};
use crate::body::AnswerBody;
use crate::cors::Wish;
use crate::durations::RequestKind;
use crate::logs::SlowRequest;
use crate::refusal::refusal;
use crate::request::{self, Operation, ProtocolRequest};
use crate::slots::{LentSlot, Slot};
use crate::spool::{Spooled, SpooledText};

/// Runs updates.
pub struct Updates {
    context: Arc<Context>,
    changes: Arc<Changes>,
    /// where LOAD may read from
    allow_load: Vec<LoadPermission>,
}

/// An update to be run.
struct UpdateText {
    /// the request; of a long update, its text is the begin
    request: ProtocolRequest,
    /// a long one
    whole: Option<Spooled>,
    /// relative IRIs are below it
    base: String,
}

impl Updates {
    pub fn new(context: Arc<Context>, changes: Arc<Changes>, allow_load: Vec<LoadPermission>) -> Self {
        Self { context, changes, allow_load }
    }

    /// Answers an update that was held in memory, as the value of a form is.
    pub async fn answer(
        &self,
        update: ProtocolRequest,
        base: String,
        request: &DatasetRequest<'_>,
    ) -> Answered {
        self.context.check_may_change(&request.client.user)?;
        let listed = self.changes.list(RequestKind::Update, &update.text, request, update.priority);
        let account = Arc::clone(&listed.account);
        let update = UpdateText { request: update, whole: None, base };
        with_account(self.run(update, request, listed), &account).await
    }

    /// Answers an update that is the body of its request: through a file when it is long.
    pub async fn answer_plain(&self, head: Parts, body: Incoming, request: &DatasetRequest<'_>) -> Answered {
        /// Of a long one, for logs and lists.
        const SHOWN_BYTES: u64 = 64 << 10;
        let client = &request.client;
        self.context.check_origin(&head, client, Wish::Change)?;
        self.context.check_may_change(&client.user)?;
        let listed = self.changes.list(RequestKind::Update, "an update", request, Priority::Normal);
        let body = self.changes.spool(&head, body, request, &listed).await?;
        let body = body.text(self.context.limits.body_bytes, SHOWN_BYTES).map_err(|e| internal(&e))?;
        let (shown, whole, memory) = match body {
            SpooledText::Whole(text, memory) => (text, None, memory),
            SpooledText::Begin(begin, whole) => (begin, Some(whole), None),
        };
        let operation = request::parse(&head.method, head.uri.query(), &head.headers, &shown)?;
        let Operation::Update(update) = operation else { unreachable!("it has the type of an update") };
        drop(shown);
        let account = match update.priority {
            Priority::Normal => Arc::clone(&listed.account),
            priority => request.update_account(priority),
        };
        let listed = ListedChange { account: Arc::clone(&account), memory, ..listed };
        let base = client.address(head.uri.path());
        let update = UpdateText { request: update, whole, base };
        with_account(self.run(update, request, listed), &account).await
    }

    /// Runs an update; the answer says what it did, and that it is durable.
    async fn run(
        &self,
        update: UpdateText,
        request: &DatasetRequest<'_>,
        mut listed: ListedChange,
    ) -> Answered {
        let UpdateText { request: update, whole, base } = update;
        listed.running.task.tell(&update.text);
        let slot = self.changes.slot(&listed).await?;
        let begun = Instant::now();
        listed.audit = self.changes.audit_line(request, "update", &update.text);
        let slot = Arc::new(slot);
        let options = self.options(&update, base, request, &listed, &slot);
        let ListedChange { running, account, memory, audit } = listed;
        let engine = Arc::clone(&request.dataset.engine);
        let text = Arc::new(update.text);
        let told = Arc::clone(&text);
        let longest = usize::try_from(self.context.limits.body_bytes).unwrap_or(usize::MAX);
        let done = tokio::task::spawn_blocking(move || {
            let (_slot, _memory) = (slot, memory);
            let done = match whole {
                Some(whole) => engine.update_from(whole, longest, &options),
                None => engine.update(&text, &options),
            };
            if let (Some(audit), Ok(updated)) = (audit, &done) {
                audit.write(&report(updated, updated.txn.into()));
            }
            done
        });
        let updated = done.await.map_err(|_| lost())?.map_err(|error| refusal(&error));
        let logs = &self.context.logs;
        if logs.is_slow(begun.elapsed()) {
            logs.slow(&SlowRequest {
                kind: "update",
                text: &told,
                took: begun.elapsed(),
                rows: updated.as_ref().map_or(0, |done| done.changed.inserted + done.changed.deleted),
                activity: account.activity().to_string(),
                plan: None,
                error: updated.as_ref().err().map(|refusal| refusal.message.clone()),
            });
        }
        let updated = updated?;
        let shown = report(&updated, commit_name(request, &updated));
        let body = AnswerBody::whole(format!("{shown}\n")).while_running(running);
        Ok(with_activity(response(StatusCode::OK, "application/json", body), &account))
    }

    fn options(
        &self,
        update: &ProtocolRequest,
        base: String,
        request: &DatasetRequest<'_>,
        listed: &ListedChange,
        slot: &Arc<Slot>,
    ) -> UpdateOptions {
        let user = &request.client.user;
        let task = &listed.running.task;
        let lent: Arc<dyn QuerySlot> = Arc::new(LentSlot(Arc::clone(slot)));
        UpdateOptions {
            base: Some(base),
            timeout: self.context.timeout(update, user),
            memory: user.token.as_ref().and_then(|token| token.memory),
            threads: self.context.threads(update),
            cancel: Some(Arc::clone(&task.cancel)),
            account: Some(Arc::clone(&listed.account)),
            using_graphs: update.default_graphs.clone(),
            using_named_graphs: update.named_graphs.clone(),
            allow_load: self.allow_load.clone(),
            remote: self.context.endpoints(request),
            slot: Some(lent),
            remote_wait: self.context.limits.remote_wait,
            most_document_bytes: Some(self.context.limits.document_bytes),
            contexts: self.changes.contexts().clone(),
            view: request.view.clone(),
            progress: Arc::clone(&task.progress),
            ..UpdateOptions::default()
        }
    }
}

/// The name of a client's own commit. A client with all graphs gets the number. One with a view
/// gets a name, and only when it has changed something: numbers would tell it of commits to
/// graphs that it may not see.
fn commit_name(request: &DatasetRequest<'_>, updated: &Updated) -> serde_json::Value {
    match request.view {
        None => updated.txn.into(),
        Some(_) if updated.changed == Changed::default() => serde_json::Value::Null,
        Some(_) => request.dataset.states.name(updated.txn).into(),
    }
}

/// The report of an update, for its client and for the audit log.
fn report(updated: &Updated, transaction: serde_json::Value) -> serde_json::Value {
    let Changed { inserted, deleted, .. } = updated.changed;
    let mut report =
        serde_json::json!({ "transaction": transaction, "inserted": inserted, "deleted": deleted });
    if !updated.warnings.is_empty() {
        report["warnings"] = serde_json::json!(updated.warnings);
    }
    report
}
