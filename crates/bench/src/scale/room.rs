//! Whether a disk has room for databases of the benchmark, before hours are spent on them.

use std::path::Path;

use snowmelt_lab::{LabError, room};

/// Bytes of a database for each product: about 360 triples of 34 bytes (measured: 30 at 10
/// million triples, 33.8 at 1000 million), and a tenth more for extents that are not full.
const BYTES_PER_PRODUCT: u64 = 360 * 34 * 11 / 10;

/// Least bytes of a database, with any data set.
const LEAST_BYTES: u64 = 256 << 20;

/// Bytes that the database of `products` products needs while it is loaded: the sorted rows of an
/// index wait in temporary files beside it.
pub fn bytes_needed(products: u32) -> u64 {
    LEAST_BYTES + 2 * u64::from(products) * BYTES_PER_PRODUCT
}

/// Bytes that stay when it is loaded.
pub fn bytes_kept(products: u32) -> u64 {
    LEAST_BYTES + u64::from(products) * BYTES_PER_PRODUCT
}

/// Most bytes that are in use at once while the databases of these scales are made and measured
/// one after the other.
pub fn bytes_at_once(products: &[u32], keep: Kept) -> u64 {
    let (mut before, mut most) = (0, 0);
    for n in products {
        most = most.max(before + bytes_needed(*n));
        if keep == Kept::Yes {
            before += bytes_kept(*n);
        }
    }
    most
}

/// Whether databases stay when they were measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// They stay.
    Yes,
    /// Each is removed before the next is made.
    No,
}

/// Refuses databases of so many bytes in `dir` where they are not free.
///
/// # Errors
/// There is no room; the error names both figures.
pub fn check(dir: &Path, needed: u64) -> Result<(), LabError> {
    let instead = "name another place with --dir, or smaller scales with --products";
    room::check(dir, needed, instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_databases_add_up_and_others_do_not() {
        let scales = [1000, 100_000, 100];
        assert_eq!(bytes_at_once(&scales, Kept::No), bytes_needed(100_000));
        assert_eq!(bytes_at_once(&scales, Kept::Yes), bytes_kept(1000) + bytes_needed(100_000));
        assert_eq!(bytes_at_once(&[], Kept::Yes), 0);
        let thousand_million = bytes_kept(2_848_260);
        assert!((34 << 30..45 << 30).contains(&thousand_million), "{thousand_million} for 33.8 GB of files");
    }

    #[test]
    fn a_full_disk_is_said_with_its_remedy() {
        let here = std::env::temp_dir();
        check(&here, 0).unwrap();
        let error = check(&here, u64::MAX).unwrap_err().to_string();
        assert!(error.contains("are needed") && error.contains("--dir"), "{error}");
    }
}
