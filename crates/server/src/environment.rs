//! libpq's conventions on this machine: what the user gave, completed from the environment and from
//! the files of the user's home.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use wire::conninfo::{
    Conninfo, ConninfoError, ConninfoFileKind, GivenParameters, ParameterSources, SOCKET_DIRECTORY,
};

/// Resolves what the user gave, by libpq's rules.
pub fn resolve(
    given: &GivenParameters,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Conninfo, ConninfoError> {
    let os_user = os_user();
    let home = environment("HOME");
    let sources = ParameterSources {
        environment,
        read: &read,
        exists: &|path| fs::metadata(path).is_ok(),
        os_user: os_user.as_deref(),
        home: home.as_deref(),
        socket_directory: SOCKET_DIRECTORY,
    };
    Conninfo::resolve(given, &sources)
}

/// A connection string as a command's user gives it, resolved by libpq's rules.
pub fn resolve_conninfo(conninfo: &str) -> Result<Conninfo, ConninfoError> {
    let given = GivenParameters {
        dbname: Some(conninfo.to_owned()),
        fallback_application_name: Some("pgrig".to_owned()),
        ..GivenParameters::default()
    };
    resolve(&given, &|name| std::env::var(name).ok())
}

/// The address of a server of our own: neither the environment nor the user's files say anything
/// about it.
pub fn own_conninfo(address: &str) -> Result<Conninfo, ConninfoError> {
    let given = GivenParameters {
        dbname: Some(address.to_owned()),
        fallback_application_name: Some("pgrig".to_owned()),
        ..GivenParameters::default()
    };
    Conninfo::resolve(&given, &ParameterSources::NOTHING)
}

/// The same in keyword form, as the load engine reads it.
pub fn keyword_form(address: &str) -> Result<String, ConninfoError> {
    Ok(own_conninfo(address)?.to_keyword_string())
}

/// A service or password file, unless it is missing or must not be trusted.
fn read(kind: ConninfoFileKind, path: &str) -> Option<String> {
    let mut file = fs::File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let is_private = metadata.is_file() && metadata.permissions().mode() & 0o077 == 0;
    if kind == ConninfoFileKind::Passwords && !is_private {
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    Some(text)
}

/// The operating system's name of this process's user.
pub fn os_user() -> Option<String> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id == uid).then(|| name.to_owned())
    })
}
