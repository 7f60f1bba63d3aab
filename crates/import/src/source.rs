//! A file of data.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use lab::{DatabaseLocale, Host, Installation, Node};
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::in_database::SingleDatabaseScript;
use crate::list::DumpHeader;
use crate::others;
use crate::program;

/// A file of data that was looked at.
#[derive(Clone, Debug)]
pub struct ImportSource {
    /// As messages call it.
    name: String,
    content: Content,
    /// What the beginning of a script says.
    said: DumpHeader,
}

#[derive(Clone, Debug)]
enum Content {
    /// A script for psql.
    Script(PathBuf),
    /// The same, which was read already.
    Text(String),
    /// A custom or tar dump for pg_restore.
    Archive(PathBuf),
    /// A directory dump for pg_restore.
    Directory(PathBuf),
}

/// The values that a script finds when it begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptVariables<'a> {
    /// The variables.
    pub variables: &'a [(String, String)],
    /// The seed of `random()`, between 0 and 1.
    pub seed: Option<f64>,
}

/// Bytes of a script that are searched: pg_dump creates extensions before tables.
const LOOKED_BYTES: u64 = 1 << 20;

/// Beginnings of files that are something else, and what to do with them.
const OTHERS: [(&[u8], &str, &str); 4] = [
    (b"\x1f\x8b", "it is compressed with gzip", "unpack it first: gunzip"),
    (b"\x28\xb5\x2f\xfd", "it is compressed with zstd", "unpack it first: unzstd"),
    (b"\xfd7zXZ", "it is compressed with xz", "unpack it first: unxz"),
    (b"BZh", "it is compressed with bzip2", "unpack it first: bunzip2"),
];

impl ImportSource {
    /// Looks at a script, or at a dump in pg_dump's custom, tar or directory format.
    pub fn look(path: &Path) -> Result<ImportSource, Error> {
        let name = path.display().to_string();
        let read = |source| Error::Read { path: path.to_owned(), source };
        let unfit = |why, hint| Err(Error::Unfit { name: name.clone(), why, hint });
        let whole = std::path::absolute(path).map_err(read)?;
        let metadata = whole.metadata().map_err(read)?;
        if metadata.is_dir() {
            return match whole.join("toc.dat").is_file() {
                true => Ok(ImportSource {
                    name,
                    content: Content::Directory(whole),
                    said: DumpHeader::default(),
                }),
                false => unfit(
                    "it is a directory without toc.dat",
                    "name a script, or a dump of pg_dump (--format=plain, custom or directory)",
                ),
            };
        }
        if !metadata.is_file() {
            return unfit("it is no regular file", "write it into a file first");
        }
        let mut bytes = Vec::new();
        let mut file = File::open(&whole).map_err(read)?;
        file.by_ref().take(LOOKED_BYTES).read_to_end(&mut bytes).map_err(read)?;
        if bytes.starts_with(b"PGDMP") || bytes.get(257..262) == Some(b"ustar") {
            return Ok(ImportSource {
                name,
                content: Content::Archive(whole),
                said: DumpHeader::default(),
            });
        }
        if let Some((_, why, hint)) = OTHERS.iter().find(|(magic, ..)| bytes.starts_with(magic)) {
            return unfit(why, hint);
        }
        if bytes.contains(&0) {
            return unfit(
                "it is neither a script nor a dump",
                "name a script of SQL, or a dump of pg_dump",
            );
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return unfit("it is empty", "name a script of SQL, or a dump of pg_dump");
        }
        ImportSource::script(name, Content::Script(whole), &String::from_utf8_lossy(&bytes))
    }

    /// Looks at a script whose text is known.
    pub fn text(name: &str, text: &str) -> Result<ImportSource, Error> {
        ImportSource::script(name.to_owned(), Content::Text(text.to_owned()), text)
    }

    fn script(name: String, content: Content, text: &str) -> Result<ImportSource, Error> {
        let said = DumpHeader::by_script(text);
        let unfit = |why, hint| Err(Error::Unfit { name: name.clone(), why, hint });
        if said.is_of_cluster {
            return unfit("it is a dump of all databases", "dump the one database: pg_dump DBNAME");
        }
        if said.connects && !said.creates_database {
            return unfit(
                "it connects to another database, in which clients would not find the data",
                "leave out \\connect, or use what pg_dump has written",
            );
        }
        Ok(ImportSource { name, content, said })
    }

    /// True if psql runs it.
    pub fn is_script(&self) -> bool {
        self.archive().is_none()
    }

    /// As messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes sure that this installation can load it.
    pub fn fits(&self, installation: &Installation) -> Result<(), Error> {
        let part = |source| Error::Part { name: self.name.clone(), source };
        installation.require_program(self.program()).map_err(part)?;
        let said = match self.archive() {
            None => self.said.clone(),
            Some(_) => self.listed(installation)?,
        };
        let version = installation.version();
        if said.major().is_some_and(|major| major > version.major) {
            return Err(Error::Newer {
                name: self.name.clone(),
                dumped: said.dumped.expect("its major version is known"),
                server: version.to_string(),
            });
        }
        said.extensions
            .iter()
            .try_for_each(|name| installation.require_extension(name).map_err(part))
    }

