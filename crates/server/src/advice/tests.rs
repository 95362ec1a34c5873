//! Advice of invented numbers.

use serde_json::json;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

/// A busy server that is well.
fn healthy() -> Signs {
    Signs {
        memory_bytes: 8 << 30,
        left: 50_000,
        wanted_again: 4_000,
        ahead: [("extent", 20_000, 2_000), ("scan", 90_000, 100)]
            .map(|(rule, issued, unused)| (rule.to_owned(), Ahead { issued, unused }))
            .into(),
        syncs: Wear { count: 3_000, seconds: 6.0 },
        slowed: Wear { count: 5, seconds: 0.1 },
        spilled_bytes: 10 << 20,
        answered: 100_000,
        refused: 40,
        queries: Turns { all: 64, waited: Wear { count: 4, seconds: 0.2 } },
        changes: Turns { all: 64, waited: Wear::default() },
        ..Signs::default()
    }
}

/// The topics worth a line.
fn heavy(signs: &Signs) -> Vec<Topic> {
    judged(signs, MINUTE).into_iter().filter(|verdict| verdict.weight >= 1.0).map(|v| v.topic).collect()
}

#[test]
fn a_healthy_run_gives_no_advice() {
    assert_eq!(heavy(&healthy()), []);
    assert_eq!(heavy(&Signs::default()), []);
    let mut advisor = Advisor::default();
    for minute in 0..100 {
        assert_eq!(advisor.look(MINUTE * minute, healthy()), Vec::<String>::new());
    }
    assert_eq!(advisor.standing().count(), 0);
}

/// Each fault gives its line, and no other.
#[test]
fn each_fault_has_its_line() {
    type Spoil = fn(&mut Signs);
    let faults: [(Topic, Spoil, &str); 13] = [
        (Topic::Poisoned, |s| s.poisoned = Some("journal-3: EIO".to_owned()), "journal-3: EIO"),
        (Topic::Room, |s| s.stalled = Some("no room".to_owned()), "no room; make room"),
        (Topic::DiskErrors, |s| s.device_errors = 2, "2 requests failed at the disk"),
        (
            Topic::Pool,
            |s| s.wanted_again = 17_000,
            "34 % of 50.00K pages that had to leave were wanted again soon; raise --memory (now 8.00 GiB)",
        ),
        (
            Topic::ReadAhead,
            |s| _ = s.ahead.insert("extent".to_owned(), Ahead { issued: 90_000, unused: 80_000 }),
            "44 % of 180.0K pages left unused, 80.00K of them read by the rule extent; raise --memory, or try --read-ahead scan",
        ),
        (Topic::Journal, |s| s.syncs = Wear { count: 100, seconds: 4.5 }, "journal syncs take 45 ms"),
        (Topic::Recovery, |s| s.slowed = Wear { count: 70, seconds: 30.0 }, "raise --recovery-seconds"),
        (Topic::Readers, |s| s.cancelled_readers = 1, "lower --timeout"),
        (
            Topic::HeldState,
            |s| {
                s.held = HeldBack {
                    seconds: 75.0,
                    account: "http query".to_owned(),
                    bytes: 200 << 20,
                    bound_bytes: 500 << 20,
                }
            },
            "a reader (http query) has held an old state for 75 s, and 200 MiB of journal with it",
        ),
        (
            Topic::Queries,
            |s| s.queries.waited = Wear { count: 40, seconds: 80.0 },
            "queries wait for slots: 40 waited for one of 64, 2.0 s on average; raise --queries",
        ),
        (Topic::Changes, |s| s.changes.waited = Wear { count: 40, seconds: 80.0 }, "raise --changes"),
        (Topic::Spills, |s| s.spilled_bytes = 3 << 30, "spills of 3.00 GiB"),
        (Topic::Refused, |s| (s.answered, s.refused) = (100, 40), "40 of 140 requests"),
    ];
    for (topic, spoil, says) in faults {
        let mut signs = healthy();
        spoil(&mut signs);
        let verdicts = judged(&signs, MINUTE);
        let heavy: Vec<&Verdict> = verdicts.iter().filter(|verdict| verdict.weight >= 1.0).collect();
        assert_eq!(heavy.iter().map(|v| v.topic).collect::<Vec<_>>(), [topic]);
        assert!(heavy[0].line.contains(says), "{says}: {}", heavy[0].line);
    }
}

/// Shares of little say nothing.
#[test]
fn few_events_are_no_reason() {
    let few = Signs {
        left: 900,
        wanted_again: 900,
        ahead: [("extent".to_owned(), Ahead { issued: 900, unused: 900 })].into(),
        syncs: Wear { count: 19, seconds: 19.0 },
        slowed: Wear { count: 9, seconds: 30.0 },
        queries: Turns { all: 1, waited: Wear { count: 9, seconds: 90.0 } },
        refused: 29,
        ..Signs::default()
    };
    assert_eq!(heavy(&few), []);
}

