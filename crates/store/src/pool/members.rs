//! The stores that share a set of frames: each has its own translation and its own meters.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::frames::OwnedPage;
use super::lazy::LazyWords;
use super::rule::Rule;
use super::word;
use crate::page::TreeId;

/// The rule that brought a page which was not used yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brought {
    pub by: Rule,
    /// It came after the last reset of the meters.
    pub is_counted: bool,
}

/// Called for each page that had to leave: its tree, and the rule that had brought it if it was
/// never used. The frames are locked meanwhile.
pub type OnEvicted = Box<dyn Fn(TreeId, Option<Rule>) + Send + Sync>;

/// A store among those that share the frames.
pub struct Member {
    /// A word for each page.
    pub table: LazyWords,
    /// Times its meters were reset, as far as words tell them apart.
    pub generation: AtomicU64,
    pub on_evicted: OnEvicted,
}

impl Member {
    /// The rule that brought the unused page of a word.
    pub fn brought(&self, w: u64) -> Option<Brought> {
        Rule::from_bits(word::rule(w)).map(|by| Brought { by, is_counted: self.counted(w).is_some() })
    }

    /// The rule that brought the page of a word, if it is unused and came after the last
    /// reset of the meters.
    pub fn counted(&self, w: u64) -> Option<Rule> {
        let is_new = word::generation(w) == self.generation.load(Relaxed);
        Rule::from_bits(word::rule(w)).filter(|_| is_new)
    }
}

/// The stores by their numbers; a number is given again when its store has left.
#[derive(Default)]
pub struct Members(Vec<Option<Arc<Member>>>);

impl Members {
    /// Takes a store in and returns its number; `None` when there are too many.
    pub fn join(&mut self, member: Arc<Member>) -> Option<u16> {
        let free = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        // The highest number would not fit into a frame's word beside the page.
        let number = u16::try_from(free).ok().filter(|n| *n < u16::MAX)?;
        if free == self.0.len() {
            self.0.push(None);
        }
        self.0[free] = Some(member);
        Some(number)
    }

    /// Lets a store go; no frame may hold a page of it.
    pub fn leave(&mut self, member: u16) {
        let left = self.0[member as usize].take();
        assert!(left.is_some(), "a store leaves once");
    }

    /// A store that has not left.
    pub fn get(&self, member: u16) -> &Arc<Member> {
        self.0[member as usize].as_ref().expect("a page that is held belongs to a store that is open")
    }

    /// The word of a page.
    pub fn word(&self, page: OwnedPage) -> &AtomicU64 {
        self.get(page.member).table.at(page.page.0)
    }

    /// Stores that share the frames now.
    pub fn count(&self) -> usize {
        self.0.iter().flatten().count()
    }
}
