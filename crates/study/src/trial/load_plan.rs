//! A point of a study as the load engine wants it.

use std::collections::BTreeMap;
use std::path::Path;

use load::{ConnectionMode, LoadLimit, LoadPlan, OnError, OnLoss, RateCourse, RateStep, ShellUser};
use server::quote::identifier;
use spec::{Action, ProcessVerb, ScheduledTrial, TimelineEntry, TrialPoint};
use wire::conninfo::{Conninfo, TargetSessionAttrs};

use crate::script_rows;

/// The engine's plan at this point. `conninfos` has the address of each node; `schema` is the one that
/// the rig has to itself on a server that is not its own: names are looked for there and nowhere else.
pub(crate) fn plan(
    point: &TrialPoint,
    planned: &ScheduledTrial,
    conninfos: &BTreeMap<String, String>,
    schema: Option<&str>,
) -> LoadPlan {
    let at_once = ConnectionMode::default().at_once.div_ceil(point.generators);
    let limit = LoadLimit::Time { warm_up: point.warmup, window_ms: point.window_ms };
    LoadPlan {
        lanes: lanes(point),
        seed: planned.seed,
        connecting: ConnectionMode { at_once, rate: point.connect_rate },
        drain_ms: Some(drain_ms(point)),
        interval_ms: interval_ms(point.window_ms),
        statements: true,
        slowest: point.has_tail,
        rates: rates(point),
        // A script that is wrong fails in every transaction: nothing is measured by going on.
        exit_on_abort: !point.workloads.iter().any(|workload| may_fail(point, workload)),
        ..LoadPlan::new(workloads(point, conninfos, schema), limit)
    }
}

/// The rates of the phases; none where all phases have the workloads' own.
fn rates(point: &TrialPoint) -> Option<RateCourse> {
    let steps = point
        .phases
        .iter()
        .map(|phase| RateStep { from_ms: phase.from_ms, times: phase.rate_times });
    let changes = point.phases.iter().any(|phase| phase.rate_times != 1.0);
    changes.then(|| RateCourse { steps: steps.collect() })
}

/// The workloads of a point.
pub(crate) fn workloads(
    point: &TrialPoint,
    conninfos: &BTreeMap<String, String>,
    schema: Option<&str>,
) -> Vec<load::ClientGroup> {
    let workloads = point.workloads.iter().map(|workload| {
        let hosts = workload.to.iter().filter_map(|to| conninfos.get(to));
        let conninfo = log_in(workload, conninfo(hosts.map(String::as_str)));
        self::workload(point, workload, conninfo, schema)
    });
    workloads.collect()
}

/// The place of the files of a trial's ledger, and the seed of its chains; none where no client keeps
/// one.
pub(crate) fn ledger(point: &TrialPoint, directory: &Path, seed: u64) -> Option<load::LedgerPlan> {
    point
        .workloads
        .iter()
        .any(|workload| workload.ledger.is_some())
        .then(|| load::LedgerPlan { directory: directory.display().to_string(), seed })
}

/// The place of the files of a trial's history, beside its ledger; none where no client keeps one.
pub(crate) fn history(point: &TrialPoint, directory: &Path) -> Option<load::HistoryPlan> {
    const LEVEL: &str = "default_transaction_isolation";
    let groups = point.workloads.iter().map(|workload| {
        let of_session = workload.session.value(LEVEL);
        let node = workload.to.first().map_or("", String::as_str);
        let of_node = || point.topology.node(node).and_then(|node| node.settings.value(LEVEL));
        let level = of_session.or_else(of_node);
        load::HistoryGroup {
            server: workload.to.join(", "),
            isolation: level.unwrap_or("read committed").to_owned(),
            workload: workload.name.clone(),
        }
    });
    let is_kept = point.workloads.iter().any(|workload| workload.keeps_history);
    let directory = directory.display().to_string();
    is_kept.then(|| load::HistoryPlan { directory, groups: groups.collect() })
}

