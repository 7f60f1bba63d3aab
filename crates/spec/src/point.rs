//! One point of a study: a variant, a scenario and a value for each of its axes, in full.

use std::fmt;

use terms::{OnLoss, Settings, WarmUp};

use crate::action::Action;
use crate::catalogue::Metric;
use crate::check::Check;
use crate::data::TrialData;
use crate::initdb::InitdbOption;
use crate::link::LinkKind;
use crate::node::TopologyNode;
use crate::phase::ScenarioPhase;
use crate::requirement::MachineRequirement;
use crate::timeline::{SqlStep, TimelineEntry};
use crate::topology::Topology;
use crate::workload::Workload;

/// Everything that a trial needs to know. Nothing in it refers to an axis, a profile or a default
/// any more.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialPoint {
    /// The name of the point in the study.
    pub name: PointName,
    /// The topology that gets built.
    pub topology: Topology,
    /// With which data.
    pub data: TrialData,
    /// Workloads that run together.
    pub workloads: Vec<Workload>,
    /// Generator processes that share the clients.
    pub generators: u32,
    /// Lanes (threads) of each generator process; none lets the load engine choose.
    pub lanes: Option<u32>,
    /// Connection attempts begun a second, at most; none for no limit.
    pub connect_rate: Option<f64>,
    /// The fate of a client whose connection is lost.
    pub on_loss: OnLoss,
    /// The steps that are done before the clients come.
    pub before: Vec<SqlStep>,
    /// The part that does not count.
    pub warmup: WarmUp,
    /// The part that counts, in milliseconds.
    pub window_ms: u64,
    /// The milliseconds after the window in which transactions in progress may end; then they are cancelled.
    /// None for the usual time.
    pub drain_ms: Option<u64>,
    /// Parts of the window, one after another, together as long as the window; none if the window is undivided.
    pub phases: Vec<ScenarioPhase>,
    /// Actions inside the window.
    pub timeline: Vec<TimelineEntry>,
    /// Checks after it.
    pub checks: Vec<Check>,
    /// True if it counts only where its throughput was steady; not where unsteadiness is what it is
    /// about.
    pub must_be_steady: bool,
    /// Slow transactions are attributed to their causes: the server that has the data is sampled.
    pub has_tail: bool,
    /// What the machine must have besides what its nodes ask for.
    pub needs: Vec<MachineRequirement>,
    /// The treatment of the point where the machine or the variant cannot run it.
    pub unfit: UnfitPolicy,
    /// In how many rounds it is run.
    pub rounds: u32,
    /// True if its variant has servers of its own at this point although another variant's trials
    /// could run on the same ones: the second copy of a point that is compared with points of other
    /// variants, and a point that is loaded in turn with another variant's.
    pub has_own_servers: bool,
}

/// A point's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointName {
    /// The variant.
    pub variant: String,
    /// The scenario.
    pub scenario: String,
    /// The axes in the study's order: axis and value as written.
    pub axes: Vec<(String, String)>,
}

/// `variant/scenario axis=value,axis=value`: how patterns and messages see a point.
impl fmt::Display for PointName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.variant, self.scenario)?;
        for (i, (axis, value)) in self.axes.iter().enumerate() {
            write!(f, "{}{axis}={value}", if i == 0 { ' ' } else { ',' })?;
        }
        Ok(())
    }
}

impl PointName {
    /// True if a pattern means this point. A pattern with `*` must fit the whole name; one without
    /// it must be a part of the name. Of several patterns, with `|` between them, one is enough.
    pub fn fits(&self, patterns: &str) -> bool {
        let name = self.to_string();
        patterns.split('|').any(|pattern| fits(&name, pattern))
    }
}

