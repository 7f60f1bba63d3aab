//! The server that a check means: by its name, or the one that takes writes now.

use std::time::Duration;

use spec::SqlTarget;

use crate::error::Error;
use crate::node::SiteNode;
use crate::site::Site;

impl Site {
    /// The server that is meant; none for the one that the data were built on.
    pub fn whom(&self, whom: Option<&SqlTarget>) -> Result<&SiteNode, Error> {
        match whom {
            // Where they are now is for the manager to say.
            None if self.data_node().is_managed() => self.primary_now(),
            None => Ok(self.data_node()),
            Some(SqlTarget::Node(name)) => {
                self.node(name).ok_or_else(|| Error::NoServer(name.clone()))
            }
            Some(SqlTarget::PrimaryNow) => self.primary_now(),
        }
    }

    /// Waits until a server takes writes.
    pub fn wait_for_primary(&self, timeout: Duration) -> Result<&SiteNode, Error> {
        let mut last = None;
        let found = lab::wait_until(timeout, || match self.primary_now() {
            Ok(node) => Ok(Some(node)),
            Err(error) => {
                last = Some(error);
                Ok::<_, Error>(None)
            }
        })?;
        found.ok_or_else(|| last.unwrap_or(Error::NoPrimary { said: String::new() }))
    }

    /// The server that takes writes; of several, the one with the latest timeline.
    pub fn primary_now(&self) -> Result<&SiteNode, Error> {
        let mut said = Vec::new();
        let mut found: Option<(String, &SiteNode)> = None;
        for node in &self.nodes {
            match node.server.value(TIMELINE) {
                Ok(timeline) => match timeline.filter(|timeline| !timeline.is_empty()) {
                    Some(timeline) => {
                        if found.as_ref().is_none_or(|(latest, _)| *latest < timeline) {
                            found = Some((timeline, node));
                        }
                    }
                    None => {
                        let name = &node.name;
                        said.push(format!("{name} refuses writes or subscribes to another server"));
                    }
                },
                Err(error) => said.push(format!("{}: {error}", node.name)),
            }
        }
        let found = found.map(|(_, node)| node);
        found.ok_or_else(|| Error::NoPrimary { said: said.join("; ") })
    }
}

/// The timeline of a server that takes writes, in hexadecimal digits, and nothing of one that is no primary: a
/// standby, a server that its manager has made read-only, or one that subscribes to another server.
const TIMELINE: &str = "SELECT CASE WHEN current_setting('transaction_read_only')::boolean \
                        OR EXISTS (SELECT FROM pg_subscription WHERE subenabled) THEN '' \
                        ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END";
