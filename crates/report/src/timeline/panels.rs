//! The panels of a timeline, from what clients, servers and the machine reported.

use std::collections::{BTreeMap, BTreeSet};

use record::{MarkKind, TimelineMark};
use spec::{Metric, metrics};

use crate::evidence::{ChartedTrial, Samples, Stretch};

use super::{Grid, Panel, Series, Style, Timeline};

/// Wait events that get a colour of their own; the others are summed.
const WAITS_MAX: usize = 7;

/// Devices, interfaces and error codes that get a line of their own.
const LINES_MAX: usize = 4;

/// The colour of "other", a grey at the end of the palette.
const GREY: usize = 8;

/// Beginning of the titles of wait event panels.
const WAITS: &str = "Wait events";

/// Beginning of the titles of throughput panels.
pub(crate) const THROUGHPUT: &str = "Throughput";

/// Workloads that get a lane of their own; more of them share one.
const LANES_MAX: usize = 6;

/// One megabyte, for axes.
const MIB: f64 = 1_048_576.0;

/// Gives each of the most frequent wait events of all trials a colour of its own on the whole
/// page, so that trials can be compared, and sums the others.
pub(crate) fn rank_waits<'t>(timelines: impl Iterator<Item = &'t mut Timeline>) {
    let mut panels: Vec<&mut Panel> = timelines
        .flat_map(|timeline| &mut timeline.panels)
        .filter(|panel| panel.title.starts_with(WAITS))
        .collect();
    let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
    for series in panels.iter().flat_map(|panel| &panel.series) {
        let total: f64 = series.values.iter().flatten().sum();
        *totals.entry(series.label.as_str()).or_default() += total;
    }
    let mut ranked: Vec<(&str, f64)> = totals.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    let names = ranked.into_iter().take(WAITS_MAX).map(|(name, _)| name.to_owned());
    let names: Vec<String> = names.collect();
    for panel in &mut panels {
        let (named, others): (Vec<Series>, Vec<Series>) =
            panel.series.drain(..).partition(|series| names.contains(&series.label));
        panel.series = named;
        let rank = |series: &Series| names.iter().position(|name| *name == series.label);
        panel.series.sort_by_key(rank);
        for series in &mut panel.series {
            series.colour = rank(series).unwrap_or(GREY);
        }
        if let Some(values) = sum(others.into_iter().map(|series| series.values)) {
            let label = "other".to_owned();
            panel.series.push(Series { label, colour: GREY, dashed: false, values });
        }
    }
}

/// Everything that can be drawn of a trial, top to bottom; a panel without data is left out.
pub(super) fn panels(data: &ChartedTrial, grid: &Grid) -> Vec<Panel> {
    let names = data.trial.workloads.iter().map(|workload| workload.name.as_str());
    let workloads: Vec<(usize, &str)> = names.enumerate().collect();
    let mut panels = Vec::new();
    for lane in lanes(&workloads, &data.marks) {
        let of = if lane.len() < workloads.len() { lane[0].1 } else { "" };
        panels.push(throughput(&data.stretches, lane, of, grid));
        panels.push(latency(&data.stretches, lane, of, grid));
    }
    panels.push(errors(&data.stretches, grid));
    panels.push(backlog(&data.stretches, &workloads, grid));
    panels.push(behind(&data.samples, grid));
    panels.push(poolers(&data.samples, grid));
    panels.extend(waits(&data.samples, grid));
    panels.push(by_label(
        &data.samples,
        grid,
        &metrics::XMIN_AGE,
        "Age of the oldest xmin",
        "transactions",
        1.0,
    ));
    panels.push(by_label(&data.samples, grid, &metrics::DEAD_TUPLES, "Dead rows", "rows", 1.0));
    panels.push(by_label(
        &data.samples,
        grid,
        &metrics::BLOAT_SHARE,
        "Free space and dead rows in tables",
        "%",
        0.01,
    ));
    panels.push(by_label(&data.samples, grid, &metrics::HEAP_BYTES, "Heap of tables", "MiB", MIB));
    panels.push(by_label(
        &data.samples,
        grid,
        &metrics::INDEX_BYTES,
        "Indexes of tables",
        "MiB",
        MIB,
    ));
    panels.push(by_label(
        &data.samples,
        grid,
        &metrics::SLOT_RETAINED_BYTES,
        "WAL that slots retain",
        "MiB",
        MIB,
    ));
    panels.push(group_cpu(&data.samples, grid));
    panels.push(machine_cpu(&data.samples, grid));
    panels.push(storage(&data.samples, grid));
    panels.push(network(&data.samples, grid));
    panels.retain(|panel| panel.series.iter().any(|s| s.values.iter().any(Option::is_some)));
    panels
}

