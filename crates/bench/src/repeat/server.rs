//! An engine with changes in its journal that is killed and started again.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use snowmelt_bsbm::{Query, QueryKind};
use snowmelt_engines::cold::make_cold;
use snowmelt_engines::{Adapter, Engine, Language, Settings, Work};

use super::finding::circumstance::Circumstance;
use super::steps::Steps;
use crate::http::{Endpoint, Protocol};
use snowmelt_workload::target::Target;

/// Triples, or rows, of one change.
pub const TRIPLES: usize = 100;
/// The memory that the engine may use.
const MEMORY: u64 = 1 << 30;

/// Seconds from the start of an engine to its first right answer.
pub struct Restart {
    pub seconds: f64,
    pub changes: usize,
    /// what the changes took
    pub changes_s: f64,
    /// other programs meanwhile
    pub meanwhile: Circumstance,
}

/// The place where an engine is made, and the data that it may load.
pub struct Place<'a> {
    pub folder: &'a Path,
    pub data: &'a Path,
    pub parts: &'a Path,
}

impl<'a> Place<'a> {
    /// For an engine that loads nothing.
    pub fn without_data(folder: &'a Path) -> Self {
        Self { folder, data: Path::new("/nowhere"), parts: Path::new("/nowhere") }
    }
}

/// An engine in a folder of its own in `place`, with an empty database.
pub fn engine(steps: &Steps<'_>, adapter: Adapter, place: &Place<'_>, memory: u64) -> Result<Engine> {
    let settings = Settings {
        folder: place.folder.to_path_buf(),
        memory,
        threads: steps.threads(),
        port: None,
        engines: std::env::home_dir().unwrap_or_default().join(".local/share/snowmelt/engines"),
        snowmelt: steps.plan.snowmelt.clone(),
        data: place.data.to_path_buf(),
        parts: place.parts.to_path_buf(),
    };
    let work = Work { undo: steps.undo.clone(), stop: steps.stop.clone() };
    let engine = Engine::new(adapter, &settings, work)?;
    engine.find()?;
    engine.create()?;
    Ok(engine)
}

/// Throws the files of a stopped engine out of the page cache.
pub fn throw_out(steps: &mut Steps<'_>, engine: &Engine) -> Result<()> {
    let stayed = make_cold(&engine.data())?.cached_after;
    if stayed > 0 {
        let title = &engine.adapter().title;
        steps.doubt(format!("{title}: {stayed} pages of its files stayed in the page cache"));
    }
    Ok(())
}

/// Kills an engine after `changes` changes, throws its files out of the page cache, and starts it
/// again. `more`: arguments of its start.
pub fn killed(
    steps: &mut Steps<'_>,
    name: &str,
    folder: &Path,
    more: &[&str],
    changes: usize,
) -> Result<Restart> {
    let begun = (Instant::now(), steps.clock());
    let mut adapter = Adapter::named(name)?;
    adapter.start.extend(more.iter().map(|&word| word.to_owned()));
    let title = adapter.title.clone();
    let engine = engine(steps, adapter, &Place::without_data(folder), MEMORY)?;
    let speech = Speech::new(&engine)?;
    let server = engine.start()?;
    steps.say(&format!("{title}: {changes} changes of {TRIPLES} triples, then kill -9"));
    let changing = Instant::now();
    speech.change(steps, changes)?;
    let changes_s = changing.elapsed().as_secs_f64();
    server.crash();
    throw_out(steps, &engine)?;
    let restarted = Instant::now();
    let server = engine.start()?;
    let found = speech.found(changes - 1)?;
    let seconds = restarted.elapsed().as_secs_f64();
    if found != TRIPLES {
        bail!("{title} has {found} of {TRIPLES} triples of its last change");
    }
    server.stop()?;
    let meanwhile = steps.own(
        &format!("{title}: {changes} changes, kill -9, start, first right answer"),
        &format!("{} {}", engine.adapter().name, more.join(" ")),
        begun,
    );
    Ok(Restart { seconds, changes, changes_s, meanwhile })
}