/// One conninfo of several nodes: the first of them that takes writes, tried in their order.
fn conninfo<'c>(mut nodes: impl Iterator<Item = &'c str>) -> String {
    let Some(first) = nodes.next() else { return String::new() };
    let others: Vec<&str> = nodes.collect();
    let Ok(mut all) = Conninfo::from_keyword_string(first) else { return first.to_owned() };
    if others.is_empty() {
        return first.to_owned();
    }
    let others = others.into_iter().filter_map(|one| Conninfo::from_keyword_string(one).ok());
    all.hosts.extend(others.flat_map(|one| one.hosts));
    all.target = TargetSessionAttrs::ReadWrite;
    all.to_keyword_string()
}

/// The same with the role and the database that the workload names. The password stays: a role that must have one has
/// the servers'.
fn log_in(workload: &spec::Workload, conninfo: String) -> String {
    if workload.user.is_none() && workload.database.is_none() {
        return conninfo;
    }
    // One that cannot be read is refused with the reason when it connects.
    let Ok(mut as_whom) = Conninfo::from_keyword_string(&conninfo) else { return conninfo };
    as_whom.user = workload.user.clone().unwrap_or(as_whom.user); // The superuser, where it names none.
    as_whom.dbname = workload.database.clone().unwrap_or(as_whom.dbname); // The one with the data.
    as_whom.to_keyword_string()
}

fn workload(
    point: &TrialPoint,
    workload: &spec::Workload,
    conninfo: String,
    schema: Option<&str>,
) -> load::ClientGroup {
    // The data's variables are known to every script, pgbench's scale among them; what the
    // workload itself says comes last and wins.
    let scale = point.data.pgbench.as_ref().map(|t| ("scale".to_owned(), t.scale.to_string()));
    let mut variables: BTreeMap<String, String> = scale.into_iter().collect();
    variables.extend(point.data.variables.clone());
    variables.extend(workload.variables.clone());
    let mut session = workload.session.clone();
    if let Some(schema) = schema {
        session.set("search_path", identifier(schema));
    }
    let mut session: Vec<(String, String)> = session.into_iter().collect();
    let node = |name: &String| point.topology.node(name);
    let is_direct =
        workload.to.iter().all(|name| node(name).is_some_and(spec::TopologyNode::is_postgres));
    if workload.ledger.is_some() && is_direct {
        session = load::ledger_session(&session);
    }
    load::ClientGroup {
        name: workload.name.clone(),
        conninfo,
        scripts: workload.scripts.iter().map(script).collect(),
        rows: script_rows::of(&workload.scripts),
        clients: workload.clients,
        protocol: workload.protocol,
        pace: workload.pace,
        latency_limit_us: workload.latency_limit_ms.map(|ms| (ms * 1e3) as u64),
        variables: variables.into_iter().collect(),
        session,
        on_error: OnError { tries_max: workload.tries_max, go_on: may_fail(point, workload) },
        retry: workload.retry.clone(),
        deadline_us: workload.deadline_ms.map(|ms| ms.saturating_mul(1_000)),
        storms_ms: workload.storms_ms.clone(),
        connect_each: false,
        caches_keys: false,
        on_loss: point.on_loss,
        describe: true,
        shell: ShellUser::Unprivileged,
        ledger: workload.ledger.as_ref().map(|ledger| load::LedgerTables {
            insert: ledger.insert.clone(),
            update: ledger.update.clone(),
        }),
    }
}

/// True if statements may fail: where the study says so, where its clients have a rule for that, and where it breaks or
/// moves something.
fn may_fail(point: &TrialPoint, workload: &spec::Workload) -> bool {
    let has_rule = workload.retry.is_some() || workload.deadline_ms.is_some();
    let is_told = workload.expects_failures || has_rule;
    is_told || !point.timeline.is_empty() || point.on_loss == OnLoss::Reconnect
}

fn script(script: &spec::ScriptShare) -> load::LoadScript {
    let spec::ScriptText { name, text } = script.text();
    load::LoadScript { name, text, weight: script.weight, syntax: script.syntax }
}

/// One lane serves thousands of connections; more than one helps where cores are idle.
pub(crate) fn lanes(point: &TrialPoint) -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = u32::try_from(cores).unwrap_or(u32::MAX);
    // The servers need the other half.
    let default = (cores / 2 / point.generators).max(1);
    point.lanes.unwrap_or(default).min(point.clients())
}

