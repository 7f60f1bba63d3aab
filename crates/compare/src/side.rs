//! The two servers: what the user says of them, and how they are reached.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use lab::guest::{self, OwnSchema};
use lab::{Lab, Node, Server, TARGET_SCHEMA};
use record::comparison::Side as SideFacts;
use server::Client;

use crate::contest::Ground;
use crate::error::Error;
use crate::tidy::{Tidied, tidy};

/// The user's options for one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideOptions {
    /// A server that runs already; pgrig builds one where nothing is given.
    pub conninfo: Option<String>,
    /// Directory of its programs; the installed PostgreSQL where none is given.
    pub bin: Option<PathBuf>,
    /// Settings of its own, in the order of the command line. On a server that runs already they
    /// are those of the clients' sessions.
    pub settings: Vec<(String, String)>,
    /// A script that is run once after the data are there.
    pub sql: Option<PathBuf>,
}

impl SideOptions {
    /// The option that this side has and the other has not, besides its server.
    #[must_use]
    pub fn difference(&self, other: &SideOptions) -> Option<&'static str> {
        if self.bin != other.bin && self.programs() != other.programs() {
            Some("a bin directory")
        } else if self.sql != other.sql {
            Some("a script")
        } else if self.settings != other.settings {
            Some("a setting")
        } else {
            None
        }
    }

    /// The program that its server would be, without symbolic links; what was given, where that
    /// holds none.
    fn programs(&self) -> Option<PathBuf> {
        let found = lab::find::find(self.bin.as_deref()).ok();
        let postgres = found.and_then(|found| found.program("postgres").canonicalize().ok());
        postgres.or_else(|| self.bin.clone())
    }
}

/// The data that both sides hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// pgbench's tables at this scale.
    Pgbench(u32),
    /// The data that a script makes, or a dump holds.
    File(PathBuf),
}

/// A running server.
pub(crate) struct Side {
    pub(crate) name: &'static str,
    /// Its PostgreSQL, as in `18.1`.
    pub(crate) version: String,
    pub(crate) server: Server,
    /// The address that clients connect to, in keyword form.
    pub(crate) conninfo: String,
    /// Settings of the clients' sessions.
    pub(crate) session: Vec<(String, String)>,
    /// Ends with it: the lab's directory and processes, or pgrig's schema on a server of the user's.
    pub(crate) kind: SideKind,
}

/// The ground that a side stands on.
pub(crate) enum SideKind {
    /// A server that pgrig has made.
    Lab { _lab: Lab },
    /// A schema of pgrig's on a server of the user's. The lock lets threads share a side.
    Schema { _own: Mutex<Box<OwnSchema>> },
    /// A server of the user's on which pgrig makes nothing.
    Guest,
}

impl Side {
    /// Its server, if pgrig has made it.
    pub(crate) fn node(&mut self) -> Option<&mut Node> {
        self.server.node()
    }

    /// An error of its server.
    pub(crate) fn unfit(&self, source: lab::Error) -> Error {
        Error::Server { side: self.name.to_owned(), source }
    }

    /// True if its programs can read relations into shared buffers.
    pub(crate) fn can_warm(&self) -> bool {
        match &self.server {
            Server::Node(node) => node.installation().has_extension("pg_prewarm"),
            Server::Managed(_) | Server::Target(_) => false,
        }
    }

    /// Reads all relations into shared buffers where there is room, and leaves nothing behind.
    pub(crate) fn warm(&self) -> Result<(), Error> {
        self.run(&mut self.connect()?, WARM)
    }

    pub(crate) fn run(&self, client: &mut Client, statement: &str) -> Result<(), Error> {
        client.batch_execute(statement).map_err(|source| self.failed(statement, source))
    }

    /// A statement that the server refused.
    pub(crate) fn failed(&self, statement: &str, source: postgres::Error) -> Error {
        Error::failed(self.name, statement, source)
    }

    /// The facts about it for a record.
    pub(crate) fn facts(&self, options: &SideOptions) -> SideFacts {
        let (bin, server) = match &self.server {
            Server::Node(node) => (Some(node.installation().bin().display().to_string()), None),
            Server::Managed(managed) => (None, Some(managed.name().to_owned())),
            Server::Target(target) => (None, Some(target.place())),
        };
        SideFacts {
            variant: None,
            version: self.version.clone(),
            bin,
            server,
            settings: options.settings.clone(),
            sql: options.sql.as_ref().map(|path| path.display().to_string()),
        }
    }
}

/// The extension goes with the transaction.
const WARM: &str = "
    BEGIN;
    CREATE EXTENSION IF NOT EXISTS pg_prewarm;
    SELECT sum(pg_prewarm(oid)) FROM pg_class
        WHERE relkind IN ('r', 'i', 'm', 't') AND relpersistence <> 't'
          AND (SELECT sum(pg_relation_size(oid)) FROM pg_class)
              < 0.8 * pg_size_bytes(current_setting('shared_buffers'));
    ROLLBACK;";

impl Ground for Side {
    fn name(&self) -> &str {
        self.name
    }

    fn connect(&self) -> Result<Client, Error> {
        let failed = |source| Error::Server { side: self.name.to_owned(), source };
        let mut client = self.server.connect().map_err(failed)?;
        // The tables that the clients see.
        if let SideKind::Schema { .. } = self.kind {
            self.run(&mut client, &guest::set_path(TARGET_SCHEMA))?;
        }
        Ok(client)
    }

    fn pids(&self) -> Vec<u32> {
        let pid = match &self.server {
            Server::Node(node) => node.host_pid().and_then(|pid| u32::try_from(pid).ok()),
            Server::Managed(_) | Server::Target(_) => None,
        };
        pid.into_iter().collect()
    }

    fn logs(&self) -> String {
        match &self.server {
            Server::Node(node) => node.log_text(),
            Server::Managed(_) | Server::Target(_) => String::new(),
        }
    }

    /// Of a server of the user's, only pgrig's own tables are touched.
    fn tidy(&self, limit: Duration) -> Result<Tidied, Error> {
        let schema = match self.kind {
            SideKind::Guest => return Ok(Tidied { seconds: 0.0, is_cut: false }),
            SideKind::Lab { .. } => None,
            SideKind::Schema { .. } => Some(TARGET_SCHEMA),
        };
        tidy(&mut self.connect()?, schema, limit)
            .map_err(|(statement, source)| self.failed(statement, source))
    }
}

/// The text of a file of the user's.
pub fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}
