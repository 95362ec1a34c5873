//! A coarse order of stored texts, learned while they are read.
//!
//! The dictionary numbers terms as they come. MIN, MAX, ORDER BY with a limit and conditions on the
//! beginning of a text ask for another order. So when one of these reads a text, its *rank* is
//! kept: how many of some thousand sampled texts, the *pivots*, are not above it. Texts with
//! different ranks are in the order of their ranks, and need not be read to be compared.
//!
//! A rank is that of a string of the dictionary, which never changes once it is committed. Others
//! get none. Where pivots turn out to divide the texts badly, others are chosen from a sample of
//! all that was read, and ranks are learned anew.
//!
//! Ranks take two bytes for a text, of the database's memory, and at most a share of it. They are
//! lost when the database is closed.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use snowmelt_database::{MemoryBudget, Reservation};
use snowmelt_graph::{TermId, TermKind, Tree};

/// Most pivots, and bytes of each that count.
const MOST_PIVOTS: usize = 4096;
const PIVOT_BYTES: usize = 128;
/// Texts from which pivots are chosen at least.
const LEAST_TEXTS: u64 = 256;
/// Texts with ranks that lie together.
const CHUNK: usize = 4096;
type Chunk = [AtomicU16; CHUNK];
/// The part of the database's memory that ranks may take.
const SHARE: u64 = 32;
/// One in so many texts is sampled once there are pivots.
const SAMPLED: u64 = 16;
/// New pivots are chosen when so many times as many texts have been seen as when the last were, if
/// a rank has so many times its share of them.
const GROWN: u64 = 4;
const UNEVEN: u64 = 8;
/// And when so many times as many have been seen, if pivots are few.
const MUCH_GROWN: u64 = 16;

const TREES: usize = Tree::ALL.len();

/// Names the dictionary of a session, and says how many strings of each of its trees are committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommittedStrings {
    /// Its name, which ascends.
    pub dictionary: u64,
    /// By tree.
    pub strings: [u64; TREES],
}

/// The ranks of a database.
pub(crate) struct TextRanks {
    budget: MemoryBudget,
    dictionary: Mutex<Option<Arc<DictionaryRanks>>>,
}

/// The ranks of a dictionary.
struct DictionaryRanks {
    dictionary: u64,
    trees: [TreePlace; TREES],
    room: Mutex<Room>,
}

struct Room {
    reserved: Reservation,
    most: u64,
}

/// The ranks of a tree, once it has pivots.
#[derive(Default)]
struct TreePlace {
    ranks: RwLock<Option<Arc<TreeRanks>>>,
    sample: Mutex<TextSample>,
}

struct TreeRanks {
    pivots: Pivots,
    /// by number; 0: not known, otherwise the rank and one
    chunks: Box<[OnceLock<Box<Chunk>>]>,
    /// texts by rank
    texts: Box<[AtomicU32]>,
    learned: AtomicU64,
    /// texts seen when the pivots were chosen
    chosen_at: u64,
}

impl TextRanks {
    pub fn new(budget: MemoryBudget) -> Self {
        Self { budget, dictionary: Mutex::default() }
    }

    /// Those of a session for a batch.
    pub fn of(&self, committed: CommittedStrings) -> Option<Ranking> {
        let mut known = self.dictionary.lock();
        let dictionary = match &*known {
            Some(ranks) if ranks.dictionary == committed.dictionary => ranks.clone(),
            // sessions of an older dictionary do without
            Some(ranks) if ranks.dictionary > committed.dictionary => return None,
            _ => {
                let reserved = self.budget.reserve("the order of texts", 0).ok()?;
                let room = Room { reserved, most: self.budget.total() / SHARE };
                let (trees, room) = (Default::default(), Mutex::new(room));
                let made = Arc::new(DictionaryRanks { dictionary: committed.dictionary, trees, room });
                known.insert(made).clone()
            }
        };
        drop(known);
        let trees = std::array::from_fn(|tree| dictionary.trees[tree].ranks.read().clone());
        Some(Ranking { dictionary, trees, committed: committed.strings, seen: [0; TREES] })
    }
}

/// The ranks of a dictionary, as one batch uses them and adds to them.
pub(crate) struct Ranking {
    dictionary: Arc<DictionaryRanks>,
    trees: [Option<Arc<TreeRanks>>; TREES],
    committed: [u64; TREES],
    seen: [u64; TREES],
}

impl Ranking {
    /// The rank of a term's text, if it is known.
    #[inline]
    pub fn rank(&self, id: TermId) -> Option<u16> {
        let ranks = self.trees[Tree::holding(id.kind())? as usize].as_ref()?;
        let number = id.number() as usize;
        let chunk = ranks.chunks.get(number / CHUNK)?.get()?;
        chunk[number % CHUNK].load(Ordering::Relaxed).checked_sub(1)
    }

