//! The first connection of a run: every host and address in order, as libpq tries them.

use std::error::Error as _;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use load::{Control, Urgency};
use postgres::config::{ChannelBinding, SslMode as Encryption, SslNegotiation as Negotiation};
use postgres::error::SqlState;
use postgres::{Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;
use wire::conninfo::{Address, Conninfo, Host, PasswordSource, TargetSessionAttrs};
use wire::startup::ChannelBindingPolicy;
use wire::tls::{Attempt, SslNegotiation};

use super::{Notices, message};
use crate::complaint::{Complaint, system_error};

/// A connection to the first server that will do, and how it may be encrypted.
///
/// # Errors
/// In libpq's words: every attempt with the reason why it failed. When interrupted.
pub(super) fn connect(
    conninfo: &Conninfo,
    notices: &Notices,
    control: &Control,
) -> Result<(Client, Option<MakeRustlsConnect>), Failure> {
    let tls = tls(conninfo).map_err(Failure::Other)?;
    let way = Way { notices, tls: tls.as_ref(), control };
    let mut log = Log::default();
    for &target in conninfo.target.rounds() {
        for host in &conninfo.hosts {
            if let Some(client) = to_host(conninfo, host, target, &way, &mut log) {
                return Ok((client, tls));
            }
            if control.urgency() != Urgency::None {
                let where_to = log.failures.pop().unwrap_or_default();
                return Err(Failure::Other(Complaint::error(where_to)));
            }
        }
    }
    let complaint = Complaint::error(log.failures.join("\n"));
    let complaint = match log.hint {
        Some(hint) => complaint.with_our_hint(hint),
        None => complaint,
    };
    Err(if log.wants_password { Failure::NoPassword(complaint) } else { Failure::Other(complaint) })
}

/// Why there is no connection at all.
pub(super) enum Failure {
    /// A server asked for a password and there was none.
    NoPassword(Complaint),
    /// Anything else.
    Other(Complaint),
}

impl Failure {
    pub(super) fn into_complaint(self) -> Complaint {
        match self {
            Failure::NoPassword(complaint) | Failure::Other(complaint) => complaint,
        }
    }
}

/// What every attempt needs.
struct Way<'a> {
    notices: &'a Notices,
    tls: Option<&'a MakeRustlsConnect>,
    control: &'a Control,
}

/// Why an attempt failed.
enum Refusal {
    /// The client library says why.
    Said(postgres::Error),
    /// The time limit of the connection string is over.
    TimedOut,
    /// The run was interrupted.
    Interrupted,
}

/// What went wrong so far.
#[derive(Default)]
struct Log {
    failures: Vec<String>,
    hint: Option<String>,
    wants_password: bool,
}

/// Tries every address of one host. None when it cannot be reached or will not do.
fn to_host(
    conninfo: &Conninfo,
    host: &Host,
    target: TargetSessionAttrs,
    way: &Way<'_>,
    log: &mut Log,
) -> Option<Client> {
    let addresses = match addresses(host) {
        Ok(addresses) => addresses,
        Err(reason) => {
            log.failures.push(reason);
            return None;
        }
    };
    for address in addresses {
        let mut failure = String::new();
        for &attempt in conninfo.tls.mode.attempts(host.transport()) {
            let failed = match open(config(conninfo, host, address, attempt), way) {
                Ok(mut client) => match unsuitable(&mut client, target) {
                    None => return Some(client),
                    Some(reason) => reason,
                },
                Err(Refusal::TimedOut) => "timeout expired".to_owned(),
                Err(Refusal::Interrupted) => "interrupted".to_owned(),
                Err(Refusal::Said(error)) => {
                    log.wants_password |= wants_password(&error);
                    log.hint = advice(&error, conninfo).or(log.hint.take());
                    reason(&error, conninfo, host)
                }
            };
            failure = format!("{}: {failed}", host.connection_failed(address));
        }
        log.failures.push(failure);
    }
    None
}

/// The addresses of a host on the network; one that is none for a socket.
fn addresses(host: &Host) -> Result<Vec<Option<IpAddr>>, String> {
    let Some(name) = host.network_name() else {
        return Ok(vec![None]);
    };
    match (name, host.port).to_socket_addrs() {
        Ok(found) => Ok(found.map(|address| Some(address.ip())).collect()),
        Err(error) => Err(format!(
            "could not translate host name \"{name}\" to address: {}",
            resolver_words(&error)
        )),
    }
}

