//! A PostgreSQL server of the rig's.

use crate::fields::Fields;
use crate::folder::StudyFolder;
use crate::node::{COUNT_MAX, KindWord, NodeKind};
use crate::problem::Problems;
use crate::value::{Is, Value};

/// The word in study.toml.
pub(super) const WORD: KindWord = KindWord {
    name: "postgres",
    form: "nodes.standby1 = { of = \"primary\", sync = 1 }",
    says: "a PostgreSQL server, a primary or a standby",
    parse,
};

/// The role in which a PostgreSQL server begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PostgresRole {
    /// It takes writes.
    Primary {
        /// For how many of its standbys a commit waits; none if it waits for none.
        sync: Option<StandbyQuorum>,
    },
    /// It follows another server by streaming replication.
    Standby {
        /// The server that it follows.
        of: String,
        /// The priority among the synchronous standbys, 1 first; none if it is asynchronous.
        sync: Option<u32>,
    },
}

/// For how many standbys a commit waits, as `synchronous_standby_names` asks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StandbyQuorum {
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

fn parse(_: &str, fields: &Fields<'_>, _: &StudyFolder) -> Option<NodeKind> {
    let Some(of) = fields.text("of") else {
        let sync = fields.value("sync").and_then(|value| quorum(value, fields.problems));
        return Some(NodeKind::Postgres(PostgresRole::Primary { sync }));
    };
    let sync = fields.integer("sync", 1..=COUNT_MAX);
    Some(NodeKind::Postgres(PostgresRole::Standby { of: of.to_owned(), sync }))
}

/// `FIRST 1`, `ANY 2`.
fn quorum(value: &Value, problems: &Problems) -> Option<StandbyQuorum> {
    let parsed = match &value.is {
        Is::Text(text) => text.trim().split_once(char::is_whitespace).and_then(|(way, count)| {
            let way = match () {
                () if way.eq_ignore_ascii_case("FIRST") => QuorumWay::First,
                () if way.eq_ignore_ascii_case("ANY") => QuorumWay::Any,
                () => return None,
            };
            let count = count.trim().parse().ok().filter(|count| *count > 0)?;
            Some(StandbyQuorum { way, count })
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
