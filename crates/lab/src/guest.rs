//! The rig as a guest on a server of the user's: a schema of its own, which SQL keeps to
//! it, and where statements go: to the server, or into a list of what would be sent.

mod outlet;
mod permit;
mod schema;

use postgres::error::SqlState;
use server::message::with_detail;
use server::quote::identifier;

pub use outlet::Outlet;
pub use permit::{Permit, permit};
pub use schema::{LOOKS, OwnSchema, drop_schema, make_schema, mark};

use crate::target_name::TARGET_SCHEMA;

/// Sets the one schema in which names are looked for.
pub fn set_path(schema: &str) -> String {
    format!("SET search_path TO {}", identifier(schema))
}

/// Sends a command of the user's to the user's server, as far as it keeps to the rig's schema.
pub fn send(sql: &str, outlet: &mut Outlet<'_>) -> Result<(), String> {
    let sent = match permit(sql)? {
        Permit::Send => outlet.run(sql),
        Permit::IfAllowed => match outlet.run(sql) {
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(()),
            sent => sent,
        },
        Permit::OurTables(words) => outlet.tables(TARGET_SCHEMA).and_then(|tables| match tables {
            None => Ok(()),
            Some(tables) => outlet.run(&format!("{words} {tables}")),
        }),
    };
    sent.map_err(|error| with_detail(&error))
}
