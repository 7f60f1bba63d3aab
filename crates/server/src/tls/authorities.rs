//! The authorities that a conninfo names, and what they have revoked.

use std::{fmt, fs, path::PathBuf};

use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, TrustAnchor, UnixTime, pem::PemObject,
};
use webpki::{CertRevocationList, OwnedCertRevocationList};
use wire::{conninfo::TlsSettings, tls::SslMode};
use x509_cert::{
    Certificate,
    crl::CertificateList,
    der::{Decode, Encode, asn1::OctetString},
    ext::pkix::SubjectKeyIdentifier,
    name::Name,
};

use super::{
    TlsError,
    chain::{check_identifiers, extension},
    failed,
};

/// The certificates that are believed, and the lists of those that are not any more.
pub(super) struct Authorities {
    /// Certificates that sign themselves: every chain ends in one of them, as in OpenSSL.
    pub(super) roots: Vec<CertificateDer<'static>>,
    /// What `webpki` needs to know of each of `roots`.
    pub(super) anchors: Vec<TrustAnchor<'static>>,
    /// Other certificates of the file: links on the way to a root, and no more.
    pub(super) links: Vec<CertificateDer<'static>>,
    /// The name and the key's identifier of each of them.
    subjects: Vec<(Name, Option<OctetString>)>,
    /// The revocation lists, newest first; none where revocation is not looked at.
    pub(super) revoked: Option<Vec<RevocationList>>,
}

/// A revocation list and the moment from which it is valid, in seconds since 1970.
#[derive(Debug)]
pub(super) struct RevocationList {
    pub(super) list: CertRevocationList<'static>,
    pub(super) this_update_s: u64,
}

impl Authorities {
    /// Reads the files that `settings` name. None: nobody is asked for, and everybody is believed, as
    /// by `sslmode=require` without root certificates.
    pub(super) fn read(settings: &TlsSettings) -> Result<Option<Self>, TlsError> {
        let demanded = matches!(settings.mode, SslMode::VerifyCa | SslMode::VerifyFull);
        let trusted = match settings.root_certificates.as_deref() {
            Some("system") => system_roots()?,
            // A named file that exists turns `require` into `verify-ca`, as in libpq.
            Some(path) if demanded || fs::exists(path).unwrap_or(true) => read_roots(path)?,
            None if demanded => {
                return Err(TlsError(format!(
                    "sslmode {} needs root certificates: put them into ~/.postgresql/root.crt, or \
                     set sslrootcert to a file, or to \"system\"",
                    settings.mode
                )));
            }
            Some(_) | None => return Ok(None),
        };
        let (mut roots, mut anchors, mut links) = (Vec::new(), Vec::new(), Vec::new());
        let mut subjects = Vec::new();
        for certificate in trusted {
            // One of the system's that cannot be read vouches for nobody.
            let Ok(parsed) = Certificate::from_der(&certificate) else { continue };
            let is_root = signs_itself(&parsed);
            subjects.push((parsed.tbs_certificate.subject.clone(), key_identifier(&parsed)));
            if !is_root {
                links.push(certificate);
            } else if let Ok(anchor) = webpki::anchor_from_trusted_cert(&certificate) {
                anchors.push(anchor.to_owned());
                roots.push(certificate);
            }
        }
        Ok(Some(Self { roots, anchors, links, subjects, revoked: read_revoked(settings)? }))
    }

    /// True if the file has a certificate of the same authority, or of one that cannot be told from it.
    pub(super) fn has_same(&self, certificate: &Certificate) -> bool {
        let key = key_identifier(certificate);
        let is_same = |known: &Option<OctetString>| match (known, &key) {
            (Some(known), Some(key)) => known == key,
            _ => true,
        };
        let subject = &certificate.tbs_certificate.subject;
        self.subjects.iter().any(|(name, known)| name == subject && is_same(known))
    }

    /// The lists that are valid at `now`, as far as their beginning goes; their end is `webpki`'s to
    /// check.
    pub(super) fn lists(&self, now: UnixTime) -> Option<Vec<&CertRevocationList<'static>>> {
        let begun = |list: &&RevocationList| list.this_update_s <= now.as_secs();
        let lists = self.revoked.as_ref()?;
        Some(lists.iter().filter(begun).map(|list| &list.list).collect())
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authorities({} roots)", self.roots.len())
    }
}

