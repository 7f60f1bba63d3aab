//! TLS settings of a conninfo. The engine and the files belong to the caller.

use super::option::Values;
use super::{ConninfoError, ParameterSources};
use crate::Password;
use crate::tls::{SslMode, SslNegotiation};

/// TLS settings of a conninfo. Paths are as given, else libpq's own below `~/.postgresql` where
/// there is such a file: root.crt, root.crl, postgresql.crt, and with that postgresql.key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// Encryption that is wanted.
    pub mode: SslMode,
    /// The way TLS begins.
    pub negotiation: SslNegotiation,
    /// The file of trusted authorities, or `system` for those of the operating system.
    pub root_certificates: Option<String>,
    /// The client's certificate.
    pub certificate: Option<String>,
    /// The client's private key.
    pub key: Option<String>,
    /// The password of that key.
    pub key_password: Option<Password>,
    /// Policy for sending the client's certificate.
    pub client_certificate: ClientCertificate,
    /// A file of revoked certificates.
    pub revoked: Option<String>,
    /// A directory of revoked certificates.
    pub revoked_directory: Option<String>,
    /// True if the host is named in the handshake (SNI).
    pub names_host: bool,
    /// The oldest TLS to put up with.
    pub least_version: Option<TlsVersion>,
    /// The newest TLS to use.
    pub most_version: Option<TlsVersion>,
}

/// Policy for sending the client's certificate (`sslcertmode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClientCertificate {
    /// Never.
    Disable,
    /// If there is one and the server asks.
    #[default]
    Allow,
    /// The server must ask.
    Require,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // The names say it.
pub enum TlsVersion {
    V1_0,
    V1_1,
    V1_2,
    V1_3,
}

const VERSIONS: [(&str, TlsVersion); 4] = [
    ("TLSv1", TlsVersion::V1_0),
    ("TLSv1.1", TlsVersion::V1_1),
    ("TLSv1.2", TlsVersion::V1_2),
    ("TLSv1.3", TlsVersion::V1_3),
];

impl TlsVersion {
    /// The name in a conninfo.
    pub fn name(self) -> &'static str {
        VERSIONS[self as usize].0
    }
}

pub(super) const NEGOTIATIONS: [(&str, SslNegotiation); 2] =
    [("postgres", SslNegotiation::Postgres), ("direct", SslNegotiation::Direct)];

pub(super) const CERTIFICATE_MODES: [(&str, ClientCertificate); 3] = [
    ("disable", ClientCertificate::Disable),
    ("allow", ClientCertificate::Allow),
    ("require", ClientCertificate::Require),
];

impl TlsSettings {
    pub(super) fn from_values(
        values: &Values,
        sources: &ParameterSources<'_>,
    ) -> Result<Self, ConninfoError> {
        let root_certificates = values.owned("sslrootcert");
        let system = root_certificates.as_deref() == Some("system");
        // Against everybody's authorities only the host's name tells one server from another.
        let default = if system { SslMode::VerifyFull } else { SslMode::Prefer };
        let modes = SslMode::ALL.map(|mode| (mode.name(), mode));
        let mode = values.word("sslmode", default, &modes)?;
        let negotiation = values.word("sslnegotiation", SslNegotiation::Postgres, &NEGOTIATIONS)?;
        if negotiation == SslNegotiation::Direct && mode < SslMode::Require {
            return Err(ConninfoError::WeakModeWithDirect(mode.to_string()));
        }
        if system && mode != SslMode::VerifyFull {
            return Err(ConninfoError::WeakModeWithSystem(mode.to_string()));
        }
        let least_version = version(values, "ssl_min_protocol_version")?;
        let most_version = version(values, "ssl_max_protocol_version")?;
        if let (Some(least), Some(most)) = (least_version, most_version)
            && least > most
        {
            return Err(ConninfoError::SslVersionRange);
        }
        let usual = |name: &str| sources.home.map(|home| format!("{home}/.postgresql/{name}"));
        let found = |name: &str| usual(name).filter(|path| (sources.exists)(path));
        let certificate = values.owned("sslcert").or_else(|| found("postgresql.crt"));
        // A certificate is no use without its key: its absence is for the caller to complain about.
        let usual_key = certificate.as_ref().and_then(|_| usual("postgresql.key"));
        let revoked_directory = values.owned("sslcrldir");
        let usual_revoked = || found("root.crl").filter(|_| revoked_directory.is_none());
        Ok(Self {
            mode,
            negotiation,
            root_certificates: root_certificates.or_else(|| found("root.crt")),
            certificate,
            key: values.owned("sslkey").or(usual_key),
            key_password: values.value("sslpassword").map(Password::from),
            client_certificate: values.word(
                "sslcertmode",
                ClientCertificate::Allow,
                &CERTIFICATE_MODES,
            )?,
            revoked: values.owned("sslcrl").or_else(usual_revoked),
            revoked_directory,
            names_host: values.value("sslsni") != Some("0"),
            least_version,
            most_version,
        })
    }
}

fn version(values: &Values, keyword: &'static str) -> Result<Option<TlsVersion>, ConninfoError> {
    let Some(value) = values.value(keyword) else { return Ok(None) };
    VERSIONS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(value))
        .map(|(_, version)| Some(*version))
        .ok_or_else(|| ConninfoError::InvalidVersion { keyword, value: value.to_owned() })
}
