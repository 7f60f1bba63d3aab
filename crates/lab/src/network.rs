//! Networks of nodes' own: how a link names one, and the programs that set them up.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The network namespace of a node that has one of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// The number of the node in its lab.
    pub(crate) node: u32,
}

/// A program that sets up a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Interfaces and addresses.
    Ip,
    /// Delay and bandwidth.
    Tc,
    /// Connections.
    Ss,
}

impl Tool {
    pub(crate) const ALL: [Tool; 3] = [Self::Ip, Self::Tc, Self::Ss];

    pub(crate) fn find(self) -> Result<PathBuf, Error> {
        let name = match self {
            Self::Ip => "ip",
            Self::Tc => "tc",
            Self::Ss => "ss",
        };
        let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
        let found = folders.iter().map(|folder| Path::new(folder).join(name)).find(|p| p.is_file());
        found.ok_or(Error::MissingTool { name, package: "iproute2" })
    }
}

/// The addresses of links by namespace.
pub(crate) const LINKS: &str = "198.18.0.0/15";