/// The length of intervals in a window of so many milliseconds. One of less than ten seconds gets at least fifty
/// intervals, so that it can be judged whether it was steady. Each second has the same number of them: a
/// figure of a second is the sum of those that begin in it.
pub(crate) fn interval_ms(window_ms: u64) -> u64 {
    if window_ms >= 10_000 {
        return 1_000;
    }
    let parts_of_a_second = [125, 100, 50, 40, 25];
    parts_of_a_second.into_iter().find(|part| part * 50 <= window_ms).unwrap_or(20)
}

/// An answer that takes longer is not waited for: the query is cancelled. A server that the timeline
/// has paused gives none, and no commit is confirmed by it.
fn drain_ms(point: &TrialPoint) -> u64 {
    if let Some(ms) = point.drain_ms {
        return ms;
    }
    let pauses = |timed: &TimelineEntry| {
        let pauses = matches!(
            timed.action,
            Action::Pause { .. } | Action::OfProcess { act: ProcessVerb::Pause, .. }
        );
        pauses || matches!(timed.action, Action::CutOff { .. })
    };
    if point.timeline.iter().any(pauses) { PAUSED_DRAIN_MS } else { DRAIN_MS }
}

const DRAIN_MS: u64 = 30_000;

/// For what waits for no server that is paused.
const PAUSED_DRAIN_MS: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_window_has_fifty_intervals_and_a_second_always_as_many() {
        for window_ms in (1_000..=20_000).step_by(250) {
            let interval_ms = interval_ms(window_ms);
            assert_eq!(1_000 % interval_ms, 0, "{window_ms}");
            assert!(window_ms >= 10_000 || window_ms / interval_ms >= 50, "{window_ms}");
        }
        let check = |window_ms, expected| assert_eq!(interval_ms(window_ms), expected);
        check(500, 20);
        check(6_000, 100);
        check(9_000, 125);
        check(9_999, 125);
        check(10_000, 1_000);
    }

    #[test]
    fn a_workload_logs_in_as_whom_it_says() {
        let toml = "question = \"?\"\n[workloads.w]\nbuiltin = \"select-only\"\nFIELDS\n\
                    [scenarios.s]\nrun = [\"w\"]\n";
        let check = |fields: &str, user: &str, database: &str| {
            let files = [("study.toml".to_owned(), toml.replace("FIELDS", fields))].into();
            let folder = spec::StudyFolder { name: "mine".to_owned(), files, is_private: false };
            let study = spec::Study::parse(&folder, spec::StudyProfile::Smoke).unwrap();
            let at = "host=/run port=1 user=postgres dbname=postgres password=secret".to_owned();
            let conninfos = [("primary".to_owned(), at)].into();
            let groups = workloads(&study.points[0], &conninfos, None);
            let conninfo = Conninfo::from_keyword_string(&groups[0].conninfo).unwrap();
            assert_eq!((&*conninfo.user, &*conninfo.dbname), (user, database), "{fields}");
            let lasts = groups[0].conninfo.contains("secret");
            assert!(lasts, "the password of all roles");
        };
        check("", "postgres", "postgres");
        check("user = \"sleeper\"", "sleeper", "postgres");
        check("database = \"aside\"", "postgres", "aside");
        check("user = \"it's\"\ndatabase = \"a b\"", "it's", "a b");
    }

    #[test]
    fn several_nodes_are_one_conninfo_of_whichever_takes_writes() {
        let node = |port| format!("host=/run port={port} user=u dbname=postgres");
        assert_eq!(conninfo([node(1).as_str()].into_iter()), node(1));
        let both = conninfo([node(1).as_str(), node(2).as_str()].into_iter());
        let both = Conninfo::from_keyword_string(&both).unwrap();
        let ports: Vec<u16> = both.hosts.iter().map(|host| host.port).collect();
        assert_eq!(ports, [1, 2]);
        assert_eq!(both.target, TargetSessionAttrs::ReadWrite);
    }
}
