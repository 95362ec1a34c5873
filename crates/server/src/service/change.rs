//! Changes: updates, and graphs that are put, added to and deleted.
//!
//! A change is listed from the first byte of its body to its answer, with its phase: it comes in,
//! is parsed, waits for its turn, writes. In each it can be ended: by its client, who leaves; by
//! DELETE of its entry; by the end of the server; and, from when it has all of its body, by the
//! time limit.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, StatusCode, header};
use snowmelt_graph::{Account, ChangePhase, Changed, GraphWrite, Priority, Reservation};
use snowmelt_sparql::{QueryError, UpdateOptions, Updated};

use super::answers::{Answered, Failure, bad, empty, internal, lost, response, with_account, with_activity};
use super::{Client, Service};
use crate::audience::check_origin;
use crate::body::AnswerBody;
use crate::coding::Coding;
use crate::cors::Wish;
use crate::durations::RequestKind;
use crate::graph_store::{self, Target, Upload};
use crate::intake::{self, BodyWatch};
use crate::logs::{Logs, SlowRequest};
use crate::refusal::{Refusal, refusal};
use crate::request::{self, Operation, ProtocolRequest};
use crate::running::{Asker, Running};
use crate::slots::Slot;
use crate::spool::{Spooled, SpooledText};

/// A change that is listed, and on whose behalf it reads.
pub(super) struct ListedChange {
    running: Running,
    account: Arc<Account>,
    /// of its text
    memory: Option<Reservation>,
}

/// The line of a change in the audit log. The thread that makes the change writes it: the client
/// may have left by then.
struct AuditLine {
    logs: Arc<Logs>,
    peer: SocketAddr,
    user: Option<String>,
    what: serde_json::Value,
}

impl AuditLine {
    /// The change was made; `report` is what came of it.
    fn write(mut self, report: &serde_json::Value) {
        if let (Some(what), Some(report)) = (self.what.as_object_mut(), report.as_object()) {
            what.extend(report.clone());
        }
        self.logs.change(self.peer, self.user.as_deref(), &self.what);
    }
}

impl ListedChange {
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }
}

impl Service {
    /// Lists a change, of which `text` is known.
    pub(super) fn list_change(
        &self,
        kind: RequestKind,
        text: &str,
        client: &Client<'_>,
        priority: Priority,
    ) -> ListedChange {
        let account = self.account_of_update(client, priority);
        let running = self.running.enter(kind, &client.dataset.name, text, &account);
        ListedChange { running, account, memory: None }
    }

    /// The body of a change, taken to its end.
    async fn spool(
        &self,
        head: &Parts,
        body: Incoming,
        client: &Client<'_>,
        listed: &ListedChange,
    ) -> Result<Spooled, Failure> {
        let coding = Coding::of_body(&head.headers)?;
        let task = &listed.running.task;
        task.progress.enter(ChangePhase::Reading);
        let watch = BodyWatch { task: Some(task), most_work: self.limits.timeout };
        Ok(intake::spool(body, coding, &self.limits, client.dataset.engine.database(), watch).await?)
    }

    /// A slot for a change, unless it is ended before there is one.
    async fn change_slot(&self, listed: &ListedChange) -> Result<Slot, Failure> {
        let task = &listed.running.task;
        task.progress.enter(ChangePhase::Waiting);
        tokio::select! {
            slot = self.slot(&self.change_slots, "changes", "--changes") => {
                task.works();
                slot
            }
            () = task.cancelled() => Err(refusal(&QueryError::Cancelled).into()),
        }
    }

    /// An update that is the body of its request: through a file when it is long.
    pub(super) async fn plain_update(&self, head: Parts, body: Incoming, client: &Client<'_>) -> Answered {
        /// Of a long one, for logs and lists.
        const SHOWN_BYTES: u64 = 64 << 10;
        check_origin(&head.headers, &client.host, &self.cors, Wish::Change)?;
        self.may_change(client)?;
        let listed = self.list_change(RequestKind::Update, "an update", client, Priority::Normal);
        let body = self.spool(&head, body, client, &listed).await?;
        let body = body.text(self.limits.body_bytes, SHOWN_BYTES).map_err(|e| internal(&e))?;
        let (shown, rest, memory) = match body {
            SpooledText::Whole(text, memory) => (text, None, memory),
            SpooledText::Begin(begin, whole) => (begin, Some(whole), None),
        };
        let operation = request::parse(&head.method, head.uri.query(), &head.headers, &shown)?;
        let Operation::Update(update) = operation else { unreachable!("it has the type of an update") };
        drop(shown);
        let account = match update.priority {
            Priority::Normal => Arc::clone(&listed.account),
            priority => self.account_of_update(client, priority),
        };
        let listed = ListedChange { account: Arc::clone(&account), memory, ..listed };
        let address = format!("{}://{}{}", client.scheme, client.host, head.uri.path());
        with_account(self.update(update, rest, address, client, listed), &account).await
    }

