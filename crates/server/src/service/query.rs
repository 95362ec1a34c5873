//! Queries: each waits for its slot, is listed while it runs, and is answered as it produces rows.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hyper::{HeaderMap, StatusCode, header};
use snowmelt_database::Account;
use snowmelt_graph::Namespaces;
use snowmelt_sparql::{
    QueryError, QueryKind, QueryOptions, QuerySlot, QueryText, ResultFormat, may_ask_endpoints, prefixes_for,
};
use tokio::sync::oneshot;

use super::answers::{Answered, begun, lost, typed, warn};
use super::attempt::{Attempts, Thread};
use super::context::{Context, DatasetRequest};
use super::dump::{Deadline, Dump, DumpLimits};
use super::wanted::{Shape, Wanted};
use crate::body::{AnswerBody, AnswerWriter, Begun, Head, Turn};
use crate::dataset::Dataset;
use crate::durations::RequestKind;
use crate::freshness::mark_volatile;
use crate::logs::{Logs, SlowRequest};
use crate::negotiate::{self, Answer};
use crate::refusal::{Refusal, refusal, refusal_of_text};
use crate::request::{Explain, ProtocolRequest};
use crate::slots::{LentSlot, Slot};

/// Answers queries.
pub struct Queries {
    context: Arc<Context>,
    attempts: Attempts,
}

/// A query with all that its answer needs.
pub struct QueryRun {
    dataset: Arc<Dataset>,
    logs: Arc<Logs>,
    text: QueryText<'static>,
    options: QueryOptions,
    wanted: Wanted,
    /// its place among those that may wait for endpoints
    #[expect(dead_code, reason = "held for its drop")]
    place: Option<Slot>,
}

