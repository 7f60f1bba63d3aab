//! Templates that outlive their lab: what initdb made for an earlier lab is copied for the next one.
//!
//! The environment variable `PGRIG_TEMPLATES` names a folder for them. Without it each lab runs initdb
//! itself, which takes a second of CPU time. Labs with a common folder have a common password of the
//! superuser, which lies in the folder as well; only the servers' user can open it.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use os::user::SystemUser;
use server::Password;

use crate::copy::copy_tree;
use crate::error::Error;
use crate::files::{failed, remove_tree};
use crate::find::Installation;
use crate::lab_config::templates_folder;
use crate::random::{new_password, random_hex};

/// A password for labs that share one: that of the folder of templates where `PGRIG_TEMPLATES` names one, because its
/// templates serve no lab with another password; else one that cannot be guessed.
///
/// # Errors
/// No user to run servers as, or a folder that this user cannot open.
pub fn shared_password() -> Result<Password, Error> {
    let Some(below) = templates_folder() else { return new_password() };
    let user = SystemUser::unprivileged().ok_or(Error::NoServerUser)?;
    Ok(Templates::open(&below, user)?.password)
}

/// A folder of templates and its password.
#[derive(Debug)]
pub(crate) struct Templates {
    folder: PathBuf,
    user: SystemUser,
    password: Password,
}

impl Templates {
    /// The folder of this user below the given one, made where it is missing.
    pub(crate) fn open(below: &Path, user: SystemUser) -> Result<Templates, Error> {
        let folder = below.join(user.uid.to_string());
        let own = random_hex(16)?;
        let read = || {
            match DirBuilder::new().mode(0o700).create(&folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
            let (path, new) = (folder.join("password"), folder.join(&own));
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            file.write_all(own.as_bytes())?;
            // The first lab decides; the others read its password whole.
            let linked = fs::hard_link(&new, &path);
            fs::remove_file(&new)?;
            match linked {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                _ => fs::read_to_string(&path),
            }
        };
        let password = user.access(read).map_err(failed("opening the templates in", &folder))?;
        Ok(Templates { folder, user, password: password.into() })
    }

    /// The superuser's password in every template.
    pub(crate) fn password(&self) -> &Password {
        &self.password
    }

    /// The place of what initdb of this installation makes with these options.
    pub(crate) fn place(&self, installation: &Installation, options: &[String]) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        (env!("CARGO_PKG_VERSION"), options).hash(&mut hasher);
        // A program that is built anew may have another catalogue.
        for program in ["postgres", "initdb"] {
            let path = installation.program(program);
            let seen =
                fs::metadata(&path).map(|file| (file.len(), file.mtime(), file.mtime_nsec()));
            (path, seen.ok()).hash(&mut hasher);
        }
        self.folder.join(format!("{:016x}", hasher.finish()))
    }

    /// True if there is a template at this place.
    pub(crate) fn has(&self, place: &Path) -> bool {
        self.user.access(|| place.try_exists()).unwrap_or(false)
    }

    /// Keeps a copy of a lab's own template at its place, whole or not at all.
    pub(crate) fn keep(&self, template: &Path, place: &Path) -> Result<(), Error> {
        let new = self.folder.join(random_hex(8)?);
        copy_tree(template, &new, self.user)?;
        match self.user.access(|| fs::rename(&new, place)) {
            Ok(()) => Ok(()),
            Err(error) => {
                remove_tree(&new)?;
                // Another lab was faster.
                let is_there = |error: &io::Error| {
                    [ErrorKind::AlreadyExists, ErrorKind::DirectoryNotEmpty].contains(&error.kind())
                };
                if is_there(&error) { Ok(()) } else { Err(failed("keeping", place)(error)) }
            }
        }
    }
}
