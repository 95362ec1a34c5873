//! How much memory this process may take: the smallest limit of its cgroup, of those around it,
//! and of the machine.
//!
//! A process is in one cgroup of each hierarchy (`/proc/self/cgroup`), and every cgroup on the
//! way to the root may have a limit: a service in a slice, a container in a pod. In a container
//! the root of what is mounted is the container's own cgroup.

use std::path::Path;

/// Bytes of memory of the process's cgroup if it has a limit, else of the machine.
pub fn machine_memory() -> u64 {
    let info = rustix::system::sysinfo();
    let machine = (info.totalram as u64).saturating_mul(info.mem_unit.max(1) as u64);
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    cgroup_limit(&own, Path::new("/sys/fs/cgroup")).map_or(machine, |limit| limit.min(machine))
}

/// The smallest memory limit of the cgroups that `own` (the text of `/proc/self/cgroup`) names,
/// and of those above them.
fn cgroup_limit(own: &str, mounted: &Path) -> Option<u64> {
    own.lines().chain(["0::/", "0:memory:/"]).filter_map(|line| limit_of_line(line, mounted)).min()
}

/// The smallest limit that one line names, `number:controllers:path`. Version 2 has no controllers.
fn limit_of_line(line: &str, mounted: &Path) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let (root, file) = if controllers.is_empty() {
        (mounted.to_path_buf(), "memory.max")
    } else if controllers.split(',').any(|c| c == "memory") {
        (mounted.join("memory"), "memory.limit_in_bytes")
    } else {
        return None;
    };
    // A path that leads out of what is mounted says nothing of limits.
    let below = Path::new(path.trim_start_matches('/'));
    let limit = |dir: &Path| std::fs::read_to_string(root.join(dir).join(file)).ok()?.trim().parse().ok();
    below.ancestors().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_memory() {
        assert!(machine_memory() > 64 << 20);
    }

    #[test]
    fn the_smallest_limit_on_the_way_up_counts() {
        let at = tempfile::tempdir().unwrap();
        let put = |dir: &str, file: &str, text: &str| {
            std::fs::create_dir_all(at.path().join(dir)).unwrap();
            std::fs::write(at.path().join(dir).join(file), text).unwrap();
        };
        put("system.slice/snowmelt.service", "memory.max", "max\n");
        put("system.slice", "memory.max", "3000000\n");
        put("memory/pod/one", "memory.limit_in_bytes", "9000000\n");
        put("memory/pod", "memory.limit_in_bytes", "8000000\n");
        let limit = |own| cgroup_limit(own, at.path());
        assert_eq!(limit("0::/system.slice/snowmelt.service\n"), Some(3_000_000));
        assert_eq!(limit("12:cpu,memory:/pod/one\n1:name=systemd:/x\n"), Some(8_000_000));
        assert_eq!(limit("0::/user.slice\n"), None, "no limit anywhere");
        assert_eq!(limit(""), None);
        put("", "memory.max", "5000000");
        assert_eq!(limit("0::/../elsewhere\n"), Some(5_000_000), "what is mounted is a container's own");
    }
}
