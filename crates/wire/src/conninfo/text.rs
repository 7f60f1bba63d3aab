//! A whole [`Conninfo`] as a string of keywords and values, and back.
//!
//! What no keyword can say travels under keywords of our own, which only this reader knows: a
//! password per host, and settings that come from the environment.

use super::option::{SETTING_VARIABLES, Values};
use super::resolve::{ParameterSources, from_values};
use super::tls_settings::{CERTIFICATE_MODES, NEGOTIATIONS};
use super::{
    ClientCertificate, Conninfo, ConninfoError, ConninfoHost, HostAddress, LoadBalance,
    PasswordSource, TargetSessionAttrs, keyword_string,
};
use crate::auth::AuthMethods;
use crate::startup::ChannelBindingPolicy;
use crate::tls::SslNegotiation;
use crate::{Password, ProtocolVersion};

/// Before each host's password, or nothing.
const HOST_PASSWORDS: &str = "pgrig_passwords";
/// The password file that the passwords came from.
const PASSFILE: &str = "pgrig_passfile";
/// Before the name of a setting that has a variable but no keyword.
const SETTING: &str = "pgrig_setting_";

/// The reader of what is written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reader {
    /// [`read`], which knows keywords of our own.
    Ourselves,
    /// libpq: one password for all hosts, and settings in `options`.
    Libpq,
}

pub(super) fn write(conninfo: &Conninfo, reader: Reader) -> String {
    let mut text = String::new();
    let mut put = |keyword: &str, value: &str| keyword_string::write(&mut text, keyword, value);
    write_hosts(&conninfo.hosts, &mut put);
    put("user", &conninfo.user);
    put("dbname", &conninfo.dbname);
    match reader {
        Reader::Ourselves => write_passwords(conninfo, &mut put),
        Reader::Libpq => {
            if let Some(passfile) = &conninfo.passfile {
                put("passfile", passfile);
            } else if let Some(password) = password_of_all(&conninfo.hosts) {
                put("password", password.reveal());
            }
        }
    }
    write_settings(conninfo, reader, &mut put);
    write_tls(conninfo, &mut put);
    if conninfo.target != TargetSessionAttrs::Any {
        put("target_session_attrs", conninfo.target.name());
    }
    if conninfo.load_balance == LoadBalance::Random {
        put("load_balance_hosts", "random");
    }
    match conninfo.channel_binding {
        ChannelBindingPolicy::Prefer => {}
        ChannelBindingPolicy::Disable => put("channel_binding", "disable"),
        ChannelBindingPolicy::Require => put("channel_binding", "require"),
    }
    if conninfo.require_auth != AuthMethods::ANY {
        put("require_auth", &conninfo.require_auth.to_string());
    }
    if conninfo.least_protocol != ProtocolVersion::V3_0 {
        put("min_protocol_version", &conninfo.least_protocol.to_string());
    }
    if conninfo.protocol != ProtocolVersion::V3_0 {
        put("max_protocol_version", &conninfo.protocol.to_string());
    }
    if !conninfo.keepalives.enabled {
        put("keepalives", "0");
    }
    let keepalives = conninfo.keepalives;
    for (keyword, value) in [
        ("connect_timeout", conninfo.connect_timeout_s),
        ("keepalives_idle", keepalives.idle_s),
        ("keepalives_interval", keepalives.interval_s),
        ("keepalives_count", keepalives.count),
        ("tcp_user_timeout", keepalives.user_timeout_ms),
    ] {
        if let Some(value) = value {
            put(keyword, &value.to_string());
        }
    }
    if let Some(peer) = &conninfo.require_peer {
        put("requirepeer", peer);
    }
    text
}

fn write_settings(conninfo: &Conninfo, reader: Reader, put: &mut impl FnMut(&str, &str)) {
    let has_keyword = |name: &str| !SETTING_VARIABLES.iter().any(|(_, setting)| *setting == name);
    let mut options = String::new();
    for (name, value) in &conninfo.settings {
        match reader {
            Reader::Libpq if name == "options" => options = format!("{value} {options}"),
            Reader::Libpq if !has_keyword(name) => {
                let value = value.replace('\\', "\\\\").replace(' ', "\\ ");
                options.push_str(&format!("-c {name}={value} "));
            }
            _ if has_keyword(name) => put(name, value),
            _ => put(&format!("{SETTING}{name}"), value),
        }
    }
    if !options.is_empty() {
        put("options", options.trim_end());
    }
}

