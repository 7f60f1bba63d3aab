//! A lab on this machine or on a host.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use host::Host;
use os::command::Command;
use os::init::Init;
use os::user::User;

use crate::anywhere::link::{Link, RemoteLink};
use crate::anywhere::node::{Node, RemoteNode};
use crate::anywhere::pooler::Pooler;
use crate::anywhere::process::{Process, RemoteProcess};
use crate::error::{Error, HostError};
use crate::find::Installation;
use crate::flush::Flush;
use crate::lab;
use crate::lab_config::{Isolation, LabConfig};
use crate::link::{LinkBy, LinkConfig};
use crate::node::NodeConfig;
use crate::pooler::PoolerConfig;
use crate::remote::{MadeProgram, Opening, RelayWish, RemoteLab, Verb};
use crate::resources::Resources;

/// A running lab. It ends, with all its servers, when the last of it and its nodes is dropped.
#[derive(Debug)]
pub struct Lab(Place);

#[derive(Debug)]
enum Place {
    Here(lab::Lab),
    There(Arc<RemoteLab>),
}

impl Lab {
    /// Makes the directory and starts the init, on this machine.
    ///
    /// # Errors
    /// A directory that cannot be used, or no isolation; nothing is left behind then.
    pub fn open(config: LabConfig) -> Result<Self, Error> {
        lab::Lab::open(config).map(Place::Here).map(Lab)
    }

    /// A lab on a host, whose servers listen on `address`. `password` is the superuser's, and
    /// `pg_bin` the folder of PostgreSQL's programs there.
    ///
    /// # Errors
    /// What the host's lab says: no PostgreSQL, no directory; [`HostError::Lost`].
    pub fn on_host(
        host: &Host,
        address: IpAddr,
        password: &str,
        pg_bin: Option<&Path>,
    ) -> Result<Self, Error> {
        let (password, pg_bin) = (password.to_owned(), pg_bin.map(Path::to_owned));
        let lab = RemoteLab::open(host, address, Opening { pg_bin, password })?;
        Ok(Lab(Place::There(Arc::new(lab))))
    }

    /// Whether it can still be used. One on this machine is over when its init has ended; what
    /// becomes of a host is the host's to say.
    pub fn is_alive(&self) -> bool {
        match &self.0 {
            Place::Here(lab) => lab.shared().init().is_ok_and(Init::is_alive),
            Place::There(_) => true,
        }
    }

    /// The name of the host that it is on; none on this machine.
    pub fn host(&self) -> Option<&str> {
        match &self.0 {
            Place::Here(_) => None,
            Place::There(lab) => Some(lab.host()),
        }
    }

    /// Where its servers listen for other hosts; none on this machine.
    pub fn address(&self) -> Option<IpAddr> {
        match &self.0 {
            Place::Here(_) => None,
            Place::There(lab) => Some(lab.address()),
        }
    }

    /// A node of this lab, not initialised yet.
    ///
    /// # Errors
    /// A name that is taken or cannot be one, or settings that cannot be made.
    pub fn node(&self, name: &str, config: NodeConfig) -> Result<Node, Error> {
        match &self.0 {
            Place::Here(lab) => lab.node(name, config).map(Node::here),
            Place::There(lab) => {
                if config.own_network {
                    let (node, host) = (name.to_owned(), lab.host().to_owned());
                    return Err(Error::Host(HostError::Network { node, host }));
                }
                let (object, name) = (lab.new_object(), name.to_owned());
                let verb = Verb::MakeNode { name: name.clone(), config: config.clone() };
                let made = lab.ask(object, verb)?;
                let lab = Arc::clone(lab);
                Ok(Node::there(RemoteNode { lab, object, name, config, made }))
            }
        }
    }

    /// A PgBouncer of this lab, not started yet.
    ///
    /// # Errors
    /// A name that is taken or cannot be one, or settings that cannot be made.
    pub fn pooler(&self, name: &str, config: PoolerConfig) -> Result<Pooler, Error> {
        match &self.0 {
            Place::Here(lab) => lab.pooler(name, config).map(Pooler::here),
            Place::There(lab) => {
                let (object, name) = (lab.new_object(), name.to_owned());
                let made: MadeProgram =
                    lab.ask(object, Verb::MakePooler { name: name.clone(), config })?;
                let (endpoint, console) = (made.endpoint.clone(), made.console.clone());
                let process = RemoteProcess { lab: Arc::clone(lab), object, name, made };
                let (Some(endpoint), Some(console)) = (endpoint, console) else {
                    return Err(Error::Host(HostError::NoSuchObject { number: object }));
                };
                Ok(Pooler::there(process, endpoint, console))
            }
        }
    }

