//! Verification of a server's identity as libpq and OpenSSL do it, never weaker: `webpki` builds the
//! chain, and what it leaves out is checked here.

use std::{cell::RefCell, sync::Arc};

use rustls::{
    CertificateError, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, RevocationOptionsBuilder,
    UnknownStatusPolicy, VerifiedPath,
};
use wire::{conninfo::TlsSettings, tls::SslMode};
use x509_cert::{Certificate, der::Decode, der::oid::db::rfc5912::ID_EC_PUBLIC_KEY};

use super::{
    TlsError,
    authorities::{Authorities, name_of},
    chain::{self, own_refusal, refusal},
    names::{self, NamedIn},
};

/// Verification of a server's identity: libpq's `sslmode`.
#[derive(Debug)]
pub(super) struct Verifier {
    /// None believes anybody, as `sslmode=require` without root certificates does.
    authorities: Option<Authorities>,
    checks_name: bool,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    pub(super) fn new(
        settings: &TlsSettings,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        let checks_name = settings.mode == SslMode::VerifyFull;
        Ok(Verifier { authorities: Authorities::read(settings)?, checks_name, provider })
    }

    /// The chain from the server's certificate to a root, if all of it is as it must be.
    fn chain(
        &self,
        authorities: &Authorities,
        shown: &CertificateDer<'_>,
        links: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<Vec<Certificate>, CertificateError> {
        // The usual self-signed certificate, which stands in the file itself.
        if authorities.roots.iter().any(|root| root == shown) {
            let chain = vec![parsed(shown)?];
            chain::check(&chain, now, false)?;
            // Its own list would have to be its own work.
            if authorities.revoked.is_some() {
                return Err(CertificateError::UnknownRevocationStatus);
            }
            return Ok(chain);
        }
        // As in OpenSSL, what the file has of an authority counts, and not what the server sends.
        let mut sent = Vec::new();
        for link in links {
            if !authorities.has_same(&parsed(link)?) {
                sent.push(link.clone());
            }
        }
        let links: Vec<CertificateDer<'_>> =
            authorities.links.iter().cloned().chain(sent).collect();
        let lists = authorities.lists(now);
        let revocation = match lists.as_deref().map(RevocationOptionsBuilder::new) {
            None => None,
            Some(Err(_)) => return Err(CertificateError::UnknownRevocationStatus),
            Some(Ok(options)) => Some(
                options
                    .with_status_policy(UnknownStatusPolicy::Deny)
                    .with_expiration_policy(ExpirationPolicy::Enforce)
                    .build(),
            ),
        };
        // Why the last chain of good signatures was refused, which webpki does not pass on.
        let (refusal, found) = (RefCell::new(None), RefCell::new(None));
        let check =
            |path: &VerifiedPath<'_>| match check_path(authorities, path, now, lists.as_deref()) {
                Ok(chain) => {
                    found.replace(Some(chain));
                    Ok(())
                }
                Err(why) => {
                    refusal.replace(Some(why));
                    Err(webpki::Error::UnknownIssuer)
                }
            };
        let end_entity = EndEntityCert::try_from(shown).map_err(certificate_error)?;
        let verified = end_entity.verify_for_usage(
            self.provider.signature_verification_algorithms.all,
            &authorities.anchors,
            &links,
            now,
            KeyUsage::server_auth(),
            revocation,
            Some(&check),
        );
        match (verified, found.take()) {
            (Ok(_), Some(chain)) => Ok(chain),
            (Ok(_), None) => Err(CertificateError::ApplicationVerificationFailure),
            (Err(error), _) => Err(refusal.take().unwrap_or_else(|| certificate_error(error))),
        }
    }
}

