//! One connection in the making: from an address to a session that can be queried.

use std::sync::Arc;

use wire::{
    BackendMessage, SqlState,
    auth::{KeyCache, ScramNonce},
    backend::BackendKey,
    conninfo::{HostAddress, PasswordSource, SOCKET_DIRECTORY, TargetDecision},
    frame,
    startup::{SessionFacts, Startup, StartupChannel, StartupError},
    tls::{self, NegotiationError, SslNegotiation, TlsAttempt, TlsContinuation},
};

use crate::CertificateRequestWitness;

mod endpoint;
mod failure;
mod peer;
mod route;
mod socket;

pub use endpoint::{ServerEndpoint, SocketOpening};
pub use failure::{ReachedLimit, RouteFailure};
pub use route::{ConnectAttempt, ConnectRoute, RemainingSteps};
pub use socket::{BufferedSocket, ReadResult, SendProgress, without_errno};

/// An attempt under way. The socket lies beside it, so that it outlives the attempt.
pub struct DialAttempt {
    /// The step that this client began with.
    first: usize,
    /// Steps tried or passed over since.
    tried: usize,
    stage: Stage,
    arrived: Vec<u8>,
    /// The moment at which this client began to connect.
    pub began: u64,
    /// The moment at which the first step to this address began: its time limit counts from there.
    pub step_began: u64,
    /// True if the step under way goes to another address than the one before.
    pub is_at_new_address: bool,
    /// Everything that went wrong so far.
    failure: Option<RouteFailure>,
    /// The query of another session that this connection cancels, instead of beginning its own.
    cancels: Option<BackendKey>,
    /// True if the socket is watched for becoming writable, which says that it is connected.
    pub awaits_writable: bool,
    /// Why nothing more can be sent: the server's last messages before it hung up are read
    /// first.
    unsent: Option<std::io::Error>,
    /// The witness that sees whether the server asks for our certificate, where it must.
    witness: Option<Arc<CertificateRequestWitness>>,
    /// True if the server has declined TLS on the connection under way.
    is_declined: bool,
    /// True if the server knows no `application_name`: it is older than PostgreSQL 9.0, or a pooler.
    is_nameless: bool,
}

enum Stage {
    /// No socket yet.
    Idle,
    /// `connect` is under way.
    Opening,
    /// An SSLRequest was sent.
    Asking,
    /// TLS shakes hands.
    Handshaking,
    /// The start-up message was sent.
    StartingUp(Box<Startup>),
    /// The server was asked whether it takes writes, being too old to say so by itself.
    Judging(Box<SessionFacts>),
    /// A cancel request was sent: the server closes when it has acted on it.
    Cancelling,
}

/// The next need of an attempt.
pub enum DialStep {
    /// A socket was made: it must be registered for events.
    Registered(BufferedSocket),
    /// More events.
    Pending,
    /// The Unix socket's backlog is full: [`DialAttempt::start`] again in a moment.
    Later,
    /// This step failed; drop the socket and [`DialAttempt::start`] the next.
    NextStep,
    /// Connected.
    Done(Box<SessionFacts>),
    /// The cancel request was taken.
    Cancelled,
    /// No step is left.
    Failed(RouteFailure),
}

impl DialAttempt {
    /// An attempt that begins with the step `first_step` of its route, at `now` (ns).
    pub fn new(first_step: usize, now: u64) -> Self {
        DialAttempt {
            first: first_step,
            tried: 0,
            stage: Stage::Idle,
            arrived: Vec::new(),
            began: now,
            step_began: now,
            is_at_new_address: true,
            failure: None,
            cancels: None,
            awaits_writable: false,
            unsent: None,
            witness: None,
            is_declined: false,
            is_nameless: false,
        }
    }

    /// A connection that asks the server to cancel what the session of `key` does. It takes the one
    /// `step` of the route by which that session was made.
    pub fn cancelling(key: BackendKey, step: usize) -> Self {
        DialAttempt { cancels: Some(key), ..DialAttempt::new(step, 0) }
    }

