//! From a thread that writes an answer to the connection that sends it.
//!
//! 1. The writer fills one chunk. An answer that ends within it goes out whole, with its
//!    length.
//! 2. A longer one turns into a stream: chunks pass through a short queue, so a slow client
//!    slows the query and not the server's memory.
//! 3. A query whose client does not read gives its slot, and the memory it has reserved and
//!    does not use, to others while it waits. It ends when the connection is closed at the
//!    stall deadline. (To cancel it at once would end every query whose client pauses.)
//! 4. When the client has gone, the body is dropped, which cancels the query.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use snowmelt_graph::Activity;
use snowmelt_sparql::QueryMemory;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::guard::Link;
use crate::refusal::Refusal;
use crate::running::Running;
use crate::slots::Slot;

/// Bytes an answer may have before it is streamed, and the size of a streamed chunk.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks between query and connection.
const QUEUED_CHUNKS: usize = 4;
/// How long a query keeps its slot while its client does not read.
const STALL: Duration = Duration::from_millis(100);
/// How long a query whose client reads on waits for the memory it has lent; then it goes on
/// with what it can get.
const LENT: Duration = Duration::from_secs(10);
/// Pause between two looks whether that memory is free.
const LOOK: Duration = Duration::from_millis(2);

/// A response body.
pub struct AnswerBody {
    content: Content,
    /// cancels the query when the body is dropped
    running: Option<Running>,
    link: Option<Arc<Link>>,
}

enum Content {
    /// all of it
    Whole(Option<Bytes>),
    /// chunks as the query produces them; an error breaks the connection, so that a cut answer
    /// is seen as cut
    Stream(mpsc::Receiver<Sent>),
}

/// A chunk, or the trailer.
type Sent = Result<Frame<Bytes>, io::Error>;

impl AnswerBody {
    /// A body that is complete.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::of(Content::Whole(Some(bytes.into())))
    }

    /// No body.
    pub fn empty() -> Self {
        Self::of(Content::Whole(None))
    }

    fn of(content: Content) -> Self {
        Self { content, running: None, link: None }
    }

    /// The same body, of a query that is still running.
    pub fn while_running(mut self, running: Running) -> Self {
        self.running = Some(running);
        self
    }

    /// The same body; the connection is told when it is over.
    pub fn on(mut self, link: &Arc<Link>) -> Self {
        self.link = Some(Arc::clone(link));
        self
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        if let Some(link) = &self.link {
            link.set_answered();
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.get_mut().content {
            Content::Whole(bytes) => {
                Poll::Ready(bytes.take().filter(|b| !b.is_empty()).map(|b| Ok(Frame::data(b))))
            }
            Content::Stream(chunks) => chunks.poll_recv(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

/// The start of an answer, or why there is none.
pub type Head = Result<Begun, Refusal>;

/// An answer that goes out.
pub struct Begun {
    pub media_type: &'static str,
    pub body: AnswerBody,
    /// reads and time of it; those of a stream follow in the trailer
    pub activity: Option<Activity>,
}

/// The header, or trailer, that says what was done for an answer.
pub const ACTIVITY: HeaderName = HeaderName::from_static("snowmelt-activity");

/// Its value: the one line.
pub fn activity_value(activity: &Activity) -> HeaderValue {
    HeaderValue::from_str(&activity.to_string()).expect("numbers and names are a header's value")
}

/// Writes an answer; tells the connection once how it starts.
pub struct AnswerWriter {
    media_type: &'static str,
    buffer: Vec<u8>,
    head: Option<oneshot::Sender<Head>>,
    chunks: Option<mpsc::Sender<Sent>>,
    turn: Turn,
}

/// Resources of a query that others wait for.
pub struct Turn {
    pub slot: Slot,
    pub memory: QueryMemory,
}

impl AnswerWriter {
    /// A writer whose answer starts at `head`.
    pub fn new(media_type: &'static str, head: oneshot::Sender<Head>, turn: Turn) -> Self {
        Self { media_type, buffer: Vec::with_capacity(4096), head: Some(head), chunks: None, turn }
    }

    /// Sends what is left, and what was done for it all.
    pub fn finish(mut self, activity: &Activity) -> io::Result<()> {
        match self.head.take() {
            Some(head) => {
                let body = AnswerBody::whole(std::mem::take(&mut self.buffer));
                let begun = Begun { media_type: self.media_type, body, activity: Some(*activity) };
                head.send(Ok(begun)).map_err(|_| gone())
            }
            None => {
                self.send_chunk()?;
                let trailer = HeaderMap::from_iter([(ACTIVITY, activity_value(activity))]);
                self.send(Frame::trailers(trailer))
            }
        }
    }

    /// Ends in an error: a refusal when nothing has left yet, else a broken connection, so that
    /// the client does not take the part for the whole.
    pub fn fail(self, refusal: Refusal) {
        drop(self.turn);
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
            let body = AnswerBody::of(Content::Stream(receiver));
            let begun = Begun { media_type: self.media_type, body, activity: None };
            head.send(Ok(begun)).map_err(|_| gone())?;
            self.chunks = Some(sender);
        }
        let chunk = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK_BYTES));
        self.send(Frame::data(Bytes::from(chunk)))
    }

    fn send(&mut self, frame: Frame<Bytes>) -> io::Result<()> {
        let chunks = self.chunks.as_ref().expect("the stream was opened when the head was sent");
        match chunks.try_send(Ok(frame)) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(gone()),
            Err(mpsc::error::TrySendError::Full(frame)) => {
                Handle::current().block_on(send_when_read(chunks, frame, &mut self.turn)).ok_or_else(gone)
            }
        }
    }
}

