//! The bytes of one connection on their way to and from the HTTP library, under deadlines.
//!
//! * **Reading**: requests are told apart ([`Framing`]) and handed on one at a time. What comes
//!   after a request waits here until it is answered; so the end of a connection is noticed
//!   although the client sent something more, and the query that runs for it ends.
//! * **Deadlines**: for the head of a request, for the pause between two requests, for a client
//!   that does not read. A write goes on when a third of the send buffer is free, so a client
//!   that takes a byte now and then is not taken for one that reads.
//!
//! The library sees a broken connection at a deadline; [`Link::ended`] says which it was.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::framing::{Doubt, Framing};
use crate::limits::ServerLimits;
use crate::tls::Stream;

/// Bytes read from the system at once.
const READ_BYTES: usize = 16 << 10;
/// Bytes of requests that wait while one is answered.
const AHEAD_BYTES: usize = 64 << 10;

/// State shared by a connection and the requests on it.
#[derive(Debug, Default)]
pub struct Link {
    verdict: Mutex<Option<Result<(), Doubt>>>,
    answered: AtomicBool,
    complete: AtomicBool,
    /// the client has said that it sends nothing more
    last: AtomicBool,
    ended: Mutex<Option<Ended>>,
    /// the connection, while it waits for the client
    waiting: Mutex<Option<Waker>>,
}

/// The deadline that ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// a head had begun
    Head,
    /// no request had begun
    Idle,
    /// the client did not read
    Write,
}

impl Link {
    /// Whether the request that the library has just handed on is beyond doubt.
    pub fn take_verdict(&self) -> Result<(), Doubt> {
        let verdict = self.verdict.lock().expect("no holder panics").take();
        verdict.unwrap_or(Err("where this request begins is unclear"))
    }

    /// The body of the answer has been handed on to its end, or is not wanted.
    pub fn set_answered(&self) {
        self.answered.store(true, Ordering::Release);
        // The library looks for the next request before it drops the answer, and then waits for
        // bytes that may be here.
        if let Some(connection) = self.waiting.lock().expect("no holder panics").take() {
            connection.wake();
        }
    }

    /// The request was received to its end.
    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// The client sends nothing after this request.
    pub fn set_last(&self) {
        self.last.store(true, Ordering::Release);
    }

    /// The deadline that ended the connection, if one did.
    pub fn ended(&self) -> Option<Ended> {
        *self.ended.lock().expect("no holder panics")
    }

    fn end(&self, why: Ended) -> io::Error {
        *self.ended.lock().expect("no holder panics") = Some(why);
        io::Error::from(io::ErrorKind::TimedOut)
    }
}

/// Parts of a request that the connection waits for, each with its own deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    FirstByte,
    NextRequest,
    Head,
    /// for a body, whose taker looks at the time, or for nothing
    Other,
}

/// A connection.
pub struct Guarded {
    stream: Stream,
    link: Arc<Link>,
    framing: Framing,
    /// received and not handed on
    ahead: BytesMut,
    at_end: bool,
    requests: u64,
    /// the request, and the part of it that is waited for
    waiting: (u64, Waiting),
    read_until: Option<Pin<Box<Sleep>>>,
    write_until: Option<Pin<Box<Sleep>>>,
    head: Duration,
    idle: Duration,
    stall: Duration,
}

impl Guarded {
    /// Guards a new connection.
    pub fn new(stream: Stream, link: Arc<Link>, limits: &ServerLimits) -> Self {
        Self {
            stream,
            link,
            framing: Framing::default(),
            ahead: BytesMut::new(),
            at_end: false,
            requests: 0,
            waiting: (0, Waiting::Other),
            read_until: None,
            write_until: None,
            head: limits.head,
            idle: limits.idle,
            stall: limits.stall,
        }
    }

    /// Whether nothing more is to come: all that did was handed on.
    pub fn is_over(&self) -> bool {
        let is_last = self.at_end || self.link.last.load(Ordering::Acquire);
        is_last && self.framing.is_complete() && self.ahead.is_empty()
    }

    /// The connection, and whether bytes of an answer were given up.
    pub fn into_stream(self) -> (Stream, bool) {
        (self.stream, self.write_until.is_some())
    }

    /// Hands on what has come of the current request; false when there is nothing to hand on.
    fn hand_on(&mut self, buf: &mut ReadBufCursor<'_>) -> bool {
        if self.framing.is_complete() && self.link.answered.swap(false, Ordering::AcqRel) {
            self.framing.next();
            self.requests += 1;
            self.link.complete.store(false, Ordering::Release);
        }
        let most = self.ahead.len().min(buf.remaining());
        let taken = self.framing.advance(&self.ahead[..most]);
        if let Some(verdict) = self.framing.take_verdict() {
            *self.link.verdict.lock().expect("no holder panics") = Some(verdict);
        }
        self.link.complete.store(self.framing.is_complete(), Ordering::Release);
        buf.put_slice(&self.ahead[..taken]);
        self.ahead.advance(taken);
        taken > 0
    }

    /// Looks at the deadline of what is waited for.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let waiting = match () {
            () if self.framing.is_in_head() => Waiting::Head,
            () if !self.framing.is_between() => Waiting::Other,
            () if self.requests == 0 => Waiting::FirstByte,
            () => Waiting::NextRequest,
        };
        if self.waiting != (self.requests, waiting) {
            self.waiting = (self.requests, waiting);
            let most = match waiting {
                Waiting::FirstByte | Waiting::Head => Some(self.head),
                Waiting::NextRequest => Some(self.idle),
                Waiting::Other => None,
            };
            self.read_until = most.map(|most| Box::pin(sleep_until(Instant::now() + most)));
        }
        let Some(until) = &mut self.read_until else { return Poll::Pending };
        ready!(until.as_mut().poll(cx));
        Poll::Ready(self.link.end(if waiting == Waiting::Head { Ended::Head } else { Ended::Idle }))
    }

    /// Looks at the deadline of a client that does not read.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let stall = self.stall;
        let until = self.write_until.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + stall)));
        ready!(until.as_mut().poll(cx));
        Poll::Ready(self.link.end(Ended::Write))
    }
}

impl hyper::rt::Read for Guarded {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let guard = self.get_mut();
        *guard.link.waiting.lock().expect("no holder panics") = Some(cx.waker().clone());
        loop {
            if guard.hand_on(&mut buf) || guard.at_end {
                return Poll::Ready(Ok(()));
            }
            // The answer to a doubtful request is on its way; nothing more is read.
            if guard.framing.is_doubtful() || guard.ahead.len() >= AHEAD_BYTES {
                return Poll::Pending;
            }
            guard.ahead.reserve(READ_BYTES);
            match pin!(guard.stream.read_buf(&mut guard.ahead)).poll(cx) {
                Poll::Pending => return guard.poll_deadline(cx).map(Err),
                Poll::Ready(Ok(0)) => guard.at_end = true,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
            }
        }
    }
}

impl hyper::rt::Write for Guarded {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let guard = self.get_mut();
        match Pin::new(&mut guard.stream).poll_write_vectored(cx, bytes) {
            Poll::Ready(written) => {
                guard.write_until = None;
                Poll::Ready(written)
            }
            Poll::Pending => guard.poll_stalled(cx).map(Err),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    /// The code that takes the connection back ends it.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
