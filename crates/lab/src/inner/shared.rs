//! The state that a lab and its nodes share: the init, the directory, the installation, and the
//! names that are taken.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use os::command::ProcessCommand;
use os::init::{Init, NetworkNamespace, ProcessExit};
use os::user::SystemUser;
use server::Password;

use crate::directory::{DISKS, Directory, NODES, SNAPSHOTS, SOCKETS, TEMPLATES};
use crate::ending::Endable;
use crate::error::Error;
use crate::files::closed_to;
use crate::find::Installation;
use crate::inner::templates::Templates;
use crate::lab_config::{AtEnd, Isolation, IsolationWish, LabConfig};
use crate::machine;
use crate::random::random_hex;

/// State that the lab and its nodes share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// `None` only while it is dropped.
    init: Option<Init>,
    isolation: Isolation,
    pub(crate) installation: Installation,
    pub(crate) user: SystemUser,
    /// The superuser's, for connections over TCP.
    pub(crate) password: Password,
    /// Directories that initdb made, by its options. The lock is held while initdb runs, so that
    /// each is made once.
    templates: Mutex<HashMap<Vec<String>, PathBuf>>,
    /// Those that outlive this lab.
    pub(crate) kept: Option<Templates>,
    names: Mutex<Names>,
    directory: Directory,
}

#[derive(Debug, Default)]
struct Names {
    nodes: HashSet<String>,
    unix_ports: HashSet<u16>,
    links: u16,
    snapshots: u32,
}

impl Shared {
    /// Makes the directory and starts the init.
    pub(crate) fn new(config: LabConfig) -> Result<Shared, Error> {
        // PostgreSQL refuses root.
        let user = SystemUser::unprivileged().ok_or(Error::NoServerUser)?;
        let directory = Directory::make(&config, user)?;
        let (init, isolation) = isolate(&directory, config.isolation)?;
        let kept = config.templates.as_deref().map(|below| Templates::open(below, user));
        let kept = kept.transpose()?;
        let password = match (config.password, &kept) {
            (Some(password), _) => password,
            (None, Some(kept)) => kept.password().clone(),
            (None, None) => random_hex(16)?.into(),
        };
        // Templates have their own password, and a lab that was given another one makes its own.
        let kept = kept.filter(|kept| *kept.password() == password);
        Ok(Shared {
            init: Some(init),
            isolation,
            installation: config.installation,
            user,
            password,
            templates: Mutex::new(HashMap::new()),
            kept,
            names: Mutex::new(Names::default()),
            directory,
        })
    }

    /// The directory that everything is in.
    pub(crate) fn path(&self) -> &Path {
        &self.directory.path
    }

    /// The isolation that is in force.
    pub(crate) fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    pub(crate) fn init(&self) -> Result<&Init, io::Error> {
        self.init.as_ref().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    pub(crate) fn sockets(&self) -> PathBuf {
        self.directory.path.join(SOCKETS)
    }

    pub(crate) fn node_directory(&self, name: &str) -> PathBuf {
        self.directory.path.join(NODES).join(name)
    }

    /// The directory of the nodes' disks.
    pub(crate) fn disks(&self) -> PathBuf {
        self.directory.path.join(DISKS)
    }

    pub(crate) fn template_directory(&self, number: usize) -> PathBuf {
        self.directory.path.join(TEMPLATES).join(number.to_string())
    }

    pub(crate) fn new_snapshot_directory(&self) -> PathBuf {
        let mut names = lock(&self.names);
        names.snapshots += 1;
        self.directory.path.join(SNAPSHOTS).join(names.snapshots.to_string())
    }

    pub(crate) fn templates(&self) -> MutexGuard<'_, HashMap<Vec<String>, PathBuf>> {
        lock(&self.templates)
    }

    /// True if the name was free; it is taken now.
    pub(crate) fn take_name(&self, name: &str) -> bool {
        lock(&self.names).nodes.insert(name.to_owned())
    }

    pub(crate) fn give_back_name(&self, name: &str) {
        lock(&self.names).nodes.remove(name);
    }

    pub(crate) fn give_back_unix_port(&self, port: u16) {
        lock(&self.names).unix_ports.remove(&port);
    }

    /// A number that no link of this lab had; there are enough for any study.
    pub(crate) fn take_link_number(&self) -> u16 {
        let mut names = lock(&self.names);
        names.links += 1;
        names.links
    }

    /// A port that no node of this lab has; it only names a Unix socket.
    pub(crate) fn take_unix_port(&self) -> u16 {
        let mut names = lock(&self.names);
        let mut port = PORT_FIRST;
        while !names.unix_ports.insert(port) {
            port += 1;
        }
        port
    }

