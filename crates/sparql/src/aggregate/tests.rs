use std::sync::Arc;

use super::*;
use crate::value::{LocalTerms, NoStore};

fn terms() -> Terms {
    Terms::new(Arc::new(LocalTerms::new()), "2011-01-10T14:45:13".parse().unwrap(), None, 1 << 20)
}

fn function(name: &str) -> GroupFunction {
    match name {
        "count" => GroupFunction::Count,
        "sum" => GroupFunction::Sum,
        "avg" => GroupFunction::Avg,
        "min" => GroupFunction::Min,
        "max" => GroupFunction::Max,
        "sample" => GroupFunction::Sample,
        _ => GroupFunction::Concat("|".into()),
    }
}

/// Feeds the values to group 1 of 3, two at a time; group 0 stays empty, group 2 gets one 7.
fn run(name: &str, distinct: bool, values: &[&str]) -> [String; 3] {
    let mut terms = terms();
    let mut aggregate = Aggregate::new(&function(name), distinct);
    aggregate.resize(2);
    let ids: Vec<TermId> = values.iter().map(|v| term(&terms, v)).collect();
    for part in ids.chunks(2) {
        terms.begin_batch();
        let rows = AggregateRows { groups: &vec![1; part.len()], args: part, weights: None };
        aggregate.update(&mut terms, &mut NoStore, rows).unwrap();
    }
    aggregate.resize(3);
    let seven = term(&terms, "7");
    let rows = AggregateRows { groups: &[2], args: &[seven], weights: None };
    aggregate.update(&mut terms, &mut NoStore, rows).unwrap();
    let ids = aggregate.finish(&mut terms);
    terms.prefetch(&mut NoStore, ids.iter().copied()).unwrap();
    std::array::from_fn(|i| {
        terms.with_term(ids[i], |t| short(&t.to_string())).unwrap_or_else(|| "-".to_owned())
    })
}

fn short(text: &str) -> String {
    let text = text.replace("^^<http://www.w3.org/2001/XMLSchema#", " ");
    text.trim_end_matches('>').replace('"', "")
}

/// `1`, `1.5`, `1.5e0`, `f1.5` (float), `PT1H`, `P1M`, `dP1D` (duration), `"text`, `<iri`, `-`
/// (unbound).
fn term(terms: &Terms, text: &str) -> TermId {
    let xsd = |local: &str| format!("http://www.w3.org/2001/XMLSchema#{local}");
    let typed = |text: &str, local: &str| terms.intern(TermRef::typed(text, &xsd(local)));
    match text {
        "-" => TermId::UNDEF,
        t if t.starts_with('"') => terms.intern(TermRef::string(&t[1..])),
        t if t.starts_with('<') => terms.intern(TermRef::Iri(&t[1..])),
        t if t.starts_with("PT") || t.starts_with("-PT") => typed(t, "dayTimeDuration"),
        t if t.starts_with('P') => typed(t, "yearMonthDuration"),
        t if t.starts_with('d') => typed(&t[1..], "duration"),
        t if t.starts_with('f') => typed(&t[1..], "float"),
        t if t.contains('e') => typed(t, "double"),
        t if t.contains('.') => typed(t, "decimal"),
        t => typed(t, "integer"),
    }
}

#[test]
fn groups() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("count", &["1", "-", "\"a", "1"], "3 integer"),
        ("sum", &["1", "2", "3"], "6 integer"),
        ("sum", &["1", "2.5"], "3.5 decimal"),
        ("sum", &["f1.5", "1", "2"], "4.5E0 float"),
        ("sum", &["1", "f1.5", "2.5e0"], "5.0E0 double"),
        ("sum", &["01", "2"], "3 integer"),
        ("sum", &["1", "\"a"], "-"),
        ("sum", &["1", "<http://e/a long one"], "-"),
        ("sum", &["1", "-", "2"], "-"),
        ("sum", &["9223372036854775807", "1"], "9223372036854775808 integer"),
        ("sum", &["9223372036854775807", "1", "-2"], "9223372036854775806 integer"),
        ("sum", &["1", "99999999999999999999", "0.5"], "100000000000000000000.5 decimal"),
        ("sum", &["0.25", "0.0000001", "-0.25"], "0.0000001 decimal"),
        ("sum", &["0.25", "0.5", "3", "01.25"], "5 decimal"),
        ("sum", &["0.25", "0.5", "1.5e0"], "2.25E0 double"),
        ("sum", &["99999999999999999999", "\"a"], "-"),
        ("avg", &["9223372036854775807", "9223372036854775807"], "9223372036854775807 decimal"),
        ("avg", &["1", "2", "2"], "1.666666666666666667 decimal"),
        ("min", &["18446744073709551616", "1e30", "5"], "5 integer"),
        ("max", &["18446744073709551616", "1e19", "5"], "18446744073709551616 integer"),
        ("avg", &["1", "2"], "1.5 decimal"),
        ("avg", &["1.0e0", "2.0e0"], "1.5E0 double"),
        ("avg", &["1", "-"], "-"),
        ("sum", &["PT1H", "PT90M", "-PT30M"], "PT2H dayTimeDuration"),
        ("sum", &["P1Y", "P3M"], "P1Y3M yearMonthDuration"),
        ("sum", &["PT1H", "P1Y"], "-"),
        ("sum", &["PT1H", "0"], "-"),
        ("sum", &["0", "PT1H"], "-"),
        ("sum", &["dPT1H"], "-"),
        ("avg", &["PT1H", "PT90M"], "PT1H15M dayTimeDuration"),
        ("avg", &["P1Y", "P1M"], "P7M yearMonthDuration"),
        ("max", &["PT1H", "PT90M"], "PT90M dayTimeDuration"),
        ("min", &["3", "1.5", "2.0e0"], "1.5 decimal"),
        ("max", &["3", "1.5", "2.0e0"], "3 integer"),
        ("min", &["\"b", "\"a long enough string", "3"], "3 integer"),
        ("max", &["\"b", "\"a long enough string", "3"], "b"),
        ("min", &["1", "<http://e/a", "\"x"], "<http://e/a"),
        ("max", &["1", "-"], "-"),
        ("sample", &["-", "5", "6"], "5 integer"),
        ("group_concat", &["\"a", "1", "<http://e/x"], "a|1|http://e/x"),
        ("group_concat", &["\"a", "-"], "-"),
    ];
    for (function, values, expected) in cases {
        assert_eq!(run(function, false, values)[1], *expected, "{function} {values:?}");
    }
}

