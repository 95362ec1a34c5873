//! From a thread that writes an answer to the connection that sends it.
//!
//! 1. The writer fills one chunk. An answer that ends within it goes out whole, with its
//!    length.
//! 2. A longer one turns into a stream: chunks pass through a short queue, so a slow client
//!    slows the query and not the server's memory.
//! 3. A query whose client does not read gives its slot, and the memory it has reserved and
//!    does not use, to others while it waits. It ends when the connection is closed at the
//!    stall deadline, or after some seconds where its memory is all that others wait for. (To
//!    cancel it at once would end every query whose client pauses.)
//! 4. When the client has gone, the body is dropped, which cancels the query.
//! 5. Where the client takes a coding, all but short answers are compressed on the thread that
//!    writes them.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_ENCODING, HeaderMap, HeaderName, HeaderValue};
use snowmelt_database::meters::Activity;
use snowmelt_database::{Account, MemoryBudget, Reservation};
use snowmelt_sparql::QueryMemory;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::addresses::Counted;
use crate::coding::{Coding, ENCODER_BYTES, Encoder};
use crate::guard::Link;
use crate::refusal::Refusal;
use crate::running::Running;
use crate::slots::Slot;

/// Bytes an answer may have before it is streamed.
const WHOLE_BYTES: usize = 64 * 1024;
/// How long a query keeps its slot while its client does not read.
const STALL: Duration = Duration::from_millis(100);
/// How long a query whose client does not read keeps memory that others need. Progress is seen when
/// a third of the send buffer is free, so this takes the answer from clients that read less than
/// some 50 KiB/s, too; they see it as cut.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a query whose client reads on waits for the memory it has lent; then it goes on
/// with what it can get.
const LENT: Duration = Duration::from_secs(10);
/// Pause between two looks whether that memory is free.
const LOOK: Duration = Duration::from_millis(2);
/// Shorter answers are not worth compressing.
const LEAST_CODED_BYTES: usize = 1024;
/// Compressed bytes that are worth a piece of the stream.
const CODED_CHUNK_BYTES: usize = 16 * 1024;

/// Bytes of memory that a stream holds while its client does not read.
#[derive(Clone, Copy)]
struct StreamSize {
    chunk_bytes: usize,
    /// between query and connection
    queued_chunks: usize,
}

impl StreamSize {
    /// As long as the memory budget has plenty.
    const LARGE: Self = Self { chunk_bytes: 32 * 1024, queued_chunks: 2 };
    /// So little that it is counted with the connection.
    const SMALL: Self = Self { chunk_bytes: 16 * 1024, queued_chunks: 1 };

    /// The chunks of the queue, the one that is being sent and the one that is being written.
    fn bytes(self) -> u64 {
        ((self.queued_chunks + 2) * self.chunk_bytes) as u64
    }

    /// A large stream, if the budget keeps an eighth for queries that are about to begin.
    fn reserve(budget: &MemoryBudget) -> (Self, Option<Reservation>) {
        match budget.reserve_leaving("an answer's chunks", Self::LARGE.bytes(), budget.total() / 8) {
            Ok(memory) => (Self::LARGE, Some(memory)),
            Err(_) => (Self::SMALL, None),
        }
    }
}

/// A response body.
pub struct AnswerBody {
    content: Content,
    /// cancels the query when the body is dropped
    running: Option<Running>,
    link: Option<Arc<Link>>,
    /// of its client's address
    counted: Option<Counted>,
    /// called with the bytes that were sent
    over: Option<Over>,
    sent: u64,
}

type Over = Box<dyn FnOnce(u64) + Send>;

enum Content {
    /// all of it
    Whole(Option<Bytes>),
    /// chunks as the query produces them; an error breaks the connection, so that a cut answer
    /// is seen as cut
    Stream {
        chunks: mpsc::Receiver<Sent>,
        /// The trailer came: all else that ends the chunks has cut the answer.
        is_ended: bool,
        #[expect(dead_code, reason = "held for its drop")]
        memory: Option<Reservation>,
    },
}

/// A chunk, or the trailer.
type Sent = Result<Frame<Bytes>, io::Error>;

