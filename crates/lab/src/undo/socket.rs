//! Whether a process listens on a socket, asked without waiting for it.

use std::io;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// True while a process has the socket at `path`, false when that process is gone.
///
/// # Errors
/// Nothing is there, or it cannot be told: a process may have it.
pub fn is_listened_to(path: &Path) -> io::Result<bool> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &address) {
        // One that takes no connection now would be waited for.
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => Ok(true),
        Err(Errno::CONNREFUSED) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// A socket whose process is gone.
#[cfg(test)]
pub(crate) fn left_at(path: &Path) {
    drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    let begun = std::time::Instant::now();
    // A program that another test is just starting may hold it for a moment.
    while is_listened_to(path).unwrap() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_listener_is_seen_that_accepts_nothing_and_one_that_is_gone_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        assert_eq!(is_listened_to(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let listener = UnixListener::bind(&path).unwrap();
        // Until its queue is full: the next one would wait.
        let mut waiting = Vec::new();
        loop {
            assert!(is_listened_to(&path).unwrap());
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
            match connect(&socket, &SocketAddrUnix::new(&path).unwrap()) {
                Ok(()) => waiting.push(UnixStream::from(socket)),
                Err(e) => break assert_eq!(e, Errno::AGAIN),
            }
        }
        assert!(is_listened_to(&path).unwrap());
        drop((listener, waiting));
        left_at(&dir.path().join("left"));
        let other = dir.path().join("of another kind");
        let _datagrams = UnixDatagram::bind(&other).unwrap();
        assert!(is_listened_to(&other).is_err());
    }
}
