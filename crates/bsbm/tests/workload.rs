//! Query texts against those of the original driver, and the use cases' facts.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use snowmelt_bsbm::{
    Config, DEFAULT_SEED, Error, Generator, QueryKind, UseCase, WordLists, Workload, read_update_transactions,
};

/// Checks every line of a file of original queries at 1000 products, byte for byte.
fn reproduces(file: &str, use_case: UseCase) {
    let shared = std::env::var_os("SNOWMELT_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let path = shared.join("bsbm").join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: the original queries are not at {}", path.display());
        return;
    };
    let workload = Workload::new(1000, DEFAULT_SEED, use_case).unwrap();
    let queries = workload.flat_map(|mix| mix.queries.into_iter().map(move |query| (mix.number, query)));
    let mut checked = 0;
    for (line, (mix, query)) in text.lines().zip(queries) {
        let expected: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(expected["mix"], mix);
        assert_eq!(expected["query"], query.number);
        assert_eq!(expected["sparql"].as_str().unwrap(), query.text, "mix {mix} query {}", query.number);
        checked += 1;
    }
    assert_eq!(checked, text.lines().count());
    assert!(checked >= 45, "{checked} queries checked");
}

#[test]
fn the_original_explore_queries() {
    reproduces("explore-pc1000.jsonl", UseCase::Explore);
}

#[test]
fn the_original_business_intelligence_queries() {
    reproduces("bi-pc1000.jsonl", UseCase::BusinessIntelligence);
}

#[test]
fn mixes_and_kinds() {
    assert_eq!(
        UseCase::Explore.mix(),
        [1, 2, 2, 3, 2, 2, 4, 2, 2, 5, 7, 7, 5, 7, 7, 8, 9, 9, 8, 9, 9, 10, 10, 11, 12]
    );
    assert_eq!(UseCase::BusinessIntelligence.mix(), [1, 3, 2, 2, 4, 5, 5, 6, 5, 6, 6, 7, 8, 7, 6]);
    assert_eq!(UseCase::ExploreAndUpdate.mix()[..7], [1, 2, 1, 2, 2, 3, 4]);
    assert_eq!(UseCase::ExploreAndUpdate.mix().len(), 30);
    assert_eq!(UseCase::Explore.kind(9), Some(QueryKind::Describe));
    assert_eq!(UseCase::Explore.kind(12), Some(QueryKind::Construct));
    assert_eq!(UseCase::Explore.kind(6), None);
    assert_eq!(UseCase::ExploreAndUpdate.kind(2), Some(QueryKind::Update));
    assert_eq!(UseCase::ExploreAndUpdate.kind(11), Some(QueryKind::Describe));
    assert_eq!(UseCase::Explore.queries().count(), 11);
    assert_eq!(UseCase::BusinessIntelligence.queries().count(), 8);
    assert_eq!(UseCase::ExploreAndUpdate.queries().count(), 13);
}

#[test]
fn names_of_use_cases() {
    for use_case in [UseCase::Explore, UseCase::BusinessIntelligence, UseCase::ExploreAndUpdate] {
        assert_eq!(use_case.to_string().parse::<UseCase>().unwrap(), use_case);
    }
    assert!(matches!("none".parse::<UseCase>(), Err(Error::UseCase { .. })));
}

#[test]
fn no_hole_is_left_at_any_size() {
    for products in [1, 10, 100, 3_000, 284_826] {
        for use_case in [UseCase::Explore, UseCase::BusinessIntelligence] {
            for mix in Workload::new(products, 1, use_case).unwrap().take(20) {
                assert!(mix.queries.iter().all(|query| !query.text.contains('%')));
            }
        }
    }
}

/// Two mixes insert four transactions; the fifth insert is empty.
#[test]
fn updates_insert_what_the_generator_kept_back() {
    let config = Config { products: 20, words: WordLists::synthetic(), update_transactions: Some(4) };
    let (mut data, mut updates) = (Vec::new(), Vec::new());
    let summary = Generator::new(config).unwrap().write(&mut data, Some(&mut updates), |_| {}).unwrap();
    let transactions = read_update_transactions(&updates[..]).unwrap();
    assert_eq!(transactions.len(), 4);
    let lines: usize = transactions.iter().map(|transaction| transaction.lines().count()).sum();
    assert_eq!(lines as u64, summary.updates.triples);

    let workload =
        Workload::with_updates(20, DEFAULT_SEED, UseCase::ExploreAndUpdate, transactions.clone()).unwrap();
    let mixes: Vec<_> = workload.take(3).collect();
    assert!(mixes.iter().all(|mix| mix.queries.len() == 30));
    let inserts: Vec<_> =
        mixes.iter().flat_map(|mix| &mix.queries).filter(|query| query.number == 1).collect();
    for (transaction, insert) in transactions.iter().zip(&inserts) {
        assert_eq!(insert.text, format!("INSERT DATA {{\n    {transaction}\n}}"));
    }
    assert_eq!(inserts[4].text, "INSERT DATA {\n    \n}");
    assert!(mixes[0].queries[1].text.starts_with("DELETE WHERE\n{ <http://www4"));
}

#[test]
fn a_cut_update_set_is_an_error() {
    let text = "<a> <b> <c> .\n\n#__SEP__\n<a> <b> <d> .\n";
    let reader: Box<dyn BufRead> = Box::new(BufReader::new(text.as_bytes()));
    assert!(matches!(read_update_transactions(reader), Err(Error::CutUpdates { transactions: 1 })));
}
