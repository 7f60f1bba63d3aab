//! The bytes of a session, as the client library reads and writes them.
//!
//! The session has begun already ([`crate::connect`]), so the library's own start-up never reaches
//! the server: it is swallowed here and answered with what the server reported.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::Sleep;
use wire::backend::{ServerError, tag};

use crate::connect::{Canceller, GLANCE, OpenedSession};
use crate::dial::{BufferedSocket, ReadResult, SendProgress};
use crate::limits::{AwaitedAnswer, LimitReached, SessionLimits};

/// The bytes of a session, within its limits.
pub struct SessionStream {
    socket: BufferedSocket,
    /// The same socket, for the runtime to watch. Every stream socket can be watched as this type.
    watched: UnixStream,
    /// Bytes that the library sends before its first statement.
    start_up: StartUp,
    /// Bytes that the library has not read yet.
    arrived: Vec<u8>,
    read: usize,
    awaited: AwaitedAnswer,
    kept: Arc<SessionLimits>,
    canceller: Option<Canceller>,
    /// The moment at which the server was asked to cancel what it does.
    cancelled_at: Option<Instant>,
    /// The request while it is on its way. The server closes its connection after it has acted on it; a
    /// statement that was sent before that would be cancelled in place of the one that was meant.
    cancelling: Option<JoinHandle<()>>,
    tick: Pin<Box<Sleep>>,
}

/// The time that a server has to act on a cancel request.
const CANCEL_MAX: Duration = Duration::from_secs(4);

/// The library's start-up message, which is swallowed.
enum StartUp {
    Length(Vec<u8>),
    Body(usize),
    Over,
}

impl SessionStream {
    /// A stream on the runtime of the caller.
    pub(crate) fn new(opened: OpenedSession, kept: Arc<SessionLimits>) -> io::Result<Self> {
        let mut arrived = answer(&opened);
        arrived.extend_from_slice(&opened.rest);
        let watched = opened.socket.fd().try_clone_to_owned()?;
        Ok(SessionStream {
            watched: UnixStream::from_std(watched.into())?,
            socket: opened.socket,
            start_up: StartUp::Length(Vec::with_capacity(4)),
            arrived,
            read: 0,
            awaited: AwaitedAnswer::default(),
            kept,
            canceller: opened.canceller,
            cancelled_at: None,
            cancelling: None,
            tick: Box::pin(tokio::time::sleep(GLANCE)),
        })
    }

    /// Fails when a limit is reached; otherwise arranges for the next check.
    fn keep_limits(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        loop {
            let limits = self.kept.limits();
            let now = Instant::now();
            if let Some(reached) = self.awaited.reached(&limits, now) {
                drop(limits);
                let since = self.cancelled_at.unwrap_or(now);
                if self.cancelled_at.replace(since).is_none() {
                    self.cancel();
                }
                // A server that is asked to cancel says so, and the session stays whole.
                if reached != LimitReached::Interrupted || now - since > CANCEL_MAX {
                    return Err(reached.into());
                }
                if self.tick.as_mut().poll(cx).is_pending() {
                    return Ok(());
                }
                self.tick.as_mut().reset(tokio::time::Instant::now() + GLANCE);
                continue;
            }
            let is_limited = limits.answer.is_some() || limits.control.is_some();
            drop(limits);
            if !is_limited || !self.awaited.is_awaited() || self.tick.as_mut().poll(cx).is_pending()
            {
                return Ok(());
            }
            self.tick.as_mut().reset(tokio::time::Instant::now() + GLANCE);
        }
    }

    /// A statement that is given up does not go on in the server.
    fn cancel(&mut self) {
        if let Some(canceller) = self.canceller.take() {
            // Without a thread, the limit ends the wait all the same.
            let thread = std::thread::Builder::new().spawn(move || canceller.cancel());
            self.cancelling = thread.ok();
        }
    }

    /// Waits until a request to cancel has been acted on; [`Canceller::cancel`] ends within two seconds.
    fn outlive_cancelling(&mut self) {
        if let Some(cancelling) = self.cancelling.take() {
            // A thread that panicked has sent nothing any more.
            let _ = cancelling.join();
        }
    }

