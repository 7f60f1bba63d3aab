//! The rig's schema and role on a server of the user's: made and marked when a run begins, dropped when it ends.
//!
//! The mark is their comment, with the run's id. A schema without the mark is the user's, and so is everything outside
//! that depends on something in it: the run is refused then.

use std::time::Duration;

use server::Client;
use server::message::with_detail;
use server::quote::{identifier, literal};

use super::outlet::StatementTarget;
use super::role::{self, RunRole, SchemaBoundary, StudyRights, drop_role, is_denied};
use crate::error::{BoundaryFault, Error, GuestError};
use crate::target::Target;
use crate::target_name::{TARGET, TARGET_SCHEMA};

/// The rig's schema on a target; it is dropped when this is.
pub struct OwnSchema {
    /// With the user's login.
    target: Target,
    /// The same with the login of the study's SQL.
    guest: Target,
    /// The role that owns the schema, if the run has made one.
    role: Option<String>,
    /// True if the user's login had nothing on the server before.
    login_is_boundary: bool,
    /// The comment by which this run knows its schema.
    mark: String,
    /// Holds the lock that says that a run is under way.
    holder: Client,
    is_left: bool,
}

impl OwnSchema {
    /// Makes the schema, in place of one that a killed run has left, and a role for SQL of the study where that is to
    /// have no other rights.
    ///
    /// # Errors
    /// A schema of that name that is not the rig's, or on which something else depends; another
    /// run in this database; a pooler that shares server connections between sessions; no boundary for the study's SQL;
    /// what the server said.
    pub fn make(target: &Target, run: &str, rights: StudyRights) -> Result<OwnSchema, Error> {
        let mut holder = target.connect()?;
        take_lock(&mut holder)?;
        if is_shared(target, &mut holder)? {
            return Err(Error::Guest(GuestError::SharedSessions));
        }
        drop_left(&mut holder)?;
        let boundary = match rights {
            StudyRights::OwnSchema => Some(SchemaBoundary::of(&mut holder)?),
            StudyRights::OfLogin => None,
        };
        let Some(SchemaBoundary::MadeRole { maker }) = boundary else {
            let mark = mark(run);
            make_schema(&mark, &mut StatementTarget::Server(&mut holder))?;
            let login_is_boundary = boundary.is_some();
            let (target, guest, role, is_left) = (target.clone(), target.clone(), None, false);
            return Ok(OwnSchema { target, guest, role, login_is_boundary, mark, holder, is_left });
        };
        let role = RunRole::new()?;
        let mark = mark_of_role(run, &maker, &database(&mut holder)?);
        role.make(&mark, &maker, &mut StatementTarget::Server(&mut holder))?;
        let guest = target.as_role(&role.name, &role.password, ask(&mut holder, SEES_ALL)?);
        // From here on everything goes when this does.
        let mut own = OwnSchema {
            target: target.clone(),
            guest,
            role: Some(role.name.clone()),
            login_is_boundary: false,
            mark,
            holder,
            is_left: false,
        };
        let refused = |words: String| {
            let why = BoundaryFault::LoginRefused(words);
            Error::Guest(GuestError::NoBoundary { login: maker.clone(), why })
        };
        role.let_in(&mut own.holder).map_err(|source| refused(with_detail(&source)))?;
        own.guest.connect().map_err(|error| refused(reason(&error)))?;
        Ok(own)
    }

    /// The server, with the login of the study's SQL.
    pub fn guest(&self) -> &Target {
        &self.guest
    }

    /// Drops the schema and the role, if they still are those that this run has made.
    pub fn leave(&mut self) -> Result<(), String> {
        self.is_left = true;
        // The user's signal may be why this is done now.
        self.holder.set_limits(|limits| {
            limits.control = None;
            limits.answer = Some(LEAVING_MAX);
        });
        if self.holder.is_closed() {
            self.holder = self.target.connect().map_err(|error| error.to_string())?;
        }
        let found = self.holder.query_opt(FIND, &[&TARGET_SCHEMA]);
        let found = found.map_err(|source| failed(FIND, source).to_string())?;
        if let Some(found) = found {
            if found.get::<_, Option<&str>>(0) != Some(&self.mark) {
                return Err("its comment is not this run's any more".to_owned());
            }
            let dependent = dependent(&mut self.holder).map_err(|error| error.to_string())?;
            if let Some(dependent) = dependent {
                return Err(format!("{dependent} depends on it"));
            }
        }
        match &self.role {
            Some(role) => drop_role(role, &mut self.holder).map_err(|error| with_detail(&error)),
            None => self.drop_schema().map_err(|error| error.to_string()),
        }
    }

