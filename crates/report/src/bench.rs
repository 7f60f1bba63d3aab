//! The page of a single load, `pgrig bench --html`.

use std::collections::BTreeMap;

use askama::Template;
use record::{
    Counts, Fact, Finished, Generator, Interval, Mark, MarkKind, Moment, Phase, PlannedTrial,
    Sample, Trial, Window, WorkloadResult,
};

use crate::environment;
use crate::grouping::{Group, Line};
use crate::json::Json;
use crate::page::BenchPage;
use crate::timeline::{self, Timeline, timeline};
use crate::view::Table;
use crate::{data, latency_tables, number};

/// Cells of the time axis: more than a screen has room for is not drawn.
const CELLS_MAX: usize = 1200;

/// A single load, as `pgrig bench` ran it.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The command that was run.
    pub command: String,
    /// What it printed, word for word.
    pub words: String,
    /// What ran, as pgbench calls it: `<builtin: select only>`.
    pub what: String,
    /// Wall clock at the beginning, RFC 3339.
    pub started_at: String,
    /// The window; none when it never opened.
    pub window: Option<Window>,
    /// Connecting.
    pub connecting: Phase,
    /// Disconnecting.
    pub disconnecting: Phase,
    /// What each workload achieved.
    pub workloads: Vec<WorkloadResult>,
    /// What the rig cost.
    pub generator: Generator,
    /// Every second since the load began.
    pub intervals: Vec<Interval>,
    /// What probes read, where there were any.
    pub samples: Vec<Sample>,
    /// What happened.
    pub marks: Vec<Mark>,
    /// Server and machine.
    pub facts: Vec<Fact>,
    /// Latency over load, where the run belongs to a search.
    pub search: Option<Search>,
}

/// What a search has tried.
#[derive(Clone, Debug)]
pub struct Search {
    /// What was varied: `rate, 1/s` or `clients`.
    pub axis: String,
    /// What is drawn: `p99`.
    pub quantile: String,
    /// What came of it, in words.
    pub words: String,
    /// Load and milliseconds, ascending.
    pub points: Vec<(f64, f64)>,
    /// Load and milliseconds of each window by itself.
    pub tried: Vec<(f64, f64)>,
    /// The load at which latency turns up.
    pub knee: Option<f64>,
    /// Every window: load, seconds, what it was for, transactions a second, milliseconds, whether
    /// the goal held.
    pub windows: Vec<[String; 6]>,
}

impl Search {
    fn curve(&self) -> Json {
        let spread = self
            .tried
            .iter()
            .fold((f64::MAX, 0.0f64), |(low, high), (_, ms)| (low.min(*ms), high.max(*ms)));
        let windows = |load: f64| {
            let own = self.tried.iter().filter(move |(at, _)| *at == load);
            Json::series(own.map(|(_, ms)| Some(*ms)))
        };
        let mut lines = vec![self.line(&self.quantile, 0, &|_| true, &windows)];
        if let Some(knee) = self.knee {
            let none = |_| Json::List(Vec::new());
            lines.push(self.line("it turns up", 1, &|load| load == knee, &none));
        }
        Json::Object(vec![
            ("title", Json::text(format!("Latency, {}", self.quantile))),
            ("unit", Json::text("ms")),
            ("axis", Json::text(&self.axis)),
            ("log", Json::Flag(spread.0 > 0.0 && spread.1 / spread.0 > 20.0)),
            ("x", Json::series(self.points.iter().map(|(load, _)| Some(*load)))),
            ("lines", Json::List(lines)),
        ])
    }

    /// A line through the points at some loads, with windows of their own beside each.
    fn line(
        &self,
        label: &str,
        colour: u64,
        is_at: &dyn Fn(f64) -> bool,
        windows: &dyn Fn(f64) -> Json,
    ) -> Json {
        let value = |&(load, ms): &(f64, f64)| is_at(load).then_some(ms);
        let values = || Json::series(self.points.iter().map(value));
        Json::Object(vec![
            ("label", Json::text(label)),
            ("colour", Json::Exact(colour)),
            ("dashed", Json::Flag(false)),
            ("values", values()),
            ("low", values()),
            ("high", values()),
            ("rounds", Json::List(self.points.iter().map(|(load, _)| windows(*load)).collect())),
            ("published", Json::series(self.points.iter().map(|_| None))),
        ])
    }

