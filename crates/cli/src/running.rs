//! Where the server of a database listens: it leaves its address in the directory while it runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "server";

/// A running server's address, in a file beside the database for as long as this lives.
pub struct Announcement(PathBuf);

impl Announcement {
    /// Writes the address. A directory that cannot be written leaves no announcement: serving
    /// goes on without.
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
