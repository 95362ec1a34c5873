//! The answers behind a difference: both as they came, in files of the run folder, and the first
//! row that only one of them has.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use snowmelt_lab::report::{Column, Figure, Table};

use super::{Difference, Verification};
use crate::content::row_texts;
use snowmelt_workload::kept::KeptAnswers;

/// Differences whose answers are written.
const SHOWN: usize = 100;
/// Characters of a row in tables.
const MOST_CHARACTERS: usize = 400;
/// Folder of the answers in that of the run.
const FOLDER: &str = "differences";

/// The answers of both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShownAnswers {
    /// Rows that only this run has.
    pub only_here: usize,
    /// Rows that only the other one has.
    pub only_there: usize,
    /// The first of those of this run, in the order of their texts.
    pub first_here: Option<String>,
    /// The first of those of the other one.
    pub first_there: Option<String>,
    /// The answers, as they came: paths within the run folder.
    pub files: Vec<String>,
    /// Why the rows are not compared.
    pub why_not: Option<String>,
}

impl Verification {
    /// Writes the differing answers of both sides below `folder`, as far as they were kept, and
    /// finds the first rows that differ. `name` begins the names of the files. Call it before the
    /// texts are told: answers are known by the texts' hashes.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn show_answers(
        &mut self,
        folder: &Path,
        name: &str,
        here: &KeptAnswers,
        there: &KeptAnswers,
    ) -> Result<()> {
        for difference in self.differences.iter_mut().take(SHOWN) {
            let text = u64::from_str_radix(&difference.text, 16).unwrap_or(0);
            let sides = [("here", here.get(text)), ("there", there.get(text))];
            let mut files = Vec::new();
            for (side, answer) in &sides {
                let Some(answer) = answer else { continue };
                fs::create_dir_all(folder.join(FOLDER)).context("cannot make a folder for the answers")?;
                let Difference { query, mix, text, .. } = &difference;
                let file = format!("{FOLDER}/{name}Q{query}-mix{mix}-{text}.{side}.{}", ending(answer));
                let path = folder.join(&file);
                fs::write(&path, answer).with_context(|| format!("cannot write {}", path.display()))?;
                files.push(file);
            }
            let shown = match sides {
                [(_, Some(here)), (_, Some(there))] => ShownAnswers::compare(&here, &there),
                [(_, here), _] => {
                    let side = if here.is_some() { &self.with } else { "this run" };
                    ShownAnswers { why_not: Some(not_kept(side)), ..ShownAnswers::default() }
                }
            };
            difference.shown = Some(ShownAnswers { files, ..shown });
        }
        Ok(())
    }

    /// The first differences, a line each.
    pub fn difference_lines(&self) -> Vec<String> {
        let line = |difference: &Difference| {
            let ShownAnswers { only_here, only_there, first_here, first_there, why_not, .. } =
                difference.shown.as_ref()?;
            let row = |row: &Option<String>| row.clone().unwrap_or("none".into());
            Some(match why_not {
                Some(why) => format!("Q{} of mix {}: {why}", difference.query, difference.mix),
                None => format!(
                    "Q{} of mix {}: {only_here} rows only here, the first: {}; {only_there} only there: {}",
                    difference.query,
                    difference.mix,
                    row(first_here),
                    row(first_there)
                ),
            })
        };
        self.differences.iter().take(3).filter_map(line).collect()
    }
}

/// The differences as a table of a page; `here` is the side that is compared with the other one.
pub fn differences_table(here: &str, verification: &Verification) -> Figure {
    let mut columns = vec![Column::text("query")];
    columns.extend(["mix", "rows here", "rows there"].map(Column::number));
    columns.extend(
        ["only here", "first of them", "only there", "first of them", "files", "text"].map(Column::text),
    );
    let row = |d: &Difference| {
        let shown = d.shown.clone().unwrap_or_default();
        let first = |row: Option<String>| row.unwrap_or_default();
        let count = |count: usize| if shown.why_not.is_some() { "?".into() } else { count.to_string() };
        vec![
            format!("Q{}", d.query),
            d.mix.to_string(),
            d.rows.to_string(),
            d.other_rows.to_string(),
            count(shown.only_here),
            shown.why_not.clone().unwrap_or(first(shown.first_here.clone())),
            count(shown.only_there),
            first(shown.first_there.clone()),
            shown.files.join(" "),
            d.text.clone(),
        ]
    };
    Figure::Table(Table {
        title: format!("Different answers: {here}, and {}", verification.with),
        note: "Rows in the order of their texts. The answers as they came are in the run folder.".into(),
        columns,
        rows: verification.differences.iter().take(SHOWN).map(row).collect(),
    })
}

fn not_kept(side: &str) -> String {
    format!("the answer of {side} was not kept: give a larger --keep-answers when it is measured")
}

