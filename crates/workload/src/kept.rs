//! Answers kept as they came, the first of each query text, as far as there is room for them: two
//! digests say that answers differ, and only the answers say how.

use std::collections::HashMap;
use std::sync::Mutex;

/// Answers by the hashes of their texts.
#[derive(Debug)]
pub struct KeptAnswers {
    most_bytes: usize,
    /// Rows and digests of answers that need not be kept.
    known: HashMap<u64, (u64, u64)>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    answers: HashMap<u64, Box<[u8]>>,
    bytes: usize,
}

impl KeptAnswers {
    /// Room for so many bytes of answers.
    pub fn new(most_bytes: usize) -> Self {
        Self { most_bytes, known: HashMap::new(), inner: Mutex::default() }
    }

    /// Keeps only answers that differ from these rows and digests, by the hashes of their texts.
    pub fn unlike(self, known: HashMap<u64, (u64, u64)>) -> Self {
        Self { known, ..self }
    }

    /// Keeps the answer of these rows and digest to a text, unless it has one, the answer is known,
    /// or there is no room for it.
    pub fn offer(&self, text: u64, content: (u64, u64), answer: &[u8]) {
        if self.known.get(&text) == Some(&content) {
            return;
        }
        let mut inner = self.inner.lock().expect("nothing panics with this lock");
        if inner.bytes + answer.len() > self.most_bytes || inner.answers.contains_key(&text) {
            return;
        }
        inner.bytes += answer.len();
        inner.answers.insert(text, answer.into());
    }

    /// The answer to a text.
    pub fn get(&self, text: u64) -> Option<Vec<u8>> {
        let inner = self.inner.lock().expect("nothing panics with this lock");
        inner.answers.get(&text).map(|answer| answer.to_vec())
    }

    /// The texts, in ascending order.
    pub fn texts(&self) -> Vec<u64> {
        let inner = self.inner.lock().expect("nothing panics with this lock");
        let mut texts: Vec<u64> = inner.answers.keys().copied().collect();
        texts.sort_unstable();
        texts
    }

    /// Bytes it has room for.
    pub fn most_bytes(&self) -> usize {
        self.most_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answers_are_kept_as_far_as_there_is_room() {
        let kept = KeptAnswers::new(10);
        kept.offer(2, (1, 1), b"123456");
        kept.offer(2, (1, 1), b"another");
        kept.offer(1, (1, 1), b"too long");
        kept.offer(3, (1, 1), b"1234");
        kept.offer(4, (1, 1), b"5");
        assert_eq!(kept.texts(), [2, 3]);
        assert_eq!((kept.get(2), kept.get(1)), (Some(b"123456".to_vec()), None));
        let unlike = KeptAnswers::new(10).unlike(HashMap::from([(1, (5, 7)), (2, (5, 7))]));
        unlike.offer(1, (5, 7), b"same");
        unlike.offer(2, (5, 8), b"other");
        assert_eq!(unlike.texts(), [2]);
    }
}
