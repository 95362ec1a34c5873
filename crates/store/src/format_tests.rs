//! The numbers of docs/format.md, "Page bodies", are those of the code.

use crate::{encoding, encoding_bits, encoding_column, encoding_dict, encoding_table};
use crate::{long_value, record_page, string_leaf, tuple_inner, tuple_leaf_build, tuple_tail};

#[test]
fn the_document_has_the_numbers_of_the_code() {
    let code: [(&str, usize); 25] = [
        ("BODY", encoding::BODY),
        ("BLOCK", encoding_bits::BLOCK),
        ("GROUP", string_leaf::GROUP),
        ("MAX_ARITY", tuple_leaf_build::MAX_ARITY),
        ("LEAF_HEAD", tuple_leaf_build::LEAF_HEAD),
        ("DICT_HEAD", tuple_leaf_build::DICT_HEAD),
        ("DICT_MAX", encoding_dict::DICT_MAX),
        ("TABLE_HEAD", encoding_table::HEAD),
        ("INNER_TABLE", tuple_inner::TABLE),
        ("SPLIT_MAX", encoding_column::SPLIT_MAX),
        ("TAIL_MAX", tuple_tail::TAIL_MAX),
        ("TAIL_ORDER", tuple_tail::TAIL_ORDER),
        ("CORRECTIONS_MAX", tuple_inner::CORRECTIONS_MAX),
        ("CORRECTION", tuple_inner::CORRECTION),
        ("MOST_STRING", string_leaf::MOST),
        ("MOST_KEY", record_page::MOST_KEY),
        ("CONSTANT", encoding_column::CONSTANT.into()),
        ("DELTA", encoding_column::DELTA.into()),
        ("FRAME", encoding_column::FRAME.into()),
        ("RUNS", encoding_column::RUNS.into()),
        ("DICT", encoding_column::DICT.into()),
        ("WIDE", encoding_column::WIDE.into()),
        ("SPLIT", encoding_column::SPLIT.into()),
        ("PLAIN", long_value::PLAIN.into()),
        ("LZ4", long_value::LZ4.into()),
    ];
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md");
    let text = std::fs::read_to_string(path).expect("docs/format.md");
    let bodies =
        text.split("\n## ").find(|s| s.starts_with("Page bodies")).expect("a section on page bodies");
    let mut documented: Vec<(String, usize)> = Vec::new();
    for line in bodies.lines().filter(|l| l.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        documented.push((cells[1].trim_matches('`').to_owned(), cells[2].parse().expect("a number")));
    }
    let code: Vec<(String, usize)> = code.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    assert_eq!(documented, code);
}
