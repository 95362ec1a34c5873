//! Entry points of the fuzz targets of `/fuzz`: every decoder of bytes from a disk, on any bytes.
//! Nothing may panic, hang or ask for all memory.
//!
//! Checksums are left out of the way: a fuzzer would not get past them, and a forger would. The
//! test below runs the same functions over changed pages, records and super-blocks of a real
//! database.

use crate::format::catalog;
use crate::format::diff;
use crate::format::encoding::Decode;
use crate::format::encoding::column::meet::Met;
use crate::format::inner::Inner;
use crate::format::string::codec::{Codec, Encoded};
use crate::format::string::dictionary::Dictionary;
use crate::format::string::dictionary_page::{DictionaryHead, part_bytes};
use crate::format::string::entry::{LONGEST, slot};
use crate::format::string::leaf::StringLeaf;
use crate::format::string::matcher::StringBatch;
use crate::format::string::symbols::Symbols;
use crate::format::tuple::leaf::LeafCursor;
use crate::format::tuple::leaf::merge::SortedKeys;
use crate::journal::{change, record};
use crate::page::{HEADER_BYTES, PAGE_BYTES, PageBuf, PageKind};
use crate::space::segment;
use crate::superblock::{SLOT_BYTES, SuperBlock};
use crate::tree::long_value::LongRef;
use crate::{PageId, header, page};

/// Kinds that the first byte of [`tree_page`]'s input chooses from.
const KINDS: [PageKind; 6] = [
    PageKind::TupleLeaf,
    PageKind::TupleInner,
    PageKind::StringLeaf,
    PageKind::StringInner,
    PageKind::Symbols,
    PageKind::Dictionary,
];

/// A page of any tree: a byte for kind and arity, two for the header's count, the body.
pub fn tree_page(data: &[u8]) {
    let [choice, low, high, body @ ..] = data else { return };
    let kind = KINDS[usize::from(choice / 4) % KINDS.len()];
    let arity = 1 + usize::from(choice % 4);
    let level = u8::from(matches!(kind, PageKind::TupleInner | PageKind::StringInner));
    let level = if kind == PageKind::Dictionary { arity as u8 % 2 } else { level };
    let mut page = PageBuf::new();
    page.set_header(kind, level, u16::from_le_bytes([*low, *high]));
    let len = body.len().min(PAGE_BYTES - HEADER_BYTES);
    page[HEADER_BYTES..][..len].copy_from_slice(&body[..len]);
    let key = [u64::from(*low) << 56, 7, u64::MAX, 1];
    let key = &key[..arity];
    // Whether it decodes does not matter.
    let _ = match kind {
        PageKind::TupleLeaf => tuple_leaf(&page, arity, key),
        PageKind::TupleInner => inner(&page, kind, arity, key),
        PageKind::StringInner => inner(&page, kind, 1, &key[..1]),
        PageKind::StringLeaf => string_leaf(&page),
        PageKind::Dictionary => dictionary(&page, body),
        _ => symbols(&page, body),
    };
}

fn tuple_leaf(page: &[u8], arity: usize, key: &[u64]) -> Decode<()> {
    let mut cursor = LeafCursor::new(arity);
    cursor.open(page)?;
    for columns in 1..=arity {
        let _ = cursor.lower(page, 0, &key[..columns]);
        let _ = cursor.upper(page, 0, &key[..columns]);
    }
    let _ = cursor.find(page, 0, key, key);
    merge(page, arity, key, &mut cursor)?;
    let (mut out, mut at) = (Vec::new(), 0);
    while at < cursor.len() {
        let to = cursor.stretch(at, cursor.len());
        assert!(to > at, "a stretch of no rows would never end");
        for column in 0..arity {
            out.clear();
            cursor.append(page, column, at, to, &mut out)?;
        }
        at = to;
    }
    Ok(())
}

/// The leaf against keys of one column.
fn merge(page: &[u8], arity: usize, key: &[u64], cursor: &mut LeafCursor) -> Decode<()> {
    let varying = [key[0] / 2, key[0], key[0].saturating_add(1), u64::MAX];
    let varying = &varying[usize::from(varying[0] == varying[1])..];
    let mut keys = SortedKeys { before: &[], varying, next: 0 };
    let (mut met, mut out, mut at) = (Met::new(), Vec::new(), 0);
    while at < cursor.len() {
        let to = cursor.meet(page, at, cursor.len(), &mut keys, &mut met)?;
        assert!(to > at, "a merge that does not move would never end");
        for column in 0..arity {
            out.clear();
            cursor.append_met(page, column, met.rows(), &mut out)?;
            assert_eq!(out.len(), met.rows().len(), "a value for each row");
        }
        at = to;
    }
    Ok(())
}

