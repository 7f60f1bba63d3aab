//! The machines of a site: made, equipped, started as one cluster, and begun anew for each trial.

use fault::disk::DiskConfig;
use lab::{
    Encryption, Endpoint, Host, Peer, ProcessAct, Server, Station, StationConfig, StationProcess,
};
use server::LoadControl;
use spec::{DiskFault, DiskKind, DiskRequest, MachineNode, NodeKind, Topology};

use crate::error::Error;
use crate::labs::Labs;
use crate::names::Names;
use crate::node::SiteNode;
use crate::service::{Service, routes};
use crate::waiting::Awaited;

/// The machines of a site.
#[derive(Debug, Default)]
pub struct Stations {
    all: Vec<SiteStation>,
    /// What texts call by names, whichever machine they are of.
    names: Names,
}

/// A machine, by its name in the study.
#[derive(Debug)]
pub struct SiteStation {
    /// Its name.
    pub name: String,
    /// The station.
    pub station: Station,
    pub(crate) machine: MachineNode,
    /// What its texts call by names.
    names: Names,
    /// True since an action has its disk fail: the cluster begins anew then.
    fails: bool,
    /// The way of clients to it, in keyword form, if there is one.
    pub(crate) conninfo: Option<String>,
    /// The end that the user asks for.
    control: LoadControl,
}

