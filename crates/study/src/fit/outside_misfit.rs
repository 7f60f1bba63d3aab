//! Misfits of a point on a server of the user's: it is one server, it is not changed, and what a study
//! makes there lies in the rig's schema.

use std::collections::{BTreeMap, BTreeSet};

use script::ScriptSyntax;
use site::{SPARE_CONNECTIONS, SitePlan, sql};
use spec::{NodeKind, ScriptText, Study, TopologyNode, TrialPoint, VariableValues};
use terms::grouped;

use crate::fit::has::{CurrentSetting, MORE_CONNECTIONS, OutsideServer};
use crate::fit::misfit::PointMisfit;

/// Lists the reasons why one point cannot run on the user's server.
pub(crate) fn of(point: &TrialPoint, outside: &OutsideServer) -> Vec<PointMisfit> {
    let mut misfits = Vec::new();
    let mut add = |what: &str, amount: u32, needs: String, has: &str, hint: &str| {
        let (what, has, hint) = (what.to_owned(), has.to_owned(), Some(hint.to_owned()));
        misfits.push(PointMisfit { what, amount: u64::from(amount), needs, has, hint });
    };
    let without = "run it without --target";
    let nodes = point.topology.nodes.len();
    if nodes > 1 {
        let count = u32::try_from(nodes).unwrap_or(u32::MAX);
        add("servers", count, format!("{nodes} servers"), "one target", without);
    }
    if let Some(timed) = point.timeline.iter().find(|timed| !timed.action.is_sql()) {
        let needs = format!("to {} a server", timed.action.verb());
        add("actions", 1, needs, "a target that is not ours to stop", without);
    }
    for node in &point.topology.nodes {
        for (what, needs, has) in of_node(node) {
            add(what, 1, needs, has, without);
        }
    }
    if point.data.buckets.is_some() {
        let hint = "run it without --target; --node puts single shards on hosts of yours";
        add("buckets", 1, "a cluster of its own".to_owned(), "one target", hint);
    }
    let has_login =
        |workload: &&spec::Workload| workload.user.is_some() || workload.database.is_some();
    if let Some(workload) = point.workloads.iter().find(has_login) {
        let needs = format!("a login of its own for {}", workload.name);
        add("logins", 1, needs, "a target with the one role of the run", without);
    }
    for program in point.checks.iter().filter_map(spec::Check::program) {
        add("checks", 1, program.to_owned(), "a target that is not ours to look through", without);
    }
    let needed = point.clients() + SPARE_CONNECTIONS;
    if needed > outside.connections {
        let needs = format!("{} connections", grouped(u64::from(needed)));
        let has = format!("{} free on the target", grouped(u64::from(outside.connections)));
        add("connections", needed, needs, &has, MORE_CONNECTIONS);
    }
    misfits
}

/// What a node asks for and a target lacks: the kind, the need, and what there is instead. Settings, page
/// checksums, extensions and TCP count where points differ in them ([`settings`]).
fn of_node(node: &TopologyNode) -> Vec<(&'static str, String, &'static str)> {
    let TopologyNode {
        name,
        group: _,
        kind,
        settings: _,
        extensions: _,
        disk,
        throttle,
        by_tcp: _,
        initdb,
        is_archived,
        archive_by: _,
        has_own_clock,
        swallow_fsync,
        subscribes,
        bin,
    } = node;
    let mut lacks = Vec::new();
    if !matches!(kind, NodeKind::Postgres(_)) {
        lacks.push(("programs", format!("programs for {name}"), "one target"));
    }
    if disk.can_be_cut() || throttle.is_some() {
        let needs = format!("a disk of its own for {name}");
        lacks.push(("disk", needs, "a target with the disk that it has"));
    }
    for option in initdb.iter().filter(|option| checksums(option.word()).is_none()) {
        let needs = format!("a data directory of initdb {option} for {name}");
        lacks.push(("initdb", needs, "a target with the data directory that it has"));
    }
    if *is_archived {
        let needs = format!("an archive of the WAL of {name}");
        lacks.push(("archive", needs, "a target that archives as it is set"));
    }
    if *has_own_clock {
        let needs = format!("a clock of its own for {name}");
        lacks.push(("clock", needs, "one target"));
    }
    if subscribes.is_some() {
        let needs = format!("a publisher for {name}");
        lacks.push(("replication", needs, "one target"));
    }
    if let Some(bin) = bin {
        let needs = format!("the programs in {} for {name}", bin.display());
        lacks.push(("programs", needs, "a target with the programs that it has"));
    }
    if swallow_fsync.is_some() {
        let needs = format!("flushes of {name} that do nothing");
        lacks.push(("flushes", needs, "a target that is not ours to break"));
    }
    lacks
}

