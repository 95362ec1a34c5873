//! Results of the turns: medians with their spread, ratios to the first engine, and whether the
//! answers agree.
//!
//! A ratio is taken repetition by repetition, so that a slow moment of the machine affects both
//! sides about equally. There is a verdict from three repetitions on, and only if the
//! ratios of all of them lie on one side of 1 and their median is more than 3 % from it.

use std::path::Path;

use serde::Serialize;
use snowmelt_lab::stats::{median, spread};

use crate::compare::field::{Entrant, Loaded};
use crate::compare::turn::Turn;
use crate::compare::workload::Questions;
use crate::report::QueryReport;
use crate::verify::Verification;

/// Differences up to this are none.
const LEAST: f64 = 0.03;
/// Repetitions from which there is a verdict.
pub const REPEATS: usize = 3;

/// A measured quantity of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Warm mixes per hour.
    WarmQmph,
    /// Mixes per hour after a cold start.
    ColdQmph,
    /// Seconds from the start command to the first answer.
    FirstAnswerS,
}

/// The middle of several measurements, and their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Middle {
    /// How many.
    pub n: usize,
    /// The median.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

/// Which side is better, if that can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Better than the first engine.
    Better,
    /// Worse.
    Worse,
    /// The repetitions do not agree, or differ by 3 % at most.
    NoDifference,
    /// Fewer than three repetitions.
    TooFew,
}

/// An engine's quantity divided by the first engine's.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Ratio {
    /// The quantity.
    pub quantity: Quantity,
    /// Median and ends of the ratios of all repetitions.
    pub ratio: Middle,
    /// From these.
    pub verdict: Verdict,
}

/// Everything about one engine.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// Its name.
    pub engine: String,
    /// Its name in reports.
    pub title: String,
    /// Its version, as it prints it.
    pub version: String,
    /// Facts that a reader must know.
    pub notes: Vec<String>,
    /// Its load.
    pub loaded: Option<Loaded>,
    /// Why it was left out at some moment.
    pub failed: Option<String>,
    /// Its quantities.
    pub middles: Vec<(Quantity, Middle)>,
    /// Against the first engine; none of that itself.
    pub ratios: Vec<Ratio>,
    /// Its answers and the first engine's.
    pub verification: Option<Verification>,
}

/// Results of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Standings {
    /// The engines, the first of which the others are compared with.
    pub entries: Vec<Standing>,
    /// All turns, in the order in which they were measured.
    #[serde(skip)]
    pub turns: Vec<Turn>,
}

impl Quantity {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::WarmQmph, Self::ColdQmph, Self::FirstAnswerS];

    /// Its value in a turn.
    pub fn value_in(self, turn: &Turn) -> f64 {
        match self {
            Self::WarmQmph => turn.warm_qmph,
            Self::ColdQmph => turn.cold_qmph,
            Self::FirstAnswerS => turn.first_answer_s,
        }
    }

    fn more_is_better(self) -> bool {
        self != Self::FirstAnswerS
    }

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Self::WarmQmph => "warm mixes per hour",
            Self::ColdQmph => "mixes per hour after a cold start",
            Self::FirstAnswerS => "seconds to the first answer",
        }
    }
}

impl Middle {
    /// The middle of `values`.
    pub fn new(values: &[f64]) -> Self {
        let spread = spread(values);
        Self { n: values.len(), median: median(values).unwrap_or(0.0), min: spread.min, max: spread.max }
    }
}

impl Verdict {
    fn judge(ratio: &Middle, more_is_better: bool) -> Self {
        if ratio.n < REPEATS {
            return Self::TooFew;
        }
        let is_more = ratio.min > 1.0 && ratio.median > 1.0 + LEAST;
        let is_less = ratio.max < 1.0 && ratio.median < 1.0 - LEAST;
        match (is_more, is_less) {
            (false, false) => Self::NoDifference,
            (is_more, _) if is_more == more_is_better => Self::Better,
            _ => Self::Worse,
        }
    }

    /// In a word or two.
    pub fn text(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifference => "no difference",
            Self::TooFew => "too few repetitions",
        }
    }
}

/// The ratios of an engine's turns to the first one's, of the same repetitions.
pub fn ratio(quantity: Quantity, turns: &[Turn], engine: &str, first: &str) -> Option<Ratio> {
    let value = |engine: &str, repeat| {
        turns.iter().find(|t| t.engine == engine && t.repeat == repeat).map(|turn| quantity.value_in(turn))
    };
    let of = turns.iter().filter(|turn| turn.engine == engine);
    let ratios: Vec<f64> = of
        .filter_map(|turn| Some(quantity.value_in(turn) / value(first, turn.repeat)?))
        .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        .collect();
    let ratio = Middle::new(&ratios);
    let verdict = Verdict::judge(&ratio, quantity.more_is_better());
    (!ratios.is_empty()).then_some(Ratio { quantity, ratio, verdict })
}

