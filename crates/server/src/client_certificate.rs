//! The certificate that we show to a server, its private key, and whether the server asked for it.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::{
    ClientConfig, SignatureScheme,
    client::ResolvesClientCert,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use wire::Password;
use wire::conninfo::{ClientCertificate, TlsSettings};

use crate::tls::TlsError;

/// A certificate, those that vouch for it, and its key.
pub(crate) type ClientCertificatePair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Reads the certificate that `settings` let us show. As in libpq, a certificate that is not there
/// is none.
pub(crate) fn read(settings: &TlsSettings) -> Result<Option<ClientCertificatePair>, TlsError> {
    let Some(certificate) = settings
        .certificate
        .as_deref()
        .filter(|path| settings.client_certificate != ClientCertificate::Disable && is_there(path))
    else {
        return Ok(None);
    };
    let Some(key) = settings.key.as_deref() else {
        let why = format!("client certificate \"{certificate}\" needs its private key: set sslkey");
        return Err(TlsError(why));
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| failed(&format!("reading client certificate \"{certificate}\""), error))?;
    check_key(key).map_err(TlsError)?;
    let password = settings.key_password.as_ref().map(Password::reveal);
    Ok(Some((chain, read_key(key, password).map_err(TlsError)?)))
}

/// A file that cannot be looked at is there: what is wrong with it comes out when it is read.
fn is_there(path: &str) -> bool {
    fs::exists(path).unwrap_or(true)
}

/// In libpq's words why a key must not be used.
fn check_key(path: &str) -> Result<(), String> {
    let file = fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("certificate present, but not private key file \"{path}\"")
        }
        _ => format!("could not stat private key file \"{path}\": {error}"),
    })?;
    if !file.is_file() {
        return Err(format!("private key file \"{path}\" is not a regular file"));
    }
    let forbidden = if file.uid() == 0 { 0o037 } else { 0o077 };
    if file.mode() & forbidden != 0 {
        return Err(format!(
            "private key file \"{path}\" has group or world access; file must have permissions \
             u=rw (0600) or less if owned by the current user, or permissions u=rw,g=r (0640) or \
             less if owned by root"
        ));
    }
    Ok(())
}

/// A key in PEM, encrypted by PKCS #8 or not at all, or in DER.
fn read_key(path: &str, password: Option<&str>) -> Result<PrivateKeyDer<'static>, String> {
    let doing = |error: &dyn std::fmt::Display| format!("reading private key \"{path}\": {error}");
    let bytes = fs::read(path).map_err(|error| doing(&error))?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) if text.contains("-----BEGIN ") => text,
        _ => return PrivateKeyDer::try_from(bytes).map_err(|error| doing(&error)),
    };
    if text.contains("Proc-Type: 4,ENCRYPTED") {
        return Err(format!(
            "private key \"{path}\" is encrypted in a form that only OpenSSL reads: convert it by \
             \"openssl pkcs8 -topk8 -in {path} -out NEW\", and name that one as sslkey"
        ));
    }
    if !text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") {
        return PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| doing(&error));
    }
    let Some(password) = password else {
        return Err(format!(
            "private key \"{path}\" is encrypted: give its password as sslpassword in the \
             connection string"
        ));
    };
    let (_, sealed) = SecretDocument::from_pem(text).map_err(|error| doing(&error))?;
    let sealed =
        EncryptedPrivateKeyInfoRef::try_from(sealed.as_bytes()).map_err(|error| doing(&error))?;
    let key = sealed.decrypt(password).map_err(|error| {
        format!("decrypting private key \"{path}\": {error}: is sslpassword the right one?")
    })?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

/// `sslcertmode=require`: sees whether the server of one connection asks for our certificate.
#[derive(Debug)]
pub struct CertificateRequestWitness {
    certificates: Arc<dyn ResolvesClientCert>,
    was_asked: AtomicBool,
    has_shown: AtomicBool,
}

impl CertificateRequestWitness {
    /// One connection's own `config`, and who watches it.
    pub fn of(config: &ClientConfig) -> (Arc<ClientConfig>, Arc<CertificateRequestWitness>) {
        let witness = Arc::new(CertificateRequestWitness {
            certificates: Arc::clone(&config.client_auth_cert_resolver),
            was_asked: AtomicBool::new(false),
            has_shown: AtomicBool::new(false),
        });
        let mut config = config.clone();
        config.client_auth_cert_resolver = Arc::clone(&witness) as Arc<dyn ResolvesClientCert>;
        (Arc::new(config), witness)
    }

    /// In libpq's words why a server that lets us in will not do.
    pub fn objection(witness: Option<&CertificateRequestWitness>) -> Option<&'static str> {
        let seen = |flag: fn(&CertificateRequestWitness) -> &AtomicBool| {
            witness.is_some_and(|witness| flag(witness).load(Ordering::Relaxed))
        };
        if !seen(|witness| &witness.was_asked) {
            return Some("server did not request an SSL certificate");
        }
        (!seen(|witness| &witness.has_shown))
            .then_some("server accepted connection without a valid SSL certificate")
    }
}

impl ResolvesClientCert for CertificateRequestWitness {
    fn resolve(
        &self,
        authorities: &[&[u8]],
        schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        let certificate = self.certificates.resolve(authorities, schemes);
        self.was_asked.store(true, Ordering::Relaxed);
        self.has_shown.store(certificate.is_some(), Ordering::Relaxed);
        certificate
    }

    fn has_certs(&self) -> bool {
        self.certificates.has_certs()
    }
}

fn failed(doing: &str, error: impl std::fmt::Display) -> TlsError {
    TlsError(format!("{doing}: {error}"))
}
