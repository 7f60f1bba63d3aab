//! The commits of a git repository, and each of them built in a clone of its own.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use os::command::{ProcessCommand, ProcessOutput};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::Error;

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// The hash.
    pub hash: String,
    /// The first line of its message.
    pub subject: String,
}

impl Commit {
    /// `1a2b3c4d5e Faster sort`
    pub fn words(&self) -> String {
        format!("{} {}", self.short(), self.subject)
    }

    /// The first digits of its hash.
    pub fn short(&self) -> &str {
        self.hash.get(..10).unwrap_or(&self.hash)
    }
}

/// What is built: a commit, and the changes that are made to its files before that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildSource {
    /// The commit.
    pub commit: Commit,
    /// The changes, as `git apply` reads them, and what a reader knows them as; none for the commit as it is.
    pub changes: Option<CommitChanges>,
}

/// Changes to the files of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitChanges {
    /// `fix.patch`, `what is not committed`
    pub name: String,
    patch: Vec<u8>,
}

impl BuildSource {
    /// `commit 1a2b3c4d5e Faster sort, with fix.patch`
    pub fn words(&self) -> String {
        let with = self.changes.as_ref().map(|changes| format!(", with {}", changes.name));
        // A commit without changes is named alone.
        format!("commit {}{}", self.commit.words(), with.unwrap_or_default())
    }
}

impl From<&Commit> for BuildSource {
    fn from(commit: &Commit) -> BuildSource {
        BuildSource { commit: commit.clone(), changes: None }
    }
}

impl CommitChanges {
    /// Those of a patch file.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn of_file(path: &Path) -> Result<CommitChanges, Error> {
        let patch = fs::read(path).map_err(|source| Error::File {
            doing: "reading",
            path: path.to_owned(),
            source,
        })?;
        Ok(CommitChanges { name: path.display().to_string(), patch })
    }
}

/// A repository of the user's. Nothing is changed in it.
#[derive(Clone, Debug)]
pub struct Repository {
    directory: PathBuf,
}

/// The command that builds a commit, and the directory in which builds are kept.
#[derive(Clone, Debug)]
pub struct BuildCommand {
    /// The command's words: one is a line for the shell, several are a program and its arguments.
    pub words: Vec<String>,
    /// Builds are kept below this directory.
    pub directory: PathBuf,
}

/// A commit that is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltCommit {
    /// The clone of the repository in which it was built.
    pub tree: PathBuf,
    /// The folder of PostgreSQL programs that the command has named; none where it has named none.
    pub bin: Option<PathBuf>,
}

impl Repository {
    /// The repository that a directory is in.
    pub fn open(directory: &Path) -> Result<Repository, Error> {
        // Of a directory that is not there, the system says what it says of a missing git.
        fs::read_dir(directory)
            .map_err(|source| Error::Directory { directory: directory.to_owned(), source })?;
        let top = git(directory, &["rev-parse", "--show-toplevel"])?;
        Ok(Repository { directory: PathBuf::from(top.trim_end_matches('\n')) })
    }

    /// The commit that a revision names.
    ///
    /// # Errors
    /// A revision that the repository does not have.
    pub fn commit(&self, name: &str) -> Result<Commit, Error> {
        let hash = self.resolve(name)?;
        let subject = git(&self.directory, &["log", "-1", "--format=%s", &hash])?;
        Ok(Commit { hash, subject: subject.trim().to_owned() })
    }

