//! Whole data sets against the checksums of the original generator's.

use std::io::{self, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use snowmelt_bsbm::{Config, Error, Generator, Summary, WordLists};

/// The word lists of the benchmark, which are not part of this repository.
fn original_words(test: &str) -> Option<WordLists> {
    let shared = std::env::var_os("SNOWMELT_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let dir = shared.join("bsbm");
    if !dir.join("titlewords.txt").exists() {
        eprintln!("skipped: {test} needs the word lists in {}", dir.display());
        return None;
    }
    Some(WordLists::from_dir(&dir).expect("the word lists are readable"))
}

/// Counts lines and hashes all bytes.
#[derive(Default)]
struct Hashed {
    hash: Sha256,
    lines: u64,
    bytes: u64,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert!(bytes.len() < 1 << 20, "memory is bounded, so writes are too");
        self.hash.update(bytes);
        self.lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Hashed {
    fn hex(self) -> String {
        self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn generate(products: u32, words: WordLists) -> (Summary, Hashed) {
    let generator = Generator::new(Config { products, words, update_transactions: None }).unwrap();
    let mut data = Hashed::default();
    let mut last = 0;
    let summary = generator.write(&mut data, None, |triples| last = triples).unwrap();
    assert_eq!(last, summary.data.triples);
    assert_eq!((data.lines, data.bytes), (summary.data.triples, summary.data.bytes));
    (summary, data)
}

#[test]
fn the_original_data_at_100_products() {
    let Some(words) = original_words("100 products") else { return };
    let (summary, data) = generate(100, words);
    assert_eq!((summary.data.triples, summary.data.bytes), (40_377, 10_216_303));
    assert_eq!(data.hex(), "47f3d504d7600d665da07cc475514a5e46240f5f1c1ac97fb22bd1a6c0fdf748");
}

#[test]
fn the_original_data_at_1000_products() {
    let Some(words) = original_words("1000 products") else { return };
    let (summary, data) = generate(1000, words);
    assert_eq!((summary.data.triples, summary.data.bytes), (374_911, 95_715_671));
    assert_eq!(data.hex(), "6f19f6aeba949d0869434b582c8c9ee503b5c7de90b5ec80fae0a1bb0612912f");
}

#[test]
fn the_original_data_at_2785_products() {
    let Some(words) = original_words("2785 products") else { return };
    let (summary, data) = generate(2785, words);
    assert_eq!(summary.data.triples, 1_000_312);
    assert_eq!(data.hex(), "252bb33e8126bf23bb197539ad8f6f82c377f6a68d890924e8cf9ae6bc5ee30e");
}

#[test]
fn the_original_update_set_at_2785_products() {
    let Some(words) = original_words("2785 products with updates") else { return };
    let config = Config { products: 2785, words, update_transactions: Some(1000) };
    let (mut data, mut updates) = (Hashed::default(), Hashed::default());
    let summary = Generator::new(config).unwrap().write(&mut data, Some(&mut updates), |_| {}).unwrap();
    assert_eq!((summary.data.triples, summary.data.bytes), (724_101, 185_685_310));
    assert_eq!((summary.updates.triples, summary.updates.bytes), (276_211, 71_224_323));
    assert_eq!(data.hex(), "0eca9f19829be6390700196c5de4fe6e3d0610e1cd09d7f780de6526a95a48c8");
    let hex = updates.hex();
    assert!(hex.starts_with("21162044"), "update set {hex}");
}

/// The number of triples does not depend on the words.
#[test]
fn as_many_triples_with_synthetic_words() {
    let (summary, _) = generate(100, WordLists::synthetic());
    assert_eq!(summary.data.triples, 40_377);
    let size = summary.data.bytes as f64 / 10_216_303.0;
    assert!((0.95..1.05).contains(&size), "{size} times the size of the original");
}

#[test]
fn the_update_set_is_cut_out_of_the_data_set() {
    let words = WordLists::synthetic();
    let whole = {
        let mut data = Vec::new();
        let config = Config { products: 100, words: words.clone(), update_transactions: None };
        Generator::new(config).unwrap().write(&mut data, None, |_| {}).unwrap();
        data
    };
    let (mut data, mut updates) = (Vec::new(), Vec::new());
    let config = Config { products: 100, words, update_transactions: Some(10) };
    let summary = Generator::new(config).unwrap().write(&mut data, Some(&mut updates), |_| {}).unwrap();

    let lines = |text: Vec<u8>| {
        let text = String::from_utf8(text).unwrap();
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort_unstable();
        lines
    };
    let separated = lines(updates);
    let updates: Vec<String> = separated.into_iter().filter(|line| line.starts_with('<')).collect();
    assert_eq!(updates.len() as u64, summary.updates.triples);
    assert!(updates.iter().any(|line| line.contains("/Product91>")));
    assert!(!updates.iter().any(|line| line.contains("/Product90>")));
    let mut together = lines(data);
    assert!(!together.iter().any(|line| line.contains("/Product91>")));
    together.extend(updates);
    together.sort_unstable();
    assert!(together == lines(whole), "base and update set make up the whole data set");
}

#[test]
fn a_full_disk_is_an_error_with_its_cause() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let config = Config { products: 100, words: WordLists::synthetic(), update_transactions: None };
    let generator = Generator::new(config).unwrap();
    let error = generator.write(&mut Full(1_000_000), None, |_| {}).unwrap_err();
    let Error::Write { what: "data set", bytes, source } = error else { panic!("{error}") };
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    assert!(bytes > 0 && bytes <= 1_000_000);
}

#[test]
fn refuses_an_update_set_without_output_or_products() {
    let config =
        |update_transactions| Config { products: 10, words: WordLists::synthetic(), update_transactions };
    assert!(matches!(
        Generator::new(config(Some(11))),
        Err(Error::Transactions { transactions: 11, products: 10 })
    ));
    let generator = Generator::new(config(Some(10))).unwrap();
    assert!(matches!(generator.write(&mut Vec::new(), None, |_| {}), Err(Error::UpdateOutput)));
    let generator = Generator::new(config(None)).unwrap();
    let result = generator.write(&mut Vec::new(), Some(&mut Vec::new()), |_| {});
    assert!(matches!(result, Err(Error::UpdateOutput)));
}
