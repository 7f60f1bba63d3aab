//! The certificate of one server, made for the run and signed by its own key.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use os::user::SystemUser;

use crate::error::Error;
use crate::files::write_file;

/// The files of a server's certificate and key.
#[derive(Debug, Clone)]
pub(crate) struct ServerIdentity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl ServerIdentity {
    /// Those of a server that listens on `address`, in its directory; made where they are not there.
    pub(crate) fn of(
        directory: &Path,
        address: IpAddr,
        user: SystemUser,
    ) -> Result<ServerIdentity, Error> {
        let identity = ServerIdentity {
            certificate: directory.join("server.crt"),
            key: directory.join("server.key"),
        };
        if identity.certificate.is_file() {
            return Ok(identity);
        }
        let made = rcgen::generate_simple_self_signed([address.to_string()]);
        let made = made.map_err(|error| Error::File {
            doing: "making a certificate for",
            path: identity.certificate.clone(),
            source: std::io::Error::other(error),
        })?;
        // The key first: the certificate says that both are there.
        write_file(&identity.key, &made.signing_key.serialize_pem(), user)?;
        write_file(&identity.certificate, &made.cert.pem(), user)?;
        Ok(identity)
    }
}
