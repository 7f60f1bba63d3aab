//! A PostgreSQL server with PL/Proxy.

use crate::fields::Fields;
use crate::folder::StudyFolder;
use crate::node::{KindWord, NodeKind};

/// The word in study.toml.
pub(super) const WORD: KindWord = KindWord {
    name: "plproxy",
    form: "nodes.proxy = { kind = \"plproxy\", to = [\"shard1\", \"shard2\"] }",
    says: "a PL/Proxy server in front of the servers that hold the data",
    parse,
};

/// A PL/Proxy server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlproxyNode {
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

impl PlproxyNode {
    /// Number of its partitions.
    pub fn partitions(&self) -> u32 {
        self.partitions.unwrap_or(u32::try_from(self.to.len()).unwrap_or(u32::MAX))
    }

    /// Number of partitions that the server of that name holds.
    pub fn partitions_on(&self, server: &str) -> u32 {
        let servers = self.to.iter().cycle().take(self.partitions() as usize);
        u32::try_from(servers.filter(|name| *name == server).count()).unwrap_or(u32::MAX)
    }
}

fn parse(_: &str, fields: &Fields<'_>, _: &StudyFolder) -> Option<NodeKind> {
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
    Some(NodeKind::Plproxy(PlproxyNode { to, through, buckets, partitions }))
}

const BUCKETS_MAX: u32 = 4096;
const BUCKETS_DEFAULT: u32 = 128;
/// Each session of the proxy has a connection to every one of them.
const PARTITIONS_MAX: u32 = 1024;