impl AnswerBody {
    /// A body that is complete.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::from_content(Content::Whole(Some(bytes.into())))
    }

    /// No body.
    pub fn empty() -> Self {
        Self::from_content(Content::Whole(None))
    }

    fn from_content(content: Content) -> Self {
        Self { content, running: None, link: None, counted: None, over: None, sent: 0 }
    }

    /// Holds on to a query that is still running: dropping the body cancels it.
    pub fn while_running(mut self, running: Running) -> Self {
        self.running = Some(running);
        self
    }

    /// Sets the link's `answered` when the body is over.
    pub fn on(mut self, link: &Arc<Link>) -> Self {
        self.link = Some(Arc::clone(link));
        self
    }

    /// Counts the request for its client's address until the body is over.
    pub fn counted(mut self, counted: Option<Counted>) -> Self {
        self.counted = counted;
        self
    }

    /// Calls `f` when the body is over, with the bytes that were sent of it.
    pub fn when_over(mut self, f: impl FnOnce(u64) + Send + 'static) -> Self {
        self.over = Some(Box::new(f));
        self
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        if let Some(link) = &self.link {
            link.set_answered();
        }
        if let Some(over) = self.over.take() {
            over(self.sent);
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
        let body = self.get_mut();
        let frame = match &mut body.content {
            Content::Whole(bytes) => bytes.take().filter(|b| !b.is_empty()).map(|b| Ok(Frame::data(b))),
            Content::Stream { chunks, is_ended, .. } => match std::task::ready!(chunks.poll_recv(cx)) {
                None if !*is_ended => {
                    *is_ended = true;
                    Some(Err(io::Error::other("the answer was cut")))
                }
                frame => {
                    *is_ended |= !matches!(&frame, Some(Ok(frame)) if frame.is_data());
                    frame
                }
            },
        };
        if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            body.sent += data.len() as u64;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Content::Stream { .. } => SizeHint::default(),
        }
    }
}

/// The start of an answer, or why there is none.
pub type Head = Result<Begun, Refusal>;

/// An answer that goes out.
pub struct Begun {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: AnswerBody,
    /// reads and time of it; those of a stream follow in the trailer
    pub activity: Option<Activity>,
}

impl Begun {
    /// The answer that a client has already.
    pub fn kept(headers: HeaderMap, account: Option<&Account>) -> Self {
        let activity = Some(account.map(Account::activity).unwrap_or_default());
        Self { status: StatusCode::NOT_MODIFIED, headers, body: AnswerBody::empty(), activity }
    }
}

/// The header, or trailer, that says what was done for an answer.
pub const ACTIVITY: HeaderName = HeaderName::from_static("snowmelt-activity");

/// Its value: the one line.
pub fn activity_value(activity: &Activity) -> HeaderValue {
    HeaderValue::from_str(&activity.to_string()).expect("numbers and names are a header's value")
}

/// Writes an answer; tells the connection once how it starts.
pub struct AnswerWriter {
    headers: HeaderMap,
    budget: MemoryBudget,
    coding: Option<Coding>,
    encoder: Option<(Encoder, Reservation)>,
    /// not yet compressed, or not to be
    buffer: Vec<u8>,
    /// compressed and not yet sent
    coded: Vec<u8>,
    head: Option<oneshot::Sender<Head>>,
    chunks: Option<mpsc::Sender<Sent>>,
    /// of the next chunk; of the whole answer before it is streamed
    chunk_bytes: usize,
    turn: Turn,
    /// it must not become longer
    most_bytes: usize,
}

/// Resources of a query that others wait for.
pub struct Turn {
    pub slot: Arc<Slot>,
    pub memory: Option<QueryMemory>,
}

impl Drop for Turn {
    /// The request may still hold the slot.
    fn drop(&mut self) {
        self.slot.release();
    }
}

impl AnswerWriter {
    /// A writer whose answer starts at `head`, with these headers; what waits for the client is of
    /// the budget.
    pub fn new(headers: HeaderMap, head: oneshot::Sender<Head>, turn: Turn, budget: &MemoryBudget) -> Self {
        Self {
            headers,
            budget: budget.clone(),
            coding: None,
            encoder: None,
            buffer: Vec::with_capacity(4096),
            coded: Vec::new(),
            head: Some(head),
            chunks: None,
            chunk_bytes: WHOLE_BYTES,
            turn,
            most_bytes: usize::MAX,
        }
    }

    /// Compresses the answer with `coding`, if there is one and memory for it.
    pub fn coded(self, coding: Option<Coding>) -> Self {
        Self { coding, ..self }
    }

    /// Gives the answer up rather than streams it: writing fails once it is too long to be sent at
    /// once.
    pub fn at_once(self) -> Self {
        let most_bytes = if self.coding.is_some() { LEAST_CODED_BYTES } else { WHOLE_BYTES };
        Self { most_bytes, ..self }
    }

    /// Begins to compress where that is wanted, before the head is sent.
    fn begin_coding(&mut self) -> io::Result<()> {
        let Some(coding) = self.coding.take() else { return Ok(()) };
        let Ok(memory) = self.budget.reserve("an answer's compression", ENCODER_BYTES) else { return Ok(()) };
        self.encoder = Some((Encoder::new(coding)?, memory));
        self.headers.insert(CONTENT_ENCODING, coding.value());
        Ok(())
    }