/// Workloads that are drawn together: all of them, but each in a lane of its own where something was
/// done to the servers. Commits that wait for a standby then stand beside those that do not.
fn lanes<'w>(
    workloads: &'w [(usize, &'w str)],
    marks: &[TimelineMark],
) -> Vec<&'w [(usize, &'w str)]> {
    let is_disturbed = marks.iter().any(|mark| mark.kind == MarkKind::Action);
    match is_disturbed && workloads.len() <= LANES_MAX {
        true => workloads.chunks(1).collect(),
        false => vec![workloads],
    }
}

/// `Throughput`, or `Throughput, writes-on` where it is of one workload among several.
fn titled(what: &str, of: &str) -> String {
    if of.is_empty() { what.to_owned() } else { format!("{what}, {of}") }
}

fn panel(title: impl Into<String>, unit: &str, style: Style) -> Panel {
    Panel { title: title.into(), unit: unit.to_owned(), style, step_s: 0.0, series: Vec::new() }
}

fn throughput(intervals: &[Stretch], lane: &[(usize, &str)], of: &str, grid: &Grid) -> Panel {
    let mut panel = panel(titled(THROUGHPUT, of), "transactions/s", Style::Lines);
    for &(workload, name) in lane {
        let cells = grid.intervals(intervals, workload);
        let rate = |i: &&Stretch| i.transactions as f64 / (i.length_ns as f64 / 1e9);
        // A stub of a second at the end says nothing about a rate.
        let whole = |i: &&&Stretch| i.length_ns >= 100_000_000 || !grid.by_seconds;
        let mean = |cell: &Vec<&Stretch>| {
            let seconds: f64 = cell.iter().filter(whole).map(|i| i.length_ns as f64 / 1e9).sum();
            let count: u64 = cell.iter().filter(whole).map(|i| i.transactions).sum();
            (seconds > 0.0).then(|| count as f64 / seconds)
        };
        panel.series.push(Series {
            label: name.to_owned(),
            colour: workload,
            dashed: false,
            values: cells.iter().map(mean).collect(),
        });
        if grid.step_s > 1.0 && grid.by_seconds {
            let lowest =
                |cell: &Vec<&Stretch>| cell.iter().filter(whole).map(rate).min_by(f64::total_cmp);
            panel.series.push(Series {
                label: format!("{name}, lowest second"),
                colour: workload,
                dashed: true,
                values: cells.iter().map(lowest).collect(),
            });
        }
    }
    panel
}

fn latency(intervals: &[Stretch], lane: &[(usize, &str)], of: &str, grid: &Grid) -> Panel {
    let mut panel = panel(titled("Latency", of), "ms", Style::LogLines);
    for &(workload, name) in lane {
        let cells = grid.intervals(intervals, workload);
        for percentile in [P50, P99] {
            let worst = |cell: &Vec<&Stretch>| percentile.ms(cell, grid.by_seconds);
            let percentile = percentile.name;
            let alone = lane.len() == 1;
            panel.series.push(Series {
                label: if alone { percentile.to_owned() } else { format!("{name} {percentile}") },
                colour: workload,
                dashed: percentile == "p99",
                values: cells.iter().map(worst).collect(),
            });
        }
    }
    panel
}