fn inner(page: &[u8], kind: PageKind, arity: usize, key: &[u64]) -> Decode<()> {
    let node = Inner::parse(page, kind, arity, 1)?;
    let _ = (node.rows(page), node.all(page));
    let _ = (node.lower(page, key, 0), node.upper(page, key, 0));
    for i in 0..node.children {
        node.child(page, i)?;
        node.separator(page, i)?;
        node.rows_before(page, i)?;
    }
    Ok(())
}

fn string_leaf(page: &[u8]) -> Decode<()> {
    let leaf = StringLeaf::parse(page)?;
    for i in 0..leaf.len {
        if let Ok(place) = leaf.place(page, i)
            && place.is_long
        {
            let _ = LongRef::parse(&page[place.at..place.at + place.len]);
        }
    }
    Ok(())
}

fn symbols(page: &[u8], codes: &[u8]) -> Decode<()> {
    Symbols::parse(page)?.decode(codes, &mut Vec::new()).map(drop)
}

/// A head or a part of a dictionary; the part as if it were all of it.
fn dictionary(page: &[u8], codes: &[u8]) -> Decode<()> {
    if header(page).level() == 1 {
        let head = DictionaryHead::parse(page)?;
        return head.dictionary(codes).map(drop);
    }
    let bytes = part_bytes(page)?;
    let width = 12 + u32::from(codes.first().copied().unwrap_or(0) % 8);
    let (mut entries, mut rest) = (0, bytes);
    while let Some((head, more)) = rest.split_first() {
        rest = more.get(usize::from(head & 15)..).unwrap_or_default();
        entries += 1;
    }
    use_dictionary(Dictionary::parse(width, entries, bytes)?, codes)
}

/// Bytes as codes, and as a string, of a dictionary.
fn use_dictionary(dictionary: Dictionary, bytes: &[u8]) -> Decode<()> {
    let codec = Codec::Dictionary(Box::new(dictionary));
    let (mut batch, mut encoded, mut buffer) = (StringBatch::default(), Encoded::default(), Vec::new());
    if let Ok(string) = codec.decode(bytes, &mut buffer) {
        assert!(string.len() <= LONGEST * bytes.len(), "a code has 12 bits or more");
    }
    let halves = bytes.split_at(bytes.len() / 2);
    let strings = [bytes, halves.0, &[], halves.1];
    strings.iter().for_each(|string| batch.push(string));
    codec.encode(&mut batch, &mut encoded)?;
    for (codes, string) in encoded.strings().zip(strings) {
        assert_eq!(codec.decode(codes, &mut buffer), Ok(string), "what was encoded decodes");
    }
    Ok(())
}

/// Codes and strings of a dictionary of any entries: a byte for the bits of a code, two for the
/// bytes of the entries, the entries, each behind its length, then codes.
pub fn string_codes(data: &[u8]) {
    let [width, low, high, rest @ ..] = data else { return };
    let len = usize::from(u16::from_le_bytes([*low, *high]));
    let (mut entries, codes) = rest.split_at(len.min(rest.len()));
    let mut slots = Vec::new();
    while let Some((len, more)) = entries.split_first()
        && !more.is_empty()
        && slots.len() < 3000
    {
        let (entry, more) = more.split_at((1 + usize::from(*len) % LONGEST).min(more.len()));
        slots.push(slot(entry));
        entries = more;
    }
    let dictionary = Dictionary::new(12 + u32::from(*width) % 6, slots);
    let read = Dictionary::parse(dictionary.width(), dictionary.slots().len(), &dictionary.to_bytes());
    assert_eq!(read.expect("it is sound").slots(), dictionary.slots());
    let _ = use_dictionary(dictionary, codes);
}

/// Bytes of a journal file: a file's head, a record, the changes in a payload, a page's diff.
pub fn journal(data: &[u8]) {
    let _ = record::FileHead::decode(data);
    if let Some(head) = record::peek(data) {
        let stored = data.get(record::HEAD..).unwrap_or_default();
        let stored = &stored[..stored.len().min(head.stored as usize)];
        // A length that nothing can unpack to costs memory before it is refused.
        if (head.raw as usize) < 1 << 20
            && let Some(payload) = record::unpack(&head, stored)
        {
            changes(&payload);
        }
        let _ = record::decode(data, 0);
    }
    changes(data);
}