/// The value of `data_checksums` that an option of initdb gives a server.
fn checksums(option: &str) -> Option<&'static str> {
    match option {
        "--data-checksums" => Some("on"),
        "--no-data-checksums" => Some("off"),
        _ => None,
    }
}

/// The SQL of a script, variables as they are written.
pub(crate) fn as_written(text: &ScriptText, syntax: ScriptSyntax) -> Vec<String> {
    // A script that cannot be read is refused before the run (`mistakes`).
    let statements = sql::statements(text, syntax, &VariableValues::new()).unwrap_or_default();
    statements.into_iter().map(|(_, statement)| statement).collect()
}

/// Points that differ from others in settings, extensions or data: on one server that is not changed, only
/// those can be measured that ask for what it has, and its one schema holds the data of the first of them.
pub(crate) fn settings(
    study: &Study,
    points: &[usize],
    outside: &OutsideServer,
) -> Vec<(usize, Vec<PointMisfit>)> {
    let mut unlike = other_settings(study, points, outside);
    let is_like = |point: &usize| unlike.iter().all(|(index, _)| index != point);
    let fitting: Vec<usize> = points.iter().copied().filter(is_like).collect();
    let others = other_features(study, &fitting, outside);
    let is_like = |point: &usize| others.iter().all(|(index, _)| index != point);
    let fitting: Vec<usize> = fitting.into_iter().filter(is_like).collect();
    unlike.extend(others);
    unlike.extend(other_data(study, &fitting));
    unlike
}

/// Points that differ from others in extensions, or in the way in which clients connect.
fn other_features(
    study: &Study,
    points: &[usize],
    outside: &OutsideServer,
) -> Vec<(usize, Vec<PointMisfit>)> {
    const TCP: &str = "clients by TCP";
    let of_node = |node: &TopologyNode| {
        let extensions =
            node.extensions.iter().map(|name| (format!("extension {name}"), Some(name)));
        let tcp = node.by_tcp.then(|| (TCP.to_owned(), None));
        extensions.map(|(words, name)| (words, name.cloned())).chain(tcp).collect::<Vec<_>>()
    };
    let asked: BTreeMap<usize, BTreeMap<String, Option<String>>> = points
        .iter()
        .map(|index| {
            let nodes = study.points[*index].topology.nodes.iter();
            (*index, nodes.flat_map(of_node).collect())
        })
        .collect();
    let features: BTreeMap<&String, &Option<String>> = asked.values().flatten().collect();
    let differing = features
        .into_iter()
        .filter(|(words, _)| asked.values().any(|features| !features.contains_key(*words)));
    let mut misfits: BTreeMap<usize, Vec<PointMisfit>> = BTreeMap::new();
    for (words, extension) in differing {
        let has = match extension {
            Some(name) => outside.extensions.contains(name),
            None => outside.by_tcp,
        };
        for (index, _) in asked.iter().filter(|(_, asks)| asks.contains_key(words) != has) {
            misfits.entry(*index).or_default().push(PointMisfit {
                what: words.clone(),
                amount: 1,
                needs: if has { format!("no {words}") } else { words.clone() },
                has: format!("a target {} {words}", if has { "with" } else { "without" }),
                hint: Some("variants differ in that: run the study without --target".to_owned()),
            });
        }
    }
    misfits.into_iter().collect()
}

/// Points whose data are not those of the first one.
fn other_data(study: &Study, points: &[usize]) -> Vec<(usize, Vec<PointMisfit>)> {
    let sites = SitePlan::on_target(study, points);
    let Some((first, others)) = sites.split_first() else { return Vec::new() };
    let misfit = PointMisfit {
        what: "data".to_owned(),
        amount: 1,
        needs: "data of its own".to_owned(),
        has: format!("one schema with the data of {}", first.name(study)),
        hint: Some("choose the variants with the same data by --only".to_owned()),
    };
    let points = others.iter().flat_map(|site| &site.points);
    points.map(|point| (*point, vec![misfit.clone()])).collect()
}

