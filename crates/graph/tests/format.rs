//! The graph's part of docs/src/reference/format.md agrees with the code: the table of kinds, and
//! the constants in its text.

use snowmelt_graph::{GraphFormat, TermKind, dict};

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference/format.md");
    std::fs::read_to_string(path).expect("docs/src/reference/format.md is part of the project")
}

#[test]
fn every_kind_is_in_the_table() {
    let document = document();
    let table = document.split("<!-- table: term kinds -->").nth(1).expect("the table of kinds");
    let rows: Vec<(u8, String)> = table
        .lines()
        .skip(3)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let mut cells = line.split('|').skip(1).map(str::trim);
            (cells.next().unwrap().parse().unwrap(), cells.next().unwrap().to_owned())
        })
        .collect();
    let kinds: Vec<(u8, String)> =
        TermKind::ALL.iter().map(|kind| (*kind as u8, format!("{kind:?}"))).collect();
    assert_eq!(rows, kinds);
}

#[test]
fn the_constants_in_the_text_are_the_code_s() {
    let document = document();
    let graph = document.split("## The graph").nth(1).expect("the graph's section");
    assert!(graph.contains(&format!("upper {} bits of XXH3-64", dict::HASH_BITS)));
    for format in GraphFormat::ALL {
        let has_rdf_12 = if format.has_rdf_12() { "yes" } else { "no" };
        let row = format!("| {} | above {} bytes | {has_rdf_12} |", format.number(), format.short_bytes());
        assert!(graph.contains(&row), "{row}");
    }
    assert_eq!((dict::code::IN_STRING, dict::code::PLAIN), (0, 1));
    for record in [dict::RECORD_META, dict::RECORD_CODES, dict::RECORD_PREFIXES] {
        assert!(graph.contains(&format!("`{record}`")), "{record}");
    }
}
