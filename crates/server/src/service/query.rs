//! Queries: each waits for its slot, is listed while it runs, and is answered as it produces rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hyper::{HeaderMap, StatusCode, header};
use snowmelt_database::Account;
use snowmelt_sparql::{QueryError, QueryKind, QueryOptions};
use tokio::sync::oneshot;

use super::answers::{Answered, begun, lost, typed};
use super::attempt::{Attempts, Thread};
use super::context::{Context, DatasetRequest};
use super::dump::{Deadline, Dump, DumpLimits};
use super::wanted::Wanted;
use crate::body::{AnswerBody, AnswerWriter, Begun, Head, Turn};
use crate::dataset::Dataset;
use crate::durations::RequestKind;
use crate::freshness::mark_volatile;
use crate::logs::{Logs, SlowRequest};
use crate::negotiate::{self, Answer};
use crate::refusal::{Refusal, refusal};
use crate::request::{Explain, ProtocolRequest};
use crate::slots::Slot;

/// Answers queries.
pub struct Queries {
    context: Arc<Context>,
    attempts: Attempts,
}

/// A query with all that its answer needs.
pub struct QueryRun {
    dataset: Arc<Dataset>,
    logs: Arc<Logs>,
    text: String,
    options: QueryOptions,
    wanted: Wanted,
}

impl Queries {
    pub fn new(context: Arc<Context>) -> Self {
        Self { context, attempts: Attempts::default() }
    }

    /// Queries that were tried on the thread of their connection.
    pub fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    /// Answers a query; relative IRIs in it are below `base`.
    pub async fn answer(
        &self,
        query: ProtocolRequest,
        base: Option<String>,
        wanted: Wanted,
        request: &DatasetRequest<'_>,
        account: Arc<Account>,
    ) -> Answered {
        let mut slot = self.context.admission.query().await?;
        let running =
            self.context.running.enter(RequestKind::Query, &request.dataset.name, &query.text, &account);
        let account = Some(account);
        let rows = Some(Arc::clone(&running.task.rows));
        let options =
            QueryOptions { base, account, rows, ..self.options(&query, request, &running.task.cancel) };
        let thread = Thread::choose(&request.dataset.engine, &query, &options);
        let ProtocolRequest { text, explain, .. } = query;
        let (dataset, logs) = (Arc::clone(&request.dataset), Arc::clone(&self.context.logs));
        let run = QueryRun { dataset, logs, text, options, wanted };
        if thread == Thread::Connection {
            let answer = |head_sender| run.answer(Thread::Connection, slot, head_sender);
            if let Some(head) = self.attempts.attempt(answer)? {
                return Ok(begun(head?, running));
            }
            slot = self.context.admission.query().await?;
        }
        let (head_sender, answer_head) = oneshot::channel();
        tokio::task::spawn_blocking(move || match explain {
            None => run.answer(Thread::Own, slot, head_sender),
            Some(explain) => {
                let _slot = slot;
                drop(head_sender.send(run.explained(explain)));
            }
        });
        Ok(begun(answer_head.await.map_err(|_| lost())??, running))
    }

    /// All graphs, written out.
    pub async fn dump(
        &self,
        wanted: Wanted,
        request: &DatasetRequest<'_>,
        account: &Arc<Account>,
    ) -> Answered {
        let slot = self.context.admission.query().await?;
        let running =
            self.context.running.enter(RequestKind::Graph, &request.dataset.name, "all graphs", account);
        let user = &request.client.user;
        let timeout = self.context.timeout(&ProtocolRequest::default(), user);
        let limits = DumpLimits {
            cancel: Arc::clone(&running.task.cancel),
            deadline: timeout.map(Deadline::after),
            rows: user.token.as_ref().and_then(|token| token.rows),
            view: request.view.clone(),
        };
        let (dataset, account) = (Arc::clone(&request.dataset), Arc::clone(account));
        let dump = Dump { dataset, account, wanted, limits };
        let (head_sender, answer_head) = oneshot::channel();
        tokio::task::spawn_blocking(move || dump.write(slot, head_sender));
        Ok(begun(answer_head.await.map_err(|_| lost())??, running))
    }

