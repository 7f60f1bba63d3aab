//! The addresses on which servers of the lab listen.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The addresses on which a node listens. Its administrators always use the Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Listen {
    /// On a Unix socket in the lab's directory, without a password.
    Unix,
    /// On a free port of 127.0.0.1 as well, with SCRAM and the lab's password.
    Loopback,
}

/// An address of this machine on which a server listens for clients on other hosts, as well as where
/// its [`Listen`] says. Clients authenticate by SCRAM with the lab's password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteAccess {
    /// The address.
    pub address: IpAddr,
    /// The only addresses from which connections are accepted (`pg_hba.conf`).
    pub clients: Vec<IpAddr>,
    /// True if their connections must be encrypted, with a certificate of the run.
    pub tls: bool,
}

impl RemoteAccess {
    /// The lines of `pg_hba.conf` that accept its clients.
    pub(crate) fn hba_lines(&self) -> String {
        let line = |client: &IpAddr| {
            let bits = if client.is_ipv4() { 32 } else { 128 };
            let kind = if self.tls { "hostssl" } else { "host" };
            // `all` stands for all databases and not for replication.
            format!(
                "{kind} all all {client}/{bits} scram-sha-256\n\
                 {kind} replication all {client}/{bits} scram-sha-256\n"
            )
        };
        self.clients.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_may_connect_and_replicate() {
        let clients = ["10.0.0.21", "fd00::1"].map(|one| one.parse().unwrap()).to_vec();
        let address = "10.0.0.5".parse().unwrap();
        let access = RemoteAccess { address, clients, tls: false };
        assert_eq!(
            access.hba_lines(),
            "host all all 10.0.0.21/32 scram-sha-256\n\
             host replication all 10.0.0.21/32 scram-sha-256\n\
             host all all fd00::1/128 scram-sha-256\n\
             host replication all fd00::1/128 scram-sha-256\n"
        );
        let clients = vec![address];
        let access = RemoteAccess { address, clients, tls: true };
        assert!(access.hba_lines().starts_with("hostssl all all 10.0.0.5/32 scram-sha-256\n"));
    }
}
