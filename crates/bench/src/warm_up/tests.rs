//! Figures of synthetic courses with known answers.

use super::*;

/// Intervals of a second: queries, processors and bytes in each; completions spread evenly, of
/// queries 1 and 2 in turn.
fn course(seconds: &[(u32, f64, f64)], took: impl Fn(u32, usize) -> f64) -> Course {
    let mut course = Course::default();
    for (i, &(queries, cpus, bytes)) in seconds.iter().enumerate() {
        course.intervals.push(Interval {
            begin_s: i as f64,
            end_s: (i + 1) as f64,
            cpu_s: Some(cpus),
            queries: f64::from(queries),
            bytes: Some(bytes),
            pages: Some(bytes / 100.0),
            wait_s: Some(0.5),
        });
        for n in 1..=queries {
            let query = n % 2 + 1;
            course.done.push(Completion {
                at_s: i as f64 + f64::from(n) / f64::from(queries),
                seconds: took(query, i),
                query,
                ends_mix: query == 1,
            });
        }
    }
    course
}

/// Ten seconds of warm-up: 3 at a tenth of the speed, 3 at about half of it, then full. Five of
/// measured mixes.
fn warming() -> Course {
    let seconds = [[(20, 0.6, 1000.0); 3], [(110, 1.0, 400.0); 3]].concat();
    let seconds = [seconds, vec![(200, 2.0, 0.0); 9]].concat();
    // Query 1 takes 1 ms when warm and twice that before; query 2 takes 1 ms, or 20 ms.
    let took = |query: u32, second: usize| match (query, second) {
        (1, ..3) => 0.002,
        (2, ..3) => 0.020,
        _ => 0.001,
    };
    course(&seconds, took)
}

fn rules() -> WarmRules {
    WarmRules { target_cpu: 0.9, stretch_s: 2.0, mixes: 10_000, steady: None }
}

fn facts() -> WarmUpFacts {
    WarmUpFacts {
        clients: 2,
        processors: 2,
        working_set: Some(WorkingSet { pages: 21, bytes: 2100, is_exact: true, missing_at_most: 0 }),
        read_ahead: Some((40, 30)),
        bandwidth: Some(Bandwidth::given(4200.0)),
        ..WarmUpFacts::default()
    }
}

#[test]
fn figures_of_a_known_course() {
    let found = WarmUp::new(&warming(), 10.0, &rules(), facts());
    assert_eq!((found.plateau_cpus, found.warm_rate), (Some(2.0), 200.0));
    assert_eq!(found.mixes, 3 * 10 + 3 * 55 + 4 * 100);
    assert_eq!(found.warm_s, Some(8.0), "two seconds of full processors");
    assert_eq!(found.rules[1].held_s, None, "there were not so many mixes");
    let reached: Vec<_> = found.reached.iter().map(|share| share.seconds.unwrap()).collect();
    // 200 queries in 2 s may have 4 of those at 20 a second among those at 110; 200 in 1.11 s may
    // have 27 of those at 110 among those at 200.
    let expected = [2.8, 6.0 - 27.0 / 110.0, 6.0];
    assert!(reached.iter().zip(expected).all(|(at, want)| (at - want).abs() < 0.01), "{reached:?}");
    assert_eq!((found.read.bytes, found.read.pages), (Some(4200.0), Some(42.0)));
    let at_once = WarmUp::new(&course(&[(200, 2.0, 1.0); 9], |_, _| 0.001), 4.0, &rules(), facts());
    let first = at_once.reached[0];
    assert_eq!((first.seconds, first.bytes), (Some(0.0), Some(0.0)));
    assert!(!at_once.text().contains("-0.0"), "{}", at_once.text());
    assert_eq!((found.read_ratio, found.read_ahead_used), (Some(2.0), Some(0.75)));
    assert_eq!(found.read.wait_s, Some(4.0));
    let ideal = found.ideal.unwrap();
    assert_eq!((ideal.seconds, ideal.warm_ratio), (0.5, Some(16.0)));
    assert!((ideal.ninety_ratio.unwrap() - 11.51).abs() < 0.02, "{ideal:?}");
    assert_eq!(found.doubts, Vec::<String>::new());
}

#[test]
fn queries_are_semi_warm_by_the_server_s_processors() {
    let found = WarmUp::new(&warming(), 10.0, &rules(), facts());
    // 0.6 of 2 processors is semi-warm, 1.0 is not.
    let shares: Vec<_> = found.queries.iter().map(|q| (q.query, q.runs, q.share.unwrap())).collect();
    assert_eq!(shares.len(), 2);
    assert_eq!((shares[0].0, shares[0].1, shares[1].1), (1, 30, 30));
    assert!((shares[0].2 - 0.5).abs() < 1e-9 && (shares[1].2 - 0.05).abs() < 1e-9, "{shares:?}");
}

#[test]
fn the_first_rule_counts_and_a_steady_state_stands_alone() {
    let with = |rules: WarmRules| WarmUp::new(&warming(), 10.0, &rules, facts());
    let mixes = with(WarmRules { mixes: 30, ..rules() });
    assert_eq!(mixes.warm_s, mixes.rules[1].held_s);
    assert!(mixes.warm_s.unwrap() < 4.0, "30 mixes of two queries: {:?}", mixes.warm_s);
    let steady = with(WarmRules { steady: "iops:1%".parse().ok(), stretch_s: 4.0, ..rules() });
    assert_eq!((steady.rules.len(), steady.warm_s), (1, Some(10.0)));
}