/// The resolver's own words, which the standard library wraps.
fn resolver_words(error: &io::Error) -> String {
    let text = system_error(error);
    text.strip_prefix("failed to lookup address information: ").map_or(text.clone(), str::to_owned)
}

fn config(conninfo: &Conninfo, host: &Host, address: Option<IpAddr>, attempt: Attempt) -> Config {
    let mut config = Config::new();
    match &host.address {
        Address::Unix { directory } => config.host(directory),
        Address::Tcp { .. } => config.host(host.certificate_name().unwrap_or_default()),
    };
    if let Some(address) = address {
        config.hostaddr(address);
    }
    config.port(host.port).user(&conninfo.user).dbname(&conninfo.dbname);
    if let Some(password) = &host.password {
        config.password(password);
    }
    if let Some(seconds) = conninfo.connect_timeout_s {
        config.connect_timeout(Duration::from_secs(u64::from(seconds)));
    }
    config.ssl_mode(match attempt {
        Attempt::Plain => Encryption::Disable,
        Attempt::TlsOrPlain => Encryption::Prefer,
        Attempt::Tls => Encryption::Require,
    });
    config.ssl_negotiation(match conninfo.tls.negotiation {
        SslNegotiation::Postgres => Negotiation::Postgres,
        SslNegotiation::Direct => Negotiation::Direct,
    });
    config.channel_binding(match conninfo.channel_binding {
        ChannelBindingPolicy::Disable => ChannelBinding::Disable,
        ChannelBindingPolicy::Prefer => ChannelBinding::Prefer,
        ChannelBindingPolicy::Require => ChannelBinding::Require,
    });
    settings(conninfo, &mut config);
    config
}

/// Session settings. All but the name of the application travel as server options.
fn settings(conninfo: &Conninfo, config: &mut Config) {
    let mut options = String::new();
    for (name, value) in &conninfo.settings {
        match name.as_str() {
            "application_name" => drop(config.application_name(value)),
            // The client library always speaks UTF-8; nothing is read here that it could distort.
            "client_encoding" | "replication" => {}
            "options" => {
                options.push_str(value);
                options.push(' ');
            }
            _ => {
                let value = value.replace('\\', "\\\\").replace(' ', "\\ ");
                options.push_str(&format!("-c {name}={value} "));
            }
        }
    }
    if !options.is_empty() {
        config.options(options.trim_end());
    }
}

/// The certificates that a TLS handshake needs; none where every way is without TLS.
fn tls(conninfo: &Conninfo) -> Result<Option<MakeRustlsConnect>, Complaint> {
    let is_tls = |host: &Host| {
        conninfo.tls.mode.attempts(host.transport()).iter().any(|one| *one != Attempt::Plain)
    };
    if !conninfo.hosts.iter().any(is_tls) {
        return Ok(None);
    }
    let config = server::tls::config(&conninfo.tls)
        .map_err(|error| Complaint::error(&error).with_our_hint(error.hint()))?;
    Ok(Some(MakeRustlsConnect::new((*config).clone())))
}

/// Connects on a thread of its own: the client library limits the time for reaching a server, and
/// then waits for its answers for ever.
fn open(mut config: Config, way: &Way<'_>) -> Result<Client, Refusal> {
    let notices = Arc::clone(way.notices);
    config.notice_callback(move |notice| {
        let mut notices = notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.push(message::server(&notice, None));
    });
    let tls = way.tls.filter(|_| config.get_ssl_mode() != Encryption::Disable).cloned();
    let deadline = config.get_connect_timeout().map(|timeout| Instant::now() + *timeout);
    let (sender, opened) = channel();
    thread::spawn(move || {
        let client = match tls {
            Some(tls) => config.connect(tls),
            None => config.connect(postgres::NoTls),
        };
        // Whoever waits no longer does not want it.
        let _ = sender.send(client);
    });
    loop {
        match opened.recv_timeout(GLANCE) {
            Ok(client) => return client.map_err(Refusal::Said),
            Err(_) if way.control.urgency() != Urgency::None => return Err(Refusal::Interrupted),
            Err(RecvTimeoutError::Timeout)
                if deadline.is_none_or(|deadline| Instant::now() < deadline) => {}
            // Where the thread has died, nothing will come either.
            Err(_) => return Err(Refusal::TimedOut),
        }
    }
}

