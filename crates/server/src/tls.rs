//! TLS by rustls: which certificates are believed, and which one we show.

mod authorities;
mod chain;
mod names;
mod verifier;

use std::sync::Arc;

use rustls::{
    CertificateError, ClientConfig, ClientConnection, SupportedProtocolVersion, client::Resumption,
    crypto::ring,
};
use sha2::{Digest, Sha256, Sha384, Sha512};
use wire::conninfo::{TlsSettings, TlsVersion};
use x509_cert::{
    Certificate,
    der::{
        Decode,
        oid::{ObjectIdentifier, db::rfc5912 as oid},
    },
};

use crate::client_certificate;
use verifier::Verifier;

/// Certificates or keys that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not set up TLS: {0}")]
pub struct TlsError(pub(crate) String);

impl TlsError {
    /// Next step for the user.
    pub fn hint(&self) -> &'static str {
        "look at sslrootcert, sslcert, sslkey and sslcrl of the connection string, and at the files \
         in ~/.postgresql"
    }
}

/// TLS configuration that the conninfo asks for.
pub fn config(settings: &TlsSettings) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions(settings)?)
        .map_err(failed("choosing protocol versions"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier::new(settings, provider)?));
    let mut config = match client_certificate::read(settings)? {
        Some((chain, key)) => builder
            .with_client_auth_cert(chain, key)
            .map_err(failed("using the client certificate"))?,
        None => builder.with_no_client_auth(),
    };
    // libpq shakes hands in full each time, and so does this: connecting is measured.
    config.resumption = Resumption::disabled();
    config.enable_sni = settings.names_host;
    config.alpn_protocols = vec![wire::tls::ALPN.to_vec()];
    Ok(Arc::new(config))
}

fn versions(settings: &TlsSettings) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    let known =
        [(TlsVersion::V1_2, &rustls::version::TLS12), (TlsVersion::V1_3, &rustls::version::TLS13)];
    let chosen: Vec<_> = known
        .into_iter()
        .filter(|(version, _)| settings.least_version.is_none_or(|least| *version >= least))
        .filter(|(version, _)| settings.most_version.is_none_or(|most| *version <= most))
        .map(|(_, version)| version)
        .collect();
    if chosen.is_empty() {
        let why = "only TLSv1.2 and TLSv1.3 are spoken: raise ssl_max_protocol_version";
        return Err(TlsError(why.to_owned()));
    }
    Ok(chosen)
}

/// RFC 5929's `tls-server-end-point` of the certificate that the server showed: its hash by the
/// signature's own hash function, SHA-256 standing in for MD5 and SHA-1. None where the signature
/// has no single hash function.
pub fn server_end_point(tls: &ClientConnection) -> Option<Vec<u8>> {
    let der = tls.peer_certificates()?.first()?;
    let certificate = Certificate::from_der(der).ok()?;
    let is = |known: &[ObjectIdentifier]| known.contains(&certificate.signature_algorithm.oid);
    if is(&[oid::SHA_384_WITH_RSA_ENCRYPTION, oid::ECDSA_WITH_SHA_384]) {
        Some(Sha384::digest(der).to_vec())
    } else if is(&[oid::SHA_512_WITH_RSA_ENCRYPTION, oid::ECDSA_WITH_SHA_512]) {
        Some(Sha512::digest(der).to_vec())
    } else if is(&[
        oid::SHA_256_WITH_RSA_ENCRYPTION,
        oid::ECDSA_WITH_SHA_256,
        oid::SHA_1_WITH_RSA_ENCRYPTION,
        oid::MD_5_WITH_RSA_ENCRYPTION,
    ]) {
        Some(Sha256::digest(der).to_vec())
    } else {
        None
    }
}

/// Next step after a handshake that failed.
pub fn hint(error: &rustls::Error) -> Option<&'static str> {
    use CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(why) => Some(match why {
            Bad::UnknownIssuer | Bad::BadSignature => {
                "the server's certificate is not by an authority of sslrootcert: name the file of \
                 the one that signed it, or use sslmode=require, which checks nobody"
            }
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
                "connect by a name that the certificate bears, or use sslmode=verify-ca"
            }
            Bad::Expired | Bad::ExpiredContext { .. } | Bad::Revoked => {
                "the server needs a new certificate"
            }
            Bad::UnknownRevocationStatus
            | Bad::ExpiredRevocationList
            | Bad::ExpiredRevocationListContext { .. } => {
                "sslcrl and sslcrldir need a list of each authority that is not older than its date: \
                 fetch new ones"
            }
            _ => "sslmode=require checks no certificate",
        }),
        _ => None,
    }
}

/// The reason in words.
pub(crate) fn reason(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(why)) => {
            format!("invalid peer certificate: {}", why.0)
        }
        error => error.to_string(),
    }
}

/// True if libpq would go on without encryption after this error, where its `sslmode` lets it.
pub(crate) fn lets_go_on(error: &rustls::Error) -> bool {
    match error {
        rustls::Error::InvalidCertificate(why) => chain::is_refused_by_libpq(why),
        _ => true,
    }
}

fn failed<E: std::fmt::Display>(doing: &str) -> impl FnOnce(E) -> TlsError {
    move |error| TlsError(format!("{doing}: {error}"))
}