    /// Sends what is left, and what was done for it all.
    pub fn finish(mut self, activity: &Activity) -> io::Result<()> {
        match self.head.take() {
            Some(head) => {
                if self.buffer.len() >= LEAST_CODED_BYTES {
                    self.begin_coding()?;
                }
                self.code(true)?;
                let body = AnswerBody::whole(std::mem::take(&mut self.coded));
                let headers = std::mem::take(&mut self.headers);
                let begun = Begun { status: StatusCode::OK, headers, body, activity: Some(*activity) };
                head.send(Ok(begun)).map_err(|_| gone())
            }
            None => {
                self.code(true)?;
                self.send_coded()?;
                let trailer = HeaderMap::from_iter([(ACTIVITY, activity_value(activity))]);
                self.send(Frame::trailers(trailer))
            }
        }
    }

    /// Takes back the head and the turn if nothing has left yet; ends in an error otherwise.
    pub fn begin_again(self, refusal: Refusal) -> Option<(oneshot::Sender<Head>, Turn)> {
        if self.head.is_none() {
            self.fail(refusal);
            return None;
        }
        Some((self.head?, self.turn))
    }

    /// Ends in an error: a refusal when nothing has left yet, else a broken connection, so that
    /// the client does not take the part for the whole.
    pub fn fail(self, refusal: Refusal) {
        drop(self.turn);
        match (self.head, self.chunks) {
            (Some(head), _) => drop(head.send(Err(refusal))),
            (None, Some(chunks)) => drop(chunks.blocking_send(Err(io::Error::from(refusal)))),
            (None, None) => {}
        }
    }

    fn send_chunk(&mut self) -> io::Result<()> {
        if self.head.is_some() {
            self.begin_stream()?;
        }
        self.code(false)?;
        let worth = if self.encoder.is_some() { CODED_CHUNK_BYTES } else { 1 };
        if self.coded.len() >= worth { self.send_coded() } else { Ok(()) }
    }

    /// Sends the head of an answer that goes on. A client that has gone leaves a closed stream:
    /// buffers before this writer try again when they are dropped.
    fn begin_stream(&mut self) -> io::Result<()> {
        self.begin_coding()?;
        let (size, memory) = StreamSize::reserve(&self.budget);
        self.chunk_bytes = size.chunk_bytes;
        let (sender, chunks) = mpsc::channel(size.queued_chunks);
        self.chunks = Some(sender);
        let body = AnswerBody::from_content(Content::Stream { chunks, is_ended: false, memory });
        let headers = std::mem::take(&mut self.headers);
        let begun = Begun { status: StatusCode::OK, headers, body, activity: None };
        let head = self.head.take().expect("a head is sent once");
        head.send(Ok(begun)).map_err(|_| gone())
    }

    /// Moves what was written to what can be sent; at the end all of it.
    fn code(&mut self, is_end: bool) -> io::Result<()> {
        match &mut self.encoder {
            None => std::mem::swap(&mut self.coded, &mut self.buffer),
            Some((encoder, _)) => self.coded.append(&mut encoder.encode(&self.buffer)?),
        }
        self.buffer.clear();
        if let Some((encoder, _)) = self.encoder.take_if(|_| is_end) {
            self.coded.append(&mut encoder.finish()?);
        }
        Ok(())
    }

    fn send_coded(&mut self) -> io::Result<()> {
        if self.coded.is_empty() {
            return Ok(());
        }
        let capacity = if self.encoder.is_some() { CODED_CHUNK_BYTES } else { self.chunk_bytes };
        let chunk = std::mem::replace(&mut self.coded, Vec::with_capacity(capacity));
        self.send(Frame::data(Bytes::from(chunk)))
    }

    fn send(&mut self, frame: Frame<Bytes>) -> io::Result<()> {
        let chunks = self.chunks.as_ref().expect("the stream was opened when the head was sent");
        match chunks.try_send(Ok(frame)) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(gone()),
            Err(mpsc::error::TrySendError::Full(frame)) => {
                let sent = send_when_read(chunks, frame, &mut self.turn, &self.budget);
                Handle::current().block_on(sent)
            }
        }
    }
}

impl Turn {
    /// Lets others have it.
    fn release(&mut self) {
        self.slot.release();
        self.memory.iter().for_each(QueryMemory::lend);
    }