/// A percentile that is drawn.
#[derive(Clone, Copy)]
struct Percentile {
    name: &'static str,
    quantile: f64,
    of_one: fn(&Stretch) -> Option<u64>,
}

const P50: Percentile = Percentile { name: "p50", quantile: 0.5, of_one: |one| one.p50_ns };
const P99: Percentile = Percentile { name: "p99", quantile: 0.99, of_one: |one| one.p99_ns };

impl Percentile {
    /// Of a cell: of its worst second, or of all its intervals where they are shorter.
    fn ms(self, cell: &[&Stretch], by_seconds: bool) -> Option<f64> {
        let ns = if by_seconds {
            cell.iter().filter_map(|interval| (self.of_one)(interval)).max()
        } else {
            let mut latencies = cell.iter().filter_map(|interval| interval.latency.as_ref());
            let mut all = latencies.next()?.clone();
            latencies.for_each(|latency| all.merge(latency));
            all.quantile_ns(self.quantile)
        };
        ns.map(|ns| ns as f64 / 1e6)
    }
}

fn errors(intervals: &[Stretch], grid: &Grid) -> Panel {
    let mut panel = panel("Errors", "errors/s", Style::Bars);
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for interval in intervals {
        for (state, count) in &interval.errors {
            *totals.entry(state).or_default() += count;
        }
    }
    let mut states: Vec<(&str, u64)> = totals.into_iter().collect();
    states.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    for (position, (state, _)) in states.into_iter().take(LINES_MAX).enumerate() {
        let mut values = vec![None; grid.cells];
        for interval in intervals {
            let Some(cell) = grid.cell(grid.seconds(interval.start) + 0.001) else {
                continue;
            };
            // An error that did not occur is not in the map.
            let count = interval.errors.get(state).copied().unwrap_or(0) as f64;
            *values[cell].get_or_insert(0.0) += count / grid.step_s;
        }
        let label = format!("SQLSTATE {state}");
        panel.series.push(Series { label, colour: position + 1, dashed: false, values });
    }
    panel
}

fn backlog(intervals: &[Stretch], workloads: &[(usize, &str)], grid: &Grid) -> Panel {
    let mut panel = panel("Backlog", "transactions", Style::Lines);
    if intervals.iter().all(|interval| interval.backlog == 0) {
        return panel;
    }
    for &(workload, name) in workloads {
        let cells = grid.intervals(intervals, workload);
        let largest = |cell: &Vec<&Stretch>| cell.iter().map(|i| i.backlog as f64).reduce(f64::max);
        panel.series.push(Series {
            label: name.to_owned(),
            colour: workload,
            dashed: false,
            values: cells.iter().map(largest).collect(),
        });
    }
    panel
}

/// One panel a node, with every wait event that it had; [`rank_waits`] does the rest.
fn waits(samples: &Samples, grid: &Grid) -> Vec<Panel> {
    let grid = grid.of_seconds();
    let readings = grid.readings(samples, &metrics::WAITING_SESSIONS);
    let mut nodes: BTreeMap<&str, Panel> = BTreeMap::new();
    for key in readings.keys() {
        let (node, event) = (key.0.as_str(), key.1.clone());
        let unit = looks(samples, node);
        let step_s = grid.step_s;
        let new = || Panel { step_s, ..panel(format!("{WAITS}, {node}"), &unit, Style::Bars) };
        let values = readings.series(key, grid.cells);
        let series = Series { label: event, colour: GREY, dashed: false, values };
        nodes.entry(node).or_insert_with(new).series.push(series);
    }
    nodes.into_values().collect()
}

/// Caption of the wait event panel: its subject, and the number of looks a second. A record made
/// before looks were counted has one.
fn looks(samples: &Samples, node: &str) -> String {
    let rates = samples.of(&metrics::WAIT_SAMPLES).filter(|(key, _)| key.0 == node);
    let rates: Vec<f64> = rates.flat_map(|(_, all)| all).map(|reading| reading.value).collect();
    let rate = stats::sample::median(&rates).map_or(1.0, f64::round);
    let times = if rate == 1.0 { "once".to_owned() } else { format!("{rate} times") };
    format!("active sessions, looked at {times} a second")
}

