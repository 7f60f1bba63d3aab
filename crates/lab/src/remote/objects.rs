//! What a lab on this host has for a rig elsewhere: its objects, by the numbers that the rig gave them.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use fault::disk::Method;
use os::command::Command;
use os::throttle::Throttle;
use os::user::User;
use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, HostError};
use crate::files::{failed, open_file};
use crate::find;
use crate::lab::Lab;
use crate::lab_config::LabConfig;
use crate::link::{Link, LinkBy, LinkConfig};
use crate::node::{Node, NodeConfig, Snapshot};
use crate::pooler::{Pooler, PoolerConfig};
use crate::process::Process;
use crate::remote::verb::{
    Listing, MadeNode, MadeProgram, NodeVerb, Opened, Opening, RelayWish, Verb,
};
use crate::resources::Resources;

/// The lab and what is in it.
pub(super) struct Objects {
    program: PathBuf,
    lab: Mutex<Option<Lab>>,
    all: Mutex<HashMap<u32, Arc<Mutex<Object>>>>,
}

enum Object {
    Node(Box<Node>),
    Pooler(Box<Pooler>),
    Process(Box<Process>),
    Link(Box<Link>),
    Snapshot(Snapshot),
    Limit { _throttle: Throttle },
}

impl Objects {
    pub(super) fn new(program: &Path) -> Objects {
        let (lab, all) = Default::default();
        Objects { program: program.to_owned(), lab, all }
    }

    /// Gives everything up. Threads that hold an object give it up themselves.
    pub(super) fn end(&self) {
        lock(&self.all).clear();
        lock(&self.lab).take();
    }

    /// Does what is asked; the answer as JSON.
    pub(super) fn obey(&self, number: u32, verb: Verb) -> Result<Value, Error> {
        match verb {
            Verb::Open(opening) => value(self.open(opening)?),
            Verb::SyncLab => value(self.with_lab(Lab::sync)?),
            Verb::TestFlush(seconds) => value(self.with_lab(|lab| lab.test_flush(seconds))?),
            Verb::WallClock => value(wall_clock_us()),
            Verb::Read(directory) => value(self.with_lab(|lab| read(lab, &directory))?),
            Verb::MakeNode { name, config } => value(self.make_node(number, &name, config)?),
            Verb::MakePooler { name, config } => value(self.make_pooler(number, &name, config)?),
            Verb::MakeProcess { name, arguments } => {
                let command = Command::new(&self.program).args(&arguments);
                let process = self.with_lab(|lab| lab.process(&name, command))?;
                let made = MadeProgram { endpoint: None, console: None, log: process.log() };
                self.add(number, Object::Process(Box::new(process)));
                value(made)
            }
            Verb::MakeRelay { name, wish } => value(self.make_relay(number, &name, wish)?),
            Verb::Drop => value(self.give_up(number)?),
            Verb::Node(verb) => self.node_verb(number, verb),
            verb => self.common_verb(number, verb),
        }
    }

    fn give_up(&self, number: u32) -> Result<(), Error> {
        let object = lock(&self.all).remove(&number);
        match object.and_then(Arc::into_inner).map(Mutex::into_inner) {
            Some(Ok(Object::Snapshot(snapshot))) => snapshot.remove(),
            // What runs is killed here.
            _ => Ok(()),
        }
    }

    fn open(&self, opening: Opening) -> Result<Opened, Error> {
        let installation = find::find(opening.pg_bin.as_deref())?;
        let config = LabConfig { password: Some(opening.password), ..LabConfig::new(installation) };
        let lab = Lab::open(config)?;
        let opened = Opened {
            installation: lab.installation().listed(),
            isolation: lab.isolation().clone(),
            directory: lab.directory().to_owned(),
            user: (lab.user().uid, lab.user().gid),
            resources: Resources::here(lab.directory())?,
        };
        *lock(&self.lab) = Some(lab);
        Ok(opened)
    }

    fn make_node(
        &self,
        number: u32,
        name: &str,
        mut config: NodeConfig,
    ) -> Result<MadeNode, Error> {
        if let Some(Method::Block { program, .. }) = config.disk.as_mut().map(|d| &mut d.method) {
            program.path.clone_from(&self.program);
        }
        let node = self.with_lab(|lab| lab.node(name, config))?;
        let made = MadeNode {
            endpoint: node.remote_endpoint().unwrap_or_else(|| node.endpoint()),
            inner: node.admin_endpoint(),
            directory: node.directory().to_owned(),
            data: node.data(),
            log: node.log(),
            structured_log: node.structured_log().1,
        };
        self.add(number, Object::Node(Box::new(node)));
        Ok(made)
    }