    /// Runs an update; the answer says what it did, and that it is durable. A long one is in
    /// `whole`, and only its begin is in the request.
    pub(super) async fn update(
        &self,
        update: ProtocolRequest,
        whole: Option<Spooled>,
        base: String,
        client: &Client<'_>,
        listed: ListedChange,
    ) -> Answered {
        listed.running.task.tell(&update.text);
        let slot = self.change_slot(&listed).await?;
        let begun = Instant::now();
        let ListedChange { running, account, memory } = listed;
        let audit = self.audit_line(client, "update", &update.text);
        let options = UpdateOptions {
            base: Some(base),
            timeout: self.timeout(&update, client),
            memory: client.user.token.as_ref().and_then(|token| token.memory),
            threads: self.threads(&update),
            cancel: Some(Arc::clone(&running.task.cancel)),
            account: Some(Arc::clone(&account)),
            using_graphs: update.default_graphs,
            using_named_graphs: update.named_graphs,
            allow_load: self.allow_load.clone(),
            contexts: self.contexts.clone(),
            view: client.view.clone(),
            progress: Arc::clone(&running.task.progress),
            ..UpdateOptions::default()
        };
        let engine = Arc::clone(&client.dataset.engine);
        let text = Arc::new(update.text);
        let told = Arc::clone(&text);
        let longest = usize::try_from(self.limits.body_bytes).unwrap_or(usize::MAX);
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
        if self.logs.is_slow(begun.elapsed()) {
            self.logs.slow(&SlowRequest {
                kind: "update",
                text: &told,
                took: begun.elapsed(),
                rows: updated.as_ref().map_or(0, |done| done.changed.inserted + done.changed.deleted),
                activity: account.activity().to_string(),
                plan: None,
                error: updated.as_ref().err().map(|refusal| refusal.1.clone()),
            });
        }
        let updated = updated?;
        let shown = report(&updated, self.commit_name(client, &updated));
        let body = AnswerBody::whole(format!("{shown}\n")).while_running(running);
        Ok(with_activity(response(StatusCode::OK, "application/json", body), &account))
    }

    /// The name of a client's own commit. A client with all graphs gets the number. One with a view
    /// gets a name, and only when it has changed something: numbers would tell it of commits to
    /// graphs that it may not see.
    fn commit_name(&self, client: &Client<'_>, updated: &Updated) -> serde_json::Value {
        match client.view {
            None => updated.txn.into(),
            Some(_) if updated.changed == Changed::default() => serde_json::Value::Null,
            Some(_) => client.dataset.states.name(updated.txn).into(),
        }
    }

    /// The line of a change in the audit log, if there is one.
    fn audit_line(&self, client: &Client<'_>, kind: &str, text: &str) -> Option<AuditLine> {
        self.logs.audit.as_ref()?;
        let mut what = serde_json::json!({ "kind": kind, "text": text });
        if !client.dataset.name.is_empty() {
            what["dataset"] = client.dataset.name.as_str().into();
        }
        let (logs, user) = (Arc::clone(&self.logs), client.name().map(str::to_owned));
        Some(AuditLine { logs, peer: client.peer, user, what })
    }

    /// PUT, POST and DELETE of graphs.
    pub(super) async fn change_graph(
        &self,
        target: Target,
        head: Parts,
        body: Incoming,
        client: &Client<'_>,
    ) -> Answered {
        self.may_change(client)?;
        let told = format!("{} {}", head.method, head.uri);
        let listed = self.list_change(RequestKind::Graph, &told, client, Priority::Normal);
        let account = Arc::clone(&listed.account);
        let audit = self.audit_line(client, "graph", &told);
        let answer = if head.method == Method::DELETE {
            let engine = Arc::clone(&client.dataset.engine);
            let delete = move |asker: &Asker| graph_store::delete(&engine, &target, asker);
            with_account(self.change(client, (listed, audit), delete), &account).await?;
            empty(StatusCode::NO_CONTENT)
        } else {
            let body = with_account(self.spool(&head, body, client, &listed), &account).await?;
            let write = if head.method == Method::PUT { GraphWrite::Replace } else { GraphWrite::Add };
            let stored = self.store_graph((target, write), head.headers, body, client, (listed, audit));
            with_account(stored, &account).await?
        };
        Ok(with_activity(answer, &account))
    }

    async fn store_graph(
        &self,
        (target, write): (Target, GraphWrite),
        headers: HeaderMap,
        body: Spooled,
        client: &Client<'_>,
        listed: (ListedChange, Option<AuditLine>),
    ) -> Answered {
        let (engine, root) = (Arc::clone(&client.dataset.engine), client.root());
        let contexts = self.contexts.clone();
        let store = move |asker: &Asker| {
            let upload = Upload { headers: &headers, body, root: &root, contexts: &contexts };
            graph_store::store(&engine, &target, write, upload, asker)
        };
        let stored = self.change(client, listed, store).await?;
        let status = if stored.created { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
        let mut response = empty(status);
        if let Some(location) = stored.location {
            let value = location.parse().map_err(|_| bad("the Host is no part of an address"))?;
            response.headers_mut().insert(header::LOCATION, value);
        }
        Ok(response)
    }

    /// Runs a change on a blocking thread; it is told to stop when the client leaves, or at the
    /// time limit.
    async fn change<T: Send + 'static>(
        &self,
        client: &Client<'_>,
        (listed, audit): (ListedChange, Option<AuditLine>),
        change: impl FnOnce(&Asker) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Failure> {
        let slot = self.change_slot(&listed).await?;
        let ListedChange { running, account, .. } = listed;
        let (cancel, progress) = (Arc::clone(&running.task.cancel), Arc::clone(&running.task.progress));
        let asker = Asker { account, view: client.view.clone(), cancel, progress };
        let mut done = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            let changed = change(&asker)?;
            if let Some(audit) = audit {
                audit.write(&serde_json::json!({}));
            }
            Ok::<T, Refusal>(changed)
        });
        let most = self.timeout(&ProtocolRequest::default(), client);
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

/// The report of an update, for its client and for the audit log.
fn report(updated: &Updated, transaction: serde_json::Value) -> serde_json::Value {
    let Changed { inserted, deleted, .. } = updated.changed;
    serde_json::json!({ "transaction": transaction, "inserted": inserted, "deleted": deleted })
}
