//! The login as which SQL of a study runs on a server of the user's, so that PostgreSQL itself keeps it from everything
//! that is not the run's.
//!
//! `SET ROLE` in the user's login would be no boundary, because a study can reset it. The run therefore has a role of its
//! own with a password of its own, which owns the schema and nothing else.

use postgres::error::SqlState;
use postgres_protocol::password::scram_sha_256;
use server::message::with_detail;
use server::quote::{identifier, literal};
use server::{Client, Password};

use super::outlet::StatementTarget;
use crate::error::{BoundaryFault, Error, GuestError};
use crate::random::random_hex;
use crate::target_name::{TARGET, TARGET_SCHEMA};

/// The rights of a study's SQL on a server of the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StudyRights {
    /// Those of a login that has the run's schema and nothing else.
    OwnSchema,
    /// Those of the user's login.
    OfLogin,
}

/// The way in which a database keeps SQL of a study to the run's schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaBoundary {
    /// The user's login may make a role for the run.
    MadeRole {
        /// The user's login.
        maker: String,
    },
    /// The user's login has no rights elsewhere: it is the boundary.
    GivenLogin,
}

/// A role that a run has made, and its password.
#[derive(Clone)]
pub(super) struct RunRole {
    pub(super) name: String,
    pub(super) password: Password,
}

impl SchemaBoundary {
    /// Looks for a boundary.
    ///
    /// # Errors
    /// A login with rights elsewhere that may make no role; what the server said.
    pub fn of(client: &mut Client) -> Result<SchemaBoundary, Error> {
        let row = client.query_one(RIGHTS, &[]).map_err(|source| failed(RIGHTS, source))?;
        let (login, may_make, is_limited): (String, bool, bool) =
            (row.get(0), row.get(1), row.get(2));
        match (may_make, is_limited) {
            (true, _) => Ok(SchemaBoundary::MadeRole { maker: login }),
            (false, true) => Ok(SchemaBoundary::GivenLogin),
            (false, false) => {
                let why = BoundaryFault::MayNotMakeRole;
                Err(Error::Guest(GuestError::NoBoundary { login, why }))
            }
        }
    }
}

impl RunRole {
    pub(super) fn new() -> Result<RunRole, Error> {
        let name = format!("{TARGET_SCHEMA}_{}", random_hex(8)?);
        Ok(RunRole { name, password: random_hex(16)?.into() })
    }

    /// A role that stands for that of a run in a list of statements.
    pub(super) fn example() -> RunRole {
        RunRole { name: format!("{TARGET_SCHEMA}_RUN"), password: String::new().into() }
    }

    /// Makes the role and its schema, both or none. The password does not reach the server, whose log may quote the
    /// statement; what proves it does.
    pub(super) fn make(
        &self,
        mark: &str,
        maker: &str,
        outlet: &mut StatementTarget<'_>,
    ) -> Result<(), Error> {
        let (role, schema) = (identifier(&self.name), identifier(TARGET_SCHEMA));
        let verifier = match self.password.reveal() {
            "" => "SCRAM-SHA-256$…".to_owned(),
            password => scram_sha_256(password.as_bytes()),
        };
        let (mark, me) = (literal(mark), identifier(maker));
        let of_role = [
            "BEGIN".to_owned(),
            format!("CREATE ROLE {role} LOGIN PASSWORD {} ROLE {me}", literal(&verifier)),
            format!("COMMENT ON ROLE {role} IS {mark}"),
            format!("ALTER ROLE {role} SET search_path TO {schema}"),
        ];
        let of_schema = [
            format!("CREATE SCHEMA {schema} AUTHORIZATION {role}"),
            // A login that inherits nothing has the rights of the owner as the owner only.
            format!("SET LOCAL ROLE {role}"),
            format!("COMMENT ON SCHEMA {schema} IS {mark}"),
            "COMMIT".to_owned(),
        ];
        let refused = |source: postgres::Error| {
            let why = BoundaryFault::RoleRefused(with_detail(&source));
            Error::Guest(GuestError::NoBoundary { login: maker.to_owned(), why })
        };
        let made =
            of_role.iter().try_for_each(|one| outlet.run(one).map_err(refused)).and_then(|()| {
                of_schema.iter().try_for_each(|one| {
                    outlet.run(one).map_err(|source| super::schema::not_created(one, source))
                })
            });
        if made.is_err() {
            // The statement that failed has ended the transaction.
            let _ = outlet.run("ROLLBACK");
        }
        made?;
        // It changes no data, and trials begin alike by it. Before 15, and for many logins, there is nothing to give.
        let _ = outlet.run(&format!("GRANT pg_checkpoint TO {role}"));
        Ok(())
    }