    /// Waits for the slot, and a while for the memory.
    async fn take_again(&mut self) {
        self.slot.take_again().await;
        let looks = LENT.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            if self.memory.as_ref().is_none_or(QueryMemory::take_back) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Waits for the client to read, after a moment without its turn; an error when it has gone, or has
/// not read for long while memory is short.
async fn send_when_read(
    chunks: &mpsc::Sender<Sent>,
    chunk: Sent,
    turn: &mut Turn,
    budget: &MemoryBudget,
) -> io::Result<()> {
    if let Ok(room) = tokio::time::timeout(STALL, chunks.reserve()).await {
        room.map_err(|_| gone())?.send(chunk);
        return Ok(());
    }
    turn.release();
    tokio::select! {
        room = chunks.reserve() => room.map_err(|_| gone())?.send(chunk),
        () = out_of_patience(budget) => return Err(mute()),
    }
    tokio::select! {
        () = turn.take_again() => Ok(()),
        () = chunks.closed() => Err(gone()),
    }
}

/// Ends some seconds on, as soon as the budget is all but used up.
async fn out_of_patience(budget: &MemoryBudget) {
    /// Parts of the budget of which one is enough for the next query to begin.
    const PARTS: u64 = 64;
    tokio::time::sleep(PATIENCE).await;
    while budget.free() >= budget.total() / PARTS {
        tokio::time::sleep(STALL).await;
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the client has closed the connection")
}

fn mute() -> io::Error {
    let why = format!("the client read nothing for {} s while memory was short", PATIENCE.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, why)
}

impl Write for AnswerWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= self.most_bytes {
            return Err(io::Error::other("too long to be sent at once"));
        }
        if self.buffer.len() >= self.chunk_bytes {
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
    use hyper::header::CONTENT_TYPE;
    use snowmelt_database::OpenOptions;
    use snowmelt_graph::GraphDatabase;
    use snowmelt_sparql::{QueryEngine, QueryOptions};

    fn turn() -> Turn {
        let dir = tempfile::tempdir().unwrap();
        let options = OpenOptions { memory_bytes: 64 << 20, ..OpenOptions::default() };
        let engine = QueryEngine::new(GraphDatabase::create(&dir.path().join("db"), &[], &options).unwrap());
        let memory = engine.query("ASK {}", &QueryOptions::default()).unwrap().memory();
        Turn { slot: Arc::new(Slots::new(1).try_take().unwrap()), memory: Some(memory) }
    }

    fn writer(budget: &MemoryBudget) -> (AnswerWriter, oneshot::Receiver<Head>) {
        let (sender, receiver) = oneshot::channel();
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("text/csv"))]);
        (AnswerWriter::new(headers, sender, turn(), budget), receiver)
    }

    #[test]
    fn a_short_answer_goes_whole() {
        let (mut writer, mut head) = writer(&MemoryBudget::new(64 << 20));
        writer.write_all(b"yes").unwrap();
        assert!(head.try_recv().is_err(), "nothing leaves before the end");
        let activity = Activity { disk: 7, ..Activity::default() };
        writer.finish(&activity).unwrap();
        let Ok(begun) = head.try_recv().unwrap() else { panic!("not an answer") };
        assert_eq!(
            (begun.headers[CONTENT_TYPE].as_bytes(), begun.activity),
            (&b"text/csv"[..], Some(activity))
        );
        assert!(matches!(&begun.body.content, Content::Whole(Some(b)) if b == "yes"));
    }

    #[test]
    fn an_early_error_is_a_refusal() {
        let (mut writer, mut head) = writer(&MemoryBudget::new(64 << 20));
        writer.write_all(b"ye").unwrap();
        writer.fail(Refusal::new(hyper::StatusCode::BAD_REQUEST, "no"));
        assert!(head.try_recv().unwrap().is_err());
    }

