//! What OpenSSL demands of the certificates of a chain and `webpki` does not look at: dates and
//! purposes of roots, key usage, the lengths of paths below roots, key identifiers.

use rustls::CertificateError;
use rustls::pki_types::UnixTime;
use x509_cert::{
    Certificate,
    der::{
        Decode,
        asn1::BitString,
        oid::{AssociatedOid, ObjectIdentifier},
    },
    ext::pkix::{
        AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, NameConstraints,
        SubjectAltName, SubjectKeyIdentifier,
    },
};

/// The purpose that a server's certificate and its authorities must be for, where they name any.
const SERVER_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
/// Netscape's extension of the time before purposes, which OpenSSL heeds.
const NETSCAPE_TYPE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.113730.1.1");

/// The extensions that are looked at here or by `webpki`, and may therefore be critical.
const KNOWN: [ObjectIdentifier; 6] = [
    BasicConstraints::OID,
    KeyUsage::OID,
    ExtendedKeyUsage::OID,
    SubjectAltName::OID,
    NameConstraints::OID,
    NETSCAPE_TYPE,
];

/// A reason why a certificate will not do for which rustls has no word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
struct Objection {
    why: &'static str,
    is_libpqs: bool,
}

impl From<Objection> for CertificateError {
    fn from(objection: Objection) -> Self {
        CertificateError::Other(rustls::OtherError(std::sync::Arc::new(objection)))
    }
}

/// An objection that libpq makes, too.
pub(super) fn refusal(why: &'static str) -> CertificateError {
    Objection { why, is_libpqs: true }.into()
}

/// An objection to what libpq believes.
pub(super) fn own_refusal(why: &'static str) -> CertificateError {
    Objection { why, is_libpqs: false }.into()
}

/// True if libpq would refuse the certificate, too. What is refused here alone must not lead to a
/// connection without encryption where libpq would have one with.
pub(super) fn is_refused_by_libpq(error: &CertificateError) -> bool {
    use CertificateError as Bad;
    match error {
        Bad::Expired
        | Bad::NotValidYet
        | Bad::Revoked
        | Bad::UnknownIssuer
        | Bad::UnknownRevocationStatus
        | Bad::ExpiredRevocationList
        | Bad::BadSignature
        | Bad::NotValidForName
        | Bad::InvalidPurpose => true,
        Bad::Other(other) => other.0.downcast_ref::<Objection>().is_some_and(|one| one.is_libpqs),
        _ => false,
    }
}

/// Checks a chain whose signatures are good: the server's certificate first, a root last.
pub(super) fn check(
    chain: &[Certificate],
    now: UnixTime,
    checks_lists: bool,
) -> Result<(), CertificateError> {
    for (depth, certificate) in chain.iter().enumerate() {
        check_dates(certificate, now)?;
        check_extensions(certificate)?;
        match depth {
            0 => check_server(certificate)?,
            depth => {
                let is_root = depth + 1 == chain.len();
                check_authority(certificate, depth - 1, is_root, checks_lists)?;
            }
        }
        if let Some(issuer) = chain.get(depth + 1) {
            check_identifiers(certificate, issuer)?;
        }
    }
    Ok(())
}

/// True if an authority of the chain limits the names below it. The limit is `webpki`'s to check, which
/// knows subjectAltName alone.
pub(super) fn limits_names(chain: &[Certificate]) -> bool {
    chain.iter().any(|one| !matches!(extension::<NameConstraints>(one), Ok(None)))
}

/// The one extension of a kind.
pub(super) fn extension<'c, T: Decode<'c> + AssociatedOid>(
    certificate: &'c Certificate,
) -> Result<Option<T>, CertificateError> {
    let found = certificate.tbs_certificate.get::<T>();
    let found = found.map_err(|_| CertificateError::BadEncoding)?;
    Ok(found.map(|(_, extension)| extension))
}

fn check_dates(certificate: &Certificate, now: UnixTime) -> Result<(), CertificateError> {
    let validity = &certificate.tbs_certificate.validity;
    if now.as_secs() < validity.not_before.to_unix_duration().as_secs() {
        return Err(CertificateError::NotValidYet);
    }
    if now.as_secs() >= validity.not_after.to_unix_duration().as_secs() {
        return Err(CertificateError::Expired);
    }
    Ok(())
}

