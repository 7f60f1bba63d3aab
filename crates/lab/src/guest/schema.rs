//! The rig's schema on a server of the user's: made and marked when a run begins, dropped
//! when it ends. Nothing outside it is made, filled, changed or dropped.
//!
//! The mark is the schema's comment, with the run's id. A schema without the mark is the
//! user's, and so is everything outside that depends on something in it: the run is refused then.

use std::time::Duration;

use postgres::error::SqlState;
use server::Client;
use server::quote::{identifier, literal};

use super::outlet::Outlet;
use crate::error::{Error, GuestError};
use crate::target::Target;
use crate::target_name::{TARGET, TARGET_SCHEMA};

/// The rig's schema on a target; it is dropped when this is.
pub struct OwnSchema {
    target: Target,
    /// The comment by which this run knows its schema.
    mark: String,
    /// Holds the lock that says that a run is under way.
    holder: Client,
    is_left: bool,
}

impl OwnSchema {
    /// Makes the schema, in place of one that a killed run has left.
    ///
    /// # Errors
    /// A schema of that name that is not the rig's, or on which something else depends; another
    /// run in this database; a pooler that shares server connections between sessions; what the
    /// server said.
    pub fn make(target: &Target, run: &str) -> Result<OwnSchema, Error> {
        let mut holder = target.connect()?;
        if !ask::<bool>(&mut holder, LOCK)? {
            return Err(Error::Guest(GuestError::TargetBusy));
        }
        if is_shared(target, &mut holder)? {
            return Err(Error::Guest(GuestError::SharedSessions));
        }
        let mark = mark(run);
        let found = holder.query_opt(FIND, &[&TARGET_SCHEMA]);
        let found = found.map_err(|source| failed(FIND, source))?;
        if let Some(row) = &found {
            let is_ours = row.get::<_, Option<&str>>(0).is_some_and(|text| text.starts_with(MARK));
            if !is_ours {
                return Err(Error::Guest(GuestError::ForeignSchema {
                    schema: TARGET_SCHEMA.to_owned(),
                }));
            }
            if let Some(dependent) = dependent(&mut holder)? {
                let schema = TARGET_SCHEMA.to_owned();
                return Err(Error::Guest(GuestError::SchemaInUse { schema, dependent }));
            }
        }
        let mut outlet = Outlet::Server(&mut holder);
        if found.is_some() {
            drop_schema(&mut outlet)?;
        }
        make_schema(&mark, &mut outlet)?;
        Ok(OwnSchema { target: target.clone(), mark, holder, is_left: false })
    }

    /// Drops the schema, if it still is the one that this run has made.
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
        let Some(found) = found else { return Ok(()) };
        if found.get::<_, Option<&str>>(0) != Some(&self.mark) {
            return Err("its comment is not this run's any more".to_owned());
        }
        if let Some(dependent) = dependent(&mut self.holder).map_err(|error| error.to_string())? {
            return Err(format!("{dependent} depends on it"));
        }
        drop_schema(&mut Outlet::Server(&mut self.holder)).map_err(|error| error.to_string())
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

/// Makes the schema of a run.
pub fn make_schema(mark: &str, outlet: &mut Outlet<'_>) -> Result<(), Error> {
    let schema = identifier(TARGET_SCHEMA);
    let statements = [
        format!("CREATE SCHEMA {schema}"),
        format!("COMMENT ON SCHEMA {schema} IS {}", literal(mark)),
    ];
    statements.iter().try_for_each(|one| {
        outlet.run(one).map_err(|source| match source.code() {
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Error::Guest(GuestError::MayNotCreate {
                words: server::message::with_detail(&source),
            }),
            _ => failed(one, source),
        })
    })
}

/// Drops it.
pub fn drop_schema(outlet: &mut Outlet<'_>) -> Result<(), Error> {
    let statement = format!("DROP SCHEMA {} CASCADE", identifier(TARGET_SCHEMA));
    outlet.run(&statement).map_err(|source| failed(&statement, source))
}

/// Statements that check that a run may begin, and change nothing.
pub const LOOKS: [&str; 4] = [LOCK, PID, FIND, DEPENDENT];

/// The comment of the schema of a run.
pub fn mark(run: &str) -> String {
    format!("{MARK}run {run}; dropped when that run is over")
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

/// Time that the server may take to drop the schema after everything else has ended.
const LEAVING_MAX: Duration = Duration::from_secs(5);

/// Two sessions behind a pooler may be given different processes by chance.
const PROBES: usize = 3;

const FIND: &str = "SELECT obj_description(oid, 'pg_namespace') \
    FROM pg_catalog.pg_namespace WHERE nspname = $1";

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
