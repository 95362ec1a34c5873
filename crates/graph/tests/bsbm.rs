//! End to end on real data: loads the BSBM file of 1000 products, checks, counts and dumps it; the
//! dump equals the input.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use snowmelt_database::OpenOptions;
use snowmelt_graph::load::{LoadOptions, Source, load};
use snowmelt_graph::{DumpFormat, GraphDatabase, Index, TermRef};

/// The file in the folder of shared test data, if it exists.
fn bsbm_file() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("SNOWMELT_SHARED").map_or(beside, PathBuf::from);
    let file = shared.join("bsbm/pc1000.nt.zst");
    if !file.exists() {
        eprintln!("skipped: {} is not there", file.display());
        return None;
    }
    Some(file)
}

#[test]
fn bsbm_goes_in_and_comes_out() {
    let Some(file) = bsbm_file() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options = OpenOptions { memory_bytes: 256 << 20, ..OpenOptions::default() };
    let load_options = LoadOptions { store: options.clone(), ..LoadOptions::default() };
    load(&path, vec![Source::from_arg(file.to_str().unwrap())], &load_options, &(), &AtomicBool::new(false))
        .unwrap();

    let db = GraphDatabase::open(&path, &options).unwrap();
    let report = db.check(&mut |_| {}).unwrap();
    assert_eq!(report.problems, [""; 0]);

    let bytes = zstd::stream::decode_all(std::fs::File::open(&file).unwrap()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    // In RDF 1.1 the datatype xsd:string is that of plain literals.
    let plain = text.replace("^^<http://www.w3.org/2001/XMLSchema#string>", "");
    let lines: HashSet<&str> = plain.lines().collect();
    assert_eq!(db.state().unwrap().quads(), lines.len() as u64);
    let mut dump = Vec::new();
    assert_eq!(db.dump(DumpFormat::NTriples, &mut dump).unwrap(), db.state().unwrap().quads());
    let dump = String::from_utf8(dump).unwrap();
    let dumped: HashSet<&str> = dump.lines().collect();
    let difference: Vec<_> = lines.symmetric_difference(&dumped).take(3).collect();
    assert!(difference.is_empty(), "{difference:?}");

    let stats = db.stats().unwrap();
    println!("{stats}");
    assert_eq!((stats.predicates, stats.graphs, stats.terms.blank_nodes), (40, 1, 0));

    let mut session = db.session().unwrap();
    let constants = [
        TermRef::Iri("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"),
        TermRef::Iri("http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/Offer"),
    ];
    let ids: Vec<_> = session.resolve(&constants).unwrap().into_iter().map(Option::unwrap).collect();
    assert_eq!(session.count(Index::Posg, &ids, None).unwrap(), 20_000);
}
