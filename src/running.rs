//! Finding the server that has a database open: it leaves its address in the directory while it runs.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

const FILE_NAME: &str = "server";

/// A running server's address, in a file beside the database for as long as this lives.
pub struct Announcement(PathBuf);

impl Announcement {
    /// Writes the address. A directory that cannot be written leaves no announcement: serving goes on without.
    pub fn write(db: &Path, address: SocketAddr) -> Option<Self> {
        let path = db.join(FILE_NAME);
        std::fs::write(&path, format!("{address}\n")).ok().map(|()| Self(path))
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A server that says it has a database open.
#[derive(Debug)]
pub struct Server {
    /// where it listens
    pub address: SocketAddr,
}

/// The server that announced itself for `db`; it may have died since.
pub fn server_of(db: &Path) -> Option<Server> {
    let text = std::fs::read_to_string(db.join(FILE_NAME)).ok()?;
    let address: SocketAddr = text.trim().parse().ok()?;
    address.ip().is_loopback().then_some(Server { address })
}

impl Server {
    /// The body of a GET; an error when the answer is not 200.
    pub fn get(&self, path: &str) -> io::Result<Vec<u8>> {
        let timeout = Duration::from_secs(10);
        let mut stream = TcpStream::connect_timeout(&self.address, timeout)?;
        stream.set_read_timeout(Some(timeout))?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end_of_head = answer.windows(4).position(|w| w == b"\r\n\r\n");
        let ok = answer.starts_with(b"HTTP/1.0 200") || answer.starts_with(b"HTTP/1.1 200");
        match end_of_head {
            Some(end) if ok => Ok(answer.split_off(end + 4)),
            _ => Err(io::Error::other(format!("unexpected answer to {path}"))),
        }
    }
}
