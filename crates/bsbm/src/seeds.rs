//! The seeds of all random streams, drawn from one stream with a fixed seed.

use crate::random::JavaRandom;

const ROOT: i64 = 53_223_436;

/// Seeds by phase, in the order in which they are drawn.
#[derive(Clone, Debug)]
pub(crate) struct Seeds {
    pub labels: i64,
    pub texts: i64,
    pub names: i64,
    pub types: [i64; 2],
    pub features: [i64; 2],
    pub producers: [i64; 5],
    pub vendors: [i64; 5],
    pub reviewers: [i64; 8],
}

impl Seeds {
    pub(crate) fn new() -> Self {
        let mut root = JavaRandom::new(ROOT);
        Self {
            labels: root.long(),
            texts: root.long(),
            names: root.long(),
            types: draw(&mut root),
            features: draw(&mut root),
            producers: draw(&mut root),
            vendors: draw(&mut root),
            reviewers: draw(&mut root),
        }
    }
}

/// So many seeds from a stream.
pub(crate) fn draw<const N: usize>(random: &mut JavaRandom) -> [i64; N] {
    std::array::from_fn(|_| random.long())
}
