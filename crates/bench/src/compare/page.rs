//! The page of a comparison.

use snowmelt_engines::Language;
use snowmelt_lab::report::{
    Axis, Bar, Bars, Column, Figure, HeatMap, Plot, Report, Scale, Section, Series, Table, Unit,
};

use crate::compare::ComparePlan;
use crate::compare::data::DataSet;
use crate::compare::field::{Skipped, skip_line};
use crate::compare::outcome::{Quantity, REPEATS, Ratio, Standing, Standings};
use crate::compare::workload::Questions;
use crate::verify::Verification;
use crate::verify::differences_table;

/// Everything the page is made from.
pub struct Page<'a> {
    /// Settings.
    pub plan: &'a ComparePlan,
    /// Queries.
    pub questions: &'a Questions,
    /// Data.
    pub data: &'a DataSet,
    /// Results.
    pub outcome: &'a Standings,
    /// Engines that took no part.
    pub skipped: &'a [Skipped],
}

impl Page<'_> {
    /// The page as data.
    pub fn report(&self) -> Report {
        let Page { plan, questions, data, outcome, .. } = self;
        let titles: Vec<_> = self.measured().map(|entry| entry.title.as_str()).collect();
        let mut report = Report::new(format!("{}: {}", questions.name, titles.join(", ")));
        report.summary.push(format!(
            "{} {}; {} of memory and {} processors for each engine; {} clients; {} repetitions, \
             the order of the engines rotated; {} cold mixes, {} of warm-up, {} measured.",
            data.items,
            questions.items(),
            Unit::Bytes.show(plan.memory as f64),
            plan.threads,
            plan.clients,
            plan.repeats,
            plan.cold_mixes,
            plan.warmup,
            plan.mixes
        ));
        report.summary.extend(self.findings());
        report.summary.extend(self.skipped.iter().map(skip_line));
        report.sections = vec![
            Section::new("Warm", vec![self.bars(Quantity::WarmQmph), self.ratios()]),
            self.cold(),
            Section::new("By query", vec![self.heat(), self.query_table(false), self.query_table(true)]),
            self.loads(),
            self.answers(),
            self.engines(),
        ];
        if outcome.entries.iter().all(|entry| entry.loaded.is_none()) {
            report.sections.retain(|section| section.title != "Load");
        }
        report
    }

    fn measured(&self) -> impl Iterator<Item = &Standing> {
        self.outcome.entries.iter().filter(|entry| !entry.middles.is_empty())
    }

    /// A sentence for each engine beside the first.
    fn findings(&self) -> Vec<String> {
        let Some(first) = self.outcome.first() else { return Vec::new() };
        let sentence = |entry: &Standing| {
            let part = |quantity: Quantity| {
                let Ratio { ratio, verdict, .. } = entry.ratio(quantity)?;
                let (least, most) = (number(ratio.min), number(ratio.max));
                let median = number(ratio.median);
                Some(format!("{median} × its {} ({least} to {most}, {})", quantity.text(), verdict.text()))
            };
            let parts: Vec<_> =
                [Quantity::WarmQmph, Quantity::FirstAnswerS].into_iter().filter_map(part).collect();
            (!parts.is_empty())
                .then(|| format!("{} against {}: {}.", entry.title, first.title, parts.join("; ")))
        };
        self.measured().filter_map(sentence).collect()
    }

    fn bars(&self, quantity: Quantity) -> Figure {
        let bar = |(group, entry): (usize, &Standing)| {
            let middle = entry.middle(quantity)?;
            let range = (middle.n > 1).then_some((middle.min, middle.max));
            Some(Bar { name: entry.title.clone(), value: middle.median, range, group })
        };
        let unit = if quantity == Quantity::FirstAnswerS { Unit::Seconds } else { Unit::Plain };
        let mut title = quantity.text().to_owned();
        title[..1].make_ascii_uppercase();
        Figure::Bars(Bars {
            title,
            note: format!(
                "Median of {} repetitions; the thin line is from the least to the most.",
                self.plan.repeats
            ),
            label: quantity.text().into(),
            unit,
            bars: self.measured().enumerate().filter_map(bar).collect(),
        })
    }

    fn ratios(&self) -> Figure {
        let first = self.outcome.first().map_or("the first", |entry| entry.title.as_str());
        let row = |entry: &Standing| {
            entry
                .ratios
                .iter()
                .map(|ratio| {
                    vec![
                        entry.title.clone(),
                        ratio.quantity.text().into(),
                        number(ratio.ratio.median),
                        number(ratio.ratio.min),
                        number(ratio.ratio.max),
                        ratio.ratio.n.to_string(),
                        ratio.verdict.text().into(),
                    ]
                })
                .collect::<Vec<_>>()
        };
        let columns = vec![
            Column::text("engine"),
            Column::text("quantity"),
            Column::number(format!("÷ {first}")),
            Column::number("least"),
            Column::number("most"),
            Column::number("n"),
            Column::text("verdict"),
        ];
        Figure::Table(Table {
            title: format!("Ratios to {first}"),
            note: format!(
                "Taken repetition by repetition. A verdict needs {REPEATS} repetitions, all on one side of 1, \
                 and a median more than 3 % from it."
            ),
            columns,
            rows: self.outcome.entries.iter().flat_map(row).collect(),
        })
    }

    fn cold(&self) -> Section {
        let series = |(colour, entry): (usize, &Standing)| {
            let mut turns: Vec<_> = self.outcome.turns_of(&entry.engine).collect();
            turns.sort_by(|a, b| a.cold_s.total_cmp(&b.cold_s));
            let course = &turns.get(turns.len() / 2)?.cold_course;
            let points = (1..).zip(course).map(|(mixes, s)| (*s, f64::from(mixes))).collect();
            Some(Series::new(&entry.title, points).coloured(colour))
        };
        let course = Plot {
            title: "Mixes answered after a cold start".into(),
            note: "Of the repetition with the middle time; time runs from the start command.".into(),
            x: Axis::new("time since the start command", Unit::Seconds).scaled(Scale::Log),
            y: Axis::new("mixes answered", Unit::Plain),
            series: self.measured().enumerate().filter_map(series).collect(),
        };
        let proofs = self.outcome.turns.iter().filter(|turn| turn.cold_files.is_some()).count();
        let text = format!(
            "Each engine was stopped, its files were written back and thrown out of the page cache, and the \
             kernel then counted 0 pages of them there (cachestat) in {proofs} of {} turns. Programs and \
             libraries stay cached.",
            self.outcome.turns.len()
        );
        let figures =
            vec![self.bars(Quantity::FirstAnswerS), Figure::Lines(course), self.bars(Quantity::ColdQmph)];
        Section::new("Cold", figures).with_text(text)
    }

    /// Time of each query, divided by the first engine's.
    fn heat(&self) -> Figure {
        let first = self.outcome.first().map_or("", |entry| entry.engine.as_str());
        let numbers = self.outcome.query_numbers();
        let cell = |entry: &Standing, number: u32| {
            let base = self.outcome.query_s(first, number, false)?;
            Some(self.outcome.query_s(&entry.engine, number, false)? / base)
        };
        let row = |entry: &Standing| numbers.iter().map(|n| cell(entry, *n)).collect();
        Figure::HeatMap(HeatMap {
            title: "Time of a warm query, as a multiple of the first engine's".into(),
            note: "Below 1 is faster. An empty cell had queries without an answer.".into(),
            x_label: "query".into(),
            x: numbers.iter().map(|n| self.questions.name_of(*n)).collect(),
            y_label: "engine".into(),
            y: self.measured().map(|entry| entry.title.clone()).collect(),
            cells: self.measured().map(row).collect(),
            unit: Unit::Plain,
            log: true,
        })
    }

    fn query_table(&self, is_cold: bool) -> Figure {
        let mut columns = vec![Column::text("query")];
        columns.extend(self.measured().map(|entry| Column::number(&entry.title)));
        let row = |number: &u32| {
            let cell = |entry: &Standing| {
                let time = self.outcome.query_s(&entry.engine, *number, is_cold);
                time.map_or("—".into(), |s| format!("{:.3}", s * 1e3))
            };
            let mut row = vec![self.questions.name_of(*number)];
            row.extend(self.measured().map(cell));
            row
        };
        let state = if is_cold { "after a cold start" } else { "warm" };
        Figure::Table(Table {
            title: format!("Mean time of a query, {state}, ms"),
            note: "Median of the repetitions; — had queries without an answer.".into(),
            columns,
            rows: self.outcome.query_numbers().iter().map(row).collect(),
        })
    }

    fn loads(&self) -> Section {
        let items = self.questions.items();
        let loaded: Vec<_> =
            self.outcome.entries.iter().filter_map(|entry| Some((entry, entry.loaded?))).collect();
        let bars =
            |title: &str, label: &str, unit, value: &dyn Fn(&crate::compare::field::Loaded) -> f64| {
                let bar = |(group, (entry, loaded)): (usize, &(&Standing, crate::compare::field::Loaded))| {
                    Bar { name: entry.title.clone(), value: value(loaded), range: None, group }
                };
                Figure::Bars(Bars {
                    title: title.into(),
                    note: "A single load: no verdict.".into(),
                    label: label.into(),
                    unit,
                    bars: loaded.iter().enumerate().map(bar).collect(),
                })
            };
        let figures = vec![
            bars("Time of the load", "seconds", Unit::Seconds, &|loaded| loaded.seconds),
            bars(&format!("Bytes on the disk for each of the {items}"), "bytes", Unit::Plain, &|loaded| {
                loaded.bytes as f64 / loaded.items.max(1) as f64
            }),
        ];
        let files = match self.questions.language() {
            Language::Sparql => {
                "The data set is one file of N-Triples; engines that load several files at once got the \
                 same lines in as many files as there are processors, cut beforehand."
            }
            Language::Sql => "The data set is a CSV file for each table, which engines read themselves.",
        };
        Section::new("Load", figures).with_text(format!(
            "{files} The time ends when the data is in the database, indexed, optimised and checkpointed \
             where the engine has that."
        ))
    }

    fn answers(&self) -> Section {
        let row = |entry: &Standing| {
            let Verification { compared, unstable, differences, .. } = entry.verification.as_ref()?;
            let failed: usize = self.outcome.turns_of(&entry.engine).map(|turn| turn.failed).sum();
            let mut row = vec![entry.title.clone()];
            let free = differences.iter().filter(|d| self.questions.is_free(d.query)).count();
            row.extend(
                [*compared, compared - differences.len(), differences.len(), free, *unstable, failed]
                    .map(|n| n.to_string()),
            );
            let line = entry.verification.as_ref().map(Verification::by_query).unwrap_or_default();
            row.push(line);
            Some(row)
        };
        let names = ["compared", "equal", "different", "of them DESCRIBE", "unstable", "no answer"];
        let mut columns = vec![Column::text("engine")];
        columns.extend(names.map(Column::number));
        columns.push(Column::text("different by query"));
        let first = self.outcome.first().map_or("the first engine", |entry| entry.title.as_str());
        let table = Table {
            title: format!("Answers compared with those of {first}"),
            note:
                "Query texts; their terms are compared, whatever the order of rows and names of blank nodes. \
                   Unstable: an engine answered in two ways, which LIMIT allows. The standard leaves the answer of \
                   DESCRIBE to the engine."
                    .into(),
            columns,
            rows: self.outcome.entries.iter().filter_map(row).collect(),
        };
        let mut section = Section::new("Answers", vec![Figure::Table(table)]);
        for entry in &self.outcome.entries {
            let differing = entry.verification.as_ref().filter(|v| !v.differences.is_empty());
            section.figures.extend(differing.map(|v| differences_table(&entry.title, v)));
        }
        if self.questions.known() > 0 {
            section = section.with_text(self.known_answers());
        }
        for entry in &self.outcome.entries {
            if let Some(why) = self.outcome.turns_of(&entry.engine).find_map(|turn| turn.failure.clone()) {
                section =
                    section.with_text(format!("{}, the first query without an answer: {why}", entry.title));
            }
        }
        section
    }

    /// How many answers are those known to be right.
    fn known_answers(&self) -> String {
        let known = self.questions.known();
        let right = |entry: &Standing| {
            let right = known - self.outcome.wrong(self.questions, &entry.engine).len();
            format!("{right} of {known} by {}", entry.title)
        };
        let engines: Vec<String> = self.measured().map(right).collect();
        format!("Answers known to be right: {}.", engines.join(", "))
    }

    fn engines(&self) -> Section {
        let row = |entry: &Standing| {
            let peak = self.outcome.turns_of(&entry.engine).filter_map(|turn| turn.memory_peak_bytes).max();
            vec![
                entry.title.clone(),
                entry.version.clone(),
                peak.map_or("?".into(), |bytes| Unit::Bytes.show(bytes as f64)),
                entry.notes.join("; "),
                entry.failed.clone().unwrap_or_default(),
            ]
        };
        let mut rows: Vec<_> = self.outcome.entries.iter().map(row).collect();
        rows.extend(self.skipped.iter().map(|skipped| {
            vec![skipped.engine.clone(), "skipped".into(), String::new(), skipped.why.clone(), String::new()]
        }));
        let table = Table {
            title: "The engines".into(),
            note: "Memory is the most that the first process of the server had resident, with files it maps."
                .into(),
            columns: vec![
                Column::text("engine"),
                Column::text("version"),
                Column::number("memory"),
                Column::text("notes"),
                Column::text("failed"),
            ],
            rows,
        };
        Section::new("Engines", vec![Figure::Table(table)])
    }
}