    fn make_pooler(
        &self,
        number: u32,
        name: &str,
        config: PoolerConfig,
    ) -> Result<MadeProgram, Error> {
        let pooler = self.with_lab(|lab| lab.pooler(name, config))?;
        let endpoint = pooler.remote_endpoint().unwrap_or_else(|| pooler.endpoint());
        let (console, log) = (Some(pooler.console()), pooler.log());
        self.add(number, Object::Pooler(Box::new(pooler)));
        Ok(MadeProgram { endpoint: Some(endpoint), console, log })
    }

    fn make_relay(
        &self,
        number: u32,
        name: &str,
        wish: RelayWish,
    ) -> Result<(crate::Endpoint, Option<PathBuf>), Error> {
        let RelayWish { to, shape } = wish;
        let config = LinkConfig { program: self.program.clone(), by: LinkBy::Relay, to, shape };
        let link = self.with_lab(|lab| lab.link(name, config))?;
        let tap = match link.tap() {
            Some(crate::LinkTap::Relay(sockets)) => Some(sockets),
            _ => None,
        };
        let made = (link.endpoint(), tap);
        self.add(number, Object::Link(Box::new(link)));
        Ok(made)
    }

    fn common_verb(&self, number: u32, verb: Verb) -> Result<Value, Error> {
        let object = self.find(number)?;
        let mut object = lock(&object);
        match verb {
            Verb::Start => {
                match &mut *object {
                    Object::Node(node) => node.start()?,
                    Object::Pooler(pooler) => pooler.start()?,
                    Object::Process(process) => process.start()?,
                    _ => return Err(not_that(number)),
                }
                value(())
            }
            Verb::Stop(mode) => value(match &mut *object {
                Object::Node(node) => node.stop(mode)?,
                Object::Pooler(pooler) => pooler.stop(mode)?,
                Object::Process(process) => process.stop(mode)?,
                _ => return Err(not_that(number)),
            }),
            Verb::Kill => value(match &mut *object {
                Object::Node(node) => node.kill9()?,
                Object::Pooler(pooler) => pooler.kill9()?,
                Object::Process(process) => process.kill9()?,
                _ => return Err(not_that(number)),
            }),
            Verb::Pause => value(match &mut *object {
                Object::Node(node) => node.pause()?,
                Object::Pooler(pooler) => pooler.pause()?,
                Object::Process(process) => process.pause()?,
                _ => return Err(not_that(number)),
            }),
            Verb::Resume => value(match &mut *object {
                Object::Node(node) => node.resume()?,
                Object::Pooler(pooler) => pooler.resume()?,
                Object::Process(process) => process.resume()?,
                _ => return Err(not_that(number)),
            }),
            Verb::IsRunning => value(match &*object {
                Object::Node(node) => node.is_running()?,
                Object::Pooler(pooler) => pooler.is_running()?,
                Object::Process(process) => process.is_running()?,
                _ => return Err(not_that(number)),
            }),
            Verb::Exit => value(match &*object {
                Object::Process(process) => process.exit()?,
                _ => None,
            }),
            Verb::Pid => value(pid(&object)),
            Verb::LogTail => value(match &*object {
                Object::Node(node) => node.log_tail(),
                Object::Pooler(pooler) => pooler.log_tail(),
                Object::Process(process) => process.log_tail(),
                _ => String::new(),
            }),
            Verb::LogText => value(match &*object {
                Object::Node(node) => log_end(node.log_text()),
                Object::Pooler(pooler) => log_end(pooler.log_text()),
                Object::Process(process) => log_end(process.log_text()),
                _ => String::new(),
            }),
            Verb::Counters => value(link(&mut object, number)?.counters()?),
            Verb::Measure => value(link(&mut object, number)?.measure()?),
            Verb::Bandwidth(limit) => value(link(&mut object, number)?.bandwidth(limit)?),
            Verb::Delay(delay) => value(link(&mut object, number)?.delay(delay)?),
            Verb::Cut(direction) => value(link(&mut object, number)?.cut(direction)?),
            Verb::Reset => value(link(&mut object, number)?.reset()?),
            Verb::Heal => value(link(&mut object, number)?.heal()?),
            // The others are no verbs of an object.
            _ => Err(not_that(number)),
        }
    }