/// WAL by which standbys are behind their primaries; the marks tell when their state changes.
fn behind(samples: &Samples, grid: &Grid) -> Panel {
    let mut panel = panel("WAL that standbys have not flushed", "MiB", Style::Lines);
    let readings = grid.readings(samples, &metrics::REPLICATION_FLUSH_LAG_BYTES);
    for (position, key) in readings.keys().enumerate() {
        let values = readings.series(key, grid.cells);
        let values = values.into_iter().map(|value| value.map(|bytes| bytes / MIB)).collect();
        let colour = (position * 2) % GREY;
        panel.series.push(Series { label: key.1.clone(), colour, dashed: false, values });
    }
    panel
}

/// A line for each table, slot or other label of a gauge, the largest ones, in units of so much.
fn by_label(
    samples: &Samples,
    grid: &Grid,
    metric: &Metric,
    title: &str,
    unit: &str,
    one: f64,
) -> Panel {
    let mut panel = panel(title, unit, Style::Lines);
    let readings = grid.readings(samples, metric);
    let several = readings.keys().map(|key| &key.0).collect::<BTreeSet<_>>().len() > 1;
    let mut series: Vec<(f64, Series)> = Vec::new();
    for (node, label) in readings.keys() {
        let values = readings.series(&(node.clone(), label.clone()), grid.cells);
        let values: Vec<Option<f64>> =
            values.into_iter().map(|value| value.map(|value| value / one)).collect();
        let largest = values.iter().flatten().copied().fold(0.0, f64::max);
        let label = match (label.is_empty(), several) {
            (true, _) => node.clone(),
            (false, true) => format!("{label}, {node}"),
            (false, false) => label.clone(),
        };
        if largest > 0.0 {
            series.push((largest, Series { label, colour: GREY, dashed: false, values }));
        }
    }
    series.sort_by(|a, b| b.0.total_cmp(&a.0));
    let shown = series.into_iter().take(LINES_MAX).enumerate();
    panel.series = shown
        .map(|(position, (_, series))| Series { colour: (2 * position) % GREY, ..series })
        .collect();
    panel
}

/// Clients of poolers: those that wait for a server connection, and the others.
fn poolers(samples: &Samples, grid: &Grid) -> Panel {
    let mut panel = panel("Clients of poolers", "clients", Style::Lines);
    let kinds = [
        (&metrics::POOL_CLIENTS_ACTIVE, "served", true),
        (&metrics::POOL_CLIENTS_WAITING, "waiting", false),
    ];
    for (metric, verb, dashed) in kinds {
        let readings = grid.readings(samples, metric);
        let mut nodes: BTreeMap<&str, Vec<Vec<Option<f64>>>> = BTreeMap::new();
        for key in readings.keys() {
            nodes.entry(&key.0).or_default().push(readings.series(key, grid.cells));
        }
        for (position, (node, databases)) in nodes.into_iter().enumerate() {
            let (label, colour) = (format!("{verb}, {node}"), (position * 2) % GREY);
            let values = sum(databases.into_iter()).expect("a node is listed with a database");
            panel.series.push(Series { label, colour, dashed, values });
        }
    }
    panel
}

fn group_cpu(samples: &Samples, grid: &Grid) -> Panel {
    let mut panel = panel("CPU of servers and generator", "cores", Style::Lines);
    let mut generators = 0;
    let user = grid.readings(samples, &metrics::GROUP_CPU_USER_CORES);
    let system = grid.readings(samples, &metrics::GROUP_CPU_SYSTEM_CORES);
    for (position, key) in user.keys().enumerate() {
        let parts = [user.series(key, grid.cells), system.series(key, grid.cells)];
        let generator = key.0.starts_with("generator");
        generators += usize::from(generator);
        panel.series.push(Series {
            label: key.0.clone(),
            // Odd colours and dashes are the generators', even ones the servers'.
            colour: if generator { (generators * 2 - 1) % GREY } else { (position * 2) % GREY },
            dashed: generator,
            // A process without parts has no line.
            values: sum(parts.into_iter()).unwrap_or_default(),
        });
    }
    panel
}

