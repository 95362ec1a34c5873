//! A published finding beside the figure that came out here, and the verdict on the two.
//!
//! 1. `catalogue`: the questions as rows of data: the published figure with its source, how ours
//!    is compared with it, and why by so much.
//! 2. `judge`: the one function that gives verdicts, from figures alone.
//! 3. `circumstance`: other programs' use of the processors and disks during a step. A figure that
//!    they can have changed is not compared.
//! 4. `answers`: the figures of a run, one for each question of its experiment.
//! 5. `page`: the findings as a table of a page, and as one of the book.

pub mod answers;
pub mod catalogue;
pub mod circumstance;
pub mod judge;
pub mod page;

use serde::{Deserialize, Serialize};

use circumstance::Circumstance;

/// The verdict on a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// Within the tolerance.
    AsPublished,
    /// In the same direction, by less than the tolerance allows.
    Weaker,
    /// Another direction, none, or more than the tolerance allows.
    Otherwise,
    /// The publication has no answer: ours has nothing to be compared with.
    NotPublished,
    /// Ours was measured under circumstances that do not allow the comparison.
    NotComparable,
    /// The step could not be run.
    NotMeasured,
}

impl Agreement {
    /// All, in the order in which they are counted.
    pub const ALL: [Agreement; 6] = [
        Agreement::AsPublished,
        Agreement::Weaker,
        Agreement::Otherwise,
        Agreement::NotPublished,
        Agreement::NotComparable,
        Agreement::NotMeasured,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Agreement::AsPublished => "as published",
            Agreement::Weaker => "weaker",
            Agreement::Otherwise => "otherwise",
            Agreement::NotPublished => "not published",
            Agreement::NotComparable => "not comparable",
            Agreement::NotMeasured => "not measured",
        }
    }
}

/// A finding of a run, as a line of `findings.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its identifier, the same in each run.
    pub id: String,
    /// The question.
    pub question: String,
    /// The published answer, with its figures.
    pub published: String,
    /// The published figure that is compared.
    pub published_value: Option<f64>,
    /// Words of the publication from which it is.
    pub source: String,
    /// Unit of both figures.
    pub unit: String,
    /// How they are compared, and why so.
    pub tolerance: String,
    /// Our answer, with its figures; empty where there is none.
    pub here: String,
    /// Our figure that is compared.
    pub here_value: Option<f64>,
    /// Whether it comes from clocks, counts, or virtual time.
    pub basis: circumstance::Basis,
    /// The steps that it was measured by.
    pub rests_on: Vec<Circumstance>,
    /// The verdict.
    pub verdict: Agreement,
    /// Why.
    pub reason: String,
}
