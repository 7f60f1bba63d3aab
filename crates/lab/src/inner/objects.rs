//! A lab and what is in it, by the numbers that its handles gave: every verb is obeyed here.
//!
//! Verbs of different objects are obeyed independently of each other: a limit can be lifted while a
//! server recovers. Verbs that only look at an object do not wait for each other.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::SystemTime;

use fault::disk::{DiskConfig, PowerCutMethod};
use os::cpu_limit::CpuLimit;
use os::throttle::IoThrottle;
use os::user::SystemUser;

use crate::answer::{Answer, Listing, MadeLink, MadeNode, MadePooler, Packages};
use crate::error::{Error, HostError};
use crate::files::{failed, open_file};
use crate::inner::lab::Lab;
use crate::inner::link::Link;
use crate::inner::network::Network;
use crate::inner::node::{Node, Snapshot};
use crate::inner::packages;
use crate::inner::pooler::Pooler;
use crate::inner::powered::PoweredObject;
use crate::inner::process::Process;
use crate::inner::program::Runs;
use crate::inner::shared::{Shared, kill_servers};
use crate::inner::station::Station;
use crate::inner::switch::Switch;
use crate::link_config::{LinkBy, LinkConfig};
use crate::node_config::NodeConfig;
use crate::pooler_config::PoolerConfig;
use crate::resources::Resources;
use crate::station_config::{Peer, StationConfig};
use crate::verb::Verb;

/// The lab and what is in it.
#[derive(Debug)]
pub(crate) struct Objects {
    /// Dropped before the lab.
    all: Mutex<HashMap<u32, Arc<RwLock<Object>>>>,
    lab: Mutex<Option<Lab>>,
    /// The switch that joins its stations, as long as one of them is there.
    switch: Mutex<Option<Weak<Switch>>>,
    /// The rig's own program here, if the rig that asks is on another machine: what the rig names as
    /// its program is there.
    program: Option<PathBuf>,
}

#[derive(Debug)]
enum Object {
    Node(Box<Node>),
    Pooler(Box<Pooler>),
    Process(Box<Process>),
    Station(Box<Station>),
    Link(Box<Link>),
    Snapshot(Snapshot),
    Limit { _throttle: IoThrottle },
    CpuLimit { _limit: CpuLimit },
}

impl Objects {
    pub(crate) fn new(lab: Lab, program: Option<PathBuf>) -> Objects {
        let (all, switch) = (Mutex::default(), Mutex::default());
        Objects { all, lab: Mutex::new(Some(lab)), switch, program }
    }

    /// Gives everything up. Threads that hold an object give it up themselves.
    pub(crate) fn end(&self) {
        lock(&self.all).clear();
        lock(&self.lab).take();
    }

