//! Word lists: the texts of the data set are words drawn uniformly from them.
//!
//! All words lie in one byte array, each followed by the blank that separates it from the next,
//! so that drawing a word is one 32-byte copy. An entry packs the word's place (26 bits) and
//! length (6 bits).

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::random::{Bound, JavaRandom};
use crate::synthetic;

const MAX_LENGTH: usize = 63;
const COPY: usize = 32;
const MAX_BYTES: usize = (1 << 26) - COPY;

/// The two word lists of a data set.
#[derive(Clone, Debug)]
pub struct WordLists {
    pub(crate) titles: Arc<WordList>,
    pub(crate) names: Arc<WordList>,
}

impl WordLists {
    /// `titlewords.txt` and `givennames.txt` of a directory, one word a line, printable ASCII.
    ///
    /// With the benchmark's own two files the data set is its own too, byte for byte.
    pub fn from_dir(dir: &Path) -> Result<Self, Error> {
        let read = |name: &str| WordList::read(&dir.join(name)).map(Arc::new);
        Ok(Self { titles: read("titlewords.txt")?, names: read("givennames.txt")? })
    }

    /// Made-up words, as many as the benchmark has and about as long.
    pub fn synthetic() -> Self {
        let list = |words: Vec<String>| Arc::new(WordList::new(words.iter().map(String::as_str)));
        Self { titles: list(synthetic::titles()), names: list(synthetic::names()) }
    }
}

/// One list.
#[derive(Debug)]
pub(crate) struct WordList {
    bytes: Vec<u8>,
    entries: Vec<u32>,
}

impl WordList {
    fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read(path).map_err(|source| Error::ReadWords { path: path.into(), source })?;
        let bad = |line: usize, problem| Error::Word { path: path.into(), line, problem };
        if text.len() > MAX_BYTES {
            return Err(bad(1, "the list is longer than 64 MB"));
        }
        let text = String::from_utf8(text).map_err(|_| bad(1, "the list is not UTF-8"))?;
        for (i, word) in text.lines().enumerate() {
            check(word).map_err(|problem| bad(i + 1, problem))?;
        }
        if text.is_empty() {
            return Err(bad(1, "the list is empty"));
        }
        Ok(Self::new(text.lines()))
    }

    fn new<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let (mut bytes, mut entries) = (Vec::new(), Vec::new());
        for word in words {
            debug_assert_eq!(check(word), Ok(()));
            entries.push((bytes.len() as u32) << 6 | word.len() as u32);
            bytes.extend_from_slice(word.as_bytes());
            bytes.push(b' ');
        }
        bytes.resize(bytes.len() + COPY, 0);
        Self { bytes, entries }
    }
}

/// A word is what may stand in an N-Triples literal as it is.
fn check(word: &str) -> Result<(), &'static str> {
    if word.is_empty() {
        Err("the line is empty")
    } else if word.len() > MAX_LENGTH {
        Err("the word is longer than 63 bytes")
    } else if !word.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\') {
        Err("the word holds something other than printable ASCII without quote and backslash")
    } else {
        Ok(())
    }
}

/// An endless stream of words from a list.
#[derive(Clone, Debug)]
pub(crate) struct WordStream {
    list: Arc<WordList>,
    random: JavaRandom,
    bound: Bound,
}

impl WordStream {
    pub(crate) fn new(list: &Arc<WordList>, seed: i64) -> Self {
        let bound = Bound::new(list.entries.len() as u32);
        Self { list: list.clone(), random: JavaRandom::new(seed), bound }
    }

    /// Appends `count` (at least one) words, separated by blanks.
    #[inline]
    pub(crate) fn append(&mut self, count: u32, text: &mut Vec<u8>) {
        let (bytes, entries) = (&self.list.bytes[..], &self.list.entries[..]);
        for _ in 0..count {
            let entry = entries[self.bound.draw(&mut self.random) as usize];
            let (start, length) = ((entry >> 6) as usize, (entry & 63) as usize + 1);
            if length <= COPY {
                // A copy of fixed length is two moves; what is too much is cut off again.
                let end = text.len() + length;
                text.extend_from_slice(&bytes[start..start + COPY]);
                text.truncate(end);
            } else {
                text.extend_from_slice(&bytes[start..start + length]);
            }
        }
        let blank = text.pop();
        debug_assert_eq!(blank, Some(b' '));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_words_of_all_lengths() {
        let long = "x".repeat(63);
        let list = Arc::new(WordList::new(["a", "bcd", long.as_str()].into_iter()));
        let mut text = Vec::new();
        WordStream::new(&list, 5).append(300, &mut text);
        let text = String::from_utf8(text).unwrap();
        let mut random = JavaRandom::new(5);
        let expected: Vec<&str> = (0..300).map(|_| ["a", "bcd", &long][random.below(3) as usize]).collect();
        assert_eq!(text, expected.join(" "));
    }

    #[test]
    fn refuses_what_is_not_a_word() {
        let dir = tempfile::tempdir().unwrap();
        let error = |titles: &str| {
            fs::write(dir.path().join("titlewords.txt"), titles).unwrap();
            fs::write(dir.path().join("givennames.txt"), "Ada\n").unwrap();
            WordLists::from_dir(dir.path()).unwrap_err().to_string()
        };
        assert!(error("good\nbad \"quote\"\n").contains("titlewords.txt line 2: the word holds"));
        assert!(error("good\n\nmore\n").contains("line 2: the line is empty"));
        assert!(error("").contains("the list is empty"));
        assert!(error(&"x".repeat(64)).contains("longer than 63"));
        let missing = WordLists::from_dir(&dir.path().join("none")).unwrap_err();
        assert!(matches!(missing, Error::ReadWords { .. }));
    }
}
