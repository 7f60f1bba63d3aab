//! Resources that a machine, or the user's server, has for a study.

use std::collections::BTreeMap;
use std::path::Path;

use lab::find::PgBouncer;
use lab::machine::{Disk, HugePages, Machine};
use lab::{Installation, MachineContention, Resources, Target};
use site::{Hosts, Labs};
use spec::TopologyNode;
use wire::conninfo::{Conninfo, ConninfoHost, HostAddress};

use crate::fit::busyness;
use crate::fit::programs::StudyPrograms;

/// Resources of the machine.
#[derive(Clone, Debug)]
pub struct MachineResources {
    /// Memory that can be used without swapping, in bytes.
    pub memory_bytes: u64,
    /// The huge pages.
    pub huge_pages: HugePages,
    /// How many times as long the rig's own work takes as on the idle machine, because others compute; at least 1.
    pub slowdown: f64,
    /// Room on the disk of the lab, in bytes.
    pub disk_bytes: u64,
    /// Files that one process may hold open.
    pub open_files: u64,
    /// True if the rig runs as root.
    pub is_root: bool,
    /// Every PgBouncer that is installed, the newest first.
    pub pgbouncers: Vec<PgBouncer>,
    /// The servers' side.
    pub servers: HasServers,
    /// Free connections of hosts that stand for shards, by the node's name.
    pub hosts: BTreeMap<String, u32>,
}

/// Origin of the servers.
#[derive(Clone, Debug)]
pub enum HasServers {
    /// The rig builds them from these.
    Built(StudyPrograms),
    /// The rig builds them on hosts.
    OnHosts(Vec<HostHas>),
    /// The user's.
    Outside(OutsideServer),
}

/// Resources of a host for the servers that are placed on it.
#[derive(Clone, Debug)]
pub struct HostHas {
    /// The name in the inventory.
    pub name: String,
    /// The nodes that are placed on it.
    pub nodes: Vec<String>,
    /// The PostgreSQL.
    pub installation: Installation,
    /// The memory, disk and programs.
    pub resources: Resources,
}

/// Resources of the user's server.
#[derive(Clone, Debug, Default)]
pub struct OutsideServer {
    /// The major version.
    pub major: u32,
    /// Free connections.
    pub connections: u32,
    /// True if clients connect to it by TCP.
    pub by_tcp: bool,
    /// Extensions that its database has.
    pub extensions: Vec<String>,
    /// The settings, by name.
    pub settings: BTreeMap<String, CurrentSetting>,
}

/// A setting as `pg_settings` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CurrentSetting {
    /// The value, in the unit.
    pub value: String,
    /// The unit, such as `8kB` or `ms`; empty for none.
    pub unit: String,
    /// Value without a configuration, in the unit.
    pub default: String,
    /// The value as `SHOW` has it.
    pub shown: String,
    /// True if it came from anywhere but the default.
    pub is_set: bool,
}

impl MachineResources {
    /// Resources of this machine for servers of these programs, with labs in `labs`.
    pub fn here(
        programs: impl Into<StudyPrograms>,
        labs: &Path,
    ) -> Result<MachineResources, lab::Error> {
        MachineResources::with(HasServers::Built(programs.into()), labs)
    }

    /// Resources of hosts for servers in these labs, of all of them together.
    pub(crate) fn on_hosts(built: &Labs, labs: &Path) -> Result<MachineResources, lab::Error> {
        let host = |lab: &lab::Lab| {
            Ok::<_, lab::Error>(HostHas {
                name: lab.host().expect("these labs are on hosts").to_owned(),
                nodes: built.nodes_of(lab),
                installation: lab.installation().clone(),
                resources: lab.resources()?,
            })
        };
        let hosts = built.iter().map(host).collect::<Result<Vec<_>, _>>()?;
        let sum = |of: fn(&Resources) -> u64| hosts.iter().map(|host| of(&host.resources)).sum();
        let memory_bytes = sum(|resources| resources.memory_bytes);
        let disk_bytes = sum(|resources| resources.disk_bytes);
        let is_root = hosts.iter().all(|host| host.resources.is_root);
        let has = MachineResources::with(HasServers::OnHosts(hosts), labs)?;
        Ok(MachineResources { memory_bytes, disk_bytes, is_root, ..has })
    }

    /// The PostgreSQL that a node gets; none of the user's.
    pub fn installation(&self, node: &TopologyNode) -> Option<&Installation> {
        match &self.servers {
            HasServers::Built(programs) => programs.of(node),
            HasServers::OnHosts(hosts) => host_of(hosts, &node.name).map(|host| &host.installation),
            HasServers::Outside(_) => None,
        }
    }

    /// The major version of the server of a node.
    pub fn major(&self, node: &TopologyNode) -> Option<u32> {
        match &self.servers {
            HasServers::Outside(outside) => Some(outside.major),
            HasServers::Built(_) | HasServers::OnHosts(_) => {
                self.installation(node).map(|one| one.version().major)
            }
        }
    }

    /// Resources of the host of a node; none on this machine and on a server of the user's.
    pub fn resources(&self, node: &str) -> Option<&Resources> {
        match &self.servers {
            HasServers::OnHosts(hosts) => host_of(hosts, node).map(|host| &host.resources),
            HasServers::Built(_) | HasServers::Outside(_) => None,
        }
    }

