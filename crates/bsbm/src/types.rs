//! The tree of product types and the features of each type.
//!
//! Types are numbered breadth first from 1, the root. Every leaf has the same depth, and all
//! types of a level have the same number of children, so the tree is arithmetic on the first
//! number of each level. Features are numbered in the order of their types; the root has none.

use std::ops::Range;

use crate::random::JavaRandom;
use crate::seeds::Seeds;

/// Shape of the tree and ranges of the features.
#[derive(Clone, Debug)]
pub(crate) struct Types {
    /// The first type of each level, and one more than the last type at the end.
    level_starts: Vec<u32>,
    /// Children of a type of each level but the last.
    branching: Vec<u32>,
    /// For each type from 1, its first feature; at the end, one more than the last feature.
    feature_starts: Vec<u32>,
}

impl Types {
    pub(crate) fn new(products: u32, seeds: &Seeds) -> Self {
        let branching = branching(products);
        let (mut level_starts, mut width) = (vec![1, 2], 1);
        for children in &branching {
            width *= children;
            level_starts.push(level_starts[level_starts.len() - 1] + width);
        }
        let mut types = Self { level_starts, branching, feature_starts: Vec::new() };
        types.feature_starts = types.count_features(seeds);
        types
    }

    /// Edges from the root to a leaf.
    pub(crate) fn depth(&self) -> u32 {
        self.branching.len() as u32
    }

    pub(crate) fn count(&self) -> u32 {
        self.level_starts[self.branching.len() + 1] - 1
    }

    pub(crate) fn feature_count(&self) -> u32 {
        self.feature_starts[self.feature_starts.len() - 1] - 1
    }

    /// The types of a level; level 0 is the root.
    pub(crate) fn level(&self, level: u32) -> Range<u32> {
        self.level_starts[level as usize]..self.level_starts[level as usize + 1]
    }

    pub(crate) fn leaves(&self) -> Range<u32> {
        self.level(self.depth())
    }

    pub(crate) fn level_of(&self, number: u32) -> u32 {
        self.level_starts.partition_point(|&start| start <= number) as u32 - 1
    }

    /// The parent, or nothing for the root.
    pub(crate) fn parent(&self, number: u32) -> Option<u32> {
        let above = self.level_of(number).checked_sub(1)?;
        let place = number - self.level_starts[above as usize + 1];
        Some(self.level_starts[above as usize] + place / self.branching[above as usize])
    }

    /// A type, its parent and so on, up to the root.
    pub(crate) fn lineage(&self, number: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(number), |&number| self.parent(number))
    }

    /// The features that come with a type itself, without those of its ancestors.
    pub(crate) fn features(&self, number: u32) -> Range<u32> {
        self.feature_starts[number as usize - 1]..self.feature_starts[number as usize]
    }

    /// The fewest and the most features of a type.
    pub(crate) fn feature_bounds(&self, number: u32) -> (u32, u32) {
        let depth = self.depth();
        let sum = depth * (depth + 1) / 2 - 1;
        // Inner types take the row below their own: a slip of the original that its data keep.
        let row = (self.level_of(number) + 1).min(depth);
        (35 * row / sum, 75 * row / sum)
    }

    /// Runs the random stream of the feature phase for the counts alone.
    fn count_features(&self, seeds: &Seeds) -> Vec<u32> {
        let mut values = JavaRandom::new(seeds.features[0]);
        let mut starts = vec![1, 1];
        for number in 2..=self.count() {
            let (fewest, most) = self.feature_bounds(number);
            let count = values.between(fewest, most);
            for _ in 0..count {
                values.between(1, 3);
                values.between(20, 50);
            }
            starts.push(starts[starts.len() - 1] + count);
        }
        starts
    }
}

/// Children per level. The original computes in 32-bit floats, and so must we.
fn branching(products: u32) -> Vec<u32> {
    let magnitude = f64::from(products.max(10)).log10() as f32;
    let round = |x: f32| (x + 0.5).floor() as u32;
    let depth = round(magnitude / 2.0) + 1;
    let mut branching = vec![8; depth as usize];
    branching[0] = 2 * round(magnitude);
    branching[depth as usize - 1] = [2, 4, 8][round(magnitude * 3.0 / 2.0 + 1.0) as usize % 3];
    branching
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_known_sizes() {
        assert_eq!(branching(100), [4, 4]);
        assert_eq!(branching(1000), [6, 8, 2]);
        assert_eq!(branching(2785), [6, 8, 2]);
        assert_eq!(branching(10_000), [8, 8, 4]);
        assert_eq!(branching(28_480), [8, 8, 8]);
        assert_eq!(branching(284_826), [10, 8, 8, 2]);
    }

    #[test]
    fn lineage_climbs_to_the_root() {
        let types = Types::new(1000, &Seeds::new());
        assert_eq!(types.lineage(89).collect::<Vec<_>>(), [89, 24, 4, 1]);
        assert_eq!(types.lineage(1).collect::<Vec<_>>(), [1]);
        assert_eq!(types.leaves(), 56..152);
        for number in 2..=types.count() {
            let parent = types.parent(number).unwrap();
            assert_eq!(types.level_of(parent) + 1, types.level_of(number));
        }
    }
}
