//! Searches in long texts that look, while they run, whether the query has to end.
//!
//! A search of the regex crate cannot be interrupted, and a hostile pattern costs microseconds per
//! byte. A text that is long for its pattern is searched here, with the lazy DFAs that the crate
//! itself uses (regex-automata), byte by byte:
//!
//! 1. a forward DFA finds the end of the leftmost match;
//! 2. a reverse DFA, from there, finds its start;
//! 3. groups are found within the match only, in one go; the caller bounds its length.

use std::ops::Range;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input, MatchKind, meta};

/// Bytes of a DFA's states; when they are used up it begins anew.
pub(super) const DFA_BYTES: usize = 512 << 10;

/// Bytes searched between two looks: at some microseconds each within a tenth of a second.
const LOOK_BYTES: usize = 16 << 10;

/// Why a search has no result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The query has to end, for a reason that was noted.
    Query,
    /// The engine gave up: it would take more states or steps than it may.
    Unsearchable,
}

/// The automata of one pattern.
#[derive(Debug)]
pub(super) struct Automata {
    forward: DFA,
    reverse: DFA,
    groups: meta::Regex,
}

/// A search under way, with the states that were made for it.
pub(super) struct Search<'a> {
    automata: &'a Automata,
    forward: Cache,
    reverse: Cache,
}

impl Automata {
    /// None for a pattern that has no DFA of the size.
    pub fn new(pattern: &str, compiled_bytes: usize) -> Option<Self> {
        let dfa = |kind, reverse| {
            // backwards the encoding of characters takes more states
            let most = compiled_bytes << u32::from(reverse);
            let nfa = thompson::Config::new().reverse(reverse).nfa_size_limit(Some(2 * most));
            let config = DFA::config().match_kind(kind).cache_capacity(DFA_BYTES);
            DFA::builder().configure(config).thompson(nfa).build(pattern).ok()
        };
        let groups = meta::Regex::config().nfa_size_limit(Some(compiled_bytes));
        let groups = groups.hybrid_cache_capacity(DFA_BYTES);
        Some(Self {
            forward: dfa(MatchKind::LeftmostFirst, false)?,
            reverse: dfa(MatchKind::All, true)?,
            groups: meta::Builder::new().configure(groups).build(pattern).ok()?,
        })
    }

    /// A search that has seen nothing yet.
    pub fn search(&self) -> Search<'_> {
        let (forward, reverse) = (self.forward.create_cache(), self.reverse.create_cache());
        Search { automata: self, forward, reverse }
    }

    /// The groups of a match that is known, by number; those that are not there are empty.
    pub fn groups<'t>(&self, text: &'t str, found: Range<usize>) -> Vec<&'t str> {
        let mut captures = self.groups.create_captures();
        let input = Input::new(text).span(found).anchored(Anchored::Yes);
        self.groups.search_captures(&input, &mut captures);
        captures.iter().map(|group| group.map_or("", |group| &text[group.range()])).collect()
    }
}

impl Search<'_> {
    /// Whether there is a match; `look` says whether the query may go on.
    pub fn is_match(&mut self, text: &str, look: impl FnMut() -> Option<()>) -> Result<bool, Stopped> {
        Ok(self.end(text, 0, true, look)?.is_some())
    }

    /// The leftmost match that begins at `from` or later.
    pub fn find(
        &mut self,
        text: &str,
        from: usize,
        mut look: impl FnMut() -> Option<()>,
    ) -> Result<Option<Range<usize>>, Stopped> {
        let Some(end) = self.end(text, from, false, &mut look)? else { return Ok(None) };
        let start = self.start(text, from..end, look)?;
        Ok(Some(start..end))
    }

    /// Where the leftmost match ends; any match if the `earliest` will do.
    fn end(
        &mut self,
        text: &str,
        from: usize,
        earliest: bool,
        mut look: impl FnMut() -> Option<()>,
    ) -> Result<Option<usize>, Stopped> {
        let (dfa, cache) = (&self.automata.forward, &mut self.forward);
        let unsearchable = |_| Stopped::Unsearchable;
        let input = Input::new(text).span(from..text.len());
        let mut state = dfa.start_state_forward(cache, &input).map_err(|_| Stopped::Unsearchable)?;
        let mut end = None;
        for (chunk, bytes) in text.as_bytes()[from..].chunks(LOOK_BYTES).enumerate() {
            look().ok_or(Stopped::Query)?;
            for (i, &byte) in bytes.iter().enumerate() {
                state = dfa.next_state(cache, state, byte).map_err(unsearchable)?;
                if !state.is_tagged() {
                    continue;
                }
                if state.is_match() {
                    // a match is told one byte late
                    end = Some(from + chunk * LOOK_BYTES + i);
                    if earliest {
                        return Ok(end);
                    }
                } else if state.is_dead() {
                    return Ok(end);
                } else if state.is_quit() {
                    return Err(Stopped::Unsearchable);
                }
            }
        }
        state = dfa.next_eoi_state(cache, state).map_err(unsearchable)?;
        Ok(if state.is_match() { Some(text.len()) } else { end })
    }

    /// Where the match begins that ends with `span`.
    fn start(
        &mut self,
        text: &str,
        span: Range<usize>,
        mut look: impl FnMut() -> Option<()>,
    ) -> Result<usize, Stopped> {
        let (dfa, cache) = (&self.automata.reverse, &mut self.reverse);
        let unsearchable = |_| Stopped::Unsearchable;
        let input = Input::new(text).span(span.clone()).anchored(Anchored::Yes);
        let mut state = dfa.start_state_reverse(cache, &input).map_err(|_| Stopped::Unsearchable)?;
        let mut start = None;
        for at in span.clone().rev() {
            if (span.end - at).is_multiple_of(LOOK_BYTES) {
                look().ok_or(Stopped::Query)?;
            }
            state = dfa.next_state(cache, state, text.as_bytes()[at]).map_err(unsearchable)?;
            if state.is_match() {
                start = Some(at + 1);
            } else if state.is_dead() {
                return start.ok_or(Stopped::Unsearchable);
            } else if state.is_quit() {
                return Err(Stopped::Unsearchable);
            }
        }
        let before = span.start.checked_sub(1).map(|at| text.as_bytes()[at]);
        state = match before {
            Some(byte) => dfa.next_state(cache, state, byte).map_err(unsearchable)?,
            None => dfa.next_eoi_state(cache, state).map_err(unsearchable)?,
        };
        if state.is_quit() {
            return Err(Stopped::Unsearchable);
        }
        let start = if state.is_match() { Some(span.start) } else { start };
        start.ok_or(Stopped::Unsearchable)
    }
}
