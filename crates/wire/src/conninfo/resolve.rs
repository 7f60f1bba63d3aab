//! From what was given, by whatever way, to one [`Conninfo`].

use super::error::shown;
use super::option::{SETTING_VARIABLES, number};
use super::service_file::Lookup;
use super::{
    Conninfo, ConninfoError, ConninfoHost, HostAddress, Keepalives, LoadBalance, PasswordSource,
    TargetSessionAttrs, TlsSettings, Values, keyword_string, pass_file, service_file, uri,
};
use crate::startup::ChannelBindingPolicy;
use crate::{Password, ProtocolVersion};

/// The directory of the server's socket when no host is given, as Debian's libpq has it. The sources'
/// default, /tmp, is none: anybody may put a socket there while the server is down, and would be sent
/// the password.
pub const SOCKET_DIRECTORY: &str = "/var/run/postgresql";

/// Directory in which Debian's libpq looks for `pg_service.conf` unless PGSYSCONFDIR says
/// otherwise.
pub const SERVICE_DIRECTORY: &str = "/etc/postgresql-common";

const DEFAULT_PORT: u16 = 5432;

/// Values that the user gave on the command line or in a file of ours.
#[derive(Clone, Default)]
pub struct GivenParameters {
    /// `-h`
    pub host: Option<String>,
    /// `-p`
    pub port: Option<String>,
    /// `-U`
    pub user: Option<String>,
    /// A password that was asked for.
    pub password: Option<Password>,
    /// A database name, a string of keywords, or a URI. What the latter two say wins over the
    /// fields above, as it does in PostgreSQL's own programs.
    pub dbname: Option<String>,
    /// The application name unless another one is given.
    pub fallback_application_name: Option<String>,
    /// Keywords and values that win over everything else.
    pub overrides: Vec<(String, String)>,
}

/// Sources of everything that was not given.
pub struct ParameterSources<'a> {
    /// Looks up an environment variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file; `None` if it is not there, or must not be used. A password file that others
    /// may read or that is no regular file must not be.
    pub read: &'a dyn Fn(ConninfoFileKind, &str) -> Option<String>,
    /// True if there is a file: those of `~/.postgresql` count only if they are there.
    pub exists: &'a dyn Fn(&str) -> bool,
    /// The operating system's name of this process's user.
    pub os_user: Option<&'a str>,
    /// That user's home directory.
    pub home: Option<&'a str>,
    /// The directory of the socket when no host is given: [`SOCKET_DIRECTORY`] but in tests.
    pub socket_directory: &'a str,
}

impl ParameterSources<'_> {
    /// No environment, no file and no user: only what was given counts.
    pub const NOTHING: Self = ParameterSources {
        environment: &|_| None,
        read: &|_, _| None,
        exists: &|_| false,
        os_user: None,
        home: None,
        socket_directory: SOCKET_DIRECTORY,
    };
}

/// Purpose of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConninfoFileKind {
    /// Named groups of settings.
    Service,
    /// Passwords: must be a regular file that only its owner may read or write (0600).
    Passwords,
}

pub(super) fn resolve(
    given: &GivenParameters,
    sources: &ParameterSources<'_>,
) -> Result<Conninfo, ConninfoError> {
    let mut values = explicit(given)?;
    apply_service(&mut values, sources)?;
    values.set_absent_from(sources.environment);
    from_values(&values, sources)
}

fn explicit(given: &GivenParameters) -> Result<Values, ConninfoError> {
    let mut values = Values::default();
    let mut set = |name, value: &Option<String>| match value.as_deref() {
        None | Some("") => Ok(()),
        Some(value) => values.set(name, value),
    };
    set("host", &given.host)?;
    set("port", &given.port)?;
    set("user", &given.user)?;
    set("password", &given.password.as_ref().map(|password| password.reveal().to_owned()))?;
    if let Some(dbname) = given.dbname.as_deref().filter(|dbname| !dbname.is_empty()) {
        check_scheme(dbname)?;
        match (uri::after_scheme(dbname), dbname.contains('=')) {
            (Some(rest), _) => values.overlay(uri::parse(dbname, rest)?),
            (None, true) => values.overlay(keyword_string::parse(dbname)?),
            (None, false) => {
                check_name(dbname)?;
                values.set("dbname", dbname)?;
            }
        }
    }
    // PostgreSQL's own programs name themselves behind the database, so that this is not theirs to
    // say there.
    if let Some(name) = given.fallback_application_name.as_deref().filter(|name| !name.is_empty()) {
        values.set("fallback_application_name", name)?;
    }
    for (name, value) in &given.overrides {
        values.set(name, value)?;
    }
    Ok(values)
}

