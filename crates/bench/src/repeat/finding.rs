//! A published finding beside what came out here.

use serde::Serialize;
use snowmelt_lab::report::{Column, Figure, Table};

/// Whether it came out as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// As published.
    Same,
    /// Another way.
    Otherwise,
    /// The publication leaves the question open.
    Open,
    /// Not measured in this run.
    Unmeasured,
}

/// A published finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The question.
    pub what: String,
    /// The answer that was published, with its figures.
    pub published: String,
    /// The answer here, with its figures; or why there is none.
    pub here: String,
    /// Whether they agree.
    pub verdict: Agreement,
}

impl Finding {
    /// One that was measured; `holds`: it came out as published.
    pub fn measured(what: &str, published: &str, here: String, holds: bool) -> Self {
        let verdict = if holds { Agreement::Same } else { Agreement::Otherwise };
        Self { what: what.into(), published: published.into(), here, verdict }
    }

    /// An answer to a question that the publication leaves open.
    pub fn answered(what: &str, published: &str, here: String) -> Self {
        Self { what: what.into(), published: published.into(), here, verdict: Agreement::Open }
    }

    /// One that was not.
    pub fn unmeasured(what: &str, published: &str, why: impl Into<String>) -> Self {
        let here = format!("not measured: {}", why.into());
        Self { what: what.into(), published: published.into(), here, verdict: Agreement::Unmeasured }
    }
}

/// The findings as the first lines of a page.
pub fn summary(findings: &[Finding]) -> Vec<String> {
    let of = |verdict| findings.iter().filter(move |finding| finding.verdict == verdict);
    let (same, otherwise) = (of(Agreement::Same).count(), of(Agreement::Otherwise).count());
    let measured = same + otherwise;
    let mut lines = vec![format!(
        "{} of {measured} measured findings came out as published.",
        of(Agreement::Same).count()
    )];
    lines.extend(of(Agreement::Otherwise).map(|finding| {
        let colon = if finding.what.ends_with('?') { "" } else { ":" };
        format!("Otherwise: {}{colon} {}", finding.what, finding.here)
    }));
    lines
}

/// All of them as a table.
pub fn table(findings: &[Finding]) -> Figure {
    let row = |finding: &Finding| {
        let verdict = match finding.verdict {
            Agreement::Same => "as published",
            Agreement::Otherwise => "otherwise",
            Agreement::Open => "an answer",
            Agreement::Unmeasured => "",
        };
        vec![finding.what.clone(), finding.published.clone(), finding.here.clone(), verdict.to_owned()]
    };
    Figure::Table(Table {
        title: "Findings".into(),
        columns: ["question", "published", "here", "verdict"].map(Column::text).to_vec(),
        rows: findings.iter().map(row).collect(),
        ..Table::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_counts_what_was_measured() {
        let findings = [
            Finding::measured("which is faster", "the first", "the first".into(), true),
            Finding::measured("by how much", "2", "1.2".into(), false),
            Finding::answered("and why", "left open", "its cache".into()),
            Finding::unmeasured("on a disk of 2006", "8.93 s", "there is none"),
        ];
        assert_eq!(
            summary(&findings),
            ["1 of 2 measured findings came out as published.", "Otherwise: by how much: 1.2"]
        );
        let Figure::Table(table) = table(&findings) else { panic!("a table") };
        let verdicts: Vec<&str> = table.rows.iter().map(|row| row[3].as_str()).collect();
        assert_eq!(verdicts, ["as published", "otherwise", "an answer", ""]);
        assert_eq!(table.rows[3][2], "not measured: there is none");
    }
}