    /// Drops the schema. A login that had nothing else before owns what the run has made, wherever that is.
    fn drop_schema(&mut self) -> Result<(), Error> {
        let mut outlet = StatementTarget::Server(&mut self.holder);
        drop_schema(&mut outlet)?;
        match self.login_is_boundary {
            true => outlet.run(DROP_OWNED).map_err(|source| failed(DROP_OWNED, source)),
            false => Ok(()),
        }
    }
}

impl Drop for OwnSchema {
    fn drop(&mut self) {
        if !self.is_left {
            // What cannot be dropped now is dropped by the next run.
            let _ = self.leave();
        }
    }
}

/// Removes what killed runs have left in a database of the user's, and says what that was.
///
/// # Errors
/// A run that is under way; a schema that is not the rig's, or on which something else depends; a role that
/// may not; what the server said.
pub fn remove_left(target: &Target) -> Result<Vec<String>, Error> {
    let mut client = target.connect()?;
    take_lock(&mut client)?;
    drop_left(&mut client)
}

fn take_lock(client: &mut Client) -> Result<(), Error> {
    match ask::<bool>(client, LOCK)? {
        true => Ok(()),
        false => Err(Error::Guest(GuestError::TargetBusy)),
    }
}

/// Drops the schema and the roles of killed runs; nobody else can be using them, since the caller has the lock.
fn drop_left(client: &mut Client) -> Result<Vec<String>, Error> {
    let found = client.query_opt(FIND, &[&TARGET_SCHEMA]);
    let found = found.map_err(|source| failed(FIND, source))?;
    let schema = TARGET_SCHEMA.to_owned();
    let mut owner = String::new();
    if let Some(row) = &found {
        let is_ours = row.get::<_, Option<&str>>(0).is_some_and(|text| text.starts_with(MARK));
        if !is_ours {
            return Err(Error::Guest(GuestError::ForeignSchema { schema }));
        }
        if let Some(dependent) = dependent(client)? {
            return Err(Error::Guest(GuestError::SchemaInUse { schema, dependent }));
        }
        owner = row.get(1);
    }
    let mut removed = Vec::new();
    if found.is_some() {
        removed.push(format!("schema {TARGET_SCHEMA}"));
    }
    for (name, comment) in role::left_roles(client)? {
        let what = format!("role {name}");
        drop_role(&name, client).map_err(|source| match is_denied(&source) {
            true => not_yours(&what, maker_of(&comment), &source),
            false => failed(&format!("DROP ROLE {name}"), source),
        })?;
        removed.push(what);
    }
    let statement = format!("DROP SCHEMA IF EXISTS {} CASCADE", identifier(TARGET_SCHEMA));
    if found.is_some() {
        client.batch_execute(&statement).map_err(|source| match is_denied(&source) {
            true => not_yours(&format!("schema {TARGET_SCHEMA}"), &owner, &source),
            false => failed(&statement, source),
        })?;
    }
    Ok(removed)
}

fn not_yours(what: &str, owner: &str, source: &postgres::Error) -> Error {
    let (what, owner) = (what.to_owned(), owner.to_owned());
    Error::Guest(GuestError::NotYours { what, words: with_detail(source), owner })
}

/// What the server or the system said to a login.
fn reason(error: &Error) -> String {
    match error {
        Error::Connect { source, .. } => source.to_string(),
        error => error.to_string(),
    }
}

