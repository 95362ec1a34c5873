//! The machine and the limits of the process: memory, descriptors, io_uring, cgroups, swap, clock.

use snowmelt_base::size;

use super::finding::Finding;
use super::kernel::{Controller, KernelFiles};

/// Bytes that the process takes in addition to its memory budget.
const BESIDE: u64 = 128 << 20;

/// Facts of the machine, and of the process that has the database open, or would.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineFacts {
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes that programs can still take.
    pub available: u64,
    /// The smallest limit of the cgroups.
    pub memory_limit: Option<u64>,
    /// Bytes in swap.
    pub swapped: u64,
    /// Bytes that can still be committed, where the system limits that.
    pub promisable: Option<u64>,
    /// Processors that the cgroups grant.
    pub processors: Option<f64>,
    /// Limits of the cgroups on I/O, as they are written.
    pub io_limits: Vec<String>,
    /// Files that may be open.
    pub descriptors: Option<u64>,
    /// Bytes that may be locked in memory.
    pub locked: Option<u64>,
    /// The kernel's version.
    pub kernel: (u32, u32),
    /// Whether io_uring can be had here; else the refusal.
    pub ring: Option<String>,
    /// The sysctl kernel.io_uring_disabled.
    pub ring_disabled: u64,
    /// A filter of system calls is in force.
    pub is_filtered: bool,
    /// When the kernel gives huge pages: always, madvise, never.
    pub huge_pages: Option<String>,
    /// The clock's source.
    pub clock: Option<String>,
}

