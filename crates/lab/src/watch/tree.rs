//! A process with everything it starts: processor time, I/O, page faults, memory, as sums that
//! only grow.
//!
//! The kernel adds the counts of a child to its parent's when the parent waits for it. So the
//! sum over the living members, each with what it has waited for, is whole, except for members
//! whose parent is not one (daemons, whose parent became init): their last counts are kept here
//! when they are gone.

use std::collections::HashMap;

use serde::Serialize;

use crate::group::Group;
use crate::machine::proc_stat::{ProcStat, pids};
use crate::machine::program::ProcessIo;

/// Sums over a process and everything it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct TreeCounts {
    /// Processor time in user mode, seconds.
    pub user_s: f64,
    /// Processor time in the kernel, seconds.
    pub system_s: f64,
    /// Page faults answered from memory.
    pub minor_faults: u64,
    /// Page faults that waited for storage.
    pub major_faults: u64,
    /// Calls and bytes; zero where /proc does not show them to us.
    pub io: ProcessIo,
    /// Memory in use now, bytes.
    pub rss_bytes: u64,
    /// Processes now.
    pub processes: u64,
    /// Threads now.
    pub threads: u64,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    stat: ProcStat,
    io: ProcessIo,
}

/// The members, and what the ones that are gone left.
pub struct Tree {
    members: HashMap<u32, Member>,
    gone: TreeCounts,
    /// Its processes are members too, also those of other parents.
    group: Option<Group>,
    ticks_per_s: f64,
    page_bytes: u64,
}

impl Tree {
    /// The tree below process `root`.
    pub fn new(root: u32) -> Tree {
        let mut tree = Tree::empty();
        tree.add_root(root);
        tree
    }

    /// Without members yet.
    pub fn empty() -> Tree {
        Tree {
            members: HashMap::new(),
            gone: TreeCounts::default(),
            group: None,
            ticks_per_s: rustix::param::clock_ticks_per_second() as f64,
            page_bytes: rustix::param::page_size() as u64,
        }
    }

    /// The processes of a control group.
    pub fn of_group(group: Group) -> Tree {
        Tree { group: Some(group), ..Tree::empty() }
    }

    /// The group, if it is one.
    pub fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// Process `root` and what it starts are members from now on.
    pub fn add_root(&mut self, root: u32) {
        if let Some(stat) = ProcStat::read(root) {
            self.members.entry(root).or_insert(Member { stat, io: ProcessIo::default() });
        }
    }

    /// Reads the members, and adds up their counts.
    pub fn now(&mut self) -> TreeCounts {
        let all: HashMap<u32, ProcStat> =
            pids().filter_map(|pid| Some((pid, ProcStat::read(pid)?))).collect();
        if let Some(group) = &self.group {
            for pid in group.pids() {
                if let Some(stat) = all.get(&pid) {
                    self.members.entry(pid).or_insert(Member { stat: *stat, io: ProcessIo::default() });
                }
            }
        }
        self.update(&all, &|pid| ProcessIo::read(pid));
        self.sum()
    }

    fn update(&mut self, all: &HashMap<u32, ProcStat>, io_of: &dyn Fn(u32) -> Option<ProcessIo>) {
        let known: Vec<u32> = self.members.keys().copied().collect();
        for pid in &known {
            let member = self.members[pid];
            if all.get(pid).is_some_and(|stat| stat.start == member.stat.start) {
                continue;
            }
            // Its parent has its counts now, if that is one of us.
            if !known.contains(&member.stat.parent) {
                let counts = self.counts(&member);
                add(&mut self.gone, &counts);
            }
            self.members.remove(pid);
        }
        // Children of members are members; their children too.
        let mut found = true;
        while found {
            found = false;
            for (pid, stat) in all {
                if !self.members.contains_key(pid) && self.members.contains_key(&stat.parent) {
                    self.members.insert(*pid, Member { stat: *stat, io: ProcessIo::default() });
                    found = true;
                }
            }
        }
        for (pid, member) in &mut self.members {
            if let Some(stat) = all.get(pid) {
                member.stat = *stat;
            }
            member.io = io_of(*pid).unwrap_or(member.io);
        }
    }

    fn sum(&self) -> TreeCounts {
        let mut sum = self.gone;
        for member in self.members.values() {
            add(&mut sum, &self.counts(member));
            sum.rss_bytes += member.stat.rss_pages * self.page_bytes;
            sum.processes += 1;
            sum.threads += member.stat.threads;
        }
        sum
    }

    fn counts(&self, member: &Member) -> TreeCounts {
        TreeCounts {
            user_s: member.stat.user_ticks as f64 / self.ticks_per_s,
            system_s: member.stat.system_ticks as f64 / self.ticks_per_s,
            minor_faults: member.stat.minor_faults,
            major_faults: member.stat.major_faults,
            io: member.io,
            ..TreeCounts::default()
        }
    }
}

/// Adds what only grows.
fn add(sum: &mut TreeCounts, counts: &TreeCounts) {
    sum.user_s += counts.user_s;
    sum.system_s += counts.system_s;
    sum.minor_faults += counts.minor_faults;
    sum.major_faults += counts.major_faults;
    sum.io = sum.io.plus(counts.io);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(parent: u32, start: u64, ticks: u64) -> ProcStat {
        ProcStat {
            parent,
            is_kernel: false,
            minor_faults: 1,
            major_faults: 2,
            user_ticks: ticks,
            system_ticks: 0,
            waited_ticks: 0,
            threads: 3,
            start,
            rss_pages: 10,
            loses_children: false,
        }
    }

    #[test]
    fn counts_only_grow_while_processes_come_and_go() {
        let ticks = 100.0;
        let mut tree = Tree {
            members: HashMap::new(),
            gone: TreeCounts::default(),
            group: None,
            ticks_per_s: ticks,
            page_bytes: 4096,
        };
        tree.members.insert(10, Member { stat: stat(1, 5, 0), io: ProcessIo::default() });
        let io = |_| Some(ProcessIo { rchar: 8, ..ProcessIo::default() });
        // A child, a grandchild, and a stranger.
        let all =
            [(10, stat(1, 5, 100)), (11, stat(10, 6, 200)), (12, stat(11, 7, 300)), (99, stat(1, 8, 9))];
        tree.update(&all.into(), &io);
        let sum = tree.sum();
        assert_eq!((sum.user_s, sum.processes, sum.threads, sum.io.rchar), (6.0, 3, 9, 24));
        // The child is gone: the root waited for it and has its time. The grandchild is a
        // daemon now, and stays one of us.
        tree.update(&[(10, stat(1, 5, 300)), (12, stat(1, 7, 350))].into(), &io);
        let sum = tree.sum();
        assert_eq!((sum.user_s, sum.processes), (6.5, 2));
        // The daemon is gone: none of its relatives has its time. Its number belongs to another
        // now.
        tree.update(&[(10, stat(1, 5, 300)), (12, stat(1, 70, 1))].into(), &io);
        let sum = tree.sum();
        assert_eq!((sum.user_s, sum.processes, sum.io.rchar), (6.5, 1, 16));
    }
}
