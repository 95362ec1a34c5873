//! The questions of the published experiments, as rows of data.
//!
//! `source` has words of the publications' extract, so a figure can be looked up. A publication
//! that names a direction and no figure is compared by direction; one that has no answer makes the
//! question open.

mod e1;
mod e2;
mod e3;
mod e4;
mod e5;

pub use e1::E1;
pub use e2::E2;
pub use e3::E3;
pub use e4::E4;
pub use e5::E5;

use super::judge::{Claim, Rule};

/// A question with its published answer.
#[derive(Debug)]
pub struct Question {
    /// Its identifier.
    pub id: &'static str,
    /// In words.
    pub asks: &'static str,
    /// The published answer, with figures and units.
    pub published: &'static str,
    /// Words of the publication.
    pub source: &'static str,
    /// Unit of the figure that is compared.
    pub unit: &'static str,
    /// How ours is compared.
    pub rule: Rule,
    /// Why so.
    pub because: &'static str,
    /// Why there is no figure of ours, where no step can give one.
    pub unmeasured: Option<&'static str>,
}

impl Question {
    /// How ours is compared, and why so.
    pub fn tolerance(&self) -> String {
        format!("{}: {}", self.rule.words(), self.because)
    }
}

/// All, by experiment.
pub const ALL: [(&str, &[Question]); 5] = [("e1", E1), ("e2", E2), ("e3", E3), ("e4", E4), ("e5", E5)];

/// An effect of a size.
const fn size(published: f64, neutral: f64, factor: f64, noise: f64) -> Rule {
    Rule { claim: Claim::Size(published), neutral, factor, noise }
}

const fn at_least(published: f64, neutral: f64, factor: f64, noise: f64) -> Rule {
    Rule { claim: Claim::AtLeast(published), neutral, factor, noise }
}

const fn at_most(published: f64, neutral: f64, factor: f64) -> Rule {
    Rule { claim: Claim::AtMost(published), neutral, factor, noise: 0.0 }
}

/// A ratio above 1 by more than the noise.
const fn above_one(noise: f64) -> Rule {
    Rule { claim: Claim::Above, neutral: 1.0, factor: 1.0, noise }
}

const OPEN: Rule = Rule { claim: Claim::Open, neutral: 0.0, factor: 1.0, noise: 0.0 };
/// The reason of an open question.
const NOTHING: &str = "there is no figure";

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;

    fn all() -> impl Iterator<Item = (&'static str, &'static Question)> {
        ALL.iter().flat_map(|(experiment, questions)| questions.iter().map(move |of| (*experiment, of)))
    }

    #[test]
    fn identifiers_are_unique_and_name_their_experiment() {
        let mut seen = HashSet::new();
        for (experiment, question) in all() {
            assert!(question.id.starts_with(&format!("{experiment}-")), "{}", question.id);
            assert!(seen.insert(question.id), "{} twice", question.id);
        }
    }

    #[test]
    fn each_published_figure_has_a_source_and_each_tolerance_a_reason() {
        for (_, question) in all() {
            let id = question.id;
            let is_open = question.rule.claim == Claim::Open;
            assert_eq!(question.because == NOTHING, is_open, "{id}: why is it compared so?");
            assert!(is_open || question.because.split_whitespace().count() >= 8, "{id}: argue it");
            assert!(is_open || !question.source.is_empty(), "{id}: no source");
            assert!(question.rule.factor >= 1.0 && question.rule.noise >= 0.0, "{id}");
            let effect = question.rule.published().map(|figure| (figure - question.rule.neutral).abs());
            assert!(effect.is_none_or(|effect| effect > question.rule.noise), "{id}: no effect");
        }
    }

    /// Figures of another sort than published ones, as judged by their rows.
    #[test]
    fn figures_of_another_size_are_not_as_published() {
        use super::super::Agreement::{AsPublished, NotPublished, Otherwise, Weaker};
        let verdict =
            |id: &str, ours: f64| all().find(|(_, of)| of.id == id).expect("a question").1.rule.judge(ours).0;
        for (id, ours, want) in [
            ("e4-speed", 1.64, AsPublished),
            ("e4-speed", 9.12, Otherwise),
            ("e4-speed", 1.2, Weaker),
            ("e4-speed", 0.9, Otherwise),
            ("e4-buffered-8k-512", 2.74, AsPublished),
            ("e4-buffered-8k-512", 2.0, Weaker),
            ("e4-buffered-8k-512", 1.0, Otherwise),
            ("e4-direct-splits", 1.0, Otherwise),
            ("e4-direct-splits", 1.117, AsPublished),
            ("e2-same-page", 0.59, Weaker),
            ("e2-same-page", 0.40, Otherwise),
            ("e2-virtuoso-same-page", 0.97, Otherwise),
            ("e2-speculative", 1.0, Otherwise),
            ("e2-most-read", 1.0, Weaker),
            ("e1-extent-share", 0.99, Otherwise),
            ("e1-semi-warm-queries", 1.0, Otherwise),
            ("e3-restart", 0.09, NotPublished),
            ("e3-restart-postgresql", 3.6, NotPublished),
            ("e3-restart-virtuoso", 14.1, NotPublished),
            ("e5-postgresql", 1.0, NotPublished),
            ("e5-anticipatory-2", 1.03, Otherwise),
            ("e5-ahead-none", 0.82, Otherwise),
            ("e5-ahead-none", 1.76, Weaker),
        ] {
            assert_eq!(verdict(id, ours), want, "{id} {ours}");
        }
    }

    /// Numbers and words of the publications, where their extract lies beside the project.
    #[test]
    fn sources_are_words_of_the_publications() {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
        let folder = std::env::var_os("SNOWMELT_SHARED").map_or(beside, Into::into);
        let Ok(text) = std::fs::read_to_string(folder.join("reference/experiments.md")) else {
            println!("skipped: {} has no extract of the publications", folder.display());
            return;
        };
        let plain =
            |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace(['*', '\\'], "");
        let text = plain(&text);
        for (_, question) in all() {
            for part in question.source.split(" … ").filter(|part| !part.is_empty()) {
                assert!(text.contains(&plain(part)), "{}: \"{part}\" is not there", question.id);
            }
        }
    }
}
