//! The targets: points of the five studies in their smallest profile, and a comparison; and the attacks
//! that each can be met by.

use stats::Prng;

use crate::acts::Act;

/// Something that is run.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The study; empty for a comparison.
    pub(crate) study: &'static str,
    pub(crate) point: &'static str,
    /// The table that every transaction reads or writes, the row of it known.
    pub(crate) table: &'static str,
    /// The table of its ledger that has a row for each transaction, if it keeps one.
    pub(crate) ledger: Option<&'static str>,
    pub(crate) has_standbys: bool,
    /// It kills its server and starts it again.
    pub(crate) kills: bool,
    /// Its server is on a disk of its own, which can be filled.
    pub(crate) has_disk: bool,
}

const PLAIN: Target = Target {
    study: "",
    point: "",
    table: "",
    ledger: None,
    has_standbys: false,
    kills: false,
    has_disk: false,
};

impl Target {
    pub(crate) fn is(&self, study: &str, point: &str) -> bool {
        (self.study, self.point) == (study, point)
    }

    /// The claims that it is judged by, in place of the study's own, most of which are about other points:
    /// without an attack all of them hold.
    pub(crate) fn claims(&self) -> String {
        let claim = |says: &str, every: &str| {
            format!("\n[[claims]]\nsays = \"{says}\"\nevery = \"{every}\"\nkind = \"invariant\"\n")
        };
        let ledger = self.ledger.map(|_| claim("nothing is lost", "ledger_anomalies == 0"));
        claim("clients do something", "tps > 0") + &ledger.unwrap_or_default()
    }

    pub(crate) fn is_comparison(&self) -> bool {
        self.study.is_empty()
    }

    /// The attacks that break something of it.
    fn acts(&self) -> Vec<Act> {
        let mut acts = vec![
            Act::KillBackend,
            Act::CrashBackend,
            Act::KillCheckpointer,
            Act::KillAll,
            Act::StopAll,
        ];
        if !self.table.is_empty() {
            acts.push(Act::HeapPage);
        }
        if self.has_standbys {
            acts.push(Act::KillStartup);
        }
        if self.kills {
            // Its server is down for a while: a process to be killed may not be there.
            return vec![Act::ControlFile];
        }
        if self.has_disk {
            acts.push(Act::FillDisk);
        }
        if self.ledger.is_some() {
            acts.extend([Act::DropRows, Act::AnswerEarly]);
        }
        if !self.is_comparison() {
            acts.extend([Act::KillRig, Act::HangAndInterrupt]);
        }
        acts
    }
}

/// Everything that is attacked.
pub(crate) fn all() -> Vec<Target> {
    let plain = |study, point, table| Target { study, point, table, ..PLAIN };
    let ledger = Some("written");
    let replication = Target { study: "replication", ledger, has_standbys: true, ..PLAIN };
    let fsync = Target { study: "fsync", ledger: Some("writes_log"), kills: true, ..PLAIN };
    vec![
        plain("pgbench", "published/read_only", "pgbench_accounts"),
        plain("pgbench", "published/read_write", "pgbench_branches"),
        plain("pgbench", "published/function", "pgbench_branches"),
        plain("fsync", "on/update clients=4", "test_sync"),
        plain("fsync", "off/update clients=4", "test_sync"),
        plain("fsync", "on/select clients=4", "test_sync"),
        Target { point: "fs_safe/kill_filesystem", ..fsync.clone() },
        Target { point: "block_safe/kill_block", ..fsync },
        plain("pool", "plain/hot clients=16", "pgbench_branches"),
        plain("pool", "plain/uniform clients=16", "pgbench_branches"),
        plain("sharding", "single/query_pk", ""),
        plain("sharding", "p2/query_pk", ""),
        plain("sharding", "single/query_update_insert", ""),
        Target { has_standbys: true, ..plain("replication", "C-on/login", "user_info") },
        plain("replication", "A/logout", ""),
        Target { point: "C/sync_standby_stops", ..replication.clone() },
        Target { point: "cut/standby_cut_off", ..replication },
        plain("", "compare", "pgbench_branches"),
    ]
}

/// The attack of a seed.
pub(crate) fn drawn(seed: u64) -> (Act, Target) {
    let mut prng = Prng::new(seed ^ 0x0a77_ac4e);
    let targets = all();
    let target = targets[prng.below(targets.len())].clone();
    let acts = target.acts();
    (acts[prng.below(acts.len())], target)
}
