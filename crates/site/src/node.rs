//! A server of a site, by its name in the study.

use std::path::PathBuf;

use lab::guest::set_path;
use lab::{Server, Way};
use server::Client;
use wire::conninfo::Conninfo;

/// A server and its name in the study.
#[derive(Debug)]
pub struct SiteNode {
    /// Its name in the study.
    pub name: String,
    /// The server.
    pub server: Server,
    /// The address that clients connect to, in keyword form, as the load engine reads it.
    pub conninfo: String,
    /// The one schema in which names are looked for, on a server of the user's.
    pub schema: Option<&'static str>,
}

impl SiteNode {
    /// A connection for the rig's own work; on the user's server in the rig's own schema.
    pub fn connect(&self) -> Result<Client, lab::Error> {
        in_schema(self.server.connect()?, self.schema)
    }

    /// [`SiteNode::connect`], for sessions of other threads.
    pub fn way(&self) -> Way {
        let (way, schema) = (self.server.way(), self.schema);
        Box::new(move |limits| in_schema(way(limits)?, schema))
    }

    /// True if its data lie on a disk whose power can be cut.
    pub fn has_own_disk(&self) -> bool {
        matches!(&self.server, Server::Node(node) if node.has_disk())
    }

    /// The name of the host that it is on; none on this machine, and for a server of the user's.
    pub fn host(&self) -> Option<&str> {
        match &self.server {
            Server::Node(node) => node.host(),
            Server::Managed(_) | Server::Target(_) => None,
        }
    }

    /// True if a manager starts and stops it.
    pub fn is_managed(&self) -> bool {
        matches!(self.server, Server::Managed(_))
    }

    /// The connection string of the probes, which are beside it, in keyword form.
    pub fn probe_conninfo(&self) -> String {
        match &self.server {
            Server::Node(node) => {
                let near = node.near_endpoint().to_string();
                server::keyword_form(&near).unwrap_or(near)
            }
            Server::Managed(_) => self.conninfo.clone(),
            Server::Target(target) => target.login_conninfo().to_owned(),
        }
    }

    /// The database that holds the data.
    pub fn database(&self) -> String {
        let resolved = Conninfo::from_keyword_string(&self.probe_conninfo());
        resolved.map_or_else(|_| "postgres".to_owned(), |conninfo| conninfo.dbname)
    }

    /// Path of the server's log for programs, if it can be read.
    pub fn log(&self) -> Option<PathBuf> {
        match &self.server {
            Server::Node(node) => Some(node.structured_log().1),
            Server::Managed(_) | Server::Target(_) => None,
        }
    }
}

/// The session, with names looked for in this schema alone where there is one.
fn in_schema(mut client: Client, schema: Option<&str>) -> Result<Client, lab::Error> {
    if let Some(schema) = schema {
        let set = set_path(schema);
        client.batch_execute(&set).map_err(|source| lab::Error::Query {
            server: lab::TARGET.to_owned(),
            statement: set,
            source,
        })?;
    }
    Ok(client)
}