    fn options(
        &self,
        query: &ProtocolRequest,
        request: &DatasetRequest<'_>,
        cancel: &Arc<AtomicBool>,
    ) -> QueryOptions {
        let user = &request.client.user;
        let token = user.token.as_ref();
        QueryOptions {
            timeout: self.context.timeout(query, user),
            memory: token.and_then(|token| token.memory),
            max_rows: token.and_then(|token| token.rows),
            cancel: Some(Arc::clone(cancel)),
            threads: self.context.threads(query),
            default_graphs: query.default_graphs.clone(),
            named_graphs: query.named_graphs.clone(),
            view: request.view.clone(),
            triples_are_distinct: query.triples_are_distinct,
            ..QueryOptions::default()
        }
    }
}

impl QueryRun {
    /// Runs the query on this thread, which is `thread`, and writes its answer. The head is dropped
    /// when an attempt is given up.
    pub fn answer(&self, thread: Thread, slot: Slot, head: oneshot::Sender<Head>) {
        let options = &*thread.options(&self.options);
        let Dataset { engine, states, .. } = &*self.dataset;
        let refuse = |head: oneshot::Sender<Head>, refusal| drop(head.send(Err(refusal)));
        let begun = Instant::now();
        let result = match engine.query(&self.text, options) {
            Ok(result) => result,
            Err(error) if thread.gives_up(&error) => return,
            Err(error) => {
                let refusal = refusal(&error);
                self.log_if_slow(begun, 0, Some(&refusal));
                return refuse(head, refusal);
            }
        };
        let kind = match result.kind() {
            QueryKind::Graph => Answer::Graph,
            _ => Answer::Solutions,
        };
        let (format, media_type) = match self.wanted.format(kind) {
            Ok(format) => format,
            Err(refusal) => return refuse(head, refusal),
        };
        let (version, content_type) = self.wanted.version(media_type);
        let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]);
        // A tag tells of changes in graphs that are not there for the user.
        if result.is_volatile() || options.view.is_some() {
            mark_volatile(&mut headers);
        } else if states.mark(result.txn(), format.name(), &self.wanted.kept, &mut headers) {
            return drop(head.send(Ok(Begun::kept(headers, options.account.as_deref()))));
        }
        let turn = Turn { slot, memory: Some(result.memory()) };
        let budget = engine.graph().database().memory();
        let mut writer = AnswerWriter::new(headers, head, turn, budget).coded(self.wanted.coding);
        if thread == Thread::Connection {
            writer = writer.at_once();
        }
        match result.write_for(format, version, &mut writer) {
            // A client that left before the end is its own affair.
            Ok(written) => {
                let account = options.account.as_ref();
                let activity = account.map_or(written.activity, |account| account.activity());
                let lost = writer.finish(&activity).err().map(|error| refusal(&QueryError::Write(error)));
                self.log_if_slow(begun, written.rows, lost.as_ref());
            }
            Err(error) if thread.gives_up(&error) => {}
            Err(error) => {
                let refusal = refusal(&error);
                let rows = options.rows.as_ref().map_or(0, |rows| rows.load(Ordering::Relaxed));
                self.log_if_slow(begun, rows, Some(&refusal));
                writer.fail(refusal);
            }
        }
    }

    /// The plan of the query, and with `analyze` what it did: as text, or as JSON where that is
    /// wanted.
    fn explained(&self, explain: Explain) -> Head {
        let Self { dataset, text, options, wanted, .. } = self;
        let plan = match explain {
            Explain::Plan => dataset.engine.explanation(text, options),
            Explain::Analyze => dataset.engine.analysis(text, options),
        };
        let plan = plan.map_err(|error| refusal(&error))?;
        let (media_type, body) = match wanted.is_json {
            true => (negotiate::JSON, format!("{}\n", plan.json())),
            false => ("text/plain; charset=utf-8", plan.to_string()),
        };
        let mut headers = typed(media_type);
        mark_volatile(&mut headers);
        let body = AnswerBody::whole(body);
        let activity = options.account.as_ref().map(|account| account.activity());
        Ok(Begun { status: StatusCode::OK, headers, body, activity: Some(activity.unwrap_or_default()) })
    }

    fn log_if_slow(&self, begun: Instant, rows: u64, error: Option<&Refusal>) {
        let Self { dataset, logs, text, options, .. } = self;
        let took = begun.elapsed();
        if logs.is_slow(took) {
            let activity = options.account.as_ref().map(|account| account.activity().to_string());
            let planned = QueryOptions { account: None, view: None, ..options.clone() };
            logs.slow(&SlowRequest {
                kind: "query",
                text,
                took,
                rows,
                activity: activity.unwrap_or_default(),
                plan: dataset.engine.explain(text, &planned).ok(),
                error: error.map(|refusal| refusal.message.clone()),
            });
        }
    }
}