    /// Swallows what belongs to the start-up message; returns how much of `bytes` that is.
    fn swallow(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        loop {
            match &mut self.start_up {
                StartUp::Over => return taken,
                StartUp::Length(length) => {
                    let n = (4 - length.len()).min(bytes.len() - taken);
                    length.extend_from_slice(&bytes[taken..taken + n]);
                    taken += n;
                    let Ok(length) = <[u8; 4]>::try_from(&length[..]) else { return taken };
                    let body = (u32::from_be_bytes(length) as usize).saturating_sub(4);
                    self.start_up = StartUp::Body(body);
                }
                StartUp::Body(left) => {
                    let n = (*left).min(bytes.len() - taken);
                    *left -= n;
                    taken += n;
                    if *left > 0 {
                        return taken;
                    }
                    self.start_up = StartUp::Over;
                }
            }
        }
    }

    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.watched.poll_write_ready(cx))?;
            let socket = &mut self.socket;
            let flushed = self.watched.try_io(Interest::WRITABLE, || match socket.flush()? {
                SendProgress::All => Ok(()),
                SendProgress::Part => Err(io::ErrorKind::WouldBlock.into()),
            });
            match flushed {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl AsyncRead for SessionStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.read < this.arrived.len() {
                let rest = &this.arrived[this.read..];
                let n = rest.len().min(buffer.remaining());
                buffer.put_slice(&rest[..n]);
                this.read += n;
                return Poll::Ready(Ok(()));
            }
            this.arrived.clear();
            this.read = 0;
            this.keep_limits(cx)?;
            ready!(this.watched.poll_read_ready(cx))?;
            let (socket, arrived) = (&mut this.socket, &mut this.arrived);
            let received =
                this.watched.try_io(Interest::READABLE, || match socket.receive(arrived)? {
                    ReadResult::Nothing => Err(io::ErrorKind::WouldBlock.into()),
                    received => Ok(received),
                });
            match received {
                Ok(ReadResult::Closed) => return Poll::Ready(Ok(())),
                Ok(_) => {
                    this.awaited.received(&this.arrived);
                    this.kept.set_failed(this.awaited.has_failed());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for SessionStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let swallowed = self.swallow(bytes);
        if swallowed > 0 {
            return Poll::Ready(Ok(swallowed));
        }
        self.outlive_cancelling();
        self.awaited.sent(Instant::now());
        // From here on somebody looks at the limits, even if nothing arrives.
        self.keep_limits(cx)?;
        // A server that takes nothing must not fill our memory.
        if self.socket.has_unsent() {
            ready!(self.poll_flushed(cx))?;
        }
        self.socket.send(bytes)?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.socket.has_unsent() {
            return Poll::Ready(Ok(()));
        }
        self.keep_limits(cx)?;
        self.poll_flushed(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.socket.has_unsent() {
            ready!(self.poll_flushed(cx))?;
        }
        // A peer that is gone needs no farewell.
        let _ = rustix::net::shutdown(self.socket.fd(), rustix::net::Shutdown::Write);
        Poll::Ready(Ok(()))
    }
}

/// The end of a start-up as the client library expects it: the login is accepted, the settings are
/// reported, the server is ready. A cancel key is not passed on: [`Canceller`] has it.
fn answer(opened: &OpenedSession) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |tag: u8, body: &[u8]| {
        bytes.push(tag);
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
    };
    put(tag::AUTHENTICATION, &0_i32.to_be_bytes());
    for (name, value) in opened.session.parameters.iter() {
        put(tag::PARAMETER_STATUS, format!("{name}\0{value}\0").as_bytes());
    }
    for notice in &opened.session.notices {
        put(tag::NOTICE_RESPONSE, &notice_fields(notice));
    }
    put(tag::READY_FOR_QUERY, &[opened.session.status.indicator()]);
    bytes
}

/// The body of a NoticeResponse.
fn notice_fields(notice: &ServerError) -> Vec<u8> {
    let code = notice.sql_state.as_str().to_owned();
    let fields = [
        (b'S', Some(&notice.severity)),
        (b'C', Some(&code)),
        (b'M', Some(&notice.message)),
        (b'D', notice.detail.as_ref()),
        (b'H', notice.hint.as_ref()),
    ];
    let mut body = Vec::new();
    for (field, value) in fields {
        let Some(value) = value else { continue };
        body.push(field);
        body.extend(value.bytes().filter(|byte| *byte != 0));
        body.push(0);
    }
    body.push(0);
    body
}
