//! The word of a page: one atomic u64 says whether the page is in memory, where, and how it is
//! used.
//!
//! | bits   | field      | meaning                                                                |
//! |--------|------------|------------------------------------------------------------------------|
//! | 0..32  | frame      | frame number, when in flight or resident                               |
//! | 32..48 | pins       | readers holding the page; evicted only when resident and without pins  |
//! | 48..50 | state      | 0 absent, 1 in flight, 2 resident                                      |
//! | 50..53 | rule       | the read-ahead rule that brought it, until its first use; else 0       |
//! | 53     | referenced | touched since the clock's hand last passed                             |
//! | 54     | versioned  | other versions exist: ask the version table; survives eviction         |
//! | 55     | awaited    | a reader waits for the read in flight                                  |
//! | 56     | lately     | absent, but was used and left only lately: see `replace`               |
//! | 57..61 | generation | of the meters when a rule brought it: older ones are not counted       |
//!
//! A zero word is an absent page, so fresh anonymous memory is a valid table.

/// Increment of the pin count.
pub const PIN: u64 = 1 << 32;
pub const FRAME: u64 = PIN - 1;
pub const PINS: u64 = 0xFFFF << 32;
pub const STATE: u64 = 3 << 48;
pub const IN_FLIGHT: u64 = 1 << 48;
pub const RESIDENT: u64 = 2 << 48;
pub const RULE_SHIFT: u32 = 50;
pub const RULE: u64 = 7 << RULE_SHIFT;
pub const REFERENCED: u64 = 1 << 53;
pub const VERSIONED: u64 = 1 << 54;
pub const AWAITED: u64 = 1 << 55;
pub const LATELY: u64 = 1 << 56;
pub const GENERATION_SHIFT: u32 = 57;
/// Generations that are told apart.
pub const GENERATIONS: u64 = 16;

/// Each field, no two of which share a bit: a pin too many must not become a state.
const _: () = {
    let generation = (GENERATIONS - 1) << GENERATION_SHIFT;
    let fields = [FRAME, PINS, STATE, RULE, REFERENCED, VERSIONED, AWAITED, LATELY, generation];
    let (mut taken, mut i) = (0, 0);
    while i < fields.len() {
        assert!(taken & fields[i] == 0, "a bit of a word has one meaning");
        taken |= fields[i];
        i += 1;
    }
    assert!(IN_FLIGHT | RESIDENT == STATE, "both states lie in their field");
};

/// Bits that must equal `RESIDENT` for the quick way in. Bit 47 is the highest bit of the pin
/// count: from half of all possible pins on, readers take the full way, which checks the count.
pub const QUICK: u64 = STATE | RULE | VERSIONED | 1 << 47;

#[inline]
pub fn frame(word: u64) -> u32 {
    (word & FRAME) as u32
}

#[inline]
pub fn pins(word: u64) -> u64 {
    (word & PINS) >> 32
}

#[inline]
pub fn rule(word: u64) -> u8 {
    ((word & RULE) >> RULE_SHIFT) as u8
}

#[inline]
pub fn state(word: u64) -> u64 {
    word & STATE
}

/// The word with another generation.
pub fn of_generation(word: u64, generation: u64) -> u64 {
    word & !((GENERATIONS - 1) << GENERATION_SHIFT) | generation << GENERATION_SHIFT
}

#[inline]
pub fn generation(word: u64) -> u64 {
    (word >> GENERATION_SHIFT) % GENERATIONS
}
