//! The PgBouncer of `--pool-sizes`: the rig's own, on this machine, before the server of the run.
//!
//! Its files lie in the directory of a lab, which nobody else may read: the password of the server is in one of them, and
//! in no command line. The lab's init ends it and removes them, whatever becomes of the rig.

use std::time::Instant;

use lab::find::PgBouncer;
use lab::{Encryption, Endpoint, Host, Lab, LabConfig, PoolerConfig, PoolerProgram, Settings};
use load::Protocol;
use os::usage::ProcessStat;
use wire::conninfo::{Conninfo, HostAddress};
use wire::tls::SslMode;

use crate::complaint::Complaint;
use crate::options::RunOptions;
use crate::session_state;

/// Connections that PgBouncer lets in beside those of the load: its console.
const SPARE_CLIENTS: u32 = 10;
/// Settings of a session that PgBouncer keeps for each client.
const KEPT_SETTINGS: [&str; 5] =
    ["application_name", "client_encoding", "DateStyle", "TimeZone", "standard_conforming_strings"];

/// A lab whose poolers stand before one server.
pub(super) struct PoolerLab {
    lab: Lab,
    program: PgBouncer,
    config: PoolerConfig,
    /// Settings of the clients' sessions.
    settings: Vec<(String, String)>,
}

/// A PgBouncer that runs; it ends when this is dropped.
pub(super) struct StandingPooler {
    pooler: lab::Pooler,
    /// The way for clients.
    pub(super) conninfo: Conninfo,
    began: Option<(Instant, u64)>,
}

impl PoolerLab {
    /// Opens the lab.
    ///
    /// # Errors
    /// Without PgBouncer or PostgreSQL here; for a load or a server that a pooler in transaction mode cannot serve.
    pub(super) fn open(options: &RunOptions, conninfo: &Conninfo) -> Result<PoolerLab, Complaint> {
        expect_no_session_state(options)?;
        let program = lab::find::pgbouncer(None).map_err(|error| could_not("find", &error))?;
        if options.protocol == Protocol::Prepared && !program.has_prepared_statements() {
            let version = &program.version().text;
            return Err(Complaint::error(format_args!(
                "PgBouncer {version} keeps no prepared statements in transaction mode, so -M prepared cannot be used \
                 with --pool-sizes"
            ))
            .with_our_hint("use -M simple or -M extended, or install PgBouncer 1.21 or later"));
        }
        let to = endpoint(conninfo)?;
        let settings = conninfo.settings.clone();
        let is_lost = |(name, _): &&(String, String)| {
            !KEPT_SETTINGS.iter().any(|kept| kept.eq_ignore_ascii_case(name))
        };
        if let Some((name, _)) = settings.iter().find(is_lost) {
            return Err(Complaint::error(format_args!(
                "\"{name}\" of the connection string or the environment cannot be used with --pool-sizes: PgBouncer \
                 does not pass it on"
            ))
            .with_our_hint("set it for the role or the database: ALTER ROLE … SET …"));
        }
        let mut config = PoolerConfig::new(PoolerProgram::Found(program.clone()), to);
        config.clients = options.clients.saturating_add(SPARE_CLIENTS);
        config.settings = tls_settings(conninfo)?;
        // A line of the log for each connection would be work of its own under -C.
        config.settings.extend([("log_connections", "0"), ("log_disconnections", "0")]);
        let installation = lab::find::find(None).map_err(|error| could_not("find", &error))?;
        let lab = Lab::open(LabConfig::new(installation));
        let lab = lab.map_err(|error| could_not("start", &error))?;
        Ok(PoolerLab { lab, program, config, settings })
    }

    /// As in "PgBouncer 1.24.1".
    pub(super) fn name(&self) -> String {
        format!("PgBouncer {}", self.program.version().text)
    }

