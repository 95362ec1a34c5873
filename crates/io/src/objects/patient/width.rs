//! How many attempts may be outstanding: additive increase, multiplicative decrease (Chiu and Jain,
//! 1989), by the store's own word.
//!
//! 1. "Asked too often" halves the width, once for all attempts that were outstanding then: they
//!    were sent at the old width.
//! 2. As many good answers as the width is raise it by one, up to the setting.

/// See the head of the file.
pub(super) struct Width {
    most: f64,
    now: f64,
    halved_ns: u64,
}

impl Width {
    pub(super) fn new(most: usize) -> Width {
        Width { most: most as f64, now: most as f64, halved_ns: 0 }
    }

    /// Attempts that may be outstanding; at least one.
    pub(super) fn get(&self) -> usize {
        self.now as usize
    }

    /// Takes note of a good answer.
    pub(super) fn good(&mut self) {
        self.now = (self.now + 1.0 / self.now).min(self.most);
    }

    /// Takes note that an attempt, begun at `begun_ns`, was too much.
    pub(super) fn too_often(&mut self, begun_ns: u64, now_ns: u64) {
        if begun_ns >= self.halved_ns {
            self.now = (self.now / 2.0).max(1.0);
            self.halved_ns = now_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_is_halved_once_for_a_burst_and_comes_back() {
        let mut width = Width::new(64);
        (0..64).for_each(|_| width.too_often(5, 10));
        assert_eq!(width.get(), 32);
        width.too_often(10, 20);
        assert_eq!(width.get(), 16);
        // about the integral of the width from 16 to 32
        let answers = (1..).find(|_| {
            width.good();
            width.get() == 32
        });
        assert!((380..=390).contains(&answers.unwrap()), "{answers:?}");
        (0..5000).for_each(|_| width.good());
        assert_eq!(width.get(), 64);
        (0..20).for_each(|i| width.too_often(100 + i, 100 + i));
        assert_eq!(width.get(), 1);
    }
}
