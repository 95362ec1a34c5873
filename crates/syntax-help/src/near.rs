//! Words that are misspellings of others.

/// The word that another is a misspelling of: at most two letters differ, and fewer than half.
pub fn nearest<'a>(word: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 20;
    if !(3..=LONGEST).contains(&word.len()) || !word.is_ascii() {
        return None;
    }
    let upper = word.to_ascii_uppercase();
    let near = among.filter(|known| known.len() > 1 && known.as_bytes()[0].is_ascii_alphabetic());
    let near = near.map(|known| (distance(upper.as_bytes(), known.to_ascii_uppercase().as_bytes()), known));
    let near = near.filter(|(distance, _)| (1..=2).contains(distance) && distance * 2 < upper.len());
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// Letters to be put in, left out, changed or swapped with their neighbour (optimal string
/// alignment).
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<usize>>(), Vec::new()];
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let mut least = (rows[1][j] + usize::from(x != y)).min(rows[1][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                least = least.min(rows[0][j - 1] + 1);
            }
            row.push(least);
        }
        rows = [std::mem::take(&mut rows[1]), row, Vec::new()];
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_is_near() {
        let among = ["SELECT", "ASK", "OPTIONAL", "\".\"", "a variable", "FILTER"];
        for (word, known) in [
            ("SELCT", Some("SELECT")),
            ("slect", Some("SELECT")),
            ("SELETC", Some("SELECT")),
            ("OPTINAL", Some("OPTIONAL")),
            ("OPTNAL", Some("OPTIONAL")),
            ("OPTNL", None),
            ("FILTRE", Some("FILTER")),
            ("AKS", Some("ASK")),
            ("?x", None),
            ("DELETE", None),
            ("be", None),
            ("select", None),
        ] {
            assert_eq!(nearest(word, among.into_iter()), known, "{word}");
        }
        assert_eq!(distance(b"kitten", b"sitting"), 3);
        assert_eq!(distance(b"", b"ab"), 2);
    }
}
