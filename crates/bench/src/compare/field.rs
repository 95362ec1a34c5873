//! The engines of a comparison: found or skipped, loaded, and counted.

use anyhow::{Result, bail};
use serde::Serialize;
use snowmelt_bsbm::{Query, QueryKind};
use snowmelt_engines::{Adapter, Engine, Language, Settings, Work};

use crate::compare::Comparison;
use crate::compare::data::DataSet;
use crate::http::{Endpoint, Protocol};
use crate::target::Target;

/// An engine that takes part.
pub struct Entrant {
    /// The engine.
    pub engine: Engine,
    /// As it tells it.
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
    /// Triples that it counts.
    pub triples: u64,
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
    (language, required): (Language, &[String]),
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
        let can = adapter.can(language);
        let engine = Engine::new(adapter, settings, work.clone())?;
        let found =
            if can { engine.find().map_err(|error| error.to_string()) } else { Err(unable(language)) };
        match found {
            Ok(found) => {
                field.push(Entrant { engine, version: found.version, loaded: None, failed: None });
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

fn unable(language: Language) -> String {
    match language {
        Language::Sparql => "it answers no SPARQL, which this workload is in".into(),
        Language::Sql => "it answers no SQL, which this workload is in".into(),
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

    /// Its endpoint, asked under these rules.
    pub(super) fn endpoint(&self, protocol: Protocol) -> Result<Endpoint> {
        let url = self.engine.endpoint().expect("an adapter for SPARQL has an endpoint");
        Endpoint::new(
            &url,
            Protocol { default_graph: self.engine.adapter().default_graph.clone(), ..protocol },
        )
    }

    /// Makes its database, loads it and counts what it holds.
    fn load(&self) -> Result<Loaded> {
        self.engine.create()?;
        let seconds = self.engine.load()?;
        let server = self.engine.start()?;
        let triples = self.count()?;
        server.stop()?;
        Ok(Loaded { seconds, bytes: self.engine.bytes()?, triples })
    }

    fn count(&self) -> Result<u64> {
        let text = "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }";
        let query = Query { number: 0, kind: QueryKind::Select, text: text.into() };
        let mut answer = Vec::new();
        if let Some(failure) = self.endpoint(Protocol::default())?.answer(&query, &mut answer)?.failed {
            bail!("it cannot count its triples: {failure}");
        }
        let answer = String::from_utf8_lossy(&answer);
        let number = answer.split("</literal>").next().and_then(|text| text.rsplit('>').next());
        match number.and_then(|number| number.trim().parse().ok()) {
            Some(count) => Ok(count),
            None => bail!("it answers no count of its triples"),
        }
    }
}

impl Comparison<'_> {
    /// Loads all engines, one after the other. One that fails is told and left out.
    ///
    /// # Errors
    /// It is interrupted.
    pub fn load(&self, field: &mut [Entrant], data: &DataSet) -> Result<()> {
        for entrant in field {
            (self.say)(&format!("{}: loading", entrant.title()));
            match entrant.load() {
                Ok(loaded) => {
                    let Loaded { seconds, bytes, triples } = loaded;
                    let rate = data.triples as f64 / seconds / 1e3;
                    (self.say)(&format!(
                        "{}: {triples} triples in {seconds:.2} s ({rate:.0} k/s), {:.1} bytes each",
                        entrant.title(),
                        bytes as f64 / triples.max(1) as f64
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
