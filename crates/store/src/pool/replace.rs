//! Which frame is used next: never-used frames first, then returned ones, then the cold end,
//! then the clock.
//!
//! 1. *Fresh* frames are handed out in order until each was used once: only then does memory
//!    become scarce.
//! 2. The *cold end* is a queue of frames filled by guesses (whole extents, the warm list).
//!    Unused guesses are evicted in the order of arrival: before anything else when guesses hold
//!    more than a quarter of the frames, else for a quarter of the frames taken. So guesses do
//!    not push out pages in use, and dead guesses do not stay for ever.
//! 3. The *clock*'s hand passes over all frames: a page touched since the last round is spared
//!    once, an unused guess is left to the cold end. A page enters unreferenced just behind the
//!    hand, so it has a full round to be touched again.
//!
//! A batch (the pages of an extent, as a rule) takes its frames from one end; at the cold end,
//! those of the oldest that lie together. It gets them in ascending order, so that an extent comes
//! into few stretches of memory.
//!
//! Exactly planned pages are no guesses: they enter like pages read on demand. Invariant: a
//! frame is in at most one of (fresh, returned, holding a page), so it is handed out once.
//!
//! *Regret*: a page that was used and has left is marked until a quarter as many others as there
//! are frames have left after it. If it is wanted while it is marked, it would still be there had
//! the guesses, which may hold that many frames, not taken its place. The share of such pages is
//! the worth of a frame to pages that are not guesses.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::frames::{Frames, OwnedPage};
use super::members::Members;
use super::rule::Rule;
use super::word;

/// A page that was thrown out.
#[derive(Clone, Copy, Debug)]
pub struct Evicted {
    pub frame: u32,
    /// Whose page it was.
    pub member: u16,
    /// Its word before.
    pub word: u64,
}

/// Frames for a reader that needs some, and the pages that were evicted from them.
#[derive(Default, Debug)]
pub struct Taken {
    pub frames: Vec<u32>,
    pub evicted: Vec<Evicted>,
}

/// State of replacement; one mutex around it, taken once per batch of misses.
#[derive(Debug)]
pub struct Replacer {
    count: u32,
    fresh: u32,
    returned: Vec<u32>,
    hand: u32,
    /// Frames handed out since the cold end last gave its share.
    owed: usize,
    cold: VecDeque<(u32, OwnedPage)>,
    /// Pages that were used and left lately, in order.
    left: VecDeque<OwnedPage>,
    /// Number of pages that ever did.
    left_count: u64,
}

/// Where frames are evicted first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EvictFrom {
    Cold,
    Clock,
}

/// Result of a look at one frame.
enum Verdict {
    Taken(Evicted),
    Spared,
    Kept,
}

impl Replacer {
    pub fn new(count: u32) -> Self {
        Replacer {
            count,
            fresh: 0,
            returned: Vec::new(),
            hand: 0,
            owed: 0,
            cold: VecDeque::new(),
            left: VecDeque::new(),
            left_count: 0,
        }
    }

    /// True when every frame was used once.
    pub fn is_full(&self) -> bool {
        self.fresh == self.count
    }

    /// Frames never used so far.
    pub fn fresh_left(&self) -> u32 {
        self.count - self.fresh
    }

    /// Gives a frame back that holds no page.
    pub fn give_back(&mut self, frame: u32) {
        assert!(frame < self.fresh, "only a frame that was handed out is given back");
        assert!(self.returned.len() < self.fresh as usize, "no more frames come back than were handed out");
        debug_assert!(!self.returned.contains(&frame), "a frame is given back once");
        self.returned.push(frame);
    }

    /// Notes a frame filled by a guess.
    pub fn add_cold(&mut self, frame: u32, page: OwnedPage) {
        assert!(frame < self.fresh, "a frame that holds a page was used");
        self.cold.push_back((frame, page));
    }