    /// Does what is asked of an object, or of the lab itself (0).
    pub(crate) fn obey(&self, number: u32, verb: Verb) -> Result<Answer, Error> {
        match verb {
            Verb::IsAlive => Ok(self.lab()?.is_alive().into()),
            Verb::KillServers => Ok(kill_servers().into()),
            Verb::SyncLab => Ok(self.lab()?.sync()?.into()),
            Verb::TestFlush(seconds) => Ok(self.lab()?.test_flush(seconds)?.into()),
            Verb::Resources => Ok(Resources::here(self.lab()?.directory())?.into()),
            Verb::WallClock => Ok(wall_clock_us().into()),
            Verb::Unpack(names) => {
                let (root, files) = packages::unpack(self.lab()?.shared(), &names)?;
                Ok(Packages { root, files }.into())
            }
            Verb::Read(directory) => Ok(read(&self.lab()?, &directory)?.into()),

            Verb::MakeNode { name, config } => self.make_node(number, &name, config),
            Verb::MakePooler { name, config } => self.make_pooler(number, &name, config),
            Verb::MakeProcess { name, mut command } => {
                self.be_own(&mut command.program);
                let process = Process::new(Arc::clone(self.lab()?.shared()), &name, command)?;
                let log = process.log();
                self.add(number, Object::Process(Box::new(process)));
                Ok(log.into())
            }
            Verb::MakeStation { name, config } => self.make_station(number, &name, config),
            Verb::MakeLink { name, config } => self.make_link(number, &name, config),
            Verb::Drop => Ok(self.give_up(number)?.into()),

            Verb::Start => self.running_mut(number, |it| it.start()),
            Verb::Stop(mode) => self.running_mut(number, |it| it.stop(mode)),
            Verb::Kill => self.running_mut(number, |it| it.kill9()),
            Verb::Pause => self.running_mut(number, |it| it.pause()),
            Verb::Resume => self.running_mut(number, |it| it.resume()),
            Verb::IsRunning => self.running(number, |it| it.is_running()),
            Verb::Exit => self.running(number, |it| it.exit()),
            Verb::LogTail => self.running(number, |it| Ok(it.log_tail())),
            Verb::LogText => self.running(number, |it| Ok(it.log_text())),
            Verb::Pid => self.look(number, |object| Some(Ok(object.pid()))),

            Verb::Init => self.node_mut(number, Node::init),
            Verb::Configure(settings) => self.node_mut(number, |node| node.configure(settings)),
            Verb::AppendConf(lines) => self.node_mut(number, |node| node.append_conf(&lines)),
            Verb::Reload => self.node_mut(number, Node::reload),
            Verb::LimitIo { limit, limits } => self.node(number, |node| {
                let throttle = node.limit_io(&limits)?;
                self.add(limit, Object::Limit { _throttle: throttle });
                Ok(())
            }),
            Verb::LimitCpus { limit, cpus } => self.node(number, |node| {
                let cpus = node.limit_cpus(cpus)?;
                self.add(limit, Object::CpuLimit { _limit: cpus });
                Ok(())
            }),
            Verb::KillBackend { memory_bytes, timeout } => {
                self.node(number, |node| node.kill_backend(memory_bytes, timeout))
            }
            Verb::InitFromBackup { from, upstream } => {
                self.node_mut(number, |node| node.init_from_backup(&from, upstream))
            }
            Verb::Rewind { from, upstream } => {
                self.node_mut(number, |node| node.rewind(&from, upstream))
            }
            Verb::Follow(upstream) => self.node_mut(number, |node| node.follow(upstream)),
            Verb::IsStandby => self.node(number, |node| node.is_standby()),
            Verb::Promote => self.node_mut(number, Node::promote),
            Verb::Snapshot(copy) => self.node(number, |node| {
                let snapshot = node.snapshot()?;
                let copied = snapshot.copied();
                self.add(copy, Object::Snapshot(snapshot));
                Ok(copied)
            }),
            Verb::StoppedData => self.node(number, Node::stopped_data),
            Verb::InitFromCopy(from) => self.node_mut(number, |node| node.init_from_copy(&from)),
            Verb::PlaceForData => self.node_mut(number, Node::place_for_data),
            Verb::UpgradeData { from, old, mode } => {
                self.node_mut(number, |node| node.upgrade_data(&from, &old, mode))
            }
            Verb::AdoptData => self.node_mut(number, Node::adopt_data),
            Verb::InitFromImages { images, kind } => {
                self.node_mut(number, |node| node.init_from_images(&images, kind))
            }
            Verb::ExchangeData(other) => self.node_mut(number, |node| node.exchange_data(&other)),
            Verb::Format => self.node(number, Node::format),
            Verb::CheckChecksums => self.node_mut(number, Node::check_checksums),
            Verb::ResetWal => self.node_mut(number, Node::reset_wal),
            Verb::TakeBackup(name) => self.node_mut(number, |node| node.take_backup(&name)),
            Verb::VerifyBackup(backup) => self.node_mut(number, |node| node.verify_backup(&backup)),
            Verb::Restore(order) => self.node_mut(number, |node| node.restore(*order)),
            Verb::ReadArchive => self.node(number, Node::read_archive),
            Verb::StepClock(by_us) => self.node(number, |node| node.step_clock(by_us)),
            Verb::ArchiveDirectory => self.node(number, Node::archive_directory),
            Verb::PowerCut { seed, at } => self.powered(number, |it| it.power_cut(seed, at)),
            Verb::FailDisk { at, fault } => self.powered(number, |it| it.fail_disk(at, fault)),
            Verb::FailRequests(failing) => {
                self.node_mut(number, |node| node.fail_requests(&failing))
            }
            Verb::HealDisk => self.node_mut(number, Node::heal_disk),
            Verb::SlowDisk(slow) => self.powered(number, |it| it.slow_disk(slow)),
            Verb::Sync => self.powered(number, |it| it.sync()),
            Verb::RecordWrites(bytes) => self.node_mut(number, |node| node.record_writes(bytes)),
            Verb::EndRecord => self.node_mut(number, Node::end_record),
            Verb::LoadState => self.node_mut(number, Node::load_state),
            Verb::PowerOff => self.node_mut(number, Node::power_off),
            Verb::StatePaths => self.node(number, Node::state_paths),
            Verb::DiskDirectory => self.node(number, Node::disk_directory),
            Verb::DataBytes => self.node(number, Node::data_bytes),
            Verb::RunClient(run) => self.node(number, |node| node.run_client(&run)),

            Verb::Equip(processes) => self.station(number, |it| it.equip(processes)),
            Verb::OfProcess(name, act) => self.station(number, |it| it.process(&name, act)),
            Verb::RunIn(run) => self.station(number, |it| it.run(&run)),
            Verb::CutOff(peers, direction) => {
                let peers = peers.into_iter().map(|peer| self.end_of(peer));
                let peers = peers.collect::<Result<Vec<_>, Error>>()?;
                self.station(number, |it| it.cut(peers, direction))
            }
            Verb::Rejoin => self.station(number, Station::heal),
            Verb::KeepFiles => self.station(number, Station::keep_files),
            Verb::ResetFiles => self.station(number, Station::reset_files),

            Verb::Counters => self.link_mut(number, Link::counters),
            Verb::Measure => self.link(number, Link::measure),
            Verb::Shape => self.link(number, |link| Ok(link.shape_now())),
            Verb::Bandwidth(limit) => self.link_mut(number, |link| link.bandwidth(limit)),
            Verb::Delay(delay) => self.link_mut(number, |link| link.delay(delay)),
            Verb::Cut(direction) => self.link_mut(number, |link| link.cut(direction)),
            Verb::Reset => self.link_mut(number, Link::reset),
            Verb::Heal => self.link_mut(number, Link::heal),
        }
    }

