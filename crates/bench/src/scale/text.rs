//! Scales as tables of text.

use snowmelt_base::text_table::TextTable;
use snowmelt_store::Short;

use super::growth::{Growth, GrowthFigure};
use super::{Phase, Profile, ScaleRun};

/// Both phases of a scale.
pub fn scale_text(run: &ScaleRun) -> String {
    let mut out = format!(
        "{} products, {} quads, {:.1} MiB\n{}\n",
        run.products,
        run.quads,
        run.bytes as f64 / f64::from(1 << 20),
        run.proof.text()
    );
    out.push_str(&format!("from cold, {}\n{}", head(&run.cold), trees(&run.cold)));
    out.push_str(&format!("steady, {}\n{}{}", head(&run.steady), trees(&run.steady), queries(&run.steady)));
    if let Some(Profile::Missing(why)) = &run.profile {
        out.push_str(&format!("no flame graph: {why}\n"));
    }
    out
}

fn head(phase: &Phase) -> String {
    format!(
        "{} mixes in {:.3} s: {:.0} QMpH by wall time, {:.0} by query time; {} operations/s, planning {:.1} % of the time\n\
         per mix: {}",
        phase.mixes,
        phase.seconds,
        phase.throughput.qmph_wall,
        phase.throughput.qmph_query_time,
        Short(phase.operations_per_second as u64),
        100.0 * phase.planning_share,
        activity(phase)
    )
}

/// The activity line, for one mix.
fn activity(phase: &Phase) -> String {
    let a = &phase.activity;
    let parts = [
        ("rnd", a.rnd),
        ("seq", a.seq),
        ("same seg", a.same_seg),
        ("same pg", a.same_pg),
        ("same par", a.same_par),
        ("disk", a.disk),
        ("spec disk", a.spec_disk),
        ("fork", a.fork),
    ];
    parts.map(|(name, count)| format!("{} {name}", four(phase.per_mix(count)))).join("  ")
}

/// Four significant digits; small numbers, as means of counts are, with decimals.
pub(super) fn four(n: f64) -> String {
    match n {
        n if n >= 1000.0 => Short(n.round() as u64).to_string(),
        n if n >= 100.0 => format!("{n:.1}"),
        n if n >= 10.0 => format!("{n:.2}"),
        n if n > 0.0 => format!("{n:.3}"),
        _ => "0".to_owned(),
    }
}

fn trees(phase: &Phase) -> String {
    let mut table = TextTable::new(&["tree", "reads", "touches", "reads/mix", "touches/mix", "pages"]);
    for tree in &phase.trees {
        table.row(vec![
            tree.tree.clone(),
            Short(tree.reads).to_string(),
            Short(tree.touches).to_string(),
            four(phase.per_mix(tree.reads)),
            four(phase.per_mix(tree.touches)),
            Short(tree.pages).to_string(),
        ]);
    }
    table.render()
}

fn queries(phase: &Phase) -> String {
    let mut table = TextTable::new(&["query", "count", "mean ms", "share %", "planning %", "digest"]);
    for q in &phase.queries {
        table.row(vec![
            format!("Q{}", q.query),
            q.count.to_string(),
            format!("{:.4}", q.mean_s * 1e3),
            format!("{:.1}", 100.0 * q.share),
            format!("{:.1}", 100.0 * q.planning_share),
            q.digest.clone(),
        ]);
    }
    table.render()
}

/// The exponents of growth, a column for each step from one scale to the next.
pub fn growth_text(growths: &[Growth]) -> String {
    let Some(first) = growths.first() else { return String::new() };
    let steps: Vec<String> = growths.iter().map(|g| format!("{} to {}", g.from, g.to)).collect();
    let mut head = vec!["exponent of growth"];
    head.extend(steps.iter().map(String::as_str));
    let mut table = TextTable::new(&head);
    let row = |name: &str, cell: &dyn Fn(&Growth) -> String| {
        std::iter::once(name.to_owned()).chain(growths.iter().map(cell)).collect::<Vec<_>>()
    };
    table.row(row("(data, times)", &|growth| format!("{:.2}", growth.data)));
    for GrowthFigure { name, .. } in &first.figures {
        let cell = |growth: &Growth| {
            let found = growth.figures.iter().find(|figure| figure.name == *name);
            found.and_then(|figure| figure.exponent).map_or("-".to_owned(), |x| format!("{x:.2}"))
        };
        table.row(row(name, &cell));
    }
    table.render()
}