    /// A program of the installation, run as the server user in `directory`.
    pub(crate) fn command(&self, program: &str, directory: &Path) -> ProcessCommand {
        self.command_of(&self.installation.program(program), directory)
    }

    /// A program, run as the server user in `directory`.
    pub(crate) fn command_of(&self, program: &Path, directory: &Path) -> ProcessCommand {
        let path =
            std::env::join_paths([self.installation.bin(), "/usr/bin".as_ref(), "/bin".as_ref()])
                // A folder with a colon in its name; what the lab runs has a full path anyway.
                .unwrap_or_else(|_| "/usr/bin:/bin".into());
        let command = ProcessCommand::new(program)
            .env("PATH", path)
            .env("HOME", directory)
            .env("LC_ALL", "C")
            .directory(directory)
            .user(self.user);
        match machine::preloaded() {
            Some(libraries) => command.env(machine::PRELOAD, libraries),
            None => command,
        }
    }

    /// Starts a program in the lab, in the network of this process or in one of the lab's.
    pub(crate) fn spawn_in(
        &self,
        command: &ProcessCommand,
        network: Option<NetworkNamespace>,
    ) -> Result<i32, Error> {
        let directory = command.directory.clone().unwrap_or_else(|| self.directory.path.clone());
        self.init().and_then(|init| init.spawn_in(command, network)).map_err(|source| {
            let closed = (source.kind() == io::ErrorKind::PermissionDenied)
                .then(|| {
                    closed_to(&directory, self.user)
                        .or_else(|| closed_to(&command.program, self.user))
                })
                .flatten();
            let (program, uid) = (command.program.clone(), self.user.uid);
            Error::Execute { program, directory, uid, closed, source }
        })
    }

    /// Runs a program in the lab to its end.
    pub(crate) fn run(
        &self,
        command: &ProcessCommand,
        timeout: Duration,
    ) -> Result<ProcessExit, Error> {
        self.run_in(command, None, timeout)
    }

    /// The same in one of the lab's networks.
    pub(crate) fn run_in(
        &self,
        command: &ProcessCommand,
        network: Option<NetworkNamespace>,
        timeout: Duration,
    ) -> Result<ProcessExit, Error> {
        let pid = self.spawn_in(command, network)?;
        self.init().and_then(|init| init.wait(pid, timeout)).map_err(|source| Error::Process {
            doing: "waiting for the end",
            node: command.program.display().to_string(),
            source,
        })
    }
}

impl Endable for Shared {
    fn end_soon(&self) {
        if let Some(init) = &self.init {
            init.end_soon();
        }
    }

    fn kill_servers_soon(&self) {
        kill_servers();
    }
}

/// Kills the PostgreSQL servers of all labs of this process; returns how many processes that were.
pub(super) fn kill_servers() -> usize {
    // Without a process table there is nothing to be found.
    os::processes::kill_descendants("postgres").unwrap_or(0)
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Before the directory is dropped: the init ends the servers and removes it.
        drop(self.init.take());
    }
}

fn isolate(directory: &Directory, wish: IsolationWish) -> Result<(Init, Isolation), Error> {
    use os::init::ProcessIsolation as Kind;
    let namespaces = match SystemUser::current().is_root() {
        true => Kind::Namespaces,
        false => Kind::UserNamespace,
    };
    let kinds: &[Kind] = match wish {
        IsolationWish::Best => &[namespaces, Kind::Keeper],
        IsolationWish::Namespaces => &[namespaces],
        IsolationWish::Keeper => &[Kind::Keeper],
    };
    // The init removes it, so that it goes even if this process is killed while the lab ends.
    let removed = (directory.at_end == AtEnd::Remove).then_some(directory.path.as_path());
    let lock: Vec<_> = directory.marker.iter().map(|marker| marker.file().as_fd()).collect();
    let mut reasons = Vec::new();
    for kind in kinds {
        match Init::start(*kind, removed, &lock) {
            Ok(init) => {
                let isolation = match kind {
                    Kind::Namespaces => Isolation::Namespaces,
                    Kind::UserNamespace => Isolation::UserNamespace,
                    Kind::Keeper => Isolation::Keeper { reasons },
                };
                return Ok((init, isolation));
            }
            Err(failure) => reasons.push(failure.to_string()),
        }
    }
    Err(Error::Isolation { reasons })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // These maps are whole between any two statements, so a panic elsewhere does not matter.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Start of the numbering of Unix sockets: PostgreSQL's own port.
const PORT_FIRST: u16 = 5432;
