//! The cells of a grid: every combination of one entry from each of several lists.

/// The places of all cells of a grid whose lists have these lengths. The last list changes
/// fastest. A list without an entry leaves no cell.
pub fn grid<const N: usize>(lens: [usize; N]) -> impl Iterator<Item = [usize; N]> {
    let cells: usize = lens.iter().product();
    (0..cells).map(move |cell| {
        let mut rest = cell;
        let mut places = [0; N];
        for (place, len) in places.iter_mut().zip(lens).rev() {
            *place = rest % len;
            rest /= len;
        }
        assert!(rest == 0, "a cell lies inside of its grid");
        places
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_comes_once_the_last_list_changing_fastest() {
        let cells: Vec<[usize; 3]> = grid([2, 1, 3]).collect();
        let want = [[0, 0, 0], [0, 0, 1], [0, 0, 2], [1, 0, 0], [1, 0, 1], [1, 0, 2]];
        assert_eq!(cells, want);
        assert_eq!(grid([3, 0, 2]).count(), 0);
        assert_eq!(grid([]).count(), 1);
    }
}