#[test]
fn absent_counters_leave_absent_figures() {
    let mut course = warming();
    for interval in &mut course.intervals {
        *interval = Interval { cpu_s: None, bytes: None, pages: None, wait_s: None, ..*interval };
    }
    let facts = WarmUpFacts { clients: 2, processors: 2, ..WarmUpFacts::default() };
    let found = WarmUp::new(&course, 10.0, &WarmRules { mixes: 100, ..rules() }, facts);
    assert_eq!((found.plateau_cpus, found.read.bytes, found.read_ratio), (None, None, None));
    assert!(found.ideal.is_none() && found.read_ahead_used.is_none() && found.rules.len() == 1);
    assert!(found.warm_s.is_some() && found.queries.iter().all(|query| query.share.is_none()));
    assert!(found.doubts[0].contains("--server-pid"), "{:?}", found.doubts);
    assert!(found.text().contains("not told"), "{}", found.text());
}

#[test]
fn doubts_are_told() {
    let told = |seconds: &[(u32, f64, f64)], measured_from_s: f64, facts: WarmUpFacts| {
        let course = course(seconds, |_, _| 0.001);
        WarmUp::new(&course, measured_from_s, &rules(), facts).doubts.join("\n")
    };
    let never = told(&[[(100, 0.5, 1.0); 6], [(200, 2.0, 1.0); 6]].concat(), 11.5, facts());
    assert!(!never.contains("not warm by"), "it is in the end: {never}");
    let seconds = [[(100, 0.5, 1.0); 6], [(200, 2.0, 1.0); 6]].concat();
    let late = told(&seconds, 7.0, facts());
    assert!(late.contains("in the measured mixes only"), "warm at 8 s: {late}");
    assert!(!told(&seconds, 9.0, facts()).contains("in the measured mixes only"));
    let short = told(&[(100, 2.0, 1.0); 4], 3.0, facts());
    assert!(short.contains("took 1.00 s") && short.contains("--mixes"), "{short}");
    let warming: Vec<_> = (0..10).map(|i| (100 + 20 * i, 2.0, 1.0)).collect();
    let warming = told(&warming, 5.0, facts());
    assert!(warming.contains("still warming") && warming.contains("% faster"), "{warming}");
    let idle = told(&[[(100, 0.1, 9.0); 5], [(200, 0.4, 9.0); 5]].concat(), 5.0, facts());
    assert!(idle.contains("0.40 of 2 processors"), "{idle}");
    assert!(idle.contains("the measured mixes read"), "{idle}");
    let set = WorkingSet { pages: 100, bytes: 100, is_exact: false, missing_at_most: 10 };
    let left = told(&[(100, 2.0, 0.0); 10], 5.0, WarmUpFacts { working_set: Some(set), ..facts() });
    assert!(left.contains("at most what is told") && left.contains("10 pages read ahead"), "{left}");
    assert!(left.contains("counted no bytes") && left.contains("15 to 45 %"), "{left}");
}

#[test]
fn a_warm_up_can_end_before_its_plateau_is_known() {
    let sample = |i: usize, cpus: f64, qmph: f64| Sample {
        end_s: (i + 1) as f64,
        length_s: 1.0,
        qmph,
        cpus: Some(cpus),
        ..Sample::default()
    };
    // Three slow seconds, then full speed.
    let samples = |n: usize| -> Vec<Sample> {
        (0..n).map(|i| if i < 3 { sample(i, 0.1, 36.0) } else { sample(i, 2.0, 3600.0) }).collect()
    };
    let rules = WarmRules { stretch_s: 8.0, ..rules() };
    let ends = |rules: &WarmRules| (0..40).find(|n| rules.seem_kept(&samples(*n), 25));
    assert_eq!(ends(&rules), Some(11), "steady before, but eight full seconds are needed");
    assert_eq!(ends(&WarmRules { mixes: 6, ..rules }), Some(9), "as soon as it is steady");
    let steady = WarmRules { steady: "iops:1%".parse().ok(), stretch_s: 3.0, ..rules };
    assert_eq!(ends(&steady), Some(3), "slow, but steady: that is the rule");
    let rising: Vec<_> = (0..40).map(|i| sample(i, 2.0, 3600.0 * 1.1_f64.powi(i as i32))).collect();
    let ends = (0..40).find(|n| rules.seem_kept(&rising[..*n], 25));
    assert_eq!(ends, None, "processors busy from the start are no plateau while throughput rises");
}

#[test]
fn the_page_has_what_is_known() {
    use snowmelt_lab::report::Figure;
    let titles = |course: &Course| -> Vec<String> {
        let section = WarmUp::new(course, 10.0, &rules(), facts()).section();
        section.figures.iter().map(|figure| figure.title().to_owned()).collect()
    };
    let mut course = warming();
    assert_eq!(titles(&course).len(), 6, "{:?}", titles(&course));
    course.intervals.iter_mut().for_each(|interval| interval.wait_s = None);
    assert!(!titles(&course).iter().any(|title| title.contains("wait")), "no picture of nothing");
    let section = WarmUp::new(&course, 10.0, &rules(), facts()).section();
    let Figure::Table(table) = &section.figures[0] else { panic!("a table") };
    let row = |name: &str| table.rows.iter().find(|row| row[0] == name).map(|row| row[1].as_str());
    assert_eq!(row("warm"), Some("after 8.00 s"));
    assert_eq!(row("100 % of it"), Some("6.00 s, 0.0 MiB read"));
    assert_eq!(row("read ahead"), Some("75.0 % of the pages were used"));
    assert_eq!(row("I/O wait until then"), None);
}
