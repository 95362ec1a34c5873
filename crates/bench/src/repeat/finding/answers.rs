//! The figures of a run, one for each question of its experiment.

use super::catalogue::Question;
use super::circumstance::{Basis, Circumstance, percent};
use super::judge::Rule;
use super::{Agreement, Finding};

/// The answers so far.
pub struct Answers {
    questions: &'static [Question],
    findings: Vec<Finding>,
}

/// A figure, and its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    pub value: f64,
    /// the answer in words, with its figures
    pub words: String,
    pub basis: Basis,
    pub rests_on: Vec<Circumstance>,
}

impl Measure {
    /// From clocks, in the given steps.
    pub fn timed(value: f64, words: impl Into<String>, rests_on: &[&Circumstance]) -> Self {
        Self::new(value, words, Basis::Times, rests_on)
    }

    /// From virtual time, or counted within the program itself.
    pub fn own(value: f64, words: impl Into<String>, basis: Basis) -> Self {
        Self::new(value, words, basis, &[])
    }

    /// Of any sort.
    pub fn new(value: f64, words: impl Into<String>, basis: Basis, rests_on: &[&Circumstance]) -> Self {
        let rests_on = rests_on.iter().map(|of| (*of).clone()).collect();
        Self { value, words: words.into(), basis, rests_on }
    }
}

impl Answers {
    /// To the questions of an experiment.
    pub fn to(questions: &'static [Question]) -> Self {
        Self { questions, findings: Vec::new() }
    }

    /// A figure was measured: the verdict follows from it, unless other programs can have changed
    /// it.
    pub fn figure(&mut self, id: &str, measure: Measure) {
        let question = self.question(id);
        let (verdict, reason) = judged(&question.rule, &measure);
        self.keep(question, Some(measure), verdict, reason);
    }

    /// A figure was measured that is one of something else.
    pub fn not_comparable(&mut self, id: &str, measure: Measure, why: impl Into<String>) {
        let question = self.question(id);
        self.keep(question, Some(measure), Agreement::NotComparable, why.into());
    }

    /// There is no figure.
    pub fn not_measured(&mut self, id: &str, why: impl Into<String>) {
        let question = self.question(id);
        self.keep(question, None, Agreement::NotMeasured, why.into());
    }

    /// There are no figures for these.
    pub fn none_measured(&mut self, ids: &[&str], why: &str) {
        ids.iter().for_each(|id| self.not_measured(id, why));
    }

    /// All findings, in the order of the questions.
    pub fn finish(mut self) -> Vec<Finding> {
        let missing = |question: &&Question| self.findings.iter().all(|of| of.id != question.id);
        for question in self.questions.iter().filter(missing).collect::<Vec<_>>() {
            let why = question.unmeasured.unwrap_or("no step of this run gave its figure");
            self.keep(question, None, Agreement::NotMeasured, why.into());
        }
        let place = |finding: &Finding| self.questions.iter().position(|of| of.id == finding.id);
        self.findings.sort_by_key(place);
        self.findings
    }

    fn question(&self, id: &str) -> &'static Question {
        let question = self.questions.iter().find(|question| question.id == id);
        question.unwrap_or_else(|| panic!("{id} is no question of the experiment"))
    }

    fn keep(&mut self, question: &Question, measure: Option<Measure>, verdict: Agreement, reason: String) {
        assert!(self.findings.iter().all(|of| of.id != question.id), "{} is answered twice", question.id);
        let (value, words, basis, rests_on) = match measure {
            Some(Measure { value, words, basis, rests_on }) => (Some(value), words, basis, rests_on),
            None => (None, String::new(), Basis::Nothing, Vec::new()),
        };
        self.findings.push(Finding {
            id: question.id.into(),
            question: question.asks.into(),
            published: question.published.into(),
            published_value: question.rule.published(),
            source: question.source.into(),
            unit: question.unit.into(),
            tolerance: question.tolerance(),
            here: words,
            here_value: value.filter(|value| value.is_finite()),
            basis,
            rests_on,
            verdict,
            reason,
        });
    }
}

