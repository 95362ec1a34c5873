//! As much of HTTP as an attacker needs: sends bytes as given, and reports whatever comes back,
//! even nothing.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a body that are kept to be looked at.
const KEPT_BYTES: usize = 1 << 20;

/// The outcome as a client saw it.
#[derive(Debug)]
pub enum Reply {
    /// an answer, to its end
    Answer(Answer),
    /// a head, and a body that broke off: seen as cut by the client
    Cut(Answer),
    /// the connection was closed before a head
    Closed(String),
    /// nothing in the time that was given
    Silent,
}

/// Head and body.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    /// its beginning
    pub body: String,
    pub lines: u64,
}

impl Reply {
    /// One line about it.
    pub fn tell(&self) -> String {
        match self {
            Reply::Answer(a) => format!("{} {}", a.status, shortened(&a.body)),
            Reply::Cut(a) => format!("{} and a body cut after {} lines", a.status, a.lines),
            Reply::Closed(why) => format!("closed ({why})"),
            Reply::Silent => "nothing".into(),
        }
    }
}

fn shortened(body: &str) -> String {
    let line: String = body.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 150 { line } else { line.chars().take(150).collect::<String>() + "…" }
}

/// Writes a request and reads what comes back, within `patience`; an answer to HEAD has no body.
///
/// A server may answer and close before it took the whole body; then the answer counts, not the
/// broken pipe.
pub fn ask(
    address: SocketAddr,
    patience: Duration,
    has_body: bool,
    request: &dyn Fn(&mut dyn Write) -> io::Result<()>,
) -> Reply {
    let begun = Instant::now();
    let stream = match TcpStream::connect_timeout(&address, patience) {
        Ok(stream) => stream,
        Err(e) if e.kind() == io::ErrorKind::TimedOut => return Reply::Silent,
        Err(e) => return Reply::Closed(e.to_string()),
    };
    stream.set_write_timeout(Some(patience)).expect("patience is not zero");
    stream.set_nodelay(true).expect("it is a TCP socket");
    let sent = {
        let mut out = io::BufWriter::with_capacity(64 << 10, &stream);
        request(&mut out).and_then(|()| out.flush())
    };
    if sent.as_ref().is_err_and(is_timeout) {
        return Reply::Silent;
    }
    read_reply(&mut BufReader::new(&stream), &stream, begun + patience, has_body)
}

fn is_timeout(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Reads until `end` from a stream that may stop anywhere.
pub fn read_reply(reader: &mut impl BufRead, stream: &TcpStream, end: Instant, has_body: bool) -> Reply {
    let mut answer = Answer::default();
    match read_head(reader, stream, end, &mut answer) {
        Ok(()) if !has_body => return Reply::Answer(answer),
        Ok(()) => {}
        Err(e) if is_timeout(&e) => return Reply::Silent,
        Err(e) => return Reply::Closed(e.to_string()),
    }
    match read_body(reader, stream, end, &mut answer) {
        Ok(()) => Reply::Answer(answer),
        Err(e) if is_timeout(&e) => Reply::Silent,
        Err(_) => Reply::Cut(answer),
    }
}

/// Sets the time the next read may take.
fn wait_until(stream: &TcpStream, end: Instant) -> io::Result<()> {
    let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
    stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))
}

fn read_line(reader: &mut impl BufRead, stream: &TcpStream, end: Instant) -> io::Result<String> {
    wait_until(stream, end)?;
    let mut line = Vec::new();
    if reader.take(1 << 20).read_until(b'\n', &mut line)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "no more bytes"));
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn read_head(
    reader: &mut impl BufRead,
    stream: &TcpStream,
    end: Instant,
    answer: &mut Answer,
) -> io::Result<()> {
    loop {
        while !answer.head.ends_with("\r\n\r\n") {
            answer.head += &read_line(reader, stream, end)?;
        }
        let status = answer.head.get(9..12).and_then(|status| status.parse().ok());
        answer.status = status.ok_or_else(|| io::Error::other(format!("not HTTP: {}", answer.head)))?;
        if answer.status != 100 {
            return Ok(());
        }
        answer.head.clear();
    }
}

fn read_body(
    reader: &mut impl BufRead,
    stream: &TcpStream,
    end: Instant,
    answer: &mut Answer,
) -> io::Result<()> {
    let head = answer.head.to_ascii_lowercase();
    if answer.status == 204 {
        return Ok(());
    }
    if let Some(rest) = head.split("content-length: ").nth(1) {
        let len = rest.lines().next().and_then(|len| len.trim().parse().ok()).unwrap_or(0);
        return take(reader, stream, end, len, answer);
    }
    if !head.contains("transfer-encoding: chunked") {
        return Ok(());
    }
    loop {
        let size = read_line(reader, stream, end)?;
        let size = u64::from_str_radix(size.trim(), 16).map_err(|_| io::Error::other("not a chunk"))?;
        take(reader, stream, end, size, answer)?;
        read_line(reader, stream, end)?;
        if size == 0 {
            return Ok(());
        }
    }
}

fn take(
    reader: &mut impl BufRead,
    stream: &TcpStream,
    end: Instant,
    mut len: u64,
    answer: &mut Answer,
) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    while len > 0 {
        wait_until(stream, end)?;
        let most = buffer.len().min(len as usize);
        let n = reader.read(&mut buffer[..most])?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        len -= n as u64;
        answer.lines += buffer[..n].iter().filter(|b| **b == b'\n').count() as u64;
        if answer.body.len() < KEPT_BYTES {
            answer.body += &String::from_utf8_lossy(&buffer[..n]);
        }
    }
    Ok(())
}

/// A text as a value of a URL.
pub fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 3 / 2);
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte as char),
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}

/// Writes a body of unknown length.
pub struct Chunked<'a>(pub &'a mut dyn Write);

impl Write for Chunked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !bytes.is_empty() {
            write!(self.0, "{:x}\r\n", bytes.len())?;
            self.0.write_all(bytes)?;
            self.0.write_all(b"\r\n")?;
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The whole of it, through a buffer, with the last chunk.
pub fn chunked(out: &mut dyn Write, body: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut buffered = io::BufWriter::with_capacity(32 << 10, Chunked(out));
    body(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    out.write_all(b"0\r\n\r\n")
}