    /// What the files of the working directory have that the commit HEAD has not: changes, and new files that are
    /// not ignored.
    ///
    /// # Errors
    /// A working directory without changes; what git says.
    pub fn uncommitted(&self) -> Result<CommitChanges, Error> {
        // Index and objects of git's own are elsewhere meanwhile, so that the repository stays as it is.
        let scratch = tempfile::tempdir().map_err(|source| {
            let path = std::env::temp_dir();
            Error::File { doing: "making a directory below", path, source }
        })?;
        let objects = git(&self.directory, &["rev-parse", "--git-path", "objects"])?;
        let objects = self.directory.join(objects.trim_end());
        let own = [
            ("GIT_INDEX_FILE", scratch.path().join("index")),
            ("GIT_OBJECT_DIRECTORY", scratch.path().to_owned()),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects),
        ];
        let run = |arguments: &[&str]| git_bytes(&self.directory, arguments, &own);
        run(&["read-tree", "HEAD"])?;
        run(&["add", "--all"])?;
        let patch = run(&["diff", "--cached", "--binary", "HEAD"])?;
        match patch.is_empty() {
            true => Err(Error::Clean { directory: self.directory.clone() }),
            false => Ok(CommitChanges { name: "what is not committed".to_owned(), patch }),
        }
    }

    fn resolve(&self, name: &str) -> Result<String, Error> {
        let commit = format!("{name}^{{commit}}");
        git(&self.directory, &["rev-parse", "--verify", "--end-of-options", &commit])
            .map(|hash| hash.trim().to_owned())
            .map_err(|error| match error {
                // git does not say which one.
                Error::Git { why, .. } => Error::Git { doing: format!("rev-parse {name}"), why },
                error => error,
            })
    }

    /// The good commit, those after it in the order of first parents, and at the end the bad one.
    pub fn commits(&self, good: &str, bad: &str) -> Result<Vec<Commit>, Error> {
        let (from, to) = (self.resolve(good)?, self.resolve(bad)?);
        let names = || (good.to_owned(), bad.to_owned());
        if from == to {
            let (good, bad) = names();
            return Err(Error::SameCommit { good, bad });
        }
        if git(&self.directory, &["merge-base", "--is-ancestor", &from, &to]).is_err() {
            let (good, bad) = names();
            return Err(Error::NotAncestor { good, bad });
        }
        let log = |range: &[&str]| {
            let options = ["log", "--first-parent", "--reverse", "--format=%H%x09%s"];
            git(&self.directory, &[&options[..], range].concat())
        };
        let between = format!("{from}..{to}");
        let text = log(&["-1", &from])? + &log(&[&between])?;
        let commits = text.lines().filter_map(|line| {
            let (hash, subject) = line.split_once('\t')?;
            Some(Commit { hash: hash.to_owned(), subject: subject.to_owned() })
        });
        Ok(commits.collect())
    }

    /// Builds a commit with its changes, unless the same was built before by the same command.
    pub fn build(
        &self,
        source: &BuildSource,
        build: &BuildCommand,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<BuiltCommit, Error> {
        let BuildSource { commit, changes } = source;
        let directory = build.directory.join(self.key(source, build));
        let (tree, said) = (directory.join("tree"), directory.join("bin"));
        let built = |text: &str| {
            let bin = Some(text.trim()).filter(|bin| !bin.is_empty());
            BuiltCommit { bin: bin.map(|bin| tree.join(bin)), tree: tree.clone() }
        };
        let is_whole = |made: &BuiltCommit| made.bin.as_deref().is_none_or(Path::is_dir);
        if let Some(made) = fs::read_to_string(&said).ok().map(|text| built(&text))
            && is_whole(&made)
        {
            return Ok(made);
        }
        let failed = |doing: &'static str| {
            let path = directory.clone();
            move |source: io::Error| Error::File { doing, path: path.clone(), source }
        };
        // What an earlier attempt has left is half a build.
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("removing")(error));
            }
            _ => {}
        }
        fs::create_dir_all(&directory).map_err(failed("making"))?;
        let (from, to) = (self.directory.display().to_string(), tree.display().to_string());
        git(&self.directory, &["clone", "--quiet", "--shared", "--no-checkout", &from, &to])?;
        git(&tree, &["checkout", "--quiet", "--detach", &commit.hash])?;
        if let Some(changes) = changes {
            let patch = directory.join("patch");
            fs::write(&patch, &changes.patch).map_err(failed("writing"))?;
            git(&tree, &["apply", "--whitespace=nowarn", &patch.display().to_string()]).map_err(
                |error| match error {
                    Error::Git { why, .. } => Error::Build {
                        commit: commit.words(),
                        why: format!("{} does not apply: {why}", changes.name),
                    },
                    error => error,
                },
            )?;
        }
        let line = run(&build.words, &tree, &directory.join("log"), commit, is_interrupted)?;
        let made = built(&line);
        if let Some(bin) = made.bin.as_deref().filter(|bin| !bin.is_dir()) {
            let why = format!("its last line names {}, which is no folder", bin.display());
            return Err(Error::Build { commit: commit.words(), why });
        }
        fs::write(&said, &line).map_err(failed("writing"))?;
        Ok(made)
    }

    fn key(&self, source: &BuildSource, build: &BuildCommand) -> String {
        let commit = &source.commit;
        let mut digest = Sha256::new();
        let repository = self.directory.display().to_string();
        for word in [&repository, &commit.hash].into_iter().chain(&build.words) {
            digest.update((word.len() as u64).to_le_bytes());
            digest.update(word.as_bytes());
        }
        if let Some(changes) = &source.changes {
            digest.update((changes.patch.len() as u64).to_le_bytes());
            digest.update(&changes.patch);
        }
        let digits: String =
            digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{digits}", commit.short())
    }
}

