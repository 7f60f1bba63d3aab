//! One node of a topology: what it is, whom it follows or serves, how it is set.

use terms::{PoolMode, Swallowed};

use crate::disk::Disk;
use crate::fields::{Fields, Settings, choice};
use crate::folder::Folder;
use crate::machine::Machine;
use crate::problem::Problems;
use crate::throttle::Throttle;
use crate::value::{Is, Value};

/// One node of a topology.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// Its name in the topology.
    pub name: String,
    /// The name that study.toml gives it: the same, unless `count` makes several of one.
    pub group: String,
    /// Its kind.
    pub kind: NodeKind,
    /// Its settings: the study's, then the node's, then the variant's, the last one wins. Of a
    /// pooler only its own.
    pub settings: Settings,
    /// Extensions to create in its database before the data are built.
    pub extensions: Vec<String>,
    /// The disk of its data.
    pub disk: Disk,
    /// Limits of its reads and writes while clients are there; none where it may be as fast as it can.
    pub throttle: Option<Throttle>,
    /// True if clients reach it by TCP on loopback and not by a Unix socket.
    pub by_tcp: bool,
    /// True if its data have page checksums (initdb --data-checksums); without it, the default of
    /// that PostgreSQL applies.
    pub has_checksums: bool,
    /// True if its WAL is archived: on the lab's own disk, which no power cut reaches.
    pub is_archived: bool,
    /// The flushes that do nothing, if some do: a fault that a check is to find.
    pub swallow_fsync: Option<Swallowed>,
}

/// The kinds of node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// A PostgreSQL server.
    Postgres(Role),
    /// A PgBouncer in front of a server.
    Pgbouncer(Pgbouncer),
    /// `pgrig guard`, watching over a primary's synchronous replication.
    Guard(Guard),
    /// A PostgreSQL server with PL/Proxy, in front of the servers that hold the data.
    Plproxy(Plproxy),
    /// Programs that the study names.
    Machine(Box<Machine>),
}

/// The role in which a PostgreSQL server begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It takes writes.
    Primary {
        /// For how many of its standbys a commit waits; none if it waits for none.
        sync: Option<Quorum>,
    },
    /// It follows another server by streaming replication.
    Standby {
        /// The server that it follows.
        of: String,
        /// Its priority among the synchronous standbys, 1 first; none if it is asynchronous.
        sync: Option<u32>,
    },
}

/// For how many standbys a commit waits, as `synchronous_standby_names` asks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quorum {
    /// The way in which the standbys are chosen.
    pub way: QuorumWay,
    /// Number of standbys.
    pub count: u32,
}

/// The choice of the standbys that a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuorumWay {
    /// Those of the highest priority.
    First,
    /// The fastest ones.
    Any,
}

/// A PgBouncer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pgbouncer {
    /// The server that it is in front of.
    pub to: String,
    /// Server connections at most.
    pub pool: u32,
    /// The moment at which a server connection goes back to the pool.
    pub mode: PoolMode,
    /// Client connections at most.
    pub clients: u32,
    /// The beginning of its version, as in "1.18"; the newest one installed without it.
    pub version: Option<String>,
}

/// A guard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guard {
    /// The primary that it watches.
    pub to: String,
    /// Time that commits may wait for a standby before it acts, in milliseconds.
    pub grace_ms: u64,
}

/// A PL/Proxy server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Plproxy {
    /// The servers that hold the data when a trial begins, in the order of the file.
    pub to: Vec<String>,
    /// The poolers through which it reaches them, if any: one for each of `to`.
    pub through: Vec<String>,
    /// Virtual buckets over which keys are hashed; a power of two.
    pub buckets: u32,
    /// Partitions, where that is not one for each server: databases, dealt out to the servers in
    /// turn.
    pub partitions: Option<u32>,
}