    fn make_node(&self, number: u32, name: &str, mut config: NodeConfig) -> Result<Answer, Error> {
        config.disks_mut().for_each(|disk| self.be_own_disk(disk));
        let node = Node::new(Arc::clone(self.lab()?.shared()), name, config)?;
        let is_far = self.program.is_some();
        let (endpoint, inner) = (node.endpoint(), node.admin_endpoint());
        let remote = node.remote_endpoint().unwrap_or_else(|| endpoint.clone());
        let made = MadeNode {
            near: if is_far { inner.clone() } else { endpoint.clone() },
            admin: if is_far { remote.clone() } else { inner },
            endpoint: if is_far { remote } else { endpoint },
            directory: node.directory().to_owned(),
            data: node.data(),
            log: node.log(),
            structured_log: node.structured_log(),
        };
        self.add(number, Object::Node(Box::new(node)));
        Ok(Box::new(made).into())
    }

    fn make_pooler(&self, number: u32, name: &str, config: PoolerConfig) -> Result<Answer, Error> {
        let pooler = Pooler::new(Arc::clone(self.lab()?.shared()), name, config)?;
        let remote = pooler.remote_endpoint().filter(|_| self.program.is_some());
        let endpoint = remote.unwrap_or_else(|| pooler.endpoint());
        let made = MadePooler { endpoint, console: pooler.console(), log: pooler.log() };
        self.add(number, Object::Pooler(Box::new(pooler)));
        Ok(Box::new(made).into())
    }

    fn make_station(
        &self,
        number: u32,
        name: &str,
        mut config: StationConfig,
    ) -> Result<Answer, Error> {
        config.disk.iter_mut().for_each(|disk| self.be_own_disk(disk));
        let shared = Arc::clone(self.lab()?.shared());
        let switch = match config.own_network {
            true => Some(self.switch(&shared)?),
            false => None,
        };
        let station = Station::new(shared, name, config, switch)?;
        let made = station.made();
        self.add(number, Object::Station(Box::new(station)));
        Ok(Box::new(made).into())
    }

    /// The switch of the lab, which is made when the first station needs it.
    fn switch(&self, shared: &Arc<Shared>) -> Result<Arc<Switch>, Error> {
        let mut switch = lock(&self.switch);
        if let Some(made) = switch.as_ref().and_then(Weak::upgrade) {
            return Ok(made);
        }
        let made = Arc::new(Switch::make(shared)?);
        *switch = Some(Arc::downgrade(&made));
        Ok(made)
    }

