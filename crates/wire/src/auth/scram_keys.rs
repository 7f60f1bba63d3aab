//! The keys that SCRAM derives from a password: the part that costs.

use std::borrow::Cow;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The most iterations that a server may ask for. PostgreSQL's default is 4,096 (1 to 2 ms here);
/// this many take about half a second, and a hostile server could otherwise ask for billions.
pub const ITERATIONS_LIMIT: u32 = 1_000_000;

/// Keys that a client needs to log in as one user: derived once per password, salt and iterations.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramKeys {
    pub(super) client_key: [u8; 32],
    pub(super) stored_key: [u8; 32],
    pub(super) server_key: [u8; 32],
}

impl ScramKeys {
    /// Derives the keys (RFC 5802 §3, with SHA-256 as RFC 7677 says). Costs two SHA-256
    /// compressions per iteration; the caller bounds `iterations`.
    pub fn derive(password: &str, salt: &[u8], iterations: u32) -> Self {
        let salted_password = hi(prepared(password).as_bytes(), salt, iterations);
        let client_key = hmac(&salted_password, &[b"Client Key"]);
        Self {
            client_key,
            stored_key: Sha256::digest(client_key).into(),
            server_key: hmac(&salted_password, &[b"Server Key"]),
        }
    }
}

impl fmt::Debug for ScramKeys {
    // These are as good as the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramKeys(…)")
    }
}

/// The password after SASLprep, or as it is where SASLprep refuses it: so does the server, which
/// must accept any password that it once stored.
fn prepared(password: &str) -> Cow<'_, str> {
    match stringprep::saslprep(password) {
        Ok(prepared) if !prepared.is_empty() => prepared,
        _ => Cow::Borrowed(password),
    }
}

/// PBKDF2 with HMAC-SHA-256 and an output of one block.
fn hi(password: &[u8], salt: &[u8], iterations: u32) -> [u8; 32] {
    let keyed = keyed(password);
    let first = keyed.clone().chain_update(salt).chain_update([0, 0, 0, 1]);
    let mut previous: [u8; 32] = first.finalize().into_bytes().into();
    let mut result = previous;
    for _ in 1..iterations {
        previous = keyed.clone().chain_update(previous).finalize().into_bytes().into();
        for (result, previous) in result.iter_mut().zip(previous) {
            *result ^= previous;
        }
    }
    result
}

pub(super) fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = keyed(key);
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

pub(super) fn keyed(key: &[u8]) -> Hmac<Sha256> {
    // HMAC takes keys of every length, longer ones hashed first.
    Hmac::new_from_slice(key).expect("HMAC takes keys of every length")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_prepared_as_the_server_does() {
        let check = |password, expected: &str| assert_eq!(prepared(password), expected);
        check("secret", "secret");
        check("I\u{ad}X", "IX");
        check("\u{aa}", "a");
        check("\u{a0}", " ");
        // Prohibited, or nothing left: taken as it is.
        check("bell\u{7}", "bell\u{7}");
        check("\u{ad}", "\u{ad}");
        check("", "");
    }

    #[test]
    fn keys_stay_out_of_logs() {
        assert_eq!(format!("{:?}", ScramKeys::derive("x", b"salt", 1)), "ScramKeys(…)");
    }
}
