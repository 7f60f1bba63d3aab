//! The names of a server's certificate, compared with the host's as libpq does it
//! (`fe-secure-common.c` and `fe-secure-openssl.c` of PostgreSQL 15 and later).

use std::net::IpAddr;

use rustls::CertificateError;
use x509_cert::{
    Certificate,
    der::oid::db::rfc4519::COMMON_NAME,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

use super::chain::extension;

/// Where a certificate bears the name of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedIn {
    /// In subjectAltName.
    Alternatives,
    /// In the common name of the subject, which counts where subjectAltName has no name of the kind.
    CommonName,
}

/// Looks for the name of `host`.
///
/// # Errors
/// [`CertificateError::NotValidForName`] for a certificate that does not bear it.
pub(super) fn check(certificate: &Certificate, host: &str) -> Result<NamedIn, CertificateError> {
    let address: Option<IpAddr> = host.parse().ok();
    let is_number = address.is_some() || looks_like_number(host);
    let mut has_kind = false;
    let names = extension::<SubjectAltName>(certificate)?;
    for name in names.iter().flat_map(|names| &names.0) {
        let is_host = match name {
            GeneralName::DnsName(name) => {
                has_kind |= !is_number;
                matches(name.as_bytes(), host)?
            }
            GeneralName::IpAddress(bytes) => {
                has_kind |= is_number;
                address.is_some_and(|address| octets(address) == bytes.as_bytes())
            }
            _ => false,
        };
        if is_host {
            return Ok(NamedIn::Alternatives);
        }
    }
    let mut parts = certificate.tbs_certificate.subject.0.iter().flat_map(|part| part.0.iter());
    match parts.find(|part| part.oid == COMMON_NAME) {
        Some(name) if !has_kind && matches(name.value.value(), host)? => Ok(NamedIn::CommonName),
        _ => Err(CertificateError::NotValidForName),
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// True for what the C library takes for an IPv4 address, such as `127.1` and `0x7f000001`.
fn looks_like_number(host: &str) -> bool {
    let is_number = |part: &str| {
        let digits = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"));
        match digits {
            Some(digits) => digits.bytes().all(|digit| digit.is_ascii_hexdigit()),
            None => !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit()),
        }
    };
    host.split('.').all(is_number)
}

/// True if a name of a certificate is the host's, or a wildcard for the host's first label alone.
///
/// # Errors
/// For a name with a NUL inside: what stands before it might be read for the whole.
fn matches(name: &[u8], host: &str) -> Result<bool, CertificateError> {
    if name.contains(&0) {
        return Err(CertificateError::NotValidForName);
    }
    let host = host.as_bytes();
    if name.eq_ignore_ascii_case(host) {
        return Ok(true);
    }
    let Some(domain) = name.strip_prefix(b"*").filter(|rest| rest.starts_with(b".")) else {
        return Ok(false);
    };
    let Some(first) = host.len().checked_sub(domain.len()) else { return Ok(false) };
    // libpq asks for a pattern of three characters, and for one in the place of the wildcard.
    let has_label = domain.len() > 1 && first > 0;
    let (label, rest) = host.split_at(first);
    Ok(has_label && !label.contains(&b'.') && rest.eq_ignore_ascii_case(domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_the_first_label() {
        let check = |name: &str, host: &str, expected: bool| {
            assert_eq!(matches(name.as_bytes(), host), Ok(expected), "{name} {host}");
        };
        check("db.example.org", "DB.example.org", true);
        check("db.example.org", "db.example.org.", false);
        check("*.example.org", "db.example.org", true);
        check("*.example.org", "a.b.example.org", false);
        check("*.example.org", "example.org", false);
        check("*.example.org", ".example.org", false);
        check("d*.example.org", "db.example.org", false);
        check("db.*.org", "db.example.org", false);
        check("*", "localhost", false);
        check("*.", "a.", false);
        check("*.org", "example.org", true);
        assert!(matches(b"localhost\0.example.org", "localhost").is_err());
    }

    #[test]
    fn numbers_are_addresses() {
        let check = |host, expected| assert_eq!(looks_like_number(host), expected, "{host}");
        check("127.1", true);
        check("0x7f000001", true);
        check("1.2.3.4", true);
        check("a.1", false);
        check("1a", false);
        check("", false);
    }
}
