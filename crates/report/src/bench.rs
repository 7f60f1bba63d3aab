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
use crate::page::{BenchPage, SearchSection};
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
    /// What was varied.
    pub axis: SearchAxis,
    /// What the server had to keep: `p99 < 10ms`.
    pub goal: String,
    /// What is drawn: `p99`.
    pub quantile: String,
    /// Its limit, in milliseconds.
    pub limit_ms: Option<f64>,
    /// What came of it, in words.
    pub words: String,
    /// The answer.
    pub held: Option<f64>,
    /// The interval of the boundary.
    pub interval: Option<(f64, f64)>,
    /// The load at which latency turns up.
    pub knee: Option<f64>,
    /// Load and milliseconds as they would be without noise, ascending.
    pub fitted: Vec<(f64, f64)>,
    /// Every window, in order.
    pub windows: Vec<SearchWindow>,
    /// The load of the window that the rest of the page is about.
    pub shown: f64,
}

/// What a search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchAxis {
    /// Transactions a second.
    Rate,
    /// Clients.
    Clients,
}

impl SearchAxis {
    /// What stands below the axis of a chart.
    fn label(self) -> &'static str {
        match self {
            SearchAxis::Rate => "rate, 1/s",
            SearchAxis::Clients => "clients",
        }
    }

    /// A load in words.
    fn load(self, load: f64) -> String {
        let load = number::figure(load.round());
        match self {
            SearchAxis::Rate => format!("{load} transactions a second"),
            SearchAxis::Clients => format!("{load} clients"),
        }
    }
}

/// A window of a search.
#[derive(Clone, Debug)]
pub struct SearchWindow {
    /// What it was tried with, in the unit of the axis.
    pub load: f64,
    /// Its length.
    pub seconds: f64,
    /// Whether it was one of the longer windows that confirm.
    pub confirms: bool,
    /// Transactions a second.
    pub rate: f64,
    /// The quantile; none without a transaction.
    pub ms: Option<f64>,
    /// Whether the goal held.
    pub holds: bool,
}

impl Search {
    /// The windows as dots, the curve through them, and the limit.
    fn curve(&self) -> Json {
        let mut windows: Vec<_> = self.windows.iter().filter(|w| w.ms.is_some()).collect();
        windows.sort_by(|a, b| a.load.total_cmp(&b.load));
        let dots =
            |holds: bool| Json::series(windows.iter().map(|w| w.ms.filter(|_| w.holds == holds)));
        let fitted = Json::series(self.fitted.iter().map(|(_, ms)| Some(*ms)));
        let line = |label: String, colour, style: &'static str, values| {
            Json::Object(vec![
                ("label", Json::text(label)),
                ("colour", Json::Exact(colour)),
                ("dots", Json::Flag(style == "dots")),
                ("dashed", Json::Flag(style == "dashed")),
                ("values", values),
            ])
        };
        let name = &self.quantile;
        let mut lines = vec![
            line(format!("{name}, fitted"), 0, "line", fitted),
            line(format!("{name}, the goal holds"), 2, "dots", dots(true)),
            line(format!("{name}, it does not hold"), 1, "dots", dots(false)),
        ];
        if let Some(limit) = self.limit_ms {
            let label = format!("limit {} ms", number::as_written(limit));
            lines.push(line(label, 3, "dashed", Json::series(windows.iter().map(|_| Some(limit)))));
        }
        let drawn = windows.iter().filter_map(|window| window.ms).chain(self.limit_ms);
        let (low, high) =
            drawn.fold((f64::MAX, 0.0f64), |(low, high), ms| (low.min(ms), high.max(ms)));
        Json::Object(vec![
            ("title", Json::text(format!("Latency, {name}"))),
            ("unit", Json::text("ms")),
            ("axis", Json::text(self.axis.label())),
            ("dots", Json::Flag(true)),
            ("log", Json::Flag(low > 0.0 && high / low > 20.0)),
            ("x", Json::series(windows.iter().map(|window| Some(window.load)))),
            ("lines", Json::List(lines)),
            ("marks", Json::List(self.marks())),
        ])
    }

    /// The answer with its interval, and the knee, from the left to the right.
    fn marks(&self) -> Vec<Json> {
        let interval =
            self.interval.map(|(low, high)| (low, high - low, "checkpoint", "90 % interval"));
        let held = self.held.map(|held| (held, 0.0, "action", "answer"));
        let knee = self.knee.map(|knee| (knee, 0.0, "phase", "turns up"));
        let mut marks: Vec<_> = [interval, held, knee].into_iter().flatten().collect();
        marks.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let mark = |(at, length, kind, text)| {
            Json::Object(vec![
                ("at", Json::Number(at)),
                ("length", Json::Number(length)),
                ("kind", Json::text(kind)),
                ("text", Json::text(text)),
            ])
        };
        marks.into_iter().map(|one: (f64, f64, &str, &str)| mark(one)).collect()
    }

    /// Of which window the rest of the page is.
    fn note(&self) -> String {
        let load = self.axis.load(self.shown);
        format!("The figures above and the sections below are those of the window with {load}.")
    }

    fn headline(&self) -> String {
        match self.held {
            Some(held) => format!("{} keep {}", self.axis.load(held), self.goal),
            None => format!("no load is known to keep {}", self.goal),
        }
    }

    fn section(&self) -> SearchSection {
        let (words, note) = (self.words.clone(), self.note());
        SearchSection { words, note, windows: self.table() }
    }

    fn table(&self) -> Table {
        let milliseconds = format!("#{}, ms", self.quantile);
        let columns = [
            "window",
            "#s",
            &format!("#{}", self.axis.label()),
            "#reached, 1/s",
            &milliseconds,
            "the goal",
        ];
        let mut table = Table::new("Every window, in order", "", &columns);
        for window in &self.windows {
            table.row([
                if window.confirms { "confirms" } else { "searches" }.to_owned(),
                number::figure(window.seconds),
                number::figure(window.load.round()),
                number::figure(window.rate.round()),
                window.ms.map_or("–".to_owned(), number::figure),
                if window.holds { "holds" } else { "does not hold" }.to_owned(),
            ]);
        }
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
            search: self.search.as_ref().map(Search::section),
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
        if let Some(search) = &self.search {
            return format!("{}: {}", self.what, search.headline());
        }
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
            "#Threads",
            "#Cores used",
            "#Busiest thread",
            "#Loop lag p99",
            "#Loop lag max",
        ];
        let note = "a busiest thread above 80 %, or a loop lag above 5 % of what clients waited, \
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
