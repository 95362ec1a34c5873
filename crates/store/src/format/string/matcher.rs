//! Codes for strings: the entries of a dictionary that match, from front to back.
//!
//! **Pieces.** At each place of a string the longest entry is taken that the rest begins with.
//! The last entry that is not above the rest, in the order of entries, is found by bisection; the
//! wanted one is it or a prefix of it, since every prefix of the rest lies between that prefix and
//! the rest. The first three bytes give the range to search, the keys are eight bytes, and every
//! eighth of them stands in a list of its own that stays in the cache. Several strings are
//! searched at a time in steps without branches, so that their misses overlap.
//!
//! **Words.** Where most entries end with a space, a string is cut behind its spaces, and each word
//! is looked up by a hash, many at a time. Words without an entry are matched piece by piece.
//!
//! Any codes whose entries make up the string are good for the decoder.

use crate::format::string::entry::{EntrySlot, LONGEST, key, key_len, slot};

/// Strings searched at a time.
const LANES: usize = 8;

/// Words looked up at a time.
const AT_ONCE: usize = 32;

/// Places that a word can have in its table.
const PROBES: usize = 64;

/// Keys of a block: every first of one is in `samples`.
const BLOCK: usize = 8;

/// Bytes that must follow the last string, since windows of 16 bytes are loaded.
pub(crate) const PADDING: usize = 16;

/// Bytes of each position that belong to `(first, second, third)` byte in the index.
const CLASS_BITS: u32 = 6;

/// See the head of the file.
pub(crate) struct Matcher {
    /// First eight bytes of each entry, and at least one 2^64 − 1 behind the last.
    keys: Vec<u64>,
    samples: Vec<u64>,
    /// Blocks in which the entries before those of three bytes' classes end.
    first: Vec<u16>,
    classes: Classes,
    /// The longest other entry that an entry begins with, by code; of a single byte itself.
    parents: Vec<u32>,
    /// Hash table of the entries that end with a space: code + 1, or 0. Empty: no words.
    words: Vec<u32>,
}

/// Strings to be encoded, one behind the other.
#[derive(Default)]
pub(crate) struct StringBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Codes of the strings of a batch, by string, one behind the other.
#[derive(Default)]
pub(crate) struct Codes {
    codes: Vec<u32>,
    /// Ends in `codes`.
    ends: Vec<usize>,
}

impl StringBatch {
    /// Adds a string.
    pub(crate) fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    /// Bytes of all strings.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The strings.
    pub(crate) fn strings(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(from, &to)| &self.bytes[from..to])
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Calls `f` with the strings and [`PADDING`] bytes behind them.
    fn padded(&mut self, f: impl FnOnce(&[u8], &[usize])) {
        let len = self.bytes.len();
        self.bytes.resize(len + PADDING, 0);
        f(&self.bytes, &self.ends);
        self.bytes.truncate(len);
    }
}

impl Codes {
    /// The codes of each string.
    pub(crate) fn of_strings(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(from, &to)| &self.codes[from..to])
    }
}

/// Writes codes of `width` bits as a stream, low bits first, padded to a whole byte.
pub(crate) fn pack(codes: &[u32], width: u32, out: &mut Vec<u8>) {
    let bytes = (codes.len() * width as usize).div_ceil(8);
    let begin = out.len();
    out.resize(begin + bytes + 8, 0);
    let to = &mut out[begin..];
    let (mut word, mut bits, mut at) = (0u64, 0, 0);
    for &code in codes {
        // Fewer than eight bits are left of those before.
        word |= u64::from(code) << bits;
        bits += width;
        to[at..at + 8].copy_from_slice(&word.to_le_bytes());
        let whole = bits / 8;
        at += whole as usize;
        word >>= 8 * whole;
        bits %= 8;
    }
    out.truncate(begin + bytes);
}

