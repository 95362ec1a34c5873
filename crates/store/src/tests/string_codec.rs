//! Codecs of string trees: strings round trip, matches are the longest, damage is an error.

use proptest::prelude::*;

use crate::format::string::codec::{Codec, Encoded};
use crate::format::string::dictionary::Dictionary;
use crate::format::string::dictionary_page::{DictionaryHead, part_bytes, write_parts};
use crate::format::string::entry::{EntrySlot, key, key_len, slot};
use crate::format::string::matcher::{Codes, StringBatch};
use crate::format::string::train::{Training, wander, wander_back, words};
use crate::page::{PageBuf, PageId};

/// Eight bytes that many entries begin with.
const ALIKE: &[u8] = b"abababab";

/// Entries of letters that are often prefixes of each other, entries that differ behind their
/// first eight bytes, and of any bytes.
fn entries() -> impl Strategy<Value = Vec<EntrySlot>> {
    let behind = prop::collection::vec(prop::sample::select(&b"ab\0"[..]), 0..=7);
    let entry = prop_oneof![
        4 => prop::collection::vec(prop::sample::select(&b"ab \0\xff"[..]), 1..=15),
        2 => behind.prop_map(|behind| [ALIKE, &behind].concat()),
        1 => prop::collection::vec(any::<u8>(), 1..=15),
    ];
    prop::collection::vec(entry.prop_map(|entry| slot(&entry)), 0..300)
}

fn strings() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let string = prop_oneof![
        4 => prop::collection::vec(prop::sample::select(&b"ab \0\xff"[..]), 0..90),
        2 => prop::collection::vec(prop::sample::select(&[ALIKE, b"a", b"b", b"\0"][..]), 0..20)
            .prop_map(|parts| parts.concat()),
        1 => prop::collection::vec(any::<u8>(), 0..60),
    ];
    prop::collection::vec(string, 0..40)
}

fn batch(strings: &[Vec<u8>]) -> StringBatch {
    let mut batch = StringBatch::default();
    strings.iter().for_each(|s| batch.push(s));
    batch
}

fn encoded(codec: &Codec, strings: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut out = Encoded::default();
    codec.encode(&mut batch(strings), &mut out).unwrap();
    out.strings().map(<[u8]>::to_vec).collect()
}

fn of(dictionary: Dictionary) -> Codec {
    Codec::Dictionary(Box::new(dictionary))
}

fn entry(slot: &EntrySlot) -> &[u8] {
    &slot[..key_len(key(slot))]
}

/// The longest entry that `rest` begins with, found one by one.
fn longest(slots: &[EntrySlot], rest: &[u8]) -> u32 {
    let matches = |slot: &&EntrySlot| rest.starts_with(entry(slot));
    let best = slots.iter().filter(matches).max_by_key(|slot| key_len(key(slot))).unwrap();
    slots.iter().position(|slot| slot == best).unwrap() as u32
}

fn is_of_words(dictionary: &Dictionary) -> bool {
    let with_space = |slot: &&EntrySlot| key_len(key(slot)) > 1 && entry(slot).ends_with(b" ");
    2 * dictionary.slots().iter().filter(with_space).count() >= dictionary.slots().len()
}