/// Refuses what is a URI, but not one of ours: its password would be taken for a part of a name, and
/// messages would show it.
fn check_scheme(text: &str) -> Result<(), ConninfoError> {
    // A text without `:/` is no URI.
    let Some((scheme, _)) = text.split_once(":/") else { return Ok(()) };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.:".contains(c);
    if uri::after_scheme(text).is_some() || scheme.is_empty() || !scheme.chars().all(is_scheme) {
        return Ok(());
    }
    Err(ConninfoError::ForeignScheme(scheme.to_owned()))
}

/// Refuses `user:password@host/db` as a database's name.
fn check_name(dbname: &str) -> Result<(), ConninfoError> {
    match dbname.split_once(':') {
        Some((_, rest)) if rest.contains('@') => Err(ConninfoError::NoScheme),
        _ => Ok(()),
    }
}

fn apply_service(values: &mut Values, sources: &ParameterSources<'_>) -> Result<(), ConninfoError> {
    let environment = sources.environment;
    let Some(service) =
        values.given("service").map(str::to_owned).or_else(|| environment("PGSERVICE"))
    else {
        // Without a service, the other sources are all there is.
        return Ok(());
    };
    let named = values.owned("servicefile").or_else(|| environment("PGSERVICEFILE"));
    let directory = environment("PGSYSCONFDIR").unwrap_or_else(|| SERVICE_DIRECTORY.to_owned());
    let user = match (&named, sources.home) {
        (Some(path), _) => Some(path.clone()),
        (None, Some(home)) => Some(format!("{home}/.pg_service.conf")),
        (None, None) => None,
    };
    for path in user.into_iter().chain([format!("{directory}/pg_service.conf")]) {
        let Some(text) = (sources.read)(ConninfoFileKind::Service, &path) else {
            if named.as_ref() == Some(&path) {
                return Err(ConninfoError::ServiceFileNotFound(path));
            }
            continue;
        };
        if service_file::apply(values, &service, &path, &text)? == Lookup::Found {
            return Ok(());
        }
    }
    Err(ConninfoError::ServiceNotFound(service))
}

/// The last step: everything is known by keyword, but for the password file.
pub(super) fn from_values(
    values: &Values,
    sources: &ParameterSources<'_>,
) -> Result<Conninfo, ConninfoError> {
    let mut hosts = hosts(values, sources)?;
    let user = match (values.value("user"), sources.os_user) {
        (Some(user), _) | (None, Some(user)) => user.to_owned(),
        (None, None) => return Err(ConninfoError::NoUser),
    };
    let dbname = values.owned("dbname").unwrap_or_else(|| user.clone());
    let passfile = passwords(&mut hosts, values, sources, &dbname, &user);
    let (least_protocol, protocol) = protocols(values)?;
    if values.word(
        "gssencmode",
        false,
        &[("disable", false), ("prefer", false), ("require", true)],
    )? {
        return Err(ConninfoError::GssRequired);
    }
    let policies = [
        ("disable", ChannelBindingPolicy::Disable),
        ("prefer", ChannelBindingPolicy::Prefer),
        ("require", ChannelBindingPolicy::Require),
    ];
    let balances = [("disable", LoadBalance::Disable), ("random", LoadBalance::Random)];
    Ok(Conninfo {
        hosts,
        user,
        dbname,
        target: values.word(
            "target_session_attrs",
            TargetSessionAttrs::Any,
            &TargetSessionAttrs::WORDS,
        )?,
        load_balance: values.word("load_balance_hosts", LoadBalance::Disable, &balances)?,
        connect_timeout_s: positive(values, "connect_timeout")?,
        tls: TlsSettings::from_values(values, sources)?,
        channel_binding: values.word("channel_binding", ChannelBindingPolicy::Prefer, &policies)?,
        // An empty list demands no method, as none does.
        require_auth: values.value("require_auth").unwrap_or_default().parse()?,
        protocol,
        least_protocol,
        settings: settings(values, sources),
        keepalives: Keepalives {
            enabled: values.number("keepalives")? != Some(0),
            idle_s: positive(values, "keepalives_idle")?,
            interval_s: positive(values, "keepalives_interval")?,
            count: positive(values, "keepalives_count")?,
            user_timeout_ms: positive(values, "tcp_user_timeout")?,
        },
        require_peer: values.owned("requirepeer"),
        passfile,
    })
}

