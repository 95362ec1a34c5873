//! A finding: something that was looked at, what was measured, and what to change.

use serde_json::{Value, json};
use snowmelt_base::printable;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// Slower or less safe than it could be.
    Advice,
    /// Will fail, or loses data.
    Problem,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Advice => "advice",
            Self::Problem => "problem",
        }
    }
}

/// See the head of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// The thing that was looked at.
    pub about: String,
    /// The measured value.
    pub measured: String,
    /// Why it matters; empty where all is well.
    pub why: String,
    /// The command or the setting to change; empty where all is well.
    pub change: String,
}

impl Finding {
    pub fn ok(about: impl Into<String>, measured: impl Into<String>) -> Self {
        Self::new(Level::Ok, about, measured, "", "")
    }

    pub fn advice(
        about: impl Into<String>,
        measured: impl Into<String>,
        why: impl Into<String>,
        change: impl Into<String>,
    ) -> Self {
        Self::new(Level::Advice, about, measured, why, change)
    }

    pub fn problem(
        about: impl Into<String>,
        measured: impl Into<String>,
        why: impl Into<String>,
        change: impl Into<String>,
    ) -> Self {
        Self::new(Level::Problem, about, measured, why, change)
    }

    fn new(
        level: Level,
        about: impl Into<String>,
        measured: impl Into<String>,
        why: impl Into<String>,
        change: impl Into<String>,
    ) -> Self {
        let (about, measured) = (about.into(), measured.into());
        Self { level, about, measured, why: why.into(), change: change.into() }
    }

    pub fn json(&self) -> Value {
        let Self { level, about, measured, why, change } = self;
        json!({ "level": level.name(), "about": about, "measured": measured, "why": why, "change": change })
    }
}

/// Findings of a level.
pub fn count(findings: &[Finding], level: Level) -> usize {
    findings.iter().filter(|finding| finding.level == level).count()
}

/// A line for each that is well, three for the others, and the sum.
pub fn as_text(findings: &[Finding]) -> String {
    let widest =
        findings.iter().map(|finding| printable::line(&finding.about).chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { level, about, measured, why, change } in findings {
        // Names of files may have control characters, too.
        let [about, measured, why, change] = [about, measured, why, change].map(|text| printable::line(text));
        text += &format!("{:<8} {about:<widest$}  {measured}\n", level.name());
        if *level != Level::Ok {
            text += &format!("{:9}why: {why}\n{:9}do:  {change}\n", "", "");
        }
    }
    let [problems, advice, ok] = [Level::Problem, Level::Advice, Level::Ok].map(|l| count(findings, l));
    let (s, pieces) = (if problems == 1 { "" } else { "s" }, if advice == 1 { "piece" } else { "pieces" });
    text + &format!("\n{problems} problem{s}, {advice} {pieces} of advice, {ok} ok\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_what_to_do() {
        let findings = [Finding::advice("swap", "1 GiB", "it is slow", "swapoff"), Finding::ok("a", "b")];
        let text = as_text(&findings);
        let expected = "advice   swap  1 GiB\n         why: it is slow\n         do:  swapoff\nok       a     b\n\n\
                        0 problems, 1 piece of advice, 1 ok\n";
        assert_eq!(text, expected);
        assert_eq!(findings[0].json()["level"], "advice");
    }
}
