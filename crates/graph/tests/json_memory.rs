//! JSON-LD is kept in memory until it is read, so this memory must be charged. Documents of all
//! productions of the grammar, many times over, are compared with the memory reserved for them.

use std::io::Cursor;
use std::sync::atomic::AtomicBool;

use oxrdfio::RdfFormat;
use snowmelt_database::OpenOptions;
use snowmelt_grammar::languages;
use snowmelt_graph::load::{Contexts, Source};
use snowmelt_graph::{ChangeProgress, ChangeWatch, GraphDatabase, GraphDocument, StageInto};

/// Allocations that are not charged: buffers of a document, and rounding of reservations.
const BESIDE: u64 = 16 << 20;

#[test]
fn no_production_takes_more_than_what_is_reserved_for_it() {
    const COPIES: usize = 60_000;
    let dir = tempfile::tempdir().unwrap();
    let options = OpenOptions { memory_bytes: 4 << 30, ..OpenOptions::default() };
    let database = GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap();
    let grammar = languages().into_iter().find(|language| language.name == "json-ld").unwrap().grammar;
    let sites = grammar.sites();
    let mut random = snowmelt_base::test_seed(1);
    let mut wrong = Vec::new();
    // a part, chosen by the seed; all of them take minutes
    let part = std::env::var("SNOWMELT_ROUNDS").map_or(25, |rounds| rounds.parse().unwrap());
    for _ in 0..part {
        let at = (snowmelt_base::random::lcg(&mut random) >> 33) as usize % sites.len();
        let (text, name) = (sites[at].document(COPIES), sites[at].name());
        let bytes = text.len();
        let stage = || {
            let read = Box::new(Cursor::new(text.into_bytes()));
            let document = GraphDocument {
                source: Source::Reader { name: "a document".into(), read },
                format: Some(RdfFormat::JsonLd { profile: Default::default() }),
                contexts: Contexts::default(),
            };
            let into =
                StageInto { graph: None, base: Some("urn:base:"), is_one_graph: false, most_bytes: None };
            let (interrupt, progress) = (AtomicBool::new(false), ChangeProgress::default());
            let watch = ChangeWatch { interrupt: &interrupt, progress: &progress };
            database.stage(vec![document], into, None, watch).map(drop).map_err(|error| error.to_string())
        };
        database.database().memory().forget_peak();
        let before = database.database().memory().used();
        let mut ended = Ok(());
        let most = allocation_counter::measure(|| ended = stage()).bytes_max;
        let charged = database.database().memory().peak() - before;
        println!("{} of {} MiB, {} KiB: {name}: {ended:?}", most >> 20, charged >> 20, bytes >> 10);
        if most > charged + BESIDE {
            wrong.push(format!("{name}: {} MiB of {}: {ended:?}", most >> 20, charged >> 20));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