    #[test]
    fn a_long_answer_streams_and_a_lost_client_stops_it() {
        let (mut writer, mut head) = writer(&MemoryBudget::new(64 << 20));
        writer.write_all(&vec![7; WHOLE_BYTES]).unwrap();
        let Ok(mut begun) = head.try_recv().unwrap() else { panic!("not an answer") };
        assert_eq!(begun.activity, None);
        let Content::Stream { chunks, .. } = &mut begun.body.content else { panic!("not streamed") };
        let chunk = chunks.try_recv().unwrap().unwrap().into_data().unwrap();
        assert_eq!(chunk.len(), WHOLE_BYTES);
        drop(begun);
        assert_eq!(writer.write_all(&vec![7; WHOLE_BYTES]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    /// A buffer writes what it holds once more when it is dropped after an error.
    #[test]
    fn a_client_that_left_before_the_head_is_an_error_however_often_one_writes() {
        let (mut writer, head) = writer(&MemoryBudget::new(64 << 20));
        drop(head);
        for _ in 0..2 {
            let wrong = writer.write_all(&vec![7; WHOLE_BYTES]).unwrap_err();
            assert_eq!(wrong.kind(), io::ErrorKind::BrokenPipe);
        }
        writer.finish(&Activity::default()).unwrap_err();
    }

    /// Whatever the writer ends by, a panic or a client that did not read its last chunk.
    #[test]
    fn an_answer_without_its_end_is_an_error() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        for is_finished in [true, false] {
            let (mut writer, mut head) = writer(&MemoryBudget::new(64 << 20));
            writer.write_all(&vec![7; WHOLE_BYTES]).unwrap();
            let Ok(mut begun) = head.try_recv().unwrap() else { panic!("not an answer") };
            match is_finished {
                true => writer.finish(&Activity::default()).unwrap(),
                false => drop(writer),
            }
            let frames = runtime.block_on(async {
                let mut frames = Vec::new();
                while let Some(frame) =
                    std::future::poll_fn(|cx| Pin::new(&mut begun.body).poll_frame(cx)).await
                {
                    frames.push(frame.is_ok());
                }
                frames
            });
            assert_eq!(frames, [true, is_finished]);
        }
    }

    #[test]
    fn what_waits_for_clients_is_of_the_budget_and_little_when_that_is_short() {
        let budget = MemoryBudget::new(2 << 20);
        let mut waiting = Vec::new();
        for _ in 0..50 {
            let (mut writer, mut head) = writer(&budget);
            let mut held = 0;
            writer.write_all(&vec![7; WHOLE_BYTES]).unwrap();
            let begun = head.try_recv().unwrap();
            let chunk = vec![7; writer.chunk_bytes];
            // All that goes into the queue without waiting.
            while writer.chunks.as_ref().is_some_and(|chunks| chunks.capacity() > 0) {
                writer.write_all(&chunk).unwrap();
                held += chunk.len();
            }
            waiting.push((begun, writer, held));
        }
        let large = waiting
            .iter()
            .filter(|(_, writer, _)| writer.chunk_bytes == StreamSize::LARGE.chunk_bytes)
            .count();
        assert_eq!(budget.used(), large as u64 * StreamSize::LARGE.bytes());
        assert!((10..20).contains(&large), "{large} streams of 128 KiB in seven eighths of 2 MiB");
        let beyond: usize = waiting[large..].iter().map(|(_, _, held)| held).sum();
        assert!(beyond <= (waiting.len() - large) * StreamSize::SMALL.bytes() as usize, "{beyond}");
        drop(waiting);
        assert_eq!(budget.used(), 0);
    }

    /// All that comes of an answer, and whether it is compressed.
    async fn all_of(head: oneshot::Receiver<Head>) -> (bool, Vec<u8>) {
        let Ok(begun) = head.await.unwrap() else { panic!("not an answer") };
        let is_coded = begun.headers.contains_key(CONTENT_ENCODING);
        let mut body = begun.body;
        let mut all = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            all.extend(frame.unwrap().into_data().map_or(Vec::new(), |data| data.to_vec()));
        }
        (is_coded, all)
    }

    #[test]
    fn all_but_short_answers_are_compressed_when_there_is_memory() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let budget = MemoryBudget::new(64 << 20);
        for (len, free, is_coded) in [
            (100, true, false),
            (2_000, true, true),
            (3 * WHOLE_BYTES, true, true),
            (3 * WHOLE_BYTES, false, false),
        ] {
            let _elsewhere = (!free).then(|| budget.reserve("a test", 63 << 20).unwrap());
            let (writer, head) = writer(&budget);
            let text: Vec<u8> = (0..len).map(|i| (i % 7) as u8).collect();
            let wanted = text.clone();
            runtime.spawn_blocking(move || {
                let mut writer = writer.coded(Some(Coding::Gzip));
                text.chunks(10_000).for_each(|part| writer.write_all(part).unwrap());
                writer.finish(&Activity::default()).unwrap();
            });
            let (coded, bytes) = runtime.block_on(all_of(head));
            assert_eq!(coded, is_coded, "{len} bytes");
            let back = match coded {
                false => bytes,
                true => {
                    assert!(bytes.len() < len / 4, "{} of {len}", bytes.len());
                    let mut decoder = crate::coding::Decoder::new(Some(Coding::Gzip), Vec::new()).unwrap();
                    decoder.write(&bytes).unwrap();
                    decoder.finish().unwrap()
                }
            };
            assert!(back == wanted, "{len} bytes");
        }
    }
}
