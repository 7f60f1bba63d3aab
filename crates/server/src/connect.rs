//! One connection outside a load, from a connection string to a session: every option of the string
//! is enforced by the same code that the load engine's clients use, before a secret is sent.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wire::auth::KeyCache;
use wire::backend::BackendKey;
use wire::conninfo::{Conninfo, ConninfoError};
use wire::startup::SessionFacts;

use crate::dial::{BufferedSocket, ConnectRoute, DialAttempt, DialStep, RouteFailure, nonce};
use crate::limits::{LimitReached, Limits};
use crate::tls::TlsError;

/// Why there is no session.
#[derive(Clone, Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ConnectError {
    #[error(transparent)]
    Conninfo(#[from] ConninfoError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Refused(Box<RouteFailure>),
    #[error("connection to {place} failed: {reached}")]
    Limit {
        /// The server, without a password.
        place: String,
        reached: LimitReached,
    },
    #[error("connection to {place} failed: {doing}: {why}")]
    System {
        /// The server, without a password.
        place: String,
        doing: &'static str,
        why: String,
    },
}

impl ConnectError {
    /// The next step for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            ConnectError::Conninfo(error) => error.hint().map(str::to_owned),
            ConnectError::Tls(error) => Some(error.hint().to_owned()),
            ConnectError::Refused(failure) => failure.hint.clone(),
            ConnectError::Limit { .. } | ConnectError::System { .. } => None,
        }
    }

    /// SQLSTATE, where a server gave one.
    pub fn sqlstate(&self) -> Option<wire::SqlState> {
        match self {
            ConnectError::Refused(failure) => failure.sqlstate,
            _ => None,
        }
    }

    /// True if a server asked for a password and there was none.
    pub fn wants_password(&self) -> bool {
        matches!(self, ConnectError::Refused(failure) if failure.wants_password)
    }

    /// True if no answer came in time.
    pub fn is_silence(&self) -> bool {
        match self {
            ConnectError::Refused(failure) => failure.is_silent,
            ConnectError::Limit { reached, .. } => matches!(reached, LimitReached::Silence(_)),
            _ => false,
        }
    }

    /// True if the user's signal ended the attempt.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, ConnectError::Limit { reached: LimitReached::Interrupted, .. })
    }
}

/// A session that has just begun.
pub(crate) struct OpenedSession {
    pub(crate) socket: BufferedSocket,
    pub(crate) session: SessionFacts,
    /// Bytes that the server sent after the start-up.
    pub(crate) rest: Vec<u8>,
    /// The way to cancel what the session does.
    pub(crate) canceller: Option<Canceller>,
}

/// Connects to the first server that will do, as libpq tries them.
pub(crate) fn open(conninfo: &Conninfo, limits: &Limits) -> Result<OpenedSession, ConnectError> {
    let stopped = |reached| ConnectError::Limit { place: conninfo.place(), reached };
    let route = Arc::new(route(conninfo, limits, &stopped)?);
    let dial = DialAttempt::new(route.first_step(below), 0);
    let mut way = Way { route: &route, dial, limits, connect: connect_timeout(conninfo, limits) };
    match way.follow().map_err(stopped)? {
        Ending::Session(socket, session) => {
            let step = way.dial.step(&route);
            let key = session.backend_key.clone();
            let canceller = key.map(|key| Canceller::new(Arc::clone(&route), step, key));
            Ok(OpenedSession { socket, session: *session, rest: way.dial.take_rest(), canceller })
        }
        Ending::Failed(failure) => Err(ConnectError::Refused(Box::new(failure))),
        // Only a connection that cancels ends so.
        Ending::Cancelled => Err(ConnectError::Refused(Box::default())),
    }
}

/// `connect_timeout` as libpq has it, else the rig's own limit. It is for each address.
fn connect_timeout(conninfo: &Conninfo, limits: &Limits) -> Duration {
    let given = conninfo.connect_timeout_s.map(|s| Duration::from_secs(s.into()));
    given.unwrap_or(limits.connect)
}

/// Names are looked up on a thread of their own: the resolver hears no signal.
fn route(
    conninfo: &Conninfo,
    limits: &Limits,
    stopped: &dyn Fn(LimitReached) -> ConnectError,
) -> Result<ConnectRoute, ConnectError> {
    let (sender, found) = channel();
    let asked = conninfo.clone();
    let look = move || {
        // Nobody listens any more after a limit.
        let _ = sender.send(ConnectRoute::new(&asked, &[]));
    };
    thread::Builder::new().spawn(look).map_err(|error| ConnectError::System {
        place: conninfo.place(),
        doing: "starting a thread that looks up its name",
        why: error.to_string(),
    })?;
    let limit = connect_timeout(conninfo, limits).saturating_mul(2);
    let deadline = Instant::now() + limit;
    loop {
        match found.recv_timeout(GLANCE) {
            Ok(route) => return Ok(route?),
            Err(_) if limits.is_interrupted() => return Err(stopped(LimitReached::Interrupted)),
            Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
            Err(_) => return Err(stopped(LimitReached::Silence(limit))),
        }
    }
}

