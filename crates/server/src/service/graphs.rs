//! The Graph Store Protocol's resources: reading is a query or a dump, writing is a change.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, StatusCode, header};
use snowmelt_database::{Account, Priority};
use snowmelt_graph::GraphWrite;

use super::answers::{Answered, bad, empty, parameter, with_account, with_activity};
use super::change::{Changes, ListedChange};
use super::context::{Context, DatasetRequest};
use super::query::Queries;
use super::wanted::Wanted;
use crate::cors::Wish;
use crate::durations::RequestKind;
use crate::graph_store::{self, Target, Upload};
use crate::request::ProtocolRequest;
use crate::running::Asker;
use crate::spool::Spooled;

/// Answers the requests of the Graph Store Protocol.
pub struct Graphs {
    context: Arc<Context>,
    queries: Arc<Queries>,
    changes: Arc<Changes>,
}

/// A body that was taken to its end, to be written to a graph.
struct GraphBody {
    target: Target,
    write: GraphWrite,
    headers: HeaderMap,
    body: Spooled,
}

impl Graphs {
    pub fn new(context: Arc<Context>, queries: Arc<Queries>, changes: Arc<Changes>) -> Self {
        Self { context, queries, changes }
    }

    /// Answers a request to `/graphs` or below.
    pub async fn answer(&self, head: Parts, body: Incoming, request: &DatasetRequest<'_>) -> Answered {
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        let wish = if reads { Wish::Read } else { Wish::Change };
        self.context.check_origin(&head, &request.client, wish)?;
        let path = &head.uri.path()[request.dataset.mount().len()..];
        let target = graph_store::target(&head.method, path, head.uri.query(), &request.root())?;
        if reads {
            let account = request.query_account(Priority::Normal);
            let format = parameter(head.uri.query(), "format");
            let wanted = Wanted::from_headers(&head.headers, format.as_deref());
            return with_account(self.read(&target, wanted, request, &account), &account).await;
        }
        self.change(target, head, body, request).await
    }

    async fn read(
        &self,
        target: &Target,
        wanted: Wanted,
        request: &DatasetRequest<'_>,
        account: &Arc<Account>,
    ) -> Answered {
        if *target == Target::All {
            return self.queries.dump(wanted, request, account).await;
        }
        let engine = &request.dataset.engine;
        let find = || graph_store::query_of(engine, target, request.view.as_deref(), account);
        let text = tokio::task::block_in_place(find)?;
        let asked = ProtocolRequest { text, triples_are_distinct: true, ..ProtocolRequest::default() };
        self.queries.answer(asked, None, wanted, request, Arc::clone(account)).await
    }

    /// PUT, POST and DELETE.
    async fn change(
        &self,
        target: Target,
        head: Parts,
        body: Incoming,
        request: &DatasetRequest<'_>,
    ) -> Answered {
        self.context.check_may_change(&request.client.user)?;
        let told = format!("{} {}", head.method, head.uri);
        let mut listed = self.changes.list(RequestKind::Graph, &told, request, Priority::Normal);
        listed.audit = self.changes.audit_line(request, "graph", &told);
        let account = Arc::clone(&listed.account);
        let answer = if head.method == Method::DELETE {
            let engine = Arc::clone(&request.dataset.engine);
            let delete = move |asker: &Asker| graph_store::delete(&engine, &target, asker);
            with_account(self.changes.run(request, listed, delete), &account).await?;
            empty(StatusCode::NO_CONTENT)
        } else {
            let spooled = self.changes.spool(&head, body, request, &listed);
            let body = with_account(spooled, &account).await?;
            let write = if head.method == Method::PUT { GraphWrite::Replace } else { GraphWrite::Add };
            let body = GraphBody { target, write, headers: head.headers, body };
            with_account(self.store(body, request, listed), &account).await?
        };
        Ok(with_activity(answer, &account))
    }

    async fn store(&self, body: GraphBody, request: &DatasetRequest<'_>, listed: ListedChange) -> Answered {
        let (engine, root) = (Arc::clone(&request.dataset.engine), request.root());
        let contexts = self.changes.contexts().clone();
        let store = move |asker: &Asker| {
            let GraphBody { target, write, headers, body } = body;
            let upload = Upload { headers: &headers, body, root: &root, contexts: &contexts };
            graph_store::store(&engine, &target, write, upload, asker)
        };
        let stored = self.changes.run(request, listed, store).await?;
        let status = if stored.created { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
        let mut response = empty(status);
        if let Some(location) = stored.location {
            let value = location.parse().map_err(|_| bad("the Host is no part of an address"))?;
            response.headers_mut().insert(header::LOCATION, value);
        }
        Ok(response)
    }
}
