//! The client's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677).
//!
//! Three steps: [`ScramExchange::begin`] makes the client-first message, [`ScramExchange::proof`] answers the
//! server's challenge, [`ScramExchange::verify`] checks that the server knows the password too.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac;
use std::fmt::Write;
use thiserror::Error;

use super::scram_keys::{hmac, keyed};
use super::{ITERATIONS_LIMIT, KeyCache};

/// 18 random bytes, never used twice: the caller's source of chance, as text on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScramNonce(pub [u8; 18]);

/// Channel to which the login is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelBinding {
    /// Nothing, and the client could not do otherwise.
    Unsupported,
    /// Nothing, because the server offered none; the client could have.
    NotOffered,
    /// The server's certificate: the hash that RFC 5929 calls `tls-server-end-point`.
    ServerEndPoint(Vec<u8>),
}

impl ChannelBinding {
    /// The mechanism to name in the first message.
    pub fn mechanism(&self) -> &'static str {
        match self {
            Self::Unsupported | Self::NotOffered => "SCRAM-SHA-256",
            Self::ServerEndPoint(_) => "SCRAM-SHA-256-PLUS",
        }
    }

    fn gs2_header(&self) -> &'static str {
        match self {
            Self::Unsupported => "n,,",
            Self::NotOffered => "y,,",
            Self::ServerEndPoint(_) => "p=tls-server-end-point,,",
        }
    }

    /// The base64 of the header and of what is bound to.
    fn encoded(&self) -> String {
        let mut bytes = self.gs2_header().as_bytes().to_vec();
        if let Self::ServerEndPoint(hash) = self {
            bytes.extend_from_slice(hash);
        }
        STANDARD.encode(bytes)
    }
}

/// Error of a SCRAM exchange.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum ScramError {
    #[error("the server sent a malformed SCRAM message: {0}")]
    Malformed(&'static str),
    /// The nonce is not a continuation of ours: an older login is replayed.
    #[error("the server sent an invalid SCRAM response (nonce mismatch)")]
    NonceMismatch,
    /// Refused rather than computed.
    #[error(
        "the server asks for {asked} SCRAM iterations, more than the {ITERATIONS_LIMIT} that are \
         taken for honest"
    )]
    TooManyIterations { asked: u64 },
    #[error("the server reports a SCRAM error: {0}")]
    Refused(String),
    #[error("the server's SCRAM signature is wrong: it does not know the password")]
    WrongSignature,
    #[error("the server sent a SCRAM message out of turn")]
    OutOfTurn,
}

/// One exchange.
#[derive(Debug)]
pub struct ScramExchange {
    binding: ChannelBinding,
    nonce: String,
    step: ScramStep,
}

/// Progress of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScramStep {
    /// The client-first message was sent.
    AwaitsChallenge,
    /// The proof was sent; the server must now show this signature.
    AwaitsSignature([u8; 32]),
    /// Both sides have shown that they know the password.
    Done,
}

impl ScramExchange {
    /// A new exchange.
    pub fn begin(nonce: ScramNonce, binding: ChannelBinding) -> Self {
        Self { binding, nonce: STANDARD.encode(nonce.0), step: ScramStep::AwaitsChallenge }
    }

    /// The mechanism to name.
    pub fn mechanism(&self) -> &'static str {
        self.binding.mechanism()
    }

    /// Progress of the exchange.
    pub fn step(&self) -> &ScramStep {
        &self.step
    }

    /// The client-first message. The user name stays empty: PostgreSQL takes that of the start-up.
    pub fn first(&self) -> String {
        format!("{}{}", self.binding.gs2_header(), self.first_bare())
    }

    /// The client-final message, which answers the server-first message `challenge`.
    pub fn proof(
        &mut self,
        challenge: &[u8],
        password: &str,
        cache: &mut KeyCache,
    ) -> Result<String, ScramError> {
        if self.step != ScramStep::AwaitsChallenge {
            return Err(ScramError::OutOfTurn);
        }
        let parsed = Challenge::parse(challenge)?;
        // The server's part of the nonce must not be empty, or a replay could not be told.
        if !parsed.nonce.starts_with(&self.nonce) || parsed.nonce.len() == self.nonce.len() {
            return Err(ScramError::NonceMismatch);
        }
        let keys = cache.keys(password, &parsed.salt, parsed.iterations);
        let mut last = format!("c={},r={}", self.binding.encoded(), parsed.nonce);
        let first_bare = self.first_bare();
        let signed = [first_bare.as_bytes(), b",", challenge, b",", last.as_bytes()];
        let mut proof = hmac(&keys.stored_key, &signed);
        for (proof, key) in proof.iter_mut().zip(keys.client_key) {
            *proof ^= key;
        }
        self.step = ScramStep::AwaitsSignature(hmac(&keys.server_key, &signed));
        // Writing to a string does not fail.
        let _ = write!(last, ",p={}", STANDARD.encode(proof));
        Ok(last)
    }

    /// Checks the server-final message.
    ///
    /// # Errors
    /// [`ScramError::Refused`], [`ScramError::WrongSignature`], malformed or out of turn.
    pub fn verify(&mut self, last: &[u8]) -> Result<(), ScramError> {
        let ScramStep::AwaitsSignature(expected) = &self.step else {
            return Err(ScramError::OutOfTurn);
        };
        let text =
            std::str::from_utf8(last).map_err(|_| ScramError::Malformed("it is not text"))?;
        if let Some(reason) = text.strip_prefix("e=") {
            return Err(ScramError::Refused(reason.to_owned()));
        }
        let signature = text
            .strip_prefix("v=")
            .and_then(|rest| STANDARD.decode(rest.split(',').next().unwrap_or(rest)).ok())
            .ok_or(ScramError::Malformed("it holds no signature"))?;
        // Compared in constant time: equal bytes have equal digests under any key.
        keyed(expected)
            .chain_update(&signature)
            .verify_slice(&hmac(expected, &[expected]))
            .map_err(|_| ScramError::WrongSignature)?;
        self.step = ScramStep::Done;
        Ok(())
    }

    fn first_bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }
}

/// The server-first message: `r=nonce,s=salt,i=iterations`, extensions ignored.
struct Challenge<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: u32,
}

impl<'a> Challenge<'a> {
    fn parse(message: &'a [u8]) -> Result<Self, ScramError> {
        let text =
            std::str::from_utf8(message).map_err(|_| ScramError::Malformed("it is not text"))?;
        let mut parts = text.split(',');
        let mut part = |prefix: &str, missing| {
            let found = parts.next().and_then(|part| part.strip_prefix(prefix));
            found.ok_or(ScramError::Malformed(missing))
        };
        let nonce = part("r=", "it holds no nonce where one belongs")?;
        let salt = part("s=", "it holds no salt where one belongs")?;
        let salt =
            STANDARD.decode(salt).map_err(|_| ScramError::Malformed("its salt is not base64"))?;
        let asked = part("i=", "it holds no iteration count where one belongs")?;
        let malformed = ScramError::Malformed("its iteration count is not a positive number");
        if asked.is_empty() || !asked.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(malformed);
        }
        let asked: u64 = asked.parse().unwrap_or(u64::MAX);
        match u32::try_from(asked) {
            Ok(0) => Err(malformed),
            Ok(iterations) if iterations <= ITERATIONS_LIMIT => {
                Ok(Self { nonce, salt, iterations })
            }
            _ => Err(ScramError::TooManyIterations { asked }),
        }
    }
}

#[cfg(test)]
mod tests;
