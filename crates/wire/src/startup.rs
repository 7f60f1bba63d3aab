//! Start-up: from the first message of a connection to the first ReadyForQuery.
//!
//! A state machine without I/O. [`Startup::begin`] appends the start-up message; then the caller
//! passes whatever has arrived to [`Startup::advance`], sends what that appends, and drops as many
//! bytes as it consumed, until it returns a [`SessionFacts`] or an error. TLS, if any, is in place
//! before (see [`crate::tls`]).

mod error;
mod login;
mod session;

pub(crate) use error::FOREIGN_HINT;
pub use error::{ConnectionLimit, StartupError};
pub use login::{ChannelBindingPolicy, Login};
pub use session::{ServerParameters, SessionFacts};

use std::sync::Arc;

use crate::auth::{
    AuthMethod, ChannelBinding, KeyCache, ScramExchange, ScramNonce, ScramStep, md5_password,
};
use crate::backend::{Authentication, BackendMessage, SaslMechanisms, tag};
use crate::{MessageFrame, ProtocolVersion, backend, frame, frontend};

/// The most that is kept of what a server reports at start-up, in bytes: its settings and its notices
/// with all their fields. PostgreSQL reports about 400.
const REPORTED_BYTES_LIMIT: usize = 64 * 1024;

/// What each setting and each notice counts for beside its text.
const REPORTED_BYTES_EACH: usize = 64;

/// Channel that the start-up messages travel through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartupChannel {
    /// A Unix socket or bare TCP.
    Plain,
    /// A Unix socket that anybody may have made: no secret goes through it.
    Unvouched {
        /// Why nobody vouches for the process that listens there.
        why: String,
    },
    /// TLS.
    Tls {
        /// The hash of the server's certificate that RFC 5929 calls `tls-server-end-point`; `None`
        /// where the certificate's signature algorithm defines none.
        server_end_point: Option<Vec<u8>>,
    },
}

/// A start-up under way.
#[derive(Debug)]
pub struct Startup {
    login: Arc<Login>,
    channel: StartupChannel,
    nonce: ScramNonce,
    phase: Phase,
    session: SessionFacts,
    /// Bytes that the server's reports count for so far.
    reported_bytes: usize,
}

#[derive(Debug)]
enum Phase {
    /// Nothing has come back yet.
    Begun,
    /// A password in clear or an MD5 digest was sent.
    PasswordSent,
    /// A SASL exchange is under way, or done.
    Sasl(Box<ScramExchange>),
    /// The server is satisfied; reports follow until ReadyForQuery.
    Authenticated,
}

/// Result of a call of [`Startup::advance`].
#[derive(Debug)]
pub struct StartupStep {
    /// Number of bytes of the input that are done with.
    pub consumed: usize,
    /// The session, once the server is ready for queries.
    pub session: Option<SessionFacts>,
}

impl Startup {
    /// Begins: appends the start-up message to `output`.
    pub fn begin(
        login: Arc<Login>,
        channel: StartupChannel,
        nonce: ScramNonce,
        output: &mut Vec<u8>,
    ) -> Result<Self, StartupError> {
        frontend::startup(output, login.protocol, login.parameters())?;
        let session = SessionFacts::new(login.protocol);
        Ok(Self { login, channel, nonce, phase: Phase::Begun, session, reported_bytes: 0 })
    }

    /// True once the server has let the client in.
    pub fn is_authenticated(&self) -> bool {
        matches!(self.phase, Phase::Authenticated)
    }

