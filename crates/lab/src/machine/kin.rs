//! Processor time of a process and of all that it started.
//!
//! A child's time passes to its parent when that waits for it, so the sum over a tree of what each
//! process used itself and got from children that ended only grows while parents wait.

use std::collections::HashMap;
use std::fs;

/// Fields of `/proc/PID/stat` behind the name in parentheses: parent, and processor time in ticks,
/// that of children who ended included.
fn parse(stat: &str) -> Option<(u32, u64)> {
    // state is field 3, the parent 4, utime to cstime are 14 to 17
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|n| n.parse::<u64>().ok()).sum();
    Some((fields.get(1)?.parse().ok()?, ticks))
}

/// Ticks of the processes `roots` and of all below them.
pub(super) fn ticks(roots: &[u32]) -> u64 {
    let mut all: HashMap<u32, (u32, u64)> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        all.extend(parse(&stat).map(|of| (pid, of)));
    }
    all.iter().filter(|(pid, _)| is_kin(**pid, roots, &all)).map(|(_, (_, ticks))| ticks).sum()
}

/// Ticks of this process's children that ended, with those of what they started and waited for.
pub(super) fn of_children() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    fields.split(' ').skip(13).take(2).filter_map(|n| n.parse::<u64>().ok()).sum()
}

fn is_kin(pid: u32, roots: &[u32], all: &HashMap<u32, (u32, u64)>) -> bool {
    let mut at = pid;
    // A number that was used again meanwhile could make a ring.
    for _ in 0..=all.len() {
        if roots.contains(&at) {
            return true;
        }
        match all.get(&at) {
            Some((parent, _)) if *parent != 0 => at = *parent,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_and_parentheses_are_no_fields() {
        let stat = "7 (a ) b) S 3 7 7 0 -1 4194304 1 2 3 4 100 20 3 4 20 0 1 0 5";
        assert_eq!(parse(stat), Some((3, 127)));
        assert_eq!(parse("7 (cut) S 3"), None);
    }

    #[test]
    fn kin_are_found_at_any_depth_and_rings_end() {
        let all = HashMap::from([(2, (1, 5)), (3, (2, 7)), (4, (1, 9)), (8, (9, 1)), (9, (8, 1))]);
        let of = |root| all.keys().filter(|pid| is_kin(**pid, &[root], &all)).count();
        assert_eq!((of(2), of(4), of(1), of(77)), (2, 1, 3, 0));
    }
}