/// Reads the facts of a process: `self`, or a number. `ring` is the outcome of a trial.
pub fn collect(kernel: &KernelFiles, process: &str, ring: Result<(), String>) -> MachineFacts {
    const MEMORY: &str = "proc/meminfo";
    let kib = |name: &str| kernel.field(MEMORY, name).unwrap_or(0) << 10;
    let memory = kib("MemTotal");
    let is_strict = kernel.number("proc/sys/vm/overcommit_memory") == Some(2);
    let version = kernel.text("proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let limits = |of: Controller, newer: &str, older: &str| kernel.cgroup(process, of, newer, older);
    let memory_limits = limits(Controller::Memory, "memory.max", "memory.limit_in_bytes");
    let limit = memory_limits.iter().filter_map(|text| text.parse().ok()).min();
    let mut io_limits = limits(Controller::Io, "io.max", "blkio.throttle.read_iops_device");
    io_limits.extend(limits(Controller::Io, "", "blkio.throttle.read_bps_device"));
    io_limits.dedup();
    MachineFacts {
        memory,
        available: kib("MemAvailable"),
        memory_limit: limit.filter(|limit| *limit < memory),
        swapped: kib("SwapTotal").saturating_sub(kib("SwapFree")),
        promisable: is_strict.then(|| kib("CommitLimit").saturating_sub(kib("Committed_AS"))),
        processors: processors(kernel, process),
        io_limits,
        descriptors: limit_of(kernel, process, "Max open files"),
        locked: limit_of(kernel, process, "Max locked memory"),
        kernel: (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)),
        ring: ring.err(),
        ring_disabled: kernel.number("proc/sys/kernel/io_uring_disabled").unwrap_or(0),
        is_filtered: kernel.field(&format!("proc/{process}/status"), "Seccomp") == Some(2),
        huge_pages: kernel
            .text("sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())),
        clock: kernel.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }
}

/// The smallest share of processors that the cgroups grant.
fn processors(kernel: &KernelFiles, process: &str) -> Option<f64> {
    let newer = kernel.cgroup(process, Controller::Cpu, "cpu.max", "");
    let share = |text: &String| {
        let (quota, period) = text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    };
    let quotas = kernel.cgroup(process, Controller::Cpu, "", "cpu.cfs_quota_us");
    let periods = kernel.cgroup(process, Controller::Cpu, "", "cpu.cfs_period_us");
    let older = quotas.iter().zip(&periods).filter_map(|(quota, period)| {
        let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
        (quota > 0.0 && period > 0.0).then_some(quota / period)
    });
    newer.iter().filter_map(share).chain(older).min_by(f64::total_cmp)
}

/// The soft limit of a process; the greatest number where there is none.
fn limit_of(kernel: &KernelFiles, process: &str, name: &str) -> Option<u64> {
    let text = kernel.text(&format!("proc/{process}/limits"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// Judges the facts; `budget` is the memory of the database in bytes, which a server has taken
/// already where one `is_served`.
pub fn judge(facts: &MachineFacts, budget: u64, is_served: bool) -> Vec<Finding> {
    let mut findings = vec![memory(facts, budget, is_served), ring(facts)];
    findings.extend(facts.descriptors.map(descriptors));
    findings.extend(locked(facts));
    findings.extend(swap(facts));
    findings.extend(facts.promisable.map(|bytes| promised(bytes, budget, is_served)));
    findings.extend(facts.processors.map(quota));
    if !facts.io_limits.is_empty() {
        findings.push(Finding::advice(
            "cgroup I/O",
            facts.io_limits.join("; "),
            "reads and writes are held back by the cgroup, whatever the disk could do",
            "raise io.max (IOReadIOPSMax= of the service), or probe again so that the plans know the limit",
        ));
    }
    findings.extend(facts.huge_pages.as_deref().map(huge_pages));
    findings.extend(facts.clock.as_deref().map(clock));
    findings
}

/// Three quarters of a number of bytes, in whole MiB, as a switch takes them.
fn most_parts(bytes: u64) -> String {
    format!("{}MiB", (bytes / 4 * 3) >> 20)
}

fn memory(facts: &MachineFacts, budget: u64, is_served: bool) -> Finding {
    const ABOUT: &str = "memory";
    let most = facts.memory_limit.unwrap_or(u64::MAX).min(facts.memory);
    let of = match facts.memory_limit {
        Some(_) => "of the cgroup",
        None => "of the machine",
    };
    let about = |bytes: u64| size::about(bytes as f64);
    let measured = format!(
        "{} for the database, {} {of}, {} available",
        about(budget),
        about(most),
        about(facts.available)
    );
    let fits = most_parts(most.saturating_sub(BESIDE));
    if budget.saturating_add(BESIDE) > most && most > 0 {
        return Finding::problem(
            ABOUT,
            measured,
            "the system ends the process when the memory is used: count on 128 MiB beside --memory",
            format!("--memory {fits}, or memory = \"{fits}\" in snowmelt.toml"),
        );
    }
    if !is_served && facts.available > 0 && budget > facts.available {
        return Finding::advice(
            ABOUT,
            measured,
            "other programs hold memory that the database would take: the machine begins to swap",
            format!("--memory {}, or end some of them", most_parts(facts.available)),
        );
    }
    Finding::ok(ABOUT, measured)
}

fn ring(facts: &MachineFacts) -> Finding {
    const ABOUT: &str = "io_uring";
    let Some(why) = &facts.ring else { return Finding::ok(ABOUT, "can be used") };
    let change = match facts.ring_disabled {
        2 => "sysctl kernel.io_uring_disabled=0".to_owned(),
        1 => "sysctl kernel.io_uring_disabled=0, or the user's group into kernel.io_uring_group".to_owned(),
        _ if facts.is_filtered => {
            "a seccomp profile with io_uring: --security-opt seccomp=packaging/seccomp.json for containers"
                .to_owned()
        }
        _ if facts.kernel < (5, 6) => {
            format!("Linux 5.6 or newer; this is {}.{}", facts.kernel.0, facts.kernel.1)
        }
        _ => "see whether a security module or RLIMIT_MEMLOCK (LimitMEMLOCK=) forbids it".to_owned(),
    };
    let why_it_matters = "reads go through a pool of threads: more switches, and fewer requests at once";
    Finding::advice(ABOUT, format!("refused: {why}"), why_it_matters, change)
}

fn descriptors(most: u64) -> Finding {
    /// Connections of a server, its files, and some to spare.
    const WANTED: u64 = 1024;
    /// A few stripes with their journal and some clients.
    const LEAST: u64 = 128;
    const CHANGE: &str = "ulimit -n 65536, or LimitNOFILE=65536 of the service";
    let measured = if most == u64::MAX { "unlimited".to_owned() } else { format!("{most} may be open") };
    match most {
        most if most < LEAST => {
            Finding::problem("files", measured, "opening the database or serving clients fails", CHANGE)
        }
        most if most < WANTED => Finding::advice(
            "files",
            measured,
            "each connection takes one: a server of 256 connections comes near the limit",
            CHANGE,
        ),
        _ => Finding::ok("files", measured),
    }
}

/// Old kernels count the memory of rings as locked.
fn locked(facts: &MachineFacts) -> Option<Finding> {
    const WANTED: u64 = 8 << 20;
    let locked = facts.locked?;
    let counts = facts.kernel != (0, 0) && facts.kernel < (5, 12);
    (counts && locked < WANTED).then(|| {
        Finding::advice(
            "locked memory",
            format!("{} at most, Linux {}.{}", size::about(locked as f64), facts.kernel.0, facts.kernel.1),
            "before Linux 5.12 the rings of io_uring count as locked memory, and are refused beyond the limit",
            "ulimit -l 65536, or LimitMEMLOCK=64M of the service",
        )
    })
}

fn swap(facts: &MachineFacts) -> Option<Finding> {
    let measured = format!("{} in swap", size::about(facts.swapped as f64));
    if facts.swapped > facts.memory / 10 {
        let why =
            "pages of the pool that were swapped out are read twice: from swap, after eviction from the disk";
        return Some(Finding::advice(
            "swap",
            measured,
            why,
            "lower --memory, or MemorySwapMax=0 of the service",
        ));
    }
    (facts.swapped > 0).then(|| Finding::ok("swap", measured))
}

fn promised(bytes: u64, budget: u64, is_served: bool) -> Finding {
    let measured = format!("strict, {} can be promised", size::about(bytes as f64));
    if !is_served && budget > bytes {
        let why = "vm.overcommit_memory is 2: the memory of the database may be refused";
        let change = "sysctl vm.overcommit_memory=0, or a lower --memory";
        return Finding::advice("overcommit", measured, why, change);
    }
    Finding::ok("overcommit", measured)
}

fn quota(processors: f64) -> Finding {
    let measured = format!("{processors:.2} by the cgroup");
    if processors < 1.0 {
        let why =
            "after its share the process stands still until the next period: answers wait for up to 0.1 s";
        return Finding::advice(
            "processors",
            measured,
            why,
            "CPUQuota=100% of the service, --cpus 1 of a container",
        );
    }
    Finding::ok("processors", measured)
}

fn huge_pages(when: &str) -> Finding {
    if when == "never" {
        let why =
            "the pool asks for huge pages: without, each lookup in it misses the processor's TLB more often";
        let change = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
        return Finding::advice("huge pages", when, why, change);
    }
    Finding::ok("huge pages", when)
}

fn clock(source: &str) -> Finding {
    if ["hpet", "acpi_pm", "jiffies", "refined-jiffies"].contains(&source) {
        let why = "reading the time is a system call with this source, and each read is timed";
        return Finding::advice(
            "clock",
            source,
            why,
            "the kernel parameter clocksource=tsc, if the machine can",
        );
    }
    Finding::ok("clock", source)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::kernel::planted;
    use super::*;

    /// A machine that is well.
    fn well() -> MachineFacts {
        MachineFacts {
            memory: 16 << 30,
            available: 12 << 30,
            descriptors: Some(65_536),
            locked: Some(8 << 20),
            kernel: (6, 1),
            huge_pages: Some("madvise".to_owned()),
            clock: Some("tsc".to_owned()),
            ..MachineFacts::default()
        }
    }

    /// Findings that are not ok.
    fn bad(facts: &MachineFacts, budget: u64) -> Vec<Finding> {
        judge(facts, budget, false).into_iter().filter(|finding| finding.level != Level::Ok).collect()
    }

    #[test]
    fn a_good_machine_has_no_findings() {
        assert_eq!(bad(&well(), 8 << 30), []);
    }

    #[test]
    fn each_fault_is_one_finding() {
        type Spoil = fn(&mut MachineFacts);
        let faults: [(&str, Level, Spoil, &str); 17] = [
            ("memory", Level::Problem, |f| f.memory_limit = Some(8 << 30), "--memory 6048MiB"),
            ("memory", Level::Advice, |f| f.available = 4 << 30, "--memory 3072MiB"),
            ("io_uring", Level::Advice, |f| (f.ring, f.ring_disabled) = (Some("no".into()), 2), "disabled=0"),
            (
                "io_uring",
                Level::Advice,
                |f| (f.ring, f.ring_disabled) = (Some("no".into()), 1),
                "io_uring_group",
            ),
            ("io_uring", Level::Advice, |f| (f.ring, f.is_filtered) = (Some("no".into()), true), "seccomp"),
            ("io_uring", Level::Advice, |f| (f.ring, f.kernel) = (Some("no".into()), (5, 4)), "this is 5.4"),
            ("io_uring", Level::Advice, |f| f.ring = Some("no".into()), "security module"),
            ("files", Level::Advice, |f| f.descriptors = Some(1000), "LimitNOFILE"),
            ("files", Level::Problem, |f| f.descriptors = Some(64), "LimitNOFILE"),
            (
                "locked memory",
                Level::Advice,
                |f| (f.locked, f.kernel) = (Some(65_536), (5, 10)),
                "LimitMEMLOCK",
            ),
            ("swap", Level::Advice, |f| f.swapped = 2 << 30, "MemorySwapMax"),
            ("overcommit", Level::Advice, |f| f.promisable = Some(1 << 30), "vm.overcommit_memory=0"),
            ("processors", Level::Advice, |f| f.processors = Some(0.5), "CPUQuota"),
            ("cgroup I/O", Level::Advice, |f| f.io_limits = vec!["8:0 riops=100".into()], "io.max"),
            ("huge pages", Level::Advice, |f| f.huge_pages = Some("never".into()), "madvise"),
            ("clock", Level::Advice, |f| f.clock = Some("hpet".into()), "clocksource=tsc"),
            ("memory", Level::Problem, |f| f.memory = 8 << 30, "--memory"),
        ];
        for (about, level, spoil, change) in faults {
            let mut facts = well();
            spoil(&mut facts);
            let found = bad(&facts, 8 << 30);
            // An old kernel has two faults.
            let of = found.iter().find(|finding| finding.about == about).unwrap_or_else(|| panic!("{about}"));
            assert!(of.level == level && of.change.contains(change), "{of:?}");
            assert!(found.len() == 1, "{found:?}");
        }
    }

    #[test]
    fn a_server_holds_its_memory_already() {
        let facts = MachineFacts { available: 1 << 30, promisable: Some(0), ..well() };
        let served = judge(&facts, 8 << 30, true);
        assert!(served.iter().all(|finding| finding.level == Level::Ok), "{served:?}");
    }

    #[test]
    fn facts_are_read_below_the_root() {
        let (_dir, kernel) = planted(&[
            (
                "proc/meminfo",
                "MemTotal:  1000 kB\nMemAvailable: 600 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\nCommitLimit: 900 kB\nCommitted_AS: 100 kB",
            ),
            ("proc/sys/vm/overcommit_memory", "2"),
            ("proc/sys/kernel/osrelease", "5.10.0-8-amd64"),
            ("proc/sys/kernel/io_uring_disabled", "1"),
            (
                "proc/7/limits",
                "Limit  Soft Limit  Hard Limit  Units\nMax open files  1024  4096  files\nMax locked memory  unlimited  unlimited  bytes",
            ),
            ("proc/7/status", "Name:\tsnowmelt\nSeccomp:\t2"),
            ("proc/7/cgroup", "0::/a/b"),
            ("sys/fs/cgroup/a/memory.max", "512000"),
            ("sys/fs/cgroup/a/b/memory.max", "max"),
            ("sys/fs/cgroup/a/b/cpu.max", "50000 100000"),
            ("sys/fs/cgroup/a/cpu.max", "max 100000"),
            ("sys/fs/cgroup/a/b/io.max", "8:0 rbps=max wbps=max riops=100 wiops=max"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"),
        ]);
        let expected = MachineFacts {
            memory: 1000 << 10,
            available: 600 << 10,
            memory_limit: Some(512_000),
            swapped: 30 << 10,
            promisable: Some(800 << 10),
            processors: Some(0.5),
            io_limits: vec!["8:0 rbps=max wbps=max riops=100 wiops=max".to_owned()],
            descriptors: Some(1024),
            locked: Some(u64::MAX),
            kernel: (5, 10),
            ring: Some("no".to_owned()),
            ring_disabled: 1,
            is_filtered: true,
            huge_pages: Some("never".to_owned()),
            clock: Some("hpet".to_owned()),
        };
        assert_eq!(collect(&kernel, "7", Err("no".to_owned())), expected);
    }
}
