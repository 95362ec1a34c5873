//! Constant strings that texts are searched for, with what is made of them once.

use memchr::memmem::Finder;

/// A string to be found as it is.
pub(super) struct Searched {
    finder: Finder<'static>,
}

impl Searched {
    pub fn new(part: &str) -> Self {
        Self { finder: Finder::new(part.as_bytes()).into_owned() }
    }

    pub fn is_in(&self, text: &str) -> bool {
        self.finder.find(text.as_bytes()).is_some()
    }
}

/// Cases of letters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LetterCase {
    Lower,
    Upper,
}

impl LetterCase {
    pub fn of(self, text: &str) -> String {
        match self {
            Self::Lower => text.to_lowercase(),
            Self::Upper => text.to_uppercase(),
        }
    }
}

/// A string of one case to be found in what a text is in that case: of an ASCII text without making
/// that.
pub(super) struct Folded {
    part: Box<[u8]>,
    case: LetterCase,
    /// place of a byte that few texts have
    rare: usize,
    searched: Searched,
}

impl Folded {
    /// None for a string of another case, or of more than ASCII.
    pub fn new(part: &str, case: LetterCase) -> Option<Self> {
        if part.is_empty() || !part.is_ascii() || case.of(part) != part {
            return None;
        }
        let rare = (0..part.len()).min_by_key(|place| frequency(part.as_bytes()[*place]))?;
        Some(Self { part: part.as_bytes().into(), case, rare, searched: Searched::new(part) })
    }

    pub fn is_in(&self, text: &str) -> bool {
        if !text.is_ascii() {
            return self.searched.is_in(&self.case.of(text));
        }
        let text = text.as_bytes();
        let Some(last) = text.len().checked_sub(self.part.len()) else { return false };
        let rare = self.part[self.rare];
        let both = (rare.to_ascii_lowercase(), rare.to_ascii_uppercase());
        memchr::memchr2_iter(both.0, both.1, &text[self.rare..=last + self.rare])
            .any(|at| text[at..at + self.part.len()].eq_ignore_ascii_case(&self.part))
    }
}

/// A rank by how often texts have a byte.
fn frequency(byte: u8) -> usize {
    const SELDOM_FIRST: &[u8] = b"zqxjkvbpgfwymculdrhsnioate ";
    SELDOM_FIRST.iter().position(|letter| *letter == byte.to_ascii_lowercase()).map_or(0, |place| place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_search_finds_what_the_folded_text_contains() {
        let texts = [
            "",
            "a",
            "Abc",
            "xABCx",
            "the QUICK brown",
            "Kelvin \u{212A} and ß",
            "İstanbul",
            "abd aBx",
            "Quack",
            "aab",
            "AAAB",
        ];
        let parts = ["a", "abc", "quick", "k", "i", "ss", "aab", "ABC", "SS", "K", " ", "zz"];
        let mut made = 0;
        for part in parts {
            for case in [LetterCase::Lower, LetterCase::Upper] {
                let Some(folded) = Folded::new(part, case) else { continue };
                made += 1;
                for text in texts {
                    assert_eq!(
                        folded.is_in(text),
                        case.of(text).contains(part),
                        "{part} in {text}, {case:?}"
                    );
                }
            }
        }
        assert!(made >= parts.len(), "each part is of one case at least");
        assert!(
            Folded::new("Abc", LetterCase::Lower).is_none() && Folded::new("é", LetterCase::Lower).is_none()
        );
    }
}
