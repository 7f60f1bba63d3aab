//! A node's WAL archive and base backup: what is left of it when its data are gone.
//!
//! Both lie in the node's directory on the lab's own disk, which no power cut reaches.

use std::path::PathBuf;

use crate::copy::copy_tree;
use crate::error::Error;
use crate::files::{make_directory, remove_tree, write_file};
use crate::inner::node::Node;
use crate::inner::node::standby::IN_RECOVERY;
use crate::inner::program::Runs;
use crate::verb::Backup;

impl Node {
    pub(crate) fn take_backup(&mut self) -> Result<(), Error> {
        self.program.expect_running("backing up")?;
        let backup = self.backup();
        remove_tree(&backup)?;
        let (of, at) = (self.name().to_owned(), self.admin_endpoint());
        self.base_backup(&Backup { of, at }, &backup, None)
    }

    pub(crate) fn restore(&mut self) -> Result<(), Error> {
        let doing = "restoring";
        self.program.expect_stopped(doing)?;
        if !self.backup().is_dir() {
            return Err(self.program.state(doing, "has no base backup"));
        }
        self.remove_data()?;
        let (data, user) = (self.data_here()?, self.program.shared.user);
        copy_tree(&self.backup(), &data, user)?;
        write_file(&data.join("recovery.signal"), "", user)?;
        self.is_restored = true;
        self.start()?;
        self.admin().poll_query_until(IN_RECOVERY, "f", self.config.timeout)
    }

    /// Settings that the archive needs. A restored node reads the archive, and does not write into it.
    pub(super) fn archive_settings(&self) -> Vec<(&'static str, String)> {
        let archive = self.archive();
        let archive = archive.display();
        match (self.config.is_archived, self.is_restored) {
            (false, _) => Vec::new(),
            (true, true) => vec![("restore_command", format!("cp \"{archive}/%f\" \"%p\""))],
            (true, false) => {
                // A segment that is half written when the server dies must not be taken for one.
                let copy = format!("cp \"%p\" \"{archive}/.%f\"");
                let name = format!("mv \"{archive}/.%f\" \"{archive}/%f\"");
                let command = format!("{copy} && {name}");
                vec![("archive_mode", "on".to_owned()), ("archive_command", command)]
            }
        }
    }

    /// Other data than those that the archive belongs to are about to come.
    pub(super) fn empty_archive(&mut self) -> Result<(), Error> {
        self.is_restored = false;
        if !self.config.is_archived {
            return Ok(());
        }
        remove_tree(&self.backup())?;
        remove_tree(&self.archive())?;
        make_directory(&self.archive(), self.program.shared.user)
    }

    fn archive(&self) -> PathBuf {
        self.program.file("archive")
    }

    fn backup(&self) -> PathBuf {
        self.program.file("backup")
    }
}
