//! Pages are whole, offline, escaped, and well formed; every kind of figure is drawn.

use super::*;

const NASTY: &str = "<script>alert('a & \"b\"')</script>";

fn everything() -> Report {
    let plot = |title: &str, scale| Plot {
        title: title.into(),
        note: NASTY.into(),
        x: Axis::new("DOP", Unit::Plain).scaled(scale),
        y: Axis::new("elapsed", Unit::Seconds),
        series: vec![
            Series::new(NASTY, vec![(1.0, 65.0), (2.0, 101.0), (80.0, f64::NAN)]),
            Series::new("goal", vec![(1.0, 60.0), (80.0, 66.0)]).dashed(),
            Series::new("nothing", vec![]),
            Series { name: "not a number".into(), points: vec![(1.0, f64::NAN)], ..Series::default() },
        ],
    };
    let map = HeatMap {
        title: "IOPS".into(),
        x_label: "depth".into(),
        x: vec!["1".into(), NASTY.into()],
        y_label: "bs".into(),
        y: vec!["4k".into()],
        cells: vec![vec![Some(4578.0), None]],
        log: true,
        ..HeatMap::default()
    };
    let bars = Bars {
        title: "Ladder".into(),
        label: "seconds".into(),
        unit: Unit::Seconds,
        bars: vec![
            Bar { name: NASTY.into(), value: 3.0, range: Some((2.5, 3.5)), group: 0 },
            Bar { name: "no time".into(), ..Bar::default() },
        ],
        ..Bars::default()
    };
    let table = Table {
        title: "Cells".into(),
        columns: vec![Column::text("engine"), Column::number("IOPS")],
        rows: vec![vec![NASTY.into(), "4578".into()]],
        ..Table::default()
    };
    let mut report = Report::new(NASTY);
    report.summary.push(NASTY.into());
    report.doubts.push(NASTY.into());
    report.facts.push(("Command".into(), NASTY.into()));
    report.sections = vec![
        Section::new(
            NASTY,
            vec![Figure::Lines(plot("Lines", Scale::Ordinal)), Figure::Scatter(plot("Dots", Scale::Log))],
        ),
        Section::new("More", vec![Figure::HeatMap(map), Figure::Bars(bars), Figure::Table(table)])
            .with_text(NASTY),
    ];
    report
}

#[test]
fn a_page_is_self_contained_and_escaped() {
    let page = everything().html();
    assert_eq!(page.matches("<script>").count(), 1, "only our own script");
    assert!(!page.contains("alert('a"), "quotes are escaped too");
    assert!(page.contains("&lt;script&gt;alert(&#39;a &amp; &quot;b&quot;&#39;)&lt;/script&gt;"));
    for outside in ["http:", "https:", "src=\"", "@import", "url(", "<link", "<iframe"] {
        assert!(!page.contains(outside), "{outside} would need something outside of the page");
    }
    assert_eq!(page.matches("<svg").count(), 12, "each for three widths");
    assert_eq!(page.matches("role=\"img\"").count(), 12);
    let mut names: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "each id is once on a page");
    assert!(page.contains("These numbers are in doubt"));
}

#[test]
fn every_element_is_closed() {
    let report = everything();
    well_formed(&report.html());
    for (name, svg) in report.pictures(Theme::DARK) {
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{name}");
        assert!(!svg.contains("var(--"), "{name}: a picture that stands alone brings its colours");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
        well_formed(&svg);
    }
    let names: Vec<_> = report.pictures(Theme::DARK).into_iter().map(|p| p.0).collect();
    assert_eq!(names, ["01-lines", "02-dots", "03-iops", "04-ladder"]);
}

/// Checks that tags nest, as far as neither scripts nor void elements are concerned.
fn well_formed(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let end = rest[start..].find('>').expect("a tag ends") + start;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or("");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "closing {tag}");
        } else if !tag.starts_with('!') && !tag.ends_with('/') && name != "meta" {
            open.push(name);
            if name == "script" {
                rest = &rest[rest.find("</script>").expect("the script ends")..];
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_report_survives_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut report = everything();
    // JSON has no NaN.
    for section in &mut report.sections {
        for figure in &mut section.figures {
            if let Figure::Lines(plot) | Figure::Scatter(plot) = figure {
                plot.series.pop();
            }
        }
    }
    std::fs::write(dir.path().join("report.json"), serde_json::to_string(&report).unwrap()).unwrap();
    assert_eq!(Report::load(dir.path()).unwrap(), report);
    std::fs::write(dir.path().join("report.json"), "{\"title\":7}").unwrap();
    let error = Report::load(dir.path()).unwrap_err().to_string();
    assert!(error.contains("report.json") && error.contains("not a report"), "{error}");
    assert!(Report::load(&dir.path().join("missing")).unwrap_err().to_string().contains("missing"));
}