/// True for a certificate whose issuer is itself. Its signature is not looked at: the file is believed.
fn signs_itself(certificate: &Certificate) -> bool {
    certificate.tbs_certificate.issuer == certificate.tbs_certificate.subject
        && check_identifiers(certificate, certificate).is_ok()
}

/// An identifier that cannot be read counts as missing.
fn key_identifier(certificate: &Certificate) -> Option<OctetString> {
    extension::<SubjectKeyIdentifier>(certificate).ok().flatten().map(|key| key.0)
}

fn read_roots(path: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let doing = format!("reading root certificate file \"{path}\"");
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let roots: Vec<CertificateDer<'static>> = read.map_err(failed(&doing))?;
    if roots.is_empty() {
        return Err(TlsError(format!("{doing}: there is no certificate in it")));
    }
    for root in &roots {
        Certificate::from_der(root).map_err(failed(&doing))?;
    }
    Ok(roots)
}

fn system_roots() -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return Err(TlsError("the system has no root certificates".to_owned()));
    }
    Ok(found)
}

/// The lists of revoked certificates: those of one file, and those of a directory. A conninfo that
/// names either has every certificate looked up.
fn read_revoked(settings: &TlsSettings) -> Result<Option<Vec<RevocationList>>, TlsError> {
    if settings.revoked.is_none() && settings.revoked_directory.is_none() {
        return Ok(None);
    }
    let mut paths: Vec<PathBuf> = settings.revoked.iter().map(PathBuf::from).collect();
    if let Some(directory) = &settings.revoked_directory {
        let doing = format!("reading directory \"{directory}\" of certificate revocation lists");
        for entry in fs::read_dir(directory).map_err(failed(&doing))? {
            let entry = entry.map_err(failed(&doing))?;
            if entry.file_name().to_str().is_some_and(is_hashed_name) {
                paths.push(entry.path());
            }
        }
    }
    let mut lists = Vec::new();
    for path in paths {
        let doing = format!("reading certificate revocation list \"{}\"", path.display());
        let before = lists.len();
        for list in CertificateRevocationListDer::pem_file_iter(path).map_err(failed(&doing))? {
            lists.push(read_list(&list.map_err(failed(&doing))?, &doing)?);
        }
        if lists.len() == before {
            return Err(TlsError(format!("{doing}: there is no list in it")));
        }
    }
    // The newest of several lists of one authority counts.
    lists.sort_by_key(|list| std::cmp::Reverse(list.this_update_s));
    Ok(Some(lists))
}

fn read_list(der: &[u8], doing: &str) -> Result<RevocationList, TlsError> {
    let parsed = CertificateList::from_der(der).map_err(failed(doing))?;
    let list = OwnedCertRevocationList::from_der(der).map_err(failed(doing))?.into();
    let this_update_s = parsed.tbs_cert_list.this_update.to_unix_duration().as_secs();
    Ok(RevocationList { list, this_update_s })
}

/// The names that OpenSSL looks for in a directory: eight hexadecimal digits, `.r`, a number.
fn is_hashed_name(name: &str) -> bool {
    name.split_once(".r").is_some_and(|(hash, number)| {
        hash.len() == 8
            && hash.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// A certificate's subject without the outer header, as `webpki` compares names.
pub(super) fn name_of(certificate: &Certificate) -> Option<Vec<u8>> {
    let der = certificate.tbs_certificate.subject.to_der().ok()?;
    let header = match der.get(1)? {
        length if *length < 0x80 => 2,
        length => 2 + usize::from(length & 0x7f),
    };
    der.get(header..).map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_a_directory_of_lists() {
        let check = |name, expected| assert_eq!(is_hashed_name(name), expected, "{name}");
        check("5d30f3c5.r0", true);
        check("5d30f3c5.r12", true);
        check("5d30f3c5.0", false);
        check("5D30F3C5.r0", false);
        check("root.crl", false);
        check("5d30f3c5.r", false);
    }
}