fn write_hosts(hosts: &[ConninfoHost], put: &mut impl FnMut(&str, &str)) {
    let names: Vec<&str> = hosts
        .iter()
        .map(|host| match &host.address {
            HostAddress::Unix { directory } => directory,
            HostAddress::Tcp { host, .. } => &**host,
        })
        .collect();
    let addresses: Vec<&str> = hosts
        .iter()
        .map(|host| match &host.address {
            HostAddress::Tcp { hostaddr: Some(address), .. } => address,
            _ => "",
        })
        .collect();
    let ports: Vec<String> = hosts.iter().map(|host| host.port.to_string()).collect();
    if names.iter().any(|name| !name.is_empty()) {
        put("host", &names.join(","));
    }
    if addresses.iter().any(|address| !address.is_empty()) {
        put("hostaddr", &addresses.join(","));
    }
    put("port", &ports.join(","));
}

/// The password, where every host has the same.
fn password_of_all(hosts: &[ConninfoHost]) -> Option<&Password> {
    let first = hosts.first()?.password.as_ref()?;
    hosts.iter().all(|host| host.password.as_ref() == Some(first)).then_some(first)
}

fn write_passwords(conninfo: &Conninfo, put: &mut impl FnMut(&str, &str)) {
    let given = |host: &ConninfoHost| host.password_source == PasswordSource::Given;
    if let Some(passfile) = &conninfo.passfile {
        put(PASSFILE, passfile);
    }
    if conninfo.hosts.iter().all(given) {
        if let Some(password) = password_of_all(&conninfo.hosts) {
            return put("password", password.reveal());
        }
        if conninfo.hosts.iter().all(|host| host.password.is_none()) {
            return;
        }
    }
    // One more string of keywords and values, inside the first: the host's number and password.
    let mut inner = String::new();
    for (number, host) in conninfo.hosts.iter().enumerate() {
        if let Some(password) = &host.password {
            let source = if given(host) { "given" } else { "file" };
            keyword_string::write(&mut inner, &format!("{source}{number}"), password.reveal());
        }
    }
    put(HOST_PASSWORDS, &inner);
}

fn write_tls(conninfo: &Conninfo, put: &mut impl FnMut(&str, &str)) {
    let tls = &conninfo.tls;
    put("sslmode", tls.mode.name());
    if tls.negotiation != SslNegotiation::Postgres {
        put("sslnegotiation", word(&NEGOTIATIONS, tls.negotiation));
    }
    if tls.client_certificate != ClientCertificate::Allow {
        put("sslcertmode", word(&CERTIFICATE_MODES, tls.client_certificate));
    }
    if !tls.names_host {
        put("sslsni", "0");
    }
    for (keyword, value) in [
        ("sslrootcert", tls.root_certificates.as_deref()),
        ("sslcert", tls.certificate.as_deref()),
        ("sslkey", tls.key.as_deref()),
        ("sslpassword", tls.key_password.as_ref().map(Password::reveal)),
        ("sslcrl", tls.revoked.as_deref()),
        ("sslcrldir", tls.revoked_directory.as_deref()),
        ("ssl_min_protocol_version", tls.least_version.map(|version| version.name())),
        ("ssl_max_protocol_version", tls.most_version.map(|version| version.name())),
    ] {
        if let Some(value) = value {
            put(keyword, value);
        }
    }
}

fn word<T: PartialEq + Copy>(words: &[(&'static str, T)], meaning: T) -> &'static str {
    words.iter().find(|(_, known)| *known == meaning).map_or("", |(word, _)| word)
}

pub(super) fn read(text: &str) -> Result<Conninfo, ConninfoError> {
    let mut values = Values::default();
    let (mut passwords, mut passfile, mut settings) = (None, None, Vec::new());
    keyword_string::each_pair(text, |keyword, value| {
        match keyword.strip_prefix(SETTING) {
            Some(name) => settings.push((name.to_owned(), value)),
            None if keyword == HOST_PASSWORDS => passwords = Some(value),
            None if keyword == PASSFILE => passfile = Some(value),
            None => values.set(keyword, &value)?,
        }
        Ok(())
    })?;
    let mut conninfo = from_values(&values, &ParameterSources::NOTHING)?;
    conninfo.settings.extend(settings);
    conninfo.passfile = passfile;
    // A text without passwords of single hosts has no pairs of them.
    keyword_string::each_pair(passwords.as_deref().unwrap_or_default(), |place, password| {
        let (source, number) = match place.strip_prefix("file") {
            Some(number) => (PasswordSource::PassFile, number),
            None => (PasswordSource::Given, place.trim_start_matches("given")),
        };
        let unknown = || ConninfoError::UnknownKeyword(place.to_owned());
        let number: usize = number.parse().map_err(|_| unknown())?;
        let host = conninfo.hosts.get_mut(number).ok_or_else(unknown)?;
        host.password = Some(password.into());
        host.password_source = source;
        Ok(())
    })?;
    Ok(conninfo)
}
