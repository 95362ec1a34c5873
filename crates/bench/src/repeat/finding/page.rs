//! The findings as the first lines and the first table of a page, and as a table of the book.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use snowmelt_lab::report::{Column, Figure, Table};

use super::catalogue::{self, Question};
use super::circumstance::percent;
use super::{Agreement, Finding};

/// Columns of both tables.
pub const COLUMNS: [&str; 6] = ["finding", "question", "verdict", "published", "here", "why"];

fn count(findings: &[Finding], verdict: Agreement) -> usize {
    findings.iter().filter(|finding| finding.verdict == verdict).count()
}

/// The findings as the first lines of a page: how many of each verdict, and which came out in
/// another way.
pub fn summary(findings: &[Finding]) -> Vec<String> {
    let counts = Agreement::ALL.map(|verdict| format!("{} {}", count(findings, verdict), verdict.words()));
    let mut lines = vec![format!("Of {} findings: {}.", findings.len(), counts.join(", "))];
    for verdict in [Agreement::Otherwise, Agreement::Weaker] {
        lines.extend(findings.iter().filter(|finding| finding.verdict == verdict).map(|finding| {
            let word = match verdict {
                Agreement::Weaker => "Weaker",
                _ => "Otherwise",
            };
            format!("{word}: {} {}; published: {}.", finding.question, finding.here, finding.published)
        }));
    }
    lines
}

fn row(finding: &Finding) -> [String; 6] {
    let source = match finding.source.as_str() {
        "" => String::new(),
        source => format!(" (\"{source}\")"),
    };
    // Without a comparison there is no tolerance to be argued.
    let why = match finding.verdict {
        Agreement::AsPublished | Agreement::Weaker | Agreement::Otherwise => {
            format!("{}. Compared: {}.", finding.reason, finding.tolerance)
        }
        _ => finding.reason.clone(),
    };
    [
        finding.id.clone(),
        finding.question.clone(),
        finding.verdict.words().to_owned(),
        finding.published.clone() + &source,
        finding.here.clone(),
        why,
    ]
}

/// All of them as a table.
pub fn table(findings: &[Finding]) -> Figure {
    let column = |name: &str| match name {
        "verdict" => Column::verdicts(name),
        name => Column::text(name),
    };
    Figure::Table(Table {
        title: "Findings".into(),
        columns: COLUMNS.map(column).to_vec(),
        rows: findings.iter().map(|finding| row(finding).to_vec()).collect(),
        ..Table::default()
    })
}

/// The findings of runs as tables of the book, in Markdown.
///
/// # Errors
/// A folder is no run of `repeat`.
pub fn book<P: AsRef<Path>>(runs: &[P]) -> Result<String> {
    let mut text = String::new();
    for run in runs {
        let run = run.as_ref();
        let read = |name: &str| {
            let path = run.join(name);
            std::fs::read_to_string(&path)
                .with_context(|| format!("{} is no run of repeat: cannot read {name}", run.display()))
        };
        let lines = read("findings.jsonl")?;
        let findings: Result<Vec<Finding>, _> = lines.lines().map(serde_json::from_str).collect();
        let findings = findings.with_context(|| {
            format!("{}: the findings are of another version: repeat the experiment", run.display())
        })?;
        let settings: Value = serde_json::from_str(&read("settings.json")?)?;
        let Some(experiment) = settings["settings"]["experiment"].as_str() else {
            bail!("{} is a run of {}, not of repeat", run.display(), settings["kind"]);
        };
        let questions = catalogue::ALL.iter().find(|(name, _)| *name == experiment);
        let are_these = |questions: &[Question]| {
            questions.iter().map(|of| of.id).eq(findings.iter().map(|of| of.id.as_str()))
        };
        if !questions.is_some_and(|(_, questions)| are_these(questions)) {
            bail!("{}: its questions are of another version: repeat {experiment}", run.display());
        }
        let form = if settings["settings"]["quick"] == true { "quick form" } else { "whole" };
        let began = settings["began"].as_str().unwrap_or_default();
        let busiest = findings.iter().flat_map(|finding| &finding.rests_on).map(|of| of.others);
        let busiest = busiest.fold(0.0, f64::max);
        writeln!(
            text,
            "### {}, {form}, {}\n\nOther programs used at most {} of the processors during a step.\n",
            experiment.to_uppercase(),
            began.split('T').next().unwrap_or_default(),
            percent(busiest)
        )?;
        writeln!(text, "{}\n", wrapped(&summary(&findings)[0]))?;
        text += &markdown(&findings);
        text.push('\n');
    }
    Ok(text.trim_end().to_owned() + "\n")
}

/// Prose of the book has lines of so many columns.
const PROSE_COLUMNS: usize = 100;

