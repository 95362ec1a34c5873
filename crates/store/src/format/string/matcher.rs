//! Codes for strings: the entries of a dictionary that match, from front to back.
//!
//! **Pieces.** At each place of a string the longest entry is taken that the rest begins with.
//! The last entry that is not above the rest, in the order of entries, is found by bisection; the
//! wanted one is it or a prefix of it, since every prefix of the rest lies between that prefix and
//! the rest. The first three bytes give the range to search, the keys are eight bytes, and every
//! eighth of them stands in a list of its own that stays in the cache. Several strings are
//! searched at a time in steps without branches, so that their misses overlap.
//!
//! **Words.** Where most entries end with a space, a string is cut behind its spaces, and behind 15
//! bytes without one; each word is looked up by a hash, many at a time. Words without an entry are
//! matched piece by piece.
//!
//! Any codes whose entries make up the string are good for the decoder.

use std::hint::select_unpredictable;

use crate::format::string::entry::{EntrySlot, LONGEST, key, key_len};

/// Strings searched at a time.
const LANES: usize = 8;

/// Words looked up at a time.
const AT_ONCE: usize = 32;

/// Places that a word can have in its table.
const PROBES: usize = 64;

/// Keys of a block: every first of one is in `samples`.
const BLOCK: usize = 8;

/// Bytes among which spaces are looked for at once.
const SPACES: usize = 64;

/// Bytes that must follow the last string, since as many are loaded at once.
const PADDING: usize = SPACES;

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
    /// The entries that each entry begins with.
    begins: Begins,
    words: Words,
}

/// Strings to be encoded, one behind the other.
#[derive(Default)]
pub struct StringBatch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Codes of the strings of a batch, by string, one behind the other.
#[derive(Default)]
pub(crate) struct Codes {
    /// May be longer than they are: it is never made shorter, so that little of it is cleared.
    codes: Vec<u32>,
    /// Ends in `codes`.
    ends: Vec<usize>,
    pieces: Pieces,
    words: WordCodes,
}

/// Codes of words, and [`UNKNOWN`] for those without one.
#[derive(Default)]
struct WordCodes {
    codes: Vec<u32>,
    /// Ends of strings in `codes`.
    ends: Vec<usize>,
}

/// Parts of strings that are matched piece by piece.
#[derive(Default)]
struct Pieces {
    /// Where each begins and ends among the bytes.
    parts: Vec<(usize, usize)>,
    /// The codes of each, from the place on that its bytes have.
    codes: Vec<u32>,
    /// Where the codes of each end.
    ends: Vec<usize>,
}

/// Stands for a word without an entry.
const UNKNOWN: u32 = u32::MAX;

impl StringBatch {
    /// Adds a string.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    /// Their number.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all strings.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The strings.
    pub fn strings(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(from, &to)| &self.bytes[from..to])
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Calls `f` with the keys of the words that can be entries; see [`Matcher`].
    pub(crate) fn for_each_word(&mut self, mut f: impl FnMut(u128)) {
        self.padded(|bytes, ends| {
            let (mut spaces, mut at) = (Spaces::default(), 0);
            for &end in ends {
                while at < end {
                    let word_end = spaces.word_end(bytes, at, end);
                    if is_word(&bytes[at..word_end]) {
                        f(cut(window(bytes, at), word_end - at));
                    }
                    at = word_end;
                }
            }
        });
    }

    /// Calls `f` with the strings and [`PADDING`] bytes behind them.
    fn padded(&mut self, f: impl FnOnce(&[u8], &[usize])) {
        let len = self.bytes.len();
        self.bytes.resize(len + PADDING, 0);
        f(&self.bytes, &self.ends);
        self.bytes.truncate(len);
    }
}

impl Pieces {
    /// The codes of each part.
    fn of_parts(&self) -> impl Iterator<Item = &[u32]> {
        self.parts.iter().zip(&self.ends).map(|((from, _), end)| &self.codes[*from..*end])
    }
}

