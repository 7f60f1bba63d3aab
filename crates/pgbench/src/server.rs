//! The connection on which a run is prepared and tables are created: one, blocking.
//!
//! What clients do goes through the load engine; this is administration. Every wait hears the user's
//! signals.

mod message;

pub(crate) use message::text as error_text;

use std::str::FromStr;

use load::LoadControl;
use postgres::SimpleQueryMessage;
use probe::VacuumHorizon;
use server::{Client, ConnectError, CopyIn, Limits};
use wire::Password;
use wire::conninfo::{Conninfo, GivenParameters};

use crate::complaint::Complaint;
use crate::options::{Invocation, ServerOptions};

/// The oldest server that is supported.
const OLDEST: u32 = 130_000;

pub(crate) struct Server {
    client: Client,
    version: String,
    version_num: u32,
}

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
        control: &LoadControl,
    ) -> Result<(Self, Conninfo), Complaint> {
        let resolve = |password| resolve(options, password, invocation.environment);
        let mut conninfo = resolve(None)?;
        let limits = Limits::of_questions().heard_by(control);
        let client = match server::connect(&conninfo, &limits) {
            Err(error) if error.wants_password() => {
                let Some(password) = (invocation.ask_password)("Password: ") else {
                    return Err(refused(&error));
                };
                conninfo = resolve(Some(password.into()))?;
                server::connect(&conninfo, &limits)
            }
            connected => connected,
        };
        let client = client.map_err(|error| refused(&error))?;
        let server = Server { client, version: String::new(), version_num: 0 };
        Ok((server.of_known_version()?, conninfo))
    }

    fn of_known_version(self) -> Result<Self, Complaint> {
        let mut server = self;
        let version = server.value("show server_version")?;
        let number = server.value("show server_version_num")?;
        let known = version.zip(number.and_then(|number| number.parse().ok()));
        (server.version, server.version_num) = known.ok_or_else(|| {
            Complaint::error(
                "could not read the server's version: SHOW server_version_num gave no number",
            )
            .with_our_hint("connect to the server itself, or to a pooler that passes SHOW on to it")
        })?;
        if server.version_num < OLDEST {
            return Err(Complaint::error(format_args!(
                "server version {} is not supported: pgrig needs PostgreSQL 13 or later",
                server.version
            ))
            .with_our_hint("use the pgbench that came with that server"));
        }
        // What creates or reads tables may take hours.
        server.client.set_limits(|limits| limits.answer = None);
        Ok(server)
    }

    /// As the server tells it.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn version_num(&self) -> u32 {
        self.version_num
    }

    /// Takes the notices of the server since the last time.
    pub(crate) fn take_notices(&mut self) -> Vec<String> {
        self.client.take_notices().iter().map(|notice| message::server(notice, None)).collect()
    }

    pub(crate) fn execute(&mut self, sql: &str) -> Result<(), Complaint> {
        self.client.batch_execute(sql).map_err(|error| query_failed(&error, sql))
    }

    /// Runs a statement that may fail.
    pub(crate) fn attempt(&mut self, sql: &str) -> Result<(), postgres::Error> {
        self.client.batch_execute(sql)
    }

    /// The first row of a query, as text.
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

    /// What keeps VACUUM from removing dead rows, and how many there are; else why that cannot be read.
    pub(crate) fn horizon(&mut self) -> Result<VacuumHorizon, String> {
        let name = self.value("select pg_catalog.current_database()");
        let name = name.map_err(|complaint| complaint.to_string())?;
        let name = name.ok_or("the server did not say which database this is")?;
        VacuumHorizon::read(&mut self.client, &name).map_err(|error| error.to_string())
    }

    /// Begins a COPY from here.
    pub(crate) fn copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>, Complaint> {
        self.client.copy_in(sql).map_err(|error| {
            Complaint::error(format_args!(
                "unexpected copy in result: {}",
                message::text(&error, Some(sql))
            ))
            .caused_by(&error)
        })
    }

    /// True if a table has storage of its own.
    pub(crate) fn is_ordinary_table(&mut self, table: &str) -> Result<bool, Complaint> {
        let sql = format!(
            "select relkind from pg_catalog.pg_class where oid = '{}'::pg_catalog.regclass",
            table.replace('\'', "''")
        );
        Ok(self.value(&sql)?.as_deref() == Some("r"))
    }

    /// True if `select from …` gives a row.
    pub(crate) fn has(&mut self, from: &str) -> Result<bool, Complaint> {
        Ok(self.value(&format!("select exists (select from {from})"))?.as_deref() == Some("t"))
    }

    /// The first column of the first row.
    pub(crate) fn value(&mut self, sql: &str) -> Result<Option<String>, Complaint> {
        let row = self.row(sql).map_err(|error| query_failed(&error, sql))?;
        Ok(row.and_then(|columns| columns.into_iter().next().flatten()))
    }

    /// The first column of the first row of a query that counts something.
    ///
    /// # Errors
    /// The query's; an answer that is no count, as of a server that is no PostgreSQL.
    pub(crate) fn count(&mut self, sql: &str) -> Result<u64, Complaint> {
        let answer = self.value(sql)?;
        count(answer.as_deref(), sql)
    }
}

/// The count in the answer to a query that counts something.
pub(crate) fn count<T: FromStr>(answer: Option<&str>, sql: &str) -> Result<T, Complaint> {
    let counted = answer.and_then(|answer| answer.parse().ok());
    counted.ok_or_else(|| {
        let said = answer.map_or("nothing".to_owned(), |answer| format!("\"{answer}\""));
        Complaint::error(format_args!("the server answered {said} to a query that counts"))
            .with_detail(format_args!("Query was: {sql}"))
            .with_our_hint("it may be no PostgreSQL server: look at what listens at that address")
    })
}

/// Address of the server from the command line, the environment and files.
fn resolve(
    options: &ServerOptions,
    password: Option<Password>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Conninfo, Complaint> {
    let given = GivenParameters {
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

/// No session, in libpq's words.
fn refused(error: &ConnectError) -> Complaint {
    let complaint = Complaint::error(error);
    match error.hint() {
        Some(hint) => complaint.with_our_hint(hint),
        None => complaint,
    }
}

pub(crate) fn query_failed(error: &postgres::Error, sql: &str) -> Complaint {
    let message = message::text(error, Some(sql));
    Complaint::error(format_args!("query failed: {message}"))
        .with_detail(format_args!("Query was: {sql}"))
        .caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_no_count_is_refused_with_what_was_said() {
        let check = |answer: Option<&str>, expected: Result<u32, &str>| {
            let counted = count::<u32>(answer, "select count(*) from branches");
            match (counted, expected) {
                (Ok(counted), Ok(expected)) => assert_eq!(counted, expected),
                (Err(complaint), Err(expected)) => {
                    let text = complaint.to_string();
                    assert!(text.contains(expected), "{text}");
                    assert!(text.contains("select count(*) from branches"), "{text}");
                }
                (counted, _) => panic!("{answer:?} is {counted:?}"),
            }
        };
        check(Some("3"), Ok(3));
        check(None, Err("the server answered nothing to a query that counts"));
        check(Some("many"), Err("the server answered \"many\" to a query that counts"));
        check(Some("-1"), Err("\"-1\""));
        // More than there can be of that.
        check(Some("4294967296"), Err("\"4294967296\""));
    }
}