fn changes(mut payload: &[u8]) {
    while !payload.is_empty() {
        let before = payload.len();
        let Ok(change) = change::next(&mut payload) else { return };
        assert!(payload.len() < before, "a change of no bytes would never end");
        match change {
            change::Change::Diff { diff, .. } => {
                let _ = diff::apply(&[7; PAGE_BYTES], diff, &mut [0; PAGE_BYTES]);
            }
            change::Change::Records { diff } => {
                let record = catalog::Record { kind: 1, bytes: [7; 50].as_slice().into() };
                let names = ["a", "b", "c"].map(|name| (name.to_string(), record.clone()));
                let mut catalog = catalog::Catalog { records: names.into(), ..Default::default() };
                let _ = catalog.apply(diff);
            }
            _ => {}
        }
    }
}

/// A slot of the super-block, its checksum made right, and the meta run.
pub fn meta(data: &[u8]) {
    let mut slot = [0; SLOT_BYTES];
    let len = data.len().min(SLOT_BYTES);
    slot[..len].copy_from_slice(&data[..len]);
    if let Some(block) = SuperBlock::decode_unsealed(&mut slot) {
        // Paths of format 3 may have no room in the present one.
        if let Ok(mut again) = block.encode() {
            assert_eq!(SuperBlock::decode_unsealed(&mut again), Some(block));
        }
    }
    for extent_pages in [8, 256] {
        let mut r = crate::format::cursor::Cursor { bytes: data };
        if catalog::decode(&mut r).is_ok() {
            let _ = segment::decode_directory(&mut crate::format::cursor::Cursor { bytes: r.bytes });
            let _ = segment::decode_whole_map(&mut r, extent_pages);
        }
        let _ = segment::decode(data, extent_pages);
    }
    if data.len() >= PAGE_BYTES {
        let _ = page::verify(&data[..PAGE_BYTES], PageId(1), crate::TreeId(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::string_codec::sentences;
    use crate::tests::trees::{Random, Sizes, TestStore, seeds};
    use crate::{
        StringTreeBuilder, TupleTreeBuilder,
        superblock::{FILE_NAME, offset},
    };

    /// Inputs as the functions take them, of a real database.
    struct Seeds {
        pages: Vec<Vec<u8>>,
        journal: Vec<Vec<u8>>,
        meta: Vec<Vec<u8>>,
        codes: Vec<Vec<u8>>,
    }

    fn collect(random: &mut Random) -> Seeds {
        let store = TestStore::new(Sizes::Default);
        let build = store.store.begin_build().unwrap();
        let mut trees = Vec::new();
        for arity in 1..=4usize {
            let mut rows: Vec<[u64; 4]> =
                (0..9000).map(|_| [0; 4].map(|_: u64| random.word() >> random.below(64))).collect();
            rows.iter_mut().for_each(|r| r[arity..].fill(0));
            rows.sort_unstable();
            rows.dedup();
            let mut tuples = TupleTreeBuilder::new(build.new_tree(&format!("tuples {arity}")), arity);
            rows.iter().for_each(|r| tuples.push(&r[..arity]).unwrap());
            trees.push((tuples.finish().unwrap().id(), arity));
        }
        let mut strings = StringTreeBuilder::new(build.new_tree("strings"), &[b"some words again"]).unwrap();
        (0..3000u64).for_each(|i| {
            strings
                .push(&b"words again and again".repeat(1 + (i % 700 / 699 * 2000) as usize))
                .map(drop)
                .unwrap();
        });
        trees.push((strings.finish().unwrap().id(), 1));
        let words = sentences(4000, 200_000);
        let sample: Vec<&[u8]> = words.iter().map(|s| &s[..]).collect();
        let strings = StringTreeBuilder::new(build.new_tree("words"), &sample).unwrap();
        let strings = strings.finish().unwrap();
        assert!(strings.dictionary.is_some());
        trees.push((strings.id(), 1));
        build.commit().unwrap();
        let mut reader = store.reader();
        let mut pages = Vec::new();
        for (tree, arity) in trees {
            for id in (0..3000).map(PageId) {
                let Ok(page) = reader.page(tree, id) else { continue };
                let kind = KINDS.iter().position(|k| *k as u8 == header(&page).kind());
                let Some(kind) = kind else { continue };
                let arity = match KINDS[kind] {
                    PageKind::Dictionary => usize::from(header(&page).level()) + 2,
                    _ => arity,
                };
                let choice = (4 * kind + arity - 1) as u8;
                pages.push(
                    [&[choice], &header(&page).count().to_le_bytes()[..], &page[HEADER_BYTES..]].concat(),
                );
            }
        }
        // Of the tree's dictionary no part is whole.
        let slots = words.concat().chunks(9).take(400).map(slot).collect();
        let whole = Dictionary::new(12, slots).to_bytes();
        let choice = (4 * KINDS.iter().position(|kind| *kind == PageKind::Dictionary).unwrap() + 1) as u8;
        pages.push([&[choice], &(whole.len() as u16).to_le_bytes()[..], &whole].concat());
        for _ in 0..20 {
            let mut txn = store.store.begin().unwrap();
            let tree = txn.new_tree(&format!("more {}", random.below(5)));
            let page = txn.allocate(tree, None).unwrap();
            txn.page_mut(tree, page).unwrap().body_mut()[random.below(8000) as usize] = 1;
            txn.put_record("a record", 1, &random.word().to_le_bytes());
            txn.commit().unwrap();
        }
        let dir = store.store.dir();
        let bytes = std::fs::read(dir.join("journal-0")).unwrap();
        let mut journal = vec![bytes[..4096].to_vec()];
        let mut at = record::FILE_HEAD;
        let identity = record::FileHead::decode(&bytes).unwrap().identity;
        while let Some((head, stored)) = record::decode(&bytes[at..], identity) {
            journal.push(bytes[at..at + record::HEAD + stored.len()].to_vec());
            journal.push(record::unpack(&head, stored).unwrap());
            at += head.bytes();
        }
        let block = std::fs::read(dir.join(FILE_NAME)).unwrap();
        let mut meta: Vec<Vec<u8>> = block.chunks(SLOT_BYTES).take(2).map(<[u8]>::to_vec).collect();
        let mut extents: Vec<_> = store.store.extents().into_iter().map(|(_, e)| e).collect();
        extents.resize(
            crate::space::extent::SEGMENT,
            crate::space::extent::Extent::free(store.store.geometry().extent_pages),
        );
        let segment = segment::encode(&extents);
        let place = segment::SegmentPlace { first: PageId(0), bytes: segment.len() as u32, checksum: 0 };
        let mut run = catalog::encode(&store.store.catalog_all());
        segment::encode_directory(&mut run, 9, &[place]);
        meta.extend([run, segment]);
        assert!(meta[0][offset::MAGIC..].starts_with(b"SNOWMELT"));
        let codes = (0..20).map(|_| codes(random)).collect();
        Seeds { pages, journal, meta, codes }
    }

    /// Entries that are prefixes of each other, some of them words, and text.
    fn codes(random: &mut Random) -> Vec<u8> {
        let text = |random: &mut Random, len| -> Vec<u8> {
            (0..len).map(|_| b"ab\0\xff "[random.below(5) as usize]).collect()
        };
        let mut entries = Vec::new();
        for _ in 0..random.below(900) {
            let len = 1 + random.below(15) as usize;
            entries.push(len as u8 - 1);
            entries.extend(text(random, len));
        }
        let len = random.below(300) as usize;
        let head = [&[random.below(6) as u8], &(entries.len() as u16).to_le_bytes()[..]].concat();
        [head, entries, text(random, len)].concat()
    }

    /// A few bytes changed, most of them near the front where lengths are; or the end cut off.
    fn changed(random: &mut Random, seed: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..1 + random.below(5) {
            let within = [24, 200, bytes.len() as u64][random.below(3) as usize].min(bytes.len() as u64);
            let at = random.below(within) as usize;
            let at = if random.below(4) == 0 { bytes.len() - 1 - at } else { at };
            bytes[at] = [0, 0xff, random.word() as u8][random.below(3) as usize];
        }
        if random.below(8) == 0 {
            bytes.truncate(1 + random.below(bytes.len() as u64) as usize);
        }
        bytes
    }

    /// Rounds: 1000, or as many as `SNOWMELT_ROUNDS` says.
    fn rounds() -> u64 {
        std::env::var("SNOWMELT_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1000)
    }

    #[test]
    fn no_bytes_bring_a_decoder_down() {
        for seed in seeds(1) {
            let mut random = Random::new(seed);
            let all = collect(&mut random);
            let (pages, records, meta_parts) = (all.pages.len(), all.journal.len(), all.meta.len());
            assert!(pages > 50 && records > 20 && meta_parts == 4, "{pages}, {records}, {meta_parts}");
            let targets: [fn(&[u8]); 4] = [tree_page, journal, meta, string_codes];
            let all = [&all.pages, &all.journal, &all.meta, &all.codes];
            for (target, seeds) in targets.into_iter().zip(all) {
                seeds.iter().for_each(|bytes| target(bytes));
                for _ in 0..rounds() {
                    let bytes = &seeds[random.below(seeds.len() as u64) as usize];
                    target(&changed(&mut random, bytes));
                }
            }
        }
    }
}
