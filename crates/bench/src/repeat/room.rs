//! Room that the steps of an experiment take at once on the disk of their run folder, so that the
//! last of them does not fail after hours for what the first could have told. Emulated devices keep
//! their bytes in memory.

use super::Experiment;
use crate::compare::data::{TRIPLES_PER_PRODUCT, bytes_needed as of_engines, text_bytes};
use crate::scale::room::{Kept, bytes_at_once, bytes_kept, bytes_needed};

/// Scale factor of E4's tables, in GB; PostgreSQL holds them and their indexes twice while it makes
/// them.
const TABLES_BYTES: u64 = 4_000_000_000;

/// Bytes that the experiment needs.
pub fn needed(experiment: Experiment, is_quick: bool) -> u64 {
    let engines =
        |products: u32, engines| of_engines(u64::from(products) * TRIPLES_PER_PRODUCT, engines, true);
    match (experiment, is_quick) {
        (Experiment::E1, true) => text_bytes(600) + bytes_needed(600),
        // The databases of both sizes stay while the engines are compared.
        (Experiment::E1, false) => {
            let ours = bytes_kept(2785) + bytes_kept(28_480);
            ours + text_bytes(28_480).max(engines(28_480, 2))
        }
        (Experiment::E2, true) => bytes_at_once(&[278, 2785], Kept::Yes),
        (Experiment::E2, false) => bytes_at_once(&[28_480, 284_826], Kept::Yes).max(engines(28_480, 1)),
        (Experiment::E4, false) => TABLES_BYTES,
        (Experiment::E3 | Experiment::E5, _) | (Experiment::E4, true) => 1 << 30,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_form_needs_more_than_the_quick_one() {
        for experiment in [Experiment::E1, Experiment::E2, Experiment::E4] {
            let [quick, whole] = [true, false].map(|is_quick| needed(experiment, is_quick));
            assert!(quick >= 100 << 20 && whole > 2 * quick, "{experiment:?}: {quick}, {whole}");
        }
        let e2 = needed(Experiment::E2, false);
        assert!((4 << 30..12 << 30).contains(&e2), "2.8 GiB stay, twice that while it is loaded: {e2}");
    }
}
