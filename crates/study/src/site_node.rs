//! A server of a site, by its name in the study.

use std::path::PathBuf;

use lab::Server;
use postgres::Client;

use crate::sql::set_path;

/// A server and its name in the study.
#[derive(Debug)]
pub(crate) struct SiteNode {
    pub(crate) name: String,
    pub(crate) server: Server,
    /// What clients connect to, in keyword form, as the load engine reads it.
    pub(crate) conninfo: String,
    /// The one schema in which names are looked for, on a server that is somebody else's.
    pub(crate) schema: Option<&'static str>,
}

impl SiteNode {
    /// A connection for the rig's own work; on somebody else's server in the rig's own schema.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(crate) fn connect(&self) -> Result<Client, lab::Error> {
        let mut client = self.server.connect()?;
        if let Some(schema) = self.schema {
            let set = set_path(schema);
            client.batch_execute(&set).map_err(|source| lab::Error::Query {
                server: lab::TARGET.to_owned(),
                statement: set,
                source,
            })?;
        }
        Ok(client)
    }

    /// Whether its data lie on a disk whose power can be cut.
    pub(crate) fn has_own_disk(&self) -> bool {
        matches!(&self.server, Server::Node(node) if node.disk().is_some())
    }

    /// What the probes connect to.
    pub(crate) fn probe_conninfo(&self) -> String {
        match &self.server {
            Server::Node(_) => self.server.conninfo(),
            Server::Target(target) => crate::outside::probe_form(target),
        }
    }

    /// The database that holds the data.
    pub(crate) fn database(&self) -> String {
        let parsed = self.probe_conninfo().parse::<postgres::Config>();
        let named = parsed.ok().and_then(|config| config.get_dbname().map(str::to_owned));
        named.unwrap_or_else(|| "postgres".to_owned())
    }

    /// Where the server's log for programs is, if it can be read.
    pub(crate) fn log(&self) -> Option<PathBuf> {
        match &self.server {
            Server::Node(node) => Some(node.structured_log().1),
            Server::Target(_) => None,
        }
    }

    /// The postmaster's process.
    pub(crate) fn pid(&self) -> Option<u32> {
        match &self.server {
            Server::Node(node) => node.host_pid().and_then(|pid| u32::try_from(pid).ok()),
            Server::Target(_) => None,
        }
    }
}
