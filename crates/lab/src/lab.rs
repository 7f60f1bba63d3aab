//! A lab on this machine or on a host.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use host::Host;
use os::command::ProcessCommand;
use os::user::SystemUser;
use server::Password;

use crate::answer::{MadeLink, MadeNode, MadePooler, MadeStation, Packages};
use crate::endpoint::Endpoint;
use crate::error::{Error, HostError};
use crate::find::Installation;
use crate::flush::Flush;
use crate::inner::{self, Objects};
use crate::lab_config::{Isolation, LabConfig};
use crate::link::Link;
use crate::link_config::{LinkBy, LinkConfig};
use crate::managed::Managed;
use crate::node::Node;
use crate::node_config::NodeConfig;
use crate::open_lab::OpenLab;
use crate::part::Part;
use crate::pooler::Pooler;
use crate::pooler_config::PoolerConfig;
use crate::process::Process;
use crate::remote::{Opening, Remote};
use crate::resources::Resources;
use crate::station::Station;
use crate::station_config::StationConfig;
use crate::verb::Verb;

/// A running lab. It ends, with all its servers, when the last of it and its nodes is dropped.
#[derive(Debug)]
pub struct Lab(pub(crate) Arc<OpenLab>);

impl Lab {
    /// Makes the directory and starts the init, on this machine.
    ///
    /// # Errors
    /// A directory that cannot be used, or no isolation; nothing is left behind then.
    pub fn open(config: LabConfig) -> Result<Self, Error> {
        let lab = inner::Lab::open(config)?;
        let (opened, objects) = (lab.opened(), Objects::new(lab, None));
        Ok(Lab(Arc::new(OpenLab::new(Box::new(objects), opened, None))))
    }

    /// A lab on a host, whose servers listen on `address`. `password` is the superuser's, and
    /// `pg_bin` the folder of PostgreSQL's programs there.
    ///
    /// # Errors
    /// What the host's lab says: no PostgreSQL, no directory; [`HostError::Lost`].
    pub fn on_host(
        host: &Host,
        address: IpAddr,
        password: &Password,
        pg_bin: Option<&Path>,
    ) -> Result<Self, Error> {
        let (password, pg_bin) = (Some(password.clone()), pg_bin.map(Path::to_owned));
        let (remote, opened) = Remote::open(host, Opening { pg_bin, password })?;
        let host = Some((host.entry().name.clone(), address));
        Ok(Lab(Arc::new(OpenLab::new(Box::new(remote), opened, host))))
    }

    /// True if it can still be used. One on this machine is over when its init has ended; what
    /// becomes of a host is the host's to say.
    pub fn is_alive(&self) -> bool {
        // A lab that does not answer is over.
        self.0.host.is_some() || self.0.ask(0, Verb::IsAlive).unwrap_or_default()
    }

    /// The name of the host that it is on; none on this machine.
    pub fn host(&self) -> Option<&str> {
        self.0.host()
    }

    /// The address on which its servers listen for other hosts; none on this machine.
    pub fn address(&self) -> Option<IpAddr> {
        self.0.host.as_ref().map(|(_, address)| *address)
    }

    /// A node of this lab, not initialised yet.
    pub fn node(&self, name: &str, config: NodeConfig) -> Result<Node, Error> {
        if config.own_network {
            self.expect_here(name)?;
        }
        let verb = Verb::MakeNode { name: name.to_owned(), config: config.clone() };
        let (object, made) = self.0.make::<Box<MadeNode>>(verb)?;
        Ok(Node::new(object, name, config, *made))
    }

    /// A PgBouncer of this lab, not started yet.
    pub fn pooler(&self, name: &str, config: PoolerConfig) -> Result<Pooler, Error> {
        let verb = Verb::MakePooler { name: name.to_owned(), config };
        let (object, made) = self.0.make::<Box<MadePooler>>(verb)?;
        Ok(Pooler::new(object, name, *made))
    }

    /// A process of the rig's own program, `program`, with these arguments; not started yet. On a
    /// host it is the program there. Its directory and where its output goes are the lab's to choose.
    pub fn rig_process(
        &self,
        name: &str,
        program: &Path,
        arguments: Vec<String>,
    ) -> Result<Process, Error> {
        self.make_process(name, ProcessCommand::new(program).args(arguments))
    }

