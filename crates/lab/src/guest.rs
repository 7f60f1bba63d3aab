//! The rig as a guest on a server of the user's: a schema and a role of its own, by which PostgreSQL keeps a study's SQL
//! to that schema, and where statements go: to the server, or into a list of what would be sent.

mod outlet;
mod role;
mod schema;

use server::Client;
use server::quote::identifier;

pub use outlet::StatementTarget;
pub use role::{SchemaBoundary, StudyRights};
pub use schema::{LOOKS, OwnSchema, list_beginning, list_end, remove_left};

/// Sets the one schema in which names are looked for.
pub fn set_path(schema: &str) -> String {
    format!("SET search_path TO {}", identifier(schema))
}

/// The result of a command that could be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementOutcome {
    /// It was done.
    Done,
    /// The role may not, and nothing depends on it.
    LeftOut,
}

/// Sends a command of a study. A checkpoint asks for no more than a favourable beginning: where the role may not, it is
/// left out.
pub fn send(
    sql: &str,
    outlet: &mut StatementTarget<'_>,
) -> Result<StatementOutcome, postgres::Error> {
    match outlet.run(sql) {
        Err(error) if role::is_denied(&error) && is_checkpoint(sql) => {
            Ok(StatementOutcome::LeftOut)
        }
        sent => sent.map(|()| StatementOutcome::Done),
    }
}

fn is_checkpoint(sql: &str) -> bool {
    sql.trim().trim_end_matches([';', ' ', '\n']).eq_ignore_ascii_case("checkpoint")
}

/// The tables of a schema as a list of a statement has them, none where it has no table.
pub fn tables(client: &mut Client, schema: &str) -> Result<Option<String>, postgres::Error> {
    Ok(client.query_one(TABLES, &[&schema])?.get(0))
}

const TABLES: &str = "SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') \
    FROM pg_catalog.pg_tables WHERE schemaname = $1";
