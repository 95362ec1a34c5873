//! The engines of a comparison: found or skipped, loaded, and counted.

use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;
use snowmelt_bsbm::{Query, QueryKind};
use snowmelt_engines::{Adapter, Engine, Language, Settings, Work};
use snowmelt_tpch::TABLES_COUNTED;

use crate::compare::Comparison;
use crate::compare::data::DataSet;
use crate::compare::sql_target::SqlTarget;
use crate::http::{Endpoint, Protocol};
use snowmelt_workload::target::Target;

/// An engine that takes part.
pub struct Entrant {
    /// The engine.
    pub engine: Engine,
    /// The language it is asked in.
    pub language: Language,
    /// Its version, as it prints it.
    pub version: String,
    /// Its load, once done.
    pub loaded: Option<Loaded>,
    /// Why it was left out from some moment on.
    pub failed: Option<String>,
}

/// A load.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Loaded {
    /// Seconds it took.
    pub seconds: f64,
    /// Bytes on the disk.
    pub bytes: u64,
    /// Triples or rows that it counts.
    pub items: u64,
}

/// An engine that was asked for and takes no part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its name.
    pub engine: String,
    /// Why, with the remedy.
    pub why: String,
}

/// Looks for the engines. Those of `required` must be there.
///
/// # Errors
/// A required engine is missing, none is there, or two have one name.
pub fn find(
    adapters: Vec<Adapter>,
    language: Language,
    required: &[String],
    settings: &Settings,
    work: &Work,
) -> Result<(Vec<Entrant>, Vec<Skipped>)> {
    let (mut field, mut skipped) = (Vec::<Entrant>::new(), Vec::new());
    for name in required {
        if !adapters.iter().any(|adapter| adapter.name == *name) {
            bail!("--require {name}: it is not among the --engines");
        }
    }
    for adapter in adapters {
        let (name, is_required) = (adapter.name.clone(), required.contains(&adapter.name));
        if field.iter().any(|entrant| entrant.engine.adapter().name == name) {
            bail!("{name} is named twice");
        }
        let unable = unable(&adapter, language);
        let engine = Engine::new(adapter, settings, work.clone())?;
        let found = unable.map_or_else(|| engine.find().map_err(|error| error.to_string()), Err);
        match found {
            Ok(found) => {
                field.push(Entrant { engine, language, version: found.version, loaded: None, failed: None });
            }
            Err(why) if is_required => bail!("--require {name}: {why}"),
            Err(why) => skipped.push(Skipped { engine: name, why }),
        }
    }
    if field.is_empty() {
        let reasons: Vec<_> = skipped.iter().map(|s| format!("{}: {}", s.engine, s.why)).collect();
        bail!("none of the engines can be measured: {}", reasons.join("; "));
    }
    Ok((field, skipped))
}

/// Why an engine cannot be measured with queries of that language, if so.
fn unable(adapter: &Adapter, language: Language) -> Option<String> {
    let can = adapter.can(language);
    match language {
        Language::Sparql if !can => Some("it answers no SPARQL, which this workload is in".into()),
        Language::Sql if !can => Some("it answers no SQL, which this workload is in".into()),
        Language::Sql if adapter.load_tables.is_none() || adapter.session.is_none() => {
            Some("its adapter has no [load-tables] or no [session], which queries in SQL need".into())
        }
        _ => None,
    }
}

/// The failures in a line.
pub fn failures(field: &[Entrant]) -> String {
    let reasons = field.iter().filter_map(|e| Some(format!("{}: {}", e.title(), e.failed.as_ref()?)));
    reasons.collect::<Vec<_>>().join("; ")
}

impl Entrant {
    /// Its name in reports.
    pub fn title(&self) -> &str {
        &self.engine.adapter().title
    }

    /// The word that names it.
    pub fn name(&self) -> &str {
        &self.engine.adapter().name
    }

    /// The started engine as a target, which has so long for each query.
    pub(super) fn target(&self, timeout: Option<Duration>) -> Result<Box<dyn Target + '_>> {
        if self.language == Language::Sql {
            return Ok(Box::new(SqlTarget::new(&self.engine, timeout)));
        }
        let url = self.engine.endpoint().expect("an adapter for SPARQL has an endpoint");
        let default_graph = self.engine.adapter().default_graph.clone();
        Ok(Box::new(Endpoint::new(&url, Protocol { timeout, default_graph, ..Protocol::default() })?))
    }

    /// Makes its database, loads it and counts what it holds.
    fn load(&self) -> Result<Loaded> {
        self.engine.create()?;
        let seconds = self.engine.load(self.language)?;
        let server = self.engine.start()?;
        let items = self.count()?;
        server.stop()?;
        Ok(Loaded { seconds, bytes: self.engine.bytes()?, items })
    }

    fn count(&self) -> Result<u64> {
        let text = match self.language {
            Language::Sparql => "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }",
            Language::Sql => TABLES_COUNTED,
        };
        let query = Query { number: 0, kind: QueryKind::Select, text: text.into() };
        let mut answer = Vec::new();
        if let Some(failure) = self.target(None)?.answer(&query, &mut answer)?.failed {
            bail!("it cannot count what it holds: {failure}");
        }
        let answer = String::from_utf8_lossy(&answer);
        // Within the XML of an answer, or alone.
        let number = answer.split("</literal>").next().and_then(|text| text.rsplit('>').next());
        match number.and_then(|number| number.trim().parse().ok()) {
            Some(count) => Ok(count),
            None => bail!("it answers no count of what it holds"),
        }
    }
}

impl Comparison<'_> {
    /// Loads all engines, one after the other. One that fails is reported and left out.
    ///
    /// # Errors
    /// It is interrupted.
    pub fn load(&self, field: &mut [Entrant], data: &DataSet) -> Result<()> {
        for entrant in field {
            (self.say)(&format!("{}: loading", entrant.title()));
            match entrant.load() {
                Ok(loaded) => {
                    let Loaded { seconds, bytes, items } = loaded;
                    let rate = data.items as f64 / seconds / 1e3;
                    (self.say)(&format!(
                        "{}: {items} {} in {seconds:.2} s ({rate:.0} k/s), {:.1} bytes each",
                        entrant.title(),
                        self.questions.items(),
                        bytes as f64 / items.max(1) as f64
                    ));
                    entrant.loaded = Some(loaded);
                }
                Err(_) if self.is_interrupted() => bail!("interrupted"),
                Err(error) => {
                    (self.say)(&format!("{} FAILED to load: {error:#}", entrant.title()));
                    entrant.failed = Some(format!("load: {error:#}"));
                }
            }
        }
        Ok(())
    }
}

/// A missing engine in a line of the terminal or page.
pub fn skip_line(skipped: &Skipped) -> String {
    format!("SKIPPED {}: {}", skipped.engine, skipped.why)
}