/// The ending of a file for an answer.
fn ending(answer: &[u8]) -> &'static str {
    if answer.trim_ascii_start().starts_with(b"<") { "xml" } else { "txt" }
}

impl ShownAnswers {
    fn compare(here: &[u8], there: &[u8]) -> Self {
        let (ours, theirs) = match (row_texts(here), row_texts(there)) {
            (Ok(ours), Ok(theirs)) => (ours, theirs),
            (Err(why), _) | (_, Err(why)) => {
                return Self { why_not: Some(format!("an answer cannot be read: {why}")), ..Self::default() };
            }
        };
        let (here, there) = (without(&ours, &theirs), without(&theirs, &ours));
        let first = |rows: &[&str]| rows.iter().min().map(|row| cut(row));
        Self {
            only_here: here.len(),
            only_there: there.len(),
            first_here: first(&here),
            first_there: first(&there),
            ..Self::default()
        }
    }
}

/// The rows that others do not have, or not so often.
fn without<'a>(rows: &'a [(u64, String)], others: &[(u64, String)]) -> Vec<&'a str> {
    let mut left: HashMap<u64, usize> = HashMap::new();
    others.iter().for_each(|(key, _)| *left.entry(*key).or_default() += 1);
    let is_alone = |(key, text): &'a (u64, String)| match left.get_mut(key).filter(|left| **left > 0) {
        Some(count) => {
            *count -= 1;
            None
        }
        None => Some(text.as_str()),
    };
    rows.iter().filter_map(is_alone).collect()
}

fn cut(row: &str) -> String {
    match row.char_indices().nth(MOST_CHARACTERS) {
        Some((at, _)) => format!("{}…", &row[..at]),
        None => row.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::answers;
    use snowmelt_workload::drive::Record;

    fn select(rows: &[&str]) -> String {
        let row =
            |row: &&str| format!("<result><binding name=\"a\"><literal>{row}</literal></binding></result>");
        let rows: String = rows.iter().map(row).collect();
        format!(
            "<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head><variable name=\"a\"/></head>\
             <results>{rows}</results></sparql>"
        )
    }

    fn differing(digest: u64) -> Vec<super::super::AnswerLine> {
        answers(&[Record { number: 5, mix: 3, text: 77, rows: 2, digest, ..Record::default() }])
    }

    #[test]
    fn both_answers_and_their_first_differing_rows_are_shown() {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (KeptAnswers::new(1 << 20), KeptAnswers::new(1 << 20));
        here.offer(77, (2, 1), select(&["same", "x", "b", "b"]).as_bytes());
        there.offer(77, (2, 2), select(&["b", "same", "y"]).as_bytes());
        let mut outcome = Verification::new("there", &differing(1), &differing(2));
        outcome.show_answers(dir.path(), "", &here, &there).unwrap();
        let shown = outcome.differences[0].shown.clone().unwrap();
        assert_eq!((shown.only_here, shown.only_there), (2, 1));
        assert_eq!(shown.first_here.as_deref(), Some("?a = \"b\""), "it has one b more");
        assert_eq!(shown.first_there.as_deref(), Some("?a = \"y\""));
        assert_eq!(shown.files.len(), 2);
        assert!(shown.files[0].starts_with("differences/Q5-mix3-") && shown.files[0].ends_with(".here.xml"));
        let written = fs::read_to_string(dir.path().join(&shown.files[1])).unwrap();
        assert!(written.contains(">y<"), "{written}");
        let lines = outcome.difference_lines();
        assert!(
            lines[0].contains("Q5 of mix 3: 2 rows only here, the first: ?a = \"b\"; 1 only there"),
            "{lines:?}"
        );
    }

    #[test]
    fn an_answer_that_was_not_kept_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let (here, none) = (KeptAnswers::new(1 << 20), KeptAnswers::new(0));
        here.offer(77, (2, 1), select(&["x"]).as_bytes());
        none.offer(77, (2, 2), select(&["y"]).as_bytes());
        let mut outcome = Verification::new("run-7", &differing(1), &differing(2));
        outcome.show_answers(dir.path(), "", &here, &none).unwrap();
        let shown = outcome.differences[0].shown.clone().unwrap();
        assert_eq!(shown.files.len(), 1);
        assert!(shown.why_not.unwrap().contains("run-7") && shown.first_here.is_none());
    }

    #[test]
    fn rows_of_tables_are_compared_as_their_numbers_round() {
        let shown = ShownAnswers::compare(b"a|1.500\nb|2\n", b"b|2\na|1.5\nc|3\n");
        assert_eq!((shown.only_here, shown.only_there, shown.first_there.as_deref()), (0, 1, Some("c|3")));
    }
}
