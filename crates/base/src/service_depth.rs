//! How deep a request lies within others: a server that is asked by SERVICE or LOAD may ask others
//! in turn, and so itself.
//!
//! Each depth has places of its own, fewer the deeper: those that wait for an answer never hold
//! what the request for it needs. So a chain of requests ends at the deepest one allowed.

/// The header of a request that says how many others it lies within.
pub const HEADER: &str = "snowmelt-service-depth";

/// The deepest that a request may lie.
pub const MOST: u32 = 8;

/// Of `all` places, those for requests of this depth.
pub fn places(all: usize, depth: u32) -> usize {
    (all >> depth.min(MOST)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_depth_has_places_and_all_have_few_more() {
        for all in 1..100 {
            assert_eq!(places(all, 0), all);
            let places: Vec<usize> = (0..=MOST).map(|depth| places(all, depth)).collect();
            assert!(places.is_sorted_by(|a, b| a >= b) && *places.last().unwrap() > 0);
            assert!(places.iter().sum::<usize>() <= 2 * all + MOST as usize, "{places:?}");
        }
    }
}