/// The way in which an engine is changed and asked.
enum Speech<'a> {
    /// SPARQL Update over HTTP.
    Http(Endpoint),
    /// SPARQL within SQL, by its own client: over HTTP an update needs rights that are not set.
    SparqlInSql(&'a Engine, Endpoint),
    /// Rows of a table.
    Sql(&'a Engine),
}

impl<'a> Speech<'a> {
    fn new(engine: &'a Engine) -> Result<Self> {
        let Some(url) = engine.endpoint() else { return Ok(Self::Sql(engine)) };
        let protocol = Protocol {
            connection_per_query: false,
            timeout: Some(Duration::from_secs(60)),
            default_graph: None,
            update_url: Some(url.clone()),
            update_field: None,
        };
        let endpoint = Endpoint::new(&url, protocol)?;
        let has_sql = engine.adapter().can(Language::Sql);
        Ok(if has_sql { Self::SparqlInSql(engine, endpoint) } else { Self::Http(endpoint) })
    }

    /// Makes all changes, each a transaction that is committed before the next.
    fn change(&self, steps: &Steps<'_>, changes: usize) -> Result<()> {
        match self {
            Self::Http(endpoint) => (0..changes).try_for_each(|change| {
                steps.check_stop()?;
                ask(endpoint, &query(QueryKind::Update, inserted(change))).map(drop)
            }),
            Self::SparqlInSql(engine, _) => {
                let lines = (0..changes).map(|change| format!("SPARQL {};\n", inserted(change)));
                script(engine, &[], &lines.collect::<String>())
            }
            Self::Sql(engine) => {
                let create = "CREATE TABLE changes (s text, p text, o text);\nCREATE INDEX ON changes (s);\n";
                let lines = (0..changes).map(|change| {
                    let row = |n| format!("('urn:s{change}', 'urn:p{}', '{change} {n}')", n % 7);
                    let rows: Vec<String> = (0..TRIPLES).map(row).collect();
                    format!("INSERT INTO changes VALUES {};\n", rows.join(", "))
                });
                let text: String = std::iter::once(create.to_owned()).chain(lines).collect();
                script(engine, &[("database", "postgres")], &text)
            }
        }
    }

    /// Number of a change's triples that are in the database.
    fn found(&self, change: usize) -> Result<usize> {
        let answer = match self {
            Self::Http(endpoint) | Self::SparqlInSql(_, endpoint) => {
                let text = format!("SELECT (COUNT(*) AS ?n) {{ GRAPH <urn:g> {{ <urn:s{change}> ?p ?o }} }}");
                ask(endpoint, &query(QueryKind::Select, text))?
            }
            Self::Sql(engine) => {
                let text = format!("SELECT count(*) FROM changes WHERE s = 'urn:s{change}'");
                engine.command("sql", &[("text", &text), ("database", "postgres")])?
            }
        };
        number(&answer).with_context(|| format!("no count in the answer: {answer}"))
    }
}

/// The number in the answer to a count. Engines write it in different forms.
fn number(answer: &str) -> Option<usize> {
    let text = match serde_json::from_str::<serde_json::Value>(answer) {
        Ok(json) if json.is_object() => json["results"]["bindings"][0]["n"]["value"].as_str()?.to_owned(),
        _ => match answer.split_once("<literal").and_then(|(_, rest)| rest.split_once('>')) {
            Some((_, rest)) => rest.split('<').next()?.to_owned(),
            None => answer.trim().to_owned(),
        },
    };
    text.parse().ok()
}

fn inserted(change: usize) -> String {
    let triple = |n: usize| format!("<urn:s{change}> <urn:p{}> \"{change} {n}\" . ", n % 7);
    let data: String = (0..TRIPLES).map(triple).collect();
    format!("INSERT DATA {{ GRAPH <urn:g> {{ {data}}} }}")
}

/// Runs statements of a file.
fn script(engine: &Engine, values: &[(&str, &str)], text: &str) -> Result<()> {
    let path = engine.folder().join("statements.sql");
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    let file = path.display().to_string();
    engine.command("sql-file", &[values, &[("file", file.as_str())]].concat())?;
    Ok(())
}

fn query(kind: QueryKind, text: String) -> Query {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_in_each_form_of_answer() {
        let json =
            r#"{"head":{"vars":["n"]},"results":{"bindings":[{"n":{"type":"literal","value":"100"}}]}}"#;
        let xml = "<sparql><results><result><binding name=\"n\"><literal datatype=\"http://www.w3.org/2001/XMLSchema#integer\">100</literal></binding></result></results></sparql>";
        for answer in [json, xml, "100\n"] {
            assert_eq!(number(answer), Some(100), "{answer}");
        }
        assert_eq!(number("no such table"), None);
    }
}