fn other_settings(
    study: &Study,
    points: &[usize],
    outside: &OutsideServer,
) -> Vec<(usize, Vec<PointMisfit>)> {
    let asked: BTreeMap<usize, BTreeMap<&str, &str>> = points
        .iter()
        .map(|index| {
            let nodes = || study.points[*index].topology.nodes.iter();
            let settings = nodes().flat_map(|node| node.settings.iter());
            let options = nodes().flat_map(|node| &node.initdb);
            let checksums = options.filter_map(|option| checksums(option.word()));
            let checksums = checksums.map(|value| ("data_checksums", value));
            (*index, settings.chain(checksums).collect())
        })
        .collect();
    let names: BTreeSet<&str> =
        asked.values().flat_map(|settings| settings.keys().copied()).collect();
    let differing = names.into_iter().filter(|name| {
        let values: BTreeSet<Option<&&str>> = asked.values().map(|one| one.get(name)).collect();
        values.len() > 1
    });
    let differing: Vec<&str> = differing.collect();
    let misfits = asked.iter().map(|(index, settings)| {
        let unlike = differing.iter().filter_map(|name| {
            let current = outside.settings.get(*name);
            let is_like = match (settings.get(name), current) {
                (Some(value), Some(current)) => current.is(value),
                (None, Some(current)) => current.value == current.default,
                // A module's own, of a module that is not there.
                (Some(_), None) => false,
                (None, None) => true,
            };
            let needs = match settings.get(name) {
                Some(value) => format!("{name} = {value}"),
                None => format!("{name} at its default"),
            };
            let has = current.map_or("a server without that setting".to_owned(), |current| {
                format!("{name} = {}", current.shown)
            });
            (!is_like).then(|| PointMisfit {
                what: format!("setting {name}"),
                amount: 1,
                needs,
                has: format!("a target with {has}"),
                hint: Some(format!(
                    "variants differ in {name}, and pgrig changes no setting of a target: set it \
                     there, or run the study without --target"
                )),
            })
        });
        (*index, unlike.collect::<Vec<_>>())
    });
    misfits.filter(|(_, misfits)| !misfits.is_empty()).collect()
}

impl CurrentSetting {
    /// True if a study asks for this value by these words.
    fn is(&self, asked: &str) -> bool {
        let plain = |text: &str| text.replace([' ', '"', '\''], "").to_ascii_lowercase();
        let (asked, mine) = (plain(asked), plain(&self.value));
        if asked == mine || asked == plain(&self.shown) {
            return true;
        }
        if let (Some(asked), Some(mine)) = (boolean(&asked), boolean(&mine)) {
            return asked == mine;
        }
        let (Some((number, unit)), Some(own)) = (quantity(&asked), factor(&plain(&self.unit)))
        else {
            return false;
        };
        let Ok(mine) = mine.parse::<f64>() else { return false };
        let asked = match unit {
            "" => number * own,
            unit => match factor(unit) {
                Some(factor) => number * factor,
                None => return false,
            },
        };
        (asked - mine * own).abs() <= own / 2.0
    }
}

fn boolean(word: &str) -> Option<bool> {
    match word {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// A number and the unit behind it.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Bytes, or microseconds, of a unit as PostgreSQL writes them; `8kb` is eight of them.
fn factor(unit: &str) -> Option<f64> {
    let (number, name) = quantity(unit).unwrap_or((1.0, unit));
    let one = match name {
        "" => 1.0,
        "b" => 1.0,
        "kb" => 1024.0,
        "mb" => 1024.0 * 1024.0,
        "gb" => 1024.0 * 1024.0 * 1024.0,
        "tb" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "min" => 6e7,
        "h" => 3.6e9,
        "d" => 8.64e10,
        _ => return None,
    };
    Some(number * one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_what_a_study_asks_for() {
        let check = |value: &str, unit: &str, asked, expected| {
            let (value, unit) = (value.to_owned(), unit.to_owned());
            let current = CurrentSetting { value, unit, ..CurrentSetting::default() };
            assert_eq!(current.is(asked), expected, "{current:?} {asked}");
        };
        check("on", "", "true", true);
        check("on", "", "off", false);
        check("16384", "8kB", "128MB", true);
        check("16384", "8kB", "64MB", false);
        check("16384", "8kB", "16384", true);
        check("300", "s", "5min", true);
        check("200", "ms", "0.2s", true);
        check("replica", "", "replica", true);
        check("a, b", "", "a,b", true);
        check("replica", "", "5min", false);
    }
}
