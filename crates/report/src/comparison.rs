//! Variants side by side: rows of dots, curves over a numeric axis, and every published figure.

use std::collections::BTreeSet;

use record::Trial;
use spec::{ClaimSubject, Metric, MetricDirection, Study, metrics};

use crate::estimate::{Estimate, estimate};
use crate::grouping::{Group, Line, axis_number, entry, label};
use crate::json::Json;
use crate::number;
use crate::plot::{self, Scale};
use crate::view::{Comparison, CurveSet, DotFigure, DotRow, Table};
use crate::why::why;

/// Metrics worth a figure when claims ask for nothing else.
const USUAL: [&Metric; 3] =
    [&metrics::TPS, &metrics::LATENCY_P99_MS, &metrics::SERVER_CPU_US_PER_TX];

/// More figures than these of one comparison are a table, not a picture.
const FIGURES_MAX: usize = 4;

/// Values that differ by more than this factor need a logarithmic axis to be told apart.
const LOG_FROM: f64 = 50.0;

/// Points on an axis from which on a curve says more than rows.
const CURVE_POINTS_MIN: usize = 3;

/// Everything that compares.
pub(crate) struct Comparisons {
    pub(crate) dots: Vec<Comparison>,
    pub(crate) curves: Vec<CurveSet>,
    /// Data of the curves.
    pub(crate) data: Vec<Json>,
}

/// Draws every comparison of a study.
pub(crate) fn comparisons(study: &Study, trials: &[Trial], groups: &[Group]) -> Comparisons {
    let metrics = metrics_of_interest(study, trials);
    let mut made = Comparisons { dots: Vec::new(), curves: Vec::new(), data: Vec::new() };
    let mut in_curves: BTreeSet<&str> = BTreeSet::new();
    for scenario in &study.scenarios {
        let lines = groups.iter().flat_map(|group| &group.lines);
        let lines: Vec<&Line> = lines.filter(|line| line.scenario == scenario.name).collect();
        let of_scenario = groups
            .iter()
            .filter(|group| group.lines.iter().any(|line| line.scenario == scenario.name));
        let Some(axis) = numeric_axis(&lines) else {
            continue;
        };
        in_curves.insert(&scenario.name);
        let first = made.data.len();
        let drawn = metrics.iter().filter(|metric| is_compared(study, &scenario.name, metric));
        let drawn = drawn.filter_map(|metric| curve(study, trials, &lines, &axis, metric));
        made.data.extend(drawn);
        let ids = (first..made.data.len()).collect();
        made.curves.push(CurveSet {
            heading: format!("{} over {axis}", label(&study.scenarios, &scenario.name)),
            ids,
            why: of_scenario.filter_map(|group| why(group, trials)).map(folded).collect(),
        });
    }
    for group in groups {
        let rows = |line: &&Line| !in_curves.contains(line.scenario.as_str());
        let lines: Vec<&Line> = group.lines.iter().filter(rows).collect();
        let figures = metrics.iter().filter_map(|metric| {
            let compared = |line: &&&Line| is_compared(study, &line.scenario, metric);
            let lines: Vec<&Line> = lines.iter().filter(compared).copied().collect();
            figure(study, trials, &lines, metric)
        });
        let mut figures: Vec<DotFigure> = figures.collect();
        // One column for all, so that the plots of a comparison stand below each other.
        let has_published = figures.iter().any(|figure| figure.has_published);
        figures.iter_mut().for_each(|figure| figure.has_published = has_published);
        if !figures.is_empty() {
            let why = why(group, trials).map(Table::without_empty_columns);
            made.dots.push(Comparison { heading: group.label.clone(), figures, why });
        }
    }
    made
}

/// True if a scenario's values of a metric are to be compared. If something is done to the servers
/// in the middle of the load, only the metrics that a claim or a publication speaks of are: the
/// others depend on when it was done.
fn is_compared(study: &Study, scenario: &str, metric: &Metric) -> bool {
    let points = || study.points.iter().filter(|point| point.name.scenario == scenario);
    if points().all(|point| point.timeline.is_empty()) {
        return true;
    }
    let claimed = study.claims.iter().any(|claim| match &claim.about {
        ClaimSubject::Value { value, .. } => value.references().iter().any(|reference| {
            reference.metric == metric && study.points[reference.point].name.scenario == scenario
        }),
        ClaimSubject::Every { .. } => false,
    });
    let mut published = study.published.iter();
    claimed || published.any(|one| one.scenario == scenario && one.metric == metric.name)
}

