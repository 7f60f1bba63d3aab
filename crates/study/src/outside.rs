//! How a server is reached that somebody else runs: conninfo, encryption.

use lab::{Target, TargetConfig};
use server::{Address, AddressError};
use wire::conninfo::{Conninfo, ConninfoError};

use crate::error::Error;

/// Connects once, to see that the server is there.
///
/// # Errors
/// As libpq has them; what the server said.
pub(crate) fn open(conninfo: &str) -> Result<Target, Error> {
    let resolved = server::resolve_conninfo(conninfo)?;
    let admin = Address::new(&resolved).map_err(|error| match error {
        AddressError::Tls(error) => Error::TargetTls(error),
        AddressError::Client(source) => Error::Lab(lab::Error::Connect {
            server: lab::TARGET.to_owned(),
            place: resolved.hosts.first().map(ToString::to_string).unwrap_or_default(),
            source,
        }),
    })?;
    Ok(Target::open(TargetConfig { conninfo: resolved.to_keyword_string(), admin })?)
}

/// A conninfo as the load engine reads it: keywords, nothing left to look up.
///
/// # Errors
/// As libpq has them.
pub(crate) fn keyword_form(conninfo: &str) -> Result<String, ConninfoError> {
    Ok(server::resolve_conninfo(conninfo)?.to_keyword_string())
}

/// What the probes connect to.
pub(crate) fn probe_form(target: &Target) -> String {
    match Conninfo::from_keyword_string(target.conninfo()) {
        Ok(conninfo) => Address::keywords(&conninfo),
        Err(_) => target.conninfo().to_owned(),
    }
}
