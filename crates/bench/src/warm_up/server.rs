//! Counters of a server that runs beside us: processor time and bytes read of its process and all
//! that it starts (`snowmelt_lab::watch::tree`), and I/O wait.
//!
//! The kernel tells I/O wait of the whole machine only: the time in which a processor was idle
//! with a request under way. The process is named by its number, or found by the port that it
//! listens on: `/proc/net/tcp` has the socket of the port, `/proc/PID/fd` its owner.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use snowmelt_lab::cpu::CpuTicks;
use snowmelt_lab::program::ProcessIo;
use snowmelt_lab::watch::tree::Tree;

use snowmelt_workload::sampler::Counts;

/// A server's processes.
pub struct ServerProcess {
    pid: u32,
    name: String,
    tree: Mutex<Tree>,
    /// The kernel shows us its I/O.
    has_io: bool,
    begun: (Instant, CpuTicks),
    processors: usize,
}

impl ServerProcess {
    /// Process `pid` with all that it starts.
    ///
    /// # Errors
    /// There is no such process.
    pub fn of_pid(pid: u32) -> Result<Self> {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"))
            .with_context(|| format!("there is no process {pid}: see `ps` or `ss -ltnp`"))?;
        Ok(Self {
            pid,
            name: name.trim().to_owned(),
            tree: Mutex::new(Tree::new(pid)),
            has_io: ProcessIo::read(pid).is_some(),
            begun: (Instant::now(), CpuTicks::now()),
            processors: CpuTicks::each_now().len().max(1),
        })
    }

    /// The process that listens on the port of an address on this machine.
    ///
    /// # Errors
    /// The address is none of this machine's loopback, or the process cannot be found.
    pub fn listening_at(url: &str) -> Result<Self> {
        let (host, port) = host_and_port(url).with_context(|| format!("{url} has no port"))?;
        if !is_loopback(host) {
            bail!("{host} is not a loopback address of this machine: run beside the server");
        }
        let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
            .into_iter()
            .flat_map(|path| listening(&fs::read_to_string(path).unwrap_or_default(), port))
            .collect();
        if sockets.is_empty() {
            bail!("no process listens on port {port}");
        }
        match owner(&sockets) {
            Some(pid) => Self::of_pid(pid),
            None => bail!("the process that listens on port {port} belongs to another user"),
        }
    }

    /// Its sums now.
    pub fn counts(&self) -> Counts {
        let tree = self.tree.lock().expect("looking at processes does not panic").now();
        let (begun, ticks) = &self.begun;
        let idle_percent = CpuTicks::now().since(ticks).iowait;
        Counts {
            cpu_s: Some(tree.user_s + tree.system_s),
            bytes: self.has_io.then_some(tree.io.read_bytes),
            wait_s: Some(idle_percent / 100.0 * begun.elapsed().as_secs_f64() * self.processors as f64),
            ..Counts::default()
        }
    }

    /// The processes, in words.
    pub fn told(&self) -> String {
        let io =
            if self.has_io { "" } else { "; /proc does not show us its bytes: they need its user or root" };
        format!("process {} ({}) and all that it starts{io}", self.pid, self.name)
    }
}

/// Host and port of an address.
fn host_and_port(url: &str) -> Option<(&str, u16)> {
    let authority = url.split_once("://")?.1.split('/').next()?;
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => Some((host, port.parse().ok()?)),
        _ => Some((authority, 80)),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Inodes of the sockets that listen on a port, by the text of `/proc/net/tcp`.
fn listening(text: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let local = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        (local == port && *fields.get(3)? == LISTEN)
            .then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    };
    text.lines().skip(1).filter_map(inode).collect()
}

/// The process that has one of these sockets; of a server and its children the oldest.
fn owner(sockets: &[String]) -> Option<u32> {
    let links: Vec<String> = sockets.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let has = |pid: &u32| {
        let entries = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd"));
        entries.into_iter().flatten().flatten().any(|entry| {
            fs::read_link(entry.path())
                .is_ok_and(|to| links.iter().any(|link| to.as_os_str() == link.as_str()))
        })
    };
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids.into_iter().find(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_of_this_process_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}/sparql");
        let server = ServerProcess::listening_at(&url).unwrap();
        assert_eq!(server.pid, std::process::id());
        let before = server.counts();
        let busy = Instant::now();
        while busy.elapsed().as_millis() < 60 {
            std::hint::black_box(busy);
        }
        let used = server.counts().cpu_s.unwrap() - before.cpu_s.unwrap();
        assert!(used > 0.0, "{used}");
        drop(listener);
        let error = ServerProcess::listening_at(&url).err().unwrap().to_string();
        assert!(error.contains(&port.to_string()), "{error}");
    }

    #[test]
    fn addresses_elsewhere_are_refused() {
        for url in ["http://192.0.2.1:80/sparql", "http://example.org/sparql"] {
            let error = ServerProcess::listening_at(url).err().unwrap().to_string();
            assert!(error.contains("loopback"), "{error}");
        }
        assert_eq!(host_and_port("http://[::1]:7878/x"), Some(("[::1]", 7878)));
        assert_eq!(host_and_port("http://localhost/x"), Some(("localhost", 80)));
        assert!(is_loopback("[::1]") && is_loopback("127.0.0.9") && !is_loopback("10.0.0.1"));
    }

    #[test]
    fn only_sockets_that_listen_count() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                    0: 0100007F:22BA 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 4711 1 0\n\
                    1: 0100007F:22BA 0100007F:9999 01 00000000:00000000 00:00000000 00000000  0  0 4712 1 0\n\
                    2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 4713 1 0\n";
        assert_eq!(listening(text, 8890), ["4711"]);
        assert_eq!(listening(text, 80), ["4713"]);
        assert!(listening(text, 81).is_empty());
    }
}