/// Checks what `webpki` leaves out, for each certificate that may be the root of the path.
fn check_path(
    authorities: &Authorities,
    path: &VerifiedPath<'_>,
    now: UnixTime,
    lists: Option<&[&CertRevocationList<'static>]>,
) -> Result<Vec<Certificate>, CertificateError> {
    let mut below = vec![parsed(&path.end_entity().der())?];
    for link in path.intermediate_certificates() {
        below.push(parsed(&link.der())?);
    }
    let anchor = path.anchor();
    let roots = authorities.roots.iter().zip(&authorities.anchors);
    let same = roots.filter(|(_, one)| {
        (&one.subject, &one.subject_public_key_info)
            == (&anchor.subject, &anchor.subject_public_key_info)
    });
    let mut why = CertificateError::UnknownIssuer;
    for (root, _) in same {
        let root = parsed(root)?;
        let mut chain = below.clone();
        chain.push(root.clone());
        // Without lists, nothing is revoked.
        let checked = chain::check(&chain, now, lists.is_some())
            .and_then(|()| check_root_is_not_revoked(&root, lists.unwrap_or_default()));
        match checked {
            Ok(()) => return Ok(chain),
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// OpenSSL looks the root up in its own list, too.
fn check_root_is_not_revoked(
    root: &Certificate,
    lists: &[&CertRevocationList<'static>],
) -> Result<(), CertificateError> {
    let name = name_of(root).ok_or(CertificateError::BadEncoding)?;
    let serial = root.tbs_certificate.serial_number.as_bytes();
    for list in lists.iter().filter(|list| list.issuer() == name) {
        match list.find_serial(serial) {
            Ok(None) => {}
            Ok(Some(_)) => return Err(CertificateError::Revoked),
            Err(_) => return Err(CertificateError::UnknownRevocationStatus),
        }
    }
    Ok(())
}

fn parsed(der: &[u8]) -> Result<Certificate, CertificateError> {
    Certificate::from_der(der).map_err(|_| CertificateError::BadEncoding)
}

/// webpki's error in the words of rustls.
fn certificate_error(error: webpki::Error) -> CertificateError {
    use webpki::Error as Bad;
    match error {
        Bad::BadDer | Bad::BadDerTime | Bad::TrailingData(_) => CertificateError::BadEncoding,
        Bad::CertNotValidYet { .. } => CertificateError::NotValidYet,
        Bad::CertExpired { .. } | Bad::InvalidCertValidity => CertificateError::Expired,
        Bad::UnknownIssuer => CertificateError::UnknownIssuer,
        Bad::CertRevoked => CertificateError::Revoked,
        Bad::UnknownRevocationStatus => CertificateError::UnknownRevocationStatus,
        Bad::CrlExpired { .. } => CertificateError::ExpiredRevocationList,
        Bad::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        Bad::RequiredEkuNotFoundContext(_) => CertificateError::InvalidPurpose,
        Bad::EndEntityUsedAsCa => refusal("a certificate was signed by one that is no authority"),
        Bad::PathLenConstraintViolated => {
            refusal("an authority stands too far above the server's certificate")
        }
        Bad::NameConstraintViolation => {
            refusal("an authority may not vouch for a name of the certificate")
        }
        Bad::InvalidCrlSignatureForPublicKey => {
            refusal("the signature of a revocation list is wrong")
        }
        Bad::UnsupportedCriticalExtension => CertificateError::UnhandledCriticalExtension,
        Bad::CaUsedAsEndEntity => {
            own_refusal("the server's certificate is an authority's, and not in sslrootcert itself")
        }
        Bad::UnsupportedCertVersion => {
            own_refusal("a certificate is of version 1, without extensions: make one of version 3")
        }
        other => CertificateError::Other(rustls::OtherError(Arc::new(other))),
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        let chain = self.chain(authorities, end_entity, intermediates, now)?;
        if self.checks_name
            && names::check(&chain[0], &server_name.to_str())? == NamedIn::CommonName
            && chain::limits_names(&chain)
        {
            return Err(CertificateError::NotValidForName.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        // OpenSSL demands this of elliptic curves even where it believes anybody.
        let shown = parsed(certificate)?;
        let key = &shown.tbs_certificate.subject_public_key_info.algorithm;
        if key.oid == ID_EC_PUBLIC_KEY && !chain::may_sign_handshakes(&shown)? {
            return Err(CertificateError::InvalidPurpose.into());
        }
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