impl Standings {
    /// Adds up turns.
    pub fn new(field: &[Entrant], turns: Vec<Turn>) -> Self {
        let first = field.iter().map(Entrant::name).find(|name| turns.iter().any(|t| t.engine == *name));
        let first = first.unwrap_or_default().to_owned();
        let entries = field.iter().map(|entrant| entry(entrant, &turns, &first)).collect();
        Self { entries, turns }
    }

    /// The engine that the others are compared with.
    pub fn first(&self) -> Option<&Standing> {
        self.entries.iter().find(|entry| !entry.middles.is_empty())
    }

    /// Turns of an engine.
    pub fn turns_of<'a>(&'a self, engine: &'a str) -> impl Iterator<Item = &'a Turn> {
        self.turns.iter().filter(move |turn| turn.engine == engine)
    }

    /// The median over an engine's repetitions of a query's mean time, warm or cold; none where
    /// one of them has no answer.
    pub fn query_s(&self, engine: &str, number: u32, is_cold: bool) -> Option<f64> {
        let reports =
            |turn: &'_ Turn| if is_cold { turn.cold_queries.clone() } else { turn.warm_queries.clone() };
        let of = |turn: &Turn| reports(turn).into_iter().find(|report| report.query == number);
        let reports: Vec<QueryReport> = self.turns_of(engine).filter_map(of).collect();
        let failed = reports.iter().any(|report| report.failed > 0);
        let times: Vec<f64> = reports.iter().map(|report| report.aqet).collect();
        median(&times).filter(|_| !failed)
    }