    fn program(&self) -> &'static str {
        if self.archive().is_some() { "pg_restore" } else { "psql" }
    }

    fn archive(&self) -> Option<&Path> {
        match &self.content {
            Content::Script(_) | Content::Text(_) => None,
            Content::Archive(path) | Content::Directory(path) => Some(path),
        }
    }

    /// The encoding and the collation of the database that it was dumped from; none where it does not say them.
    ///
    /// # Errors
    /// If pg_restore of this installation cannot read it.
    pub fn database_locale(
        &self,
        installation: &Installation,
    ) -> Result<Option<DatabaseLocale>, Error> {
        match self.archive() {
            None => Ok(self.said.locale.clone()),
            Some(_) => Ok(DumpHeader::by_script(&self.of_database(installation)?).locale),
        }
    }

    /// What an archive says of its database, as a script.
    fn of_database(&self, installation: &Installation) -> Result<String, Error> {
        // No table has this name, so that nothing else is written.
        self.restore(installation, &["--create", "--file=-", "--table= "])
    }

    /// The description in the list of an archive.
    fn listed(&self, installation: &Installation) -> Result<DumpHeader, Error> {
        self.restore(installation, &["--list"]).map(|list| DumpHeader::by_archive(&list))
    }

    /// What pg_restore writes about an archive.
    fn restore(&self, installation: &Installation, words: &[&str]) -> Result<String, Error> {
        let mut command = program::command(&installation.program("pg_restore")).args(words);
        let fed = self.fed()?;
        if let (None, Some(path)) = (&fed, self.archive()) {
            command = command.arg(path);
        }
        let ended = program::run("pg_restore", command, fed, &|| false)?;
        match ended.is_success {
            true => Ok(ended.stdout),
            false => Err(Error::Archive {
                name: self.name.clone(),
                version: installation.version().to_string(),
                why: ended.stderr.trim().trim_start_matches("pg_restore: error: ").to_owned(),
            }),
        }
    }

    /// The standard input of the program: none where it can read the file by its path.
    fn fed(&self) -> Result<Option<Box<dyn Read + Send>>, Error> {
        let path = match &self.content {
            Content::Text(text) => {
                return Ok(Some(Box::new(Cursor::new(text.clone().into_bytes()))));
            }
            Content::Script(path) | Content::Archive(path) | Content::Directory(path) => path,
        };
        if program::is_readable(path) && !self.said.creates_database {
            return Ok(None);
        }
        if let Content::Directory(_) = self.content {
            return Err(Error::Closed { name: self.name.clone() });
        }
        let file = File::open(path).map_err(|source| Error::Read { path: path.clone(), source })?;
        Ok(Some(match self.said.creates_database {
            true => Box::new(SingleDatabaseScript::new(BufReader::new(file))),
            false => Box::new(file),
        }))
    }

    /// Loads it into database postgres of a server of this machine's lab, as the superuser, with the
    /// programs of the server's version. It stops at the first error.
    pub fn load(
        &self,
        node: &Node,
        values: ScriptVariables<'_>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let (program, endpoint) = (self.program(), node.endpoint());
        let host = match &endpoint.host {
            Host::Unix(directory) => directory.display().to_string(),
            Host::Tcp(name) => name.clone(),
        };
        let connecting = |program: &str| {
            let command = program::command(&node.installation().program(program))
                .args(["--host", &host, "--port", &endpoint.port.to_string()])
                .args(["--username", &endpoint.user, "--dbname", &endpoint.database])
                .arg("--no-password");
            match &endpoint.password {
                Some(password) => command.env("PGPASSWORD", password.reveal()),
                None => command,
            }
        };
        let mut command = connecting(program);
        let fed = self.fed()?;
        let stdin = Path::new("-");
        match &self.content {
            Content::Script(path) => {
                let from = if fed.is_some() { stdin } else { path };
                command = script(command, values).arg("--file").arg(from);
                // For \ir, and for \i with a relative path.
                if let Some(parent) = path.parent().filter(|_| fed.is_none()) {
                    command = command.directory(parent);
                }
            }
            Content::Text(_) => command = script(command, values).arg("--file").arg(stdin),
            Content::Archive(path) | Content::Directory(path) => {
                command = command.args(["--exit-on-error", "--no-owner", "--no-privileges"]);
                if let Content::Directory(_) = self.content {
                    let cores = lab::machine::Machine::here().cores;
                    command = command.args(["--jobs", &cores.to_string()]);
                }
                if fed.is_none() {
                    command = command.arg(path);
                }
            }
        }
        let mut ended = program::run(program, command, fed, is_interrupted)?;
        if ended.is_success && self.archive().is_some() {
            // pg_restore sets what a database has set only where it creates it.
            let said = self.of_database(node.installation())?;
            let settings = SingleDatabaseScript::new(Cursor::new(said.into_bytes()));
            let psql = script(connecting("psql"), ScriptVariables::default()).args(["--file", "-"]);
            ended = program::run("psql", psql, Some(Box::new(settings)), is_interrupted)?;
        }
        if ended.is_success {
            return Ok(());
        }
        let why = self.words(&ended.stderr);
        Err(Error::Failed { hint: self.remedy(&why), why })
    }

    /// The program's messages from its first error on, with the file as the user has named it.
    fn words(&self, stderr: &str) -> String {
        let is_error =
            |line: &&str| ["ERROR:", "FATAL:", " error:"].iter().any(|word| line.contains(word));
        let lines: Vec<&str> = stderr.lines().collect();
        // Without a line that is called an error, all of them are shown.
        let first = lines.iter().position(is_error).unwrap_or(0);
        let told: Vec<&str> = lines[first..].iter().take(LINES_MAX).copied().collect();
        let mut told = told.join("\n").trim().to_owned();
        if let Some(rest) = told.strip_prefix("psql:") {
            let file = match &self.content {
                Content::Script(path) => path.display().to_string(),
                _ => String::new(),
            };
            let rest = rest.strip_prefix(&format!("{file}:")).unwrap_or(rest);
            let rest = rest.strip_prefix("<stdin>:").unwrap_or(rest);
            let at = rest.starts_with(|c: char| c.is_ascii_digit());
            told = if at { format!("{}:{rest}", self.name) } else { rest.to_owned() };
        } else {
            told = format!("{}: {told}", self.name);
        }
        if told.ends_with(&format!("{}: ", self.name)) || told == self.name {
            told =
                format!("{}: {} ended with an error and said nothing", self.name, self.program());
        }
        told
    }

    /// The remedy for the usual errors.
    fn remedy(&self, why: &str) -> String {
        let known = [
            (
                "role \"",
                "the server is new and has no such role: pg_dump --no-owner \
              --no-privileges, or CREATE ROLE at the head of the script",
            ),
            (
                "No space left on device",
                "the disk is full: free some space, or put the servers on another disk (TMPDIR)",
            ),
            ("is not available", "install that extension for this PostgreSQL"),
            (
                "unrecognized configuration parameter",
                "the script is for another version: dump it \
              with the pg_dump of the older side",
            ),
            (
                "invalid command \\restrict",
                "this psql is older than the pg_dump of the script: \
              update it, or use a custom dump (pg_dump --format=custom)",
            ),
            ("must be loaded via", "set shared_preload_libraries for both sides with --set"),
        ];
        let found = known.iter().find(|(words, _)| why.contains(words));
        found.map_or_else(
            || format!("correct it there; {} stops at the first error", self.program()),
            |(_, hint)| (*hint).to_owned(),
        )
    }

    /// True if what it makes depends on files that it names.
    pub fn reads_others(&self) -> Result<bool, Error> {
        let looked = match &self.content {
            Content::Text(text) => others::reads_others(text.as_bytes()),
            Content::Script(path) => {
                File::open(path).and_then(|file| others::reads_others(BufReader::new(file)))
            }
            Content::Archive(_) | Content::Directory(_) => Ok(false),
        };
        looked.map_err(|source| Error::Read { path: PathBuf::from(&self.name), source })
    }

    /// Adds everything that it holds to a digest.
    pub(crate) fn digest(&self, into: &mut Sha256) -> Result<(), Error> {
        let path = match &self.content {
            Content::Text(text) => {
                into.update(text.as_bytes());
                return Ok(());
            }
            Content::Script(path) | Content::Archive(path) | Content::Directory(path) => path,
        };
        let mut files = vec![path.clone()];
        if let Content::Directory(path) = &self.content {
            let failed = |source| Error::Read { path: path.clone(), source };
            files = std::fs::read_dir(path)
                .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
                .map_err(failed)?;
            files.sort();
        }
        for path in files {
            let failed = |source| Error::Read { path: path.clone(), source };
            into.update(path.file_name().expect("a file of data has a name").as_encoded_bytes());
            let mut file = File::open(&path).map_err(failed)?;
            let mut buffer = vec![0; 1 << 20];
            loop {
                match file.read(&mut buffer).map_err(failed)? {
                    0 => break,
                    n => into.update(&buffer[..n]),
                }
            }
        }
        Ok(())
    }
}

/// psql for a script: nobody's settings, no table of results, and an end at the first error.
fn script(
    mut command: os::command::ProcessCommand,
    values: ScriptVariables<'_>,
) -> os::command::ProcessCommand {
    command = command.args(["--no-psqlrc", "--quiet", "--output", "/dev/null"]);
    command = command.args(["--set", "ON_ERROR_STOP=1"]);
    for (name, value) in values.variables {
        command = command.arg("--set").arg(format!("{name}={value}"));
    }
    if let Some(seed) = values.seed {
        command = command.arg("--command").arg(format!("SELECT setseed({seed})"));
    }
    command
}

/// Lines of an error that are told.
const LINES_MAX: usize = 8;