/// A table without empty columns that stands folded behind its title.
fn folded(table: Table) -> Table {
    Table { folded: true, ..table.without_empty_columns() }
}

/// The published figure of a line. Throughput is published as pgbench counts it, which differs only
/// by how the last transactions are counted.
fn published_of(line: &Line, study: &Study, metric: &Metric) -> Option<f64> {
    let is_tps = metric == &metrics::TPS;
    let as_pgbench = || is_tps.then(|| line.published(study, &metrics::TPS_PUBLISHED));
    line.published(study, metric).or_else(|| as_pgbench().flatten())
}

/// The published figures beside ours, those without one of ours as `wants` says; none if nothing was published.
pub(crate) fn published_table(
    study: &Study,
    trials: &[Trial],
    groups: &[Group],
    wants: Unmeasured,
) -> Option<Table> {
    let columns =
        ["Figure", "Of", "#Published", "#Here", "#Interval", "#Here ÷ published", "Source"];
    let mut table = Table::new(
        match wants {
            Unmeasured::Listed => "Every published figure, and what was measured",
            Unmeasured::LeftOut => "Published figures, and what was measured",
        },
        "Other hardware, other years: the ratio says how far this machine is from that one, \
         not which of the two is right. Counts, and sums of times, of loads that lasted otherwise \
         have none.",
        &columns,
    );
    for published in &study.published {
        let Some(metric) = spec::metric(&published.metric) else {
            continue;
        };
        let ours = measured(published, trials, groups);
        if ours.is_none() && wants == Unmeasured::LeftOut {
            continue;
        }
        let (here, range) = ours.as_ref().map_or(("–".to_owned(), String::new()), shown);
        let ratio = ours.filter(|_| published.value != 0.0 && !metric.grows_with_time());
        let mut of = label(&study.scenarios, &published.scenario).to_owned();
        if study.variants.len() > 1 {
            of = format!("{} / {of}", label(&study.variants, &published.variant));
        }
        for part in [&published.axes, &published.scope].into_iter().filter(|part| !part.is_empty())
        {
            of.push_str(" · ");
            of.push_str(part);
        }
        let note = if published.note.is_empty() {
            published.source.clone()
        } else {
            format!("{}; {}", published.source, published.note)
        };
        table.row([
            title(metric),
            of,
            number::as_written(published.value),
            here,
            range,
            ratio.map_or("–".to_owned(), |e| number::figure(e.point / published.value)),
            note,
        ]);
    }
    (!table.rows.is_empty()).then(|| folded(table))
}

/// Published figures that a run has not measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmeasured {
    /// They have a row, too.
    Listed,
    /// They have none: a comment holds 65,536 letters, and a source prints hundreds of figures.
    LeftOut,
}

/// An estimate as text: the figure, and its interval.
pub(crate) fn shown(estimate: &Estimate) -> (String, String) {
    let (middle, range) = number::with_interval(estimate.point, estimate.low, estimate.high);
    (middle, if estimate.low == estimate.high { String::new() } else { range })
}

/// A metric's name for people, with its unit: `latency p99, ms`.
pub(crate) fn title(metric: &Metric) -> String {
    let mut name = metric.name;
    for suffix in ["_ms", "_us_per_tx", "_s", "_pct", "_mb"] {
        name = name.strip_suffix(suffix).unwrap_or(name);
    }
    let name = capitalised(&name.replace('_', " ").replace("cpu", "CPU").replace("wal", "WAL"));
    match (metric.name, metric.unit) {
        ("tps", _) => "Transactions a second".to_owned(),
        ("tps_published", _) => "Transactions a second, as pgbench counts".to_owned(),
        ("tps_cv", _) => "Unsteadiness of TPS".to_owned(),
        ("tps_second_min", _) => "TPS in the worst second".to_owned(),
        ("full_page_share", _) => "Full-page images, share of the WAL".to_owned(),
        (full, unit) if full.ends_with("_per_tx") => format!("{name} per transaction, {unit}"),
        (_, "") => name,
        (_, unit) => format!("{name}, {unit}"),
    }
}