impl Plproxy {
    /// Number of its partitions.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.partitions.unwrap_or(u32::try_from(self.to.len()).unwrap_or(u32::MAX))
    }

    /// Number of partitions that the server of that name holds.
    #[must_use]
    pub fn partitions_on(&self, server: &str) -> u32 {
        let servers = self.to.iter().cycle().take(self.partitions() as usize);
        u32::try_from(servers.filter(|name| *name == server).count()).unwrap_or(u32::MAX)
    }
}

impl Node {
    /// True if it is a PostgreSQL server, PL/Proxy's included.
    #[must_use]
    pub fn is_postgres(&self) -> bool {
        matches!(self.kind, NodeKind::Postgres(_) | NodeKind::Plproxy(_))
    }

    /// The machine, the process or the route, if it is one.
    #[must_use]
    pub fn machine(&self) -> Option<&Machine> {
        match &self.kind {
            NodeKind::Machine(machine) => Some(machine),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn machine_mut(&mut self) -> Option<&mut Machine> {
        match &mut self.kind {
            NodeKind::Machine(machine) => Some(machine),
            _ => None,
        }
    }

    /// True if SQL can be run on it: a PostgreSQL server, or a machine whose manager starts one.
    #[must_use]
    pub fn has_server(&self) -> bool {
        self.is_postgres() || self.machine().is_some_and(|machine| machine.server.is_some())
    }

    /// The server that it follows, if it is a standby.
    #[must_use]
    pub fn follows(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Postgres(Role::Standby { of, .. }) => Some(of),
            _ => None,
        }
    }

    /// The nodes that it connects to by itself.
    #[must_use]
    pub fn connects_to(&self) -> Vec<&str> {
        match &self.kind {
            NodeKind::Postgres(Role::Primary { .. }) | NodeKind::Machine(_) => Vec::new(),
            NodeKind::Postgres(Role::Standby { of, .. }) => vec![of],
            NodeKind::Pgbouncer(pooler) => vec![&pooler.to],
            NodeKind::Guard(guard) => vec![&guard.to],
            NodeKind::Plproxy(proxy) => match proxy.through.is_empty() {
                true => proxy.to.iter().map(String::as_str).collect(),
                false => proxy.through.iter().map(String::as_str).collect(),
            },
        }
    }

    /// A PostgreSQL server that takes writes.
    pub(crate) fn primary(name: &str) -> Node {
        Node {
            name: name.to_owned(),
            group: name.to_owned(),
            kind: NodeKind::Postgres(Role::Primary { sync: None }),
            settings: Settings::new(),
            extensions: Vec::new(),
            disk: Disk::Plain,
            throttle: None,
            by_tcp: false,
            has_checksums: false,
            is_archived: false,
            swallow_fsync: None,
        }
    }

    /// The node, or as many as `count` says. What it refers to is a group until the topology
    /// [`resolve`](crate::topology)s it.
    pub(crate) fn parse(
        name: &str,
        value: &Value,
        folder: &Folder,
        problems: &Problems,
    ) -> Vec<Node> {
        // `primary = {}` and `primary = "postgres"` say the same.
        if let Is::Text(_) = value.is {
            let kind = choice("kind", value, BARE_KINDS, problems);
            return kind.map(|()| Node::primary(name)).into_iter().collect();
        }
        let Some(fields) = Fields::of("a node", value, problems) else { return Vec::new() };
        let kind = match fields.choice("kind", KINDS) {
            None | Some(Kind::Postgres) => postgres(&fields),
            Some(Kind::Pgbouncer) => pgbouncer(&fields),
            Some(Kind::Guard) => guard(&fields),
            Some(Kind::Plproxy) => plproxy(&fields),
            Some(Kind::Machine) => boxed(Machine::several(&fields, folder)),
            Some(Kind::Process) => boxed(Machine::one(name, &fields, folder)),
            Some(Kind::Route) => boxed(Machine::route(&fields)),
        };
        let is_postgres = matches!(kind, Some(NodeKind::Postgres(_) | NodeKind::Plproxy(_)) | None);
        let mut node = Node { kind: kind.clone().unwrap_or(NO_KIND), ..Node::primary(name) };
        let is_listening = !matches!(kind, Some(NodeKind::Guard(_) | NodeKind::Machine(_)));
        if is_listening {
            node.settings = fields.settings("settings");
        }
        if is_postgres {
            node.extensions =
                fields.texts("extensions").into_iter().map(|(name, _)| name).collect();
            node.disk = fields.value("disk").map_or(Disk::Plain, |d| Disk::parse(d, problems));
            node.throttle = fields.value("throttle").and_then(|t| Throttle::parse(t, problems));
            node.has_checksums = fields.boolean("checksums").unwrap_or(false);
            node.is_archived = fields.boolean("archive").unwrap_or(false);
            node.swallow_fsync = fields.choice("swallow_fsync", SWALLOWED);
        }
        if node.disk.can_be_cut()
            && let Some(entry) = fields.entry("throttle")
        {
            let message = "a disk whose power can be cut has no throttle";
            problems.add(&entry.key_span, message);
        }
        if let Some(of) = node.follows()
            && let Some(entry) = fields.entry("extensions")
        {
            let message = format!("standby \"{name}\" has the extensions of {of}");
            problems.hinted(&entry.key_span, message, format!("name them at {of}"));
        }
        if is_listening {
            node.by_tcp = fields.choice("listen", LISTEN).unwrap_or(false);
        }
        let count = fields.integer("count", 1..=COUNT_MAX);
        fields.finish();
        match (kind, count) {
            (None, _) => Vec::new(),
            (Some(_), None) => vec![node],
            (Some(_), Some(count)) => {
                let numbered = |n| Node { name: format!("{name}{n}"), ..node.clone() };
                (1..=count).map(numbered).collect()
            }
        }
    }
}

/// The ways in which a node listens, by their names in study.toml; true for TCP.
const LISTEN: &[(&str, bool)] = &[("socket", false), ("tcp", true)];

/// Stands for the kind of a node while that is wrong; the study is refused for it.
const NO_KIND: NodeKind = NodeKind::Postgres(Role::Primary { sync: None });

fn postgres(fields: &Fields<'_>) -> Option<NodeKind> {
    let Some(of) = fields.text("of") else {
        let sync = fields.value("sync").and_then(|value| quorum(value, fields.problems));
        return Some(NodeKind::Postgres(Role::Primary { sync }));
    };
    let sync = fields.integer("sync", 1..=COUNT_MAX);
    Some(NodeKind::Postgres(Role::Standby { of: of.to_owned(), sync }))
}

/// `FIRST 1`, `ANY 2`.
fn quorum(value: &Value, problems: &Problems) -> Option<Quorum> {
    let parsed = match &value.is {
        Is::Text(text) => text.trim().split_once(char::is_whitespace).and_then(|(way, count)| {
            let way = match () {
                () if way.eq_ignore_ascii_case("FIRST") => QuorumWay::First,
                () if way.eq_ignore_ascii_case("ANY") => QuorumWay::Any,
                () => return None,
            };
            let count = count.trim().parse().ok().filter(|count| *count > 0)?;
            Some(Quorum { way, count })
        }),
        _ => None,
    };
    if parsed.is_none() {
        let hint = "a primary says \"FIRST 1\" or \"ANY 2\"; a priority belongs to a standby, \
                    which says of = \"PRIMARY\"";
        problems.hinted(&value.span, "sync: not a number of standbys", hint);
    }
    parsed
}

fn pgbouncer(fields: &Fields<'_>) -> Option<NodeKind> {
    let to = to(fields)?;
    Some(NodeKind::Pgbouncer(Pgbouncer {
        to,
        pool: fields.integer("pool", 1..=CONNECTIONS_MAX).unwrap_or(POOL_DEFAULT),
        mode: fields.choice("mode", MODES).unwrap_or(PoolMode::Transaction),
        clients: fields.integer("clients", 1..=CONNECTIONS_MAX).unwrap_or(CLIENTS_DEFAULT),
        version: fields.text("version").map(str::to_owned),
    }))
}

fn guard(fields: &Fields<'_>) -> Option<NodeKind> {
    let to = to(fields)?;
    let grace_ms = fields.duration_ms("grace").unwrap_or(GRACE_DEFAULT_MS);
    Some(NodeKind::Guard(Guard { to, grace_ms }))
}

fn plproxy(fields: &Fields<'_>) -> Option<NodeKind> {
    fields.required("to")?;
    let to = fields.texts("to").into_iter().map(|(name, _)| name).collect();
    let through = fields.texts("through").into_iter().map(|(name, _)| name).collect();
    let buckets: u32 = fields.integer("buckets", 1..=BUCKETS_MAX).unwrap_or(BUCKETS_DEFAULT);
    if !buckets.is_power_of_two() {
        let span = fields.value("buckets").map_or(fields.span(), |value| &value.span);
        let hint = "a bucket is the low bits of a hash: 16, 32, 64, 128, …";
        fields.problems.hinted(span, "buckets must be a power of two", hint);
    }
    let partitions = fields.integer("partitions", 1..=PARTITIONS_MAX);
    if let (Some(partitions), Some(value)) = (partitions, fields.value("partitions"))
        && partitions > buckets
    {
        let message = format!("{partitions} partitions, but {buckets} buckets");
        fields.problems.add(&value.span, message);
    }
    Some(NodeKind::Plproxy(Plproxy { to, through, buckets, partitions }))
}

fn boxed(machine: Option<Machine>) -> Option<NodeKind> {
    machine.map(|machine| NodeKind::Machine(Box::new(machine)))
}

fn to(fields: &Fields<'_>) -> Option<String> {
    fields.required("to")?;
    fields.text("to").map(str::to_owned)
}

/// The kinds by their names in study.toml.
#[derive(Clone, Copy)]
enum Kind {
    Postgres,
    Pgbouncer,
    Guard,
    Plproxy,
    Machine,
    Process,
    Route,
}

const KINDS: &[(&str, Kind)] = &[
    ("postgres", Kind::Postgres),
    ("pgbouncer", Kind::Pgbouncer),
    ("guard", Kind::Guard),
    ("plproxy", Kind::Plproxy),
    ("machine", Kind::Machine),
    ("process", Kind::Process),
    ("route", Kind::Route),
];
/// The kinds by their names in study.toml.
#[cfg(test)]
pub(crate) fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, _)| *name)
}