/// Matches the lists of hosts, addresses and ports with each other.
fn hosts(
    values: &Values,
    sources: &ParameterSources<'_>,
) -> Result<Vec<ConninfoHost>, ConninfoError> {
    let list = |name| values.value(name).map(|text| text.split(',').collect::<Vec<_>>());
    let (names, addresses, ports) = (list("host"), list("hostaddr"), list("port"));
    let count = addresses.as_ref().or(names.as_ref()).map_or(1, Vec::len);
    let names = names.unwrap_or_else(|| vec![""; count]);
    let addresses = addresses.unwrap_or_else(|| vec![""; count]);
    if names.len() != count {
        return Err(ConninfoError::HostsAndAddresses { hosts: names.len(), addresses: count });
    }
    let ports = match ports {
        None => vec![""; count],
        Some(ports) if ports.len() == 1 => vec![ports[0]; count],
        Some(ports) if ports.len() == count => ports,
        Some(ports) => {
            return Err(ConninfoError::PortsAndHosts { ports: ports.len(), hosts: count });
        }
    };
    let mut hosts = Vec::with_capacity(count);
    for ((name, hostaddr), port) in names.into_iter().zip(addresses).zip(ports) {
        let host = host(address(name, hostaddr, sources.socket_directory)?, port)?;
        host.check_path()?;
        hosts.push(host);
    }
    Ok(hosts)
}

fn host(address: HostAddress, port: &str) -> Result<ConninfoHost, ConninfoError> {
    let port = port_number(port)?;
    Ok(ConninfoHost { address, port, password: None, password_source: PasswordSource::Given })
}

fn address(
    name: &str,
    hostaddr: &str,
    default_directory: &str,
) -> Result<HostAddress, ConninfoError> {
    if !hostaddr.is_empty() {
        // A zone ("%eth0") is for the resolver to understand.
        let number = hostaddr.split('%').next().unwrap_or_default();
        if number.parse::<std::net::IpAddr>().is_err() {
            return Err(ConninfoError::InvalidAddress(shown(hostaddr)));
        }
        return Ok(HostAddress::Tcp { host: name.to_owned(), hostaddr: Some(hostaddr.to_owned()) });
    }
    Ok(if name.is_empty() {
        HostAddress::Unix { directory: default_directory.to_owned() }
    } else if name.starts_with(['/', '@']) {
        HostAddress::Unix { directory: name.to_owned() }
    } else {
        HostAddress::Tcp { host: name.to_owned(), hostaddr: None }
    })
}

fn port_number(text: &str) -> Result<u16, ConninfoError> {
    if text.is_empty() {
        return Ok(DEFAULT_PORT);
    }
    let port = number(text, "port")?;
    u16::try_from(port)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| ConninfoError::InvalidPort(shown(text)))
}

/// Gives each host its password; returns the password file that was looked into.
fn passwords(
    hosts: &mut [ConninfoHost],
    values: &Values,
    sources: &ParameterSources<'_>,
    dbname: &str,
    user: &str,
) -> Option<String> {
    if let Some(password) = values.value("password") {
        for host in hosts {
            host.password = Some(password.into());
        }
        return None;
    }
    let default = || sources.home.map(|home| format!("{home}/.pgpass"));
    let path = values.owned("passfile").or_else(default)?;
    let text = (sources.read)(ConninfoFileKind::Passwords, &path)?;
    for host in hosts {
        let name = host.pass_file_name(sources.socket_directory);
        host.password =
            pass_file::password(&text, name, host.port, dbname, user).map(Password::from);
        if host.password.is_some() {
            host.password_source = PasswordSource::PassFile;
        }
    }
    Some(path)
}

fn protocols(values: &Values) -> Result<(ProtocolVersion, ProtocolVersion), ConninfoError> {
    let versions = [
        ("3.0", ProtocolVersion::V3_0),
        ("3.2", ProtocolVersion::V3_2),
        ("latest", ProtocolVersion::V3_2),
    ];
    let least = values.word("min_protocol_version", ProtocolVersion::V3_0, &versions)?;
    // Some poolers stumble over anything newer than 3.0, so it is asked for only on request.
    let most = values.word("max_protocol_version", least, &versions)?;
    if least > most {
        return Err(ConninfoError::VersionRange);
    }
    Ok((least, most))
}

fn settings(values: &Values, sources: &ParameterSources<'_>) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        settings.extend(value.map(|value| (name.to_owned(), value)));
    };
    add("replication", values.owned("replication"));
    add("options", values.owned("options"));
    // An empty name is a name: it keeps the fallback out.
    let application = values.given("application_name");
    let application = application.or_else(|| values.given("fallback_application_name"));
    add("application_name", application.filter(|name| !name.is_empty()).map(str::to_owned));
    // "auto" means that of the locale; this program's texts are UTF-8 whatever the locale says.
    let encoding = values.owned("client_encoding");
    add("client_encoding", encoding.map(|name| if name == "auto" { "UTF8".into() } else { name }));
    for (variable, name) in SETTING_VARIABLES {
        let value = (sources.environment)(variable);
        add(name, value.filter(|value| !value.eq_ignore_ascii_case("default")));
    }
    settings
}

/// A number above 0; anything else means the default.
fn positive(values: &Values, keyword: &'static str) -> Result<Option<u32>, ConninfoError> {
    let number = values.number(keyword)?;
    Ok(number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0))
}