/// A random number below `n`.
fn below(n: usize) -> usize {
    let bytes = nonce().0;
    let random = u64::from_le_bytes([
        bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7],
    ]);
    (random % n.max(1) as u64) as usize
}

/// An attempt and what it needs.
struct Way<'a> {
    route: &'a ConnectRoute,
    dial: DialAttempt,
    limits: &'a Limits,
    connect: Duration,
}

enum Ending {
    Session(BufferedSocket, Box<SessionFacts>),
    Cancelled,
    Failed(RouteFailure),
}

impl Way<'_> {
    fn follow(&mut self) -> Result<Ending, LimitReached> {
        let (mut keys, mut scratch) = (KeyCache::new(), Vec::new());
        let (mut socket, mut deadline) = (None, Instant::now());
        let mut step = DialStep::NextStep;
        loop {
            step = match step {
                DialStep::Registered(new) => {
                    let socket = socket.insert(new);
                    self.dial.advance(self.route, socket, &mut keys, nonce, &mut scratch)
                }
                DialStep::NextStep => {
                    socket = None;
                    // Another way to the same address has what is left of its time.
                    if self.dial.is_at_new_address {
                        deadline = Instant::now() + self.connect;
                    }
                    self.dial.start(self.route)
                }
                DialStep::Later | DialStep::Pending => {
                    if self.limits.is_interrupted() {
                        return Err(LimitReached::Interrupted);
                    }
                    if Instant::now() >= deadline {
                        self.dial.timed_out(self.route)
                    } else if let (DialStep::Pending, Some(socket)) = (&step, &mut socket) {
                        self.wait(socket);
                        self.dial.advance(self.route, socket, &mut keys, nonce, &mut scratch)
                    } else {
                        thread::sleep(BACKLOG_PAUSE);
                        self.dial.start(self.route)
                    }
                }
                DialStep::Done(session) => match socket {
                    Some(socket) => return Ok(Ending::Session(socket, session)),
                    None => return Ok(Ending::Failed(RouteFailure::default())),
                },
                DialStep::Cancelled => return Ok(Ending::Cancelled),
                DialStep::Failed(failure) => return Ok(Ending::Failed(failure)),
            };
        }
    }

    /// Waits a moment for the socket.
    fn wait(&self, socket: &BufferedSocket) {
        let wants_out = self.dial.is_opening() || socket.has_unsent();
        let out = if wants_out { PollFlags::OUT } else { PollFlags::empty() };
        let mut sockets = [PollFd::from_borrowed_fd(socket.fd(), PollFlags::IN | out)];
        let glance = Timespec::try_from(GLANCE).ok();
        // An interrupted wait is a short one.
        let _ = poll(&mut sockets, glance.as_ref());
    }
}

/// The way to cancel what a session does. Cheap to clone; safe to use from another thread.
#[derive(Clone)]
pub struct Canceller {
    route: Arc<ConnectRoute>,
    step: usize,
    key: BackendKey,
}

impl Canceller {
    /// The canceller of the session of `key`, which was made by one `step` of a route.
    pub fn new(route: Arc<ConnectRoute>, step: usize, key: BackendKey) -> Self {
        Canceller { route, step, key }
    }

    /// Asks the server to cancel what the session does, by a connection that is encrypted as the
    /// session's own is. Returns when the server has acted on it, or after two seconds.
    pub fn cancel(&self) {
        let limits = Limits::of_questions();
        let dial = DialAttempt::cancelling(self.key.clone(), self.step);
        let connect = Duration::from_secs(2);
        let mut way = Way { route: &self.route, dial, limits: &limits, connect };
        // A request that cannot be sent leaves the statement to end by itself.
        let _ = way.follow();
    }
}

impl std::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Canceller(process {})", self.key.pid)
    }
}

/// The pause between two looks at the user's signals.
pub(crate) const GLANCE: Duration = Duration::from_millis(20);

/// The pause before a Unix socket whose backlog is full is tried again.
const BACKLOG_PAUSE: Duration = Duration::from_millis(2);