    fn node_verb(&self, number: u32, verb: NodeVerb) -> Result<Value, Error> {
        let object = self.find(number)?;
        let mut object = lock(&object);
        let Object::Node(node) = &mut *object else { return Err(not_that(number)) };
        match verb {
            NodeVerb::Init => value(node.init()?),
            NodeVerb::Configure(settings) => value(node.configure(settings)?),
            NodeVerb::AppendConf(lines) => {
                node.append_conf(&lines);
                value(())
            }
            NodeVerb::Reload => value(node.reload()?),
            NodeVerb::LimitIo { limit, limits } => {
                let throttle = node.limit_io(&limits)?;
                self.add(limit, Object::Limit { _throttle: throttle });
                value(())
            }
            NodeVerb::KillBackend(timeout) => value(node.kill_backend(timeout)?),
            NodeVerb::InitFromBackup { from, upstream } => {
                value(node.init_from_backup(&from, upstream)?)
            }
            NodeVerb::Follow(upstream) => {
                node.follow(upstream);
                value(())
            }
            NodeVerb::IsStandby => value(node.is_standby()),
            NodeVerb::Promote => value(node.promote()?),
            NodeVerb::Snapshot(copy) => {
                let snapshot = node.snapshot()?;
                let bytes = snapshot.bytes();
                self.add(copy, Object::Snapshot(snapshot));
                value(bytes)
            }
            NodeVerb::InitFromSnapshot(copy) => {
                let copied = self.find(copy)?;
                let copied = lock(&copied);
                let Object::Snapshot(snapshot) = &*copied else { return Err(not_that(copy)) };
                value(node.init_from_snapshot(snapshot)?)
            }
            NodeVerb::CloneData(other) if other == number => Err(not_that(other)),
            NodeVerb::CloneData(other) => {
                let from = self.find(other)?;
                let from = lock(&from);
                let Object::Node(from) = &*from else { return Err(not_that(other)) };
                value(node.clone_data(from)?)
            }
            NodeVerb::Format => value(node.format()?),
            NodeVerb::CheckChecksums => value(node.check_checksums()?),
            NodeVerb::ResetWal => value(node.reset_wal()?),
            NodeVerb::TakeBackup => value(node.take_backup()?),
            NodeVerb::Restore => value(node.restore()?),
            NodeVerb::PowerCut(seed) => value(node.power_cut(seed)?),
            NodeVerb::Sync => value(node.sync()?),
            NodeVerb::DataBytes => value(node.data_bytes()?),
            NodeVerb::RunClient(run) => value(node.run_client(&run)?),
        }
    }

    fn with_lab<T>(&self, act: impl FnOnce(&Lab) -> Result<T, Error>) -> Result<T, Error> {
        match &*lock(&self.lab) {
            Some(lab) => act(lab),
            None => Err(not_that(0)),
        }
    }

    fn add(&self, number: u32, object: Object) {
        lock(&self.all).insert(number, Arc::new(Mutex::new(object)));
    }

    fn find(&self, number: u32) -> Result<Arc<Mutex<Object>>, Error> {
        lock(&self.all).get(&number).cloned().ok_or_else(|| not_that(number))
    }
}

fn pid(object: &Object) -> Option<i32> {
    match object {
        Object::Node(node) => node.host_pid(),
        Object::Pooler(pooler) => pooler.host_pid(),
        Object::Process(process) => process.host_pid(),
        Object::Link(link) => link.host_pid(),
        Object::Snapshot(_) | Object::Limit { .. } => None,
    }
}

/// The end of a log, which a line has room for even where every character is escaped.
fn log_end(text: String) -> String {
    const BYTES_MAX: usize = 2 << 20;
    let start = text.len().saturating_sub(BYTES_MAX);
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text[start..].to_owned()
}

fn link(object: &mut Object, number: u32) -> Result<&mut Link, Error> {
    match object {
        Object::Link(link) => Ok(link),
        _ => Err(not_that(number)),
    }
}

/// The files of a directory of the lab that is this user's, not of others.
fn read(lab: &Lab, directory: &Path) -> Result<Listing, Error> {
    let reading = || failed("reading", directory);
    let is_own = |place: &Path| {
        let owner = place.metadata().map(|about| about.uid());
        place.starts_with(lab.directory()) && owner.is_ok_and(|uid| uid == User::current().uid)
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
        let file = open_file(&entry.path(), User::current());
        if file.and_then(|mut file| file.read_to_end(&mut bytes)).is_ok() {
            files.push((entry.file_name().to_string_lossy().into_owned(), bytes));
        }
    }
    Ok(files)
}

fn value(answer: impl Serialize) -> Result<Value, Error> {
    // Answers are plain data: they always have a JSON form.
    Ok(serde_json::to_value(answer).unwrap_or_default())
}

/// Microseconds since 1970 by this host's wall clock.
fn wall_clock_us() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn not_that(number: u32) -> Error {
    Error::Host(HostError::NoSuchObject { number })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