    /// The network of an end of a cut, none for the clients', and its address.
    fn end_of(&self, peer: Peer) -> Result<(Option<Network>, String), Error> {
        Ok(match peer {
            Peer::Clients => (None, String::new()),
            Peer::Station(number, address) => (Some(self.network(number)?), address),
        })
    }

    fn make_link(&self, number: u32, name: &str, mut config: LinkConfig) -> Result<Answer, Error> {
        self.be_own(&mut config.program);
        let networks = match &config.by {
            LinkBy::Relay => None,
            LinkBy::Namespace { from, to } => {
                Some([self.network(from.node)?, self.network(to.node)?])
            }
        };
        let link = Link::open(Arc::clone(self.lab()?.shared()), name, config, networks)?;
        let made = MadeLink { endpoint: link.endpoint(), tap: link.tap() };
        self.add(number, Object::Link(Box::new(link)));
        Ok(Box::new(made).into())
    }

    fn give_up(&self, number: u32) -> Result<(), Error> {
        let object = lock(&self.all).remove(&number);
        match object.and_then(Arc::into_inner).map(RwLock::into_inner) {
            Some(Ok(Object::Snapshot(snapshot))) => snapshot.remove(),
            // What runs is killed here.
            _ => Ok(()),
        }
    }

    /// Puts the rig's own program here in the place of the one that a rig elsewhere names.
    fn be_own(&self, program: &mut PathBuf) {
        if let Some(own) = &self.program {
            program.clone_from(own);
        }
    }

    fn be_own_disk(&self, disk: &mut DiskConfig) {
        if let PowerCutMethod::Block { program, .. } | PowerCutMethod::State { program, .. } =
            &mut disk.method
        {
            self.be_own(&mut program.path);
        }
    }

    fn lab(&self) -> Result<Lab, Error> {
        lock(&self.lab).clone().ok_or_else(|| not_that(0))
    }

    fn network(&self, node: u32) -> Result<Network, Error> {
        let object = self.find(node)?;
        let object = object.read().unwrap_or_else(PoisonError::into_inner);
        let found = match &*object {
            Object::Node(found) => found.network(),
            Object::Station(found) => found.network(),
            _ => None,
        };
        found.cloned().ok_or_else(|| not_that(node))
    }

    fn add(&self, number: u32, object: Object) {
        lock(&self.all).insert(number, Arc::new(RwLock::new(object)));
    }

    fn find(&self, number: u32) -> Result<Arc<RwLock<Object>>, Error> {
        lock(&self.all).get(&number).cloned().ok_or_else(|| not_that(number))
    }
}

/// Access to one object. The acts give nothing where it is of another kind.
impl Objects {
    fn look<T: Into<Answer>>(
        &self,
        number: u32,
        look: impl FnOnce(&Object) -> Option<Result<T, Error>>,
    ) -> Result<Answer, Error> {
        let object = self.find(number)?;
        let object = object.read().unwrap_or_else(PoisonError::into_inner);
        look(&object).unwrap_or_else(|| Err(not_that(number))).map(T::into)
    }

    fn act<T: Into<Answer>>(
        &self,
        number: u32,
        act: impl FnOnce(&mut Object) -> Option<Result<T, Error>>,
    ) -> Result<Answer, Error> {
        let object = self.find(number)?;
        let mut object = object.write().unwrap_or_else(PoisonError::into_inner);
        act(&mut object).unwrap_or_else(|| Err(not_that(number))).map(T::into)
    }

    /// Looks at a node, a pooler or a process.
    fn running<T: Into<Answer>>(
        &self,
        number: u32,
        look: impl FnOnce(&dyn Runs) -> Result<T, Error>,
    ) -> Result<Answer, Error> {
        self.look(number, |object| object.runs().map(look))
    }

    /// Does something with a node, a pooler or a process.
    fn running_mut<T: Into<Answer>>(
        &self,
        number: u32,
        act: impl FnOnce(&mut dyn Runs) -> Result<T, Error>,
    ) -> Result<Answer, Error> {
        self.act(number, |object| object.runs_mut().map(act))
    }

    /// Looks at a node.
    fn node<T: Into<Answer>>(
        &self,
        number: u32,
        look: impl FnOnce(&Node) -> Result<T, Error>,
    ) -> Result<Answer, Error> {
        self.look(number, |object| match object {
            Object::Node(node) => Some(look(node)),
            _ => None,
        })
    }

