//! The real server as a process, and clients that talk to it.

#![allow(dead_code, reason = "each test program uses its part")]

pub mod bench;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A running `snowmelt serve`; killed when dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    /// Starts a server on a database and waits until it says where it listens.
    pub fn start(db: &Path, args: &[&str]) -> Server {
        // The file a killed server left would be taken for the address of this one.
        let announcement = db.join("server");
        let _ = std::fs::remove_file(&announcement);
        let mut child = snowmelt()
            .arg("serve")
            .arg(db)
            .args(["--listen", "127.0.0.1:0", "--memory", "256MiB"])
            .args(args)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let begun = Instant::now();
        loop {
            let address =
                std::fs::read_to_string(&announcement).ok().and_then(|text| text.trim().parse().ok());
            if let Some(address) = address {
                return Server { child, address };
            }
            if let Some(status) = child.try_wait().expect("a child can be asked") {
                let mut said = String::new();
                let _ = child.stderr.take().expect("it is piped").read_to_string(&mut said);
                panic!("the server ended with {status}: {said}");
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not start");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Starts a server of several databases, which leaves its address nowhere.
    pub fn start_on_free_port(folder: &Path, args: &[&str]) -> Server {
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut serve = snowmelt();
        serve.arg("serve").arg(folder).args(["--listen", &address.to_string(), "--memory", "512MiB"]);
        let child = serve.args(args).stderr(Stdio::null()).spawn().expect("the binary starts");
        let server = Server { child, address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not start");
            std::thread::sleep(Duration::from_millis(2));
        }
        server
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn client(&self) -> Client {
        Client { address: self.address, stream: None }
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it was killed");
    }

    /// SIGTERM, and how long it took to end.
    pub fn terminate(mut self) -> (ExitStatus, Duration) {
        let begun = Instant::now();
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it can be signalled");
        let status = self.child.wait().expect("it ends");
        (status, begun.elapsed())
    }

    /// SIGTERM, and all that it said on standard error.
    pub fn last_words(mut self) -> String {
        let mut stderr = self.child.stderr.take().expect("it is piped");
        assert!(self.terminate().0.success());
        let mut said = String::new();
        stderr.read_to_string(&mut said).expect("it is text");
        said
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary under test.
pub fn snowmelt() -> Command {
    Command::new(PathBuf::from(env!("CARGO_BIN_EXE_snowmelt")))
}

/// A client that keeps its connection.
pub struct Client {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Client {
    /// Runs an update; true when it was acknowledged, false when the server refused it.
    pub fn update(&mut self, update: &str) -> io::Result<(u16, String)> {
        self.post("/update", "application/sparql-update", update)
    }

    /// The rows of an answer, without the head.
    pub fn query(&mut self, query: &str) -> io::Result<Vec<String>> {
        let (status, body) = self.post("/query", "application/sparql-query", query)?;
        if status != 200 {
            return Err(io::Error::other(format!("{status}: {body}")));
        }
        Ok(body.lines().skip(1).map(str::to_owned).collect())
    }

    pub fn post(&mut self, path: &str, kind: &str, body: &str) -> io::Result<(u16, String)> {
        let answer = self.post_once(path, kind, body);
        if answer.is_err() {
            self.stream = None;
        }
        answer
    }

    fn post_once(&mut self, path: &str, kind: &str, body: &str) -> io::Result<(u16, String)> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(Duration::from_secs(30)))?;
                self.stream.insert(BufReader::new(stream))
            }
        };
        let (address, len) = (self.address, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/csv, */*;q=0.1\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\r\n{body}"
        );
        stream.get_mut().write_all(request.as_bytes())?;
        read_answer(stream)
    }
}

fn read_answer(stream: &mut impl BufRead) -> io::Result<(u16, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let broken = || io::Error::other(format!("not an answer: {head}"));
    let status = head.get(9..12).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
    let lower = head.to_ascii_lowercase();
    let mut body = Vec::new();
    if let Some(rest) = lower.split("content-length: ").nth(1) {
        let len = rest.lines().next().and_then(|len| len.trim().parse().ok()).ok_or_else(broken)?;
        body.resize(len, 0);
        stream.read_exact(&mut body)?;
    } else {
        loop {
            let mut size = String::new();
            stream.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(|_| broken())?;
            let mut chunk = vec![0; size + 2];
            stream.read_exact(&mut chunk)?;
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
    }
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