    fn table(&self) -> Table {
        let milliseconds = format!("#{}, ms", self.quantile);
        let columns =
            [&format!("#{}", self.axis), "#s", "window", "#1/s", &milliseconds, "the goal"];
        let mut table = Table::new("Every window, in order", "", &columns);
        self.windows.iter().for_each(|window| table.row(window.clone()));
        table
    }
}

impl Bench {
    /// The load as one HTML file that needs nothing beside it.
    #[must_use]
    pub fn html(&self) -> String {
        let finished = self.finished();
        let mut course = timeline(&finished, CELLS_MAX);
        timeline::rank_waits(course.iter_mut());
        let trials = [finished.trial];
        let (latency_tables, percentiles) = latency_tables::latency(&[self.group()], &trials);
        let charts = course.iter().map(|course| self.chart(&trials[0], course));
        let figures = Json::Object(vec![
            ("trials", Json::List(charts.collect())),
            ("percentiles", Json::List(percentiles.clone())),
            ("curves", Json::list(self.search.iter(), Search::curve)),
        ]);
        let page = BenchPage {
            headline: self.headline(),
            started_at: self.started_at.clone(),
            tiles: self.tiles(),
            has_timeline: course.is_some(),
            search: self.search.as_ref().map(|search| (search.words.clone(), search.table())),
            has_percentiles: !percentiles.is_empty(),
            latency_tables,
            tables: vec![self.phases(), self.generator_table()],
            command: self.command.clone(),
            words: self.words.clone(),
            environment: environment::grouped(&self.facts),
            data: figures.to_string(),
        };
        page.render().expect("writing into a string cannot fail")
    }

    fn headline(&self) -> String {
        let clients: u32 = self.workloads.iter().map(|workload| workload.clients).sum();
        let plural = if clients == 1 { "" } else { "s" };
        let rate = self.rate().map_or_else(String::new, |rate| {
            format!(": {} transactions a second", number::figure(rate))
        });
        format!("{}, {clients} client{plural}{rate}", self.what)
    }

    /// Transactions a second inside the window.
    fn rate(&self) -> Option<f64> {
        let seconds = self.window?.seconds();
        let count: u64 = self.workloads.iter().map(|w| w.counts.transactions).sum();
        (seconds > 0.0).then(|| count as f64 / seconds)
    }

    fn tiles(&self) -> Vec<(String, String)> {
        let mut tiles: Vec<(&str, String)> = Vec::new();
        if let (Some(rate), Some(window)) = (self.rate(), self.window) {
            tiles.push(("inside the window", number::with_unit(rate, "1/s")));
            tiles.push(("window", format!("{} s", number::figure(window.seconds()))));
        }
        let (mut transactions, mut seconds) = (0, 0f64);
        for workload in &self.workloads {
            transactions += workload.published_way.transactions;
            seconds = seconds.max(workload.published_way.seconds);
        }
        if seconds > 0.0 {
            let rate = transactions as f64 / seconds;
            tiles.push(("as pgbench counts", number::with_unit(rate, "1/s")));
        }
        let mut latencies = self.workloads.iter().map(|workload| &workload.latency);
        if let Some(mut all) = latencies.next().cloned() {
            latencies.for_each(|latency| all.merge(latency));
            for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
                if let Some(ns) = all.quantile_ns(quantile) {
                    tiles.push((name, number::with_unit(ns as f64 / 1e6, "ms")));
                }
            }
        }
        let mut counts = Counts::default();
        self.workloads.iter().for_each(|workload| counts.add(&workload.counts));
        tiles.push(("failed", number::count(counts.failed())));
        let kinds = [
            ("serialization failures", counts.serialization_failures),
            ("deadlock failures", counts.deadlock_failures),
            ("other failures", counts.other_failures),
        ];
        let some = kinds.into_iter().filter(|(_, count)| *count > 0);
        tiles.extend(some.map(|(name, count)| (name, number::count(count))));
        tiles.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn phases(&self) -> Table {
        let columns =
            ["", "#Connections", "#Failures", "#All", "#p50 each", "#p99 each", "#Rig CPU"];
        let mut table = Table::new("Connecting and disconnecting", "", &columns);
        for (name, phase) in
            [("connecting", &self.connecting), ("disconnecting", &self.disconnecting)]
        {
            let each = |quantile: f64| {
                let ns = phase.latency.quantile_ns(quantile);
                ns.map_or("–".to_owned(), |ns| number::duration_ns(ns as f64))
            };
            table.row([
                name.to_owned(),
                number::count(phase.count),
                number::count(phase.failures.values().sum()),
                number::duration_ns(phase.length_ns as f64),
                each(0.5),
                each(0.99),
                number::duration_ns(phase.generator_cpu_ns as f64),
            ]);
        }
        table
    }