#[test]
fn of_nothing() {
    for (function, expected) in [
        ("count", "0 integer"),
        ("sum", "0 integer"),
        ("avg", "0 integer"),
        ("min", "-"),
        ("max", "-"),
        ("sample", "-"),
        ("group_concat", ""),
    ] {
        assert_eq!(run(function, false, &["1"])[0], expected, "{function}");
    }
    assert_eq!(run("sum", false, &["1"])[2], "7 integer");
}

#[test]
fn distinct_counts_terms_once() {
    let values = ["1", "1", "1.0", "\"a long enough string", "\"a long enough string"];
    assert_eq!(run("count", true, &values)[1], "3 integer");
    assert_eq!(run("sum", true, &["2", "2", "2.0"])[1], "4 decimal");
    assert_eq!(run("group_concat", true, &["\"a", "\"b", "\"a"])[1], "a|b");
}

#[test]
fn a_sum_of_prices_is_an_error_not_a_panic() {
    let mut terms = terms();
    let mut sum = Aggregate::new(&GroupFunction::Sum, false);
    sum.resize(1);
    // a literal of a registered datatype, whose name no query has asked for
    let snowmelt_graph::Inline::Shaped(body) = snowmelt_graph::encode("12.50", "http://e/EUR") else {
        panic!()
    };
    let price = snowmelt_graph::decimal_like(snowmelt_graph::FIRST_REGISTERED, body);
    sum.update(&mut terms, &mut NoStore, AggregateRows { groups: &[0], args: &[price], weights: None })
        .unwrap();
    assert_eq!(sum.finish(&mut terms), [TermId::UNDEF]);
}

#[test]
fn distinct_solutions() {
    let mut terms = terms();
    let mut aggregate = Aggregate::new(&GroupFunction::CountRows, true);
    aggregate.resize(2);
    assert!(aggregate.counts_distinct_rows());
    let col = |values: &[&str]| values.iter().map(|v| term(&terms, v)).collect::<Vec<_>>();
    let cols = vec![col(&["1", "1", "1", "-"]), col(&["2", "2", "3", "-"])];
    aggregate.update_rows(&mut terms, &mut NoStore, &[0, 0, 0, 1], cols).unwrap();
    let ids = aggregate.finish(&mut terms);
    assert_eq!(ids, [2, 1].map(|n| snowmelt_graph::from_integer(n).unwrap()));
}

/// The results of rows, of which those from `cut` on come three times: as rows with weights, or as
/// groups that are merged.
fn in_parts(name: &str, values: &[&str], cut: usize, is_merged: bool) -> String {
    let mut terms = terms();
    let mut all = Aggregate::new(&function(name), false);
    all.resize(1);
    let ids: Vec<TermId> = values.iter().map(|v| term(&terms, v)).collect();
    let (once, thrice) = ids.split_at(cut);
    let mut take = |to: &mut Aggregate, ids: &[TermId], weight: u64| {
        let (groups, weights) = (vec![0; ids.len()], vec![weight; ids.len()]);
        let rows = AggregateRows { groups: &groups, args: ids, weights: Some(&weights) };
        to.update(&mut terms, &mut NoStore, rows).unwrap();
    };
    take(&mut all, once, 1);
    if is_merged {
        let mut part = Aggregate::new(&function(name), false);
        part.resize(2);
        take(&mut part, thrice, 1);
        // an empty one changes nothing
        let groups = [(1, 5), (0, 3), (1, 1)].map(|(from, times)| MergedGroup { to: 0, from, times });
        all.merge(&part, groups.into_iter(), &terms).unwrap();
    } else {
        take(&mut all, thrice, 3);
    }
    let ids = all.finish(&mut terms);
    terms.prefetch(&mut NoStore, ids.iter().copied()).unwrap();
    terms.with_term(ids[0], |t| short(&t.to_string())).unwrap_or_else(|| "-".to_owned())
}

#[test]
fn merged_groups_are_those_of_all_rows() {
    let lists: [&[&str]; 9] = [
        &[],
        &["1", "2", "-7"],
        &["9223372036854775807", "9223372036854775806", "1"],
        &["1", "2.5", "0.25", "f1.5", "f2", "1.5e0", "3"],
        &["PT1H", "PT2H", "-PT3H"],
        &["P1M", "PT2H"],
        &["1", "\"text", "3"],
        &["1", "-", "3"],
        &["\"a text that is too long for an id", "<iri", "\"b", "4"],
    ];
    for values in lists {
        for name in ["count", "sum", "avg", "min", "max", "sample"] {
            for cut in 0..=values.len() {
                let [merged, rows] = [true, false].map(|merged| in_parts(name, values, cut, merged));
                assert_eq!(merged, rows, "{name} of {values:?}, in two parts at {cut}");
            }
        }
    }
}