    /// Takes up to `want` frames; fewer when the others are pinned or in flight. Never waits.
    /// They come in ascending order, and as neighbours where that can be had.
    pub fn take(&mut self, want: usize, frames: &Frames, members: &Members) -> Taken {
        let mut taken = Taken::default();
        let end = self.end_for(want);
        let left = want.saturating_sub(self.returned.len() + self.fresh_left() as usize);
        if end == EvictFrom::Cold && left > 1 {
            self.evict_cold_neighbours(left, frames, members, &mut taken);
        }
        while taken.frames.len() < want {
            if let Some(f) = self.returned.pop() {
                assert!(frames.page(f).is_none(), "a frame that came back holds no page");
                taken.frames.push(f);
            } else if self.fresh < self.count {
                taken.frames.push(self.fresh);
                self.fresh += 1;
            } else if let Some(e) = self.evict(end, frames, members) {
                taken.frames.push(e.frame);
                taken.evicted.push(e);
            } else {
                break;
            }
        }
        taken.frames.sort_unstable();
        assert!(taken.frames.is_sorted_by(|a, b| a < b), "a frame is handed out once");
        assert!(taken.evicted.len() <= taken.frames.len(), "each page that left had a frame");
        taken
    }

    /// The end that the frames of a batch come from. The cold end gives a quarter of all frames,
    /// but to whole batches, because the frames of a batch are neighbours only at one end.
    fn end_for(&mut self, want: usize) -> EvictFrom {
        self.owed += want;
        if self.cold.len() > self.count as usize / 4 {
            self.owed = 0;
            return EvictFrom::Cold;
        }
        if self.owed < 4 * want {
            return EvictFrom::Clock;
        }
        self.owed -= 4 * want;
        EvictFrom::Cold
    }

    fn evict(&mut self, end: EvictFrom, frames: &Frames, members: &Members) -> Option<Evicted> {
        if end == EvictFrom::Cold
            && let Some(e) = self.evict_cold(frames, members)
        {
            return Some(e);
        }
        self.evict_by_clock(frames, members).or_else(|| self.evict_cold(frames, members))
    }

