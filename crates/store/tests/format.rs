//! docs/src/reference/format.md against the code: its tables list the same fields at the same
//! bytes, and a file written now is as it says.

mod support;

use std::collections::BTreeMap;

use snowmelt_store::{BODY_BYTES, HEADER_BYTES, PAGE_BYTES, PageKind, ReadAhead, Store, page, superblock};
use support::{build_tree, config};

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/reference/format.md");
    std::fs::read_to_string(path).unwrap()
}

/// Rows of the table marked `name`: the cells of each.
fn table(name: &str) -> Vec<Vec<String>> {
    let text = document();
    let (_, after) =
        text.split_once(&format!("<!-- table: {name} -->\n")).expect("the table is in the document");
    let rows = after.lines().take_while(|l| l.starts_with('|')).skip(2);
    rows.map(|l| l.trim_matches('|').split('|').map(|c| c.trim().to_string()).collect()).collect()
}

/// Field → (offset, bytes); fields must follow each other without a hole and fill `whole` bytes.
fn fields(name: &str, whole: usize) -> BTreeMap<String, (usize, usize)> {
    let mut end = 0;
    let mut fields = BTreeMap::new();
    for row in table(name) {
        let (at, bytes): (usize, usize) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        assert_eq!(at, end, "{name}: a hole or an overlap before {}", row[2]);
        end = at + bytes;
        fields.insert(row[2].clone(), (at, bytes));
    }
    assert_eq!(end, whole, "{name}");
    fields
}

fn compare(documented: &BTreeMap<String, (usize, usize)>, code: &[(&str, usize)]) {
    let documented: Vec<(&str, usize)> = documented.iter().map(|(n, (at, _))| (n.as_str(), *at)).collect();
    let mut code = code.to_vec();
    code.sort_unstable();
    assert_eq!(documented, code);
}

#[test]
fn the_page_header_is_as_documented() {
    use page::offset::*;
    let fields = fields("page", PAGE_BYTES);
    compare(
        &fields,
        &[
            ("checksum", CHECKSUM),
            ("page", PAGE),
            ("txn", TXN),
            ("tree", TREE),
            ("kind", KIND),
            ("level", LEVEL),
            ("count", COUNT),
            ("body", HEADER_BYTES),
        ],
    );
    assert_eq!(fields["body"].1, BODY_BYTES);
}

#[test]
fn the_super_block_is_as_documented() {
    use superblock::offset::*;
    let version = superblock::FORMAT.to_string();
    let meaning = table("superblock").into_iter().find(|row| row[2] == "format").map(|row| row[3].clone());
    assert_eq!(meaning.as_ref(), Some(&version));
    assert!(document().contains(&format!(", format version {version}. ")));
    compare(
        &fields("superblock", superblock::SLOT_BYTES),
        &[
            ("checksum", CHECKSUM),
            ("magic", MAGIC),
            ("format", FORMAT),
            ("page_bytes", superblock::offset::PAGE_BYTES),
            ("extent_pages", EXTENT_PAGES),
            ("stripes", STRIPES),
            ("sequence", SEQUENCE),
            ("txn", TXN),
            ("extents", EXTENTS),
            ("meta_page", META_PAGE),
            ("meta_bytes", META_BYTES),
            ("meta_checksum", META_CHECKSUM),
            ("identity", IDENTITY),
            ("journal", JOURNAL),
            ("slots", SLOTS),
            ("meta_form", META_FORM),
            ("before", BEFORE),
            ("previous", PREVIOUS),
            ("synced", SYNCED),
            ("tail_file", TAIL_FILE),
            ("tail_offset", TAIL_OFFSET),
            ("reserved", RESERVED),
            ("paths", PATHS),
        ],
    );
}

#[test]
fn the_journal_is_as_documented() {
    use snowmelt_store::journal::record::{FILE_HEAD_USED, HEAD, file_offset, offset};
    compare(
        &fields("journal file", FILE_HEAD_USED),
        &[
            ("checksum", file_offset::CHECKSUM),
            ("magic", file_offset::MAGIC),
            ("format", file_offset::FORMAT),
            ("reserved", file_offset::RESERVED),
            ("identity", file_offset::IDENTITY),
            ("file", file_offset::FILE),
            ("bytes", file_offset::BYTES),
            ("sequence", file_offset::SEQUENCE),
            ("previous", file_offset::PREVIOUS),
            ("synced", file_offset::SYNCED),
        ],
    );
    compare(
        &fields("journal record", HEAD),
        &[
            ("checksum", offset::CHECKSUM),
            ("magic", offset::MAGIC),
            ("stored", offset::STORED),
            ("raw", offset::RAW),
            ("kind", offset::KIND),
            ("sequence", offset::SEQUENCE),
            ("previous", offset::PREVIOUS),
            ("synced", offset::SYNCED),
            ("txn", offset::TXN),
            ("file", offset::FILE),
        ],
    );
}