fn wrapped(prose: &str) -> String {
    let mut lines = vec![String::new()];
    for word in prose.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.len() + 1 + word.len() > PROSE_COLUMNS {
            lines.push(word.to_owned());
        } else {
            *line += if line.is_empty() { "" } else { " " };
            *line += word;
        }
    }
    lines.join("\n")
}

fn markdown(findings: &[Finding]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&COLUMNS.map(str::to_owned)) + &line(&COLUMNS.map(|_| "---".to_owned()));
    for finding in findings {
        let cells = row(finding).map(|cell| cell.replace('|', "\\|").replace('\n', " "));
        text += &line(&cells);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::answers::{Answers, Measure};
    use super::super::circumstance::{Basis, Circumstance};
    use super::*;

    fn findings() -> Vec<Finding> {
        let mut answers = Answers::to(catalogue::E4);
        answers.figure("e4-buffered-8k", Measure::own(2.0, "2.00", Basis::OwnCounts));
        answers.figure("e4-buffered-8k-512", Measure::own(2.0, "2.00", Basis::OwnCounts));
        let busy = Circumstance { step: "reads".into(), others: 0.6, ..Circumstance::default() };
        answers.figure("e4-speed", Measure::timed(1.6, "4500 and 2800", &[&busy]));
        answers.finish()
    }

    #[test]
    fn the_first_line_counts_each_verdict() {
        let lines = summary(&findings());
        assert_eq!(
            lines[0],
            "Of 9 findings: 1 as published, 1 weaker, 0 otherwise, 0 not published, 1 not comparable, \
             6 not measured."
        );
        assert!(lines[1].starts_with("Weaker: Device reads for each buffered read"), "{}", lines[1]);
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn the_table_has_words_for_verdicts_and_why() {
        let Figure::Table(table) = table(&findings()) else { panic!("a table") };
        assert!(table.columns[2].marked, "verdicts are coloured");
        let of = |id: &str| table.rows.iter().find(|row| row[0] == id).unwrap().clone();
        assert_eq!(of("e4-buffered-8k")[2], "as published");
        assert!(of("e4-speed")[5].contains("60 %"), "{}", of("e4-speed")[5]);
        assert!(of("e4-buffered-8k-512")[5].contains("within 1.1 times: reads of half a minute"));
    }

    #[test]
    fn the_table_of_the_book_is_written_from_a_run() {
        let dir = tempfile::tempdir().unwrap();
        let lines: Vec<String> =
            findings().iter().map(|finding| serde_json::to_string(finding).unwrap()).collect();
        std::fs::write(dir.path().join("findings.jsonl"), lines.join("\n")).unwrap();
        let error = book(&[dir.path()]).unwrap_err().to_string();
        assert!(error.contains("settings.json"), "{error}");
        let settings = r#"{"kind": "e4", "began": "2026-11-27T20:00:00Z", "settings": {"experiment": "e4", "quick": true}}"#;
        std::fs::write(dir.path().join("settings.json"), settings).unwrap();
        let text = book(&[dir.path()]).unwrap();
        assert!(text.starts_with("### E4, quick form, 2026-11-27\n"), "{text}");
        assert!(text.contains("at most 60 % of the processors"), "{text}");
        assert!(
            text.contains("\n| finding | question | verdict | published | here | why |\n| --- |"),
            "{text}"
        );
        assert!(text.contains("| e4-buffered-8k | Device reads"), "{text}");
        let prose = text.lines().filter(|line| !line.starts_with('|'));
        assert!(prose.clone().all(|line| line.len() <= PROSE_COLUMNS), "{text}");
        assert!(text.contains("1 not comparable, 6 not\nmeasured.\n"), "{text}");
    }

    /// The page of the book has all findings, with the published figures of this program.
    #[test]
    fn the_book_has_the_row_of_each_question() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/measurements/2026-11-25-repeat.md");
        let text = std::fs::read_to_string(&path).unwrap();
        let head = format!("| {} |", COLUMNS.join(" | "));
        for (experiment, questions) in catalogue::ALL {
            let begin = text.find(&format!("### {},", experiment.to_uppercase())).expect(experiment);
            let chapter = &text[begin..];
            let table = &chapter[chapter.find(&head).expect(experiment)..];
            let rows: Vec<Vec<&str>> = table
                .lines()
                .skip(2)
                .take_while(|line| line.starts_with('|'))
                .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
                .collect();
            let ids: Vec<&str> = rows.iter().map(|row| row[0]).collect();
            assert_eq!(ids, questions.iter().map(|of| of.id).collect::<Vec<_>>(), "{experiment}");
            for (row, question) in rows.iter().zip(questions) {
                assert_eq!(row[1], question.asks, "{}", question.id);
                assert!(row[3].starts_with(question.published), "{}: {}", question.id, row[3]);
                assert!(Agreement::ALL.iter().any(|verdict| verdict.words() == row[2]), "{}", row[2]);
            }
        }
    }
}