/// Lists what a run sends to begin, for a login of these rights.
///
/// # Errors
/// No boundary for the study's SQL; what the server said.
pub fn list_beginning(
    target: &Target,
    rights: StudyRights,
    statements: &mut Vec<String>,
) -> Result<Option<SchemaBoundary>, Error> {
    let mut client = target.connect()?;
    let boundary = match rights {
        StudyRights::OwnSchema => Some(SchemaBoundary::of(&mut client)?),
        StudyRights::OfLogin => None,
    };
    match &boundary {
        Some(SchemaBoundary::MadeRole { maker }) => {
            let mark = mark_of_role("RUN", maker, &database(&mut client)?);
            RunRole::example().make(&mark, maker, &mut StatementTarget::List(statements))?;
        }
        _ => make_schema(&mark("RUN"), &mut StatementTarget::List(statements))?,
    }
    Ok(boundary)
}

/// Lists what a run sends in the end.
///
/// # Errors
/// None: nothing is sent.
pub fn list_end(
    boundary: Option<&SchemaBoundary>,
    statements: &mut Vec<String>,
) -> Result<(), Error> {
    match boundary {
        Some(SchemaBoundary::MadeRole { .. }) => {
            statements.extend(role::drop_statements(&RunRole::example().name));
            Ok(())
        }
        Some(SchemaBoundary::GivenLogin) => {
            drop_schema(&mut StatementTarget::List(statements))?;
            statements.push(DROP_OWNED.to_owned());
            Ok(())
        }
        None => drop_schema(&mut StatementTarget::List(statements)),
    }
}

fn make_schema(mark: &str, outlet: &mut StatementTarget<'_>) -> Result<(), Error> {
    let schema = identifier(TARGET_SCHEMA);
    let statements = [
        format!("CREATE SCHEMA {schema}"),
        format!("COMMENT ON SCHEMA {schema} IS {}", literal(mark)),
    ];
    statements.iter().try_for_each(|one| outlet.run(one).map_err(|source| not_created(one, source)))
}

/// The error of a statement that makes the schema.
pub(super) fn not_created(statement: &str, source: postgres::Error) -> Error {
    match is_denied(&source) {
        true => Error::Guest(GuestError::MayNotCreate { words: with_detail(&source) }),
        false => failed(statement, source),
    }
}

fn drop_schema(outlet: &mut StatementTarget<'_>) -> Result<(), Error> {
    let statement = format!("DROP SCHEMA {} CASCADE", identifier(TARGET_SCHEMA));
    outlet.run(&statement).map_err(|source| failed(&statement, source))
}

/// Statements that check that a run may begin, and change nothing.
pub const LOOKS: [&str; 6] = [LOCK, PID, FIND, DEPENDENT, role::LEFT_ROLES, role::RIGHTS];

/// The comment of the schema of a run.
fn mark(run: &str) -> String {
    format!("{MARK}run {run}; dropped when that run is over")
}

/// The comment of a run's role and schema. A role is the server's, and its comment says in which database it was made.
fn mark_of_role(run: &str, maker: &str, database: &str) -> String {
    format!("{MARK}run {run} as {maker}{IN_DATABASE}{}; dropped when that run is over", database)
}

/// The login that has made a role, by the role's comment.
fn maker_of(comment: &str) -> &str {
    let behind = comment.split_once(" as ").map_or("", |(_, rest)| rest);
    behind.split_once(IN_DATABASE).map_or(behind, |(maker, _)| maker)
}

/// The database's name, quoted where it has to be.
fn database(client: &mut Client) -> Result<String, Error> {
    ask(client, "SELECT format('%I', current_database())")
}