    /// Does something with a node.
    fn node_mut<T: Into<Answer>>(
        &self,
        number: u32,
        act: impl FnOnce(&mut Node) -> Result<T, Error>,
    ) -> Result<Answer, Error> {
        self.act(number, |object| match object {
            Object::Node(node) => Some(act(node)),
            _ => None,
        })
    }

    /// Does something with the disk of a node or a station.
    fn powered<T: Into<Answer>>(
        &self,
        number: u32,
        act: impl FnOnce(&mut dyn PoweredObject) -> Result<T, Error>,
    ) -> Result<Answer, Error> {
        self.act(number, |object| match object {
            Object::Node(node) => Some(act(&mut **node)),
            Object::Station(station) => Some(act(&mut **station)),
            _ => None,
        })
    }

    /// Does something with a station.
    fn station<T: Into<Answer>>(
        &self,
        number: u32,
        act: impl FnOnce(&mut Station) -> Result<T, Error>,
    ) -> Result<Answer, Error> {
        self.act(number, |object| match object {
            Object::Station(station) => Some(act(station)),
            _ => None,
        })
    }

    /// Looks at a link.
    fn link<T: Into<Answer>>(
        &self,
        number: u32,
        look: impl FnOnce(&Link) -> Result<T, Error>,
    ) -> Result<Answer, Error> {
        self.look(number, |object| match object {
            Object::Link(link) => Some(look(link)),
            _ => None,
        })
    }

    /// Does something with a link.
    fn link_mut<T: Into<Answer>>(
        &self,
        number: u32,
        act: impl FnOnce(&mut Link) -> Result<T, Error>,
    ) -> Result<Answer, Error> {
        self.act(number, |object| match object {
            Object::Link(link) => Some(act(link)),
            _ => None,
        })
    }
}

impl Object {
    fn runs(&self) -> Option<&dyn Runs> {
        match self {
            Object::Node(node) => Some(&**node),
            Object::Pooler(pooler) => Some(&**pooler),
            Object::Process(process) => Some(&**process),
            Object::Station(station) => Some(&**station),
            Object::Link(_)
            | Object::Snapshot(_)
            | Object::Limit { .. }
            | Object::CpuLimit { .. } => None,
        }
    }

    fn runs_mut(&mut self) -> Option<&mut dyn Runs> {
        match self {
            Object::Node(node) => Some(&mut **node),
            Object::Pooler(pooler) => Some(&mut **pooler),
            Object::Process(process) => Some(&mut **process),
            Object::Station(station) => Some(&mut **station),
            Object::Link(_)
            | Object::Snapshot(_)
            | Object::Limit { .. }
            | Object::CpuLimit { .. } => None,
        }
    }

    fn pid(&self) -> Option<i32> {
        match self {
            Object::Link(link) => link.host_pid(),
            other => other.runs().and_then(|it| it.program().host_pid()),
        }
    }
}

/// The files of a directory of the lab that is this user's, not of others.
fn read(lab: &Lab, directory: &Path) -> Result<Listing, Error> {
    let reading = || failed("reading", directory);
    let is_own = |place: &Path| {
        let owner = place.metadata().map(|about| about.uid());
        place.starts_with(lab.directory())
            && owner.is_ok_and(|uid| uid == SystemUser::current().uid)
    };
    let place = match directory.canonicalize() {
        Ok(place) if is_own(&place) => place,
        Ok(_) => return Err(reading()(std::io::ErrorKind::PermissionDenied.into())),
        Err(_) => return Ok(Listing::new()),
    };
    let mut files = Listing::new();
    for entry in fs::read_dir(&place).map_err(reading())? {
        let entry = entry.map_err(reading())?;
        // One that is replaced meanwhile is there under its name the next time.
        let mut bytes = Vec::new();
        let file = open_file(&entry.path(), SystemUser::current());
        if file.and_then(|mut file| file.read_to_end(&mut bytes)).is_ok() {
            files.push((entry.file_name().to_string_lossy().into_owned(), bytes));
        }
    }
    Ok(files)
}

/// Microseconds since 1970 by this host's wall clock.
fn wall_clock_us() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // A clock that stands before 1970 is so wrong that the comparison of clocks refuses the host.
    since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn not_that(number: u32) -> Error {
    Error::Host(HostError::NoSuchObject { number })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
