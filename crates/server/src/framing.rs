//! Finds where requests begin and end in the bytes of a connection, and whether that is
//! unambiguous.
//!
//! The HTTP library accepts what two readers may understand differently: a `Content-Length` beside
//! a `Transfer-Encoding`, or one that comes twice. This reads the same bytes first. It follows
//!
//! 1. the head, line by line: its version and what frames the request;
//! 2. the body: so many bytes, or chunks with their sizes and the trailer;
//!
//! and gives a verdict at the end of each head. After a doubtful head nothing is read on. Bytes
//! that are no HTTP at all are passed on: the library refuses them.

/// The fault of a head; the text of a 400.
pub type Doubt = &'static str;

/// The reader of one connection.
#[derive(Debug, Default)]
pub struct Framing {
    state: State,
    line: Vec<u8>,
    head: Head,
    verdict: Option<Result<(), Doubt>>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// before the first byte of a request
    #[default]
    Between,
    RequestLine,
    Fields,
    /// so many bytes of body are to come
    Length(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer,
    /// the request is here to its end
    Complete,
    /// its head is in doubt
    Doubtful,
    /// not HTTP
    Lost,
}

/// The request's frame, as its head describes it.
#[derive(Debug, Default)]
struct Head {
    is_http_11: bool,
    hosts: usize,
    lengths: usize,
    length: Option<u64>,
    encodings: usize,
    chunked: bool,
}

impl Framing {
    /// Reads on, to the end of the request at most; how many bytes were read.
    pub fn advance(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match &mut self.state {
                State::Complete | State::Doubtful => break,
                State::Lost => return bytes.len(),
                State::Length(left) | State::ChunkData(left) => {
                    let taken = (*left).min(rest.len() as u64);
                    *left -= taken;
                    at += taken as usize;
                    if *left == 0 {
                        let whole = matches!(self.state, State::Length(_));
                        self.state = if whole { State::Complete } else { State::ChunkEnd };
                    }
                }
                _ => at += self.take_line(rest),
            }
        }
        at
    }

    /// The verdict on a head that ended since this was asked last.
    pub fn take_verdict(&mut self) -> Option<Result<(), Doubt>> {
        self.verdict.take()
    }

    /// The request is here to its end, and [`next`](Self::next) was not called.
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// No more is to be read.
    pub fn is_doubtful(&self) -> bool {
        self.state == State::Doubtful
    }

    /// No byte of a next request has come.
    pub fn is_between(&self) -> bool {
        self.state == State::Between
    }

    /// A head has begun and not ended.
    pub fn is_in_head(&self) -> bool {
        matches!(self.state, State::RequestLine | State::Fields)
    }

    /// Goes on to the next request after a complete one.
    pub fn next(&mut self) {
        debug_assert!(self.is_complete());
        *self = Self::default();
    }

    /// Takes bytes up to the end of a line, and acts on the line when it is whole.
    fn take_line(&mut self, bytes: &[u8]) -> usize {
        if self.state == State::Between {
            self.state = State::RequestLine;
        }
        let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
            self.line.extend_from_slice(bytes);
            return bytes.len();
        };
        self.line.extend_from_slice(&bytes[..end]);
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        self.state = self.after(&line);
        line.clear();
        self.line = line;
        end + 1
    }

    /// The state after a line.
    fn after(&mut self, line: &[u8]) -> State {
        match self.state {
            // Empty lines before a request are left over from the one before.
            State::RequestLine if line.is_empty() => State::Between,
            State::RequestLine => {
                self.head.is_http_11 = line.ends_with(b" HTTP/1.1");
                State::Fields
            }
            State::Fields if line.is_empty() => self.decide(),
            State::Fields => {
                self.head.field(line);
                State::Fields
            }
            State::ChunkSize => match chunk_size(line) {
                Some(0) => State::Trailer,
                Some(size) => State::ChunkData(size),
                None => State::Lost,
            },
            State::ChunkEnd if line.is_empty() => State::ChunkSize,
            State::Trailer if line.is_empty() => State::Complete,
            State::Trailer => State::Trailer,
            _ => State::Lost,
        }
    }

    /// The state after a head.
    fn decide(&mut self) -> State {
        let verdict = self.head.verdict();
        self.verdict = Some(verdict);
        match (verdict, self.head.chunked, self.head.length) {
            (Err(_), ..) => State::Doubtful,
            (Ok(()), true, _) => State::ChunkSize,
            (Ok(()), false, Some(length)) if length > 0 => State::Length(length),
            _ => State::Complete,
        }
    }
}

