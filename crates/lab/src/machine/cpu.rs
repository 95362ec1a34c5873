//! Use of the processors' time, by /proc/stat.

use serde::Serialize;

/// Shares of all processors, in percent, as mpstat names them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cpu {
    /// Programs.
    pub user: f64,
    /// The kernel, with interrupts.
    pub system: f64,
    /// Idle, with a request under way.
    pub iowait: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Idle.
    pub idle: f64,
}

/// Times of all processors since boot, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuTicks {
    user: u64,
    system: u64,
    iowait: u64,
    steal: u64,
    idle: u64,
}

impl CpuTicks {
    /// Now.
    pub fn now() -> CpuTicks {
        CpuTicks::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or_default()
    }

    /// Of each processor now, in order of their numbers.
    pub fn each_now() -> Vec<CpuTicks> {
        CpuTicks::parse_each(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse_each(text: &str) -> Vec<CpuTicks> {
        let lines = text.lines().skip(1).take_while(|line| line.starts_with("cpu"));
        lines.filter_map(CpuTicks::parse).collect()
    }

    fn parse(text: &str) -> Option<CpuTicks> {
        let mut ticks = text.lines().next()?.split_whitespace().skip(1).map(|n| n.parse::<u64>().ok());
        let mut next = || ticks.next().flatten();
        let (user, nice, system, idle) = (next()?, next()?, next()?, next()?);
        let (iowait, irq, softirq, steal) = (next()?, next()?, next()?, next()?);
        Some(CpuTicks { user: user + nice, system: system + irq + softirq, iowait, steal, idle })
    }

    /// The shares since `before`.
    pub fn since(&self, before: &CpuTicks) -> Cpu {
        let minus = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let user = minus(self.user, before.user);
        let system = minus(self.system, before.system);
        let iowait = minus(self.iowait, before.iowait);
        let steal = minus(self.steal, before.steal);
        let idle = minus(self.idle, before.idle);
        let all = (user + system + iowait + steal + idle).max(1.0) / 100.0;
        Cpu {
            user: user / all,
            system: system / all,
            iowait: iowait / all,
            steal: steal / all,
            idle: idle / all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_processors() {
        let before = CpuTicks::parse("cpu  100 0 50 800 20 5 5 20 0 0\ncpu0 1\n").expect("well formed");
        let after = CpuTicks::parse("cpu  110 10 60 850 40 5 5 20 0 0\n").expect("well formed");
        let cpu = after.since(&before);
        assert_eq!((cpu.user, cpu.system, cpu.iowait, cpu.steal, cpu.idle), (20.0, 10.0, 20.0, 0.0, 50.0));
        assert_eq!(CpuTicks::parse("cpu 1 2"), None);
        let text = "cpu  3 0 0 0 0 0 0 0 0 0\ncpu0 1 0 0 0 0 0 0 0 0 0\ncpu1 2 0 0 0 0 0 0 0 0 0\nintr 5\n";
        let each: Vec<u64> = CpuTicks::parse_each(text).iter().map(|ticks| ticks.user).collect();
        assert_eq!(each, [1, 2]);
    }
}
