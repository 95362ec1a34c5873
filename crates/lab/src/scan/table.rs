//! A table over one or more files: the place of each of its bytes.

use std::path::PathBuf;

use snowmelt_io::Piece;

use super::plan::Layout;

/// Unit of fine striping, in bytes.
const FINE: u64 = 64 << 10;
/// Unit of coarse striping.
const COARSE: u64 = 1 << 20;
/// Parts of a table end at multiples of this, so that direct reads are aligned.
const GRAIN: u64 = 1 << 20;

/// A table and its layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanTable {
    /// The files or devices.
    pub files: Vec<PathBuf>,
    layout: Layout,
    /// Bytes.
    pub len: u64,
}

impl ScanTable {
    /// A table of at most `wanted` bytes on files of the given lengths; its length is a whole
    /// number of MiB.
    ///
    /// # Errors
    /// The files are too few or too short for the layout; the message says so.
    pub fn new(files: Vec<(PathBuf, u64)>, layout: Layout, wanted: Option<u64>) -> Result<ScanTable, String> {
        let used = if layout == Layout::Single { 1 } else { files.len() };
        if used < 2 && layout != Layout::Single {
            return Err(format!("layout {layout} needs several files: name them with --files"));
        }
        let shortest = files[..used].iter().map(|(_, len)| *len).min().unwrap_or(0);
        let each = shortest / GRAIN * GRAIN;
        let all = each * used as u64;
        let len = match wanted {
            Some(wanted) if wanted > all => {
                return Err(format!(
                    "{} bytes were asked for, but {} has {all}; name a smaller --size",
                    wanted,
                    files[0].0.display()
                ));
            }
            Some(wanted) => wanted.next_multiple_of(GRAIN * used as u64).min(all),
            None => all,
        };
        if len == 0 {
            return Err(format!("{} holds less than 1 MiB: that is no table", files[0].0.display()));
        }
        let files = files.into_iter().take(used).map(|(path, _)| path).collect();
        Ok(ScanTable { files, layout, len })
    }

    /// The piece that begins at `at` and is at most `most` bytes long, within `end`.
    pub fn piece(&self, at: u64, most: usize, end: u64) -> Piece {
        let most = (most as u64).min(end - at);
        let n = self.files.len() as u64;
        let (device, offset, left) = match self.layout {
            Layout::Single => (0, at, self.len - at),
            Layout::Jbod => {
                let each = self.len / n;
                (at / each, at % each, each - at % each)
            }
            Layout::StripeFine => striped(at, FINE, n),
            Layout::StripeCoarse => striped(at, COARSE, n),
        };
        Piece { device: device as usize, offset, len: most.min(left) as usize }
    }

    /// The part of `n` that belongs to number `i`: contiguous, whole MiB where there are enough
    /// of them.
    pub fn part(&self, from: u64, to: u64, i: u64, n: u64) -> (u64, u64) {
        let grain = if to - from >= n * GRAIN { GRAIN } else { 4096 };
        let units = (to - from) / grain;
        let edge = |i: u64| if i == n { to } else { from + units * i / n * grain };
        (edge(i), edge(i + 1))
    }

    /// All pieces from `from` to `to`, `size` long where the layout allows, in the order one
    /// scan should read them: one after the other, and where parts of the table lie on devices
    /// of their own, a piece of each in turn.
    pub fn pieces(&self, from: u64, to: u64, size: usize) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut at = from;
        while at < to {
            let piece = self.piece(at, size, to);
            at += piece.len as u64;
            pieces.push(piece);
        }
        if self.layout != Layout::Jbod {
            return pieces;
        }
        let mut by_device = vec![std::collections::VecDeque::new(); self.files.len()];
        pieces.iter().for_each(|piece| by_device[piece.device].push_back(*piece));
        pieces.clear();
        while by_device.iter().any(|queue| !queue.is_empty()) {
            pieces.extend(by_device.iter_mut().filter_map(|queue| queue.pop_front()));
        }
        pieces
    }
}

fn striped(at: u64, unit: u64, n: u64) -> (u64, u64, u64) {
    let (stripe, within) = (at / unit, at % unit);
    (stripe % n, stripe / n * unit + within, unit - within)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn table(layout: Layout) -> ScanTable {
        let files = (0..4).map(|i| (PathBuf::from(format!("f{i}")), 5_000_000)).collect();
        ScanTable::new(files, layout, None).expect("large enough")
    }

    #[test]
    fn every_layout_covers_its_files_once() {
        for layout in [Layout::Single, Layout::Jbod, Layout::StripeFine, Layout::StripeCoarse] {
            let table = table(layout);
            assert_eq!(table.len, if layout == Layout::Single { 4 << 20 } else { 16 << 20 });
            let mut blocks = BTreeSet::new();
            for piece in table.pieces(0, table.len, 192 << 10) {
                assert!(piece.offset + piece.len as u64 <= 4 << 20, "{piece:?}");
                for block in 0..piece.len as u64 / 4096 {
                    assert!(
                        blocks.insert((piece.device, piece.offset / 4096 + block)),
                        "{layout}: {piece:?}"
                    );
                }
            }
            assert_eq!(blocks.len() as u64 * 4096, table.len, "{layout}");
        }
    }

    #[test]
    fn parts_meet_without_gaps() {
        let table = table(Layout::StripeFine);
        for n in [1, 3, 7, 16, 80] {
            let parts: Vec<_> = (0..n).map(|i| table.part(0, table.len, i, n)).collect();
            assert_eq!((parts[0].0, parts[n as usize - 1].1), (0, table.len));
            assert!(parts.windows(2).all(|w| w[0].1 == w[1].0 && w[0].0 <= w[0].1), "{parts:?}");
            assert!(parts.iter().all(|(a, b)| a < b), "{n}: nobody goes without");
        }
    }

    #[test]
    fn a_table_that_is_too_large_is_refused_with_the_size_there_is() {
        let file = || vec![(PathBuf::from("f"), 3 << 20)];
        let error = ScanTable::new(file(), Layout::Single, Some(4 << 20)).expect_err("too large");
        assert!(error.contains("3145728") && error.contains("--size"), "{error}");
        assert!(ScanTable::new(file(), Layout::Jbod, None).expect_err("one file").contains("--files"));
        assert_eq!(ScanTable::new(file(), Layout::Single, Some(1_500_000)).expect("fits").len, 2 << 20);
    }
}
