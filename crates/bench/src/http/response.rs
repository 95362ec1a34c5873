//! The server's side of an exchange: head and body, framed by length, by chunks or by the end of
//! the connection.

use std::io::{self, BufRead, Read};

/// Longest line of a head.
const MOST_LINE: u64 = 64 << 10;

/// A message in the errors of connections that ended before any byte of an answer.
const BEFORE_ANSWER: &str = "the connection ends before the answer";

/// The parts of an answer's head that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub status: u16,
    /// The connection can take another request.
    pub is_reusable: bool,
}

/// Length of a body.
enum Framing {
    Bytes(u64),
    Chunks,
    ToTheEnd,
}

/// Whether a connection failed before its server had begun to answer.
pub(super) fn is_before_answer(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset};
    matches!(error.kind(), BrokenPipe | ConnectionReset) || error.to_string() == BEFORE_ANSWER
}

/// Reads an answer, and appends its body to `body`.
pub(super) fn read(stream: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<Response> {
    let (mut response, framing) = loop {
        let (response, framing) = head(stream)?;
        // 1xx: the answer itself is still to come.
        if !(100..200).contains(&response.status) {
            break (response, framing);
        }
    };
    match framing {
        Framing::Bytes(length) => exactly(stream, length, body)?,
        Framing::Chunks => chunks(stream, body)?,
        Framing::ToTheEnd => {
            stream.read_to_end(body)?;
            response.is_reusable = false;
        }
    }
    Ok(response)
}

fn head(stream: &mut impl BufRead) -> io::Result<(Response, Framing)> {
    let mut text = String::new();
    if line(stream, &mut text)? == 0 {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, BEFORE_ANSWER));
    }
    let mut words = text.split_whitespace();
    let version = words.next().filter(|version| version.starts_with("HTTP/1."));
    let status = words.next().and_then(|status| status.parse::<u16>().ok());
    let (Some(version), Some(status)) = (version, status) else {
        return Err(broken(format!("not HTTP: {:?}", text.trim_end())));
    };
    let mut is_reusable = version != "HTTP/1.0";
    let mut framing = if status == 204 || status == 304 { Framing::Bytes(0) } else { Framing::ToTheEnd };
    loop {
        if line(stream, &mut text)? == 0 {
            return Err(broken("the answer ends in its head"));
        }
        let Some((name, value)) = text.trim_end().split_once(':') else { break };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            let length = value.parse().map_err(|_| broken(format!("bad length {value:?}")))?;
            if matches!(framing, Framing::ToTheEnd) {
                framing = Framing::Bytes(length);
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            framing = Framing::Chunks;
        } else if name.eq_ignore_ascii_case("connection") {
            is_reusable = !value.eq_ignore_ascii_case("close")
                && (is_reusable || value.eq_ignore_ascii_case("keep-alive"));
        }
    }
    Ok((Response { status, is_reusable }, framing))
}

fn chunks(stream: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    let mut text = String::new();
    loop {
        line(stream, &mut text)?;
        let size = text.trim_end().split(';').next().unwrap_or("");
        let size =
            u64::from_str_radix(size.trim(), 16).map_err(|_| broken(format!("bad chunk size {size:?}")))?;
        if size == 0 {
            break;
        }
        exactly(stream, size, body)?;
        line(stream, &mut text)?; // the end of the chunk
    }
    // trailers
    while line(stream, &mut text)? > 0 && !text.trim_end().is_empty() {}
    Ok(())
}

fn exactly(stream: &mut impl BufRead, length: u64, body: &mut Vec<u8>) -> io::Result<()> {
    let got = stream.take(length).read_to_end(body)? as u64;
    if got < length { Err(broken(format!("the answer ends after {got} of {length} bytes"))) } else { Ok(()) }
}

/// Reads a line into `text`, which is cleared before. Returns its length.
fn line(stream: &mut impl BufRead, text: &mut String) -> io::Result<usize> {
    text.clear();
    let length = stream.take(MOST_LINE).read_line(text)?;
    if length as u64 == MOST_LINE { Err(broken("a line of the head has no end")) } else { Ok(length) }
}

fn broken(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> io::Result<(Vec<u8>, Response)> {
        let mut body = Vec::new();
        read(&mut text.as_bytes(), &mut body).map(|response| (body, response))
    }

    fn hello(status: u16, is_reusable: bool) -> (Vec<u8>, Response) {
        (b"hello".to_vec(), Response { status, is_reusable })
    }

    #[test]
    fn three_ways_to_frame_an_answer() {
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", hello(200, true)),
            ("HTTP/1.1 400 Bad\r\nContent-Length: 5\r\n\r\nhello", hello(400, true)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nConnection: Close\r\n\r\nhello", hello(200, false)),
            ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", hello(200, false)),
            ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nhello", hello(200, true)),
            ("HTTP/1.1 200 OK\r\n\r\nhello", hello(200, false)),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                hello(200, true),
            ),
        ] {
            assert_eq!(read_text(text).unwrap(), expected, "{text:?}");
        }
        let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n1;x\r\no\r\n0\r\n";
        assert_eq!(read_text(&format!("{chunks}\r\n")).unwrap(), hello(200, true));
        assert_eq!(read_text("HTTP/1.1 204 No Content\r\n\r\n").unwrap().1.status, 204);
    }

    #[test]
    fn trailers_belong_to_their_answer() {
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nC: d\r\n\r\nrest";
        let mut stream = text.as_bytes();
        read(&mut stream, &mut Vec::new()).unwrap();
        assert_eq!(stream, b"rest");
    }

    #[test]
    fn bad_answers_are_errors() {
        for text in [
            "",
            "SSH-2.0-OpenSSH_9.2\r\n",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhe",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhell\r\n",
        ] {
            assert!(read_text(text).is_err(), "{text:?}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(1 << 17));
        assert!(read_text(&endless).unwrap_err().to_string().contains("no end"));
    }
}
