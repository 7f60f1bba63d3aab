//! The rig as a guest on a server of the user's: a schema of its own, which SQL keeps to
//! it, and where statements go: to the server, or into a list of what would be sent.

mod outlet;
mod permit;
mod schema;
mod tokens;

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

/// Reason why a command of a study was not done on the user's server.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// It reaches beyond the rig's schema, and was not sent.
    #[error("{0}")]
    Refused(String),
    /// The server refused it.
    #[error("{}", with_detail(.0))]
    Server(#[from] postgres::Error),
}

/// The result of a command that could be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It was done.
    Done,
    /// The role may not, and nothing depends on it.
    LeftOut,
}

/// Sends a command of the user's to the user's server, as far as it keeps to the rig's schema.
pub fn send(sql: &str, outlet: &mut Outlet<'_>) -> Result<Sent, SendError> {
    match permit(sql).map_err(SendError::Refused)? {
        Permit::Send => outlet.run(sql)?,
        Permit::IfAllowed => match outlet.run(sql) {
            Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                return Ok(Sent::LeftOut);
            }
            sent => sent?,
        },
        Permit::OurTables(words) => {
            if let Some(tables) = outlet.tables(TARGET_SCHEMA)? {
                outlet.run(&format!("{words} {tables}"))?;
            }
        }
    }
    Ok(Sent::Done)
}