fn machine_cpu(samples: &Samples, grid: &Grid) -> Panel {
    let mut panel = panel("CPU of the machine", "% of all cores", Style::Stack);
    let parts = [
        (&metrics::CPU_USER_PCT, "user", 0),
        (&metrics::CPU_SYSTEM_PCT, "system", 2),
        (&metrics::CPU_IOWAIT_PCT, "I/O wait", 4),
        (&metrics::CPU_STEAL_PCT, "steal", 1),
    ];
    for (metric, label, colour) in parts {
        let readings = grid.readings(samples, metric);
        if let Some(values) = sum(readings.keys().map(|key| readings.series(key, grid.cells))) {
            panel.series.push(Series { label: label.to_owned(), colour, dashed: false, values });
        }
    }
    panel
}

fn storage(samples: &Samples, grid: &Grid) -> Panel {
    let mut panel = panel("Disk and WAL", "MiB/s", Style::Lines);
    let kinds = [
        (&metrics::WAL_BYTES, "WAL", 1, false),
        (&metrics::DISK_WRITE_BYTES, "written to", 0, false),
        (&metrics::DISK_READ_BYTES, "read from", 2, true),
    ];
    for (metric, verb, colour, dashed) in kinds {
        panel.series.extend(busiest(samples, grid, metric, verb, colour, dashed));
    }
    panel
}

fn network(samples: &Samples, grid: &Grid) -> Panel {
    let mut panel = panel("Network", "MiB/s", Style::Lines);
    let kinds = [
        (&metrics::NET_SEND_BYTES, "sent on", 0, false),
        (&metrics::NET_RECEIVE_BYTES, "received on", 2, true),
        (&metrics::LINK_TO_BYTES, "to the server by", 1, false),
        (&metrics::LINK_FROM_BYTES, "from the server by", 3, true),
    ];
    for (metric, verb, colour, dashed) in kinds {
        panel.series.extend(busiest(samples, grid, metric, verb, colour, dashed));
    }
    panel
}

/// The busiest devices of a rate in bytes, as MiB/s; one that never exceeds 1 kB/s is idle.
fn busiest(
    samples: &Samples,
    grid: &Grid,
    metric: &Metric,
    verb: &str,
    colour: usize,
    dashed: bool,
) -> Vec<Series> {
    let readings = grid.readings(samples, metric);
    let mut series: Vec<(f64, Series)> = Vec::new();
    for key in readings.keys() {
        let values = readings.series(key, grid.cells);
        let largest = values.iter().flatten().copied().fold(0.0, f64::max);
        if largest < 1000.0 {
            continue;
        }
        let name = if key.1.is_empty() { &key.0 } else { &key.1 };
        let values = values.into_iter().map(|value| value.map(|bytes| bytes / MIB)).collect();
        series.push((largest, Series { label: format!("{verb} {name}"), colour, dashed, values }));
    }
    series.sort_by(|a, b| b.0.total_cmp(&a.0));
    let shown = series.into_iter().take(LINES_MAX).enumerate();
    shown
        .map(|(position, (_, series))| Series { colour: (colour + 3 * position) % GREY, ..series })
        .collect()
}

/// The sum of several series, cell by cell; none of none.
fn sum(all: impl Iterator<Item = Vec<Option<f64>>>) -> Option<Vec<Option<f64>>> {
    all.reduce(|total, each| {
        let pairs = total.into_iter().zip(each);
        pairs
            .map(|(a, b)| match (a, b) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            })
            .collect()
    })
}
