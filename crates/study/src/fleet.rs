//! The hosts that a study runs on: which has which servers, and which generate load.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;

use host::{Host, HostEntry, LauncherTrouble, LinkWatch, SilentGap};
use lab::Lab;
use load::OnHostLoss;
use load::{LoadControl, StopUrgency};
use site::Labs;
use spec::{Study, TopologyNode};

use crate::error::Error;
use crate::request::OnHosts;

/// The hosts that a study runs on. Dropping it ends everything that the rig started there.
#[derive(Debug)]
pub(crate) struct StudyHosts {
    hosts: Vec<Host>,
    /// Positions of those that generate load.
    generators: Vec<usize>,
    /// The position of each node's host.
    place: BTreeMap<String, usize>,
    on_loss: OnHostLoss,
    links: Vec<Link>,
    /// The watches of the disks of hosts with servers, by the position of the host.
    disks: BTreeMap<usize, u32>,
}

/// A link to a host with servers that is asked all the time, apart from the launchers.
#[derive(Debug)]
struct Link {
    /// The position of the host with servers.
    to: usize,
    from: LinkEnd,
}

/// The end of a link that asks.
#[derive(Debug)]
enum LinkEnd {
    /// This machine.
    Here(LinkWatch),
    /// A host that generates load, by its position, and the number of its watch.
    Host(usize, u32),
}

impl StudyHosts {
    /// Reaches the hosts that a study needs.
    pub(crate) fn reach(
        asked: &OnHosts,
        study: &Study,
        control: &LoadControl,
    ) -> Result<StudyHosts, Error> {
        let placed = place(asked, study)?;
        let generators: Vec<usize> = match asked.inventory.place.get(GENERATORS) {
            Some(chosen) => chosen.clone(),
            None => (0..asked.inventory.hosts.len()).collect(),
        };
        let used: BTreeSet<usize> = placed.values().chain(&generators).copied().collect();
        let used: Vec<usize> = used.into_iter().collect();
        let entries: Vec<HostEntry> =
            used.iter().map(|at| asked.inventory.hosts[*at].clone()).collect();
        let without: Vec<String> = entries
            .iter()
            .filter(|entry| entry.address.is_none())
            .map(|entry| entry.name.clone())
            .collect();
        if !without.is_empty() {
            return Err(Error::NoAddress { hosts: without });
        }
        let control = control.clone();
        let is_interrupted: host::Interrupted =
            Arc::new(move || control.urgency() != StopUrgency::None);
        let hosts = host::reach(&entries, &asked.program, &is_interrupted);
        if is_interrupted() {
            return Err(Error::Interrupted { doing: "reaching the hosts" });
        }
        let hosts = hosts.map_err(Error::Hosts)?;
        let has_servers = |at: usize| placed.values().any(|place| *place == used[at]);
        let troubles = host::cross_check(&hosts, has_servers, &[]);
        if !troubles.is_empty() {
            let of = |(host, trouble)| (host, Vec::new(), trouble);
            return Err(Error::Hosts(host::group(troubles.into_iter().map(of).collect())));
        }
        let position = |at: &usize| used.iter().position(|one| one == at);
        let generators = generators.iter().filter_map(position).collect();
        let place =
            placed.iter().filter_map(|(node, at)| Some((node.clone(), position(at)?))).collect();
        let on_loss = asked.on_loss;
        let (links, disks) = (Vec::new(), BTreeMap::new());
        let mut fleet = StudyHosts { hosts, generators, place, on_loss, links, disks };
        fleet.watch_links()?;
        fleet.watch_disks()?;
        Ok(fleet)
    }

    /// Has this machine and each host that generates load ask each other host that has servers, from now on.
    fn watch_links(&mut self) -> Result<(), Error> {
        let with_servers: BTreeSet<usize> = self.place.values().copied().collect();
        for to in with_servers {
            let host = &self.hosts[to];
            let name = &host.entry().name;
            let address = host.entry().address.as_deref();
            let address = address.expect("every host has an address, as was checked");
            let failed = |host: &str, why: String| {
                let trouble =
                    LauncherTrouble::Unreachable { address: format!("{name} at {address}"), why };
                Error::Hosts(host::group(vec![(host.to_owned(), Vec::new(), trouble)]))
            };
            let port = host.answer_echo(address).map_err(|why| failed(name, why))?;
            let at = host::joined(address, port);
            let here = LinkWatch::start(&at).map_err(|why| failed("this machine", why))?;
            self.links.push(Link { to, from: LinkEnd::Here(here) });
            for from in self.generators.iter().copied().filter(|from| *from != to) {
                let asking = &self.hosts[from];
                let watch = asking.watch(&at).map_err(|why| failed(&asking.entry().name, why))?;
                self.links.push(Link { to, from: LinkEnd::Host(from, watch) });
            }
        }
        Ok(())
    }

