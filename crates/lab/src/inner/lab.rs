//! The lab itself: its directory and its init.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use os::init::Init;
use os::user::SystemUser;

use crate::answer::LabOpened;
use crate::ending;
use crate::error::Error;
use crate::files::failed;
use crate::inner::shared::Shared;
use crate::lab_config::LabConfig;

/// A running lab. It ends, with all its servers, when the last of it and its nodes is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Lab {
    shared: Arc<Shared>,
}

impl Lab {
    /// Makes the directory and starts the init.
    pub(crate) fn open(config: LabConfig) -> Result<Self, Error> {
        let shared = Arc::new(Shared::new(config)?);
        ending::register(&shared)?;
        Ok(Self { shared })
    }

    /// Its facts for its handles.
    pub(crate) fn opened(&self) -> LabOpened {
        LabOpened {
            installation: self.shared.installation.clone(),
            isolation: self.shared.isolation().clone(),
            directory: self.directory().to_owned(),
            user: self.user(),
        }
    }

    /// The directory that everything is in.
    pub(crate) fn directory(&self) -> &Path {
        self.shared.path()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The user that its servers run as.
    pub(crate) fn user(&self) -> SystemUser {
        self.shared.user
    }

    /// False once its init has ended.
    pub(crate) fn is_alive(&self) -> bool {
        self.shared.init().is_ok_and(Init::is_alive)
    }

    pub(crate) fn sync(&self) -> Result<(), Error> {
        let path = self.directory();
        let sync = || Ok(rustix::fs::syncfs(fs::File::open(path)?)?);
        sync().map_err(failed("syncing the file system of", path))
    }
}
