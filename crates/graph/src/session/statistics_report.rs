//! The statistics of a database, for people and for programs.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::database::GraphDatabase;
use crate::error::Result;
use crate::index::Index;
use crate::index::statistics::degrees::Degrees;
use crate::session::Session;
use crate::term::{TermId, TermRef};

/// Sets that are listed.
const SETS: usize = 1000;

/// Sets that are shown as text.
const SHOWN_SETS: usize = 20;

/// Statistics by which the optimiser estimates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatisticsReport {
    /// Quads.
    pub quads: u64,
    /// Quads added and removed since the degrees and the sets were counted; `None`: they never
    /// were.
    pub changed_since: Option<u64>,
    /// Predicates, those with the most rows first.
    pub predicates: Vec<PredicateReport>,
    /// Predicates that subjects have together, the sets of the most subjects first.
    pub sets: Vec<SetReport>,
    /// Subjects with other sets of predicates.
    pub other_subjects: u64,
}

/// A predicate. Rows and different values are those of now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredicateReport {
    /// Its IRI.
    pub predicate: String,
    /// Quads with it.
    pub rows: u64,
    /// Its subjects.
    pub subjects: EndReport,
    /// Its objects.
    pub objects: EndReport,
}

/// One end of a predicate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndReport {
    /// Different values; `None`: not counted.
    pub values: Option<u64>,
    /// Rows of a value, on average.
    pub mean: Option<f64>,
    /// The most rows of a value, when they were counted.
    pub most: Option<u64>,
    /// Values by their rows, when they were counted: with 1, 2 to 3, 4 to 7, and so on.
    pub histogram: Vec<u64>,
}

/// Subjects that have just these predicates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetReport {
    /// How many they are.
    pub subjects: u64,
    /// The predicates.
    pub predicates: Vec<String>,
}

impl GraphDatabase {
    /// The statistics, with the names of predicates; reads some pages for each predicate.
    ///
    /// # Errors
    /// Fails if the indexes or the dictionary cannot be read.
    pub fn statistics_report(self: &Arc<Self>) -> Result<StatisticsReport> {
        let mut session = self.session()?;
        let state = session.state().clone();
        let statistics = state.statistics();
        let mut predicates = Vec::new();
        for id in session.predicates()? {
            let rows = session.count(Index::Psog, &[id], None)?;
            let end = |index: Index, degrees: Option<&Degrees>| {
                let values = state.distinct_values(index, id);
                EndReport {
                    values,
                    mean: values.map(|values| rows as f64 / values.max(1) as f64),
                    most: degrees.map(|of| of.most),
                    histogram: degrees.map_or_else(Vec::new, |of| of.classes.clone()),
                }
            };
            predicates.push(PredicateReport {
                predicate: session.name_of(id)?,
                rows,
                subjects: end(Index::Psog, statistics.subjects().get(id.0)),
                objects: end(Index::Posg, statistics.objects().get(id.0)),
            });
        }
        predicates.sort_by(|a, b| b.rows.cmp(&a.rows).then_with(|| a.predicate.cmp(&b.predicate)));
        let mut listed: Vec<(&[u64], u64)> = statistics.sets().iter().collect();
        listed.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let others: u64 = listed.iter().skip(SETS).map(|(_, subjects)| subjects).sum();
        let mut sets = Vec::new();
        for (set, subjects) in listed.into_iter().take(SETS) {
            let names = set.iter().map(|id| session.name_of(TermId(*id))).collect::<Result<_>>()?;
            sets.push(SetReport { subjects, predicates: names });
        }
        Ok(StatisticsReport {
            quads: state.quads(),
            changed_since: (!statistics.is_empty()).then(|| statistics.age()),
            predicates,
            sets,
            other_subjects: statistics.sets().rest().subjects + others,
        })
    }
}

impl Session {
    /// All predicates, each found by an index access.
    fn predicates(&mut self) -> Result<Vec<TermId>> {
        let mut ids = Vec::new();
        let mut from = Some(0);
        while let Some(begin) = from {
            let mut scan = self.scan(Index::Psog, &[], Some((begin, u64::MAX)));
            let mut row = snowmelt_store::Columns::new(Index::Psog.arity());
            if !scan.next(self, &mut row, 1)? || row.rows == 0 {
                break;
            }
            ids.push(TermId(row.cols[0][0]));
            from = row.cols[0][0].checked_add(1);
        }
        Ok(ids)
    }

    /// The IRI of an id; of one that the dictionary does not have, the id.
    fn name_of(&mut self, id: TermId) -> Result<String> {
        let mut name = format!("{id:?}");
        self.decode(&[id], |_, term| {
            if let TermRef::Iri(iri) = term {
                iri.clone_into(&mut name);
            }
        })?;
        Ok(name)
    }
}

impl fmt::Display for StatisticsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.changed_since {
            Some(changed) => {
                writeln!(f, "{} quads; {changed} added or removed since degrees were counted", self.quads)?;
            }
            None => writeln!(f, "{} quads; degrees were not counted", self.quads)?,
        }
        writeln!(
            f,
            "\n{:>12} {:>12} {:>9} {:>9} {:>12} {:>9} {:>9}  predicate",
            "rows", "subjects", "mean", "most", "objects", "mean", "most"
        )?;
        for PredicateReport { predicate, rows, subjects, objects } in &self.predicates {
            writeln!(f, "{rows:>12} {} {}  {predicate}", end(subjects), end(objects))?;
            for (name, of) in [("subjects", subjects), ("objects", objects)] {
                if of.histogram.len() > 1 {
                    writeln!(f, "{:>12} by rows: {}", name, by_rows(&of.histogram))?;
                }
            }
        }
        writeln!(f, "\n{:>12}  predicates that they have", "subjects")?;
        for SetReport { subjects, predicates } in self.sets.iter().take(SHOWN_SETS) {
            writeln!(f, "{subjects:>12}  {}", predicates.join(" "))?;
        }
        let others: u64 = self.sets.iter().skip(SHOWN_SETS).map(|set| set.subjects).sum();
        match (others + self.other_subjects, self.sets.len().saturating_sub(SHOWN_SETS)) {
            (0, _) => Ok(()),
            (others, 0) => writeln!(f, "{others:>12}  others"),
            (others, sets) => writeln!(f, "{others:>12}  others, in {sets} sets and more"),
        }
    }
}

fn end(of: &EndReport) -> String {
    let text = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let mean = of.mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.2}"));
    format!("{:>12} {:>9} {:>9}", text(of.values), mean, text(of.most))
}

/// `1: 20, 2-3: 7, …`
fn by_rows(histogram: &[u64]) -> String {
    let class = |(i, values): (usize, &u64)| {
        let (low, high) = (1_u64 << i.min(63), (1_u128 << (i + 1)) - 1);
        let range = if i == 0 { "1".to_owned() } else { format!("{low}-{high}") };
        format!("{range}: {values}")
    };
    let filled = histogram.iter().enumerate().filter(|(_, values)| **values > 0);
    filled.map(class).collect::<Vec<_>>().join(", ")
}
