//! A PgBouncer.

use terms::PoolMode;

use crate::fields::Fields;
use crate::folder::StudyFolder;
use crate::node::{KindWord, NodeKind, to};

/// The word in study.toml.
pub(super) const WORD: KindWord = KindWord {
    name: "pgbouncer",
    form: "nodes.front = { kind = \"pgbouncer\", to = \"primary\", pool = 16 }",
    says: "a PgBouncer in front of a server",
    parse,
};

/// A PgBouncer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PgbouncerNode {
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

fn parse(_: &str, fields: &Fields<'_>, _: &StudyFolder) -> Option<NodeKind> {
    let to = to(fields)?;
    Some(NodeKind::Pgbouncer(PgbouncerNode {
        to,
        pool: fields.integer("pool", 1..=CONNECTIONS_MAX).unwrap_or(POOL_DEFAULT),
        mode: fields.choice("mode", MODES).unwrap_or(PoolMode::Transaction),
        clients: fields.integer("clients", 1..=CONNECTIONS_MAX).unwrap_or(CLIENTS_DEFAULT),
        version: fields.text("version").map(str::to_owned),
    }))
}

const MODES: &[(&str, PoolMode)] = &[
    ("session", PoolMode::Session),
    ("transaction", PoolMode::Transaction),
    ("statement", PoolMode::Statement),
];
/// Twice as many as PostgreSQL can have connections.
const CONNECTIONS_MAX: u32 = 1 << 19;
/// PgBouncer's own defaults of default_pool_size and max_client_conn.
const POOL_DEFAULT: u32 = 20;
const CLIENTS_DEFAULT: u32 = 100;
