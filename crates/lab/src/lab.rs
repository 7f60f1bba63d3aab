//! The lab itself: what makes nodes, poolers, links and other processes.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use os::command::Command;
use os::user::User;

use crate::ending;
use crate::error::Error;
use crate::files::failed;
use crate::find::Installation;
use crate::lab_config::{Isolation, LabConfig};
use crate::link::{Link, LinkConfig};
use crate::node::{Node, NodeConfig};
use crate::pooler::{Pooler, PoolerConfig};
use crate::process::Process;
use crate::shared::Shared;

/// A running lab. It ends, with all its servers, when the last of it and its nodes is dropped.
#[derive(Debug)]
pub(crate) struct Lab {
    shared: Arc<Shared>,
}

impl Lab {
    /// Makes the directory and starts the init.
    ///
    /// # Errors
    /// A directory that cannot be used, or no isolation; nothing is left behind then.
    pub(crate) fn open(config: LabConfig) -> Result<Self, Error> {
        let shared = Arc::new(Shared::new(config)?);
        ending::register(&shared)?;
        Ok(Self { shared })
    }

    /// A node of this lab, not initialised yet.
    ///
    /// # Errors
    /// A name that is taken or cannot be one, or settings that cannot be made.
    pub(crate) fn node(&self, name: &str, config: NodeConfig) -> Result<Node, Error> {
        Node::new(Arc::clone(&self.shared), name, config)
    }

    /// A PgBouncer of this lab, not started yet.
    ///
    /// # Errors
    /// A name that is taken or cannot be one, or settings that cannot be made.
    pub(crate) fn pooler(&self, name: &str, config: PoolerConfig) -> Result<Pooler, Error> {
        Pooler::new(Arc::clone(&self.shared), name, config)
    }

    /// Any other program of this lab, not started yet. Its directory and where its output goes are
    /// the lab's to choose.
    ///
    /// # Errors
    /// A name that is taken or cannot be one.
    pub(crate) fn process(&self, name: &str, command: Command) -> Result<Process, Error> {
        Process::new(Arc::clone(&self.shared), name, command)
    }

    /// A link of this lab, which is ready for use.
    ///
    /// # Errors
    /// A name that is taken or cannot be one; [`Error::Link`].
    pub(crate) fn link(&self, name: &str, config: LinkConfig) -> Result<Link, Error> {
        Link::open(Arc::clone(&self.shared), name, config)
    }

    /// The directory that everything is in.
    pub(crate) fn directory(&self) -> &Path {
        self.shared.path()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The isolation that is in force.
    pub(crate) fn isolation(&self) -> &Isolation {
        self.shared.isolation()
    }

    /// The PostgreSQL that its nodes run.
    pub(crate) fn installation(&self) -> &Installation {
        &self.shared.installation
    }

    /// The user that its servers run as.
    pub(crate) fn user(&self) -> User {
        self.shared.user
    }

    /// Writes everything of the directory's file system to its disk: what was copied or loaded
    /// is written now and not in the middle of a window, and outlives a power cut.
    ///
    /// # Errors
    /// The file system's.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        let path = self.directory();
        let sync = || Ok(rustix::fs::syncfs(fs::File::open(path)?)?);
        sync().map_err(failed("syncing the file system of", path))
    }
}