/// A query that runs.
#[derive(Clone, Copy)]
struct BegunQuery<'a> {
    thread: Thread,
    options: &'a QueryOptions,
    begun: Instant,
    /// the choice of its answer
    at: usize,
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
        mut query: ProtocolRequest,
        base: Option<String>,
        wanted: Wanted,
        request: &DatasetRequest<'_>,
        account: Arc<Account>,
    ) -> Answered {
        let admission = &self.context.admission;
        let may_wait = self.context.endpoints(request).is_some() && may_ask_endpoints(&query.text);
        let place = match may_wait {
            true => Some(admission.waiting_place(request.dataset.waiting_places(request.depth)).await?),
            false => None,
        };
        let mut slot = admission.query().await?;
        let running =
            self.context.running.enter(RequestKind::Query, &request.dataset.name, &query.text, &account);
        let account = Some(account);
        let rows = Some(Arc::clone(&running.task.rows));
        let options =
            QueryOptions { base, account, rows, ..self.options(&query, request, &running.task.cancel) };
        let text = QueryText::new(std::mem::take(&mut query.text));
        let thread = Thread::choose(&request.dataset.engine, &query, &text, &options);
        let explain = query.explain;
        let (dataset, logs) = (Arc::clone(&request.dataset), Arc::clone(&self.context.logs));
        let run = QueryRun { dataset, logs, text, options, wanted, place };
        if thread == Thread::Connection {
            let answer = |head_sender| run.answer(Thread::Connection, slot, head_sender);
            if let Some(head) = self.attempts.attempt(answer)? {
                return Ok(begun(head?, running));
            }
            slot = admission.query().await?;
        }
        let (head_sender, answer_head) = oneshot::channel();
        tokio::task::spawn_blocking(move || match explain {
            None => run.answer(Thread::Own, slot, head_sender),
            Some(explain) => {
                let slot = Arc::new(slot);
                drop(head_sender.send(run.explained(explain, &slot)));
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
        let style = self.context.style;
        QueryOptions {
            timeout: self.context.timeout(query, user),
            memory: token.and_then(|token| token.memory),
            max_rows: token.and_then(|token| token.rows),
            cancel: Some(Arc::clone(cancel)),
            threads: self.context.threads(query),
            default_graphs: query.default_graphs.clone(),
            named_graphs: query.named_graphs.clone(),
            view: request.view.clone(),
            remote: self.context.endpoints(request),
            triples_are_distinct: query.triples_are_distinct,
            describe: style.describe,
            prefixes: if style.assume_prefixes { Arc::new(request.prefixes()) } else { Arc::default() },
            ..QueryOptions::default()
        }
    }
}

impl QueryRun {
    /// Runs the query on this thread, which is `thread`, and writes its answer. The head is dropped
    /// when an attempt is given up.
    pub fn answer(&self, thread: Thread, slot: Slot, head: oneshot::Sender<Head>) {
        let slot = Arc::new(slot);
        let options = &*match thread {
            Thread::Own => Cow::Owned(self.lending(&slot)),
            Thread::Connection => thread.options(&self.options),
        };
        let mut begun = BegunQuery { thread, options, begun: Instant::now(), at: 0 };
        let mut unanswered = Some((head, Turn { slot, memory: None }));
        while let Some((head, turn)) = unanswered {
            unanswered = self.answer_by(&begun, head, turn);
            begun.at += 1;
        }
    }

    /// Answers by the choice at hand. When the answer has terms that are too new for it, and none
    /// of it has left, the next choice is to answer.
    fn answer_by(
        &self,
        run: &BegunQuery<'_>,
        head: oneshot::Sender<Head>,
        mut turn: Turn,
    ) -> Option<(oneshot::Sender<Head>, Turn)> {
        let BegunQuery { thread, options, begun, at } = *run;
        let Dataset { engine, states, .. } = &*self.dataset;
        let refuse = |head: oneshot::Sender<Head>, refusal| drop(head.send(Err(refusal)));
        let result = match engine.query_of(&self.text, options) {
            Ok(result) => result,
            Err(error) if thread.gives_up(&error) => return None,
            Err(error) => {
                let refusal = refusal_of_text(&error, &self.kept_prefixes());
                self.log_if_slow(begun, 0, Some(&refusal));
                refuse(head, refusal);
                return None;
            }
        };
        let kind = if result.kind() == QueryKind::Graph { Answer::Graph } else { Answer::Solutions };
        let choices = match self.wanted.choices(kind) {
            Ok(choices) => choices,
            Err(refusal) => {
                refuse(head, refusal);
                return None;
            }
        };
        let format = choices[at].format;
        let Shape { version, content_type, form } = Shape::of(&choices[at]);
        let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]);
        warn(&mut headers, result.warnings());
        // A tag tells of changes in graphs that are not there for the user.
        if result.is_volatile() || options.view.is_some() {
            mark_volatile(&mut headers);
        } else if states.mark(result.txn(), &form, &self.wanted.kept, &mut headers) {
            drop(head.send(Ok(Begun::kept(headers, options.account.as_deref()))));
            return None;
        }
        turn.memory = Some(result.memory());
        let budget = engine.graph().database().memory();
        let mut writer = AnswerWriter::new(headers, head, turn, budget).coded(self.wanted.coding);
        if thread == Thread::Connection {
            writer = writer.at_once();
        }
        match result.write_with(format, version, &self.prefixes(format), &mut writer) {
            // A client that left before the end is its own affair.
            Ok(written) => {
                let account = options.account.as_ref();
                let activity = account.map_or(written.activity, |account| account.activity());
                let lost = writer.finish(&activity).err().map(|error| refusal(&QueryError::Write(error)));
                self.log_if_slow(begun, written.rows, lost.as_ref());
                None
            }
            Err(error) if thread.gives_up(&error) => None,
            Err(error) => {
                let is_newer = matches!(&error, QueryError::Unwritable { is_newer: true, .. });
                let refusal = refusal(&error);
                if is_newer && at + 1 < choices.len() {
                    return writer.begin_again(refusal);
                }
                let rows = options.rows.as_ref().map_or(0, |rows| rows.load(Ordering::Relaxed));
                self.log_if_slow(begun, rows, Some(&refusal));
                writer.fail(refusal);
                None
            }
        }
    }

    /// The options of the query, with a slot that it lends while it waits for endpoints or memory.
    fn lending(&self, slot: &Arc<Slot>) -> QueryOptions {
        let slot: Arc<dyn QuerySlot> = Arc::new(LentSlot(Arc::clone(slot)));
        QueryOptions { slot: Some(slot), ..self.options.clone() }
    }

    /// The prefixes kept with the database: they tell of all its graphs.
    fn kept_prefixes(&self) -> Namespaces {
        match &self.options.view {
            None => self.dataset.engine.graph().namespaces(),
            Some(_) => Namespaces::default(),
        }
    }

    /// The prefixes with which triples are written.
    fn prefixes(&self, format: ResultFormat) -> Namespaces {
        match format {
            ResultFormat::Turtle | ResultFormat::TriG => {
                prefixes_for(self.text.given(), &self.kept_prefixes())
            }
            _ => Namespaces::default(),
        }
    }

    /// The plan of the query, and with `analyze` what it did: as text, or as JSON where that is
    /// wanted.
    fn explained(&self, explain: Explain, slot: &Arc<Slot>) -> Head {
        let Self { dataset, text, wanted, .. } = self;
        let options = &self.lending(slot);
        let text = text.given();
        let plan = match explain {
            Explain::Plan => dataset.engine.explanation(text, options),
            Explain::Analyze => dataset.engine.analysis(text, options),
        };
        let plan = plan.map_err(|error| refusal_of_text(&error, &self.kept_prefixes()))?;
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
                text: text.given(),
                took,
                rows,
                activity: activity.unwrap_or_default(),
                plan: dataset.engine.explain(text.given(), &planned).ok(),
                error: error.map(|refusal| refusal.message.clone()),
            });
        }
    }
}
