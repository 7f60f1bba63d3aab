//! A server that a command administers, from what the user calls it.

use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{SslMode as Encryption, TargetSessionAttrs as Target};
use wire::conninfo::{Address, Conninfo, Host, TargetSessionAttrs};
use wire::tls::SslMode;

use crate::complaint::Complaint;

/// Finds out where the server is and how the way there is encrypted, as libpq would.
pub(crate) fn resolve(conninfo: &str) -> Result<guard::Server, Complaint> {
    let resolved = study::resolve_conninfo(conninfo).map_err(Complaint::new)?;
    let is_tcp = |host: &Host| matches!(host.address, Address::Tcp { .. });
    let is_encrypted = resolved.tls.mode != SslMode::Disable && resolved.hosts.iter().any(is_tcp);
    let tls = match is_encrypted {
        false => None,
        true => {
            let config = load::tls_config(&resolved.tls).map_err(Complaint::new)?;
            Some(config.as_ref().clone())
        }
    };
    let mut config = config(&resolved);
    config.ssl_mode(match resolved.tls.mode {
        _ if tls.is_none() => Encryption::Disable,
        SslMode::Disable | SslMode::Allow | SslMode::Prefer => Encryption::Prefer,
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => Encryption::Require,
    });
    Ok(guard::Server { config, tls })
}

fn config(conninfo: &Conninfo) -> Config {
    let mut config = Config::new();
    for host in &conninfo.hosts {
        match &host.address {
            Address::Unix { directory } => config.host_path(directory),
            Address::Tcp { .. } => config.host(host.network_name().unwrap_or_default()),
        };
        config.port(host.port);
    }
    config.user(&conninfo.user).dbname(&conninfo.dbname);
    // One of several servers: only the one that takes writes can be guarded.
    if matches!(conninfo.target, TargetSessionAttrs::ReadWrite | TargetSessionAttrs::Primary) {
        config.target_session_attrs(Target::ReadWrite);
    }
    if let Some(password) = conninfo.hosts.first().and_then(|host| host.password.as_ref()) {
        config.password(password);
    }
    if let Some(seconds) = conninfo.connect_timeout_s {
        config.connect_timeout(Duration::from_secs(u64::from(seconds)));
    }
    config
}