fn fits(name: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().expect("a split text has a first part");
    let Some(last) = parts.next_back() else {
        return name.contains(pattern);
    };
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

impl TrialPoint {
    /// Gives every PostgreSQL server these settings and options of initdb beside its own; the new value of a setting
    /// wins.
    pub fn give(&mut self, settings: &Settings, initdb: &[InitdbOption]) {
        for node in self.topology.nodes.iter_mut().filter(|node| node.is_postgres()) {
            node.settings.extend(settings.iter());
            node.initdb.extend(initdb.iter().cloned());
        }
    }

    /// Gives every PostgreSQL server these settings and options of initdb where it has none of its own.
    pub fn give_base(&mut self, settings: &Settings, initdb: &[InitdbOption]) {
        for node in self.topology.nodes.iter_mut().filter(|node| node.is_postgres()) {
            let own = std::mem::replace(&mut node.settings, settings.clone());
            node.settings.extend(own);
            node.initdb.splice(..0, initdb.iter().cloned());
        }
    }

    /// Clients of all its workloads.
    pub fn clients(&self) -> u32 {
        self.workloads.iter().map(|workload| workload.clients).sum()
    }

    /// True if its trials can have a value of this metric: a figure of a check exists only where
    /// the check is made.
    pub fn can_have(&self, metric: &Metric) -> bool {
        let is_of_machines = ["two_primaries_", "no_primary_", "whole_"]
            .iter()
            .any(|of| metric.name.starts_with(of));
        if is_of_machines {
            let mut machines = self.topology.nodes.iter().filter_map(TopologyNode::machine);
            return machines.any(|machine| machine.server.is_some());
        }
        Check::can_give(&self.checks, metric.name)
    }

    /// True if only root can build it or do what its timeline asks for: network namespaces, disks
    /// whose power can be cut, I/O or memory that is limited, or because it says so.
    pub fn needs_root(&self) -> bool {
        let topology = &self.topology;
        self.needs.contains(&MachineRequirement::Root)
            || self.limits_memory()
            || topology.links.iter().any(|link| link.by == LinkKind::Namespace)
            || topology.nodes.iter().any(|node| node.disk.can_be_cut() || node.throttle.is_some())
            || topology
                .nodes
                .iter()
                .filter_map(TopologyNode::machine)
                .any(|machine| machine.has_network)
    }

    /// True if its timeline limits the memory of a server.
    pub fn limits_memory(&self) -> bool {
        self.topology.nodes.iter().any(|node| self.limits_memory_of(&node.name))
    }

    /// True if its timeline limits the memory of this server.
    pub fn limits_memory_of(&self, server: &str) -> bool {
        let mut actions = self.timeline.iter().map(|timed| &timed.action);
        actions.any(|action| match action {
            Action::KillBackend { node, memory_bytes: Some(_) } => node == server,
            _ => false,
        })
    }

    /// Longest duration of its load, in milliseconds: warm-up and window.
    pub fn load_ms_max(&self) -> u64 {
        let warmup_ms = match self.warmup {
            WarmUp::Fixed(ms) => ms,
            WarmUp::Auto { max_ms, .. } => max_ms,
        };
        warmup_ms + self.window_ms
    }

    /// The most time that the searches of its workloads' capacities load its servers, in milliseconds.
    pub fn capacity_ms(&self) -> u64 {
        let searches = self.workloads.iter().filter_map(|workload| workload.capacity);
        searches.map(|search| search.length_ms()).sum()
    }
}

/// The treatment of a point that cannot run here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnfitPolicy {
    /// Leave it out and say so.
    Skip,
    /// Do not start the study.
    Refuse,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_has_what_its_checks_give() {
        let files = [("study.toml".to_owned(), STUDY.to_owned())].into();
        let folder = crate::StudyFolder { name: "mine".to_owned(), files, is_private: false };
        let study = crate::Study::parse(&folder, crate::StudyProfile::Smoke).unwrap();
        let check = |scenario: &str, expected: [bool; 5]| {
            let of = |point: &&TrialPoint| point.name.scenario == scenario;
            let point = study.points.iter().find(of).unwrap();
            let metrics =
                ["tps", "count_difference", "amcheck_corruptions", "ledger_lost", "rows_lost"];
            let has = metrics.map(|name| point.can_have(crate::metric(name).unwrap()));
            assert_eq!(has, expected, "{scenario}");
        };
        check("bare", [true, false, false, false, false]);
        check("counted", [true, true, false, false, false]);
        check("looked_at", [true, true, true, false, false]);
    }

    const STUDY: &str = r#"
question = "?"
[workloads.w]
builtin = "select-only"
[scenarios.bare]
run = ["w"]
[scenarios.counted]
run = ["w"]
checks = ["counts"]
[scenarios.looked_at]
run = ["w"]
checks = ["counts", "amcheck"]
"#;

    #[test]
    fn a_pattern_is_a_part_of_the_name_or_fits_it_with_stars() {
        let axes = vec![("clients".to_owned(), "8".to_owned())];
        let (variant, scenario) = ("plain".to_owned(), "hot".to_owned());
        let name = PointName { variant, scenario, axes };
        assert_eq!(name.to_string(), "plain/hot clients=8");
        let check = |pattern, fits| assert_eq!(name.fits(pattern), fits, "{pattern}");
        check("", true);
        check("hot", true);
        check("plain/hot clients=8", true);
        check("cold", false);
        check("*", true);
        check("plain/*", true);
        check("*hot", false);
        check("*hot*=8", true);
        check("p*o*o*8", false);
        check("plain/hot clients=8*clients=8", false);
        check("*/cold*|*/hot *", true);
        check("cold|*hot", false);
    }
}
