//! One page of the kernel's trace ring buffer, as `trace_pipe_raw` hands it out.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | time of the first event, ns |
//! | 8..16 | bytes of data; bit 31: events were lost before this page |
//! | 16.. | events |
//!
//! An event begins with 32 bits, 5 of type and length, 27 of time since the one before: 1 to 28
//! means that many words of payload; 0: the length is in the next word; 29: padding; 30: the
//! next word extends the time; 31: absolute time.

const DATA: usize = 16;
const LOST: u64 = 1 << 31;
const LENGTH: u64 = (1 << 27) - 1;
const TIME_BITS: u32 = 27;
/// An absolute time has only 59 bits; the highest 5 are those of the page.
const ABSOLUTE_BITS: u32 = 59;

/// A page with its events.
pub struct RingPage<'a> {
    data: &'a [u8],
    start_ns: u64,
    /// The kernel says that events were lost before this page.
    pub lost_before: bool,
}

impl<'a> RingPage<'a> {
    /// Reads the head of a page; nothing when it is no page.
    pub fn new(page: &'a [u8]) -> Option<RingPage<'a>> {
        let word = |at: usize| Some(u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?));
        let (start_ns, commit) = (word(0)?, word(8)?);
        let end = DATA + (commit & LENGTH) as usize;
        Some(RingPage { data: page.get(DATA..end)?, start_ns, lost_before: commit & LOST != 0 })
    }

    /// The events: time in ns, and payload.
    pub fn events(&self) -> Events<'a> {
        Events { data: self.data, now_ns: self.start_ns }
    }
}

/// See [`RingPage::events`].
pub struct Events<'a> {
    data: &'a [u8],
    now_ns: u64,
}

impl Events<'_> {
    fn word(&self, at: usize) -> Option<u64> {
        let bytes = self.data.get(at..at + 4)?;
        Some(u64::from(u32::from_le_bytes(bytes.try_into().ok()?)))
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<(u64, &'a [u8])> {
        loop {
            let head = self.word(0)?;
            let (kind, delta) = (head & 31, head >> 5);
            match kind {
                29 if delta == 0 => return None, // the rest of the page is empty
                29 => self.data = self.data.get(4 + self.word(4)? as usize..)?,
                30 => {
                    self.now_ns += (self.word(4)? << TIME_BITS) + delta;
                    self.data = &self.data[8..];
                }
                31 => {
                    let high = self.now_ns >> ABSOLUTE_BITS << ABSOLUTE_BITS;
                    self.now_ns = high | ((self.word(4)? << TIME_BITS) + delta);
                    self.data = &self.data[8..];
                }
                _ => {
                    self.now_ns += delta;
                    let (from, to) = match kind {
                        0 => (8, 4 + self.word(4)? as usize),
                        words => (4, 4 + 4 * words as usize),
                    };
                    let payload = self.data.get(from..to)?;
                    self.data = &self.data[to..];
                    return Some((self.now_ns, payload));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use snowmelt_base::random::{GOLDEN, lcg};

    use super::*;

    fn page(events: &[u32], flags: u64) -> Vec<u8> {
        let mut page = 1_000u64.to_le_bytes().to_vec();
        page.extend(((4 * events.len() as u64) | flags).to_le_bytes());
        events.iter().for_each(|word| page.extend(word.to_le_bytes()));
        page.resize(4096, 0xee);
        page
    }

    #[test]
    fn every_kind_of_event_is_stepped_over_right() {
        let events = [
            2 | 5 << 5,
            7,
            8, // two words, 5 ns later
            30 | 3 << 5,
            1, // 2^27 + 3 ns later
            29 | 1 << 5,
            8,
            0, // padding of 8 bytes
            1,
            9, // one word, at the same time
            1 << 5,
            12,
            10,
            11, // long form: 12 bytes with its length
            31 | 4 << 5,
            2, // absolute 2 * 2^27 + 4
            1 | 1 << 5,
            12, // 1 ns later
            29,
            0,
            0, // the end
        ];
        let page = page(&events, LOST);
        let page = RingPage::new(&page).expect("a page");
        assert!(page.lost_before);
        let got: Vec<(u64, Vec<u32>)> = page
            .events()
            .map(|(t, p)| (t, p.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect()))
            .collect();
        let extended = 1_005 + (1 << 27) + 3;
        let want = [
            (1_005, vec![7, 8]),
            (extended, vec![9]),
            (extended + 1, vec![10, 11]),
            ((2 << 27) + 5, vec![12]),
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn damage_ends_the_page_without_a_panic() {
        assert!(RingPage::new(&[0; 10]).is_none());
        let seed = snowmelt_base::test_seed(1);
        let mut state = seed.wrapping_mul(GOLDEN);
        for _ in 0..2_000 {
            let mut bytes = page(&[2, 7, 8, 30, 1, 1 << 5, 12, 10, 11, 1, 9], 0);
            for _ in 0..4 {
                let word = lcg(&mut state);
                bytes[(word >> 33) as usize % 64] = (word >> 25) as u8;
            }
            if let Some(page) = RingPage::new(&bytes) {
                assert!(page.events().count() < 4096, "seed {seed}");
            }
        }
    }
}