    /// The PgBouncers that are installed where a node is, the newest first.
    pub fn pgbouncers(&self, node: &str) -> &[PgBouncer] {
        match &self.servers {
            HasServers::OnHosts(hosts) => {
                host_of(hosts, node).map_or(&[], |host| &host.resources.pgbouncers)
            }
            HasServers::Built(_) | HasServers::Outside(_) => &self.pgbouncers,
        }
    }

    /// Resources of this machine for loading the user's server.
    pub fn outside(target: &Target, labs: &Path) -> Result<MachineResources, lab::Error> {
        let connections = number(target, FREE_CONNECTIONS)?;
        let listed = target.value(EXTENSIONS)?.unwrap_or_default(); // NULL where there is none.
        let extensions = listed.split(',').map(str::to_owned).collect();
        let mut client = target.connect()?;
        let rows = client.query(SETTINGS, &[]).map_err(|source| lab::Error::Query {
            server: lab::TARGET.to_owned(),
            statement: SETTINGS.to_owned(),
            source,
        })?;
        let settings = rows.iter().map(|row| {
            let current = CurrentSetting {
                value: row.get(1),
                unit: row.get(2),
                default: row.get(3),
                shown: row.get(4),
                is_set: row.get(5),
            };
            (row.get(0), current)
        });
        let settings = settings.collect();
        let conninfo = Conninfo::from_keyword_string(target.conninfo());
        let is_tcp = |host: &ConninfoHost| matches!(host.address, HostAddress::Tcp { .. });
        let by_tcp = conninfo.is_ok_and(|conninfo| conninfo.hosts.iter().any(is_tcp));
        let outside =
            OutsideServer { major: target.major(), connections, by_tcp, extensions, settings };
        MachineResources::with(HasServers::Outside(outside), labs)
    }

    fn with(servers: HasServers, labs: &Path) -> Result<MachineResources, lab::Error> {
        let machine = Machine::here();
        let contention = MachineContention::observe(busyness::LOOK);
        Ok(MachineResources {
            memory_bytes: machine.memory.available_bytes,
            huge_pages: machine.huge_pages,
            slowdown: busyness::slowdown(contention, machine.cores),
            disk_bytes: Disk::at(labs)?.free_bytes,
            open_files: machine.open_files.hard.unwrap_or(u64::MAX),
            is_root: lab::machine::is_root(),
            pgbouncers: lab::find::pgbouncers(),
            servers,
            hosts: BTreeMap::new(),
        })
    }

    /// The same with hosts that stand for shards.
    pub(crate) fn with_hosts(mut self, hosts: &Hosts) -> Result<MachineResources, lab::Error> {
        for (name, host) in hosts {
            self.hosts.insert(name.clone(), number(host, FREE_CONNECTIONS)?);
        }
        Ok(self)
    }
}

fn host_of<'h>(hosts: &'h [HostHas], node: &str) -> Option<&'h HostHas> {
    hosts.iter().find(|host| host.nodes.iter().any(|name| name == node))
}

fn number(target: &Target, sql: &str) -> Result<u32, lab::Error> {
    // A number below 0 says that sessions use the reserved connections as well: none is free.
    Ok(target.value(sql)?.and_then(|text| text.parse().ok()).unwrap_or(0))
}

// Sessions of other roles are in pg_stat_database for everybody. The limits of roles do not apply to superusers, those
// of databases apply to the role of a run; least() passes over NULL.
const FREE_CONNECTIONS: &str = "SELECT least( \
    current_setting('max_connections')::int \
        - current_setting('superuser_reserved_connections')::int \
        - coalesce(current_setting('reserved_connections', true)::int, 0) \
        - (SELECT sum(numbackends) FROM pg_catalog.pg_stat_database), \
    CASE WHEN NOT r.rolsuper AND r.rolconnlimit >= 0 THEN r.rolconnlimit \
        - (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE usename = r.rolname) END, \
    CASE WHEN d.datconnlimit >= 0 THEN d.datconnlimit \
        - (SELECT numbackends FROM pg_catalog.pg_stat_database WHERE datid = d.oid) END)::int \
    FROM pg_catalog.pg_roles r, pg_catalog.pg_database d \
    WHERE r.rolname = session_user AND d.datname = current_database()";
/// Statements that are run before a run on the user's server.
pub(crate) const OUTSIDE: &[&str] =
    &["SHOW server_version_num", "SHOW server_version", FREE_CONNECTIONS, EXTENSIONS, SETTINGS];

/// Hint of those who need more connections than [`FREE_CONNECTIONS`] says.
pub(crate) const MORE_CONNECTIONS: &str =
    "raise max_connections there, or the connection limit of the role or of the database";

const EXTENSIONS: &str =
    "SELECT string_agg(extname::text, ',' ORDER BY extname) FROM pg_catalog.pg_extension";
// Of a session of the rig's, whose own settings are the client's and not the server's.
const SETTINGS: &str = "SELECT name, coalesce(setting, ''), coalesce(unit, ''), \
    coalesce(boot_val, ''), coalesce(current_setting(name, true), ''), \
    source NOT IN ('default', 'override', 'client', 'session') \
    FROM pg_catalog.pg_settings";