impl Codes {
    /// Room for so many codes, and no strings.
    fn make_room(&mut self, most: usize) {
        self.ends.clear();
        if self.codes.len() < most {
            self.codes.resize(most, 0);
        }
    }

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
            begins: Begins::new(slots),
            words: Words::new(slots),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let wide = size_of_val(&self.keys[..]) + size_of_val(&self.samples[..]);
        let begins = size_of_val(&self.begins.0[..]);
        wide + begins + 2 * self.first.len() + 4 * self.words.places.len()
    }

    /// Finds the codes of all strings of a batch.
    pub(crate) fn codes(&self, slots: &[EntrySlot], batch: &mut StringBatch, out: &mut Codes) {
        batch.padded(|bytes, ends| match self.words.places.is_empty() {
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
                let is_above = self.samples[at[j] + half] > high(windows[j]);
                at[j] = select_unpredictable(is_above, at[j], at[j] + half);
                size[j] -= half;
            }
        }
        at.iter_mut().for_each(|block| *block *= BLOCK);
        let mut half = BLOCK / 2;
        while half > 0 {
            for j in 0..N {
                let is_above = self.keys[at[j] + half] > high(windows[j]);
                at[j] = select_unpredictable(is_above, at[j], at[j] + half);
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
        let mut equal = (self.keys[at] ^ high(window)).leading_zeros() / 8;
        if equal == 8 {
            if key(&slots[at]) > window | 255 {
                at = last_not_above(slots, at, window | 255);
            }
            equal = (key(&slots[at]) ^ window).leading_zeros() / 8;
        }
        self.begins.longest(at, (equal as usize).min(left))
    }

    /// The codes of all strings, piece by piece.
    fn pieces_of_all(&self, slots: &[EntrySlot], bytes: &[u8], ends: &[usize], out: &mut Codes) {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        out.pieces.parts.clear();
        out.pieces.parts.extend(starts.zip(ends.iter().copied()));
        self.pieces(slots, bytes, &mut out.pieces);
        out.make_room(bytes.len());
        let mut to = 0;
        for codes in out.pieces.of_parts() {
            out.codes[to..to + codes.len()].copy_from_slice(codes);
            to += codes.len();
            out.ends.push(to);
        }
    }

    /// The codes of all parts, several at a time.
    fn pieces(&self, slots: &[EntrySlot], bytes: &[u8], of: &mut Pieces) {
        let Pieces { parts, codes, ends } = of;
        if codes.len() < bytes.len() {
            codes.resize(bytes.len(), 0);
        }
        ends.clear();
        ends.resize(parts.len(), 0);
        let mut lanes = Lanes::new(parts, ends);
        while let Some(all) = lanes.all() {
            let windows = std::array::from_fn(|j| window(bytes, all[j].at));
            let left = std::array::from_fn(|j| all[j].end - all[j].at);
            let found = self.find::<LANES>(slots, &windows, &left);
            let mut is_done = false;
            for (lane, (code, len)) in all.iter_mut().zip(found) {
                codes[lane.out] = code;
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
                codes[lane.out] = code;
                lane.out += 1;
                lane.at += len;
            }
            lanes.ends[lane.part] = lane.out;
        }
    }

    /// The codes of all strings, word by word.
    fn words_of_all(&self, slots: &[EntrySlot], bytes: &[u8], ends: &[usize], out: &mut Codes) {
        // Words without an entry are matched together, so that their misses overlap, too.
        self.look_up(slots, bytes, ends, out);
        self.pieces(slots, bytes, &mut out.pieces);
        out.make_room(bytes.len());
        let mut parts = out.pieces.of_parts();
        let (mut from, mut to) = (0, 0);
        for &end in &out.words.ends {
            for &code in &out.words.codes[from..end] {
                if code == UNKNOWN {
                    let pieces = parts.next().expect("each unknown word is a part");
                    out.codes[to..to + pieces.len()].copy_from_slice(pieces);
                    to += pieces.len();
                } else {
                    out.codes[to] = code;
                    to += 1;
                }
            }
            from = end;
            out.ends.push(to);
        }
    }

    /// Looks up all words; those without an entry become parts.
    fn look_up(&self, slots: &[EntrySlot], bytes: &[u8], ends: &[usize], out: &mut Codes) {
        let Codes { pieces: Pieces { parts, .. }, words, .. } = out;
        parts.clear();
        words.codes.clear();
        words.ends.clear();
        let mut spaces = Spaces::default();
        let (mut cuts, mut keys) = ([(0, 0); AT_ONCE], [0; AT_ONCE]);
        let (mut hashes, mut places) = ([0; AT_ONCE], [0; AT_ONCE]);
        let mut at = 0;
        for &end in ends {
            while at < end {
                let mut n = 0;
                while n < AT_ONCE && at < end {
                    let word_end = spaces.word_end(bytes, at, end);
                    cuts[n] = (at, word_end);
                    keys[n] = cut(window(bytes, at), word_end - at);
                    hashes[n] = hash(keys[n]);
                    at = word_end;
                    n += 1;
                }
                self.words.find(&hashes[..n], &mut places[..n]);
                let mut found = [0; AT_ONCE];
                for j in 0..n {
                    found[j] = key(&slots[Words::code(places[j]) as usize]);
                }
                for j in 0..n {
                    let is_known = found[j] == keys[j];
                    words.codes.push(if is_known { Words::code(places[j]) } else { UNKNOWN });
                    if !is_known {
                        parts.push(cuts[j]);
                    }
                }
            }
            words.ends.push(words.codes.len());
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

/// Spaces, found from front to back.
#[derive(Default)]
struct Spaces {
    /// Bytes that were looked at, and by bit, those of the last of them that are spaces and not
    /// passed by.
    seen: usize,
    left: u64,
}

impl Spaces {
    /// Where the word at `at` ends: behind its space, when it is long enough, or with the string.
    #[inline(always)]
    fn word_end(&mut self, bytes: &[u8], at: usize, end: usize) -> usize {
        while self.left == 0 && self.seen < end {
            self.left = spaces(bytes[self.seen..].first_chunk().expect("the strings are padded"));
            self.seen += SPACES;
        }
        let most = end.min(at + LONGEST);
        let word_end = (self.seen + 1 + self.left.trailing_zeros() as usize) - SPACES;
        if self.left == 0 || word_end > most {
            return most;
        }
        self.left &= self.left - 1;
        word_end
    }
}

/// Which bytes are spaces, by bit.
#[inline(always)]
fn spaces(bytes: &[u8; SPACES]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let (words, _) = bytes.as_chunks::<8>();
    let mut found = 0;
    for word in words.iter().rev() {
        let other = u64::from_le_bytes(*word) ^ (ONES * u64::from(b' '));
        // The high bit of each byte that is a space; the product brings all of them to the top.
        let high = !(((other & (ONES * 0x7f)) + ONES * 0x7f) | other) & (ONES << 7);
        found = found << 8 | (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    }
    found
}

/// A hash whose upper half is good.
#[inline(always)]
pub(crate) fn hash(key: u128) -> u64 {
    let low = (key as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    (high(key) ^ low ^ (low >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The place of a hash among so many.
#[inline(always)]
pub(crate) fn place(hash: u64, places: usize) -> usize {
    (((hash >> 32) * places as u64) >> 32) as usize
}

/// For each entry those that it begins with, by code: bit `n` for one of `n` bytes, itself among
/// them; from bit 16 on the code of the longest other one, from bit 33 that of the next.
struct Begins(Vec<u64>);

impl Begins {
    fn new(slots: &[EntrySlot]) -> Begins {
        let mut begins = Vec::with_capacity(slots.len());
        let mut open: Vec<usize> = Vec::with_capacity(LONGEST);
        for (code, entry) in slots.iter().enumerate() {
            let len = |code: &usize| key_len(key(&slots[*code]));
            while open.last().is_some_and(|other| {
                slots[*other][..len(other)] != entry[..len(other)] || len(other) >= len(&code)
            }) {
                open.pop();
            }
            open.push(code);
            let lengths = open.iter().fold(0, |lengths, code| lengths | 1 << len(code));
            let [one, two] = [1, 2].map(|up| open[open.len().saturating_sub(1 + up)] as u64);
            begins.push(lengths | one << 16 | two << 33);
        }
        Begins(begins)
    }

    /// The longest of up to `most` bytes that an entry begins with: its code and its bytes.
    #[inline(always)]
    fn longest(&self, code: usize, most: usize) -> (u32, usize) {
        let of = self.0[code];
        // A single byte is an entry, so there is one.
        let len = (of as u32 & 0xffff & ((2 << most) - 1)).ilog2();
        let longer = (of as u32 & 0xffff) >> 1 >> len;
        let fewer = longer & longer.wrapping_sub(1);
        let other = select_unpredictable(fewer == 0, of >> 16, of >> 33) as usize & MASK;
        let mut code = select_unpredictable(longer == 0, code, other);
        let mut still = fewer & fewer.wrapping_sub(1);
        while still != 0 {
            code = (self.0[code] >> 16) as usize & MASK;
            still &= still - 1;
        }
        (code as u32, len as usize)
    }
}

/// The bits of a code.
const MASK: usize = (1 << 17) - 1;

/// The hash table of the words among the entries; no places, where they are not most of these.
///
/// A place has the code in its low 17 bits and a tag, which is not 0, above; it is 0 if it is free.
struct Words {
    places: Vec<u32>,
}

impl Words {
    fn new(slots: &[EntrySlot]) -> Words {
        let is_word = |entry: &&EntrySlot| {
            let len = key_len(key(entry));
            is_word(&entry[..len]) && !entry[..len - 1].contains(&b' ')
        };
        let count = slots.iter().filter(is_word).count();
        if 2 * count < slots.len() {
            return Words { places: Vec::new() };
        }
        let mut places = vec![0; (2 * count).next_power_of_two()];
        for (code, entry) in (0..).zip(slots).filter(|(_, entry)| is_word(entry)) {
            let hash = hash(key(entry));
            // A word without a place is matched piece by piece, of which it is one.
            if let Some(at) = probes(hash, places.len()).find(|at| places[*at] == 0) {
                places[at] = tag(hash) | code;
            }
        }
        Words { places }
    }

    /// The places of words by their hashes; another one, if there is none.
    #[inline(always)]
    fn find(&self, hashes: &[u64], found: &mut [u32]) {
        // All of these loads are under way at once.
        for (hash, found) in hashes.iter().zip(&mut *found) {
            *found = self.places[place(*hash, self.places.len())];
        }
        for (hash, found) in hashes.iter().zip(found) {
            if *found & TAGS != tag(*hash) && *found != 0 {
                let mut others = probes(*hash, self.places.len()).map(|at| self.places[at]);
                *found = others.find(|place| place & TAGS == tag(*hash) || *place == 0).unwrap_or(0);
            }
        }
    }

    /// The code in a place.
    #[inline(always)]
    fn code(place: u32) -> u32 {
        place & !TAGS
    }
}

/// The bits of a place that are not the code's.
const TAGS: u32 = u32::MAX << 17;

/// The tag of a hash.
#[inline(always)]
fn tag(hash: u64) -> u32 {
    (hash >> 15) as u32 & TAGS | 1 << 17
}

/// Places of the table of words that a word with this hash can have: few, whatever the words are.
pub(crate) fn probes(hash: u64, places: usize) -> impl Iterator<Item = usize> {
    let first = place(hash, places);
    (first..first + PROBES).map(move |at| at % places)
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

/// A part that is being searched.
#[derive(Clone, Copy, Default)]
struct Lane {
    part: usize,
    at: usize,
    end: usize,
    /// Place of its next code.
    out: usize,
}

/// The parts of a batch, several under way at a time.
struct Lanes<'p> {
    parts: &'p [(usize, usize)],
    next: usize,
    lanes: [Lane; LANES],
    live: usize,
    /// Where the codes of each part end.
    ends: &'p mut [usize],
}

impl<'p> Lanes<'p> {
    fn new(parts: &'p [(usize, usize)], ends: &'p mut [usize]) -> Lanes<'p> {
        let mut lanes = Lanes { parts, next: 0, lanes: Default::default(), live: 0, ends };
        lanes.refill();
        lanes
    }

    /// The lanes, if all have a part.
    #[inline]
    fn all(&mut self) -> Option<&mut [Lane; LANES]> {
        (self.live == LANES).then_some(&mut self.lanes)
    }

    /// Gives the lanes that have come to an end the next parts.
    fn refill(&mut self) {
        let mut kept = 0;
        for i in 0..self.live {
            let lane = self.lanes[i];
            if lane.at < lane.end {
                self.lanes[kept] = lane;
                kept += 1;
            } else {
                self.ends[lane.part] = lane.out;
            }
        }
        while kept < LANES && self.next < self.parts.len() {
            let (at, end) = self.parts[self.next];
            if at < end {
                self.lanes[kept] = Lane { part: self.next, at, end, out: at };
                kept += 1;
            } else {
                self.ends[self.next] = at;
            }
            self.next += 1;
        }
        self.live = kept;
    }
}

/// Whether bytes without a space before their end are a word, or the first bytes of a longer one.
fn is_word(part: &[u8]) -> bool {
    part.len() == LONGEST || part.len() > 1 && part.ends_with(b" ")
}