impl Matcher {
    /// A matcher of ascending entries, among them every single byte.
    pub(crate) fn new(slots: &[EntrySlot]) -> Matcher {
        let classes = Classes::new(slots);
        let mut first = vec![0u32; (1 << (3 * CLASS_BITS)) + 1];
        slots.iter().for_each(|slot| first[classes.of(high(key(slot))) + 1] += 1);
        let mut sum = 0;
        for starts in &mut first {
            sum += *starts;
            // The block of the last entry before; a block has eight, so 2^17 entries have 2^14.
            *starts = (sum.max(1) - 1) / BLOCK as u32;
        }
        let mut keys: Vec<u64> = slots.iter().map(|slot| high(key(slot))).collect();
        keys.resize((slots.len() / BLOCK + 1) * BLOCK, u64::MAX);
        Matcher {
            samples: keys.iter().step_by(BLOCK).copied().collect(),
            keys,
            first: first.into_iter().map(|block| block as u16).collect(),
            classes,
            parents: parents(slots),
            words: words(slots),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let wide = size_of_val(&self.keys[..]) + size_of_val(&self.samples[..]);
        wide + 2 * self.first.len() + 4 * (self.parents.len() + self.words.len())
    }

    /// Finds the codes of all strings of a batch.
    pub(crate) fn codes(&self, slots: &[EntrySlot], batch: &mut StringBatch, out: &mut Codes) {
        batch.padded(|bytes, ends| match self.words.is_empty() {
            true => self.pieces_of_all(slots, bytes, ends, out),
            false => self.words_of_all(slots, bytes, ends, out),
        });
    }

    /// For each window of 16 bytes, of which the first `left` are the string's, the longest entry
    /// that it begins with: its code and its bytes.
    #[inline(always)]
    fn find<const N: usize>(
        &self,
        slots: &[EntrySlot],
        windows: &[u128; N],
        left: &[usize; N],
    ) -> [(u32, usize); N] {
        let (mut at, mut size, mut most) = ([0; N], [0; N], 1);
        for j in 0..N {
            let class = self.classes.of(high(windows[j]));
            at[j] = usize::from(self.first[class]);
            size[j] = usize::from(self.first[class + 1]) + 1 - at[j];
            most = most.max(size[j]);
        }
        for _ in 0..usize::BITS - (most - 1).leading_zeros() {
            for j in 0..N {
                let half = size[j] / 2;
                at[j] += half * usize::from(self.samples[at[j] + half] <= high(windows[j]));
                size[j] -= half;
            }
        }
        at.iter_mut().for_each(|block| *block *= BLOCK);
        let mut half = BLOCK / 2;
        while half > 0 {
            for j in 0..N {
                at[j] += half * usize::from(self.keys[at[j] + half] <= high(windows[j]));
            }
            half /= 2;
        }
        std::array::from_fn(|j| self.longest(slots, at[j], windows[j], left[j]))
    }

    /// The longest entry that a window begins with; `at` is the last one whose first eight bytes
    /// are not above the window's.
    #[inline(always)]
    fn longest(&self, slots: &[EntrySlot], at: usize, window: u128, left: usize) -> (u32, usize) {
        let mut at = at.min(slots.len() - 1);
        let mut found = key(&slots[at]);
        if found > window | 255 {
            at = last_not_above(slots, at, window | 255);
            found = key(&slots[at]);
        }
        let equal = ((found ^ window).leading_zeros() / 8) as usize;
        let most = equal.min(left);
        while key_len(found) > most {
            let parent = self.parents[at] as usize;
            assert!(parent < at, "every single byte is an entry");
            at = parent;
            found = key(&slots[at]);
        }
        (at as u32, key_len(found))
    }

    /// The codes of all strings, piece by piece, several strings at a time.
    fn pieces_of_all(&self, slots: &[EntrySlot], bytes: &[u8], ends: &[usize], out: &mut Codes) {
        // Each string's codes lie where its bytes do, until they are moved together.
        out.codes.resize(bytes.len(), 0);
        let mut lanes = Lanes::new(ends);
        while let Some(all) = lanes.all() {
            let windows = std::array::from_fn(|j| window(bytes, all[j].at));
            let left = std::array::from_fn(|j| all[j].end - all[j].at);
            let found = self.find::<LANES>(slots, &windows, &left);
            let mut is_done = false;
            for (lane, (code, len)) in all.iter_mut().zip(found) {
                out.codes[lane.out] = code;
                lane.out += 1;
                lane.at += len;
                is_done |= lane.at == lane.end;
            }
            if is_done {
                lanes.refill();
            }
        }
        for lane in &mut lanes.lanes[..lanes.live] {
            while lane.at < lane.end {
                let found = self.find(slots, &[window(bytes, lane.at)], &[lane.end - lane.at]);
                let [(code, len)] = found;
                out.codes[lane.out] = code;
                lane.out += 1;
                lane.at += len;
            }
            lanes.outs[lane.string] = lane.out;
        }
        out.ends.clear();
        let (mut from, mut to) = (0, 0);
        for (end, out_end) in ends.iter().zip(&lanes.outs) {
            let len = out_end.saturating_sub(from);
            out.codes.copy_within(from..from + len, to);
            to += len;
            out.ends.push(to);
            from = *end;
        }
        out.codes.truncate(to);
    }

    /// The codes of all strings, word by word.
    fn words_of_all(&self, slots: &[EntrySlot], bytes: &[u8], ends: &[usize], out: &mut Codes) {
        out.codes.clear();
        out.ends.clear();
        let mut cuts = [(0, 0); AT_ONCE];
        let (mut keys, mut hashes) = ([0; AT_ONCE], [0; AT_ONCE]);
        let (mut places, mut found) = ([0; AT_ONCE], [0; AT_ONCE]);
        let mut at = 0;
        for &end in ends {
            while at < end {
                let mut n = 0;
                while n < AT_ONCE && at < end {
                    let len = word_len(bytes, at, end);
                    cuts[n] = (at, at + len);
                    keys[n] = if len > LONGEST { 0 } else { cut(window(bytes, at), len) };
                    hashes[n] = hash(keys[n], self.words.len());
                    at += len;
                    n += 1;
                }
                // All of these loads are under way at once.
                for j in 0..n {
                    places[j] = self.words[hashes[j]];
                }
                for j in 0..n {
                    found[j] = key(&slots[places[j].saturating_sub(1) as usize]);
                }
                for j in 0..n {
                    let code = match found[j] == keys[j] && places[j] > 0 {
                        true => Some(places[j] - 1),
                        false => self.word(slots, keys[j], hashes[j]),
                    };
                    match code {
                        Some(code) => out.codes.push(code),
                        None => self.pieces(slots, bytes, cuts[j], &mut out.codes),
                    }
                }
            }
            out.ends.push(out.codes.len());
        }
    }

    /// The code of a word with this hash, if it has one.
    fn word(&self, slots: &[EntrySlot], wanted: u128, hash: usize) -> Option<u32> {
        for at in probes(hash, self.words.len()) {
            let code = self.words[at].checked_sub(1)?;
            if key(&slots[code as usize]) == wanted {
                return Some(code);
            }
        }
        None
    }

    /// The codes of a part of a string, piece by piece.
    fn pieces(&self, slots: &[EntrySlot], bytes: &[u8], (mut at, end): (usize, usize), out: &mut Vec<u32>) {
        while at < end {
            let [(code, len)] = self.find(slots, &[window(bytes, at)], &[end - at]);
            out.push(code);
            at += len;
        }
    }
}

/// The high eight bytes.
#[inline(always)]
fn high(key: u128) -> u64 {
    (key >> 64) as u64
}

/// The 16 bytes from `at` on.
#[inline(always)]
fn window(bytes: &[u8], at: usize) -> u128 {
    u128::from_be_bytes(*bytes[at..].first_chunk().expect("16 bytes follow the last string"))
}

/// The last entry before `at` whose key is not above `most`; there is one.
fn last_not_above(slots: &[EntrySlot], mut at: usize, most: u128) -> usize {
    let mut step = 1;
    let low = loop {
        let low = at.saturating_sub(step);
        if key(&slots[low]) <= most {
            break low;
        }
        assert!(low > 0, "the first entry is a byte of zero");
        (at, step) = (low, 2 * step);
    };
    low + slots[low + 1..at].partition_point(|slot| key(slot) <= most)
}

/// The key of the entry that is the first `len` bytes of a window, at most 15.
#[inline(always)]
pub(crate) fn cut(window: u128, len: usize) -> u128 {
    window & MASKS[len & LONGEST] | len as u128
}

/// The first bytes of a window, by their number.
const MASKS: [u128; LONGEST + 1] = {
    let mut masks = [0; LONGEST + 1];
    let mut len = 1;
    while len <= LONGEST {
        masks[len] = u128::MAX << (128 - 8 * len);
        len += 1;
    }
    masks
};

/// Bytes of the word at `at`, its space included; the end of the string ends it, too.
#[inline]
fn word_len(bytes: &[u8], at: usize, end: usize) -> usize {
    const ONES: u128 = u128::MAX / 255;
    // The high bit of each byte that is a space.
    let other = window(bytes, at) ^ (ONES * b' ' as u128);
    let spaces = !(((other & (ONES * 0x7f)) + ONES * 0x7f) | other) & (ONES << 7);
    let len = spaces.leading_zeros() as usize / 8 + 1;
    if len <= LONGEST {
        return len.min(end - at);
    }
    let rest = &bytes[at..end];
    rest.iter().position(|byte| *byte == b' ').map_or(rest.len(), |space| space + 1)
}

/// The place of a key in a table of so many places.
#[inline(always)]
pub(crate) fn hash(key: u128, places: usize) -> usize {
    let mixed = (high(key)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ (key as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F).rotate_left(32);
    // The low bits of a product do not know of the high bits of its factors.
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    ((mixed >> 32) * places as u64 >> 32) as usize
}

/// For each entry the longest other one that it begins with.
fn parents(slots: &[EntrySlot]) -> Vec<u32> {
    let mut parents = Vec::with_capacity(slots.len());
    let mut open: Vec<u32> = Vec::with_capacity(LONGEST);
    for (i, entry) in slots.iter().enumerate() {
        let begins = |code: &u32| {
            let other = &slots[*code as usize];
            let len = key_len(key(other));
            other[..len] == entry[..len] && len < key_len(key(entry))
        };
        while open.last().is_some_and(|code| !begins(code)) {
            open.pop();
        }
        parents.push(open.last().copied().unwrap_or(i as u32));
        open.push(i as u32);
    }
    parents
}

/// The table of words: empty where they are not most of the entries.
fn words(slots: &[EntrySlot]) -> Vec<u32> {
    let is_word = |entry: &&EntrySlot| {
        let len = key_len(key(entry));
        len > 1 && entry[len - 1] == b' ' && !entry[..len - 1].contains(&b' ')
    };
    let count = slots.iter().filter(is_word).count();
    if 2 * count < slots.len() {
        return Vec::new();
    }
    let mut table = vec![0; (2 * count).next_power_of_two()];
    for (code, entry) in (1..).zip(slots).filter(|(_, entry)| is_word(entry)) {
        let mut places = probes(hash(key(entry), table.len()), table.len());
        // A word without a place is matched piece by piece, of which it is one.
        if let Some(at) = places.find(|at| table[*at] == 0) {
            table[at] = code;
        }
    }
    table
}

/// Places of the table of words that a word with this hash can have: few, whatever the words are.
fn probes(hash: usize, places: usize) -> impl Iterator<Item = usize> {
    (0..PROBES).map(move |i| (hash + i) % places)
}

/// Bytes by class, so that three of them have an index of 18 bits that ascends as entries do:
/// bytes that are often among the first three of an entry have a class of their own, others share
/// one with their neighbours. Behind a byte of a shared class the index is as for zeros.
struct Classes([(u32, u32); 256]);

impl Classes {
    fn new(slots: &[EntrySlot]) -> Classes {
        let mut uses = [0u32; 256];
        for entry in slots {
            entry[..key_len(key(entry)).min(3)].iter().for_each(|byte| uses[usize::from(*byte)] += 1);
        }
        let mut by_use: Vec<usize> = (0..256).collect();
        by_use.sort_unstable_by_key(|byte| (std::cmp::Reverse(uses[*byte]), *byte));
        // Where a class begins.
        let mut begins = [false; 257];
        (begins[0], begins[256]) = (true, true);
        let mut classes = 1;
        for byte in by_use {
            let more = usize::from(!begins[byte]) + usize::from(!begins[byte + 1]);
            if classes + more > 1 << CLASS_BITS {
                break;
            }
            (begins[byte], begins[byte + 1]) = (true, true);
            classes += more;
        }
        let mut class = 0;
        Classes(std::array::from_fn(|byte| {
            class += u32::from(byte > 0 && begins[byte]);
            let is_alone = begins[byte] && begins[byte + 1];
            (class, if is_alone { u32::MAX } else { 0 })
        }))
    }

    /// The index of the first three bytes.
    #[inline(always)]
    fn of(&self, key: u64) -> usize {
        let [a, b, c, ..] = key.to_be_bytes();
        let [(a, a_alone), (b, b_alone), (c, _)] = [a, b, c].map(|byte| self.0[usize::from(byte)]);
        (a << (2 * CLASS_BITS) | a_alone & (b << CLASS_BITS | b_alone & c)) as usize
    }
}

/// A string that is being searched.
#[derive(Clone, Copy, Default)]
struct Lane {
    string: usize,
    at: usize,
    end: usize,
    /// Place of its next code.
    out: usize,
}

/// The strings of a batch, several under way at a time.
struct Lanes<'e> {
    ends: &'e [usize],
    next: usize,
    lanes: [Lane; LANES],
    live: usize,
    /// Where the codes of each string end.
    outs: Vec<usize>,
}

impl Lanes<'_> {
    fn new(ends: &[usize]) -> Lanes<'_> {
        let mut lanes =
            Lanes { ends, next: 0, lanes: Default::default(), live: 0, outs: vec![0; ends.len()] };
        lanes.refill();
        lanes
    }

    /// The lanes, if all have a string.
    #[inline]
    fn all(&mut self) -> Option<&mut [Lane; LANES]> {
        (self.live == LANES).then_some(&mut self.lanes)
    }

    /// Gives the lanes that have come to an end the next strings.
    fn refill(&mut self) {
        let mut kept = 0;
        for i in 0..self.live {
            let lane = self.lanes[i];
            if lane.at < lane.end {
                self.lanes[kept] = lane;
                kept += 1;
            } else {
                self.outs[lane.string] = lane.out;
            }
        }
        while kept < LANES && self.next < self.ends.len() {
            let at = if self.next == 0 { 0 } else { self.ends[self.next - 1] };
            let end = self.ends[self.next];
            if at < end {
                self.lanes[kept] = Lane { string: self.next, at, end, out: at };
                kept += 1;
            } else {
                self.outs[self.next] = at;
            }
            self.next += 1;
        }
        self.live = kept;
    }
}

/// The keys of the words in a string that can be entries; see [`Matcher`].
pub(crate) fn for_each_word(string: &[u8], mut f: impl FnMut(u128)) {
    for word in string.split_inclusive(|byte| *byte == b' ') {
        if (2..=LONGEST).contains(&word.len()) && word.ends_with(b" ") {
            f(key(&slot(word)));
        }
    }
}
