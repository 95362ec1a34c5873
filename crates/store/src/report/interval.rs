//! The difference of two reports.

use std::collections::HashMap;

use super::registry::derive;
use super::sample::{Sample, SampleKind, SampleValue};

/// The difference to `earlier`: counts are differences, levels are as of now, and derived meters
/// are derived from the differences. A count that was reset meanwhile is what came after the reset.
/// Percentiles are always since the last reset.
pub fn since(now: &[Sample], earlier: &[Sample]) -> Vec<Sample> {
    let before: HashMap<_, _> = earlier.iter().map(|s| ((&s.name, &s.labels), &s.value)).collect();
    let mut list: Vec<Sample> = now.to_vec();
    for sample in list.iter_mut().filter(|sample| sample.kind == SampleKind::Count) {
        if let Some(before) = before.get(&(&sample.name, &sample.labels)) {
            sample.value = difference(&sample.value, before);
        }
    }
    derive(&mut list);
    list
}

fn difference(now: &SampleValue, before: &SampleValue) -> SampleValue {
    match (now, before) {
        (SampleValue::Whole(now), SampleValue::Whole(before)) => {
            SampleValue::Whole(now.checked_sub(*before).unwrap_or(*now))
        }
        (SampleValue::Real(now), SampleValue::Real(before)) if now >= before => {
            SampleValue::Real(now - before)
        }
        (now, _) => now.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Samples;
    use super::*;

    fn tree(touches: u64, reads: u64, buffers: u64) -> Vec<Sample> {
        let mut out = Samples::default();
        out.labelled("tree", "psog", |out| {
            out.count("trees[].touches", "rows", touches);
            out.count("trees[].reads", "pages", reads);
            out.level("trees[].buffers", "pages", buffers);
            out.derived("trees[].read_percent", "%");
        });
        let mut list = out.into_list();
        derive(&mut list);
        list
    }

    fn values(samples: &[Sample]) -> Vec<f64> {
        samples.iter().map(|sample| sample.value.number()).collect()
    }

    #[test]
    fn counts_are_differences_and_the_rest_follows() {
        let (a, b) = (tree(99, 7, 5), tree(148, 32, 6));
        assert_eq!(values(&a), [99.0, 7.0, 5.0, 7.0], "read % rounds down");
        assert_eq!(values(&since(&b, &a)), [49.0, 25.0, 6.0, 50.0]);
    }

    #[test]
    fn a_reset_in_between_gives_what_came_after() {
        assert_eq!(values(&since(&tree(3, 1, 5), &tree(99, 7, 5))), [3.0, 1.0, 5.0, 25.0]);
        assert_eq!(values(&since(&tree(3, 1, 5), &[])), [3.0, 1.0, 5.0, 25.0], "a tree that is new");
    }
}
