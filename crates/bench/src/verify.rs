//! Answers compared, query text by query text: those of two endpoints, or of a run and one that
//! was stored.
//!
//! Rows and digests are compared ([`terms`](crate::content::terms)). A text that has two answers
//! within one run is unstable and not compared: the engine may choose among rows of equal order, or
//! the data changed meanwhile.
//!
//! `shown`: the differing answers themselves.

mod shown;

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

pub use shown::{ShownAnswers, differences_table};
use snowmelt_workload::drive::{Record, Stream, text_hash};

/// The answer to a query text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerLine {
    /// A hash of the text, in hexadecimal.
    pub text: String,
    /// Number of the query in its use case.
    pub query: u32,
    /// The first mix that asked.
    pub mix: u64,
    /// Solutions or distinct triples.
    pub rows: u64,
    /// Digest of its terms, in hexadecimal.
    pub digest: String,
    /// It was not always answered in this way.
    pub is_unstable: bool,
}

/// A text with two answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Number of the query in its use case.
    pub query: u32,
    /// The mix that asked.
    pub mix: u64,
    /// Rows of this run.
    pub rows: u64,
    /// Rows of the other one.
    pub other_rows: u64,
    /// Digest of this run.
    pub digest: String,
    /// Digest of the other one.
    pub other_digest: String,
    /// The text, once it is known.
    pub text: String,
    /// The answers themselves.
    pub shown: Option<ShownAnswers>,
}

/// Outcome of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The other endpoint or run.
    pub with: String,
    /// Texts that both answered, each always in one way.
    pub compared: usize,
    /// Texts that were answered in two ways within a run.
    pub unstable: usize,
    /// Texts that only one of both answered.
    pub alone: usize,
    /// Texts whose answers differ.
    pub differences: Vec<Difference>,
}

/// The answers of a run, one for each text, in the order of the mixes.
pub fn answers(records: &[Record]) -> Vec<AnswerLine> {
    let mut answers: HashMap<u64, AnswerLine> = HashMap::new();
    let mut answered: Vec<_> = records.iter().filter(|r| r.failed.is_none() && !r.is_update).collect();
    answered.sort_by_key(|record| (record.mix, record.number, record.text));
    for record in answered {
        let digest = format!("{:016x}", record.digest);
        let first = answers.entry(record.text).or_insert_with(|| AnswerLine {
            text: format!("{:016x}", record.text),
            query: record.number,
            mix: record.mix,
            rows: record.rows,
            digest: digest.clone(),
            is_unstable: false,
        });
        first.is_unstable |= (first.rows, &first.digest) != (record.rows, &digest);
    }
    let mut answers: Vec<_> = answers.into_values().collect();
    answers.sort_by(|a, b| (a.mix, a.query, &a.text).cmp(&(b.mix, b.query, &b.text)));
    answers
}

/// Reads stored answers, a JSON object in each line.
///
/// # Errors
/// A line is none of those.
pub fn read_answers(text: &str) -> Result<Vec<AnswerLine>> {
    let parse = |(i, line)| serde_json::from_str(line).with_context(|| format!("line {}", i + 1));
    text.lines().enumerate().map(parse).collect()
}

impl Verification {
    /// Compares the answers of a run with others.
    pub fn new(with: &str, here: &[AnswerLine], there: &[AnswerLine]) -> Self {
        let mut others: BTreeMap<&str, &AnswerLine> = there.iter().map(|a| (a.text.as_str(), a)).collect();
        let mut outcome = Self { with: with.to_owned(), ..Self::default() };
        for answer in here {
            match others.remove(answer.text.as_str()) {
                None => outcome.alone += 1,
                Some(other) if answer.is_unstable || other.is_unstable => outcome.unstable += 1,
                Some(other) => outcome.compare(answer, other),
            }
        }
        outcome.alone += others.len();
        outcome
    }

    fn compare(&mut self, here: &AnswerLine, there: &AnswerLine) {
        self.compared += 1;
        if (here.rows, &here.digest) != (there.rows, &there.digest) {
            self.differences.push(Difference {
                query: here.query,
                mix: here.mix,
                rows: here.rows,
                other_rows: there.rows,
                digest: here.digest.clone(),
                other_digest: there.digest.clone(),
                text: here.text.clone(),
                shown: None,
            });
        }
    }

    /// Puts the texts in place of their hashes, from the stream that was measured.
    pub fn tell_texts(&mut self, mut stream: Stream) {
        let Some(last) = self.differences.iter().map(|d| d.mix).max() else { return };
        let mut texts = HashMap::new();
        loop {
            let mix = stream.next_mix();
            let is_last = mix.number >= last;
            texts.extend(mix.queries.into_iter().map(|query| {
                let hash = format!("{:016x}", text_hash(&query.text));
                (hash, query.text)
            }));
            if is_last {
                break;
            }
        }
        for difference in &mut self.differences {
            if let Some(text) = texts.get(&difference.text) {
                difference.text.clone_from(text);
            }
        }
    }

