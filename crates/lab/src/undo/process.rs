//! Processes as /proc shows them: identity, and the ones below another.

/// When process `pid` was started, in clock ticks since boot; nothing when there is none.
pub fn process_start(pid: u32) -> Option<u64> {
    let stat = ProcessStat::read(pid)?;
    (stat.state != "Z" && stat.state != "X").then_some(stat.start)
}

/// Children of process `pid`, theirs, and so on: each behind its parent.
pub fn processes_below(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> =
        pids.filter_map(|pid| Some((pid, ProcessStat::read(pid)?.parent))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(above) = found.get(next).copied() {
        let children = parents.iter().filter(|(_, parent)| *parent == above).map(|(child, _)| *child);
        found.extend(children.collect::<Vec<_>>());
        next += 1;
    }
    found.split_off(1)
}

/// True when that process was killed, but threads of it are left, which wait in the kernel.
pub(super) fn is_stuck(pid: u32, start: u64) -> bool {
    let killed = ProcessStat::read(pid).is_some_and(|stat| stat.state == "Z" && stat.start == start);
    killed && std::fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() > 1)
}

struct ProcessStat {
    state: String,
    parent: u32,
    start: u64,
}

impl ProcessStat {
    fn read(pid: u32) -> Option<ProcessStat> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in brackets, may hold anything; the fields behind it are counted from 3.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.to_string();
        let parent = fields.next()?.parse().ok()?;
        Some(ProcessStat { state, parent, start: fields.nth(17)?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_children_are_found_each_behind_its_parent() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sh -c 'sleep 600 & wait' & wait"])
            .spawn()
            .expect("sh starts");
        let mut below = Vec::new();
        for _ in 0..500 {
            below = processes_below(shell.id());
            if below.len() == 2 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let parents: Vec<u32> =
            below.iter().map(|pid| ProcessStat::read(*pid).expect("it runs").parent).collect();
        for pid in below.iter().chain([&shell.id()]) {
            let pid = rustix::process::Pid::from_raw(*pid as i32).expect("a number");
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
        }
        shell.wait().expect("ended");
        assert_eq!(parents, [shell.id(), below[0]]);
    }

    #[test]
    fn this_process_has_started() {
        assert!(process_start(std::process::id()).expect("this process runs") > 0);
        assert_eq!(process_start(u32::MAX), None);
    }
}
