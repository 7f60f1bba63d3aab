//! The connection on which a run is prepared and tables are created: one, blocking.
//!
//! What clients do goes through the load engine; this is administration.

mod connect;
mod message;

pub(crate) use message::text as error_text;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use load::Control;
use postgres::{Client, CopyInWriter, NoTls, SimpleQueryMessage};

use tokio_postgres_rustls::MakeRustlsConnect;
use wire::conninfo::{Conninfo, Given};

use crate::complaint::Complaint;
use crate::options::{Invocation, ServerOptions};

use connect::Failure;

/// The oldest server that is supported.
const OLDEST: u32 = 130_000;

/// A connected server.
pub(crate) struct Server {
    client: Client,
    /// How it is encrypted, where it may be.
    tls: Option<MakeRustlsConnect>,
    version: String,
    version_num: u32,
    notices: Notices,
}

/// What the server says beside its answers, as libpq tells it.
type Notices = Arc<Mutex<Vec<String>>>;

impl Server {
    /// Connects where the user says. Asks for a password when the server wants one and there is
    /// none. The conninfo that did it comes back: clients connect by it too.
    ///
    /// # Errors
    /// In libpq's words when no server will do; when interrupted; and when it is older
    /// than PostgreSQL 13.
    pub(crate) fn open(
        options: &ServerOptions,
        invocation: &Invocation<'_>,
        control: &Control,
    ) -> Result<(Self, Conninfo), Complaint> {
        let resolve = |password| resolve(options, password, invocation.environment);
        let mut conninfo = resolve(None)?;
        let notices = Notices::default();
        let (client, tls) = match connect::connect(&conninfo, &notices, control) {
            Ok(connected) => connected,
            Err(Failure::NoPassword(complaint)) => {
                let Some(password) = (invocation.ask_password)("Password: ") else {
                    return Err(complaint);
                };
                conninfo = resolve(Some(password))?;
                connect::connect(&conninfo, &notices, control).map_err(Failure::into_complaint)?
            }
            Err(failure) => return Err(failure.into_complaint()),
        };
        let server = Server { client, tls, version: String::new(), version_num: 0, notices };
        Ok((server.of_known_version()?, conninfo))
    }

    fn of_known_version(self) -> Result<Self, Complaint> {
        let mut server = self;
        server.version = server.value("show server_version")?.unwrap_or_default();
        let number = server.value("show server_version_num")?.unwrap_or_default();
        server.version_num = number.parse().unwrap_or(0);
        if server.version_num < OLDEST {
            return Err(Complaint::error(format_args!(
                "server version {} is not supported: pgrig needs PostgreSQL 13 or later",
                server.version
            ))
            .with_our_hint("use the pgbench that came with that server"));
        }
        Ok(server)
    }

    /// As the server tells it.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// 150018 for 15.18.
    pub(crate) fn version_num(&self) -> u32 {
        self.version_num
    }

    /// What the server has said since the last time.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// In pgbench's words, with the statement.
    pub(crate) fn execute(&mut self, sql: &str) -> Result<(), Complaint> {
        self.client.batch_execute(sql).map_err(|error| query_failed(&error, sql))
    }

    /// Runs a statement that may fail.
    ///
    /// # Errors
    /// The server's own.
    pub(crate) fn attempt(&mut self, sql: &str) -> Result<(), postgres::Error> {
        self.client.batch_execute(sql)
    }

    /// The first row of a query, as text.
    ///
    /// # Errors
    /// The server's own.
    pub(crate) fn row(
        &mut self,
        sql: &str,
    ) -> Result<Option<Vec<Option<String>>>, postgres::Error> {
        let messages = self.client.simple_query(sql)?;
        Ok(messages.into_iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
            }
            _ => None,
        }))
    }

    /// Begins a COPY from here.
    ///
    /// # Errors
    /// In pgbench's words.
    pub(crate) fn copy_in(&mut self, sql: &str) -> Result<CopyInWriter<'_>, Complaint> {
        self.client.copy_in(sql).map_err(|error| {
            Complaint::error(format_args!(
                "unexpected copy in result: {}",
                message::text(&error, Some(sql))
            ))
            .caused_by(&error)
        })
    }

    /// Whether a table has storage of its own.
    ///
    /// # Errors
    /// In pgbench's words.
    pub(crate) fn is_ordinary_table(&mut self, table: &str) -> Result<bool, Complaint> {
        let sql = format!(
            "select relkind from pg_catalog.pg_class where oid = '{}'::pg_catalog.regclass",
            table.replace('\'', "''")
        );
        Ok(self.value(&sql)?.as_deref() == Some("r"))
    }

    /// Does something with the server, and cancels the statement under way once `interrupted`
    /// says so.
    pub(crate) fn cancel_when<T>(
        &mut self,
        interrupted: &(dyn Fn() -> bool + Sync),
        work: impl FnOnce(&mut Server) -> T,
    ) -> T {
        let (token, tls) = (self.client.cancel_token(), self.tls.clone());
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    if interrupted() {
                        // A cancel that cannot be sent leaves the statement to end by itself.
                        let _ = match &tls {
                            Some(tls) => token.cancel_query(tls.clone()),
                            None => token.cancel_query(NoTls),
                        };
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            });
            let result = work(self);
            done.store(true, Ordering::Relaxed);
            result
        })
    }

    /// Whether `select from …` gives a row.
    ///
    /// # Errors
    /// In pgbench's words.
    pub(crate) fn has(&mut self, from: &str) -> Result<bool, Complaint> {
        Ok(self.value(&format!("select exists (select from {from})"))?.as_deref() == Some("t"))
    }

    /// The first column of the first row.
    ///
    /// # Errors
    /// In pgbench's words.
    pub(crate) fn value(&mut self, sql: &str) -> Result<Option<String>, Complaint> {
        let row = self.row(sql).map_err(|error| query_failed(&error, sql))?;
        Ok(row.and_then(|columns| columns.into_iter().next().flatten()))
    }
}

/// Where the command line, the environment and files say that the server is.
fn resolve(
    options: &ServerOptions,
    password: Option<String>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Conninfo, Complaint> {
    let given = Given {
        host: options.host.clone(),
        port: options.port.clone(),
        user: options.user.clone(),
        password,
        dbname: options.dbname.clone().or_else(|| default_dbname(environment)),
        fallback_application_name: Some("pgbench".to_owned()),
        overrides: Vec::new(),
    };
    server::resolve(&given, environment).map_err(Complaint::error)
}

/// pgbench looks for a database by itself, before libpq does: what the environment says may be a
/// connection string, and a service has no say.
fn default_dbname(environment: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let given = |name: &str| environment(name).filter(|value| !value.is_empty());
    given("PGDATABASE").or_else(|| given("PGUSER")).or_else(server::os_user)
}

/// A failed statement.
pub(crate) fn query_failed(error: &postgres::Error, sql: &str) -> Complaint {
    let message = message::text(error, Some(sql));
    Complaint::error(format_args!("query failed: {message}"))
        .with_detail(format_args!("Query was: {sql}"))
        .caused_by(error)
}
