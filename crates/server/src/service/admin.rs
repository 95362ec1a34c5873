//! The resources of the server itself: what it is, what runs, what was counted, which datasets.

pub mod advised;
mod datasets;
mod index;
mod meters;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use snowmelt_sparql::QueryOptions;

use super::answers::{Answered, HttpResponse, empty, json, text};
use super::context::{Client, Context, DatasetRequest};
use super::query::Queries;
use crate::advice::Advisor;
use crate::connections::Connections;
use crate::cors::Wish;
use crate::durations::RequestKind;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::running::Register;
use crate::users::Users;

/// Answers requests to the server itself, and counts all.
pub struct Admin {
    context: Arc<Context>,
    connections: Arc<Connections>,
    users: Arc<Users>,
    queries: Arc<Queries>,
    /// commands beside the server
    commands: Arc<Register>,
    answered: AtomicU64,
    refused: AtomicU64,
    started: Instant,
    advisor: Mutex<Advisor>,
}

impl Admin {
    pub fn new(
        context: Arc<Context>,
        connections: Arc<Connections>,
        users: Arc<Users>,
        queries: Arc<Queries>,
    ) -> Self {
        Self {
            commands: Arc::new(Register::timed_with(&context.running)),
            context,
            connections,
            users,
            queries,
            answered: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            started: Instant::now(),
            advisor: Mutex::default(),
        }
    }

    /// Commands beside the server that are under way.
    pub fn commands(&self) -> &Arc<Register> {
        &self.commands
    }

    /// Counts a request that was answered, or refused.
    pub fn count(&self, is_answered: bool) {
        let counter = if is_answered { &self.answered } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Answers a request to a resource of the server.
    pub async fn answer(&self, resource: Resource, head: &Parts, client: &Client<'_>) -> Answered {
        // Some look at pages, or take counters under a lock.
        let quickly = |act: &dyn Fn() -> Result<HttpResponse, Refusal>| tokio::task::block_in_place(act);
        let check = |wish| self.context.check_origin(head, client, wish);
        let user = &client.user;
        match resource {
            Resource::Datasets => Ok(datasets::list(&self.context, user)?),
            Resource::Dataset => {
                check(Wish::Change)?;
                datasets::change(&self.context, head, client).await
            }
            Resource::Stats => {
                user.check_all_datasets()?;
                Ok(self.stats(None, head.uri.query())?)
            }
            Resource::Metrics => {
                user.check_all_datasets()?;
                Ok(quickly(&|| Ok(self.metrics()))?)
            }
            Resource::Ready => Ok(quickly(&|| self.ready())?),
            Resource::Requests => {
                user.check_all_datasets()?;
                Ok(self.requests())
            }
            Resource::Request(number) => {
                user.check_all_datasets()?;
                check(if head.method == Method::DELETE { Wish::Change } else { Wish::Read })?;
                Ok(quickly(&|| self.request(number, &head.method))?)
            }
            Resource::Health => Ok(text(StatusCode::OK, "ok\n")),
            Resource::Index => Ok(index::index(&self.context, head, client)),
            Resource::Sparql
            | Resource::Query
            | Resource::Update
            | Resource::Graphs
            | Resource::StatsReset => unreachable!("these are of a dataset"),
        }
    }

    /// Answers a request to the meters of a dataset.
    pub fn answer_meters(&self, head: &Parts, request: &DatasetRequest<'_>) -> Answered {
        let stats = || self.stats(Some(&request.dataset), head.uri.query());
        Ok(tokio::task::block_in_place(stats)?)
    }

    /// Answers a request to set meters of a dataset to zero.
    pub fn answer_reset(&self, head: &Parts, request: &DatasetRequest<'_>) -> Answered {
        self.context.check_origin(head, &request.client, Wish::Change)?;
        Ok(self.reset(&request.dataset, head)?)
    }

    /// The requests that run.
    fn requests(&self) -> HttpResponse {
        let tasks = self.context.running.tasks();
        let list: Vec<serde_json::Value> = tasks.iter().map(|task| task.json()).collect();
        json(&serde_json::json!({ "requests": list }))
    }

    /// One of them, with its plan; DELETE ends it.
    fn request(&self, number: u64, method: &Method) -> Result<HttpResponse, Refusal> {
        let Some(task) = self.context.running.tasks().into_iter().find(|task| task.number == number) else {
            let message = format!("no request {number} runs: /requests lists those that do");
            return Err(Refusal::new(StatusCode::NOT_FOUND, message));
        };
        if method == Method::DELETE {
            task.cancel.store(true, Ordering::Relaxed);
            return Ok(empty(StatusCode::ACCEPTED));
        }
        let mut about = task.json();
        let datasets = self.context.catalog.open_ones();
        let dataset = datasets.iter().find(|dataset| dataset.name == task.dataset);
        if task.kind == RequestKind::Query
            && let Some(dataset) = dataset
            && let Ok(plan) = dataset.engine.explain(&task.text(), &QueryOptions::default())
        {
            about["plan"] = plan.lines().map(str::to_owned).collect();
        }
        Ok(json(&about))
    }

    /// Whether queries and updates are worth sending.
    fn ready(&self) -> Result<HttpResponse, Refusal> {
        let datasets = self.context.catalog.open_ones();
        let stores = || datasets.iter().map(|dataset| dataset.engine.graph().database().store());
        let failed = stores().find_map(|store| store.poisoned());
        let failed = failed.map(|why| format!("updates fail until the server is started again: {why}"));
        let waits = || stores().find_map(|store| store.unready()).map(|why| format!("updates wait: {why}"));
        match failed.or_else(waits) {
            Some(why) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why)),
            None => Ok(text(StatusCode::OK, "ready\n")),
        }
    }
}
