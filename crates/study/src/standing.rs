//! Servers that stand beside another point's, and are loaded in turn with them.

use std::path::Path;

use compare::Ground;
use server::Client;
use server::message::with_detail;
use site::Site;

/// One side's servers.
pub(crate) struct Standing<'a> {
    /// What the side is called in messages.
    pub(crate) name: &'a str,
    pub(crate) site: &'a Site,
}

impl Ground for Standing<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn connect(&self) -> Result<Client, compare::Error> {
        self.site.data_node().connect().map_err(|error| self.failed(error))
    }

    /// Poolers and guards count: their cores are not the servers'.
    fn pids(&self) -> Vec<u32> {
        self.site.processes().map(|(_, pid)| pid).collect()
    }

    fn logs(&self) -> String {
        let nodes = self.site.nodes.iter().filter_map(|node| match &node.server {
            lab::Server::Node(server) => Some(server.log_text()),
            lab::Server::Target(_) => None,
        });
        nodes.collect()
    }

    fn tidy(&self) -> Result<(), compare::Error> {
        let mut client = self.connect()?;
        for statement in ["VACUUM", "CHECKPOINT"] {
            let failed = |source| compare::Error::failed(self.name, statement, source);
            client.batch_execute(statement).map_err(failed)?;
        }
        Ok(())
    }
}

impl Standing<'_> {
    /// Runs a script of the user's where the data are.
    pub(crate) fn run_script(&self, path: &Path, text: &str) -> Result<(), compare::Error> {
        let failed = |error: postgres::Error| {
            let why = format!("{}: {}", path.display(), with_detail(&error));
            compare::Error::Data { side: self.name.to_owned(), why }
        };
        self.connect()?.batch_execute(text).map_err(failed)
    }

    fn failed(&self, source: lab::Error) -> compare::Error {
        compare::Error::Server { side: self.name.to_owned(), source }
    }
}