    /// A process of the rig's own program, `program`, with these arguments; not started yet. Its
    /// directory and where its output goes are the lab's to choose.
    ///
    /// # Errors
    /// A name that is taken or cannot be one.
    pub fn rig_process(
        &self,
        name: &str,
        program: &Path,
        arguments: Vec<String>,
    ) -> Result<Process, Error> {
        match &self.0 {
            Place::Here(_) => self.process(name, Command::new(program).args(&arguments)),
            Place::There(lab) => {
                let (object, name) = (lab.new_object(), name.to_owned());
                let made = lab.ask(object, Verb::MakeProcess { name: name.clone(), arguments })?;
                let lab = Arc::clone(lab);
                Ok(Process::there(RemoteProcess { lab, object, name, made }))
            }
        }
    }

    /// Any other program of a lab on this machine, not started yet.
    ///
    /// # Errors
    /// A name that is taken or cannot be one.
    pub fn process(&self, name: &str, command: Command) -> Result<Process, Error> {
        match &self.0 {
            Place::Here(lab) => lab.process(name, command).map(Process::here),
            Place::There(lab) => {
                let (node, host) = (name.to_owned(), lab.host().to_owned());
                Err(Error::Host(HostError::Network { node, host }))
            }
        }
    }

    /// A link of this lab, which is ready for use. On a host it is a relay, and the program is the
    /// one there.
    ///
    /// # Errors
    /// A name that is taken or cannot be one; [`Error::Link`].
    pub fn link(&self, name: &str, config: LinkConfig) -> Result<Link, Error> {
        match &self.0 {
            Place::Here(lab) => lab.link(name, config).map(Link::here),
            Place::There(lab) => {
                let LinkConfig { by, to, shape, .. } = config;
                if let LinkBy::Namespace { .. } = by {
                    let (node, host) = (name.to_owned(), lab.host().to_owned());
                    return Err(Error::Host(HostError::Network { node, host }));
                }
                let (object, name) = (lab.new_object(), name.to_owned());
                let wish = RelayWish { to, shape };
                let (endpoint, sockets) =
                    lab.ask(object, Verb::MakeRelay { name: name.clone(), wish })?;
                let lab = Arc::clone(lab);
                Ok(Link::there(RemoteLink { lab, object, name, endpoint, sockets, shape }))
            }
        }
    }

    /// The directory that everything is in, on its host.
    pub fn directory(&self) -> &Path {
        match &self.0 {
            Place::Here(lab) => lab.directory(),
            Place::There(lab) => &lab.opened().directory,
        }
    }

    /// The isolation that is in force.
    pub fn isolation(&self) -> &Isolation {
        match &self.0 {
            Place::Here(lab) => lab.isolation(),
            Place::There(lab) => &lab.opened().isolation,
        }
    }

    /// The PostgreSQL that its nodes run, on its host.
    pub fn installation(&self) -> &Installation {
        match &self.0 {
            Place::Here(lab) => lab.installation(),
            Place::There(lab) => &lab.opened().installation,
        }
    }

    /// What its machine has for servers.
    ///
    /// # Errors
    /// When the file system cannot be asked.
    pub fn resources(&self) -> Result<Resources, Error> {
        match &self.0 {
            Place::Here(lab) => Resources::here(lab.directory()),
            Place::There(lab) => Ok(lab.opened().resources.clone()),
        }
    }

    /// The user that its servers run as, on its host.
    pub fn user(&self) -> User {
        match &self.0 {
            Place::Here(lab) => lab.user(),
            Place::There(lab) => {
                let (uid, gid) = lab.opened().user;
                User { uid, gid }
            }
        }
    }

    /// Writes everything of the directory's file system to its disk: what was copied or loaded
    /// is written now and not in the middle of a window, and outlives a power cut.
    ///
    /// # Errors
    /// The file system's.
    pub fn sync(&self) -> Result<(), Error> {
        match &self.0 {
            Place::Here(lab) => lab.sync(),
            Place::There(lab) => lab.ask(0, Verb::SyncLab),
        }
    }

    /// Runs pg_test_fsync on the file system that the nodes' plain data lie on, `seconds` for each
    /// method, and ends it when each had its turn.
    ///
    /// # Errors
    /// [`Error::MissingPart`] where this PostgreSQL came without it; [`Error::FlushTest`].
    pub fn test_flush(&self, seconds: u64) -> Result<Vec<Flush>, Error> {
        match &self.0 {
            Place::Here(lab) => lab.test_flush(seconds),
            Place::There(lab) => lab.ask(0, Verb::TestFlush(seconds)),
        }
    }
}
