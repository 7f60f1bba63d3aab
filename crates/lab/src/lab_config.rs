//! The configuration of a lab, and how isolated it is.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use server::Password;

use crate::find::Installation;

/// The configuration of a lab.
#[derive(Debug, Clone)]
pub struct LabConfig {
    /// The PostgreSQL of its nodes.
    pub installation: Installation,
    /// Its directory, which must be empty or not exist; one of its own below the system's
    /// temporary directory where none is given.
    pub directory: Option<PathBuf>,
    /// The superuser's password for connections over TCP; a random one where none is given.
    pub password: Option<Password>,
    /// A folder for what initdb makes, which later labs with this folder copy; `PGRIG_TEMPLATES`.
    pub templates: Option<PathBuf>,
    /// Treatment of the directory at the end.
    pub at_end: AtEnd,
    /// The isolation that is asked for.
    pub isolation: IsolationWish,
}

impl LabConfig {
    /// A lab in a temporary directory, as isolated as this machine allows.
    pub fn new(installation: Installation) -> Self {
        let (at_end, isolation) = (AtEnd::Remove, IsolationWish::Best);
        let templates = templates_folder();
        Self { installation, directory: None, password: None, templates, at_end, isolation }
    }
}

/// The folder that `PGRIG_TEMPLATES` names.
pub(crate) fn templates_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("PGRIG_TEMPLATES").filter(|place| !place.is_empty());
    folder.map(PathBuf::from)
}

/// Treatment of a lab's directory at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtEnd {
    /// It is removed, even if the rig is killed.
    Remove,
    /// It stays, to be looked at, until clean() is told to remove it.
    Keep,
}

/// The isolation that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationWish {
    /// Namespaces if they are allowed here, else a keeper.
    Best,
    /// Namespaces or nothing.
    Namespaces,
    /// A keeper, even where namespaces are allowed.
    Keeper,
}

/// The isolation that is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// Mount, PID and IPC namespaces, made as root.
    Namespaces,
    /// The same, as a plain user in a user namespace.
    UserNamespace,
    /// A keeper process; why there are no namespaces, if they were asked for.
    Keeper {
        /// Each way that was tried, and why it failed.
        reasons: Vec<String>,
    },
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespaces => write!(f, "mount, PID and IPC namespaces"),
            Self::UserNamespace => write!(f, "mount, PID and IPC namespaces of a plain user"),
            Self::Keeper { reasons } if reasons.is_empty() => write!(f, "a keeper process"),
            Self::Keeper { reasons } => write!(f, "a keeper process ({})", reasons.join("; ")),
        }
    }
}