    /// Starts a PgBouncer with so many connections to the server.
    pub(super) fn start(&self, size: u32) -> Result<StandingPooler, Complaint> {
        let config = PoolerConfig { pool: size, ..self.config.clone() };
        let start = || {
            let mut pooler = self.lab.pooler(&format!("pool{size}"), config)?;
            pooler.start()?;
            Ok(pooler)
        };
        let pooler = start().map_err(|error| could_not("start", &error))?;
        let conninfo = server::own_conninfo(&pooler.endpoint().to_string());
        let mut conninfo = conninfo.map_err(Complaint::error)?;
        for (name, value) in &self.settings {
            conninfo.set(name, value);
        }
        let began = cpu_ns(&pooler).map(|cpu_ns| (Instant::now(), cpu_ns));
        Ok(StandingPooler { pooler, conninfo, began })
    }
}

impl StandingPooler {
    /// The share of one CPU that it has used since its start; none where the kernel does not say.
    pub(super) fn cpu_share(&self) -> Option<f64> {
        let (began, before_ns) = self.began?;
        let used_ns = cpu_ns(&self.pooler)?.saturating_sub(before_ns);
        Some(used_ns as f64 / began.elapsed().as_nanos() as f64)
    }
}

fn cpu_ns(pooler: &lab::Pooler) -> Option<u64> {
    let stat = ProcessStat::read(pooler.host_pid()?.cast_unsigned()).ok()?;
    Some(os::usage::own_cpu_ns(&stat, 1_000_000_000 / rustix::param::clock_ticks_per_second()))
}

/// Refuses scripts that leave something with their session.
fn expect_no_session_state(options: &RunOptions) -> Result<(), Complaint> {
    let found = options.scripts.iter().find_map(|script| {
        Some((script, session_state::first(&script.text, options.ours.syntax)?))
    });
    // Without such a statement, any session will do.
    let Some((script, (line, what))) = found else { return Ok(()) };
    let name = &script.name;
    Err(Complaint::error(format_args!(
        "{name}:{line}: {what} belongs to a session, and PgBouncer in transaction mode gives the session to the next \
         client"
    ))
    .with_our_hint(
        "use what ends with the transaction (SET LOCAL, pg_advisory_xact_lock, ON COMMIT DROP), or leave out \
         --pool-sizes",
    ))
}

/// The server as PgBouncer reaches it.
fn endpoint(conninfo: &Conninfo) -> Result<Endpoint, Complaint> {
    let [host] = conninfo.hosts.as_slice() else {
        return Err(Complaint::error(format_args!(
            "--pool-sizes needs one server, and {} are named",
            conninfo.hosts.len()
        ))
        .with_our_hint("name one host"));
    };
    let place = match &host.address {
        HostAddress::Unix { directory } => Host::Unix(directory.into()),
        HostAddress::Tcp { .. } => {
            let name = host.certificate_name().or(host.network_name());
            Host::Tcp(name.expect("a host without a socket has a name in the network").to_owned())
        }
    };
    Ok(Endpoint {
        host: place,
        port: host.port,
        user: conninfo.user.clone(),
        database: conninfo.dbname.clone(),
        password: host.password.clone(),
        // The settings below say more than this can.
        encryption: Encryption::None,
    })
}

/// The same encryption and proof of the server as without a pooler.
fn tls_settings(conninfo: &Conninfo) -> Result<Settings, Complaint> {
    let tls = &conninfo.tls;
    let mut settings = Settings::new();
    settings.set("server_tls_sslmode", tls.mode.name());
    if tls.mode >= SslMode::VerifyCa {
        match tls.root_certificates.as_deref() {
            Some("system") => {
                return Err(Complaint::error(
                    "sslrootcert=system cannot be used with --pool-sizes: PgBouncer needs a file of authorities",
                )
                .with_our_hint("name the file of the operating system, as in sslrootcert=/etc/ssl/certs/ca-certificates.crt"));
            }
            Some(file) => settings.set("server_tls_ca_file", file),
            None => {}
        }
    }
    if let Some((certificate, key)) = tls.certificate.as_ref().zip(tls.key.as_ref()) {
        settings.set("server_tls_cert_file", certificate);
        settings.set("server_tls_key_file", key);
    }
    Ok(settings)
}

fn could_not(what: &str, error: &lab::Error) -> Complaint {
    let complaint =
        Complaint::error(format_args!("could not {what} the PgBouncer of --pool-sizes: {error}"));
    match error.hint() {
        Some(hint) => complaint.with_our_hint(hint),
        None => complaint,
    }
}
