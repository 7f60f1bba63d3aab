//! One node of a topology: what it is, whom it follows or serves, how it is set.

use std::path::PathBuf;

use terms::SwallowedFlushes;

use crate::disk::DiskKind;
use terms::Settings;

use crate::fields::{Fields, choice};
use crate::folder::StudyFolder;
use crate::initdb::InitdbOption;
use crate::machine::MachineNode;
use crate::problem::Problems;
use crate::throttle::NodeThrottle;
use crate::value::{Is, Value};

mod guard;
mod machine;
mod pgbouncer;
mod plproxy;
mod postgres;
mod subscription;

pub use guard::GuardNode;
pub use pgbouncer::PgbouncerNode;
pub use plproxy::PlproxyNode;
pub use postgres::{PostgresRole, QuorumWay, StandbyQuorum};
pub use subscription::{
    Subscription, SubscriptionBegin, SubscriptionOrigin, SubscriptionStreaming,
};

/// One node of a topology.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopologyNode {
    /// The name in the topology.
    pub name: String,
    /// The name that study.toml gives it: the same, unless `count` makes several of one.
    pub group: String,
    /// The kind.
    pub kind: NodeKind,
    /// The settings: the study's, then the node's, then the variant's, the last one wins. Of a
    /// pooler only its own.
    pub settings: Settings,
    /// Extensions to create in its database before the data are built.
    pub extensions: Vec<String>,
    /// The disk of its data.
    pub disk: DiskKind,
    /// Limits of its reads and writes while clients are there; none where it may be as fast as it can.
    pub throttle: Option<NodeThrottle>,
    /// True if clients reach it by TCP on loopback and not by a Unix socket.
    pub by_tcp: bool,
    /// Options of initdb, which makes its data directory, or the one that a standby's is a copy of.
    pub initdb: Vec<InitdbOption>,
    /// True if its WAL is archived: on the lab's own disk, which no power cut reaches.
    pub is_archived: bool,
    /// What keeps that archive.
    pub archive_by: ArchiveBy,
    /// True if the node has a clock of its own that can be stepped: a fault that a check is to find.
    pub has_own_clock: bool,
    /// The flushes that do nothing, if some do: a fault that a check is to find.
    pub swallow_fsync: Option<SwallowedFlushes>,
    /// The publication that it subscribes to, if it gets rows by logical replication.
    pub subscribes: Option<Subscription>,
    /// The folder of its PostgreSQL's programs; none for the PostgreSQL of the run.
    pub bin: Option<PathBuf>,
}

/// The kinds of node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// A PostgreSQL server.
    Postgres(PostgresRole),
    /// A PgBouncer in front of a server.
    Pgbouncer(PgbouncerNode),
    /// `pgrig guard`, watching over a primary's synchronous replication.
    Guard(GuardNode),
    /// A PostgreSQL server with PL/Proxy, in front of the servers that hold the data.
    Plproxy(PlproxyNode),
    /// Programs that the study names.
    Machine(Box<MachineNode>),
}

/// What keeps the archive of a server's WAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArchiveBy {
    /// `cp` and pg_basebackup.
    Copy,
    /// pgBackRest, from the packages of the distribution.
    PgBackRest,
}