    fn generator_table(&self) -> Table {
        let columns = [
            "",
            "#Processes",
            "#Lanes",
            "#Cores used",
            "#Busiest lane",
            "#Loop lag p99",
            "#Loop lag max",
        ];
        let note = "a busiest lane above 80 %, or a loop lag above 5 % of what clients waited, \
                    means that the rig may be the limit";
        let mut table = Table::new("The generator's own cost", note, &columns);
        let generator = &self.generator;
        let seconds = self.window.map_or(0.0, |window| window.seconds());
        let cores = generator.cpu_ns as f64 / 1e9 / seconds;
        table.row([
            "generator".to_owned(),
            generator.processes.to_string(),
            generator.lanes.to_string(),
            number::figure(cores),
            number::percent(generator.busy_share_max),
            number::duration_ns(generator.lag_p99_ns as f64),
            number::duration_ns(generator.lag_max_ns as f64),
        ]);
        table
    }

    fn chart(&self, trial: &Trial, course: &Timeline) -> Json {
        data::trial(trial, (&trial.scenario, ""), course, true)
    }

    fn group(&self) -> Group {
        let several = self.workloads.len() > 1;
        let workloads = self.workloads.iter().enumerate().map(|(index, workload)| Line {
            label: workload.name.clone(),
            scenario: self.what.clone(),
            variant: String::new(),
            axes: BTreeMap::new(),
            workload: several.then(|| (index, workload.name.clone())),
            trials: vec![0],
        });
        Group { label: String::new(), lines: workloads.collect() }
    }

    /// The window's ends, where the caller has not marked them.
    fn phase_marks(&self) -> Vec<Mark> {
        let is_marked = self.marks.iter().any(|mark| mark.kind == MarkKind::Phase);
        let Some(window) = self.window.filter(|_| !is_marked) else {
            return Vec::new();
        };
        let ends = [
            (window.load_began, "all clients connected"),
            (window.open, "window opens"),
            (window.close, "window closes"),
        ];
        let mark = |(at, text): (Moment, &str)| Mark {
            at,
            length_ns: 0,
            kind: MarkKind::Phase,
            node: "generator".to_owned(),
            text: text.to_owned(),
        };
        ends.map(mark).to_vec()
    }

    /// The load in the shape of a study's trial, which is what charts are drawn from.
    fn finished(&self) -> Finished {
        let planned = PlannedTrial {
            number: 1,
            round: 1,
            variant: String::new(),
            scenario: self.what.clone(),
            axes: BTreeMap::new(),
        };
        let trial = Trial {
            started_at: self.started_at.clone(),
            window: self.window,
            connecting: self.connecting.clone(),
            disconnecting: self.disconnecting.clone(),
            workloads: self.workloads.clone(),
            generator: self.generator.clone(),
            ..planned.attempt(1)
        };
        Finished {
            trial,
            intervals: self.intervals.clone(),
            samples: self.samples.clone(),
            marks: self.marks.iter().cloned().chain(self.phase_marks()).collect(),
            logs: BTreeMap::new(),
        }
    }
}
