//! The labs that the servers of a site are made in: one on this machine, or one on each host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use import::BuildCache;
use lab::{Lab, RemoteAccess};
use server::LoadControl;

use crate::error::Error;

/// Labs, and which of them each node of a study is made in.
#[derive(Debug)]
pub struct Labs {
    all: Vec<Lab>,
    /// By the node's name; every node where this is empty is made in the only lab.
    place: BTreeMap<String, usize>,
    /// The addresses that may connect to servers on hosts.
    clients: Vec<IpAddr>,
    /// Labs of this machine for servers whose programs are not those of the run, by the folder that their nodes
    /// name.
    by_bin: BTreeMap<PathBuf, Lab>,
    /// True if their connections must be encrypted.
    tls: bool,
    numbers: AtomicU32,
    /// The packages that are unpacked, and where; the versions are in the names of their files.
    unpacked: Box<Mutex<Unpacked>>,
    /// The cache of built data; none where they are not kept.
    cache: Option<Box<BuildCache>>,
    /// The end that the user asks for.
    control: LoadControl,
}

/// Packages in a lab's directory.
#[derive(Debug, Default)]
struct Unpacked {
    names: BTreeSet<String>,
    root: PathBuf,
    files: Vec<String>,
}

impl Labs {
    /// The one lab of this machine.
    pub fn here(lab: Lab) -> Labs {
        Labs::on_hosts(vec![lab], BTreeMap::new(), Vec::new(), false)
    }

    /// Labs on hosts. `place` gives the position in `all` of each node's lab; connections are
    /// accepted from `clients` only, and with `tls` encrypted ones only.
    pub fn on_hosts(
        all: Vec<Lab>,
        place: BTreeMap<String, usize>,
        clients: Vec<IpAddr>,
        tls: bool,
    ) -> Labs {
        let (numbers, unpacked) = (AtomicU32::new(0), Box::default());
        let (cache, control, by_bin) = (None, LoadControl::new(), BTreeMap::new());
        Labs { all, place, clients, by_bin, tls, numbers, unpacked, cache, control }
    }

    /// The same, with data of earlier runs. Its lab has the password of those.
    pub fn with_cache(self, cache: Option<BuildCache>) -> Labs {
        Labs { cache: cache.map(Box::new), ..self }
    }

    /// The same, with labs for servers whose nodes name the folder of their programs.
    pub fn with_programs(self, by_bin: BTreeMap<PathBuf, Lab>) -> Labs {
        Labs { by_bin, ..self }
    }

    /// The same; waits for machines end when the user asks for the end.
    pub fn heeding(self, control: &LoadControl) -> Labs {
        Labs { control: control.clone(), ..self }
    }

    pub(crate) fn control(&self) -> &LoadControl {
        &self.control
    }

    /// The cache of built data; none where they are not kept.
    pub fn cache(&self) -> Option<&BuildCache> {
        self.cache.as_deref()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Lab> {
        self.all.iter()
    }

    /// The lab that a node is made in.
    pub fn of(&self, node: &str) -> Result<&Lab, Error> {
        let at = match self.place.is_empty() {
            true => Some(0),
            false => self.place.get(node).copied(),
        };
        let lab = at.and_then(|at| self.all.get(at));
        lab.ok_or_else(|| Error::NoPlace { nodes: vec![node.to_owned()] })
    }

    /// The lab that a server is made in: of the PostgreSQL that its node names, else of the run's.
    pub(crate) fn of_server(&self, node: &spec::TopologyNode) -> Result<&Lab, Error> {
        let Some(bin) = &node.bin else { return self.of(&node.name) };
        let (node, shown) = (node.name.clone(), bin.display().to_string());
        self.by_bin.get(bin).ok_or(Error::BinOnHost { node, bin: shown })
    }

    /// The labs of servers whose nodes name the folder of their programs, by that folder.
    pub fn by_programs(&self) -> impl Iterator<Item = (&PathBuf, &Lab)> {
        self.by_bin.iter()
    }

    /// The nodes that are placed in a lab; none where there is only one.
    pub fn nodes_of(&self, lab: &Lab) -> Vec<String> {
        let at = self.all.iter().position(|one| std::ptr::eq(one, lab));
        let placed = self.place.iter().filter(|(_, place)| Some(**place) == at);
        placed.map(|(node, _)| node.clone()).collect()
    }

    /// The way in which clients on other hosts reach the servers of a lab; none for the lab of this
    /// machine.
    pub fn remote_access(&self, lab: &Lab) -> Option<RemoteAccess> {
        let (address, clients) = (lab.address()?, self.clients.clone());
        Some(RemoteAccess { address, clients, tls: self.tls })
    }

    /// Has these packages unpacked in the lab of this machine, those that are not; returns the
    /// directory that stands for `/`.
    pub(crate) fn packages(&self, lab: &Lab, names: &[String]) -> Result<PathBuf, Error> {
        let mut unpacked = self.unpacked.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = names.iter().filter(|name| !unpacked.names.contains(*name));
        let missing: Vec<String> = missing.cloned().collect();
        if !missing.is_empty() {
            let (root, files) = lab.unpack(&missing)?;
            unpacked.names.extend(missing);
            (unpacked.root, unpacked.files) = (root, files);
        }
        Ok(unpacked.root.clone())
    }

    /// The packages that are unpacked: name, version and architecture of each.
    pub fn unpacked(&self) -> Vec<String> {
        self.unpacked.lock().unwrap_or_else(PoisonError::into_inner).files.clone()
    }

    /// A number that was not given before.
    pub(crate) fn new_number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Writes everything of their file systems to their disks.
    pub fn sync(&self) -> Result<(), Error> {
        Ok(self.all.iter().chain(self.by_bin.values()).try_for_each(Lab::sync)?)
    }
}