    /// Numbers of all queries that were asked.
    pub fn query_numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> =
            self.turns.iter().flat_map(|turn| &turn.warm_queries).map(|report| report.query).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Writes answers that differ from the first engine's below `folder`, those of both.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn show_answers(&mut self, folder: &Path) -> anyhow::Result<()> {
        let first = self.first().map(|entry| entry.engine.clone()).unwrap_or_default();
        let kept = |engine: &str| self.turns.iter().find(|turn| turn.engine == engine)?.kept.clone();
        for entry in &mut self.entries {
            let (Some(verification), Some(here), Some(there)) =
                (&mut entry.verification, kept(&entry.engine), kept(&first))
            else {
                continue;
            };
            verification.show_answers(folder, &format!("{}-", entry.engine), &here, &there)?;
        }
        Ok(())
    }

    /// Puts query texts in place of their hashes in differences.
    pub fn tell_texts(&mut self, questions: &Questions) {
        for verification in self.entries.iter_mut().filter_map(|entry| entry.verification.as_mut()) {
            verification.tell_texts(questions.after(0));
        }
    }

    /// Numbers of queries that an engine answered otherwise than is known to be right.
    pub fn wrong(&self, questions: &Questions, engine: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> =
            self.turns_of(engine).flat_map(|turn| questions.wrong(&turn.answers)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// Reasons to doubt it; `items` is the number of triples or rows that had to be loaded. Other
    /// answers to DESCRIBE are none.
    pub fn doubts(&self, questions: &Questions, items: u64) -> Vec<String> {
        let mut doubts = Vec::new();
        for entry in &self.entries {
            let title = &entry.title;
            if let Some(why) = &entry.failed {
                doubts.push(format!("{title} failed: {}", why.lines().next().unwrap_or_default()));
            }
            if let Some(counted) = entry.loaded.map(|l| l.items).filter(|counted| *counted != items) {
                doubts.push(format!("{title} holds {counted} {} of {items}", questions.items()));
            }
            for wrong in self.wrong(questions, &entry.engine) {
                doubts.push(format!("Q{wrong} of {title} has another answer than the known one"));
            }
            let failed: usize = self.turns_of(&entry.engine).map(|turn| turn.failed).sum();
            if failed > 0 {
                doubts.push(format!("{failed} queries of {title} have no answer"));
            }
            let verification = entry.verification.clone().map(|mut verification| {
                verification.differences.retain(|difference| !questions.is_free(difference.query));
                verification
            });
            if let Some(v) = verification.filter(|v| !v.differences.is_empty() || v.compared == 0) {
                doubts.push(format!(
                    "{} of {} answers of {title} differ from those of {} ({})",
                    v.differences.len(),
                    v.compared,
                    v.with,
                    v.by_query()
                ));
            }
            let not_cold = self.turns_of(&entry.engine).find_map(|turn| turn.not_cold.clone());
            if let Some(why) = not_cold {
                doubts.push(format!("the starts of {title} are not proven cold: {why}"));
            }
        }
        doubts
    }
}

fn entry(entrant: &Entrant, turns: &[Turn], first: &str) -> Standing {
    let name = entrant.name();
    let own: Vec<&Turn> = turns.iter().filter(|turn| turn.engine == name).collect();
    let middle = |quantity: Quantity| {
        (quantity, Middle::new(&own.iter().map(|turn| quantity.value_in(turn)).collect::<Vec<_>>()))
    };
    let middles = if own.is_empty() { Vec::new() } else { Quantity::ALL.map(middle).to_vec() };
    let is_first = name == first;
    let ratios = Quantity::ALL.iter().filter_map(|quantity| ratio(*quantity, turns, name, first));
    let others = turns.iter().find(|turn| turn.engine == first);
    let verification = own.first().zip(others).filter(|_| !is_first);
    Standing {
        engine: name.into(),
        title: entrant.title().into(),
        version: entrant.version.clone(),
        notes: entrant.engine.adapter().notes.clone(),
        loaded: entrant.loaded,
        failed: entrant.failed.clone(),
        middles,
        ratios: if is_first { Vec::new() } else { ratios.collect() },
        verification: verification
            .map(|(own, other)| Verification::new(&other.title, &own.answers, &other.answers)),
    }
}

impl Standing {
    /// One of its quantities.
    pub fn middle(&self, quantity: Quantity) -> Option<Middle> {
        self.middles.iter().find(|(of, _)| *of == quantity).map(|(_, middle)| *middle)
    }

    /// One of its ratios.
    pub fn ratio(&self, quantity: Quantity) -> Option<Ratio> {
        self.ratios.iter().find(|ratio| ratio.quantity == quantity).copied()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::compare) fn turn(engine: &str, repeat: u32, warm: f64, first_answer_s: f64) -> Turn {
        Turn {
            engine: engine.into(),
            title: engine.to_uppercase(),
            repeat,
            cold_files: None,
            not_cold: None,
            ready_s: 0.1,
            first_answer_s,
            cold_s: 3.0,
            cold_mixes: 2,
            cold_qmph: warm / 2.0,
            warm_qmph: warm,
            warm_mixes: 10,
            warm_s: 4.0,
            failed: 0,
            failure: None,
            memory_peak_bytes: None,
            stop_s: 0.1,
            cold_queries: Vec::new(),
            warm_queries: Vec::new(),
            cold_course: vec![1.0, 2.0],
            answers: Vec::new(),
            kept: None,
        }
    }

    #[test]
    fn ratios_are_of_the_same_repetition() {
        // The machine was twice as fast in the second repetition.
        let turns = [
            turn("a", 1, 100.0, 1.0),
            turn("b", 1, 200.0, 4.0),
            turn("b", 2, 400.0, 2.0),
            turn("a", 2, 200.0, 0.5),
            turn("a", 3, 100.0, 1.0),
            turn("b", 3, 220.0, 4.0),
            turn("b", 4, 900.0, 4.0),
        ];
        let warm = ratio(Quantity::WarmQmph, &turns, "b", "a").unwrap();
        assert_eq!(warm.ratio, Middle { n: 3, median: 2.0, min: 2.0, max: 2.2 });
        assert_eq!(warm.verdict, Verdict::Better);
        let first = ratio(Quantity::FirstAnswerS, &turns, "b", "a").unwrap();
        assert_eq!((first.ratio.median, first.verdict), (4.0, Verdict::Worse));
        assert!(ratio(Quantity::WarmQmph, &turns, "c", "a").is_none());
    }

    #[test]
    fn verdicts_need_three_repetitions_that_agree() {
        let verdict = |ratios: &[f64], more| Verdict::judge(&Middle::new(ratios), more);
        assert_eq!(verdict(&[5.0, 5.0], true), Verdict::TooFew);
        assert_eq!(verdict(&[1.2, 1.1, 1.3], true), Verdict::Better);
        assert_eq!(verdict(&[1.2, 1.1, 1.3], false), Verdict::Worse);
        assert_eq!(verdict(&[0.8, 0.9, 0.7], false), Verdict::Better);
        assert_eq!(verdict(&[1.2, 0.9, 1.3], true), Verdict::NoDifference);
        assert_eq!(verdict(&[1.02, 1.01, 1.03], true), Verdict::NoDifference);
    }
}