    /// The ranks of texts that begin with one: the texts of all ranks but the first and the last of
    /// them surely do.
    pub fn of_beginning(&self, kind: TermKind, text: &str) -> Option<(u16, u16)> {
        let ranks = self.trees[Tree::holding(kind)? as usize].as_ref()?;
        Some(ranks.pivots.of_beginning(text.as_bytes()))
    }

    /// Whether ranks of more texts can be kept.
    pub fn has_room(&self) -> bool {
        let room = self.dictionary.room.lock();
        room.reserved.bytes() + size_of::<Chunk>() as u64 <= room.most
    }

    /// A term's text was read.
    #[inline]
    pub fn learn(&mut self, id: TermId, text: &str) {
        let Some(tree) = Tree::holding(id.kind()) else { return };
        let tree = tree as usize;
        if id.number() >= self.committed[tree] {
            return;
        }
        let is_new = match &self.trees[tree] {
            Some(ranks) => ranks.learn(id.number() as usize, text, &self.dictionary.room),
            None => true,
        };
        if !is_new {
            return;
        }
        self.seen[tree] += 1;
        let of = if self.trees[tree].is_some() { SAMPLED } else { 1 };
        if self.seen[tree].is_multiple_of(of) {
            self.dictionary.trees[tree].sample.lock().take(text, of);
        }
    }

    /// Chooses pivots where texts have none, or where they are uneven.
    fn choose(&self, tree: usize) {
        let place = &self.dictionary.trees[tree];
        let sample = place.sample.lock();
        let seen = sample.seen;
        let is_wanted = |ranks: &TreeRanks| {
            let grown = seen / ranks.chosen_at;
            grown >= GROWN && ranks.is_uneven() || grown >= MUCH_GROWN && ranks.has_few_pivots()
        };
        let mut ranks = place.ranks.write();
        let is_wanted = match &*ranks {
            None => seen >= LEAST_TEXTS,
            Some(ranks) => is_wanted(ranks),
        };
        if !is_wanted {
            return;
        }
        let pivots = Pivots::new(&sample.texts);
        let made = TreeRanks::new(pivots, self.committed[tree], seen);
        let mut room = self.dictionary.room.lock();
        if room.take(made.bytes()) {
            room.reserved.shrink(ranks.as_ref().map_or(0, |ranks| ranks.bytes()));
            *ranks = Some(Arc::new(made));
        }
    }
}

impl Drop for Ranking {
    fn drop(&mut self) {
        for tree in 0..TREES {
            if self.seen[tree] > 0 {
                self.choose(tree);
            }
        }
    }
}

impl Room {
    fn take(&mut self, bytes: u64) -> bool {
        self.reserved.bytes() + bytes <= self.most && self.reserved.grow("the order of texts", bytes).is_ok()
    }
}

impl TreeRanks {
    /// With no ranks yet, for `strings` strings and some more.
    fn new(pivots: Pivots, strings: u64, chosen_at: u64) -> Self {
        let chunks = strings as usize / CHUNK * 9 / 8 + 64;
        let texts = (0..=pivots.heads.len()).map(|_| AtomicU32::new(0)).collect();
        let chunks = (0..chunks).map(|_| OnceLock::new()).collect();
        Self { pivots, chunks, texts, learned: AtomicU64::new(0), chosen_at }
    }

    /// Bytes held.
    fn bytes(&self) -> u64 {
        let chunks = self.chunks.iter().filter(|chunk| chunk.get().is_some()).count();
        let fixed = self.chunks.len() * size_of::<OnceLock<usize>>() + self.texts.len() * 4;
        // the sample has as many bytes as the pivots
        (fixed + 2 * self.pivots.bytes() + chunks * size_of::<Chunk>()) as u64
    }

    /// Whether the text's rank was not known, and is now.
    fn learn(&self, number: usize, text: &str, room: &Mutex<Room>) -> bool {
        let Some(chunk) = self.chunks.get(number / CHUNK).and_then(|place| chunk(place, room)) else {
            return false;
        };
        let rank = &chunk[number % CHUNK];
        if rank.load(Ordering::Relaxed) != 0 {
            return false;
        }
        let found = self.pivots.rank(text.as_bytes());
        rank.store(found + 1, Ordering::Relaxed);
        self.texts[usize::from(found)].fetch_add(1, Ordering::Relaxed);
        self.learned.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn has_few_pivots(&self) -> bool {
        self.pivots.heads.len() < MOST_PIVOTS / 2
    }

    /// Whether some texts have too many others of their rank.
    fn is_uneven(&self) -> bool {
        let learned = self.learned.load(Ordering::Relaxed);
        let most = self.texts.iter().map(|texts| texts.load(Ordering::Relaxed)).max().unwrap_or(0);
        u64::from(most) > UNEVEN * (learned / self.texts.len() as u64 + 1)
    }
}

/// The chunk of a place, made if there is room for it.
fn chunk<'a>(place: &'a OnceLock<Box<Chunk>>, room: &Mutex<Room>) -> Option<&'a Chunk> {
    if let Some(chunk) = place.get() {
        return Some(chunk);
    }
    if !room.lock().take(size_of::<Chunk>() as u64) {
        return None;
    }
    let mut is_made = false;
    let chunk = place.get_or_init(|| {
        is_made = true;
        Box::new([const { AtomicU16::new(0) }; CHUNK])
    });
    if !is_made {
        // another thread was quicker
        room.lock().reserved.shrink(size_of::<Chunk>() as u64);
    }
    Some(chunk)
}

