//! `/proc/PID/stat`: a process, its parent, its counts.

use std::collections::{HashMap, HashSet};
use std::fs;

/// The fields that are used here. Counts are its own and those of the children it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcStat {
    pub parent: u32,
    /// A thread of the kernel.
    pub is_kernel: bool,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub user_ticks: u64,
    pub system_ticks: u64,
    /// The children's part of the ticks.
    pub waited_ticks: u64,
    pub threads: u64,
    pub start: u64,
    pub rss_pages: u64,
    /// It ignores the end of its children (SIGCHLD): the kernel adds their counts to no process.
    pub loses_children: bool,
}

impl ProcStat {
    /// The name, and the fields behind it.
    fn parse(text: &str) -> Option<(&str, ProcStat)> {
        const OF_KERNEL: u64 = 0x0020_0000; // PF_KTHREAD
        const CHILD: u64 = 1 << 16; // SIGCHLD, of the signals that are ignored
        // The name, in brackets, may hold anything; the fields behind it are counted from 3.
        let (head, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let stat = ProcStat {
            parent: number(4)? as u32,
            is_kernel: number(9)? & OF_KERNEL != 0,
            minor_faults: number(10)? + number(11)?,
            major_faults: number(12)? + number(13)?,
            user_ticks: number(14)? + number(16)?,
            system_ticks: number(15)? + number(17)?,
            waited_ticks: number(16)? + number(17)?,
            threads: number(20)?,
            start: number(22)?,
            rss_pages: number(24)?,
            loses_children: number(33).is_some_and(|ignored| ignored & CHILD != 0),
        };
        Some((head.split_once('(')?.1, stat))
    }

    /// Of a process that runs.
    pub fn read(pid: u32) -> Option<ProcStat> {
        Self::read_named(pid).map(|(_, stat)| stat)
    }

    /// With the name of the program.
    pub fn read_named(pid: u32) -> Option<(String, ProcStat)> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (name, stat) = ProcStat::parse(&text)?;
        Some((name.to_owned(), stat))
    }

    /// Processor time.
    pub fn ticks(&self) -> u64 {
        self.user_ticks + self.system_ticks
    }
}

/// All processes now.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// `roots`, and all processes below them.
pub(crate) fn with_children<T>(
    roots: &HashSet<u32>,
    all: &HashMap<u32, T>,
    parent: impl Fn(&T) -> u32,
) -> HashSet<u32> {
    let mut family = roots.clone();
    loop {
        let is_new = |(pid, of): &(&u32, &T)| !family.contains(*pid) && family.contains(&parent(of));
        let found: Vec<u32> = all.iter().filter(is_new).map(|(pid, _)| *pid).collect();
        if found.is_empty() {
            return family;
        }
        family.extend(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "7 (a ) b) S 3 7 7 0 -1 4194304 1 2 3 4 100 20 3 4 20 0 1 0 5 6 8";

    #[test]
    fn names_with_spaces_and_parentheses_are_no_fields() {
        let (name, stat) = ProcStat::parse(LINE).unwrap();
        assert_eq!((name, stat.parent, stat.ticks(), stat.waited_ticks), ("a ) b", 3, 127, 7));
        assert_eq!((stat.minor_faults, stat.major_faults, stat.is_kernel), (3, 7, false));
        assert_eq!((stat.threads, stat.start, stat.rss_pages), (1, 5, 8));
        let of_kernel = ProcStat::parse("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0");
        assert!(of_kernel.unwrap().1.is_kernel);
        assert_eq!(ProcStat::parse("7 (cut) S 3"), None);
    }

    #[test]
    fn a_recorded_line_is_read() {
        let line = "42 (a) b (c) R 7 1 1 0 -1 4194304 100 20 3 4 50 60 7 8 20 0 5 0 999 1000000 250 18446744073709551615";
        let want = ProcStat {
            parent: 7,
            is_kernel: false,
            minor_faults: 120,
            major_faults: 7,
            user_ticks: 57,
            system_ticks: 68,
            waited_ticks: 15,
            threads: 5,
            start: 999,
            rss_pages: 250,
            loses_children: false,
        };
        assert_eq!(ProcStat::parse(line), Some(("a) b (c", want)));
        assert_eq!(ProcStat::parse("42 (x) R 7"), None);
    }

    #[test]
    fn a_process_that_ignores_the_end_of_its_children_loses_them() {
        let of = |ignored: u64| {
            let rest = format!("9 1 2 3 4 5 6 0 {ignored} 0 0");
            ProcStat::parse(&format!("{LINE} {rest}")).unwrap().1.loses_children
        };
        assert_eq!([of(0), of(1 << 16), of(0x1000), of((1 << 16) | 1)], [false, true, false, true]);
        assert!(!ProcStat::read(std::process::id()).unwrap().loses_children);
    }

    #[test]
    fn children_are_found_at_any_depth_and_rings_end() {
        let parents = HashMap::from([(2, 1), (3, 2), (4, 1), (8, 9), (9, 8)]);
        let of = |root| {
            let family = with_children(&HashSet::from([root]), &parents, |parent| *parent);
            family.iter().filter(|pid| parents.contains_key(pid)).count()
        };
        assert_eq!((of(2), of(4), of(1), of(77)), (2, 1, 3, 0));
    }
}
