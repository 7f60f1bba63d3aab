//! The server that a check means: by its name, or the one that takes writes now.

use spec::Whom;

use crate::error::Error;
use crate::node::SiteNode;
use crate::site::Site;

impl Site {
    /// The server that is meant; none for the one that the data were built on.
    ///
    /// # Errors
    /// [`Error::NoServer`]; [`Error::NoPrimary`] with what each server said.
    pub fn whom(&self, whom: Option<&Whom>) -> Result<&SiteNode, Error> {
        match whom {
            None => Ok(self.data_node()),
            Some(Whom::Node(name)) => self.node(name).ok_or_else(|| Error::NoServer(name.clone())),
            Some(Whom::PrimaryNow) => self.primary_now(),
        }
    }

    /// The server that takes writes; of several, the one with the latest timeline.
    ///
    /// # Errors
    /// [`Error::NoPrimary`] with what each server said.
    pub fn primary_now(&self) -> Result<&SiteNode, Error> {
        let mut said = Vec::new();
        let mut found: Option<(String, &SiteNode)> = None;
        for node in &self.nodes {
            match node.server.value(TIMELINE) {
                Ok(Some(timeline)) if timeline.is_empty() => {
                    said.push(format!("{} is a standby", node.name));
                }
                Ok(timeline) => {
                    let timeline = timeline.unwrap_or_default();
                    if found.as_ref().is_none_or(|(latest, _)| *latest < timeline) {
                        found = Some((timeline, node));
                    }
                }
                Err(error) => said.push(format!("{}: {error}", node.name)),
            }
        }
        let found = found.map(|(_, node)| node);
        found.ok_or_else(|| Error::NoPrimary { said: said.join("; ") })
    }
}

/// The timeline of a server that takes writes, in hexadecimal digits, and nothing of a standby.
const TIMELINE: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN '' \
                        ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END";
