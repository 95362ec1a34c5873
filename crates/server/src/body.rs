//! From a thread that writes an answer to the connection that sends it.
//!
//! 1. The writer fills one chunk. An answer that ends within it goes out whole, with its length.
//! 2. A longer one turns into a stream: chunks pass through a short queue, so a slow client slows the query
//!    and not the server's memory.
//! 3. When the client has gone, the next write fails, which ends the query.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::{mpsc, oneshot};

use crate::request::Refusal;

/// Bytes an answer may have before it is streamed, and the size of a streamed chunk.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks between query and connection.
const QUEUED_CHUNKS: usize = 4;

/// A response body: whole, or arriving.
pub enum AnswerBody {
    /// all of it
    Whole(Option<Bytes>),
    /// chunks as the query produces them; an error breaks the connection, so that a cut answer is seen as cut
    Stream(mpsc::Receiver<Result<Bytes, io::Error>>),
}

impl AnswerBody {
    /// A body that is complete.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) => {
                Poll::Ready(bytes.take().filter(|b| !b.is_empty()).map(|b| Ok(Frame::data(b))))
            }
            Self::Stream(chunks) => chunks.poll_recv(cx).map(|chunk| chunk.map(|c| c.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// The start of an answer: its media type and body, or why there is none.
pub type Head = Result<(&'static str, AnswerBody), Refusal>;

/// Writes an answer; tells the connection once how it starts.
pub struct AnswerWriter {
    media_type: &'static str,
    buffer: Vec<u8>,
    head: Option<oneshot::Sender<Head>>,
    chunks: Option<mpsc::Sender<Result<Bytes, io::Error>>>,
}

impl AnswerWriter {
    /// A writer whose answer starts at `head`.
    pub fn new(media_type: &'static str, head: oneshot::Sender<Head>) -> Self {
        Self { media_type, buffer: Vec::with_capacity(4096), head: Some(head), chunks: None }
    }

    /// Sends what is left.
    pub fn finish(mut self) -> io::Result<()> {
        match self.head.take() {
            Some(head) => {
                let body = AnswerBody::whole(std::mem::take(&mut self.buffer));
                head.send(Ok((self.media_type, body))).map_err(|_| gone())
            }
            None => self.send_chunk(),
        }
    }

    /// Ends in an error: a refusal when nothing has left yet, else a broken connection, so that the client does
    /// not take the part for the whole.
    pub fn fail(self, refusal: Refusal) {
        match (self.head, self.chunks) {
            (Some(head), _) => drop(head.send(Err(refusal))),
            (None, Some(chunks)) => drop(chunks.blocking_send(Err(io::Error::other(refusal.1)))),
            (None, None) => {}
        }
    }

    fn send_chunk(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Some(head) = self.head.take() {
            let (sender, receiver) = mpsc::channel(QUEUED_CHUNKS);
            head.send(Ok((self.media_type, AnswerBody::Stream(receiver)))).map_err(|_| gone())?;
            self.chunks = Some(sender);
        }
        let chunk = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK_BYTES));
        let chunks = self.chunks.as_ref().expect("the stream was opened when the head was sent");
        chunks.blocking_send(Ok(Bytes::from(chunk))).map_err(|_| gone())
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the client has closed the connection")
}

impl Write for AnswerWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK_BYTES {
            self.send_chunk()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer() -> (AnswerWriter, oneshot::Receiver<Head>) {
        let (sender, receiver) = oneshot::channel();
        (AnswerWriter::new("text/csv", sender), receiver)
    }

    #[test]
    fn a_short_answer_goes_whole() {
        let (mut writer, mut head) = writer();
        writer.write_all(b"yes").unwrap();
        assert!(head.try_recv().is_err(), "nothing leaves before the end");
        writer.finish().unwrap();
        assert!(
            matches!(head.try_recv().unwrap(), Ok(("text/csv", AnswerBody::Whole(Some(b)))) if b == "yes")
        );
    }

    #[test]
    fn an_early_error_is_a_refusal() {
        let (mut writer, mut head) = writer();
        writer.write_all(b"ye").unwrap();
        writer.fail((hyper::StatusCode::BAD_REQUEST, "no".into()));
        assert!(head.try_recv().unwrap().is_err());
    }

    #[test]
    fn a_long_answer_streams_and_a_lost_client_stops_it() {
        let (mut writer, mut head) = writer();
        writer.write_all(&vec![7; CHUNK_BYTES]).unwrap();
        let Ok((_, AnswerBody::Stream(mut chunks))) = head.try_recv().unwrap() else { panic!("streamed") };
        assert_eq!(chunks.try_recv().unwrap().unwrap().len(), CHUNK_BYTES);
        drop(chunks);
        assert_eq!(writer.write_all(&vec![7; CHUNK_BYTES]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