    /// How many texts of each query differ: `1 of Q2, 3 of Q5`; empty if none does.
    pub fn by_query(&self) -> String {
        let by_query =
            self.differences.iter().fold(BTreeMap::<u32, usize>::new(), |mut counts, difference| {
                *counts.entry(difference.query).or_default() += 1;
                counts
            });
        let named: Vec<_> = by_query.iter().map(|(query, count)| format!("{count} of Q{query}")).collect();
        named.join(", ")
    }

    /// The outcome in a line.
    pub fn line(&self) -> String {
        let Self { with, compared, unstable, alone, differences } = self;
        let named = self.by_query();
        let named = if named.is_empty() { String::new() } else { format!(" ({named})") };
        format!(
            "verified with {with}: {} of {compared} texts have the same answer, {} differ{named}; \
             {unstable} are unstable, {alone} were answered by one side only",
            compared - differences.len(),
            differences.len()
        )
    }

    /// A reason to doubt the run.
    pub fn doubt(&self) -> Option<String> {
        let is_sound = !self.has_failed() && self.alone == 0 && self.unstable == 0;
        (!is_sound).then(|| self.line())
    }

    /// Whether it found a difference, or nothing to compare: then nothing is verified.
    pub fn has_failed(&self) -> bool {
        !self.differences.is_empty() || self.compared == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use snowmelt_bsbm::{DEFAULT_SEED, UseCase, Workload};
    use snowmelt_workload::target::Failure;

    fn record(text: u64, rows: u64, digest: u64) -> Record {
        Record { number: 1, mix: 1, text, rows, digest, ..Record::default() }
    }

    #[test]
    fn texts_are_compared_by_rows_and_digest() {
        let here = answers(&[record(1, 1, 11), record(2, 1, 12), record(3, 1, 13), record(4, 1, 14)]);
        let there = answers(&[record(1, 1, 11), record(2, 2, 12), record(3, 1, 99), record(5, 1, 15)]);
        let outcome = Verification::new("there", &here, &there);
        assert_eq!((outcome.compared, outcome.alone, outcome.differences.len()), (3, 2, 2));
        assert!(outcome.line().contains("1 of 3 texts") && outcome.line().contains("2 of Q1"), "{outcome:?}");
        assert!(outcome.doubt().is_some());
        assert_eq!(Verification::new("itself", &here, &here).doubt(), None);
        let nothing = Verification::new("nothing", &here, &[]);
        assert!(nothing.doubt().is_some() && nothing.has_failed());
        assert!(!Verification::new("itself", &here, &here).has_failed());
    }

    #[test]
    fn unstable_and_failed_answers_are_not_compared() {
        let mut failed = record(7, 0, 0);
        failed.failed = Some(Failure::Timeout("late".into()));
        let here = answers(&[record(1, 1, 11), record(1, 1, 12), record(2, 1, 1), record(2, 1, 1), failed]);
        assert_eq!(here.iter().map(|a| a.is_unstable).collect::<Vec<_>>(), [true, false]);
        let outcome = Verification::new("there", &here, &answers(&[record(1, 1, 12), record(2, 1, 1)]));
        assert_eq!((outcome.compared, outcome.unstable, outcome.differences.len()), (1, 1, 0));
        assert!(outcome.doubt().is_some() && !outcome.has_failed(), "what is unstable is told");
    }

    #[test]
    fn stored_answers_come_back() {
        let stored = answers(&[record(1, 1, 11), record(2, 5, 12)]);
        let text: String = stored.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
        assert_eq!(read_answers(&text).unwrap(), stored);
        assert!(format!("{:#}", read_answers("{}\n").unwrap_err()).contains("line 1"));
    }

    #[test]
    fn differences_are_told_with_their_texts() {
        let mut workload = Workload::new(100, DEFAULT_SEED, UseCase::Explore).unwrap();
        let stream = Stream::Drawn(Box::new(workload.clone()));
        let query = workload.nth(2).unwrap().queries[3].clone();
        let of = |digest| {
            let record = Record { number: query.number, mix: 3, ..record(text_hash(&query.text), 1, digest) };
            answers(&[record])
        };
        let mut outcome = Verification::new("there", &of(1), &of(2));
        outcome.tell_texts(stream);
        assert_eq!(outcome.differences[0].text, query.text);
    }
}