/// True if two sessions are given the same server process: then settings of one session, the
/// search path among them, would reach another one.
fn is_shared(target: &Target, first: &mut Client) -> Result<bool, Error> {
    let mut second = target.connect()?;
    for _ in 0..PROBES {
        if ask::<i32>(first, PID)? == ask::<i32>(&mut second, PID)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn dependent(client: &mut Client) -> Result<Option<String>, Error> {
    let row = client.query_opt(DEPENDENT, &[&TARGET_SCHEMA]);
    let row = row.map_err(|source| failed(DEPENDENT, source))?;
    Ok(row.map(|row| row.get(0)))
}

fn ask<T: for<'r> postgres::types::FromSql<'r>>(
    client: &mut Client,
    statement: &str,
) -> Result<T, Error> {
    let row = client.query_one(statement, &[]);
    Ok(row.map_err(|source| failed(statement, source))?.get(0))
}

fn failed(statement: &str, source: postgres::Error) -> Error {
    let (server, statement) = (TARGET.to_owned(), statement.to_owned());
    Error::Query { server, statement, source }
}

/// Beginning of every mark.
const MARK: &str = "made by pgrig, ";

/// Words before the database in the mark of a role.
const IN_DATABASE: &str = " in database ";

/// Time that the server may take to drop the schema after everything else has ended.
const LEAVING_MAX: Duration = Duration::from_secs(5);

/// Two sessions behind a pooler may be given different processes by chance.
const PROBES: usize = 3;

const FIND: &str = "SELECT obj_description(oid, 'pg_namespace'), pg_get_userbyid(nspowner)::text \
    FROM pg_catalog.pg_namespace WHERE nspname = $1";

const SEES_ALL: &str = "SELECT pg_catalog.pg_has_role(session_user, 'pg_read_all_stats', 'USAGE')";

/// The privileges of the login stay: it has no right to give them, and none to revoke them.
const DROP_OWNED: &str = "DROP OWNED BY SESSION_USER";

const PID: &str = "SELECT pg_catalog.pg_backend_pid()";

/// The number is an arbitrary one that is pgrig's. The lock is the database's and ends with the
/// session.
const LOCK: &str = "SELECT pg_catalog.pg_try_advisory_lock(8101754325163541504)";

/// Objects outside the schema that depend on something in it, so that they would be dropped too.
const DEPENDENT: &str = "
    WITH schema AS (SELECT oid FROM pg_namespace WHERE nspname = $1),
    ours AS (
        SELECT 'pg_class'::regclass AS classid, c.oid FROM pg_class c, schema
            WHERE relnamespace = schema.oid
        UNION ALL
        SELECT 'pg_proc'::regclass, p.oid FROM pg_proc p, schema WHERE pronamespace = schema.oid
        UNION ALL
        SELECT 'pg_type'::regclass, t.oid FROM pg_type t, schema WHERE typnamespace = schema.oid
    ),
    dependents AS (
        SELECT DISTINCT d.classid, d.objid, d.objsubid
        FROM pg_depend d JOIN ours ON d.refclassid = ours.classid AND d.refobjid = ours.oid
        WHERE d.deptype IN ('n', 'a')
    )
    SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
    FROM dependents d, schema
    WHERE CASE d.classid
        WHEN 'pg_class'::regclass THEN (SELECT relnamespace FROM pg_class WHERE oid = d.objid)
        WHEN 'pg_proc'::regclass THEN (SELECT pronamespace FROM pg_proc WHERE oid = d.objid)
        WHEN 'pg_type'::regclass THEN (SELECT typnamespace FROM pg_type WHERE oid = d.objid)
        WHEN 'pg_constraint'::regclass
            THEN (SELECT connamespace FROM pg_constraint WHERE oid = d.objid)
        WHEN 'pg_rewrite'::regclass THEN (SELECT relnamespace FROM pg_class
            WHERE oid = (SELECT ev_class FROM pg_rewrite WHERE oid = d.objid))
        WHEN 'pg_trigger'::regclass THEN (SELECT relnamespace FROM pg_class
            WHERE oid = (SELECT tgrelid FROM pg_trigger WHERE oid = d.objid))
        WHEN 'pg_attrdef'::regclass THEN (SELECT relnamespace FROM pg_class
            WHERE oid = (SELECT adrelid FROM pg_attrdef WHERE oid = d.objid))
        WHEN 'pg_policy'::regclass THEN (SELECT relnamespace FROM pg_class
            WHERE oid = (SELECT polrelid FROM pg_policy WHERE oid = d.objid))
        END <> schema.oid
    ORDER BY 1 LIMIT 1";