/// With a capital letter at the beginning.
pub(crate) fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn measured(
    published: &spec::PublishedFigure,
    trials: &[Trial],
    groups: &[Group],
) -> Option<Estimate> {
    let lines = groups.iter().flat_map(|group| &group.lines);
    let line = lines.into_iter().find(|line| {
        line.variant == published.variant
            && line.scenario == published.scenario
            && crate::grouping::axes_agree(&published.axes, &line.axes)
    })?;
    // A published figure may speak of a statement or a node, which are no lines of their own.
    let values = line.trials.iter().filter_map(|&index| {
        let scopes = trials[index].metrics.get(&published.metric)?;
        let named = scopes.get(&published.scope);
        // What is measured of one node only stands under its name; a publication need not.
        let only =
            scopes.values().next().filter(|_| published.scope.is_empty() && scopes.len() == 1);
        named.or(only).copied()
    });
    estimate(&values.collect::<Vec<f64>>())
}

/// Metrics that claims speak of, then the usual ones; only measured ones.
fn metrics_of_interest(study: &Study, trials: &[Trial]) -> Vec<&'static Metric> {
    let mut wanted: Vec<&'static Metric> = vec![USUAL[0]];
    for claim in &study.claims {
        if let ClaimSubject::Value { value, .. } = &claim.about {
            wanted.extend(value.references().iter().map(|reference| reference.metric));
        }
    }
    wanted.extend(USUAL);
    let mut chosen: Vec<&'static Metric> = Vec::new();
    for metric in wanted {
        // The same throughput, counted another way, is no figure of its own.
        if metric == &metrics::TPS_PUBLISHED {
            continue;
        }
        let known = |trial: &Trial| trial.metrics.contains_key(metric.name);
        if !chosen.contains(&metric) && trials.iter().any(known) {
            chosen.push(metric);
        }
    }
    chosen.truncate(FIGURES_MAX);
    chosen
}

fn figure(study: &Study, trials: &[Trial], lines: &[&Line], metric: &Metric) -> Option<DotFigure> {
    let measured: Vec<(&Line, Vec<f64>, Estimate, Option<f64>)> = lines
        .iter()
        .filter_map(|&line| {
            let rounds = line.values(trials, metric);
            let estimate = estimate(&rounds)?;
            Some((line, rounds, estimate, published_of(line, study, metric)))
        })
        .collect();
    if measured.is_empty() {
        return None;
    }
    let on_axis = measured.iter().flat_map(|(_, rounds, estimate, published)| {
        let ends = [estimate.low, estimate.high];
        rounds.iter().copied().chain(ends).chain(*published)
    });
    let scale = Scale::around(on_axis);
    let has_published = measured.iter().any(|(_, _, _, published)| published.is_some());
    let rows = measured.iter().enumerate().map(|(colour, (line, rounds, estimate, published))| {
        let row = plot::DotRow { estimate, rounds, published: *published, colour: colour % 9 };
        let (here, interval) = shown(estimate);
        DotRow {
            label: line.label.clone(),
            plot: plot::dot_row(&row, &scale),
            here,
            interval,
            n: estimate.n,
            published: published.map_or("–".to_owned(), number::as_written),
        }
    });
    Some(DotFigure {
        title: title(metric),
        note: if scale.is_log() { note(metric) + " · logarithmic axis" } else { note(metric) },
        has_published,
        rows: rows.collect(),
        axis: plot::axis(&scale),
    })
}

fn note(metric: &Metric) -> String {
    let better = match metric.better {
        MetricDirection::Higher => " · more is better",
        MetricDirection::Lower => " · less is better",
        MetricDirection::Neither => "",
    };
    format!("{}{better}", metric.says)
}

/// The axis along which the lines can be joined: numbers of one unit, enough different ones.
fn numeric_axis(lines: &[&Line]) -> Option<String> {
    let axes: BTreeSet<&String> = lines.iter().flat_map(|line| line.axes.keys()).collect();
    let numbers = |axis: &str| {
        let values = lines.iter().map(|line| line.axes.get(axis).and_then(|v| axis_number(v)));
        let values = values.collect::<Option<Vec<(f64, &str)>>>()?;
        let units: BTreeSet<&str> = values.iter().map(|(_, unit)| *unit).collect();
        let distinct: BTreeSet<u64> = values.iter().map(|(number, _)| number.to_bits()).collect();
        (units.len() <= 1 && distinct.len() >= CURVE_POINTS_MIN).then_some(distinct.len())
    };
    let usable = axes.into_iter().filter_map(|axis| Some((numbers(axis)?, axis)));
    usable.max_by_key(|(distinct, _)| *distinct).map(|(_, axis)| axis.clone())
}

