//! A node's WAL archive and base backups: what is left of it when its data are gone.
//!
//! Both lie on the lab's own disk, which no power cut reaches: the archive in the directory of the node that it
//! is named after, a backup in the directory of the node that it was taken of.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os::command::ProcessOutput;
use os::user::SystemUser;

use crate::archive::{ArchiveTool, ArchivedFile, BackupVerdict, RestoreOrder};
use crate::copy::copy_tree;
use crate::error::Error;
use crate::files::{failed, make_directory, remove_file, remove_tree, write_file};
use crate::inner::node::standby::IN_RECOVERY;
use crate::inner::node::{Node, pgbackrest};
use crate::inner::program::Runs;
use crate::verb::Backup;

impl Node {
    /// Takes a base backup of that name; where it lies.
    pub(crate) fn take_backup(&mut self, name: &str) -> Result<PathBuf, Error> {
        self.program.expect_running("backing up")?;
        if let Some(ArchiveTool::PgBackRest(program)) = self.archive_tool() {
            return self.take_by_pgbackrest(&program);
        }
        let all = self.backups();
        if !all.is_dir() {
            make_directory(&all, self.program.shared.user)?;
        }
        let backup = all.join(name);
        remove_tree(&backup)?;
        let (of, at) = (self.name().to_owned(), self.admin_endpoint());
        self.base_backup(&Backup { of, at }, &backup, None)?;
        Ok(backup)
    }

    /// Compares a base backup with its manifest (pg_verifybackup).
    pub(crate) fn verify_backup(&mut self, backup: &Path) -> Result<BackupVerdict, Error> {
        self.make_directories()?;
        let output = self.program.file("verify.log");
        write_file(&output, "", self.program.shared.user)?;
        let command = self
            .program
            .shared
            .command("pg_verifybackup", self.directory())
            // The WAL is the archive's.
            .args(["--no-parse-wal", "--quiet"])
            .arg(backup)
            .stdout(ProcessOutput::File(output.clone()))
            .stderr(ProcessOutput::File(output.clone()));
        let exit = self.program.shared.run(&command, VERIFIED_WITHIN)?;
        Ok(BackupVerdict { is_intact: exit.is_success(), said: self.program.tail(&output, 0) })
    }

    pub(crate) fn restore(&mut self, order: RestoreOrder) -> Result<(), Error> {
        let doing = "restoring";
        self.program.expect_stopped(doing)?;
        if !order.backup.is_dir() {
            return Err(self.program.state(doing, "has no base backup"));
        }
        self.make_directories()?;
        self.remove_data()?;
        let (data, user) = (self.data_here()?, self.program.shared.user);
        match &order.tool {
            ArchiveTool::Copy => copy_tree(&order.backup, &data, user).map(drop)?,
            ArchiveTool::PgBackRest(program) => self.restore_by_pgbackrest(program, &order)?,
        }
        // That of a standby would follow its primary again.
        remove_file(&data.join("standby.signal"), self.program.owner)?;
        write_file(&data.join("recovery.signal"), "", user)?;
        self.restored_by = Some(order);
        self.start()?;
        self.admin().poll_query_until(IN_RECOVERY, "f", self.config.timeout)
    }

