//! Facts that a reader wants to know of the machine and of what was installed on it.

use std::path::Path;

use lab::machine::{Disk, Machine};
use lab::{Lab, Server, Target};
use record::MachineFact;
use site::{Labs, Site, SiteNode};
use terms::{grouped, size};

use crate::fit::has::OutsideServer;
use crate::fleet::StudyHosts;

/// The machine and its system, with labs in `labs`.
pub fn machine(labs: &Path) -> Vec<MachineFact> {
    let machine = Machine::here();
    let group = "machine";
    let mut facts = vec![
        fact(group, "processor", machine.processor()),
        fact(group, "memory", size(machine.memory.total_bytes)),
        fact(group, "swap", size(machine.memory.swap_bytes)),
    ];
    if let Some(kind) = &machine.virtualisation {
        facts.push(fact(group, "virtualisation", kind.clone()));
    }
    if let Ok(disk) = Disk::at(labs) {
        let free = format!("{} of {} free", size(disk.free_bytes), size(disk.total_bytes));
        // In a chroot the system does not say what is mounted.
        let words = match disk.device.as_str() {
            "" => free,
            device => format!("{} on {device}, {free}", disk.file_system),
        };
        facts.push(fact(group, "disk of the servers", words));
    }
    let [one, five, fifteen] = machine.load_average;
    let load = format!("{one:.2}, {five:.2}, {fifteen:.2} in 1, 5, 15 min");
    facts.push(fact(group, "load average before", load));
    let steal = format!("{:.2} % of the time since boot", machine.steal_share * 100.0);
    facts.push(fact(group, "CPU taken by the hypervisor", steal));
    let group = "system";
    facts.push(fact(group, "distribution", machine.distribution.clone()));
    facts.push(fact(group, "kernel", machine.kernel.clone()));
    let pages = &machine.huge_pages;
    let huge = format!("{} reserved, transparent: {}", pages.total, pages.transparent);
    facts.push(fact(group, "huge pages", huge));
    facts
}

/// Servers that the rig has built.
pub(crate) fn built(lab: &Lab) -> Vec<MachineFact> {
    let (group, installation) = ("PostgreSQL", lab.installation());
    let mut facts = vec![
        fact(group, "version", installation.version().to_string()),
        fact(group, "programs", installation.bin().display().to_string()),
        fact(group, "isolation", lab.isolation().to_string()),
    ];
    let preloaded = lab::machine::preloaded();
    facts.extend(preloaded.map(|libraries| fact(group, "LD_PRELOAD of the user", libraries)));
    facts
}

/// A PostgreSQL that nodes of the study name, beside that of the run.
pub(crate) fn programs(lab: &Lab) -> Vec<MachineFact> {
    let installation = lab.installation();
    let name = format!("version in {}", installation.bin().display());
    vec![fact("PostgreSQL", &name, installation.version().to_string())]
}

/// The facts among these that say which servers are measured: versions, and the place of a target.
pub(crate) fn of_servers(facts: &[MachineFact]) -> Vec<String> {
    let is_of = |one: &&MachineFact| {
        one.name == "PostgreSQL"
            || one.group == "PostgreSQL" && ["version", "target"].contains(&one.name.as_str())
    };
    let words = |one: &MachineFact| format!("{} {} {}", one.group, one.name, one.value);
    let mut found: Vec<String> = facts.iter().filter(is_of).map(words).collect();
    found.sort_unstable();
    found
}

/// Servers that the rig has built on hosts, and the machines of these hosts.
pub(crate) fn on_hosts(fleet: &StudyHosts, labs: &Labs) -> Vec<MachineFact> {
    let mut facts = Vec::new();
    for (host, roles) in fleet.roles() {
        let group = format!("host {}", host.entry().name);
        facts.push(fact(&group, "is there for", roles.join(", ")));
        let hello = host.hello();
        facts.push(fact(&group, "name", hello.name.clone()));
        facts.extend(hello.facts.iter().map(|(name, value)| fact(&group, name, value.clone())));
        let lab = labs.iter().find(|lab| lab.host() == Some(host.entry().name.as_str()));
        // A host without servers has no lab, and no facts of one.
        let of_lab = lab.map(built).unwrap_or_default();
        facts.extend(of_lab.into_iter().map(|one| {
            let name = if one.name == "version" { "PostgreSQL" } else { one.name.as_str() };
            fact(&group, name, one.value.clone())
        }));
    }
    facts
}

/// Sizes of the data of each server that the rig has built; `what` says what they are made of.
pub(crate) fn data(site: &Site, what: &str) -> Vec<MachineFact> {
    let of = |node: &SiteNode| match &node.server {
        Server::Node(server) => {
            let bytes = server.data_bytes().ok()?;
            Some(fact(DATA, &format!("{} ({what})", node.name), size(bytes)))
        }
        Server::Managed(_) | Server::Target(_) => None,
    };
    site.nodes.iter().filter_map(of).collect()
}

/// The packages of the distribution that were unpacked, with their versions.
pub(crate) fn packages(labs: &Labs) -> Vec<MachineFact> {
    let files = labs.unpacked().into_iter().filter_map(|file| {
        let mut parts = file.split('_');
        Some(fact(PACKAGES, parts.next()?, parts.next()?.replace("%3a", ":")))
    });
    files.collect()
}

const PACKAGES: &str = "packages";
const DATA: &str = "data directories, without the WAL";

/// The cost of one flush of the lab's disk with each wal_sync_method.
pub(crate) fn flushes(lab: &Lab, seconds: u64) -> Result<Vec<MachineFact>, lab::Error> {
    let flushes = lab.test_flush(seconds)?;
    let words = |flush: &lab::Flush| match flush.per_second {
        Some(rate) => format!("{:.0} µs, {}/s", 1e6 / rate, grouped(rate.round() as u64)),
        None => "not on this platform".to_owned(),
    };
    let name = |method: &str| match lab.host() {
        None => method.to_owned(),
        Some(host) => format!("{method} on {host}"),
    };
    Ok(flushes.iter().map(|flush| fact(FLUSHES, &name(&flush.method), words(flush))).collect())
}

/// The facts that pg_test_fsync gives; tables of studies ask for them by this name.
pub(crate) const FLUSHES: &str = "pg_test_fsync";

/// A server of the user's.
pub(crate) fn outside(target: &Target) -> Vec<MachineFact> {
    let group = "PostgreSQL";
    vec![fact(group, "version", target.version().to_owned()), fact(group, "target", target.place())]
}

/// Settings of the user's server that are not PostgreSQL's defaults, as it has them.
pub(crate) fn outside_settings(outside: &OutsideServer) -> Vec<MachineFact> {
    let set = outside.settings.iter().filter(|(_, current)| current.is_set);
    set.map(|(name, current)| fact(SETTINGS, name, current.shown.clone())).collect()
}

const SETTINGS: &str = "settings of the target";

pub(crate) fn fact(group: &str, name: &str, value: String) -> MachineFact {
    MachineFact { group: group.to_owned(), name: name.to_owned(), value }
}
