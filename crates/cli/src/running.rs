//! Where the server of a database listens: it leaves its address in the directory while it runs.

use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const FILE_NAME: &str = "server";

/// A running server's address, in a file beside the database for as long as this lives.
pub struct Announcement(PathBuf);

impl Announcement {
    /// Writes the address. A directory that cannot be written leaves no announcement: serving
    /// goes on without.
    pub fn write(db: &Path, address: SocketAddr) -> Option<Self> {
        let path = db.join(FILE_NAME);
        let mut options = OpenOptions::new();
        let made = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        made.and_then(|mut file| writeln!(file, "{address}")).ok().map(|()| Self(path))
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