/// The verdict on a figure, unless what others took of the machine can have changed it.
fn judged(rule: &Rule, measure: &Measure) -> (Agreement, String) {
    let (verdict, reason) = rule.judge(measure.value);
    if !is_compared(verdict) {
        return (verdict, reason);
    }
    if let Some(why) = measure.rests_on.iter().find_map(|of| of.forbids(measure.basis)) {
        return (Agreement::NotComparable, why);
    }
    let widest =
        measure.rests_on.iter().max_by(|a, b| a.margin(measure.basis).total_cmp(&b.margin(measure.basis)));
    let Some((of, margin)) = widest.map(|of| (of, of.margin(measure.basis))).filter(|of| of.1 > 0.0) else {
        return (verdict, reason);
    };
    let (took, within) = (of.took(), percent(margin));
    let ends = [1.0 / (1.0 + margin), 1.0 + margin].map(|times| rule.judge(measure.value * times).0);
    match ends == [verdict; 2] {
        true => (verdict, format!("{reason}; so too were it off by {within}: {took}")),
        false => (
            Agreement::NotComparable,
            format!("{took}, and a figure off by {within} would have another verdict"),
        ),
    }
}

/// Whether a verdict comes from a comparison, which other programs can have spoiled.
fn is_compared(verdict: Agreement) -> bool {
    matches!(verdict, Agreement::AsPublished | Agreement::Weaker | Agreement::Otherwise)
}

#[cfg(test)]
mod tests {
    use super::super::catalogue;
    use super::*;

    fn busy(others: f64) -> Circumstance {
        Circumstance { step: "a step".into(), others, ..Circumstance::default() }
    }

    #[test]
    fn a_figure_under_disturbance_has_no_verdict_whatever_it_is() {
        for question in catalogue::ALL.iter().flat_map(|of| of.1) {
            let verdict = |ours: f64, others: f64| {
                let mut answers = Answers::to(std::slice::from_ref(question));
                answers.figure(question.id, Measure::timed(ours, "", &[&busy(0.0), &busy(others)]));
                answers.finish().remove(0).verdict
            };
            for ours in [0.0, 0.5, 1.0, 1.5, 3.0, 1e9] {
                let quiet = verdict(ours, 0.05);
                let want = if is_compared(quiet) { Agreement::NotComparable } else { quiet };
                assert_eq!(verdict(ours, 0.5), want, "{} {ours}", question.id);
            }
        }
    }

    /// A little is taken from each virtual machine: a verdict that it cannot change stands.
    #[test]
    fn what_the_hypervisor_took_counts_only_where_it_can_turn_the_verdict() {
        use Agreement::{AsPublished, NotComparable, Otherwise};
        let verdict = |ours: f64, steal: f64| {
            let of = Circumstance { step: "a step".into(), steal, ..Circumstance::default() };
            let mut answers = Answers::to(catalogue::E3);
            answers.figure("e3-targets-ahead", Measure::timed(ours, "", &[&Circumstance::default(), &of]));
            let finding = answers.finish().into_iter().find(|of| of.id == "e3-targets-ahead");
            finding.map(|of| (of.verdict, of.reason)).unwrap()
        };
        for (ours, steal, want) in [
            (1.46, 0.0, AsPublished),
            (1.46, 0.04, AsPublished),
            (1.46, 0.15, AsPublished),
            (1.46, 0.25, NotComparable),
            (1.15, 0.01, AsPublished),
            (1.15, 0.04, NotComparable),
            (1.05, 0.04, NotComparable),
            (0.95, 0.04, Otherwise),
        ] {
            let (verdict, reason) = verdict(ours, steal);
            assert_eq!(verdict, want, "{ours} at {steal}: {reason}");
            assert_eq!(reason.contains("hypervisor"), steal > 0.02, "{reason}");
        }
    }

    #[test]
    fn each_question_has_one_answer() {
        let questions = catalogue::E4;
        let mut answers = Answers::to(questions);
        answers.figure(questions[2].id, Measure::own(2.0, "2.00", Basis::OwnCounts));
        let findings = answers.finish();
        let ids: Vec<&str> = findings.iter().map(|of| of.id.as_str()).collect();
        assert_eq!(ids, questions.iter().map(|of| of.id).collect::<Vec<_>>(), "in their order");
        assert_eq!(findings[2].here_value, Some(2.0));
        let rest = findings.iter().filter(|of| of.verdict == Agreement::NotMeasured).count();
        assert_eq!(rest, questions.len() - 1);
        assert!(findings.iter().all(|of| !of.reason.is_empty()));
    }

    #[test]
    #[should_panic(expected = "answered twice")]
    fn a_second_answer_is_a_mistake() {
        let mut answers = Answers::to(catalogue::E4);
        answers.none_measured(&["e4-speed", "e4-speed"], "twice");
    }
}