/// Names by which a node refers to others.
pub(crate) enum References<'n> {
    /// One node.
    One(&'n mut String),
    /// As many as a name means.
    All(&'n mut Vec<String>),
}

impl TopologyNode {
    /// True if it is a PostgreSQL server, PL/Proxy's included.
    pub fn is_postgres(&self) -> bool {
        matches!(self.kind, NodeKind::Postgres(_) | NodeKind::Plproxy(_))
    }

    /// The machine, the process or the route, if the node is of that kind.
    pub fn machine(&self) -> Option<&MachineNode> {
        match &self.kind {
            NodeKind::Machine(machine) => Some(machine),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn machine_mut(&mut self) -> Option<&mut MachineNode> {
        match &mut self.kind {
            NodeKind::Machine(machine) => Some(machine),
            _ => None,
        }
    }

    /// True if its data have page checksums because the study asks for them.
    pub(crate) fn has_checksums(&self) -> bool {
        self.initdb.iter().any(InitdbOption::asks_for_checksums)
    }

    /// True if SQL can be run on it: a PostgreSQL server, or a machine whose manager starts one.
    pub fn has_server(&self) -> bool {
        self.is_postgres() || self.machine().is_some_and(|machine| machine.server.is_some())
    }

    /// True if its data may lie on a disk of their own: those of a server of the rig's, or of a machine's.
    pub(crate) fn may_have_disk(&self) -> bool {
        let has_server = |machine: &MachineNode| machine.has_network && machine.server.is_some();
        self.is_postgres() || self.machine().is_some_and(has_server)
    }

    /// Gives it the disk that study.toml describes.
    pub(crate) fn take_disk(&mut self, value: &Value, problems: &Problems) {
        self.disk = DiskKind::parse(value, problems);
        let is_more = self.disk.has_log() || self.disk.has_parts_apart();
        if is_more && self.machine().is_some() {
            let message = "the disk of a machine keeps no log, and has all its data";
            problems.hinted(&value.span, message, "leave out log, wal and tablespaces");
        }
    }

    /// The server that it follows, if it is a standby.
    pub fn follows(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Postgres(PostgresRole::Standby { of, .. }) => Some(of),
            _ => None,
        }
    }

    /// The server whose data it gets: of a standby the one that it follows, of a subscriber the publisher.
    pub fn upstream(&self) -> Option<&str> {
        let publisher = self.subscribes.as_ref().map(|subscription| subscription.to.as_str());
        self.follows().or(publisher)
    }

    /// The nodes that it connects to by itself.
    pub fn connects_to(&self) -> Vec<&str> {
        match &self.kind {
            NodeKind::Postgres(PostgresRole::Primary { .. }) => {
                self.upstream().into_iter().collect()
            }
            NodeKind::Machine(_) => Vec::new(),
            NodeKind::Postgres(PostgresRole::Standby { of, .. }) => vec![of],
            NodeKind::Pgbouncer(pooler) => vec![&pooler.to],
            NodeKind::Guard(guard) => vec![&guard.to],
            NodeKind::Plproxy(proxy) => match proxy.through.is_empty() {
                true => proxy.to.iter().map(String::as_str).collect(),
                false => proxy.through.iter().map(String::as_str).collect(),
            },
        }
    }

    /// The names by which it refers to others, to be replaced, with their fields.
    pub(crate) fn references(&mut self) -> Vec<(&'static str, References<'_>)> {
        match &mut self.kind {
            NodeKind::Postgres(PostgresRole::Primary { .. }) => {
                let to = self.subscribes.as_mut().map(|subscription| &mut subscription.to);
                to.map(|to| ("subscribes", References::One(to))).into_iter().collect()
            }
            NodeKind::Machine(_) => Vec::new(),
            NodeKind::Postgres(PostgresRole::Standby { of, .. }) => {
                vec![("of", References::One(of))]
            }
            NodeKind::Pgbouncer(pooler) => vec![("to", References::One(&mut pooler.to))],
            NodeKind::Guard(guard) => vec![("to", References::One(&mut guard.to))],
            NodeKind::Plproxy(proxy) => vec![
                ("to", References::All(&mut proxy.to)),
                ("through", References::All(&mut proxy.through)),
            ],
        }
    }

    /// Sessions that it opens on a node that it connects to, while it has so many sessions itself.
    pub fn sessions(&self, on: &str, own: u32) -> u32 {
        match &self.kind {
            NodeKind::Pgbouncer(pooler) => pooler.pool,
            // Every session of the proxy has one of its own to each partition.
            NodeKind::Plproxy(proxy) => own * proxy.partitions_on(on).max(1),
            NodeKind::Guard(_) => 1,
            NodeKind::Postgres(_) | NodeKind::Machine(_) => 0,
        }
    }

    /// The kind in a message, as in "it is a guard".
    pub(crate) fn noun(&self) -> &'static str {
        match &self.kind {
            NodeKind::Postgres(_) | NodeKind::Plproxy(_) => "a PostgreSQL server",
            NodeKind::Pgbouncer(_) => "a pooler",
            NodeKind::Guard(_) => "a guard",
            NodeKind::Machine(machine) if machine.server.is_some() => "a machine",
            NodeKind::Machine(_) => "a machine without server = {}",
        }
    }

    /// A PostgreSQL server that takes writes.
    pub(crate) fn primary(name: &str) -> TopologyNode {
        TopologyNode {
            name: name.to_owned(),
            group: name.to_owned(),
            kind: NodeKind::Postgres(PostgresRole::Primary { sync: None }),
            settings: Settings::new(),
            extensions: Vec::new(),
            disk: DiskKind::Plain,
            throttle: None,
            by_tcp: false,
            initdb: Vec::new(),
            is_archived: false,
            archive_by: ArchiveBy::Copy,
            has_own_clock: false,
            swallow_fsync: None,
            subscribes: None,
            bin: None,
        }
    }

    /// The node, or as many as `count` says. What it refers to is a group until the topology
    /// [`resolve`](crate::topology)s it.
    pub(crate) fn parse(
        name: &str,
        value: &Value,
        folder: &StudyFolder,
        problems: &Problems,
    ) -> Vec<TopologyNode> {
        // `primary = {}` and `primary = "postgres"` say the same.
        if let Is::Text(_) = value.is {
            let kind = choice("kind", value, BARE_KINDS, problems);
            return kind.map(|()| TopologyNode::primary(name)).into_iter().collect();
        }
        let Some(fields) = Fields::of("a node", value, problems) else { return Vec::new() };
        let words: Vec<(&str, &KindWord)> = KINDS.iter().map(|word| (word.name, word)).collect();
        let word = fields.choice("kind", &words).unwrap_or(&postgres::WORD);
        let kind = (word.parse)(name, &fields, folder);
        let is_postgres = matches!(kind, Some(NodeKind::Postgres(_) | NodeKind::Plproxy(_)) | None);
        let mut node =
            TopologyNode { kind: kind.clone().unwrap_or(NO_KIND), ..TopologyNode::primary(name) };
        let is_listening = !matches!(kind, Some(NodeKind::Guard(_) | NodeKind::Machine(_)));
        if is_listening {
            node.settings = fields.settings("settings");
        }
        if is_postgres {
            node.extensions =
                fields.texts("extensions").into_iter().map(|(name, _)| name).collect();
            node.throttle = fields.value("throttle").and_then(|t| NodeThrottle::parse(t, problems));
            node.initdb = InitdbOption::list(&fields);
            if fields.boolean("checksums") == Some(true) {
                node.initdb.push(InitdbOption::checksums());
            }
            node.is_archived = fields.boolean("archive").unwrap_or(false);
            node.archive_by = fields.choice("archive_by", ARCHIVE_BY).unwrap_or(ArchiveBy::Copy);
            node.has_own_clock = fields.boolean("own_clock").unwrap_or(false);
            node.swallow_fsync = fields.choice("swallow_fsync", SWALLOWED);
            node.bin = fields.text("bin").map(PathBuf::from);
        }
        if matches!(kind, Some(NodeKind::Postgres(_)) | None)
            && let Some(value) = fields.value("subscribes")
        {
            node.subscribes = Subscription::parse(value, problems);
        }
        if node.may_have_disk()
            && let Some(value) = fields.value("disk")
        {
            node.take_disk(value, problems);
        }
        if node.disk.can_be_cut()
            && let Some(entry) = fields.entry("throttle")
        {
            let message = "a disk whose power can be cut has no throttle";
            problems.add(&entry.key_span, message);
        }
        if let Some(of) = node.follows() {
            for (key, what) in [
                ("extensions", "extensions"),
                ("initdb", "options of initdb"),
                ("bin", "programs"),
                ("subscribes", "subscriptions"),
            ] {
                if let Some(entry) = fields.entry(key) {
                    let message = format!("standby \"{name}\" has the {what} of {of}");
                    problems.hinted(&entry.key_span, message, format!("name them at {of}"));
                }
            }
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
                let numbered = |n| TopologyNode { name: format!("{name}{n}"), ..node.clone() };
                (1..=count).map(numbered).collect()
            }
        }
    }
}