impl Turn {
    /// Lets others have it.
    fn release(&mut self) {
        self.slot.release();
        self.memory.lend();
    }

    /// Waits for the slot, and a while for the memory.
    async fn take_again(&mut self) {
        self.slot.take_again().await;
        let looks = LENT.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            if self.memory.take_back() {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Waits for the client to read, after a moment without its turn; `None` when it has gone.
async fn send_when_read(chunks: &mpsc::Sender<Sent>, chunk: Sent, turn: &mut Turn) -> Option<()> {
    if let Ok(room) = tokio::time::timeout(STALL, chunks.reserve()).await {
        room.ok()?.send(chunk);
        return Some(());
    }
    turn.release();
    chunks.reserve().await.ok()?.send(chunk);
    tokio::select! {
        () = turn.take_again() => Some(()),
        () = chunks.closed() => None,
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
    use crate::slots::Slots;
    use snowmelt_graph::{Database, OpenOptions};
    use snowmelt_sparql::{Engine, QueryOptions};

    fn turn() -> Turn {
        let dir = tempfile::tempdir().unwrap();
        let options = OpenOptions { memory_bytes: 64 << 20, ..OpenOptions::default() };
        let engine = Engine::new(Database::create(&dir.path().join("db"), &[], &options).unwrap());
        let memory = engine.query("ASK {}", &QueryOptions::default()).unwrap().memory();
        Turn { slot: Slots::new(1).try_take().unwrap(), memory }
    }

    fn writer() -> (AnswerWriter, oneshot::Receiver<Head>) {
        let (sender, receiver) = oneshot::channel();
        (AnswerWriter::new("text/csv", sender, turn()), receiver)
    }

    #[test]
    fn a_short_answer_goes_whole() {
        let (mut writer, mut head) = writer();
        writer.write_all(b"yes").unwrap();
        assert!(head.try_recv().is_err(), "nothing leaves before the end");
        let activity = Activity { disk: 7, ..Activity::default() };
        writer.finish(&activity).unwrap();
        let Ok(begun) = head.try_recv().unwrap() else { panic!("not an answer") };
        assert_eq!((begun.media_type, begun.activity), ("text/csv", Some(activity)));
        assert!(matches!(&begun.body.content, Content::Whole(Some(b)) if b == "yes"));
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
        let Ok(mut begun) = head.try_recv().unwrap() else { panic!("not an answer") };
        assert_eq!(begun.activity, None);
        let Content::Stream(chunks) = &mut begun.body.content else { panic!("not streamed") };
        let chunk = chunks.try_recv().unwrap().unwrap().into_data().unwrap();
        assert_eq!(chunk.len(), CHUNK_BYTES);
        drop(begun);
        assert_eq!(writer.write_all(&vec![7; CHUNK_BYTES]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
