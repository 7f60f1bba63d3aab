//! The page of a single load, `pgrig bench --html`.

use std::collections::BTreeMap;

use record::{
    ConnectionPhase, GeneratorCost, LoadInterval, MachineFact, MarkKind, MeasuredWindow, Moment,
    PlannedTrial, Sample, TimelineMark, TransactionCounts, Trial, WorkloadResult,
};

use crate::environment;
use crate::evidence::ChartedTrial;
use crate::grouping::{Group, Line};
use crate::json::Json;
use crate::page::BenchPage;
use crate::page::rendered;
use crate::search::SearchReport;
use crate::timeline::{self, Timeline, timeline};
use crate::view::Table;
use crate::{data, latency_tables, number, tail_tables};

/// Cells of the time axis: more than a screen has room for is not drawn.
const CELLS_MAX: usize = 1200;

/// A single load, as `pgrig bench` ran it.
#[derive(Clone, Debug)]
pub struct BenchReport {
    /// The command that was run.
    pub command: String,
    /// The output, word for word.
    pub words: String,
    /// The load, as pgbench calls it: `<builtin: select only>`.
    pub what: String,
    /// Wall clock at the beginning, RFC 3339.
    pub started_at: String,
    /// The window; none when it never opened.
    pub window: Option<MeasuredWindow>,
    /// Connecting.
    pub connecting: ConnectionPhase,
    /// Disconnecting.
    pub disconnecting: ConnectionPhase,
    /// Results of each workload.
    pub workloads: Vec<WorkloadResult>,
    /// Cost of the rig.
    pub generator: GeneratorCost,
    /// Every second since the load began.
    pub intervals: Vec<LoadInterval>,
    /// Readings of the probes, if there were any.
    pub samples: Vec<Sample>,
    /// Events.
    pub marks: Vec<TimelineMark>,
    /// Slow transactions by cause.
    pub tail: Option<tail::SlowTransactions>,
    /// Server and machine.
    pub facts: Vec<MachineFact>,
    /// Latency over load, where the run belongs to a search.
    pub search: Option<SearchReport>,
}

impl BenchReport {
    /// The load as one HTML file that needs nothing beside it.
    pub fn html(&self) -> String {
        let evidence = self.evidence();
        let (mut course, no_timeline) = match timeline(&evidence, CELLS_MAX) {
            None => (None, Some("The load never began.")),
            // Lines join two steps at least.
            Some(course) if course.cells < 2 => {
                (None, Some("The load was too short to draw its course."))
            }
            course => (course, None),
        };
        timeline::rank_waits(course.iter_mut());
        let trials = [evidence.trial];
        let (mut latency_tables, percentiles) = latency_tables::latency(&[self.group()], &trials);
        latency_tables.extend(tail_tables::tables(&[("", self.tail.as_ref())]));
        let charts = course.iter().map(|course| self.chart(&trials[0], course));
        let figures = Json::Object(vec![
            ("trials", Json::List(charts.collect())),
            ("percentiles", Json::List(percentiles.clone())),
            ("curves", Json::List(self.search.iter().flat_map(SearchReport::curves).collect())),
        ]);
        let page = BenchPage {
            headline: self.headline(),
            started_at: self.started_at.clone(),
            tiles: self.tiles(),
            no_timeline,
            search: self.search.as_ref().map(SearchReport::section),
            has_percentiles: !percentiles.is_empty(),
            latency_tables,
            tables: vec![self.phases(), self.generator_table()],
            command: self.command.clone(),
            words: self.words.clone(),
            environment: environment::grouped(&self.facts),
            data: figures.to_string(),
        };
        rendered(&page)
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
        let mut counts = TransactionCounts::default();
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
        // A run that never opened its window has no time to divide by.
        let seconds = self.window.map(|window| window.seconds()).filter(|seconds| *seconds > 0.0);
        let cores = seconds.map(|seconds| number::figure(generator.cpu_ns as f64 / 1e9 / seconds));
        table.row([
            "generator".to_owned(),
            generator.processes.to_string(),
            generator.lanes.to_string(),
            cores.unwrap_or_else(|| "–".to_owned()),
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
    fn phase_marks(&self) -> Vec<TimelineMark> {
        let is_marked = self.marks.iter().any(|mark| mark.kind == MarkKind::Phase);
        let Some(window) = self.window.filter(|_| !is_marked) else {
            return Vec::new();
        };
        let ends = [
            (window.load_began, "all clients connected"),
            (window.open, "window opens"),
            (window.close, "window closes"),
        ];
        let mark = |(at, text): (Moment, &str)| TimelineMark {
            at,
            length_ns: 0,
            kind: MarkKind::Phase,
            node: "generator".to_owned(),
            text: text.to_owned(),
        };
        ends.map(mark).to_vec()
    }

    /// The load in the shape of a study's trial, which is what charts are drawn from.
    fn evidence(&self) -> ChartedTrial {
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
        let mut evidence = ChartedTrial::of(trial);
        for interval in &self.intervals {
            evidence.interval(interval.clone());
        }
        for sample in &self.samples {
            evidence.sample(sample.clone());
        }
        for mark in self.marks.iter().cloned().chain(self.phase_marks()) {
            evidence.mark(mark);
        }
        evidence
    }
}
