//! Destination of the statements of the initialisation: a server, or a list that says what would be
//! sent. The steps do not know which.

use crate::complaint::Complaint;
use crate::server::Server;

pub(crate) enum Outlet<'a> {
    /// To a server.
    Server(&'a mut Server),
    /// Into a list, as for a server of this version.
    List { statements: &'a mut Vec<String>, version_num: u32 },
}

impl Outlet<'_> {
    /// Sends a statement, or lists it.
    pub(super) fn execute(&mut self, sql: &str) -> Result<(), Complaint> {
        match self {
            Outlet::Server(server) => server.execute(sql),
            Outlet::List { statements, .. } => {
                statements.push(sql.to_owned());
                Ok(())
            }
        }
    }

    pub(super) fn version_num(&self) -> u32 {
        match self {
            Outlet::Server(server) => server.version_num(),
            Outlet::List { version_num, .. } => *version_num,
        }
    }

    /// True if a table has storage of its own; in a list, one that has just been created has.
    pub(super) fn is_ordinary_table(&mut self, table: &str) -> Result<bool, Complaint> {
        match self {
            Outlet::Server(server) => server.is_ordinary_table(table),
            Outlet::List { .. } => Ok(true),
        }
    }

    /// True if `select from …` gives a row; a list asks no server.
    pub(super) fn has(&mut self, from: &str) -> Result<bool, Complaint> {
        match self {
            Outlet::Server(server) => server.has(from),
            Outlet::List { .. } => Ok(false),
        }
    }

    pub(super) fn take_notices(&mut self) -> Vec<String> {
        match self {
            Outlet::Server(server) => server.take_notices(),
            Outlet::List { .. } => Vec::new(),
        }
    }
}
