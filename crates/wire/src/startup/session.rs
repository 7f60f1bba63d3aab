//! Facts about a session when it begins.

use crate::ProtocolVersion;
use crate::backend::{BackendKey, ServerError, TransactionStatus};

/// The facts of a new session. An idle one needs to keep no more than `backend_key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFacts {
    /// Key that a cancel request needs; some poolers give none.
    pub backend_key: Option<BackendKey>,
    /// The settings that the server reported.
    pub parameters: ServerParameters,
    /// Transaction status of the session; idle, unless a pooler is odd.
    pub status: TransactionStatus,
    /// The version agreed on.
    pub protocol: ProtocolVersion,
    /// Notices and warnings that came along.
    pub notices: Vec<ServerError>,
}

impl SessionFacts {
    pub(super) fn new(protocol: ProtocolVersion) -> Self {
        Self {
            backend_key: None,
            parameters: ServerParameters::default(),
            status: TransactionStatus::Idle,
            protocol,
            notices: Vec::new(),
        }
    }
}

/// Settings that a server reported, in one piece of memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerParameters {
    /// Each name and each value is followed by a NUL, which neither can contain.
    text: String,
}

impl ServerParameters {
    /// The value that was reported last for `name`.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.iter().filter(|(reported, _)| *reported == name).last().map(|(_, value)| value)
    }

    /// Names and values, in the order reported.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut parts = self.text.split_terminator('\0');
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// The server's version as `server_version_num` has it: 150018 for 15.18, 90624 for 9.6.24.
    pub fn server_version_num(&self) -> Option<u32> {
        let reported = self.value("server_version")?;
        let numbers = reported.split(|c: char| !c.is_ascii_digit() && c != '.').next()?;
        // What is no number, as after a last dot, counts as a version that was never made or as .0.
        let mut numbers = numbers.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
        let major = numbers.next().filter(|major| (1..1000).contains(major))?;
        // A development version, as 18devel, has no minor number, and comes before all that have.
        let mut minor = || numbers.next().unwrap_or(0).min(99);
        Some(if major >= 10 {
            major * 10_000 + minor()
        } else {
            major * 10_000 + minor() * 100 + minor()
        })
    }

    /// Parameters that a server that reports these pairs would leave behind.
    #[cfg(test)]
    pub(crate) fn reported(pairs: &[(&str, &str)]) -> Self {
        let mut parameters = Self::default();
        for (name, value) in pairs {
            parameters.set(name.as_bytes(), value.as_bytes());
        }
        parameters
    }

    pub(super) fn set(&mut self, name: &[u8], value: &[u8]) {
        for part in [name, value] {
            self.text.push_str(&String::from_utf8_lossy(part));
            self.text.push('\0');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_versions() {
        let check = |reported: &str, expected| {
            let mut parameters = ServerParameters::default();
            parameters.set(b"server_version", b"1.0");
            parameters.set(b"server_version", reported.as_bytes());
            parameters.set(b"application_name", b"");
            parameters.set(b"is_superuser", b"on");
            assert_eq!(parameters.value("application_name"), Some(""));
            assert_eq!(parameters.value("is_superuser"), Some("on"));
            assert_eq!(parameters.value("missing"), None);
            assert_eq!(parameters.server_version_num(), expected, "{reported}");
        };
        check("15.18 (Debian 15.18-0+deb12u1)", Some(150_018));
        check("9.6.24", Some(90_624));
        check("19devel", Some(190_000));
        check("18beta1", Some(180_000));
        check("", None);
        check("99999999999", None);
    }
}