impl Head {
    fn field(&mut self, line: &[u8]) {
        let Some(colon) = line.iter().position(|b| *b == b':') else { return };
        let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"host") {
            self.hosts += 1;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            self.lengths += 1;
            self.length = decimal(value);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.encodings += 1;
            self.chunked = value.eq_ignore_ascii_case(b"chunked");
        }
    }

    fn verdict(&self) -> Result<(), Doubt> {
        match self {
            Head { hosts: 0, is_http_11: true, .. } => Err("a request of HTTP/1.1 needs a Host"),
            Head { hosts: 2.., .. } => Err("there is more than one Host"),
            Head { lengths: 1.., encodings: 1.., .. } => {
                Err("Content-Length and Transfer-Encoding contradict each other: send one of them")
            }
            Head { lengths: 2.., .. } => Err("there is more than one Content-Length"),
            Head { lengths: 1, length: None, .. } => Err("Content-Length is not a number"),
            Head { encodings: 2.., .. } | Head { encodings: 1, chunked: false, .. } => {
                Err("only 'chunked' is known as Transfer-Encoding")
            }
            _ => Ok(()),
        }
    }
}

fn decimal(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?;
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|b| *b == b';').next()?.trim_ascii();
    let text = std::str::from_utf8(size).ok()?;
    text.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u64::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Verdicts and complete requests of a stream that comes in pieces of so many bytes.
    fn read(stream: &[u8], piece: usize) -> (Vec<Result<(), Doubt>>, usize, usize) {
        let (mut framing, mut verdicts, mut complete, mut at) = (Framing::default(), Vec::new(), 0, 0);
        while at < stream.len() {
            let end = (at + piece).min(stream.len());
            let taken = framing.advance(&stream[at..end]);
            at += taken;
            verdicts.extend(framing.take_verdict());
            if framing.is_complete() {
                complete += 1;
                framing.next();
            } else if taken == 0 {
                break;
            }
        }
        (verdicts, complete, at)
    }

    const STREAM: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\nPOST / HTTP/1.1\r\nhost : a\r\nContent-Length: 5\r\n\r\nGET /\
        POST /x HTTP/1.1\nHost: a\nTransfer-Encoding:  Chunked \n\n3;x=y\r\nabc\r\n0A\r\n0123456789\r\n0\r\nT: 1\r\n\r\nGET / HTTP/1.0\r\n\r\n";

    #[test]
    fn requests_are_told_apart_however_they_are_cut() {
        for piece in 1..STREAM.len() + 1 {
            assert_eq!(read(STREAM, piece), (vec![Ok(()); 4], 4, STREAM.len()), "{piece} bytes at a time");
        }
    }

    #[test]
    fn doubtful_heads_are_refused_and_nothing_after_them_is_read() {
        for fields in [
            "",
            "Host: a\r\nHost: a\r\n",
            "Host: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            "Host: a\r\nTransfer-Encoding: chunked\r\ncontent-length: 3\r\n",
            "Host: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n",
            "Host: a\r\nContent-Length: 3, 3\r\n",
            "Host: a\r\nContent-Length: +3\r\n",
            "Host: a\r\nTransfer-Encoding: gzip, chunked\r\n",
            "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        ] {
            let head = format!("POST /update HTTP/1.1\r\n{fields}\r\n");
            let stream = format!("{head}abcGET / HTTP/1.1\r\nHost: a\r\n\r\n");
            for piece in [1, 7, 1000] {
                let (verdicts, complete, at) = read(stream.as_bytes(), piece);
                assert!(matches!(verdicts[..], [Err(_)]), "{fields:?}: {verdicts:?}");
                assert_eq!((complete, at), (0, head.len()), "{fields:?}");
            }
        }
    }
}