    /// Evicts up to `want` of the oldest unused guesses. It looks at a few times as many and takes
    /// those whose frames lie together; the others keep their turn.
    fn evict_cold_neighbours(&mut self, want: usize, frames: &Frames, members: &Members, taken: &mut Taken) {
        /// The oldest that are looked at, for each that is wanted.
        const CHOICE: usize = 4;
        let among = (CHOICE * want).min(self.cold.len());
        let mut oldest: Vec<(u32, OwnedPage)> = self.cold.drain(..among).collect();
        oldest.retain(|&(frame, page)| {
            let word = members.word(page);
            let w = word.load(Acquire);
            if !is_guess_in(w, frame) {
                return false;
            }
            let evictable = word::state(w) == word::RESIDENT && word::pins(w) == 0;
            if !evictable || w & word::REFERENCED != 0 {
                // As in `evict_cold`: spared once, or looked at again later.
                word.fetch_and(if evictable { !word::REFERENCED } else { !0 }, Relaxed);
                self.cold.push_back((frame, page));
                return false;
            }
            true
        });
        let mut by_frame = oldest.clone();
        by_frame.sort_unstable();
        let mut runs: Vec<&[(u32, OwnedPage)]> = by_frame.chunk_by(|a, b| a.0 + 1 == b.0).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.len().min(want)));
        for &(frame, page) in runs.into_iter().flatten().take(want) {
            let word = members.word(page);
            let w = word.load(Acquire);
            if is_guess_in(w, frame)
                && let Verdict::Taken(e) = try_evict(frames, page, word, w, 0)
            {
                taken.frames.push(e.frame);
                taken.evicted.push(e);
            }
        }
        let stays = |(frame, page): &(u32, OwnedPage)| is_guess_in(members.word(*page).load(Relaxed), *frame);
        for entry in oldest.into_iter().rev().filter(stays) {
            self.cold.push_front(entry);
        }
    }

    /// Evicts the oldest unused guess. Used ones leave the queue, and those still in flight go to
    /// its end. So does, once, a guess that was marked for a coming use: if that use never comes it
    /// must leave, and the clock leaves guesses alone. Two rounds at most.
    fn evict_cold(&mut self, frames: &Frames, members: &Members) -> Option<Evicted> {
        for _ in 0..2 * self.cold.len() {
            let (frame, page) = self.cold.pop_front()?;
            let word = members.word(page);
            let w = word.load(Acquire);
            if !is_guess_in(w, frame) {
                continue;
            }
            match try_evict(frames, page, word, w, 0) {
                Verdict::Taken(e) => return Some(e),
                Verdict::Spared => {
                    word.fetch_and(!word::REFERENCED, Relaxed);
                    self.cold.push_back((frame, page));
                }
                Verdict::Kept => self.cold.push_back((frame, page)),
            }
        }
        None
    }

    /// Two rounds at most: the first may only clear marks.
    fn evict_by_clock(&mut self, frames: &Frames, members: &Members) -> Option<Evicted> {
        for _ in 0..2 * self.count as u64 {
            let frame = self.hand;
            self.hand = if frame + 1 == self.count { 0 } else { frame + 1 };
            let Some(page) = frames.page(frame) else { continue };
            let word = members.word(page);
            let w = word.load(Acquire);
            if word::state(w) != word::RESIDENT || word::frame(w) != frame || is_guess(w) {
                continue;
            }
            if w & word::REFERENCED != 0 {
                word.fetch_and(!word::REFERENCED, Relaxed);
                continue;
            }
            let used = word::rule(w) == 0;
            if let Verdict::Taken(e) = try_evict(frames, page, word, w, if used { word::LATELY } else { 0 }) {
                if used {
                    self.note_left(page, members);
                }
                return Some(e);
            }
        }
        None
    }

    fn note_left(&mut self, page: OwnedPage, members: &Members) {
        self.left.push_back(page);
        self.left_count += 1;
        if self.left.len() > self.count as usize / 4
            && let Some(old) = self.left.pop_front()
        {
            members.word(old).fetch_and(!word::LATELY, Relaxed);
        }
    }

    /// Forgets the pages of a member that leaves.
    pub fn forget(&mut self, member: u16) {
        self.cold.retain(|(_, page)| page.member != member);
        self.left.retain(|page| page.member != member);
    }

    /// Frames that were used so far: those before this one.
    pub fn used(&self) -> u32 {
        self.fresh
    }

    /// Pages that were used and left, ever.
    pub fn left_count(&self) -> u64 {
        self.left_count
    }
}

/// True while the page of a word is in this frame, or on its way there, and unused.
fn is_guess_in(w: u64, frame: u32) -> bool {
    word::state(w) != 0 && word::frame(w) == frame && word::rule(w) != 0
}

/// Unused pages of the rules that guess; those of a plan or a scan will be used.
fn is_guess(w: u64) -> bool {
    Rule::from_bits(word::rule(w)).is_some_and(|r| r.is_guess())
}

/// Evicts a page, whose word this is, unless it is pinned or was touched; `mark` stays in its word.
fn try_evict(frames: &Frames, page: OwnedPage, word: &AtomicU64, w: u64, mark: u64) -> Verdict {
    if word::state(w) != word::RESIDENT || word::pins(w) != 0 {
        return Verdict::Kept;
    }
    if w & word::REFERENCED != 0 {
        return Verdict::Spared;
    }
    let absent = w & word::VERSIONED | mark;
    match word.compare_exchange(w, absent, std::sync::atomic::Ordering::AcqRel, Relaxed) {
        Ok(_) => {
            let frame = word::frame(w);
            assert_eq!(frames.page(frame), Some(page), "word and frame name each other");
            frames.set_page(frame, None);
            Verdict::Taken(Evicted { frame, member: page.member, word: w })
        }
        Err(_) => Verdict::Kept,
    }
}