/// A random sample of the texts that were read.
#[derive(Default)]
struct TextSample {
    texts: Vec<Box<[u8]>>,
    /// each sampled one stands for some
    seen: u64,
    taken: u64,
    random: u64,
}

impl TextSample {
    /// Takes one of `of` texts.
    fn take(&mut self, text: &str, of: u64) {
        let bytes = &text.as_bytes()[..text.len().min(PIVOT_BYTES)];
        self.seen += of;
        self.taken += 1;
        if self.texts.len() < MOST_PIVOTS {
            self.texts.push(bytes.into());
            return;
        }
        // reservoir sampling (Vitter, algorithm R), with numbers of a Weyl sequence that is mixed
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.random ^ (self.random >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let place = ((u128::from(mixed) * u128::from(self.taken)) >> 64) as usize;
        if let Some(old) = self.texts.get_mut(place) {
            *old = bytes.into();
        }
    }
}

/// Sampled texts, ascending and distinct.
struct Pivots {
    /// all begin so
    shared: Vec<u8>,
    /// the next eight bytes of each
    heads: Vec<u64>,
    /// where each ends in `rests`, which has them without their common beginning
    ends: Vec<u32>,
    rests: Vec<u8>,
}

impl Pivots {
    fn new(texts: &[Box<[u8]>]) -> Self {
        let mut sorted: Vec<&[u8]> = texts.iter().map(|text| &**text).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let (first, last) = (sorted.first().copied().unwrap_or(&[]), sorted.last().copied().unwrap_or(&[]));
        let same = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let mut pivots = Self { shared: first[..same].to_vec(), heads: vec![], ends: vec![], rests: vec![] };
        for text in sorted {
            pivots.heads.push(head(&text[same..]));
            pivots.rests.extend_from_slice(&text[same..]);
            pivots.ends.push(pivots.rests.len() as u32);
        }
        pivots
    }

    fn bytes(&self) -> usize {
        self.shared.capacity() + self.rests.capacity() + self.heads.capacity() * 8 + self.ends.capacity() * 4
    }

    fn rest(&self, pivot: usize) -> &[u8] {
        let start = if pivot == 0 { 0 } else { self.ends[pivot - 1] };
        &self.rests[start as usize..self.ends[pivot] as usize]
    }

    /// How many are not above a text.
    fn rank(&self, text: &[u8]) -> u16 {
        let Some(rest) = text.strip_prefix(&*self.shared) else {
            return if text < &*self.shared { 0 } else { self.heads.len() as u16 };
        };
        let head = head(rest);
        let mut low = self.heads.partition_point(|other| *other < head);
        let mut high = low + self.heads[low..].partition_point(|other| *other == head);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.rest(middle) <= rest { low = middle + 1 } else { high = middle }
        }
        low as u16
    }

    /// The ranks that texts with this beginning may have.
    fn of_beginning(&self, text: &[u8]) -> (u16, u16) {
        let first = self.rank(text);
        // the least text that is above all of them
        let Some(at) = text.iter().rposition(|byte| *byte < 0xFF) else {
            return (first, self.heads.len() as u16);
        };
        let mut above = text[..=at].to_vec();
        above[at] += 1;
        (first, self.rank(&above))
    }
}

/// The first eight bytes, as a number that is ordered as they are.
fn head(text: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = text.len().min(8);
    first[..len].copy_from_slice(&text[..len]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts() -> impl Strategy<Value = Vec<String>> {
        let text = prop_oneof!["[ab\\x00]{0,12}", "common beginning [a-c]{0,3}", "\\PC{0,4}"];
        prop::collection::vec(text, 0..60)
    }

    proptest! {
        #[test]
        fn ranks_are_in_the_order_of_texts(pivots in texts(), texts in texts()) {
            let boxed: Vec<Box<[u8]>> = pivots.iter().map(|text| text.as_bytes().into()).collect();
            let made = Pivots::new(&boxed);
            let distinct: std::collections::BTreeSet<&String> = pivots.iter().collect();
            for text in &texts {
                let below = distinct.iter().filter(|pivot| **pivot <= text).count();
                prop_assert_eq!(usize::from(made.rank(text.as_bytes())), below, "{:?}", text);
                for beginning in pivots.iter().chain(&texts) {
                    let (low, high) = made.of_beginning(beginning.as_bytes());
                    let rank = made.rank(text.as_bytes());
                    let has = text.starts_with(beginning.as_str());
                    prop_assert!(!has || (low..=high).contains(&rank), "{text:?} {beginning:?}");
                    prop_assert!(has || !(low < rank && rank < high), "{text:?} {beginning:?}");
                }
            }
        }
    }
}