/// How often it is looked whether the run is interrupted.
const GLANCE: Duration = Duration::from_millis(20);

/// Why a server that lets us in is not the kind that was asked for.
fn unsuitable(client: &mut Client, target: TargetSessionAttrs) -> Option<String> {
    let on = |client: &mut Client, sql: &str| {
        let messages = client.simple_query(sql).ok()?;
        messages.into_iter().find_map(|message| match message {
            postgres::SimpleQueryMessage::Row(row) => row.get(0).map(|v| v == "on" || v == "t"),
            _ => None,
        })
    };
    let read_only = "show transaction_read_only";
    let in_recovery = "select pg_catalog.pg_is_in_recovery()";
    let (sql, wanted, reason) = match target {
        TargetSessionAttrs::Any | TargetSessionAttrs::PreferStandby => return None,
        TargetSessionAttrs::ReadWrite => (read_only, false, "session is read-only"),
        TargetSessionAttrs::ReadOnly => (read_only, true, "session is not read-only"),
        TargetSessionAttrs::Primary => (in_recovery, false, "server is in hot standby mode"),
        TargetSessionAttrs::Standby => (in_recovery, true, "server is not in hot standby mode"),
    };
    (on(client, sql) != Some(wanted)).then(|| reason.to_owned())
}

/// What libpq says after "failed: ".
fn reason(error: &postgres::Error, conninfo: &Conninfo, host: &Host) -> String {
    if let Some(server) = error.as_db_error() {
        let text = message::text(error, None);
        let rejected = *server.code() == SqlState::INVALID_PASSWORD;
        return match &conninfo.passfile {
            Some(file) if rejected && host.password_source == PasswordSource::PassFile => {
                format!("{text}\npassword retrieved from file \"{file}\"")
            }
            _ => text,
        };
    }
    match cause(error) {
        Some(error) => {
            format!("{}\n\t{}", system_error(error), host.unreachable_hint())
        }
        None if wants_password(error) => "fe_sendauth: no password supplied".to_owned(),
        None if says(error, "server did not use channel binding") => {
            "channel binding required, but server authenticated client without channel binding"
                .to_owned()
        }
        None => message::text(error, None),
    }
}

/// The operating system's error below.
fn cause(error: &postgres::Error) -> Option<&io::Error> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return error.raw_os_error().is_some().then_some(error);
        }
        source = error.source();
    }
    None
}

/// Whether the server asks for a password and there is none.
fn wants_password(error: &postgres::Error) -> bool {
    says(error, "password missing")
}

/// Whether the client library gives these words as the reason.
fn says(error: &postgres::Error, words: &str) -> bool {
    error.source().is_some_and(|source| source.to_string() == words)
}

/// Whether what answered is no PostgreSQL, as far as the client library understood it.
fn is_foreign(error: &postgres::Error) -> bool {
    let text = error.to_string();
    let words = ["error communicating", "unexpected message", "error parsing response"];
    cause(error).is_none() && words.iter().any(|words| text.starts_with(words))
}

const FOREIGN_HINT: &str =
    "what answers there does not speak PostgreSQL's protocol: correct the host and the port";

/// What to do next, where libpq does not say it.
fn advice(error: &postgres::Error, conninfo: &Conninfo) -> Option<String> {
    let Some(server) = error.as_db_error() else {
        let hint = server::tls::hint_below(error).or(is_foreign(error).then_some(FOREIGN_HINT));
        return hint.map(str::to_owned);
    };
    let code = server.code();
    let database = &conninfo.dbname;
    if *code == SqlState::UNDEFINED_DATABASE {
        return Some(format!("create it with \"createdb {database}\", or name another one"));
    }
    if *code == SqlState::TOO_MANY_CONNECTIONS {
        return Some(
            "the server is full: raise its max_connections, or end other sessions".to_owned(),
        );
    }
    if *code == SqlState::INVALID_PASSWORD {
        return Some(
            "give the password in PGPASSWORD or in a password file (~/.pgpass)".to_owned(),
        );
    }
    None
}
