//! A node's archive and backups by pgBackRest: a repository in the directory of the archive, without compression and
//! without a configuration file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os::command::ProcessOutput;

use crate::archive::{ArchiveTool, RestoreOrder};
use crate::error::Error;
use crate::files::{failed, make_directory, write_file};
use crate::inner::initdb::SUPERUSER;
use crate::inner::node::Node;

impl Node {
    /// Makes the repository of an archive that is kept by pgBackRest and is empty, before its server archives.
    pub(super) fn make_stanza(&self) -> Result<(), Error> {
        let (Some(ArchiveTool::PgBackRest(program)), Some(archive)) =
            (self.archive_tool(), self.archive().filter(|_| self.owns_archive()))
        else {
            // Another tool, or the archive of another node, which has made it.
            return Ok(());
        };
        match segments(&archive).is_dir() || self.restored_by.is_some() {
            true => Ok(()),
            false => {
                let what = ["--no-online".to_owned(), "stanza-create".to_owned()];
                self.pgbackrest(&program, &archive, what)
            }
        }
    }

    /// Takes a full backup; where it lies in the repository.
    pub(super) fn take_by_pgbackrest(&self, program: &Path) -> Result<PathBuf, Error> {
        let archive = self.archive_directory()?;
        let how = ["--type=full", "--start-fast", "--no-resume", NO_COMPRESSION, "backup"];
        let how = self.connection().into_iter().chain(how.map(str::to_owned));
        self.pgbackrest(program, &archive, how)?;
        let all = archive.join("backup").join(STANZA);
        let latest = all.join("latest");
        let label = fs::read_link(&latest).map_err(failed("reading", &latest))?;
        Ok(all.join(label))
    }

    /// Makes the data from a backup of the repository; the settings of the recovery are the caller's.
    pub(super) fn restore_by_pgbackrest(
        &self,
        program: &Path,
        order: &RestoreOrder,
    ) -> Result<(), Error> {
        let data = self.data_here()?;
        make_directory(&data, self.program.shared.user)?;
        let Some(label) = order.backup.file_name() else {
            return Err(self.program.state("restoring", "has no base backup"));
        };
        let set = format!("--set={}", label.to_string_lossy());
        let how = [set, "--type=none".to_owned(), "restore".to_owned()];
        self.pgbackrest(program, &order.archive, how)
    }

    /// The archive_command of a server that archives into a repository.
    pub(super) fn push_command(&self, program: &Path, archive: &Path) -> String {
        self.for_shell(program, archive, &[NO_COMPRESSION, "archive-push", "%p"])
    }

    /// The restore_command of a server that is restored from a repository.
    pub(super) fn get_command(&self, program: &Path, archive: &Path) -> String {
        self.for_shell(program, archive, &["archive-get", "%f", "%p"])
    }

    fn for_shell(&self, program: &Path, archive: &Path, what: &[&str]) -> String {
        let words = [program.display().to_string()].into_iter().chain(self.options(archive));
        let words = words.chain(what.iter().map(|word| (*word).to_owned()));
        words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" ")
    }

    /// Options of every command.
    fn options(&self, archive: &Path) -> Vec<String> {
        vec![
            "--no-config".to_owned(),
            format!("--stanza={STANZA}"),
            format!("--repo1-path={}", archive.display()),
            format!("--pg1-path={}", self.data().display()),
            format!("--lock-path={}", self.program.file("pgbackrest-lock").display()),
            "--log-level-file=off".to_owned(),
            "--log-level-console=warn".to_owned(),
        ]
    }

    /// Options of commands that ask the server.
    fn connection(&self) -> [String; 3] {
        [
            format!("--pg1-socket-path={}", self.program.shared.sockets().display()),
            format!("--pg1-port={}", self.port.number),
            format!("--pg1-user={SUPERUSER}"),
        ]
    }

    fn pgbackrest(
        &self,
        program: &Path,
        archive: &Path,
        what: impl IntoIterator<Item = String>,
    ) -> Result<(), Error> {
        let output = self.program.file("pgbackrest.log");
        write_file(&output, "", self.program.shared.user)?;
        let command = self
            .program
            .shared
            .command_of(program, self.directory())
            .args(self.options(archive))
            .args(what)
            .stdout(ProcessOutput::File(output.clone()))
            .stderr(ProcessOutput::File(output.clone()));
        let exit = self.program.shared.run(&command, TIMEOUT)?;
        match exit.is_success() {
            true => Ok(()),
            false => {
                let (node, output) = (self.name().to_owned(), self.program.tail(&output, 0));
                Err(Error::PgBackRest { node, exit, output })
            }
        }
    }
}

/// The directory of a repository's segments.
pub(super) fn segments(repository: &Path) -> PathBuf {
    repository.join("archive").join(STANZA)
}

/// The name of a segment, without the digest that pgBackRest appends.
pub(super) fn without_digest(name: &str) -> &str {
    match name.split_once('-') {
        Some((segment, digest)) if segment.len() == 24 && digest.len() == 40 => segment,
        _ => name,
    }
}

const STANZA: &str = "pgrig";
/// The headers of segments are read.
const NO_COMPRESSION: &str = "--compress-type=none";
/// It copies a data directory at the speed of the disk.
const TIMEOUT: Duration = Duration::from_secs(1800);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_its_name_without_the_digest() {
        let check = |name: &str, expected: &str| assert_eq!(without_digest(name), expected);
        let digest = "0123456789abcdef0123456789abcdef01234567";
        check(&format!("000000010000000000000005-{digest}"), "000000010000000000000005");
        check("00000002.history", "00000002.history");
        check(
            "000000010000000000000005.00000028.backup",
            "000000010000000000000005.00000028.backup",
        );
    }
}
