//! The SPARQL Protocol's resources: a request is a query, an update, or asks for the description.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};

use super::answers::{Answered, accept, bad, internal, page_of, parameter, response, with_account};
use super::context::{Context, DatasetRequest};
use super::query::Queries;
use super::update::Updates;
use super::wanted::Wanted;
use crate::body::AnswerBody;
use crate::coding::Coding;
use crate::cors::Wish;
use crate::description::{self, Offer};
use crate::freshness::Kept;
use crate::intake::{self, BodyWatch};
use crate::negotiate::{self, Answer};
use crate::request::{self, Operation};
use crate::resource::Resource;

/// Answers the requests of the SPARQL Protocol.
pub struct Protocol {
    context: Arc<Context>,
    queries: Arc<Queries>,
    updates: Updates,
}

impl Protocol {
    pub fn new(context: Arc<Context>, queries: Arc<Queries>, updates: Updates) -> Self {
        Self { context, queries, updates }
    }

    /// Answers a request to `/sparql`, `/query` or `/update`.
    pub async fn answer(
        &self,
        resource: Resource,
        head: Parts,
        body: Incoming,
        request: &DatasetRequest<'_>,
    ) -> Answered {
        if resource != Resource::Query && request::is_plain_update(&head.method, &head.headers) {
            return self.updates.answer_plain(head, body, request).await;
        }
        let client = &request.client;
        self.context.check_origin(&head, client, Wish::Read)?;
        let coding = Coding::of_body(&head.headers)?;
        let watch = BodyWatch { task: None, most_work: self.context.limits.timeout };
        let database = request.dataset.engine.graph();
        let body = intake::hold(body, coding, &self.context.limits, database, watch).await?;
        let operation = request::parse(&head.method, head.uri.query(), &head.headers, &body.bytes)?;
        let address = client.address(head.uri.path());
        match (operation, resource) {
            (Operation::Nothing, _) => {
                let format = parameter(head.uri.query(), "format");
                self.describe(&address, request, &head.headers, format.as_deref())
            }
            (Operation::Query(_), Resource::Update) => Err(bad("queries go to /sparql or /query").into()),
            (Operation::Update(_), Resource::Query) => Err(bad("updates go to /sparql or /update").into()),
            (Operation::Query(query), _) => {
                let account = request.query_account(query.priority);
                let wanted = Wanted::from_headers(&head.headers, query.format.as_deref());
                let answered =
                    self.queries.answer(query, Some(address), wanted, request, Arc::clone(&account));
                with_account(answered, &account).await
            }
            (Operation::Update(update), _) => {
                self.context.check_origin(&head, client, Wish::Change)?;
                self.updates.answer(update, address, request).await
            }
        }
    }

    /// The description of the service and its data, for requests without a query.
    fn describe(
        &self,
        endpoint: &str,
        request: &DatasetRequest<'_>,
        headers: &HeaderMap,
        format: Option<&str>,
    ) -> Answered {
        if format.is_none() && negotiate::wants_page(accept(headers).as_deref()) {
            return Ok(page_of(&request.dataset.mount(), endpoint, &request.prefixes()));
        }
        let (format, media_type) = Wanted::from_headers(headers, format).format(Answer::Description)?;
        let format = format.graph().expect("descriptions are graphs");
        let offer = Offer { updates: !self.context.is_read_only, federates: self.context.remote.is_some() };
        let describe = || {
            let summary = match request.view {
                None => Some(request.dataset.summary().map_err(|e| internal(&e))?),
                Some(_) => None,
            };
            description::describe(endpoint, offer, summary.as_deref(), format)
                .map(|text| (summary.map(|summary| summary.txn), text))
                .map_err(|e| internal(&e))
        };
        let (txn, text) = tokio::task::block_in_place(describe)?;
        let mut response = response(StatusCode::OK, media_type, AnswerBody::whole(text));
        let (states, kept) = (&request.dataset.states, Kept::from_headers(headers));
        if txn.is_some_and(|txn| states.mark(txn, media_type, &kept, response.headers_mut())) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            *response.body_mut() = AnswerBody::empty();
        }
        Ok(response)
    }
}