    /// Has each host with servers look at the disk of its labs, from now on.
    fn watch_disks(&mut self) -> Result<(), Error> {
        let with_servers: BTreeSet<usize> = self.place.values().copied().collect();
        for at in with_servers {
            let host = &self.hosts[at];
            let watch = host.watch_disk().map_err(|why| {
                let trouble = LauncherTrouble::NoDisk { why };
                Error::Hosts(host::group(vec![(host.entry().name.clone(), Vec::new(), trouble)]))
            })?;
            self.disks.insert(at, watch);
        }
        Ok(())
    }

    /// The times between two moments of this machine's monotonic clock in which the disk of a host's labs was full, and
    /// a second more each; none of a host without servers.
    pub(crate) fn full_disks(&self, host: &Host, from: u64, to: u64) -> Option<Vec<SilentGap>> {
        let at = self.hosts.iter().position(|one| std::ptr::eq(one, host))?;
        Some(host.full_disks(*self.disks.get(&at)?, from, to))
    }

    /// The host with servers whose disk was full for longest between two moments of this machine's monotonic clock, and
    /// for how many nanoseconds; none where no disk was full.
    pub(crate) fn fullest_disk(&self, from: u64, to: u64) -> Option<(&Host, u64)> {
        let full = self.hosts.iter().filter_map(|host| {
            let gaps = self.full_disks(host, from, to)?;
            Some((host, gaps.into_iter().map(SilentGap::length_ns).max()?))
        });
        full.max_by_key(|(_, ns)| *ns)
    }

    /// The times between two moments of this machine's monotonic clock in which nothing came back on a link of a host: of
    /// one that generates load, on its links to servers; of one with servers, on that from this machine. With each the host
    /// at the other end, if that is none of the rig's. None where it has no link.
    pub(crate) fn link_gaps(
        &self,
        host: &Host,
        from: u64,
        to: u64,
    ) -> Option<Vec<(SilentGap, Option<String>)>> {
        let at = self.hosts.iter().position(|one| std::ptr::eq(one, host))?;
        let own = self.links.iter().filter_map(|link| match &link.from {
            LinkEnd::Here(watch) => (link.to == at).then(|| (watch.gaps(from, to), None)),
            LinkEnd::Host(asking, watch) => (*asking == at).then(|| {
                let other = self.hosts[link.to].entry().name.clone();
                (host.link_gaps(*watch, from, to), Some(other))
            }),
        });
        let own: Vec<_> = own.collect();
        let each =
            own.iter().flat_map(|(gaps, other)| gaps.iter().map(move |gap| (*gap, other.clone())));
        (!own.is_empty()).then(|| each.collect())
    }

    /// Opens a lab on each host that has servers.
    pub(crate) fn open_labs(&self, asked: &OnHosts) -> Result<Labs, Error> {
        let password = lab::new_password()?;
        let mut clients: BTreeSet<IpAddr> = BTreeSet::new();
        let mut addresses = Vec::new();
        for host in &self.hosts {
            let (name, text) = (&host.entry().name, host.entry().address.as_deref());
            let address = address(name, text.unwrap_or_default())?; // Refused where none is given.
            clients.insert(address);
            clients.extend(own_address_towards(address));
            addresses.push(address);
        }
        let pg_bin = asked.pg_bin.as_deref();
        let with_servers: BTreeSet<usize> = self.place.values().copied().collect();
        let opened: Vec<Result<Lab, lab::Error>> = std::thread::scope(|scope| {
            let open = |at: &usize| {
                let (host, address, password) = (&self.hosts[*at], addresses[*at], &password);
                scope.spawn(move || Lab::on_host(host, address, password, pg_bin))
            };
            let threads: Vec<_> = with_servers.iter().map(open).collect();
            let opened = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            opened.map(|it| it.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        let labs = opened.into_iter().collect::<Result<Vec<_>, _>>()?;
        let lab_of = |at: &usize| with_servers.iter().position(|one| one == at);
        let place = self.place.iter();
        let place = place.filter_map(|(node, at)| Some((node.clone(), lab_of(at)?))).collect();
        let clients = clients.into_iter().collect();
        Ok(Labs::on_hosts(labs, place, clients, asked.inventory.tls))
    }

    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter()
    }

    /// The host of that name.
    pub(crate) fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.entry().name == name)
    }

    /// The hosts that generate load, without those that are lost.
    pub(crate) fn generators(&self) -> Vec<&Host> {
        let hosts = self.generators.iter().map(|at| &self.hosts[*at]);
        hosts.filter(|host| host.lost().is_none()).collect()
    }

    /// The first host with servers that is lost, and why.
    pub(crate) fn lost_with_servers(&self) -> Option<(&Host, String)> {
        let with_servers: BTreeSet<usize> = self.place.values().copied().collect();
        with_servers.into_iter().find_map(|at| {
            let host = &self.hosts[at];
            Some((host, host.lost()?.why))
        })
    }