fn curve(
    study: &Study,
    trials: &[Trial],
    lines: &[&Line],
    axis: &str,
    metric: &Metric,
) -> Option<Json> {
    let at = |line: &Line| axis_number(&line.axes[axis]).map(|(number, _)| number);
    let mut x: Vec<f64> = lines.iter().filter_map(|line| at(line)).collect();
    x.sort_by(f64::total_cmp);
    x.dedup();
    let mut curves: Vec<(String, Vec<Option<CurvePoint>>)> = Vec::new();
    for line in lines {
        let rounds = line.values(trials, metric);
        let Some(estimate) = estimate(&rounds) else {
            continue;
        };
        let position = at(line).and_then(|at| x.iter().position(|&known| known == at))?;
        let published = published_of(line, study, metric);
        let label = curve_label(study, line, axis);
        let new = || (label.clone(), vec![None; x.len()]);
        let (_, points) = entry(&mut curves, |(known, _)| *known == label, new);
        points[position] = Some(CurvePoint { estimate, rounds, published });
    }
    if curves.is_empty() {
        return None;
    }
    let unit = lines.iter().find_map(|line| axis_number(&line.axes[axis])).map_or("", |(_, u)| u);
    let label = if unit.is_empty() { axis.to_owned() } else { format!("{axis}, {unit}") };
    let points = curves.iter().flat_map(|(_, points)| points.iter().flatten());
    let values =
        points.flat_map(|p| [p.estimate.low, p.estimate.high].into_iter().chain(p.published));
    let spread = values.fold((f64::MAX, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    let log = spread.0 > 0.0 && spread.1 / spread.0 > LOG_FROM;
    Some(Json::Object(vec![
        ("title", Json::text(title(metric))),
        ("unit", Json::text(note(metric).rsplit(" · ").next().expect("a split has a first part"))),
        ("axis", Json::text(label)),
        ("log", Json::Flag(log)),
        ("x", Json::series(x.iter().map(|&at| Some(at)))),
        ("lines", Json::list(curves.iter().enumerate(), |(colour, line)| line_json(colour, line))),
    ]))
}

/// One point of a curve.
#[derive(Clone)]
struct CurvePoint {
    estimate: Estimate,
    rounds: Vec<f64>,
    published: Option<f64>,
}

/// Label that distinguishes a curve from the others: everything but the axis that it runs along.
fn curve_label(study: &Study, line: &Line, axis: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    if study.variants.len() > 1 {
        parts.push(label(&study.variants, &line.variant).to_owned());
    }
    let others = line.axes.iter().filter(|(other, _)| *other != axis);
    parts.extend(others.map(|(other, value)| format!("{other}={value}")));
    parts.extend(line.workload.iter().map(|(_, name)| name.clone()));
    if parts.is_empty() {
        label(&study.scenarios, &line.scenario).to_owned()
    } else {
        parts.join(" · ")
    }
}

fn line_json(colour: usize, (label, points): &(String, Vec<Option<CurvePoint>>)) -> Json {
    let of = |pick: fn(&CurvePoint) -> f64| {
        Json::series(points.iter().map(|point| point.as_ref().map(pick)))
    };
    let rounds = points.iter().map(|point| {
        let rounds = point.as_ref().map_or(&[][..], |point| &point.rounds);
        Json::series(rounds.iter().map(|&value| Some(value)))
    });
    let published = points.iter().map(|point| point.as_ref().and_then(|point| point.published));
    Json::Object(vec![
        ("label", Json::text(label)),
        ("colour", Json::Exact(colour as u64 % 9)),
        ("dashed", Json::Flag(colour % 2 == 1)),
        ("values", of(|point| point.estimate.point)),
        ("low", of(|point| point.estimate.low)),
        ("high", of(|point| point.estimate.high)),
        ("rounds", Json::List(rounds.collect())),
        ("published", Json::series(published)),
    ])
}
