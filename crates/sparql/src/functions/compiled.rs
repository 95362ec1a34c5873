//! Patterns of constant text, compiled when a query begins to run.
//!
//! Compiling one takes up to tens of milliseconds and a megabyte, and a query may have thousands.
//! So the limits are checked before each, its memory is charged to the query, and it is kept for a
//! while, for the query's other threads and for later queries.

use std::sync::Arc;

use parking_lot::Mutex;

use super::TextPattern;
use crate::bounds::Held;
use crate::value::{TermError, Terms};

/// Patterns kept, and bytes that they take; the least recently used goes first.
const KEPT: usize = 32;
const KEPT_BYTES: usize = 2 << 20;

struct Kept {
    pattern: String,
    flags: String,
    /// `None`: it is malformed
    compiled: Option<TextPattern>,
}

impl Kept {
    fn bytes(&self) -> usize {
        self.pattern.len() + self.compiled.as_ref().map_or(0, TextPattern::bytes)
    }
}

/// The patterns that an engine keeps, the last used last.
#[derive(Default)]
pub(crate) struct KeptPatterns(Mutex<Vec<Kept>>);

impl KeptPatterns {
    fn find(&self, pattern: &str, flags: &str) -> Option<Option<TextPattern>> {
        let mut kept = self.0.lock();
        let at = kept.iter().position(|k| k.pattern == pattern && k.flags == flags)?;
        let found = kept.remove(at);
        let compiled = found.compiled.clone();
        kept.push(found);
        Some(compiled)
    }

    fn keep(&self, new: Kept) {
        if new.bytes() > KEPT_BYTES {
            return;
        }
        let mut kept = self.0.lock();
        let mut bytes = new.bytes() + kept.iter().map(Kept::bytes).sum::<usize>();
        while bytes > KEPT_BYTES || kept.len() >= KEPT {
            bytes -= kept.remove(0).bytes();
        }
        kept.push(new);
    }
}

/// The patterns of one thread of a query.
#[derive(Default)]
pub struct Patterns {
    kept: Arc<KeptPatterns>,
    held: Held,
}

impl Patterns {
    /// The patterns of a query, whose memory is held for it.
    pub(crate) fn new(kept: Arc<KeptPatterns>, held: Held) -> Self {
        Self { kept, held }
    }

    /// A compiled pattern; `None` when the pattern or a flag is malformed.
    pub(crate) fn compile(
        &mut self,
        pattern: &str,
        flags: &str,
        terms: &Terms,
    ) -> Result<Option<TextPattern>, TermError> {
        terms.check()?;
        let compiled = self.kept.find(pattern, flags).unwrap_or_else(|| {
            let compiled = TextPattern::new(pattern, flags);
            let (pattern, flags) = (pattern.to_owned(), flags.to_owned());
            self.kept.keep(Kept { pattern, flags, compiled: compiled.clone() });
            compiled
        });
        if let Some(compiled) = &compiled {
            self.held.add(compiled.bytes(), "compiled patterns")?;
        }
        Ok(compiled)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::bounds::Limits;
    use crate::value::TermBounds;

    #[test]
    fn a_pattern_is_compiled_once_and_the_oldest_go() {
        let (mut patterns, terms) = (Patterns::default(), Terms::for_test(100));
        let kept = Arc::clone(&patterns.kept);
        for pattern in ["a", "b", "a", "(", "("] {
            let compiled = patterns.compile(pattern, "", &terms).unwrap();
            assert_eq!(compiled.is_some(), pattern != "(");
        }
        let names = || kept.0.lock().iter().map(|k| k.pattern.clone()).collect::<Vec<_>>();
        assert_eq!(names(), ["b", "a", "("]);
        for number in 0..2 * KEPT {
            patterns.compile(&number.to_string(), "", &terms).unwrap();
        }
        assert!(names().len() <= KEPT && !names().contains(&"a".to_owned()));
        assert!(kept.0.lock().iter().map(Kept::bytes).sum::<usize>() <= KEPT_BYTES);
    }

    #[test]
    fn each_is_preceded_by_a_look_at_the_clock() {
        let cancel = Arc::new(AtomicBool::new(true));
        let limits = Limits { cancel: Some(cancel), ..Limits::default() };
        let terms = Terms::for_test(100).guarded(TermBounds::for_test(limits));
        let ended = Patterns::default().compile("a", "", &terms);
        assert!(matches!(ended, Err(TermError::Cancelled)));
    }
}
