//! The numbers of docs/src/reference/format.md, "Page bodies", are those of the code.

use crate::format::encoding;
use crate::format::encoding::bits;
use crate::format::encoding::column;
use crate::format::encoding::dict;
use crate::format::encoding::table;
use crate::format::inner;
use crate::format::key::MAX_ARITY;
use crate::format::string::entry;
use crate::format::string::leaf;
use crate::format::tuple::leaf_build;
use crate::format::tuple::tail;
use crate::tree::long_value;

#[test]
fn the_document_has_the_numbers_of_the_code() {
    let code: [(&str, usize); 25] = [
        ("BODY", encoding::BODY),
        ("BLOCK", bits::BLOCK),
        ("GROUP", leaf::GROUP),
        ("MAX_ARITY", MAX_ARITY),
        ("LEAF_HEAD", leaf_build::LEAF_HEAD),
        ("DICT_HEAD", leaf_build::DICT_HEAD),
        ("DICT_MAX", dict::DICT_MAX),
        ("TABLE_HEAD", table::HEAD),
        ("INNER_TABLE", inner::TABLE),
        ("SPLIT_MAX", column::SPLIT_MAX),
        ("TAIL_MAX", tail::TAIL_MAX),
        ("TAIL_ORDER", tail::TAIL_ORDER),
        ("CORRECTIONS_MAX", inner::CORRECTIONS_MAX),
        ("CORRECTION", inner::CORRECTION),
        ("LONGEST", entry::LONGEST),
        ("MOST_STRING", leaf::MOST),
        ("CONSTANT", column::CONSTANT.into()),
        ("DELTA", column::DELTA.into()),
        ("FRAME", column::FRAME.into()),
        ("RUNS", column::RUNS.into()),
        ("DICT", column::DICT.into()),
        ("WIDE", column::WIDE.into()),
        ("SPLIT", column::SPLIT.into()),
        ("PLAIN", long_value::PLAIN.into()),
        ("LZ4", long_value::LZ4.into()),
    ];
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference/format.md");
    let text = std::fs::read_to_string(path).expect("docs/src/reference/format.md");
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