#[test]
fn the_kinds_are_as_documented() {
    let documented: Vec<(u8, String)> =
        table("kinds").into_iter().map(|r| (r[0].parse().unwrap(), r[1].clone())).collect();
    let code: Vec<(u8, String)> = PageKind::ALL.iter().map(|k| (*k as u8, format!("{k:?}"))).collect();
    assert_eq!(documented, code);
}

/// Follows the document by hand from the super-block to a page of a tree, with nothing of the
/// store but its files.
#[test]
fn a_database_can_be_read_by_the_document() {
    let dir = tempfile::tempdir().unwrap();
    let stripes = [dir.path().join("a"), dir.path().join("b")];
    let store = Store::create(&dir.path().join("db"), &stripes, config(64, ReadAhead::none())).unwrap();
    let tree = build_tree(&store, "t", 1, 30);
    drop(store);
    let number = |b: &[u8], at: usize, n: usize| {
        b[at..at + n].iter().rev().fold(0u64, |sum, byte| sum << 8 | *byte as u64) as usize
    };
    let block = std::fs::read(dir.path().join("db/superblock")).unwrap();
    assert_eq!(block[..2 * 8192], block[65536..], "each slot is there twice");
    let slots = [&block[..8192], &block[8192..2 * 8192]];
    let slot = slots.into_iter().max_by_key(|s| number(s, 32, 8)).unwrap();
    assert_eq!((&slot[8..16], number(slot, 16, 4), number(slot, 40, 8)), (b"SNOWMELT".as_slice(), 5, 1));
    let (k, n) = (number(slot, 24, 4), number(slot, 28, 4));
    assert_eq!((k, n), (8, 2));
    let len = number(slot, 256, 2);
    assert_eq!(&slot[258..258 + len], stripes[0].to_str().unwrap().as_bytes());
    let files = stripes.map(|s| std::fs::read(s).unwrap());
    let page = |p: usize| {
        let at = (p / k) / n * k * 8192 + p % k * 8192;
        &files[(p / k) % n][at..at + 8192]
    };
    let (first, bytes) = (number(slot, 56, 8), number(slot, 64, 8));
    let bodies = |first: usize, bytes: usize| {
        let mut run: Vec<u8> =
            (0..bytes.div_ceil(8160)).flat_map(|i| page(first + i)[32..].to_vec()).collect();
        run.truncate(bytes);
        run
    };
    let run = bodies(first, bytes);
    assert_eq!((number(&run, 0, 4), number(&run, 4, 4), number(&run, 8, 4)), (2, 1, 1), "one tree, number 1");
    assert_eq!((number(&run, 12, 2), &run[14..15]), (1, b"t".as_slice()));
    let record = (number(&run, 15, 4), &run[21..28], number(&run, 28, 4), number(&run, 32, 4));
    assert_eq!(record, (2, b"lineage".as_slice(), 1, 32), "its lineage: two spans");
    assert_eq!((number(&run, 36, 8), number(&run, 52, 8)), (0, 1), "the empty state, then this opening");
    assert_eq!(number(slot, 100, 4), 1, "form of the meta run");
    let directory = run.len() - 12 - 20;
    assert_eq!((number(&run, directory, 8), number(&run, directory + 8, 4)), (number(slot, 48, 8), 1));
    let map = bodies(number(&run, directory + 12, 8), number(&run, directory + 20, 4));
    assert_eq!((number(&map, 0, 4), map[12]), (1, 0xFF), "extent 0: tree 1, eight pages");
    assert_eq!((map[20], number(&map, 21, 4)), (0, 1), "all of them written by transaction 1");
    let p = tree.pages[20].0 as usize;
    assert_eq!((number(page(p), 8, 8), number(page(p), 24, 4), page(p)[28]), (p, 1, 1));
    assert_eq!(&page(p)[32..], support::page(1, 20).body());
}
