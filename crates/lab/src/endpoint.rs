//! The address of a server, as clients are told.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use postgres::SimpleQueryMessage;
use serde::{Deserialize, Serialize};

use server::{Client, ConnectError, Limits, Password};

use crate::error::Error;

/// A server's address, and as whom to go there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The place.
    pub host: Host,
    /// The port, which also names the Unix socket.
    pub port: u16,
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// The password, where the way there asks for one.
    #[serde(default, with = "crate::carried_password")]
    pub password: Option<Password>,
    /// The encryption of the way there.
    pub encryption: Encryption,
}

/// The encryption of the way to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encryption {
    /// It is not.
    #[default]
    None,
    /// By TLS. The certificate is the server's own, so that it proves nothing by itself.
    Tls,
    /// By TLS whose certificate is bound to the password by SCRAM: a server between the two ends is
    /// noticed (RFC 5802, channel binding). PgBouncer does not know it.
    BoundTls,
}

/// A way to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Host {
    /// The directory that holds its Unix socket.
    Unix(PathBuf),
    /// A name or address.
    Tcp(String),
}

impl Endpoint {
    /// The same server and role, another database.
    #[must_use]
    pub fn with_database(mut self, database: impl Into<String>) -> Self {
        self.database = database.into();
        self
    }

    /// The same without its password, for messages and process lists.
    pub(crate) fn without_password(&self) -> Self {
        Self { password: None, ..self.clone() }
    }

    /// The options of PostgreSQL's client programs that lead there, the database last.
    pub(crate) fn libpq_arguments(&self) -> Vec<OsString> {
        let host: OsString = match &self.host {
            Host::Unix(directory) => directory.into(),
            Host::Tcp(name) => name.into(),
        };
        let port = self.port.to_string();
        let (user, database) = (OsString::from(&self.user), OsString::from(&self.database));
        vec![
            "--host".into(),
            host,
            "--port".into(),
            port.into(),
            "--username".into(),
            user,
            database,
        ]
    }

    /// An administrator's connection to `server`, as errors name it.
    pub(crate) fn connect(&self, server: &str) -> Result<Client, Error> {
        self.connect_within(server, &Limits::of_administration())
    }

    /// A connection to `server` with these limits.
    pub(crate) fn connect_within(&self, server: &str, limits: &Limits) -> Result<Client, Error> {
        let failed = |source| {
            let (place, source) = (self.without_password().to_string(), Box::new(source));
            Error::Connect { server: server.to_owned(), place, source }
        };
        let conninfo = server::own_conninfo(&self.to_string())
            .map_err(|error| failed(ConnectError::Conninfo(error)))?;
        server::connect(&conninfo, limits).map_err(failed)
    }
}

/// The first column of the first row that a statement gives, as text.
pub(crate) fn first_value(
    client: &mut Client,
    statement: &str,
    server: &str,
) -> Result<Option<String>, Error> {
    let messages = client.simple_query(statement).map_err(|source| Error::Query {
        server: server.to_owned(),
        statement: statement.to_owned(),
        source,
    })?;
    Ok(messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

/// As a conninfo string of keywords and values, understood by libpq and by `wire`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match &self.host {
            Host::Unix(directory) => directory.to_string_lossy(),
            Host::Tcp(name) => name.into(),
        };
        write!(f, "host={} port={} user={}", quoted(&host), self.port, quoted(&self.user))?;
        write!(f, " dbname={}", quoted(&self.database))?;
        if let Some(password) = &self.password {
            write!(f, " password={}", quoted(password.reveal()))?;
        }
        match self.encryption {
            Encryption::None => Ok(()),
            // A user's ~/.postgresql/root.crt knows nothing of a certificate of the run.
            Encryption::Tls => write!(f, " sslmode=require sslrootcert={NO_FILE}"),
            Encryption::BoundTls => {
                write!(f, " sslmode=require sslrootcert={NO_FILE} channel_binding=require")
            }
        }
    }
}

/// Values with anything but plain characters stand in single quotes, where `\` and `'` are
/// escaped by `\` (libpq, "Keyword/Value Connection Strings").
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', r"\\").replace('\'', r"\'"))
}

/// A path that is not there: then sslmode=require asks for no authority (libpq, "sslrootcert").
pub(crate) const NO_FILE: &str = "/nonexistent";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conninfo_strings_are_quoted_as_libpq_reads_them() {
        let check = |host, password: Option<&str>, expected| {
            let endpoint = Endpoint {
                host,
                port: 5432,
                user: "postgres".into(),
                database: "a b".into(),
                password: password.map(Password::from),
                encryption: Encryption::None,
            };
            assert_eq!(endpoint.to_string(), expected);
        };
        check(
            Host::Unix("/tmp/pgrig-x/s".into()),
            None,
            "host=/tmp/pgrig-x/s port=5432 user=postgres dbname='a b'",
        );
        check(
            Host::Tcp("127.0.0.1".into()),
            Some(r"it's \"),
            r"host=127.0.0.1 port=5432 user=postgres dbname='a b' password='it\'s \\'",
        );
    }
}