proptest! {
    #[test]
    fn strings_round_trip(entries in entries(), strings in strings(), width in 12u32..=17) {
        let codec = of(Dictionary::new(width, entries));
        let mut buffer = Vec::new();
        for (string, codes) in strings.iter().zip(encoded(&codec, &strings)) {
            prop_assert_eq!(codec.decode(&codes, &mut buffer).unwrap(), &string[..]);
        }
    }

    #[test]
    fn pieces_are_the_longest(entries in entries(), strings in strings()) {
        let dictionary = Dictionary::new(12, entries);
        prop_assume!(!is_of_words(&dictionary));
        let mut codes = Codes::default();
        dictionary.matcher().codes(dictionary.slots(), &mut batch(&strings), &mut codes);
        for (string, codes) in strings.iter().zip(codes.of_strings()) {
            let mut rest = &string[..];
            for code in codes {
                prop_assert_eq!(*code, longest(dictionary.slots(), rest));
                rest = &rest[entry(&dictionary.slots()[*code as usize]).len()..];
            }
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn words_round_trip(
        known in prop::collection::vec("[a-e]{1,13} ", 600..900),
        strings in prop::collection::vec("([a-e]{1,20} ?){0,30}", 0..20),
    ) {
        let slots = known.iter().map(|word| slot(word.as_bytes())).collect();
        let dictionary = Dictionary::new(13, slots);
        prop_assert!(is_of_words(&dictionary));
        let mut strings: Vec<Vec<u8>> = strings.into_iter().map(String::into_bytes).collect();
        strings.push(known.concat().into_bytes());
        let codec = of(dictionary);
        let mut buffer = Vec::new();
        let all = encoded(&codec, &strings);
        for (string, codes) in strings.iter().zip(&all) {
            prop_assert_eq!(codec.decode(codes, &mut buffer).unwrap(), &string[..]);
        }
        let wanted = (known.len() * 13).div_ceil(8);
        prop_assert_eq!(all.last().unwrap().len(), wanted, "a code for each word");
    }

    #[test]
    fn dictionaries_round_trip(entries in entries(), width in 12u32..=17) {
        let dictionary = Dictionary::new(width, entries);
        let mut parts = Vec::new();
        let head = write_parts(&dictionary, |page| {
            parts.push(page.clone());
            Ok::<_, ()>(PageId(parts.len() as u64))
        }).unwrap();
        let mut page = PageBuf::new();
        head.write(&mut page);
        let again = DictionaryHead::parse(&page).unwrap();
        prop_assert_eq!(&again, &head);
        let bytes: Vec<u8> = parts.iter().flat_map(|page| part_bytes(page).unwrap().to_vec()).collect();
        let read = again.dictionary(&bytes).unwrap();
        prop_assert_eq!(read.slots(), dictionary.slots());
        prop_assert!(again.dictionary(&bytes[1..]).is_err());
        let mut flipped = bytes;
        flipped[3] ^= 1;
        prop_assert!(again.dictionary(&flipped).is_err(), "its checksum says so");
    }

    #[test]
    fn damaged_dictionaries_and_codes_never_panic(
        entries in entries(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        count in 0usize..400,
        strings in strings(),
        codes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let dictionary = Dictionary::new(12, entries);
        let count = if count < 300 { dictionary.slots().len() } else { count };
        let mut bytes = dictionary.to_bytes();
        flips.iter().for_each(|(at, byte)| { let at = at.index(bytes.len()); bytes[at] = *byte; });
        if let Ok(read) = Dictionary::parse(12, count, &bytes) {
            let codec = of(read);
            let mut buffer = Vec::new();
            let _ = codec.decode(&codes, &mut buffer);
            for (string, codes) in strings.iter().zip(encoded(&codec, &strings)) {
                prop_assert_eq!(codec.decode(&codes, &mut buffer).unwrap(), &string[..]);
            }
        }
    }

    #[test]
    fn a_sample_is_wandered_over_once(n in 0usize..300) {
        let strings: Vec<Vec<u8>> = (0..n).map(|i| i.to_string().into_bytes()).collect();
        let sample: Vec<&[u8]> = strings.iter().map(|s| &s[..]).collect();
        let mut seen: Vec<&[u8]> = wander(&sample).collect();
        let back: Vec<&[u8]> = wander_back(&sample).collect();
        prop_assert!(seen.iter().eq(back.iter().rev()));
        prop_assert_eq!(seen.len(), n);
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), n);
    }
}

/// Sentences of so many different words.
pub(crate) fn sentences(different: u64, bytes: usize) -> Vec<Vec<u8>> {
    let mut random = crate::tests::trees::Random::new(7);
    let mut total = 0;
    let mut sentence = || {
        let words = (0..5 + random.below(30)).map(|_| {
            let word = random.below(different).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let letters = (0..4 + word % 7).map(|i| b'a' + (word >> (5 * i + 4)) as u8 % 26);
            letters.chain(*b" ").collect::<Vec<u8>>()
        });
        words.collect::<Vec<_>>().concat()
    };
    std::iter::repeat_with(&mut sentence)
        .take_while(|s| {
            total += s.len();
            total <= bytes
        })
        .collect()
}

fn share(codec: &Codec, strings: &[Vec<u8>]) -> f64 {
    let codes: usize = encoded(codec, strings).iter().map(Vec::len).sum();
    codes as f64 / strings.iter().map(Vec::len).sum::<usize>() as f64
}

#[test]
fn the_codec_follows_the_sample() {
    let few = sentences(1000, 50_000);
    let slices =
        |strings: &[Vec<u8>]| -> Vec<&'static [u8]> { strings.iter().map(|s| &*s.clone().leak()).collect() };
    assert!(matches!(Codec::choose(&slices(&few)), Codec::Symbols(..)), "one page is enough");
    assert!(matches!(Codec::choose(&[]), Codec::Symbols(..)));
    let many = sentences(20_000, 2_000_000);
    let Codec::Dictionary(of_words) = Codec::choose(&slices(&many)) else { panic!("words pay") };
    assert!(is_of_words(&of_words));
    assert_eq!(of_words.width(), 15);
    let words = share(&of(*of_words), &many);
    assert!(words < 0.3, "15 bits for a word of 8 bytes: {words}");
    let joined: Vec<Vec<u8>> = sentences(800, 1_000_000)
        .iter()
        .map(|s| s.iter().copied().filter(|b| *b != b' ').collect())
        .collect();
    let Codec::Dictionary(of_pieces) = Codec::choose(&slices(&joined)) else { panic!("pieces pay") };
    assert!(!is_of_words(&of_pieces));
    let pieces = share(&of(*of_pieces), &joined);
    assert!(pieces < 0.55, "{pieces}");
    let mut random = crate::tests::trees::Random::new(7);
    let noise: Vec<Vec<u8>> = (0..2000).map(|_| (0..100).map(|_| random.word() as u8).collect()).collect();
    assert!(matches!(Codec::choose(&slices(&noise)), Codec::Symbols(..)), "nothing comes again");
}

#[test]
fn entries_are_within_their_limits() {
    let strings = sentences(5000, 600_000);
    let sample: Vec<&[u8]> = strings.iter().map(|s| &s[..]).collect();
    let entries = Training::new(wander(&sample), 4096, 500_000).read(500_000).to_vec();
    assert!((2000..=4096).contains(&entries.len()), "{}", entries.len());
    assert_eq!(Dictionary::new(12, entries.clone()).slots().len(), entries.len(), "none comes twice");
    assert_eq!(words(&sample, 700).len(), 700);
    assert!(words(&sample, 1 << 17).len() <= 5000);
    assert_eq!(Training::new(wander(&[]), 4096, 100).read(100).len(), 256);
}
