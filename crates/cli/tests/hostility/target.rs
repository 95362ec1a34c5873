//! The server under attack: a process of its own in a group with a bound on its memory, and
//! what the system says of it.
//!
//! Root gets a memory cgroup of budget + 128 MiB (version 1 or 2): a server that needs more is
//! killed, which is a failure. Without root only the highest resident size (VmHWM) is compared.
//! Standard error says which of the two applies.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Memory a server may need beyond its budget: code, stacks, what the allocator holds back.
pub const BEYOND_BUDGET: u64 = 128 << 20;

/// A memory cgroup, removed when dropped.
struct Group(PathBuf);

impl Group {
    fn new(limit: u64) -> Option<Group> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("snowmelt-hostility-{}-{number}", std::process::id());
        let root = Path::new("/sys/fs/cgroup");
        let (parent, file) = if root.join("cgroup.controllers").exists() {
            let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
            (root.to_owned(), "memory.max")
        } else {
            (root.join("memory"), "memory.limit_in_bytes")
        };
        let group = Group(parent.join(name));
        fs::create_dir(&group.0).ok()?;
        fs::write(group.0.join(file), limit.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel takes a moment to forget a process.
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// How a server is started.
#[derive(Clone)]
pub struct Settings {
    pub db: PathBuf,
    pub memory_bytes: u64,
    pub timeout_s: u64,
}

/// A running server.
pub struct Target {
    pub settings: Settings,
    pub address: SocketAddr,
    child: Child,
    /// bytes of its log that were looked at
    log_read: usize,
    _group: Option<Group>,
}

impl Target {
    /// Starts it and waits until it says where it listens.
    pub fn start(settings: &Settings) -> Target {
        let announcement = settings.db.join("server");
        let _ = fs::remove_file(&announcement);
        let group = Group::new(settings.memory_bytes + BEYOND_BUDGET);
        let mut command = match &group {
            // It is in the group from its first instruction.
            Some(group) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(group.0.join("cgroup.procs"));
                shell.arg(env!("CARGO_BIN_EXE_snowmelt"));
                shell
            }
            None => Command::new(env!("CARGO_BIN_EXE_snowmelt")),
        };
        let log = fs::File::create(settings.db.with_extension("log")).expect("a log can be made");
        let mut child = command
            .arg("serve")
            .arg(&settings.db)
            .args(["--listen", "127.0.0.1:0"])
            .args(["--memory", &settings.memory_bytes.to_string()])
            .args(["--timeout", &settings.timeout_s.to_string()])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the binary starts");
        let begun = Instant::now();
        loop {
            let said = fs::read_to_string(&announcement).ok();
            if let Some(address) = said.and_then(|text| text.trim().parse().ok()) {
                return Target { settings: settings.clone(), address, child, log_read: 0, _group: group };
            }
            if let Some(status) = child.try_wait().expect("a child can be asked") {
                panic!("the server ended with {status}: {}", last_words(settings));
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not start");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The message of a thread of it that panicked since this was last asked.
    pub fn new_panic(&mut self) -> Option<String> {
        let log = log_of(&self.settings);
        let new = String::from_utf8_lossy(log.get(self.log_read..)?).into_owned();
        self.log_read = log.len();
        let mut lines = new.lines().skip_while(|line| !line.contains("panicked at"));
        let (place, message) = (lines.next()?, lines.next().unwrap_or_default());
        Some(format!("{place} {message}"))
    }

    /// Ends this one and starts it again.
    pub fn restart(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let settings = self.settings.clone();
        *self = Target::start(&settings);
    }

    /// Whether memory is bounded by the kernel.
    pub fn is_in_group(&self) -> bool {
        self._group.is_some()
    }

    /// How it ended, if it did or does so within `patience`: a process that overflowed its
    /// stack takes a moment to die.
    pub fn death(&mut self, patience: Duration) -> Option<String> {
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("a child can be asked") {
                Some(status) => break status,
                None if begun.elapsed() >= patience => return None,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        Some(format!("the server ended with {status}: {}", last_words(&self.settings)))
    }

    fn status(&self, key: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let kib = line.and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    }

    /// Clock ticks of cores that it has used, and its threads that have ended.
    #[allow(dead_code, reason = "the suite of grammars asks")]
    pub fn cpu_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // behind the name, which may have blanks in it: state, and eleven numbers before these
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
        fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
    }

    /// Bytes resident now.
    pub fn resident(&self) -> u64 {
        self.status("VmRSS")
    }

    /// Most bytes resident since [`Target::forget_peak`].
    pub fn peak(&self) -> u64 {
        self.status("VmHWM")
    }

    pub fn forget_peak(&self) {
        let _ = fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5");
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn log_of(settings: &Settings) -> Vec<u8> {
    fs::read(settings.db.with_extension("log")).unwrap_or_default()
}

fn last_words(settings: &Settings) -> String {
    let log = log_of(settings);
    let text = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = text.lines().rev().take(4).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}
