//! The ways to a workload's server: hosts, addresses and encryption, in the order to try them.

use std::sync::Arc;

use rustls::{ClientConfig, pki_types::ServerName};
use wire::{
    conninfo::{ClientCertificate, Conninfo, ConninfoHost, LoadBalance, TargetSessionAttrs},
    startup::Login,
    tls::{SslMode, SslNegotiation, TlsAttempt},
};

use super::{endpoint::ServerEndpoint, peer::Peer};
use crate::tls::{self, TlsError};

/// Everything that a connection of one workload needs to know.
pub struct ConnectRoute {
    /// The steps, in the order to try them.
    pub steps: Vec<ConnectAttempt>,
    /// Number of `steps` that belong to one round over the hosts.
    pub round: usize,
    /// Certificates, where a step may be encrypted.
    pub tls: Option<Arc<ClientConfig>>,
    /// The way in which TLS begins.
    pub negotiation: SslNegotiation,
    /// True if a server must ask for our certificate.
    pub must_show: bool,
    /// The order of hosts.
    pub balance: LoadBalance,
    /// The time for one address, in nanoseconds.
    pub timeout_ns: Option<u64>,
    /// The owner that the server process behind a Unix socket must have.
    pub(super) peer: Option<Peer>,
    /// The password file that was looked into.
    pub passfile: Option<String>,
}

/// One attempt.
#[derive(Clone)]
pub struct ConnectAttempt {
    /// The address.
    pub endpoint: ServerEndpoint,
    /// With or without encryption.
    pub attempt: TlsAttempt,
    /// Kind of server that is accepted in this round.
    pub wanted: TargetSessionAttrs,
    /// Login at the start of the session.
    pub login: Arc<Login>,
    /// The name that a certificate must bear.
    pub server_name: Option<ServerName<'static>>,
    /// Counts addresses: the other steps to this one are the same address in other ways.
    pub address: usize,
    /// Counts hosts: one host may have several addresses.
    pub host: usize,
}

/// Steps that may still be tried after one has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemainingSteps {
    /// The same address in another way, with or without encryption.
    Attempt,
    /// Another address.
    Address,
    /// Another host.
    Host,
    /// Nothing: this server has given its answer.
    End,
}

/// The name that TLS begins with. libpq checks a certificate against a name alone, never against
/// `hostaddr`.
fn name_for_tls<'c>(conninfo: &Conninfo, host: &'c ConninfoHost) -> Option<&'c str> {
    let address = host.network_name().filter(|_| conninfo.tls.mode != SslMode::VerifyFull);
    host.certificate_name().or(address)
}

impl ConnectRoute {
    /// Resolves every name of `conninfo`. `session` holds settings of the session.
    pub fn new(conninfo: &Conninfo, session: &[(String, String)]) -> Result<Self, TlsError> {
        let mut steps = Vec::new();
        let (mut address, mut host_number) = (0, 0);
        for wanted in conninfo.target.rounds() {
            for host in &conninfo.hosts {
                host_number += 1;
                let mut login = conninfo.login(host);
                login.settings.extend(session.iter().cloned());
                let login = Arc::new(login);
                let server_name = name_for_tls(conninfo, host)
                    .and_then(|name| ServerName::try_from(name.to_owned()).ok());
                for endpoint in ServerEndpoint::resolve(host, conninfo.keepalives) {
                    address += 1;
                    for attempt in conninfo.tls.mode.attempts(host.transport()) {
                        steps.push(ConnectAttempt {
                            endpoint: endpoint.clone(),
                            attempt: *attempt,
                            wanted: *wanted,
                            login: Arc::clone(&login),
                            server_name: server_name.clone(),
                            address,
                            host: host_number,
                        });
                    }
                }
            }
        }
        let encrypts = steps.iter().any(|step| step.attempt != TlsAttempt::Plain);
        Ok(ConnectRoute {
            round: steps.len() / conninfo.target.rounds().len(),
            steps,
            tls: encrypts.then(|| tls::config(&conninfo.tls)).transpose()?,
            negotiation: conninfo.tls.negotiation,
            must_show: conninfo.tls.client_certificate == ClientCertificate::Require,
            balance: conninfo.load_balance,
            peer: conninfo.require_peer.as_deref().map(Peer::new),
            passfile: conninfo.passfile.clone(),
            timeout_ns: conninfo.connect_timeout_s.map(|s| u64::from(s) * 1_000_000_000),
        })
    }

    /// True if no host has an address.
    pub fn leads_nowhere(&self) -> bool {
        self.steps.iter().all(|step| step.endpoint.unresolved().is_some())
    }

    /// Step with which a client begins: the first host, or, balancing, one drawn by `draw`.
    pub fn first_step(&self, draw: impl FnOnce(usize) -> usize) -> usize {
        if self.balance == LoadBalance::Disable {
            return 0;
        }
        let at = draw(self.round);
        let address = self.steps[at].address;
        // A host's encrypted attempt comes before its plain one, so begin at its first.
        self.steps.iter().position(|step| step.address == address).unwrap_or(0)
    }

    /// The step that comes after `tried` others for a client that began with step `first`: every
    /// round begins there, and wraps.
    pub fn step_number(&self, first: usize, tried: usize) -> usize {
        tried / self.round * self.round + (first + tried) % self.round
    }

    /// Number of steps that have been tried or passed over when the next one that `lead` allows is
    /// due; none if there is none.
    pub fn after(&self, first: usize, tried: usize, lead: RemainingSteps) -> Option<usize> {
        let step = |tried| &self.steps[self.step_number(first, tried)];
        let current = step(tried);
        let mut rest = tried + 1..self.steps.len();
        match lead {
            RemainingSteps::Attempt => rest.next().filter(|n| step(*n).address == current.address),
            RemainingSteps::Address => rest.find(|n| step(*n).address != current.address),
            RemainingSteps::Host => rest.find(|n| step(*n).host != current.host),
            RemainingSteps::End => None,
        }
    }
}