    /// The files of its archive, each with its beginning, in the order of their names.
    pub(crate) fn read_archive(&self) -> Result<Vec<ArchivedFile>, Error> {
        let archive = self.archive_directory()?;
        let user = self.program.shared.user;
        let mut files = Vec::new();
        let mut left = match self.archive_tool() {
            Some(ArchiveTool::PgBackRest(_)) => vec![pgbackrest::segments(&archive)],
            _ => vec![archive],
        };
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).map_err(failed("reading", &directory))? {
                let entry = entry.map_err(failed("reading", &directory))?;
                let name = entry.file_name().to_string_lossy().into_owned();
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => left.push(entry.path()),
                    // A copy that is under way has another name.
                    Ok(kind) if kind.is_file() && !name.starts_with('.') => {
                        let name = pgbackrest::without_digest(&name).to_owned();
                        files.push(read_head(name, &entry.path(), user)?);
                    }
                    _ => {}
                }
            }
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// Settings that the archive needs. A restored node reads the archive, and does not write into it.
    pub(super) fn archive_settings(&self) -> Vec<(String, String)> {
        let setting = |name: &str, value: String| (name.to_owned(), value);
        if let Some(RestoreOrder { archive, recovery, tool, .. }) = &self.restored_by {
            let fetch = match tool {
                ArchiveTool::Copy => format!("cp \"{}/%f\" \"%p\"", archive.display()),
                ArchiveTool::PgBackRest(program) => self.get_command(program, archive),
            };
            let command = setting("restore_command", fetch);
            return recovery
                .iter()
                .map(|(n, v)| setting(n, v.to_owned()))
                .chain([command])
                .collect();
        }
        let Some(archive) = self.archive() else { return Vec::new() };
        // A standby archives what it receives as well: what its primary had not archived when it died is in no archive
        // else.
        let mode = if self.owns_archive() { "on" } else { "always" };
        let mode = setting("archive_mode", mode.to_owned());
        if let Some(ArchiveTool::PgBackRest(program)) = self.archive_tool() {
            let command = self.push_command(&program, &archive);
            return vec![mode, setting("archive_command", command)];
        }
        let (archive, name) = (archive.display(), self.name());
        // What is there is not replaced: the same segment of another server need not be the same. A segment that is
        // half written when the server dies must not be taken for one.
        let part = format!("\"{archive}/.%f.{name}\"");
        let command = format!(
            "if [ -f \"{archive}/%f\" ]; then cmp -s \"%p\" \"{archive}/%f\"; \
             else cp \"%p\" {part} && mv {part} \"{archive}/%f\"; fi"
        );
        vec![mode, setting("archive_command", command)]
    }

    /// Other data than those that the archive belongs to are about to come.
    pub(super) fn empty_archive(&mut self) -> Result<(), Error> {
        self.restored_by = None;
        remove_tree(&self.backups())?;
        match self.archive() {
            // Another node's is not this one's to empty.
            Some(archive) if self.owns_archive() => {
                remove_tree(&archive)?;
                make_directory(&archive, self.program.shared.user)
            }
            _ => Ok(()),
        }
    }

    /// The directory of the archive that it writes to.
    pub(super) fn archive(&self) -> Option<PathBuf> {
        let config = self.config.archive.as_ref()?;
        Some(self.program.shared.node_directory(&config.of).join("archive"))
    }

    /// True if the archive is named after it.
    pub(super) fn owns_archive(&self) -> bool {
        self.config.archive.as_ref().is_some_and(|config| config.of == self.name())
    }

    pub(super) fn archive_tool(&self) -> Option<ArchiveTool> {
        self.config.archive.as_ref().map(|config| config.tool.clone())
    }

    /// [`Node::archive`], for who asks for it.
    pub(crate) fn archive_directory(&self) -> Result<PathBuf, Error> {
        let none = || self.program.state("reading the archive", "has no archive");
        self.archive().ok_or_else(none)
    }

    fn backups(&self) -> PathBuf {
        self.program.file("backups")
    }
}

/// A file by its beginning, or whole if it is a timeline's history.
fn read_head(name: String, path: &Path, user: SystemUser) -> Result<ArchivedFile, Error> {
    let most = if name.ends_with(".history") { HISTORY_BYTES_MAX } else { HEAD_BYTES };
    let read = || {
        let file = fs::File::open(path)?;
        let bytes = file.metadata()?.len();
        let mut head = Vec::new();
        file.take(most).read_to_end(&mut head)?;
        Ok((bytes, head))
    };
    let (bytes, head) = user.access(read).map_err(failed("reading", path))?;
    Ok(ArchivedFile { name, bytes, head })
}

/// Bytes of the header of a segment's first page (XLogLongPageHeaderData).
const HEAD_BYTES: u64 = 40;
/// A line for each promotion.
const HISTORY_BYTES_MAX: u64 = 1 << 20;
/// It reads a backup at the speed of the disk.
const VERIFIED_WITHIN: Duration = Duration::from_secs(1800);