/// Runs the command in a tree, and returns the last line that it prints.
fn run(
    words: &[String],
    tree: &Path,
    log: &Path,
    commit: &Commit,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<String, Error> {
    let failed = |why: String| Error::Build { commit: commit.words(), why };
    let command = match words {
        [line] => ProcessCommand::new("/bin/sh").arg("-c").arg(line),
        [program, arguments @ ..] => ProcessCommand::new(program).args(arguments),
        [] => return Ok(String::new()),
    };
    let command = command
        .inherit_env()
        .env("PGRIG_COMMIT", &commit.hash)
        .directory(tree)
        .stdout(ProcessOutput::Pipe)
        .stderr(ProcessOutput::File(log.to_owned()));
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let stdout = child.stdout();
    let reading = thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = stdout {
            let _ = pipe.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let status = loop {
        if is_interrupted() {
            return Err(Error::Interrupted);
        }
        match child.try_wait().map_err(|error| failed(error.to_string()))? {
            Some(status) => break status,
            None => thread::sleep(POLL),
        }
    };
    let said = reading.join().expect("a thread that reads does not panic");
    // A text without lines has no last one, and the status is the reason then.
    let last = |text: &str| text.trim_end().lines().next_back().unwrap_or_default().to_owned();
    match status.success() {
        true => Ok(last(&said)),
        false => {
            // A build that wrote no log may have said why on its output.
            let log = fs::read_to_string(log).unwrap_or_default();
            let why = last(if log.trim().is_empty() { &said } else { &log });
            Err(failed(if why.is_empty() {
                status.to_string()
            } else {
                format!("{status}: {why}")
            }))
        }
    }
}

/// Runs git and returns its output as text.
fn git(directory: &Path, arguments: &[&str]) -> Result<String, Error> {
    git_bytes(directory, arguments, &[]).map(|text| String::from_utf8_lossy(&text).into_owned())
}

/// Runs git with some variables and returns its output.
fn git_bytes(
    directory: &Path,
    arguments: &[&str],
    variables: &[(&str, PathBuf)],
) -> Result<Vec<u8>, Error> {
    let command = ProcessCommand::new("git").args(arguments).inherit_env().env("LC_ALL", "C");
    let command =
        variables.iter().fold(command, |command, (name, value)| command.env(*name, value));
    let command =
        command.directory(directory).stdout(ProcessOutput::Pipe).stderr(ProcessOutput::Pipe);
    let mut child = command.spawn().map_err(Error::NoGit)?;
    let mut stderr = child.stderr();
    let errors = thread::spawn(move || {
        let mut text = String::new();
        if let Some(pipe) = &mut stderr {
            let _ = pipe.read_to_string(&mut text);
        }
        text
    });
    let mut text = Vec::new();
    if let Some(mut pipe) = child.stdout() {
        pipe.read_to_end(&mut text).map_err(Error::NoGit)?;
    }
    let status = child.wait().map_err(Error::NoGit)?;
    let errors = errors.join().expect("a thread that reads does not panic");
    match status.success() {
        true => Ok(text),
        false => {
            let doing = arguments.first().copied().expect("git is run with a command").to_owned();
            let why = errors.trim().trim_start_matches("fatal: ").to_owned();
            Err(Error::Git { doing, why })
        }
    }
}

const POLL: Duration = Duration::from_millis(50);
