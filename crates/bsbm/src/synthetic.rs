//! Made-up words, so that no list of words has to be shipped.
//!
//! A word opens with three syllables that spell its shuffled number, which makes it distinct,
//! and closes with an ending chosen by the same number, which spreads the lengths. The counts
//! are those of the benchmark's lists; its mean lengths are 8.8 (titles) and 12.7 (names)
//! letters.

const TITLES: u32 = 89_523;
const NAMES: u32 = 88_799;

const CONSONANTS: &[u8; 16] = b"bdfghklmnprstvwz";
const VOWELS: &[u8; 5] = b"aeiou";
const SYLLABLES: u32 = 80;

const TITLE_ENDINGS: [&str; 16] = [
    "", "s", "d", "rs", "st", "ly", "nt", "ing", "cks", "ter", "nts", "ble", "less", "ness", "ments",
    "nations",
];
const NAME_ENDINGS: [&str; 8] =
    ["rich", "berto", "lindis", "gundis", "fridius", "marinius", "christos", "alexander"];

/// Distinct lower-case words for labels and texts.
pub(crate) fn titles() -> Vec<String> {
    (0..TITLES).map(|i| word(shuffled(i), &TITLE_ENDINGS)).collect()
}

/// Distinct capitalised names of persons.
pub(crate) fn names() -> Vec<String> {
    let name = |i| {
        let mut name = word(shuffled(i), &NAME_ENDINGS);
        name[..1].make_ascii_uppercase();
        name
    };
    (0..NAMES).map(name).collect()
}

/// A permutation of the three-syllable numbers: the step has no factor in common with 80 cubed.
fn shuffled(i: u32) -> u32 {
    (u64::from(i) * 180_001 % u64::from(SYLLABLES.pow(3))) as u32
}

fn word(number: u32, endings: &[&str]) -> String {
    let mut word = String::new();
    for syllable in [number / SYLLABLES / SYLLABLES, number / SYLLABLES % SYLLABLES, number % SYLLABLES] {
        word.push(char::from(CONSONANTS[(syllable / 5) as usize]));
        word.push(char::from(VOWELS[(syllable % 5) as usize]));
    }
    let scattered = number.wrapping_mul(0x9E37_79B9) >> 16;
    word + endings[scattered as usize % endings.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn mean_length(words: &[String]) -> f64 {
        words.iter().map(String::len).sum::<usize>() as f64 / words.len() as f64
    }

    #[test]
    fn words_are_distinct_letters_of_the_right_length() {
        for (words, count, mean) in [(titles(), 89_523, 8.8), (names(), 88_799, 12.7)] {
            assert_eq!(words.len(), count);
            assert_eq!(words.iter().collect::<HashSet<_>>().len(), count);
            assert!(words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic())));
            let got = mean_length(&words);
            assert!((got - mean).abs() < 0.6, "mean length {got}, wanted {mean}");
        }
    }
}