impl Stations {
    /// Makes the machines of a topology, with their networks and files; nothing of them is started.
    /// Returns them with the servers that their programs will start. `disk` makes the disk that a study asks
    /// for.
    pub(crate) fn make(
        topology: &Topology,
        labs: &Labs,
        disk: &dyn Fn(DiskKind) -> Option<DiskConfig>,
        number: u32,
        nodes: &[SiteNode],
    ) -> Result<(Stations, Vec<SiteNode>), Error> {
        let machines = topology.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Machine(machine) => Some((node.name.as_str(), (&**machine, node.disk))),
            _ => None,
        });
        let machines: Vec<(&str, (&MachineNode, DiskKind))> = machines.collect();
        let Some((first, _)) = machines.first() else { return Ok(Default::default()) };
        let mut names = Names::of_servers(routes(nodes));
        names.add_places(nodes.iter());
        let password = lab::new_password().map_err(Error::Lab)?;
        let lab = labs.of(first)?;
        names.set("servers", "password", password.reveal());
        names.set("postgres", "bin", lab.installation().bin().display().to_string());
        let mut packages: Vec<String> =
            machines.iter().flat_map(|(_, (machine, _))| machine.packages.clone()).collect();
        packages.sort_unstable();
        packages.dedup();
        if !packages.is_empty() {
            let root = labs.packages(lab, &packages)?;
            names.set("packages", "directory", root.display().to_string());
        }
        let (mut all, mut servers) = (Vec::new(), Vec::new());
        for (name, (machine, on)) in machines {
            let lab = labs.of(name)?;
            let data = machine.server.as_ref().map(|server| server.data.clone().into());
            let config = StationConfig {
                own_network: machine.has_network,
                ports: machine.ports.len(),
                data,
                disk: disk(on),
            };
            // One lab holds all sites, and each of its nodes has a name of its own.
            let station = lab.station(&format!("{name}-{number}"), config)?;
            names.set(name, "name", name);
            names.set(name, "address", station.address());
            names.set(name, "directory", station.directory().display().to_string());
            names.set(name, "disk", station.disk().display().to_string());
            for (role, port) in machine.ports.iter().zip(station.ports()) {
                names.set(name, &format!("port.{role}"), port.to_string());
            }
            if let Some(server) = &machine.server {
                let endpoint = Endpoint {
                    host: Host::Tcp(station.address().to_owned()),
                    port: server.port,
                    user: server.user.clone(),
                    database: server.database.clone(),
                    password: Some(password.clone()),
                    encryption: Encryption::None,
                };
                let conninfo = server::keyword_form(&endpoint.to_string())?;
                let managed = Server::Managed(Box::new(lab.managed(name, endpoint)));
                let (name, schema) = (name.to_owned(), None);
                servers.push(SiteNode { name, server: managed, conninfo, schema });
            }
            all.push((name, machine, station));
        }
        // Now every name stands for something.
        let all = all.into_iter().map(|(name, machine, station)| {
            let names = names.of(name, &machine.variables);
            let server = servers.iter().find(|node| node.name == name);
            let control = labs.control().clone();
            SiteStation::equip(name, machine, station, names, server, control)
        });
        let all = all.collect::<Result<_, Error>>()?;
        Ok((Stations { all, names }, servers))
    }

    /// All of them, in the order of the topology.
    pub fn iter(&self) -> impl Iterator<Item = &SiteStation> {
        self.all.iter()
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut SiteStation> {
        self.all.iter_mut()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// What a text on the node of that name calls by names; none of a node that is no machine.
    pub(crate) fn names_on(&self, name: &str) -> Option<&Names> {
        self.all.iter().find(|one| one.name == name).map(|one| &one.names)
    }

    /// What any text calls by names.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// The ends of a cut of that machine: those of these names, `clients` among them, or all others.
    pub fn peers(&self, name: &str, from: &[String]) -> Vec<Peer> {
        let is_meant = |other: &str| from.is_empty() || from.iter().any(|name| name == other);
        let others = self
            .all
            .iter()
            .filter(|one| one.name != name && one.machine.has_network && is_meant(&one.name));
        let clients = is_meant(CLIENTS).then_some(Peer::Clients);
        others.map(|one| one.station.peer()).chain(clients).collect()
    }

    /// True if a program of one of them runs.
    pub(crate) fn runs(&self) -> Result<bool, Error> {
        for one in &self.all {
            if one.station.is_running()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if there are some, every program of theirs runs, and what they say of themselves is true or
    /// becomes true soon.
    pub(crate) fn are_whole(&mut self) -> Result<bool, Error> {
        for one in &self.all {
            if one.fails {
                return Ok(false);
            }
            for process in &one.machine.processes {
                if one.station.process(&process.name, ProcessAct::Look)? == 0 {
                    return Ok(false);
                }
            }
        }
        if self.all.is_empty() {
            return Ok(false);
        }
        self.heal()?;
        for one in &self.all {
            let processes = one.machine.processes.iter();
            let of_processes =
                processes.filter_map(|one| Some((Some(one.name.as_str()), one.ready.as_ref()?)));
            let own = one.machine.ready.iter().map(|ready| (None, ready));
            for (process, ready) in of_processes.chain(own) {
                let soon = spec::ReadyCondition {
                    within_ms: ready.within_ms.min(SOON_MS),
                    ..ready.clone()
                };
                match one.wait(process, &soon) {
                    Ok(()) => {}
                    Err(Error::NotReady { .. }) => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(true)
    }

    /// Starts all programs: the first of every machine, then the second of every machine, and waits
    /// for each until it is ready; then until every machine is.
    pub(crate) fn start(&self) -> Result<(), Error> {
        // Without machines there are no programs to start.
        let most = self.all.iter().map(|one| one.machine.processes.len()).max().unwrap_or(0);
        for place in 0..most {
            let started =
                self.all.iter().filter_map(|one| Some((one, one.machine.processes.get(place)?)));
            let started: Vec<_> = started.collect();
            for (one, process) in &started {
                one.station.process(&process.name, ProcessAct::Start)?;
            }
            for (one, process) in &started {
                if let Some(ready) = &process.ready {
                    one.wait(Some(&process.name), ready)?;
                }
            }
        }
        self.wait_until_ready()
    }

    /// Waits until what each machine says of itself is true.
    pub fn wait_until_ready(&self) -> Result<(), Error> {
        self.all.iter().try_for_each(Service::ready)
    }

    /// Ends all programs, the last one of each machine first. Machines stop in the reverse of the topology's
    /// order, since one may need those before it; `primary` is the last one of those with a server.
    pub(crate) fn stop(&mut self, primary: Option<&str>) -> Result<(), Error> {
        let servers: Vec<bool> = self.all.iter().map(|one| one.machine.server.is_some()).collect();
        let primary = self.all.iter().position(|one| Some(one.name.as_str()) == primary);
        let order = stop_order(&servers, primary);
        // Without machines there are no programs to end.
        let most = self.all.iter().map(|one| one.machine.processes.len()).max().unwrap_or(0);
        for place in (0..most).rev() {
            for index in &order {
                let one = &self.all[*index];
                let Some(process) = one.machine.processes.get(place) else { continue };
                if one.station.process(&process.name, ProcessAct::Look)? > 0 {
                    match one.station.process(&process.name, ProcessAct::Stop) {
                        // A manager may hang at its end. It is killed below, and its server recovers.
                        Ok(_) | Err(lab::Error::Stop { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        self.kill()
    }

    /// Kills all that they run, and ends their cuts.
    pub(crate) fn kill(&mut self) -> Result<(), Error> {
        for one in &mut self.all {
            one.station.kill9()?;
        }
        self.heal()
    }

    /// Ends their cuts, and lets go on what stands still.
    pub fn heal(&mut self) -> Result<(), Error> {
        for one in &mut self.all {
            if one.machine.has_network {
                one.station.heal()?;
            }
            one.station.resume()?;
        }
        Ok(())
    }

    /// Copies the files of all aside.
    pub(crate) fn keep_files(&self) -> Result<(), Error> {
        self.all.iter().try_for_each(|one| Ok(one.station.keep_files()?))
    }

    /// Puts the files back that were copied aside.
    pub(crate) fn reset_files(&mut self) -> Result<(), Error> {
        self.all.iter_mut().try_for_each(|one| {
            one.fails = false;
            Ok(one.station.reset_files()?)
        })
    }

    /// Flushes the disks of those that have one of their own.
    pub(crate) fn sync(&self) -> Result<(), lab::Error> {
        self.all.iter().try_for_each(|one| one.station.sync())
    }
}

/// The numbers of machines in the order in which they stop. `servers` tells which of them have a server.
fn stop_order(servers: &[bool], primary: Option<usize>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..servers.len()).rev().collect();
    let from = order.iter().position(|index| Some(*index) == primary);
    let to = order.iter().rposition(|index| servers[*index]);
    if let (Some(from), Some(to)) = (from, to)
        && from < to
    {
        order[from..=to].rotate_left(1);
    }
    order
}

impl SiteStation {
    /// Gives a station its programs. `server` is the one that they will start.
    fn equip(
        name: &str,
        machine: &MachineNode,
        station: Station,
        names: Names,
        server: Option<&SiteNode>,
        control: LoadControl,
    ) -> Result<SiteStation, Error> {
        let pairs = |pairs: &spec::VariableValues| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| (name.clone(), names.fill(value))).collect()
        };
        let processes = machine.processes.iter().map(|process| StationProcess {
            name: process.name.clone(),
            command: process.command.iter().map(|word| names.fill(word)).collect(),
            environment: pairs(&process.environment),
            files: (process.files.iter())
                .map(|(name, file)| (name.clone(), names.fill(&file.text)))
                .collect(),
            ends_by: process.ends_by,
            as_root: process.as_root,
        });
        station.equip(processes.collect())?;
        let conninfo = match &machine.clients {
            Some(clients) => Some(server::keyword_form(&names.fill(clients))?),
            None => server.map(|server| server.conninfo.clone()),
        };
        let (name, machine) = (name.to_owned(), machine.clone());
        Ok(SiteStation { name, station, machine, names, fails: false, conninfo, control })
    }

    /// Has its disk fail from a request on, for its programs to find out.
    ///
    /// # Errors
    /// The lab's: it has no disk of its own.
    pub fn fail_disk(&mut self, at: DiskRequest, fault: DiskFault) -> Result<(), lab::Error> {
        self.fails = true;
        self.station.fail_disk(at, fault)
    }

    /// Waits until it is ready, or one process of it.
    pub(crate) fn wait(
        &self,
        process: Option<&str>,
        ready: &spec::ReadyCondition,
    ) -> Result<(), Error> {
        let (conninfo, names, control) = (self.conninfo.as_deref(), &self.names, &self.control);
        Awaited { station: &self.station, process, conninfo, names, control }.wait(ready)
    }
}

/// A cluster that has become whole again says so at once; to begin anew takes about as long.
const SOON_MS: u64 = 15_000;

/// The word that means the clients of the load, and the rig.
const CLIENTS: &str = "clients";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_need_stops_after_them_and_the_primary_after_its_standbys() {
        let check = |servers: &[bool], primary, expected: &[usize]| {
            assert_eq!(stop_order(servers, primary), expected, "{servers:?}, primary {primary:?}");
        };
        // Two machines of etcd, three servers and a proxy.
        let cluster = [false, false, true, true, true, false];
        check(&cluster, Some(2), &[5, 4, 3, 2, 1, 0]);
        check(&cluster, Some(4), &[5, 3, 2, 4, 1, 0]);
        check(&cluster, None, &[5, 4, 3, 2, 1, 0]);
        check(&[true], Some(0), &[0]);
        check(&[true, false], Some(0), &[1, 0]);
        check(&[true, false, true], Some(2), &[1, 0, 2]);
        check(&[], None, &[]);
    }
}