    /// True while `connect` is under way: the socket becomes writable when it is done.
    pub fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Opening)
    }

    /// Takes the bytes that arrived behind the last message of the start-up.
    pub fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.arrived)
    }

    fn current<'r>(&self, route: &'r ConnectRoute) -> &'r ConnectAttempt {
        &route.steps[self.step(route)]
    }

    /// Opens a socket for the current step.
    pub fn start(&mut self, route: &ConnectRoute) -> DialStep {
        self.arrived.clear();
        self.unsent = None;
        self.witness = None;
        self.is_declined = false;
        match self.current(route).endpoint.open() {
            Ok(SocketOpening::Open(fd)) => {
                self.stage = Stage::Opening;
                DialStep::Registered(BufferedSocket::new(fd))
            }
            Ok(SocketOpening::BacklogFull) => DialStep::Later,
            Ok(SocketOpening::Unresolved(why)) => {
                let failure = RouteFailure::new(why);
                self.failed(route, failure, RemainingSteps::Host)
            }
            Err(error) => self.unreachable(route, &error.to_string()),
        }
    }

    /// The socket is writable or readable, or has just been made.
    pub fn advance(
        &mut self,
        route: &ConnectRoute,
        socket: &mut BufferedSocket,
        keys: &mut KeyCache,
        nonce: impl FnOnce() -> ScramNonce,
        scratch: &mut Vec<u8>,
    ) -> DialStep {
        let mut nonce = Some(nonce);
        loop {
            let stepped = match &mut self.stage {
                Stage::Idle => return DialStep::Pending,
                Stage::Opening => self.opened(route, socket, &mut nonce),
                Stage::Asking
                | Stage::Handshaking
                | Stage::StartingUp(_)
                | Stage::Judging(_)
                | Stage::Cancelling => {
                    scratch.clear();
                    match socket.receive(scratch) {
                        Ok(ReadResult::Bytes { .. }) => self.arrived.extend_from_slice(scratch),
                        Ok(ReadResult::Closed) if matches!(self.stage, Stage::Cancelling) => {
                            return DialStep::Cancelled;
                        }
                        Ok(ReadResult::Nothing) if self.unsent.is_some() => {
                            let error = self.unsent.take().unwrap_or_else(broken_pipe);
                            return self.broken_off(route, &error);
                        }
                        Ok(ReadResult::Nothing) if !matches!(self.stage, Stage::Handshaking) => {
                            return DialStep::Pending;
                        }
                        Ok(ReadResult::Nothing) => {}
                        Ok(ReadResult::Closed) => {
                            return self.refused(route, &StartupError::Closed);
                        }
                        Err(error) => return self.broken_off(route, &error),
                    }
                    if self.arrived.len() > ARRIVED_BYTES_MAX {
                        let why = "the server sent more than a start-up can hold";
                        return self.broken(route, why, RemainingSteps::End);
                    }
                    self.arrived(route, socket, keys, &mut nonce)
                }
            };
            match stepped {
                Some(progress) => return progress,
                // Another stage was reached, and its first answer may be here already only where
                // TLS has read ahead.
                None if socket.tls().is_some() || self.unsent.is_some() => {}
                None => return DialStep::Pending,
            }
        }
    }

    fn opened(
        &mut self,
        route: &ConnectRoute,
        socket: &mut BufferedSocket,
        nonce: &mut Option<impl FnOnce() -> ScramNonce>,
    ) -> Option<DialStep> {
        if !socket.is_connected() {
            return Some(match socket.connect_result() {
                Ok(()) => DialStep::Pending,
                Err(error) => self.unreachable(route, &error.to_string()),
            });
        }
        if let Some(peer) = route.peer.as_ref().filter(|_| self.current(route).endpoint.is_unix())
            && let Err(why) = peer.check(socket.fd())
        {
            return Some(self.broken(route, &why, RemainingSteps::End));
        }
        match (self.current(route).attempt, route.negotiation) {
            (TlsAttempt::Plain, _) => {
                let channel = self.plain_channel(route, socket);
                self.start_up(route, socket, channel, nonce)
            }
            (TlsAttempt::Tls | TlsAttempt::TlsOrPlain, SslNegotiation::Postgres) => {
                let mut request = Vec::with_capacity(8);
                wire::frontend::ssl_request(&mut request);
                self.stage = Stage::Asking;
                self.send(socket, &request)
            }
            (TlsAttempt::Tls | TlsAttempt::TlsOrPlain, SslNegotiation::Direct) => {
                self.shake_hands(route, socket)
            }
        }
    }

    /// The channel without encryption. On a Unix socket that `requirepeer` says nothing about, a
    /// password is for a server that this user or root runs, or that has the socket where only its
    /// owner may make one.
    fn plain_channel(&self, route: &ConnectRoute, socket: &BufferedSocket) -> StartupChannel {
        let step = self.current(route);
        let has_secret = step.login.password.is_some();
        match &step.endpoint.host().address {
            HostAddress::Unix { directory } if has_secret && route.peer.is_none() => {
                match peer::doubt(directory, socket.fd()) {
                    Some(why) => StartupChannel::Unvouched { why },
                    None => StartupChannel::Plain,
                }
            }
            HostAddress::Unix { .. } | HostAddress::Tcp { .. } => StartupChannel::Plain,
        }
    }

    fn arrived(
        &mut self,
        route: &ConnectRoute,
        socket: &mut BufferedSocket,
        keys: &mut KeyCache,
        nonce: &mut Option<impl FnOnce() -> ScramNonce>,
    ) -> Option<DialStep> {
        match &mut self.stage {
            Stage::Idle | Stage::Opening => None,
            Stage::Cancelling => {
                self.arrived.clear();
                Some(DialStep::Pending)
            }
            Stage::Asking => match tls::answer(self.current(route).attempt, &self.arrived) {
                Ok(None) => Some(DialStep::Pending),
                Ok(Some(TlsContinuation::Plain)) => {
                    self.arrived.clear();
                    self.is_declined = true;
                    self.start_up(route, socket, StartupChannel::Plain, nonce)
                }
                Ok(Some(TlsContinuation::Handshake)) => {
                    self.arrived.clear();
                    self.shake_hands(route, socket)
                }
                // By sslmode=allow, TLS was a second way that is not there: what the server said first
                // is all there is to say.
                Err(NegotiationError::Unsupported) if !self.is_at_new_address => {
                    Some(self.failed_before(route))
                }
                Err(error) => {
                    let begun = self.current(route).endpoint.connection_failed();
                    let hint = error.hint().map(str::to_owned);
                    let failure =
                        RouteFailure { hint, ..RouteFailure::new(format!("{begun}: {error}")) };
                    Some(self.failed(route, failure, RemainingSteps::End))
                }
            },
            Stage::Handshaking if socket.is_handshaking() => Some(DialStep::Pending),
            Stage::Handshaking => {
                if let Some(why) = self.protocol_objection(route, socket) {
                    return Some(self.broken(route, why, RemainingSteps::Attempt));
                }
                let server_end_point = socket.tls().and_then(crate::tls::server_end_point);
                self.start_up(route, socket, StartupChannel::Tls { server_end_point }, nonce)
            }
            Stage::StartingUp(startup) => {
                let mut answer = Vec::new();
                match startup.advance(&self.arrived, keys, &mut answer) {
                    Err(error) => Some(self.refused(route, &error)),
                    Ok(progress) => {
                        self.arrived.drain(..progress.consumed);
                        match progress.session {
                            Some(session) => self.judge(route, socket, session),
                            None => self.send(socket, &answer).or(Some(DialStep::Pending)),
                        }
                    }
                }
            }
            Stage::Judging(_) => Some(self.judge_answer(route)),
        }
    }

    fn shake_hands(
        &mut self,
        route: &ConnectRoute,
        socket: &mut BufferedSocket,
    ) -> Option<DialStep> {
        let step = self.current(route);
        let client = match (&route.tls, &step.server_name) {
            (Some(config), Some(name)) => {
                let mut config = Arc::clone(config);
                if route.must_show {
                    let (watched, witness) = CertificateRequestWitness::of(&config);
                    (config, self.witness) = (watched, Some(witness));
                }
                rustls::ClientConnection::new(config, name.clone())
                    .map_err(|error| error.to_string())
            }
            _ => Err("host name must be specified for a verified SSL connection".to_owned()),
        };
        match client {
            Ok(client) => {
                socket.encrypt(client);
                self.stage = Stage::Handshaking;
                self.send(socket, &[])
            }
            Err(error) => Some(self.broken(route, &error, RemainingSteps::Attempt)),
        }
    }

    /// libpq's objection to a server that speaks TLS at once, and has not agreed that PostgreSQL's
    /// protocol is spoken inside.
    fn protocol_objection(
        &self,
        route: &ConnectRoute,
        socket: &BufferedSocket,
    ) -> Option<&'static str> {
        if route.negotiation != SslNegotiation::Direct {
            return None;
        }
        match socket.tls().and_then(|tls| tls.alpn_protocol()) {
            Some(tls::ALPN) => None,
            Some(_) => Some("SSL connection was established with unexpected ALPN protocol"),
            None => Some(
                "direct SSL connection was established without ALPN protocol negotiation extension",
            ),
        }
    }

    fn start_up(
        &mut self,
        route: &ConnectRoute,
        socket: &mut BufferedSocket,
        channel: StartupChannel,
        nonce: &mut Option<impl FnOnce() -> ScramNonce>,
    ) -> Option<DialStep> {
        if let Some(key) = &self.cancels {
            let mut request = Vec::with_capacity(16);
            wire::frontend::cancel_request(&mut request, key.pid, key.key.as_bytes());
            self.stage = Stage::Cancelling;
            return self.send(socket, &request);
        }
        // The handshake is over, so it is known before a password is sent.
        if let Some(why) = self.objection(route) {
            return Some(self.broken(route, why, RemainingSteps::End));
        }
        let Some(nonce) = nonce.take() else { return Some(DialStep::Pending) };
        let mut hello = Vec::with_capacity(128);
        let mut login = self.current(route).login.clone();
        if self.is_nameless {
            let settings = &mut Arc::make_mut(&mut login).settings;
            settings.retain(|(name, _)| name != APPLICATION_NAME);
        }
        match Startup::begin(login, channel, nonce(), &mut hello) {
            Ok(startup) => {
                self.stage = Stage::StartingUp(Box::new(startup));
                self.send(socket, &hello)
            }
            Err(error) => Some(self.refused(route, &error)),
        }
    }

    /// Sends the few bytes of a start-up, which go out at once unless the socket is broken.
    fn send(&mut self, socket: &mut BufferedSocket, bytes: &[u8]) -> Option<DialStep> {
        self.unsent = socket.send(bytes).err();
        None
    }

    /// The objection to a server that has let us in without our certificate, where it must ask for it.
    fn objection(&self, route: &ConnectRoute) -> Option<&'static str> {
        route
            .must_show
            .then(|| CertificateRequestWitness::objection(self.witness.as_deref()))
            .flatten()
    }

    /// Checks that this server is what the conninfo asks for.
    fn judge(
        &mut self,
        route: &ConnectRoute,
        socket: &mut BufferedSocket,
        session: SessionFacts,
    ) -> Option<DialStep> {
        match self.current(route).wanted.judge(&session.parameters) {
            TargetDecision::Accept => Some(DialStep::Done(Box::new(session))),
            TargetDecision::Reject(why) => Some(self.broken(route, why, RemainingSteps::Host)),
            TargetDecision::Ask(query) => {
                let mut out = Vec::new();
                if let Err(error) = wire::frontend::query(&mut out, query.as_bytes()) {
                    return Some(self.broken(route, &error.to_string(), RemainingSteps::End));
                }
                self.stage = Stage::Judging(Box::new(session));
                self.send(socket, &out)
            }
        }
    }

    fn judge_answer(&mut self, route: &ConnectRoute) -> DialStep {
        let mut rest = &self.arrived[..];
        let mut value = None;
        loop {
            let frame = match frame::next(rest) {
                Ok(Some(frame)) => frame,
                Ok(None) => return DialStep::Pending,
                Err(error) => return self.broken(route, &error.to_string(), RemainingSteps::End),
            };
            rest = &rest[frame.total_bytes()..];
            match BackendMessage::parse(frame) {
                Ok(BackendMessage::DataRow(row)) => {
                    value = row.columns().next().flatten().map(<[u8]>::to_vec);
                }
                Ok(BackendMessage::ErrorResponse(error)) => {
                    let error = StartupError::Server(Box::new(error.to_owned()));
                    return self.refused(route, &error);
                }
                Ok(BackendMessage::ReadyForQuery(_)) => break,
                Ok(_) => {}
                Err(error) => return self.broken(route, &error.to_string(), RemainingSteps::End),
            }
        }
        // A pooler may answer without a row. Nothing shows then that the server is the wanted one.
        let Some(value) = value else {
            let why = "the server gave no answer to what target_session_attrs asks";
            return self.broken(route, why, RemainingSteps::Host);
        };
        let judgement = self.current(route).wanted.judge_answer(&value);
        match (judgement, std::mem::replace(&mut self.stage, Stage::Idle)) {
            (TargetDecision::Accept, Stage::Judging(session)) => DialStep::Done(session),
            (TargetDecision::Reject(why), _) => self.broken(route, why, RemainingSteps::Host),
            _ => DialStep::Pending,
        }
    }

    /// No process listens there: other ways to the same address are not worth trying.
    fn unreachable(&mut self, route: &ConnectRoute, why: &str) -> DialStep {
        let step = self.current(route);
        let message = format!(
            "{}: {}\n\t{}",
            step.endpoint.connection_failed(),
            without_errno(why),
            step.endpoint.host().unreachable_hint()
        );
        let is_default = matches!(
            &step.endpoint.host().address,
            HostAddress::Unix { directory } if directory == SOCKET_DIRECTORY
        );
        // One directory is looked into, whatever the sources' default is.
        let hint = match is_default {
            true => {
                "start that server, or correct its address (PGHOST and PGPORT); one that was built from \
                 sources has its socket in /tmp: PGHOST=/tmp"
            }
            false => "start that server, or correct its address (PGHOST and PGPORT)",
        };
        let failure = RouteFailure {
            hint: Some(hint.to_owned()),
            is_unreachable: true,
            ..RouteFailure::new(message)
        };
        self.failed(route, failure, RemainingSteps::Address)
    }

    /// The address has had its time.
    pub fn timed_out(&mut self, route: &ConnectRoute) -> DialStep {
        let message =
            format!("{}: timeout expired", self.current(route).endpoint.connection_failed());
        let failure = RouteFailure { is_silent: true, ..RouteFailure::new(message) };
        self.failed(route, failure, RemainingSteps::Address)
    }

    /// The step under way, in the end the one that led to the session.
    pub fn step(&self, route: &ConnectRoute) -> usize {
        route.step_number(self.first, self.tried)
    }

    fn broken(&mut self, route: &ConnectRoute, why: &str, lead: RemainingSteps) -> DialStep {
        let begun = self.current(route).endpoint.connection_failed();
        let message = format!("{begun}: {}", without_errno(why));
        self.failed(route, RouteFailure::new(message), lead)
    }

    /// The socket, or TLS on top of it, has failed.
    fn broken_off(&mut self, route: &ConnectRoute, error: &std::io::Error) -> DialStep {
        let begun = self.current(route).endpoint.connection_failed();
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let (message, hint) = match tls {
            Some(tls) => {
                (format!("{begun}: SSL error: {}", crate::tls::reason(tls)), crate::tls::hint(tls))
            }
            None => (format!("{begun}: {}", without_errno(&error.to_string())), None),
        };
        let hint = hint.map(str::to_owned);
        let lead = match tls {
            Some(tls) if !crate::tls::lets_go_on(tls) => RemainingSteps::End,
            _ => self.lead_of_handshake(),
        };
        self.failed(route, RouteFailure { hint, ..RouteFailure::new(message) }, lead)
    }

    /// The step to take after the socket has failed: a server whose handshake failed may still be
    /// reached without encryption.
    fn lead_of_handshake(&self) -> RemainingSteps {
        if matches!(self.stage, Stage::Handshaking) {
            RemainingSteps::Attempt
        } else {
            RemainingSteps::End
        }
    }

    /// The step to take after a server has said no, as libpq takes it: another login only before the
    /// client was let in, and only where the same login was not made without encryption already.
    fn lead_of(&self, error: &StartupError) -> RemainingSteps {
        match &self.stage {
            Stage::Judging(_) => RemainingSteps::Host,
            Stage::StartingUp(startup) if startup.is_authenticated() => RemainingSteps::End,
            Stage::StartingUp(_) if error.leads_to_next_host() => RemainingSteps::Host,
            Stage::StartingUp(_) if error.leads_to_next_attempt() && !self.is_declined => {
                RemainingSteps::Attempt
            }
            _ => self.lead_of_handshake(),
        }
    }

    /// True if the server has let the client in and then stumbled over its name, as one older than
    /// PostgreSQL 9.0 does: libpq comes back once without.
    fn stumbles_over_name(&self, route: &ConnectRoute, error: &StartupError) -> bool {
        let is_inside =
            matches!(&self.stage, Stage::StartingUp(startup) if startup.is_authenticated());
        let settings = &self.current(route).login.settings;
        is_inside
            && !self.is_nameless
            && error.sql_state() == Some(SqlState::UNDEFINED_OBJECT)
            && settings.iter().any(|(name, _)| name == APPLICATION_NAME)
    }

    fn refused(&mut self, route: &ConnectRoute, error: &StartupError) -> DialStep {
        if self.stumbles_over_name(route, error) {
            self.is_nameless = true;
            self.is_at_new_address = false;
            self.stage = Stage::Idle;
            return DialStep::NextStep;
        }
        let step = self.current(route);
        let mut message = format!("{}: {error}", step.endpoint.connection_failed());
        let sqlstate = error.sql_state();
        let hint = error.hint().map(str::to_owned);
        let is_from_file = step.endpoint.host().password_source == PasswordSource::PassFile;
        if let Some(file) = route.passfile.as_deref().filter(|_| is_from_file)
            && sqlstate == Some(SqlState::INVALID_PASSWORD)
        {
            message.push_str(&format!("\npassword retrieved from file \"{file}\""));
        }
        let wants_password = matches!(error, StartupError::PasswordMissing);
        let lead = self.lead_of(error);
        let limit = ReachedLimit::of(error, &step.login);
        let failure =
            RouteFailure { sqlstate, hint, wants_password, limit, ..RouteFailure::new(message) };
        self.failed(route, failure, lead)
    }

    fn failed(
        &mut self,
        route: &ConnectRoute,
        failure: RouteFailure,
        lead: RemainingSteps,
    ) -> DialStep {
        self.stage = Stage::Idle;
        let next = route.after(self.first, self.tried, lead);
        let failure = match self.failure.take() {
            Some(before) => before.followed_by(failure),
            None => failure,
        };
        let Some(next) = next else { return DialStep::Failed(failure) };
        let address = self.current(route).address;
        self.tried = next;
        self.is_at_new_address = self.current(route).address != address;
        self.failure = Some(failure);
        DialStep::NextStep
    }

    /// Nothing is left to try, and what went wrong before says it all.
    fn failed_before(&mut self, route: &ConnectRoute) -> DialStep {
        match self.failure.take() {
            Some(failure) => {
                self.stage = Stage::Idle;
                DialStep::Failed(failure)
            }
            None => {
                let why = NegotiationError::Unsupported.to_string();
                self.broken(route, &why, RemainingSteps::End)
            }
        }
    }
}

/// The setting of a session that servers before PostgreSQL 9.0 do not know.
const APPLICATION_NAME: &str = "application_name";

/// The most that is kept of a server's messages before a session begins, in bytes. Settings and
/// notices have a limit of 64 KiB each ([`Startup`]); a single message has not.
const ARRIVED_BYTES_MAX: usize = 256 * 1024;

/// Random bytes for a SCRAM exchange.
pub fn nonce() -> ScramNonce {
    let mut bytes = [0; 18];
    // Never fails for so few bytes once the system has booted.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    ScramNonce(bytes)
}

fn broken_pipe() -> std::io::Error {
    std::io::ErrorKind::BrokenPipe.into()
}
