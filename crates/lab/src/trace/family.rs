//! The threads of the program that is traced, and of everything it starts.
//!
//! Fork events name the new ones. Threads of the kernel that work for the program
//! (io_uring's) have no such event: the first time an unknown thread appears, /proc says whose
//! it is, or, when it has ended before that, its name: `iou-wrk-4711` works for thread 4711.

use std::collections::{HashMap, HashSet};

/// The program's processes and threads.
#[derive(Default)]
pub struct Family {
    root: u32,
    /// When it was there already, in ns of CLOCK_MONOTONIC.
    there_ns: u64,
    known: HashMap<u32, bool>,
}

impl Family {
    /// Process `root`, which is there at `there_ns` (CLOCK_MONOTONIC), and all its threads and
    /// children.
    pub fn new(root: u32, there_ns: u64) -> Family {
        Family { root, there_ns, known: HashMap::from([(root, true)]) }
    }

    /// True when the process made then is the program itself: one that gets its number later is
    /// another.
    pub fn is_birth(&self, time_ns: u64, child: u32) -> bool {
        child == self.root && time_ns <= self.there_ns
    }

    /// `parent` made `child`, then.
    pub fn forked(&mut self, time_ns: u64, parent: u32, child: u32) {
        // The program itself was made by us. A number that is used again belongs to its new
        // parent's family.
        let ours = self.is_birth(time_ns, child) || self.contains(parent);
        self.known.insert(child, ours);
    }

    /// True when thread `pid` belongs to the program.
    pub fn contains(&mut self, pid: u32) -> bool {
        if let Some(ours) = self.known.get(&pid) {
            return *ours;
        }
        let ours = self.descends(pid);
        self.known.insert(pid, ours);
        ours
    }

    /// As [`contains`](Self::contains), of a thread with this name.
    pub fn contains_named(&mut self, pid: u32, name: &[u8]) -> bool {
        let works_for = |name: &str| {
            let number = name.strip_prefix("iou-wrk-").or_else(|| name.strip_prefix("iou-sqp-"))?;
            number.parse::<u32>().ok()
        };
        let Some(asker) = std::str::from_utf8(name).ok().and_then(works_for) else {
            return self.contains(pid);
        };
        // No event tells of its beginning, so its number may be known as that of an earlier thread.
        let is_told = self.known.contains_key(&asker) || group_and_parent(asker).is_some();
        let ours = self.contains(if is_told { asker } else { pid });
        self.known.insert(pid, ours);
        ours
    }

    /// The program.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Looks it up: by thread group, then parents.
    fn descends(&self, pid: u32) -> bool {
        let mut seen = HashSet::new();
        let mut at = pid;
        while at > 1 && seen.insert(at) {
            let Some((group, parent)) = group_and_parent(at) else { return false };
            if self.known.get(&group).copied().unwrap_or(false) {
                return true;
            }
            at = if group == at { parent } else { group };
        }
        false
    }
}

/// Process of a thread, and the process that made it.
pub fn group_and_parent(pid: u32) -> Option<(u32, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    Some((field("Tgid:")?, field("PPid:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_and_threads_belong_to_it_and_others_do_not() {
        let mut family = Family::new(4_100_000, 10);
        family.forked(9, 1, 4_100_000);
        family.forked(11, 4_100_000, 4_100_001);
        family.forked(12, 4_100_001, 4_100_002);
        family.forked(13, 1, 4_100_003);
        assert!([4_100_000, 4_100_001, 4_100_002].into_iter().all(|pid| family.contains(pid)));
        assert!(!family.contains(4_100_003) && !family.contains(1));
        // A worker of io_uring that ended before /proc was asked.
        assert!(family.contains_named(4_100_010, b"iou-wrk-4100001"));
        assert!(family.contains(4_100_010) && !family.contains_named(4_100_011, b"iou-wrk-4100003"));
        assert!(!family.contains_named(4_100_012, b"dd"));
        let mut own = Family::new(std::process::id(), 0);
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
                send.send(thread).expect("somebody listens");
                std::thread::sleep(std::time::Duration::from_millis(300));
            });
            assert!(own.contains(receive.recv().expect("a thread")), "a thread is found by /proc");
        });
        let mut child = std::process::Command::new("sleep").arg("5").spawn().expect("it starts");
        assert!(own.contains(child.id()), "a child is found by /proc");
        child.kill().and_then(|()| child.wait()).expect("it ends");
    }

    #[test]
    fn a_number_that_is_used_again_is_another_s() {
        let mut family = Family::new(4_100_000, 10);
        family.forked(9, 1, 4_100_000);
        family.forked(11, 4_100_000, 4_100_001);
        family.forked(12, 1, 4_100_001);
        assert!(!family.contains(4_100_001), "of a child");
        // A worker of io_uring has no event: by its name it is of the one that it works for.
        assert!(family.contains_named(4_100_001, b"iou-wrk-4100000"));
        family.forked(13, 4_100_000, 4_100_002);
        family.forked(13, 1, 4_100_003);
        assert!(!family.contains_named(4_100_002, b"iou-wrk-4100003"));
        family.forked(14, 1, 4_100_000);
        assert!(!family.contains(4_100_000), "of the program itself");
    }
}