    /// Why the order of time between clients on different hosts cannot be told, where the study asks for
    /// it: clocks that are not known well enough. Before anything is run.
    pub(crate) fn clock_doubt(&self, study: &Study) -> Option<String> {
        let keeps = |point: &spec::TrialPoint| point.workloads.iter().any(|one| one.keeps_history);
        if self.generators.len() < 2 || !study.points.iter().any(keeps) {
            return None;
        }
        let bound = |host: &Host| {
            let clock = host.clock();
            clock.bound_ns(&clock.course()?, 0, u64::MAX)
        };
        let doubtful = self.generators().into_iter().filter_map(|host| {
            let bound_ns = bound(host).filter(|ns| *ns > host::clock::BOUND_MAX_NS)?;
            Some(format!("{} (± {:.1} ms)", host.entry().name, bound_ns as f64 / 1e6))
        });
        let doubtful: Vec<String> = doubtful.collect();
        (!doubtful.is_empty()).then(|| {
            format!(
                "the clocks of these hosts are not known well enough to tell which transaction of one host came \
                 before one of another: {}; that histories are strictly serializable will be cannot tell, and \
                 the ages of reads are lower bounds",
                doubtful.join(", ")
            )
        })
    }

    /// Treatment of a load when a host is lost.
    pub(crate) fn on_loss(&self) -> OnHostLoss {
        self.on_loss
    }

    /// The first host that is lost and without which the run cannot go on, and why.
    pub(crate) fn missed(&self) -> Option<(String, String)> {
        let is_missed = |at: usize| {
            let has_servers = self.place.values().any(|place| *place == at);
            has_servers || self.on_loss == OnHostLoss::Stop || self.generators().is_empty()
        };
        self.hosts.iter().enumerate().find_map(|(at, host)| {
            let loss = host.lost().filter(|_| is_missed(at))?;
            Some((host.entry().name.clone(), loss.why))
        })
    }

    /// Roles of each host: the nodes of the study, and generating load.
    pub(crate) fn roles(&self) -> Vec<(&Host, Vec<String>)> {
        let roles = self.hosts.iter().enumerate().map(|(at, host)| {
            let nodes = self.place.iter().filter(|(_, place)| **place == at);
            let mut roles: Vec<String> = nodes.map(|(node, _)| node.clone()).collect();
            if self.generators.contains(&at) {
                roles.push(GENERATOR.to_owned());
            }
            (host, roles)
        });
        roles.collect()
    }
}

/// The position in the inventory of the host of every node of a study. A name with a number after
/// the placed one, as in `shard3`, gets its turn among the hosts of that place. A pooler or a guard
/// without a place is on the host of the server that it connects to.
fn place(asked: &OnHosts, study: &Study) -> Result<BTreeMap<String, usize>, Error> {
    let nodes: BTreeMap<&str, &TopologyNode> = study
        .points
        .iter()
        .flat_map(|point| &point.topology.nodes)
        .map(|node| (node.name.as_str(), node))
        .collect();
    let place = &asked.inventory.place;
    let (mut placed, mut without) = (BTreeMap::new(), Vec::new());
    for (name, node) in nodes {
        let beside = || {
            let to = node.connects_to().into_iter().next().filter(|_| !node.is_postgres());
            to.and_then(|to| position(to, place))
        };
        match position(name, place).or_else(beside) {
            Some(at) => {
                placed.insert(name.to_owned(), at);
            }
            None => without.push(name.to_owned()),
        }
    }
    match without.is_empty() {
        true => Ok(placed),
        false => Err(Error::Site(site::Error::NoPlace { nodes: without })),
    }
}

fn position(node: &str, place: &BTreeMap<String, Vec<usize>>) -> Option<usize> {
    if let Some([at, ..]) = place.get(node).map(Vec::as_slice) {
        return Some(*at);
    }
    let name = node.trim_end_matches(|c: char| c.is_ascii_digit());
    let number: usize = node[name.len()..].parse().ok()?;
    let hosts = place.get(name)?;
    hosts.get(number.checked_sub(1)? % hosts.len()).copied()
}

fn address(host: &str, text: &str) -> Result<IpAddr, Error> {
    let failed =
        |why: String| Error::Address { host: host.to_owned(), address: text.to_owned(), why };
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let mut found = (text, 0).to_socket_addrs().map_err(|error| failed(error.to_string()))?;
    let found = found.next().ok_or_else(|| failed("the name has no address".to_owned()))?;
    Ok(found.ip())
}

/// The address of this machine from which it connects to `to`. Connecting a datagram socket sends
/// nothing.
fn own_address_towards(to: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((to, 1)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The role of a host that generates load.
pub(crate) const GENERATOR: &str = "generator";

/// The name under `[place]` of the hosts that generate load.
const GENERATORS: &str = "generators";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_placed_by_name_or_in_turn() {
        let place = BTreeMap::from([
            ("primary".to_owned(), vec![2]),
            ("shard".to_owned(), vec![0, 1, 3]),
            ("shard2".to_owned(), vec![4]),
        ]);
        let check = |node, expected| assert_eq!(position(node, &place), expected, "{node}");
        check("primary", Some(2));
        check("shard1", Some(0));
        check("shard2", Some(4));
        check("shard3", Some(3));
        check("shard4", Some(0));
        check("shard0", None);
        check("standby1", None);
    }
}
