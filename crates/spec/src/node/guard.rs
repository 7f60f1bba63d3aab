//! `pgrig guard`.

use crate::fields::Fields;
use crate::folder::StudyFolder;
use crate::node::{KindWord, NodeKind, to};

/// The word in study.toml.
pub(super) const WORD: KindWord = KindWord {
    name: "guard",
    form: "nodes.watcher = { kind = \"guard\", to = \"primary\" }",
    says: "pgrig guard, which keeps commits going",
    parse,
};

/// A guard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuardNode {
    /// The primary that it watches.
    pub to: String,
    /// Time that commits may wait for a standby before it acts, in milliseconds.
    pub grace_ms: u64,
}

fn parse(_: &str, fields: &Fields<'_>, _: &StudyFolder) -> Option<NodeKind> {
    let to = to(fields)?;
    let grace_ms = fields.duration_ms("grace").unwrap_or(GRACE_DEFAULT_MS);
    Some(NodeKind::Guard(GuardNode { to, grace_ms }))
}

/// Long enough that no busy standby is taken for a dead one.
const GRACE_DEFAULT_MS: u64 = 3_000;
