//! The words of study.toml that stand for something the rig can do: kinds of node, actions, checks.

use crate::node::KINDS;

/// The kind of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// A kind of node.
    Node,
    /// An action of a timeline.
    Action,
    /// A check after a trial.
    Check,
}

/// A word of study.toml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its kind.
    pub kind: WordKind,
    /// The word.
    pub word: &'static str,
    /// The form in which it is written.
    pub form: &'static str,
    /// Its meaning.
    pub says: &'static str,
}

impl WordKind {
    /// In the words of a list.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            WordKind::Node => "kind of node",
            WordKind::Action => "action",
            WordKind::Check => "check",
        }
    }
}

/// Every word, those of a kind together.
pub fn words() -> impl Iterator<Item = Word> {
    let of = |kind: WordKind, rows: &'static [(&str, &str, &str)]| {
        rows.iter().map(move |(word, form, says)| Word { kind, word, form, says })
    };
    let nodes = KINDS.iter().map(|kind| {
        let (word, form, says) = (kind.name, kind.form, kind.says);
        Word { kind: WordKind::Node, word, form, says }
    });
    nodes.chain(of(WordKind::Action, ACTIONS)).chain(of(WordKind::Check, CHECKS))
}

type Rows = &'static [(&'static str, &'static str, &'static str)];

const ACTIONS: Rows = &[
    ("sql", "{ at = \"5s\", sql = \"SELECT …\", on = NODE }", "runs SQL on a server"),
    ("checkpoint", "{ at = \"5s\", checkpoint = NODE }", "runs CHECKPOINT"),
    (
        "stop",
        "{ at = \"5s\", stop = NODE, mode = \"fast\" }",
        "shuts a node down, or one process of a machine",
    ),
    (
        "kill",
        "{ at = \"5s\", kill = NODE, process = \"server\" }",
        "sends SIGKILL to all processes of a node, or to one process of a machine",
    ),
    (
        "kill_backend",
        "{ at = \"5s\", kill_backend = NODE }",
        "kills the server process whose statement has run longest",
    ),
    ("unthrottle", "{ at = \"5s\", unthrottle = NODE }", "ends the limit on a server's I/O"),
    (
        "pause",
        "{ at = \"5s\", pause = NODE, process = \"server\" }",
        "sends SIGSTOP to all processes of a node, or to one process of a machine",
    ),
    (
        "continue",
        "{ at = \"9s\", continue = NODE, process = \"server\" }",
        "lets go on what was paused",
    ),
    (
        "start",
        "{ at = \"9s\", start = NODE }",
        "starts what was stopped, killed or cut off from power",
    ),
    (
        "run",
        "{ at = \"5s\", run = [\"PROGRAM\", \"ARGUMENT\"], on = NODE }",
        "runs a command of the study on a machine",
    ),
    (
        "rebalance",
        "{ at = \"5s\", rebalance = NODE, to = [\"shard1\"] }",
        "moves the rows of a PL/Proxy cluster",
    ),
    (
        "rejoin",
        "{ at = \"9s\", rejoin = NODE, of = NODE, by = \"rewind\" }",
        "stops a server, makes it a standby of another one by pg_rewind or a base backup, and starts it",
    ),
    (
        "throttle",
        "{ at = \"5s\", throttle = NODE, to = { write_iops = 50 } }",
        "limits a server's I/O from then on",
    ),
    ("promote", "{ at = \"5s\", promote = NODE }", "makes a standby a primary"),
    (
        "power_cut",
        "{ at = \"5s\", power_cut = NODE }",
        "takes the power from a server's disk and all processes on it; with write = 100 or flush = 10, at that \
         request",
    ),
    (
        "fail_disk",
        "{ at = \"5s\", fail_disk = NODE, write = 100, error = \"EIO\" }",
        "has a server's block disk fail every request from that one on",
    ),
    (
        "cut",
        "{ at = \"5s\", cut = LINK or NODE, from = [\"clients\"], direction = \"both\" }",
        "lets nothing pass a link, or between a machine and others",
    ),
    ("delay", "{ at = \"5s\", delay = LINK, to = \"20ms\" }", "gives a link another delay"),
    ("reset", "{ at = \"5s\", reset = LINK }", "ends all connections of a link"),
    (
        "heal",
        "{ at = \"9s\", heal = LINK or NODE }",
        "ends what was done to a link, or what cut a machine off",
    ),
];

const CHECKS: Rows = &[
    ("counts", "\"counts\"", "the server counted as many transactions as the clients"),
    (
        "ledger",
        "\"ledger\" or { ledger = NODE }",
        "every acknowledged transaction is there, and nothing that nobody wrote",
    ),
    (
        "history",
        "{ history = \"serializable\" }",
        "what the clients read shows nothing that the level forbids",
    ),
    ("amcheck", "\"amcheck\" or { amcheck = NODE }", "pg_amcheck finds nothing"),
    ("checksums", "\"checksums\" or { checksums = NODE }", "pg_checksums finds nothing"),
    ("placement", "\"placement\"", "every row of a cluster is where the hash of its key says"),
    (
        "restore",
        "\"restore\" or { restore = NODE }",
        "a base backup and the WAL archive are restored and compared with the ledger",
    ),
    (
        "explore",
        "{ explore = NODE, states = 500, second_cuts = 10, complaints = \"SELECT …\" }",
        "states that a power cut could have left are recovered and looked through",
    ),
    (
        "explain",
        "{ explain = \"SELECT …\", as = \"NAME\", on = NODE }",
        "a query is explained with ANALYZE and BUFFERS",
    ),
    (
        "sql",
        "{ sql = \"SELECT …\", as = \"NAME\", expect = \"0\", on = NODE }",
        "a query gives the value that the study expects",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_a_study_may_write_is_explained() {
        let mut explained: Vec<&str> = ACTIONS.iter().map(|(word, ..)| *word).collect();
        let mut known: Vec<&str> = crate::action::verbs().collect();
        explained.sort_unstable();
        known.sort_unstable();
        assert_eq!(explained, known);
        for word in crate::check::simple() {
            assert!(CHECKS.iter().any(|(known, ..)| *known == word), "{word}");
        }
    }
}