    /// Any other program of a lab on this machine, not started yet.
    pub fn process(&self, name: &str, command: ProcessCommand) -> Result<Process, Error> {
        self.expect_here(name)?;
        self.make_process(name, command)
    }

    fn make_process(&self, name: &str, command: ProcessCommand) -> Result<Process, Error> {
        let (object, log) = self.0.make(Verb::MakeProcess { name: name.to_owned(), command })?;
        Ok(Process { part: Part::new(object, name, log) })
    }

    /// A station of a lab on this machine, without processes.
    ///
    /// # Errors
    /// A name that is taken or cannot be one; [`Error::NetworkNeedsRoot`].
    pub fn station(&self, name: &str, config: StationConfig) -> Result<Station, Error> {
        self.expect_here(name)?;
        let verb = Verb::MakeStation { name: name.to_owned(), config };
        let (object, made) = self.0.make::<Box<MadeStation>>(verb)?;
        Ok(Station::new(object, name, *made))
    }

    /// The PostgreSQL server that a process of a station of this lab starts there.
    pub fn managed(&self, station: &str, endpoint: Endpoint) -> Managed {
        Managed::new(Arc::clone(&self.0), station, endpoint)
    }

    /// Fetches packages of the distribution and unpacks them into the lab's directory: the directory
    /// that stands for `/` there, and what was unpacked, with versions.
    ///
    /// # Errors
    /// [`Error::Packages`] with the last words of apt-get or dpkg-deb.
    pub fn unpack(&self, names: &[String]) -> Result<(PathBuf, Vec<String>), Error> {
        let Packages { root, files } = self.0.ask(0, Verb::Unpack(names.to_owned()))?;
        Ok((root, files))
    }

    /// A link of this lab, which is ready for use. On a host it is a relay, and the program is the
    /// one there.
    ///
    /// # Errors
    /// A name that is taken or cannot be one; [`Error::Link`].
    pub fn link(&self, name: &str, config: LinkConfig) -> Result<Link, Error> {
        if let LinkBy::Namespace { .. } = config.by {
            self.expect_here(name)?;
        }
        let shape = config.shape;
        let verb = Verb::MakeLink { name: name.to_owned(), config };
        let (object, made) = self.0.make::<Box<MadeLink>>(verb)?;
        Ok(Link::new(object, name, *made, shape))
    }

    /// The directory that everything is in, on its host.
    pub fn directory(&self) -> &Path {
        &self.0.opened.directory
    }

    /// The isolation that is in force.
    pub fn isolation(&self) -> &Isolation {
        &self.0.opened.isolation
    }

    /// The PostgreSQL that its nodes run, on its host.
    pub fn installation(&self) -> &Installation {
        &self.0.opened.installation
    }

    /// The resources that its machine has for servers.
    pub fn resources(&self) -> Result<Resources, Error> {
        self.0.ask(0, Verb::Resources)
    }

    /// The user that its servers run as, on its host.
    pub fn user(&self) -> SystemUser {
        self.0.opened.user
    }

    /// Writes everything of the directory's file system to its disk: what was copied or loaded
    /// is written now and not in the middle of a window, and outlives a power cut.
    pub fn sync(&self) -> Result<(), Error> {
        self.0.ask(0, Verb::SyncLab)
    }

    /// Runs pg_test_fsync on the file system that the nodes' plain data lie on, `seconds` for each
    /// method, and ends it when each had its turn.
    ///
    /// # Errors
    /// [`Error::MissingPart`] where this PostgreSQL came without it; [`Error::FlushTest`].
    pub fn test_flush(&self, seconds: u64) -> Result<Vec<Flush>, Error> {
        self.0.ask(0, Verb::TestFlush(seconds))
    }

    /// Refuses what only a lab of this machine has: networks, and programs that are not the rig's.
    fn expect_here(&self, name: &str) -> Result<(), Error> {
        self.host().map_or(Ok(()), |host| {
            let (node, host) = (name.to_owned(), host.to_owned());
            Err(Error::Host(HostError::Network { node, host }))
        })
    }
}