/// Three significant digits.
fn number(value: f64) -> String {
    let digits = 2 - value.abs().max(1e-9).log10().floor() as i32;
    format!("{value:.*}", digits.clamp(0, 6) as usize)
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{Middle, ratio, tests::turn};
    use super::*;

    #[test]
    fn three_digits_are_shown() {
        assert_eq!(
            [0.01234, 0.5, 1.0, 12.345, 1234.5].map(number),
            ["0.0123", "0.500", "1.00", "12.3", "1234"]
        );
    }

    fn entry(name: &str, turns: &[crate::compare::turn::Turn]) -> Standing {
        let own: Vec<_> = turns.iter().filter(|turn| turn.engine == name).collect();
        let middle = |q: Quantity| (q, Middle::new(&own.iter().map(|t| q.value_in(t)).collect::<Vec<_>>()));
        Standing {
            engine: name.into(),
            title: name.to_uppercase(),
            version: "1".into(),
            notes: vec!["a note".into()],
            loaded: Some(crate::compare::field::Loaded { seconds: 2.0, bytes: 1000, items: 100 }),
            failed: None,
            middles: Quantity::ALL.map(middle).to_vec(),
            ratios: if name == "a" {
                Vec::new()
            } else {
                Quantity::ALL.iter().filter_map(|q| ratio(*q, turns, name, "a")).collect()
            },
            verification: None,
        }
    }

    #[test]
    fn the_page_shows_the_figures_of_its_json() {
        let turns: Vec<_> =
            (1..=3).flat_map(|i| [turn("a", i, 100.0, 1.0), turn("b", i, 250.0, 4.0)]).collect();
        let outcome = Standings { entries: vec![entry("a", &turns), entry("b", &turns)], turns };
        let plan = ComparePlan {
            memory: 1 << 30,
            threads: 2,
            clients: 1,
            repeats: 3,
            cold_mixes: 2,
            warmup: 1,
            mixes: 10,
            most_seconds: 9,
            timeout_ms: 1000,
            seed: 1,
        };
        let questions = Questions::bsbm(100, 1).unwrap();
        let data = DataSet { file: "data.nt".into(), items: 100, bytes: 9 };
        let skipped = [Skipped { engine: "c".into(), why: "C is not installed; install it: get c".into() }];
        let report =
            Page { plan: &plan, questions: &questions, data: &data, outcome: &outcome, skipped: &skipped }
                .report();
        let json = serde_json::to_value(&outcome).unwrap();
        let warm = &json["entries"][1]["ratios"][0];
        assert_eq!(
            (warm["quantity"].as_str(), warm["ratio"]["median"].as_f64()),
            (Some("warm_qmph"), Some(2.5))
        );
        let html = report.html();
        assert!(
            html.contains("B against A: 2.50 × its warm mixes per hour (2.50 to 2.50, better)"),
            "{:?}",
            report.summary
        );
        assert!(html.contains("SKIPPED c: C is not installed; install it: get c"));
        let Figure::Bars(bars) = &report.sections[0].figures[0] else { panic!("bars come first") };
        let shown: Vec<_> = bars.bars.iter().map(|bar| (bar.name.as_str(), bar.value)).collect();
        let stored: Vec<_> = json["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| (e["title"].as_str().unwrap(), e["middles"][0][1]["median"].as_f64().unwrap()))
            .collect();
        assert_eq!(shown, stored);
    }
}
