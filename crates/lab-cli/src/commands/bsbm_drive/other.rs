//! The other side of `bsbm drive --verify`: an endpoint that is asked the same queries, or a run
//! that was stored. One of another size has other answers, and is refused.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use snowmelt_bench::content;
use snowmelt_bench::measure::{Measurement, Streams};
use snowmelt_bench::summary::Setup;
use snowmelt_bench::verify::{AnswerLine, answers, read_answers};
use snowmelt_bsbm::UseCase;
use snowmelt_lab::Run;
use snowmelt_workload::bench::products_of;
use snowmelt_workload::drive::Rules;
use snowmelt_workload::kept::KeptAnswers;
use snowmelt_workload::target::Target;

use super::{BsbmDriveArgs, is_url};

/// The file of answers as they came, without `.jsonl`.
const KEPT: &str = "kept";

/// The side that a run is verified with.
pub(super) enum Other {
    Endpoint(String, Box<dyn Target>),
    Stored(PathBuf, Vec<AnswerLine>),
}

impl Other {
    /// Looks at it before anything is measured.
    pub(super) fn new(args: &BsbmDriveArgs, with: &str) -> Result<Self> {
        if is_url(with) {
            if args.use_case == UseCase::ExploreAndUpdate && args.clients.get() > 1 {
                bail!(
                    "several clients update in no certain order: --verify with an endpoint needs --clients 1"
                );
            }
            return Ok(Self::Endpoint(with.to_owned(), Box::new(args.endpoint(with)?)));
        }
        let path = Path::new(with).join("answers.jsonl");
        let text = fs::read_to_string(&path)
            .with_context(|| format!("{with} is no run of bsbm drive: cannot read {}", path.display()))?;
        let lines = read_answers(&text).with_context(|| path.display().to_string())?;
        Ok(Self::Stored(with.into(), lines))
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Endpoint(url, _) => url,
            Self::Stored(path, _) => path.to_str().unwrap_or("the stored run"),
        }
    }

    /// Refuses a side whose data or queries are not those of this run.
    pub(super) fn refuse_another_size(&self, setup: &Setup, target: &dyn Target) -> Result<()> {
        let different = match self {
            Self::Endpoint(url, other) => {
                let here = products_of(target).with_context(|| setup.target.clone())?;
                let there = products_of(&**other).with_context(|| url.clone())?;
                differing("products", &json!(here), &json!(there)).into_iter().collect()
            }
            Self::Stored(path, _) => different_settings(setup, path)?,
        };
        if !different.is_empty() {
            bail!(
                "--verify {}: its answers are to other queries or of other data: {}; give this run the same, or \
                 verify with another",
                self.name(),
                different.join(", ")
            );
        }
        Ok(())
    }

    /// Its answers to the queries of the run, and those themselves that differ from `here`, as far
    /// as there is room: an endpoint is asked, one mix after the other.
    pub(super) fn answers(
        &self,
        args: &BsbmDriveArgs,
        mixes: u64,
        streams: Streams,
        here: &[AnswerLine],
        stop: &AtomicBool,
    ) -> Result<(Vec<AnswerLine>, KeptAnswers)> {
        let (url, target) = match self {
            Self::Stored(path, lines) => return Ok((lines.clone(), read_kept(path)?)),
            Self::Endpoint(url, target) => (url, target),
        };
        let kept = KeptAnswers::new(args.keep_answers as usize).unlike(contents(here));
        // Repeats of queries ask the same again; updates go on.
        let all = if args.use_case == UseCase::ExploreAndUpdate { u64::from(args.repeats) } else { 1 };
        let measurement = Measurement {
            target: &**target,
            clients: 1,
            rules: Rules { rate: None, reading: content::terms, keeps_going: args.keep_going },
            warmup: 0,
            mixes: mixes * all,
            kept: Some(&kept),
            stop,
        };
        let same = Streams::only(streams.measured(args.warmup));
        let there = measurement.run(same).with_context(|| format!("verifying with {url}"))?;
        Ok((answers(&there.run.records), kept))
    }
}

/// Rows and digests by the hashes of the texts.
fn contents(answers: &[AnswerLine]) -> HashMap<u64, (u64, u64)> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let content = |answer: &AnswerLine| Some((number(&answer.text)?, (answer.rows, number(&answer.digest)?)));
    answers.iter().filter_map(content).collect()
}

/// Settings by which the queries and their answers are decided.
const DECISIVE: [&str; 5] = ["use_case", "products", "seed", "warmup", "mixes"];

/// The settings of a stored run that are not those of this one.
fn different_settings(setup: &Setup, path: &Path) -> Result<Vec<String>> {
    let read = |name: &str| -> Result<Value> {
        let file = path.join(name);
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_str(&text).with_context(|| file.display().to_string())
    };
    let (here, mut there) = (json!(setup), read("settings.json")?["settings"].take());
    if there["mixes"].is_null() {
        // A run from before this was among its settings.
        there["mixes"] = read("result.json")?["mix"]["mixes"].take();
    }
    let mut names = DECISIVE.to_vec();
    if setup.use_case == UseCase::ExploreAndUpdate.to_string() && !there["repeats"].is_null() {
        names.push("repeats");
    }
    Ok(names.into_iter().filter_map(|name| differing(name, &here[name], &there[name])).collect())
}

fn differing(name: &str, here: &Value, there: &Value) -> Option<String> {
    (here != there).then(|| format!("{} {here} here and {there} there", name.replace('_', " ")))
}

/// Writes the answers that were kept.
pub(super) fn write_kept(folder: &Run, kept: &KeptAnswers) -> Result<()> {
    if kept.most_bytes() == 0 {
        return Ok(());
    }
    let mut lines = folder.lines(KEPT)?;
    for text in kept.texts() {
        let answer = kept.get(text).unwrap_or_default();
        let answer = String::from_utf8_lossy(&answer);
        lines.write(&json!({ "text": format!("{text:016x}"), "answer": answer }))?;
    }
    Ok(())
}

/// The answers that a stored run has kept: none of a run that kept none.
fn read_kept(run: &Path) -> Result<KeptAnswers> {
    let kept = KeptAnswers::new(usize::MAX);
    let path = run.join(KEPT).with_extension("jsonl");
    if !path.exists() {
        return Ok(kept);
    }
    let all = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    for (i, line) in all.lines().enumerate() {
        let line: Value =
            serde_json::from_str(line).with_context(|| format!("{}, line {}", path.display(), i + 1))?;
        let text = line["text"].as_str().and_then(|text| u64::from_str_radix(text, 16).ok());
        if let (Some(text), Some(answer)) = (text, line["answer"].as_str()) {
            kept.offer(text, (0, 0), answer.as_bytes());
        }
    }
    Ok(kept)
}
