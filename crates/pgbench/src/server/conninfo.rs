//! Where the command line, the environment and files say that the server is.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use wire::conninfo::{Conninfo, FileKind, Given, SOCKET_DIRECTORIES, Sources};

use crate::complaint::Complaint;
use crate::options::ServerOptions;

/// Resolves what the user gave, by libpq's rules.
///
/// # Errors
/// In libpq's words.
pub(crate) fn resolve(
    options: &ServerOptions,
    password: Option<String>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Conninfo, Complaint> {
    let os_user = os_user();
    let home = environment("HOME");
    let given = Given {
        host: options.host.clone(),
        port: options.port.clone(),
        user: options.user.clone(),
        password,
        dbname: options.dbname.clone(),
        fallback_application_name: Some("pgbench".to_owned()),
        overrides: Vec::new(),
    };
    let sources = Sources {
        environment,
        read: &read,
        os_user: os_user.as_deref(),
        home: home.as_deref(),
        socket_directories: SOCKET_DIRECTORIES,
    };
    Conninfo::resolve(&given, &sources).map_err(Complaint::error)
}

/// A service or password file, unless it is missing or must not be trusted.
fn read(kind: FileKind, path: &str) -> Option<String> {
    let mut file = fs::File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let is_private = metadata.is_file() && metadata.permissions().mode() & 0o077 == 0;
    if kind == FileKind::Passwords && !is_private {
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    Some(text)
}

/// The operating system's name of this process's user.
fn os_user() -> Option<String> {
    // The owner of the process's own directory is its effective user.
    let uid = fs::metadata("/proc/self").ok()?.uid().to_string();
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id == uid).then(|| name.to_owned())
    })
}
