//! Meters of the server and of its datasets: as JSON and tables, for Prometheus, set to zero.

use std::sync::atomic::Ordering;

use hyper::StatusCode;
use hyper::http::request::Parts;
use snowmelt_database::meters::{
    MeterScope, Report, Sample, Samples, TREE_COLUMNS, as_json, as_prometheus, as_text, sort_trees,
};

use snowmelt_sparql::RemoteTotals;

use super::Admin;
use crate::body::AnswerBody;
use crate::dataset::Dataset;
use crate::refusal::Refusal;
use crate::service::answers::{HttpResponse, bad, empty, internal, json, parameter, response, text};

impl Admin {
    /// Of a dataset, or of the server of several.
    pub(super) fn stats(
        &self,
        of: Option<&Dataset>,
        parameters: Option<&str>,
    ) -> Result<HttpResponse, Refusal> {
        let asked = |name: &str| parameter(parameters, name);
        let mut stats = self.own_stats();
        let standing = as_json(&self.advice(of))["advice"].take();
        stats["advice"] = if standing.is_null() { serde_json::json!([]) } else { standing };
        let Some(dataset) = of else {
            if let Some(datasets) = self.context.catalog.folder() {
                stats["datasets"] = serde_json::to_value(datasets.list()).unwrap_or_default();
            }
            return Ok(json(&stats));
        };
        let database = dataset.engine.graph().stats().map_err(|e| internal(&e))?;
        let mut samples = dataset.engine.graph().database().report().samples();
        if let Some(column) = asked("sort")
            && !sort_trees(&mut samples, &column)
        {
            let message = format!("trees have no column {column}: sort by {}", TREE_COLUMNS.join(", "));
            return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
        }
        if asked("format").is_some_and(|format| format == "table") {
            samples.extend(self.advice(of));
            return Ok(text(StatusCode::OK, format!("{database}\n{}", as_text(&samples))));
        }
        stats["database"] = serde_json::to_value(&database).unwrap_or_default();
        if let (Some(stats), serde_json::Value::Object(meters)) = (stats.as_object_mut(), as_json(&samples)) {
            stats.extend(meters);
        }
        Ok(json(&stats))
    }

    /// Of the server, whatever its datasets.
    fn own_stats(&self) -> serde_json::Value {
        let attempts = self.queries.attempts();
        let (open, connections) = self.connections.json();
        serde_json::json!({
            "uptime_s": self.started.elapsed().as_secs_f64(),
            "answered": self.answered.load(Ordering::Relaxed),
            "refused": self.refused.load(Ordering::Relaxed),
            "tried_at_once": attempts.made(),
            "given_up_at_once": attempts.given_up(),
            "running": self.context.running.len(),
            "commands": self.commands.len(),
            "turns": self.context.admission.json(),
            "open_connections": open,
            "connections": connections,
            "endpoints": self.endpoints().iter().map(endpoint_json).collect::<Vec<_>>(),
        })
    }

    /// All meters in the text format of Prometheus.
    pub(super) fn metrics(&self) -> HttpResponse {
        let mut samples = self.own_samples();
        for dataset in self.context.catalog.open_ones() {
            let mut of = dataset.engine.graph().database().report().samples();
            if !dataset.name.is_empty() {
                let label = || ("dataset".into(), dataset.name.clone());
                of.iter_mut().for_each(|sample| sample.labels.insert(0, label()));
            }
            samples.extend(of);
        }
        let mut out = format!(
            "# HELP snowmelt_build_info the version of the program\n# TYPE snowmelt_build_info gauge\nsnowmelt_build_info{{version=\"{}\"}} 1\n",
            env!("CARGO_PKG_VERSION")
        );
        self.context.running.durations.prometheus(&mut out);
        out += &as_prometheus(&samples);
        response(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", AnswerBody::whole(out))
    }

    /// Of the server, whatever its datasets.
    fn own_samples(&self) -> Vec<Sample> {
        let attempts = self.queries.attempts();
        let mut samples = Samples::default();
        samples.level("uptime_s", "s", self.started.elapsed().as_secs_f64());
        samples.count("requests.answered", "requests", self.answered.load(Ordering::Relaxed));
        samples.count("requests.refused", "requests", self.refused.load(Ordering::Relaxed));
        samples.count("requests.tried_at_once", "requests", attempts.made());
        samples.count("requests.given_up_at_once", "requests", attempts.given_up());
        samples.level("requests.running", "requests", self.context.running.len() as u64);
        samples.level("commands.running", "commands", self.commands.len() as u64);
        samples.level("connections.open", "connections", self.connections.len() as u64);
        self.context.admission.sample(&mut samples);
        let mut samples = samples.into_list();
        samples.extend(self.endpoints().iter().flat_map(endpoint_samples));
        samples
    }

    /// All that endpoints elsewhere were asked.
    fn endpoints(&self) -> Vec<RemoteTotals> {
        self.context.remote.as_ref().map_or_else(Vec::new, |remote| remote.totals())
    }

    /// Sets meters to zero: all, those of a tree or those of an account.
    pub(super) fn reset(&self, dataset: &Dataset, head: &Parts) -> Result<HttpResponse, Refusal> {
        let asked = |name: &str| parameter(head.uri.query(), name);
        let scope = match (asked("tree"), asked("account")) {
            (None, None) => MeterScope::All,
            (Some(tree), None) => MeterScope::Tree(tree),
            (None, Some(account)) => MeterScope::Account(account),
            (Some(_), Some(_)) => return Err(bad("one at a time: 'tree' or 'account'")),
        };
        self.reset_meters(dataset, &scope).map_err(|message| Refusal::new(StatusCode::NOT_FOUND, message))?;
        Ok(empty(StatusCode::NO_CONTENT))
    }

    /// All meters of a dataset, and the open connections and the users among the accounts.
    pub fn meters(&self, dataset: &Dataset) -> Report {
        let mut report = dataset.engine.graph().database().report();
        report.accounts.extend(self.connections.accounts());
        report.accounts.extend(self.users.accounts());
        report
    }

    /// Sets meters to zero. The error says that there is none of that name.
    pub fn reset_meters(&self, dataset: &Dataset, scope: &MeterScope) -> Result<(), String> {
        match scope {
            MeterScope::Account(name) if self.connections.reset(name) || self.users.reset(name) => Ok(()),
            _ => dataset.engine.graph().database().reset(scope).map_err(|error| error.to_string()),
        }
    }
}

fn endpoint_json(totals: &RemoteTotals) -> serde_json::Value {
    serde_json::json!({
        "endpoint": totals.endpoint,
        "requests": totals.done.requests,
        "retries": totals.retries,
        "failed": totals.failed,
        "rows": totals.done.rows,
        "bytes": totals.done.bytes,
        "seconds": totals.done.time.as_secs_f64(),
    })
}

fn endpoint_samples(totals: &RemoteTotals) -> Vec<Sample> {
    let mut samples = Samples::default();
    samples.labelled("endpoint", &totals.endpoint, |samples| {
        samples.count("endpoints[].requests", "requests", totals.done.requests);
        samples.count("endpoints[].retries", "requests", totals.retries);
        samples.count("endpoints[].failed", "requests", totals.failed);
        samples.count("endpoints[].rows", "rows", totals.done.rows);
        samples.count("endpoints[].bytes", "bytes", totals.done.bytes);
        samples.count("endpoints[].time_us", "us", totals.done.time.as_micros() as u64);
    });
    samples.into_list()
}
