//! Filters of events, as text that the kernel takes: shorter than a page.
//!
//! Where exact ones would be longer, they let more through: what reads the events looks again.

use super::device_number::parted;

/// Numbers that a filter names one by one, or by ranges; more are joined with their neighbours.
const MOST_RANGES: usize = 24;
/// Names that a filter tells apart; of more it takes all of their kinds.
const MOST_NAMES: usize = 100;

/// Events of which a field has one of these numbers, or one between them where there are many.
pub fn any_number(field: &str, numbers: &[u32]) -> Vec<String> {
    let one = |(from, to): (u32, u32)| match from == to {
        true => format!("{field} == {from}"),
        false => format!("({field} >= {from} && {field} <= {to})"),
    };
    ranges(numbers).into_iter().map(one).collect()
}

/// Events whose field is the name of the write-back of one of these disks, or of these others.
pub fn any_name(field: &str, disks: &[u32], others: &[&str]) -> Vec<String> {
    if disks.len() + others.len() <= MOST_NAMES {
        let disks = disks.iter().map(|dev| parted(*dev)).map(|(major, minor)| format!("{major}:{minor}"));
        let names = disks.chain(others.iter().map(|name| (*name).to_owned()));
        return names.map(|name| format!("{field} == \"{name}\"")).collect();
    }
    let majors = disks.iter().map(|dev| format!("{}:*", parted(*dev).0));
    let kinds = others.iter().filter_map(|name| Some(format!("{}-*", name.rsplit_once('-')?.0)));
    let mut patterns: Vec<String> = majors.chain(kinds).collect();
    patterns.sort();
    patterns.dedup();
    patterns.into_iter().map(|pattern| format!("{field} ~ \"{pattern}\"")).collect()
}

/// Ranges that hold these numbers: runs, and of many the nearest ones joined.
fn ranges(numbers: &[u32]) -> Vec<(u32, u32)> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, to)) if number - *to == 1 => *to = number,
            _ => ranges.push((number, number)),
        }
    }
    while ranges.len() > MOST_RANGES {
        let gap = |at: &usize| ranges[at + 1].0 - ranges[*at].1;
        let nearest = (0..ranges.len() - 1).min_by_key(gap).unwrap_or(0);
        let (_, to) = ranges.remove(nearest + 1);
        ranges[nearest].1 = to;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::super::device_number::joined;
    use super::*;

    #[test]
    fn runs_are_ranges_and_far_numbers_stay_apart() {
        assert_eq!(ranges(&[9, 3, 1, 2, 2]), [(1, 3), (9, 9)]);
        assert_eq!(any_number("dev", &[7, 1, 2]), ["(dev >= 1 && dev <= 2)", "dev == 7"]);
        let many: Vec<u32> = (0..100).map(|n| n * 10 + n / 50 * 5000).collect();
        let joined = ranges(&many);
        assert!(
            joined.len() == MOST_RANGES && joined.iter().all(|(from, to)| to - from < 1000),
            "{joined:?}"
        );
        assert!(many.iter().all(|n| joined.iter().any(|(from, to)| (from..=to).contains(&n))));
        assert!(ranges(&[]).is_empty());
    }

    #[test]
    fn many_names_are_their_kinds() {
        let disks: Vec<u32> = (0..150).map(|minor| joined(253, minor)).collect();
        assert_eq!(
            any_name("name", &disks[..1], &["btrfs-3"]),
            [r#"name == "253:0""#, r#"name == "btrfs-3""#]
        );
        let kinds = any_name("name", &disks, &["btrfs-3", "btrfs-4"]);
        assert_eq!(kinds, [r#"name ~ "253:*""#, r#"name ~ "btrfs-*""#]);
    }
}
