//! An engine with changes in its journal that is killed and started again.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use snowmelt_bsbm::{Query, QueryKind};
use snowmelt_engines::{Adapter, Engine, Settings, Work};

use super::steps::Steps;
use crate::http::{Endpoint, Protocol};
use crate::target::Target;

/// Triples of one change.
const TRIPLES: usize = 100;

/// Seconds from the start of an engine to its first right answer.
pub struct Restart {
    pub seconds: f64,
    pub changes: usize,
}

/// Kills an engine after so many changes, and starts it again. `more`: arguments of its start.
pub fn killed(steps: &mut Steps<'_>, name: &str, more: &[&str], changes: usize) -> Result<Restart> {
    let begun = Instant::now();
    let mut adapter = Adapter::named(name)?;
    adapter.start.extend(more.iter().map(|&word| word.to_owned()));
    adapter.load = None;
    let title = adapter.title.clone();
    let settings = Settings {
        folder: steps.path("engines").into(),
        memory: 1 << 30,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        port: None,
        engines: std::env::home_dir().unwrap_or_default().join(".local/share/snowmelt/engines"),
        snowmelt: steps.plan.program.clone(),
        data: steps.path("none.nt").into(),
        parts: steps.path("none").into(),
    };
    let work = Work { undo: steps.undo.clone(), stop: steps.stop.clone() };
    let engine = Engine::new(adapter, &settings, work)?;
    engine.find()?;
    engine.create()?;
    let server = engine.start()?;
    let url = engine.endpoint().context("the engine has no SPARQL endpoint")?;
    let endpoint = Endpoint::new(
        &url,
        Protocol {
            connection_per_query: false,
            timeout: Some(Duration::from_secs(60)),
            default_graph: None,
            update_url: Some(url.clone()),
            update_field: None,
        },
    )?;
    steps.say(&format!("{title}: {changes} changes of {TRIPLES} triples, then kill -9"));
    for change in 0..changes {
        steps.check_stop()?;
        let triple = |n: usize| format!("<urn:s{change}> <urn:p{}> \"{change} {n}\" .", n % 7);
        let data: String = (0..TRIPLES).map(triple).collect();
        ask(&endpoint, &of(QueryKind::Update, format!("INSERT DATA {{ {data} }}")))?;
    }
    server.crash();
    let restarted = Instant::now();
    let server = engine.start()?;
    let last = format!("ASK {{ <urn:s{}> ?p ?o }}", changes - 1);
    let answer = ask(&endpoint, &of(QueryKind::Select, last))?;
    let seconds = restarted.elapsed().as_secs_f64();
    if !answer.contains("true") {
        bail!("{title} has lost its last change: {answer}");
    }
    server.stop()?;
    steps.own(
        &format!("{title}: {changes} changes, kill -9, start, first right answer"),
        &format!("{} {}", engine.adapter().name, more.join(" ")),
        begun.elapsed().as_secs_f64(),
    );
    Ok(Restart { seconds, changes })
}

fn of(kind: QueryKind, text: String) -> Query {
    Query { number: 0, kind, text }
}

fn ask(endpoint: &Endpoint, query: &Query) -> Result<String> {
    let mut answer = Vec::new();
    let answered = endpoint.answer(query, &mut answer)?;
    if let Some(failed) = answered.failed {
        bail!("{failed}");
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