/// The ways in which a node listens, by their names in study.toml; true for TCP.
const LISTEN: &[(&str, bool)] = &[("socket", false), ("tcp", true)];

/// Stands for the kind of a node while that is wrong; the study is refused for it.
const NO_KIND: NodeKind = NodeKind::Postgres(PostgresRole::Primary { sync: None });

/// The node that it is in front of.
fn to(fields: &Fields<'_>) -> Option<String> {
    fields.required("to")?;
    fields.text("to").map(str::to_owned)
}

/// A kind of node as study.toml writes it.
pub(crate) struct KindWord {
    pub(crate) name: &'static str,
    /// The form in which a node of it is written.
    pub(crate) form: &'static str,
    pub(crate) says: &'static str,
    /// Reads the fields of the node of that name.
    parse: fn(&str, &Fields<'_>, &StudyFolder) -> Option<NodeKind>,
}

pub(crate) const KINDS: &[KindWord] = &[
    postgres::WORD,
    pgbouncer::WORD,
    guard::WORD,
    plproxy::WORD,
    machine::MACHINE,
    machine::PROCESS,
    machine::ROUTE,
];

/// The kind that needs no fields.
const BARE_KINDS: &[(&str, ())] = &[("postgres", ())];

/// More servers than one machine has use for.
const COUNT_MAX: u32 = 256;

const ARCHIVE_BY: &[(&str, ArchiveBy)] =
    &[("copy", ArchiveBy::Copy), ("pgbackrest", ArchiveBy::PgBackRest)];

const SWALLOWED: &[(&str, SwallowedFlushes)] = &[
    ("pg_control", SwallowedFlushes::Control),
    ("wal", SwallowedFlushes::Wal),
    ("relation", SwallowedFlushes::Relation),
    ("commit_log", SwallowedFlushes::CommitLog),
    ("directory", SwallowedFlushes::Directory),
    ("all", SwallowedFlushes::All),
];