/// The counts of a pool of which this share of a thousand pages was wanted again each minute.
fn pools(percents: &[u64]) -> Vec<Signs> {
    let mut sum = Signs::default();
    let mut all = vec![sum.clone()];
    for percent in percents {
        sum.left += 10_000;
        sum.wanted_again += 100 * percent;
        all.push(sum.clone());
    }
    all
}

/// Minutes at which something was told.
fn told(percents: &[u64]) -> Vec<usize> {
    let mut advisor = Advisor::default();
    let looks = pools(percents).into_iter().enumerate();
    looks
        .filter(|(at, signs)| !advisor.look(MINUTE * *at as u32, signs.clone()).is_empty())
        .map(|(at, _)| at)
        .collect()
}

#[test]
fn a_line_is_told_once_until_it_went_away() {
    assert_eq!(told(&[30, 30, 30]), [1]);
    assert_eq!(told(&[30, 16, 30, 16, 30]), [1], "a little below the limit it still stands");
    assert_eq!(told(&[30, 5, 30]), [1, 3], "it went away");
    assert_eq!(told(&[16, 16, 16]), [] as [usize; 0], "it never came");
    assert_eq!(told(&[30; 25]), [1, 11, 21], "ten minutes are enough");
}

#[test]
fn a_reset_between_two_looks_is_no_change() {
    let mut advisor = Advisor::default();
    advisor.look(MINUTE, Signs { left: 50_000, wanted_again: 1_000, ..Signs::default() });
    let after = Signs { left: 2_000, wanted_again: 100, ..Signs::default() };
    assert_eq!(advisor.look(2 * MINUTE, after), Vec::<String>::new());
}

#[test]
fn the_heaviest_lines_stand() {
    let mut signs = healthy();
    signs.poisoned = Some("EIO".to_owned());
    signs.wanted_again = 25_000;
    signs.syncs = Wear { count: 100, seconds: 90.0 };
    signs.spilled_bytes = 600 << 20;
    signs.cancelled_readers = 1;
    signs.queries.waited = Wear { count: 40, seconds: 80.0 };
    let mut advisor = Advisor::default();
    advisor.look(Duration::ZERO, Signs::default());
    assert_eq!(advisor.look(MINUTE, signs).len(), MOST);
    let standing: Vec<&str> = advisor.standing().map(|(topic, _)| topic).collect();
    assert_eq!(standing, ["poisoned", "pool", "journal", "queries"]);
}

#[test]
fn signs_are_read_from_meters() {
    let class = |class, bytes, errors| json!({ "class": class, "bytes": bytes, "errors": errors });
    let rule = |issued, unused| json!({ "issued": issued, "used": 0, "evicted_unused": unused });
    let meters = json!({
        "answered": 9, "refused": 1,
        "turns": { "queries": { "all": 64, "waited": 3, "waited_s": 1.5 } },
        "pool": { "left": 10, "wanted_again": 4 },
        "memory": { "total_bytes": 77 },
        "trees": [
            { "tree": "psog", "rules": { "scan": rule(5, 1), "extent": rule(1, 0) } },
            { "tree": "sp", "rules": { "scan": rule(2, 1) } },
        ],
        "devices": [{ "classes": [class("spill-write", 100, 0), class("demand", 5, 2)] }],
        "journal": {
            "poisoned": null, "checkpoints": { "stalled": "full" }, "cancelled_readers": 6,
            "oldest_reader_seconds": 12.5, "oldest_reader_account": "http query",
            "held_back_bytes": 70, "recovery_bound_bytes": 100,
            "sync_latency": { "count": 4, "mean_ns": 500_000_000 },
            "slowed_near_the_bound": { "transactions": 8, "seconds": 2.5 },
        },
    });
    let expected = Signs {
        poisoned: None,
        stalled: Some("full".to_owned()),
        memory_bytes: 77,
        left: 10,
        wanted_again: 4,
        ahead: [("scan", 7, 2), ("extent", 1, 0)]
            .map(|(rule, issued, unused)| (rule.to_owned(), Ahead { issued, unused }))
            .into(),
        syncs: Wear { count: 4, seconds: 2.0 },
        slowed: Wear { count: 8, seconds: 2.5 },
        cancelled_readers: 6,
        held: HeldBack { seconds: 12.5, account: "http query".to_owned(), bytes: 70, bound_bytes: 100 },
        spilled_bytes: 100,
        device_errors: 2,
        answered: 9,
        refused: 1,
        queries: Turns { all: 64, waited: Wear { count: 3, seconds: 1.5 } },
        changes: Turns::default(),
    };
    assert_eq!(Signs::from_meters(&meters), expected);
}