    /// Takes whole messages from `input` and appends the answers to `output`.
    ///
    /// # Errors
    /// Every error is final: the connection must be closed.
    pub fn advance(
        &mut self,
        input: &[u8],
        keys: &mut KeyCache,
        output: &mut Vec<u8>,
    ) -> Result<StartupStep, StartupError> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            if let Some(text) = self.old_error(rest) {
                return Err(StartupError::OldServer(text));
            }
            let Some(frame) = frame::next(rest)? else {
                return Ok(StartupStep { consumed, session: None });
            };
            consumed += frame.total_bytes();
            if let Some(session) = self.message(frame, keys, output)? {
                return Ok(StartupStep { consumed, session: Some(session) });
            }
        }
    }

    /// An error as servers sent it before protocol 3.0, and as the postmaster still does when it
    /// cannot start a process: `E` and a text, without a length.
    fn old_error(&self, input: &[u8]) -> Option<String> {
        let (&header, _) = input.split_first_chunk::<5>()?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
        let bare = matches!(self.phase, Phase::Begun)
            && header[0] == tag::ERROR_RESPONSE
            && !(8..=30_000).contains(&length);
        bare.then(|| {
            let text =
                input[1..].split(|byte| *byte == 0).next().expect("a split has a first part");
            String::from_utf8_lossy(&text[..text.len().min(1000)]).trim_end().to_owned()
        })
    }

    fn message(
        &mut self,
        frame: MessageFrame<'_>,
        keys: &mut KeyCache,
        output: &mut Vec<u8>,
    ) -> Result<Option<SessionFacts>, StartupError> {
        let authenticated = matches!(self.phase, Phase::Authenticated);
        match BackendMessage::parse(frame)? {
            BackendMessage::ErrorResponse(error) => {
                return Err(StartupError::Server(Box::new(error.to_owned())));
            }
            BackendMessage::NoticeResponse(notice) => {
                self.count_report(frame.body.len())?;
                self.session.notices.push(notice.to_owned());
            }
            BackendMessage::NegotiateProtocolVersion(version) if !authenticated => {
                self.negotiate(version)?;
            }
            BackendMessage::Authentication(request) if !authenticated => {
                self.authenticate(request, keys, output)?;
            }
            BackendMessage::ParameterStatus(status) if authenticated => {
                self.count_report(frame.body.len())?;
                self.session.parameters.set(status.name, status.value);
            }
            BackendMessage::BackendKeyData(data) if authenticated => {
                self.session.backend_key = Some(data.to_owned());
            }
            BackendMessage::ReadyForQuery(status) if authenticated => {
                self.session.status = status;
                let empty = SessionFacts::new(self.session.protocol);
                return Ok(Some(std::mem::replace(&mut self.session, empty)));
            }
            _ => {
                return Err(StartupError::Unexpected { name: backend::name(frame.tag) });
            }
        }
        Ok(None)
    }

    /// Counts a report of `bytes` before it is kept.
    fn count_report(&mut self, bytes: usize) -> Result<(), StartupError> {
        self.reported_bytes += bytes + REPORTED_BYTES_EACH;
        if self.reported_bytes > REPORTED_BYTES_LIMIT {
            return Err(StartupError::TooMuchReported);
        }
        Ok(())
    }

    fn negotiate(
        &mut self,
        answer: backend::NegotiateProtocolVersion<'_>,
    ) -> Result<(), StartupError> {
        let asked = self.session.protocol;
        let least = self.login.least_protocol;
        if answer.unknown_options().next().is_some() {
            let names = answer.unknown_options().map(String::from_utf8_lossy);
            return Err(StartupError::UnknownOptions(names.collect::<Vec<_>>().join(", ")));
        }
        if (ProtocolVersion::V3_0..least).contains(&answer.newest) {
            return Err(StartupError::TooOld { least, newest: answer.newest });
        }
        if answer.newest > asked || answer.newest < ProtocolVersion::V3_0 {
            return Err(StartupError::Version { asked, least, newest: answer.newest });
        }
        self.session.protocol = answer.newest;
        Ok(())
    }

    fn authenticate(
        &mut self,
        request: Authentication<'_>,
        keys: &mut KeyCache,
        output: &mut Vec<u8>,
    ) -> Result<(), StartupError> {
        match request {
            Authentication::Ok => self.authenticated()?,
            Authentication::CleartextPassword => {
                self.permit(AuthMethod::Password, "server requested a cleartext password")?;
                self.fresh()?;
                frontend::password(output, self.password()?.as_bytes())?;
                self.phase = Phase::PasswordSent;
            }
            Authentication::Md5Password { salt } => {
                self.permit(AuthMethod::Md5, "server requested a hashed password")?;
                self.fresh()?;
                let digest = md5_password(&self.login.user, self.password()?, salt);
                frontend::password(output, digest.as_bytes())?;
                self.phase = Phase::PasswordSent;
            }
            Authentication::Sasl(offered) => {
                self.permit(AuthMethod::ScramSha256, "server requested SASL authentication")?;
                self.fresh()?;
                self.password()?;
                let scram = ScramExchange::begin(self.nonce, self.binding(offered)?);
                let first = scram.first();
                let mechanism = scram.mechanism().as_bytes();
                frontend::sasl_initial_response(output, mechanism, first.as_bytes())?;
                self.phase = Phase::Sasl(Box::new(scram));
            }
            Authentication::SaslContinue(challenge) => {
                let login = Arc::clone(&self.login);
                let password = login.password().ok_or(StartupError::PasswordMissing)?;
                // The SASL exchange began, so the channel is one for secrets.
                let proof = self.scram()?.proof(challenge, password, keys)?;
                frontend::sasl_response(output, proof.as_bytes())?;
            }
            Authentication::SaslFinal(last) => self.scram()?.verify(last)?,
            Authentication::Unsupported { code } => return Err(self.unsupported(code)),
        }
        Ok(())
    }

    /// The server is satisfied; whether the client is.
    fn authenticated(&mut self) -> Result<(), StartupError> {
        let bound = match &self.phase {
            Phase::Sasl(scram) if *scram.step() != ScramStep::Done => {
                return Err(StartupError::Unverified);
            }
            Phase::Sasl(scram) => scram.mechanism() == "SCRAM-SHA-256-PLUS",
            Phase::Begun => {
                self.permit(AuthMethod::None, "server did not complete authentication")?;
                false
            }
            Phase::PasswordSent | Phase::Authenticated => false,
        };
        if self.login.channel_binding == ChannelBindingPolicy::Require && !bound {
            return Err(StartupError::ChannelBinding(
                "channel binding required, but server authenticated client without channel binding",
            ));
        }
        self.phase = Phase::Authenticated;
        Ok(())
    }

    /// Refuses what `require_auth` leaves out, and what gives a password away unbound.
    fn permit(&self, method: AuthMethod, reason: &'static str) -> Result<(), StartupError> {
        if !self.login.require_auth.contains(method) {
            let required = self.login.require_auth;
            return Err(StartupError::MethodNotPermitted { required, reason });
        }
        let gives_away = matches!(method, AuthMethod::Password | AuthMethod::Md5);
        if gives_away && self.login.channel_binding == ChannelBindingPolicy::Require {
            return Err(StartupError::ChannelBinding(
                "channel binding required but not supported by server's authentication request",
            ));
        }
        Ok(())
    }

    /// Refuses a second request for a password: one answer per connection.
    fn fresh(&self) -> Result<(), StartupError> {
        match self.phase {
            Phase::Begun => Ok(()),
            _ => Err(StartupError::Unexpected { name: "second authentication request" }),
        }
    }

    /// The password, where it may be used.
    fn password(&self) -> Result<&str, StartupError> {
        let password = self.login.password().ok_or(StartupError::PasswordMissing)?;
        match &self.channel {
            StartupChannel::Unvouched { why } => Err(StartupError::Unvouched(why.clone())),
            StartupChannel::Plain | StartupChannel::Tls { .. } => Ok(password),
        }
    }

    fn scram(&mut self) -> Result<&mut ScramExchange, StartupError> {
        match &mut self.phase {
            Phase::Sasl(scram) => Ok(scram),
            _ => Err(StartupError::Unexpected { name: "SASL message before SASL began" }),
        }
    }

    /// Channel to bind the login to, given the server's offer and the channel that exists.
    fn binding(&self, offered: SaslMechanisms<'_>) -> Result<ChannelBinding, StartupError> {
        let offers = |name: &[u8]| offered.iter().any(|mechanism| mechanism == name);
        let policy = self.login.channel_binding;
        let hash = match &self.channel {
            StartupChannel::Tls { server_end_point: Some(hash) }
                if policy != ChannelBindingPolicy::Disable =>
            {
                Some(hash)
            }
            _ => None,
        };
        match hash {
            Some(hash) if offers(b"SCRAM-SHA-256-PLUS") => {
                Ok(ChannelBinding::ServerEndPoint(hash.clone()))
            }
            _ if policy == ChannelBindingPolicy::Require => {
                Err(StartupError::ChannelBinding(match &self.channel {
                    StartupChannel::Plain | StartupChannel::Unvouched { .. } => {
                        "channel binding required, but SSL not in use"
                    }
                    StartupChannel::Tls { .. } => {
                        "channel binding is required, but server did not offer an authentication \
                         method that supports channel binding"
                    }
                }))
            }
            _ if !offers(b"SCRAM-SHA-256") => Err(StartupError::NoMechanism(
                offered.iter().map(String::from_utf8_lossy).collect::<Vec<_>>().join(", "),
            )),
            Some(_) => Ok(ChannelBinding::NotOffered),
            None => Ok(ChannelBinding::Unsupported),
        }
    }

    fn unsupported(&self, code: i32) -> StartupError {
        let (method, name) = match code {
            2 => (None, "Kerberos 5"),
            6 => (None, "SCM credential"),
            7 | 8 => (Some(AuthMethod::Gss), "GSSAPI"),
            9 => (Some(AuthMethod::Sspi), "SSPI"),
            _ => (None, "unknown"),
        };
        let refusal = method.and_then(|method| {
            self.permit(method, "server requested an authentication method that is ruled out").err()
        });
        refusal.unwrap_or(StartupError::UnsupportedMethod { name, code })
    }
}

#[cfg(test)]
mod tests;
