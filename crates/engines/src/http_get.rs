//! One GET of an http:// address: enough to see whether a server is ready.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// The status of the answer.
///
/// # Errors
/// The address is malformed, or there is no answer in time.
pub fn status(url: &str, patience: Duration) -> io::Result<u16> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidInput, format!("{url} is no http:// address"));
    let rest = url.strip_prefix("http://").ok_or_else(malformed)?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    let socket = authority.to_socket_addrs()?.next().ok_or_else(malformed)?;
    let mut stream = TcpStream::connect_timeout(&socket, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    // In one piece: a server that answers the first line may close before the next is written.
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nAccept: */*\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{line:?} is no HTTP status")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_status_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            stream.write_all(b"HTTP/1.1 503 No\r\n\r\n").unwrap();
            line
        });
        assert_eq!(status(&url, Duration::from_secs(5)).unwrap(), 503);
        assert_eq!(server.join().unwrap(), "GET /x HTTP/1.1\r\n");
        assert!(status("https://x", Duration::from_secs(1)).is_err());
    }
}