/// The kind that needs no fields.
const BARE_KINDS: &[(&str, ())] = &[("postgres", ())];
const MODES: &[(&str, PoolMode)] = &[
    ("session", PoolMode::Session),
    ("transaction", PoolMode::Transaction),
    ("statement", PoolMode::Statement),
];

/// More servers than one machine has use for.
const COUNT_MAX: u32 = 256;
/// Twice as many as PostgreSQL can have connections.
const CONNECTIONS_MAX: u32 = 1 << 19;
/// Limits and defaults of a cluster.
const BUCKETS_MAX: u32 = 4096;
const BUCKETS_DEFAULT: u32 = 128;
/// Each session of the proxy has a connection to every one of them.
const PARTITIONS_MAX: u32 = 1024;
/// PgBouncer's own defaults of default_pool_size and max_client_conn.
const POOL_DEFAULT: u32 = 20;
const CLIENTS_DEFAULT: u32 = 100;
/// Long enough that no busy standby is taken for a dead one.
const GRACE_DEFAULT_MS: u64 = 3_000;

const SWALLOWED: &[(&str, Swallowed)] = &[
    ("pg_control", Swallowed::Control),
    ("wal", Swallowed::Wal),
    ("relation", Swallowed::Relation),
    ("commit_log", Swallowed::CommitLog),
    ("directory", Swallowed::Directory),
    ("all", Swallowed::All),
];
