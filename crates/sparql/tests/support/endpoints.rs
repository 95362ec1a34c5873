//! Endpoints in this process: databases under addresses, asked without a network.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;
use oxrdf::Quad;
use snowmelt_sparql::{
    RemoteAnswer, RemoteDocument, RemoteEndpoints, RemoteFault, RemoteFaultKind, RemotePart, RemoteQuestion,
    RemoteTotals, RemoteUse,
};

use super::answer::{self, Answer, Row, Solutions};
use super::settings::Fixture;

/// The fault of an endpoint, for some questions.
pub type Trouble = dyn Fn(&RemoteQuestion) -> Option<RemoteFault> + Send + Sync;

/// A database of an endpoint.
pub enum Database {
    Ours(Box<Fixture>),
    Oxigraph(Store),
}

impl From<Fixture> for Database {
    fn from(fixture: Fixture) -> Self {
        Self::Ours(Box::new(fixture))
    }
}

impl Database {
    /// One of another engine.
    pub fn oxigraph(quads: &[Quad]) -> Self {
        let store = Store::new().expect("a store in memory");
        quads.iter().for_each(|quad| store.insert(quad).expect("it takes a quad"));
        Self::Oxigraph(store)
    }

    /// The rows of an answer, in the order of their variables.
    fn rows(&self, question: &RemoteQuestion, remote: &InProcess) -> Result<Vec<Row>, String> {
        let text = &question.text;
        let answered = match self {
            Self::Ours(fixture) => fixture.answer_with(text, remote.remote()).map_err(|e| e.to_string())?,
            Self::Oxigraph(store) => Answer::Solutions(by_oxigraph(store, text).map_err(|e| e.to_string())?),
        };
        let Answer::Solutions(solutions) = answered else { return Err(format!("{text} gives no rows")) };
        assert_eq!(solutions.vars, question.variables, "{text}");
        Ok(solutions.rows)
    }
}

fn by_oxigraph(store: &Store, text: &str) -> Result<Solutions, Box<dyn std::error::Error>> {
    let results = SparqlEvaluator::new().parse_query(text)?.on_store(store).execute()?;
    let QueryResults::Solutions(solutions) = results else { return Err("no rows".into()) };
    let vars = answer::variables(solutions.variables());
    let mut rows: Vec<Row> = Vec::new();
    for solution in solutions {
        let solution = solution?;
        rows.push(vars.iter().map(|v| solution.get(v.as_str()).cloned()).collect());
    }
    Ok(Solutions { vars, rows })
}

#[derive(Default)]
struct Known {
    databases: Vec<(String, Database)>,
    asked: Mutex<Vec<RemoteQuestion>>,
    trouble: Option<Box<Trouble>>,
}

/// The endpoints. Each may ask the others.
#[derive(Clone, Default)]
pub struct InProcess(Arc<Known>);

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.databases.iter().map(|(address, _)| address)).finish()
    }
}

impl InProcess {
    /// Databases under their addresses.
    pub fn new(databases: Vec<(String, impl Into<Database>)>) -> Self {
        let databases = databases.into_iter().map(|(address, of)| (address, of.into())).collect();
        Self(Arc::new(Known { databases, ..Known::default() }))
    }

    /// With trouble for some questions.
    pub fn troubled(
        databases: Vec<(String, Database)>,
        trouble: impl Fn(&RemoteQuestion) -> Option<RemoteFault> + Send + Sync + 'static,
    ) -> Self {
        let trouble: Option<Box<Trouble>> = Some(Box::new(trouble));
        Self(Arc::new(Known { databases, trouble, ..Known::default() }))
    }

    /// As an option of queries.
    pub fn remote(&self) -> Option<Arc<dyn RemoteEndpoints>> {
        Some(Arc::new(self.clone()))
    }

    /// The questions since the last call.
    pub fn asked(&self) -> Vec<RemoteQuestion> {
        std::mem::take(&mut self.0.asked.lock().unwrap())
    }
}

pub fn fault(kind: RemoteFaultKind, why: &str) -> RemoteFault {
    RemoteFault { kind, why: why.to_owned() }
}

/// Rows in small parts, with pauses.
struct Parts {
    rows: VecDeque<Row>,
    given: u64,
    pause: bool,
    fault: Option<RemoteFault>,
}

impl RemoteAnswer for Parts {
    fn next(&mut self, _: Duration) -> Result<RemotePart, RemoteFault> {
        self.pause = !self.pause;
        if self.pause {
            return Ok(RemotePart::Waiting);
        }
        if self.rows.is_empty() {
            let used =
                RemoteUse { requests: 1, rows: self.given, bytes: 10, time: Duration::from_millis(100) };
            return self.fault.take().map_or(Ok(RemotePart::End(used)), Err);
        }
        let part: Vec<Row> = self.rows.drain(..self.rows.len().min(3)).collect();
        self.given += part.len() as u64;
        Ok(RemotePart::Rows(part))
    }
}

impl RemoteEndpoints for InProcess {
    fn select(&self, question: RemoteQuestion) -> Result<Box<dyn RemoteAnswer>, RemoteFault> {
        self.0.asked.lock().unwrap().push(question.clone());
        let trouble = self.0.trouble.as_ref().and_then(|trouble| trouble(&question));
        // trouble that says so comes after the rows
        let (before, after) = match trouble {
            Some(fault) if fault.why.starts_with("after") => (None, Some(fault)),
            other => (other, None),
        };
        if let Some(fault) = before {
            return Err(fault);
        }
        let of = |(address, _): &&(String, Database)| *address == question.endpoint;
        let unknown = || fault(RemoteFaultKind::NotAllowed, "it is none of those that may be asked");
        let (_, database) = self.0.databases.iter().find(of).ok_or_else(unknown)?;
        let failed = |error: String| fault(RemoteFaultKind::Failed, &format!("{error} in {}", question.text));
        let rows = database.rows(&question, self).map_err(failed)?;
        Ok(Box::new(Parts { rows: rows.into(), given: 0, pause: false, fault: after }))
    }

    fn document(&self, _: &str, _: Box<dyn Fn() -> bool + Send>) -> Result<RemoteDocument, RemoteFault> {
        Err(fault(RemoteFaultKind::Failed, "there are no documents"))
    }

    fn narrowed(&self, _: &[String]) -> Arc<dyn RemoteEndpoints> {
        Arc::new(self.clone())
    }

    fn totals(&self) -> Vec<RemoteTotals> {
        Vec::new()
    }
}