/// Demands that no critical extension is unknown, and that the purposes, if any are named, have a
/// server's among them.
fn check_extensions(certificate: &Certificate) -> Result<(), CertificateError> {
    // A certificate of version 1 has no extensions.
    let extensions = certificate.tbs_certificate.extensions.as_deref().unwrap_or_default();
    if extensions.iter().any(|one| one.critical && !KNOWN.contains(&one.extn_id)) {
        return Err(CertificateError::UnhandledCriticalExtension);
    }
    match extension::<ExtendedKeyUsage>(certificate)? {
        Some(purposes) if !purposes.0.contains(&SERVER_AUTH) => {
            Err(CertificateError::InvalidPurpose)
        }
        _ => Ok(()),
    }
}

/// Demands that the key of a server's certificate may take part in handshakes, where its uses are named.
fn check_server(certificate: &Certificate) -> Result<(), CertificateError> {
    let uses = extension::<KeyUsage>(certificate)?;
    let is_able = |uses: KeyUsage| {
        uses.digital_signature() || uses.key_encipherment() || uses.key_agreement()
    };
    if !uses.is_none_or(is_able) {
        return Err(CertificateError::InvalidPurpose);
    }
    // A certificate of version 1 has no extensions.
    let extensions = certificate.tbs_certificate.extensions.as_deref().unwrap_or_default();
    // A certificate without the old extension restricts nothing by it.
    let Some(kind) = extensions.iter().find(|one| one.extn_id == NETSCAPE_TYPE) else {
        return Ok(());
    };
    let kind = BitString::from_der(kind.extn_value.as_bytes())
        .map_err(|_| CertificateError::BadEncoding)?;
    // The second bit is for servers.
    match kind.raw_bytes().first() {
        Some(bits) if bits & 0x40 != 0 => Ok(()),
        _ => Err(CertificateError::InvalidPurpose),
    }
}

/// False for a key whose certificate names its uses, and not digital signatures.
pub(super) fn may_sign_handshakes(certificate: &Certificate) -> Result<bool, CertificateError> {
    Ok(extension::<KeyUsage>(certificate)?.is_none_or(|uses| uses.digital_signature()))
}

/// Demands that a certificate is an authority's that may have `below` others between itself and the
/// server's. A root of the time before extensions is one by standing in the file.
fn check_authority(
    certificate: &Certificate,
    below: usize,
    is_root: bool,
    checks_lists: bool,
) -> Result<(), CertificateError> {
    if certificate.tbs_certificate.version == x509_cert::Version::V1 {
        return Ok(());
    }
    let uses = extension::<KeyUsage>(certificate)?;
    match extension::<BasicConstraints>(certificate)? {
        Some(BasicConstraints { ca: true, path_len_constraint: Some(most) })
            if below > usize::from(most) =>
        {
            return Err(refusal("an authority stands too far above the server's certificate"));
        }
        Some(BasicConstraints { ca: true, .. }) => {}
        // OpenSSL takes a root for what its key's uses say.
        None if is_root && uses.is_some() => {}
        _ => return Err(refusal("a certificate was signed by one that is no authority")),
    }
    // A key whose uses are not named has all of them (RFC 5280, 4.2.1.3).
    let Some(uses) = uses else { return Ok(()) };
    if !uses.key_cert_sign() {
        return Err(refusal("the key of an authority is not for signing certificates"));
    }
    if checks_lists && !uses.crl_sign() {
        return Err(refusal("the key of an authority is not for signing revocation lists"));
    }
    Ok(())
}

/// Demands that a certificate names the key and the number of its issuer, where it names any.
pub(super) fn check_identifiers(
    certificate: &Certificate,
    issuer: &Certificate,
) -> Result<(), CertificateError> {
    // A certificate that names no key of its issuer demands none.
    let Some(named) = extension::<AuthorityKeyIdentifier>(certificate)? else { return Ok(()) };
    let key = extension::<SubjectKeyIdentifier>(issuer)?.map(|key| key.0);
    let is_other_key =
        matches!((&named.key_identifier, &key), (Some(named), Some(key)) if named != key);
    let number = &issuer.tbs_certificate.serial_number;
    let is_other_number = named.authority_cert_serial_number.is_some_and(|named| named != *number);
    if is_other_key || is_other_number {
        return Err(CertificateError::UnknownIssuer);
    }
    Ok(())
}
