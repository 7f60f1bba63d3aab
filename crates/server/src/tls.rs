//! TLS by rustls: which certificates are believed, and which one we show.

use std::{fs, path::PathBuf, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme, SupportedProtocolVersion,
    client::{
        Resumption, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{
        CertificateDer, CertificateRevocationListDer, ServerName, UnixTime, pem::PemObject,
    },
    server::ParsedCertificate,
};
use sha2::{Digest, Sha256, Sha384, Sha512};
use wire::{
    conninfo::{TlsSettings, TlsVersion},
    tls::SslMode,
};
use x509_cert::{
    Certificate,
    der::{
        Decode,
        oid::{ObjectIdentifier, db::rfc5912 as oid},
    },
};

use crate::client_certificate;

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
            Bad::Expired | Bad::ExpiredContext { .. } => "the server needs a new certificate",
            Bad::Revoked => "the server needs a new certificate",
            _ => "sslmode=require checks no certificate",
        }),
        _ => None,
    }
}

fn failed<E: std::fmt::Display>(doing: &str) -> impl FnOnce(E) -> TlsError {
    move |error| TlsError(format!("{doing}: {error}"))
}

/// Verification of a server's identity: libpq's `sslmode`.
#[derive(Debug)]
struct Verifier {
    /// None believes anybody, as `sslmode=require` without root certificates does.
    authority: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates that are believed by themselves.
    trusted: Vec<CertificateDer<'static>>,
    check_name: bool,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn new(settings: &TlsSettings, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let demanded = matches!(settings.mode, SslMode::VerifyCa | SslMode::VerifyFull);
        let trusted = match settings.root_certificates.as_deref() {
            Some("system") => Some(system_roots()?),
            // A named file that exists turns `require` into `verify-ca`, as in libpq.
            Some(path) if demanded || fs::exists(path).unwrap_or(false) => Some(read_roots(path)?),
            None if demanded => {
                return Err(TlsError(format!(
                    "sslmode {} needs root certificates: put them into ~/.postgresql/root.crt, or \
                     set sslrootcert to a file, or to \"system\"",
                    settings.mode
                )));
            }
            Some(_) | None => None,
        };
        let revoked = revoked(settings)?;
        let authority = trusted
            .as_ref()
            .map(|trusted| {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(trusted.iter().cloned());
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                    .with_crls(revoked)
                    .build()
                    .map_err(failed("using the root certificates"))
            })
            .transpose()?;
        let check_name = settings.mode == SslMode::VerifyFull;
        Ok(Verifier { authority, trusted: trusted.unwrap_or_default(), check_name, provider })
    }

    /// A server that shows one of the trusted certificates itself: the usual self-signed one, which
    /// names itself as its authority. webpki believes no authority that is a server, OpenSSL does.
    fn verify_trusted(
        &self,
        certificate: &CertificateDer<'_>,
        server_name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let bad = |_| rustls::Error::InvalidCertificate(CertificateError::BadEncoding);
        let validity = Certificate::from_der(certificate).map_err(bad)?.tbs_certificate.validity;
        let now_s = now.as_secs();
        if now_s < validity.not_before.to_unix_duration().as_secs() {
            return Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYet));
        }
        if now_s > validity.not_after.to_unix_duration().as_secs() {
            return Err(rustls::Error::InvalidCertificate(CertificateError::Expired));
        }
        if self.check_name {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }
}

fn read_roots(path: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let doing = format!("reading root certificate file \"{path}\"");
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let roots: Vec<_> = read.map_err(failed(&doing))?;
    if roots.is_empty() {
        return Err(TlsError(format!("{doing}: there is no certificate in it")));
    }
    Ok(roots)
}

/// The lists of revoked certificates: one file, and every file of a directory.
fn revoked(settings: &TlsSettings) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let mut paths: Vec<PathBuf> = settings.revoked.iter().map(PathBuf::from).collect();
    if let Some(directory) = &settings.revoked_directory {
        let doing = format!("reading directory \"{directory}\" of certificate revocation lists");
        for entry in fs::read_dir(directory).map_err(failed(&doing))? {
            paths.push(entry.map_err(failed(&doing))?.path());
        }
    }
    let mut lists = Vec::new();
    for path in paths {
        let doing = format!("reading certificate revocation list \"{}\"", path.display());
        for list in CertificateRevocationListDer::pem_file_iter(path).map_err(failed(&doing))? {
            lists.push(list.map_err(failed(&doing))?);
        }
    }
    Ok(lists)
}

fn system_roots() -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return Err(TlsError("the system has no root certificates".to_owned()));
    }
    Ok(found)
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        if self.trusted.iter().any(|trusted| trusted == end_entity) {
            return self.verify_trusted(end_entity, server_name, now);
        }
        let verified = authority.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // webpki looks at the name last, so the chain is sound when only the name is wrong.
            Err(rustls::Error::InvalidCertificate(
                rustls::CertificateError::NotValidForName
                | rustls::CertificateError::NotValidForNameContext { .. },
            )) if !self.check_name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