    /// Lets the role connect to the database where not everybody may.
    pub(super) fn let_in(&self, client: &mut Client) -> Result<(), postgres::Error> {
        let may: bool = client.query_one(MAY_CONNECT, &[&self.name])?.get(0);
        if may {
            return Ok(());
        }
        let grant = database_statement(client, "GRANT CONNECT, TEMPORARY", "TO", &self.name)?;
        client.batch_execute(&grant)
    }
}

/// Ends the sessions of a run's role, and drops what it owns and the role.
pub(super) fn drop_role(name: &str, client: &mut Client) -> Result<(), postgres::Error> {
    if client.query_one(IS_GRANTED, &[&name])?.get(0) {
        let revoke = database_statement(client, "REVOKE ALL", "FROM", name)?;
        client.batch_execute(&revoke)?;
    }
    let dropped =
        drop_statements(name).iter().try_for_each(|statement| client.batch_execute(statement));
    if dropped.is_err() {
        // The statement that failed has ended the transaction.
        let _ = client.batch_execute("ROLLBACK");
    }
    dropped
}

/// The statements that take a role of a run and all that it owns away. A login that inherits no rights has them as the
/// role.
pub(super) fn drop_statements(name: &str) -> [String; 8] {
    let (role, schema) = (identifier(name), identifier(TARGET_SCHEMA));
    [
        "BEGIN".to_owned(),
        format!("SET LOCAL ROLE {role}"),
        END_SESSIONS.to_owned(),
        format!("DROP SCHEMA IF EXISTS {schema} CASCADE"),
        format!("DROP OWNED BY {role}"),
        "RESET ROLE".to_owned(),
        format!("DROP ROLE {role}"),
        "COMMIT".to_owned(),
    ]
}

fn database_statement(
    client: &mut Client,
    verb: &str,
    word: &str,
    role: &str,
) -> Result<String, postgres::Error> {
    let database: String = client.query_one("SELECT current_database()::text", &[])?.get(0);
    Ok(format!("{verb} ON DATABASE {} {word} {}", identifier(&database), identifier(role)))
}

/// The roles that runs in this database have left, each with its comment.
pub(super) fn left_roles(client: &mut Client) -> Result<Vec<(String, String)>, Error> {
    let rows = client.query(LEFT_ROLES, &[]).map_err(|source| failed(LEFT_ROLES, source))?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// True if the server refused something for want of privileges.
pub(super) fn is_denied(error: &postgres::Error) -> bool {
    error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
}

fn failed(statement: &str, source: postgres::Error) -> Error {
    let (server, statement) = (TARGET.to_owned(), statement.to_owned());
    Error::Query { server, statement, source }
}

/// The login; true if it may make roles; true if it has nothing but privileges on this database: no attribute, no
/// membership but in roles that read statistics or write checkpoints, and nothing in any database of the server that it
/// owns or was granted.
pub(super) const RIGHTS: &str = "SELECT r.rolname::text, r.rolsuper OR r.rolcreaterole, \
    NOT (r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls) \
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_auth_members m \
        JOIN pg_catalog.pg_roles of ON of.oid = m.roleid WHERE m.member = r.oid \
        AND of.rolname NOT IN ('pg_checkpoint', 'pg_monitor', 'pg_read_all_settings', \
            'pg_read_all_stats', 'pg_stat_scan_tables')) \
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_shdepend d \
        WHERE d.refclassid = 'pg_catalog.pg_authid'::regclass AND d.refobjid = r.oid \
        AND NOT (d.classid = 'pg_catalog.pg_database'::regclass AND d.deptype = 'a' \
            AND d.objid = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()))) \
    FROM pg_catalog.pg_roles r WHERE r.rolname = session_user";

const MAY_CONNECT: &str =
    "SELECT pg_catalog.has_database_privilege($1::text, current_database()::text, 'CONNECT')";

const IS_GRANTED: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_database d, \
    pg_catalog.aclexplode(d.datacl) a JOIN pg_catalog.pg_roles r ON r.oid = a.grantee \
    WHERE d.datname = current_database() AND r.rolname = $1::text)";

const END_SESSIONS: &str = "SELECT pg_catalog.pg_terminate_backend(pid) \
    FROM pg_catalog.pg_stat_activity WHERE usename = current_user";

/// The comment says in which database.
pub(super) const LEFT_ROLES: &str = "SELECT r.rolname::text, d.description \
    FROM pg_catalog.pg_roles r JOIN pg_catalog.pg_shdescription d \
        ON d.objoid = r.oid AND d.classoid = 'pg_catalog.pg_authid'::regclass \
    WHERE d.description LIKE 'made by pgrig, run %' \
        AND strpos(d.description, format(' in database %I;', current_database())) > 0 ORDER BY 1";
