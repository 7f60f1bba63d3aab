//! The page of a history, `pgrig history plot`: figures of many records over time.

use std::collections::BTreeSet;

use record::PastMark;
use record::comparison::ComparedMetric;

use crate::comparison::{capitalised, title};
use crate::curve;
use crate::json::Json;
use crate::number;
use crate::page::HistoryPage;
use crate::page::rendered;
use crate::view::Table;

/// One figure over time.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureSeries {
    /// The study, or `compare`.
    pub study: String,
    /// What it is about besides the study; may be empty.
    pub subject: String,
    /// Subject of the measurement: a side, a point.
    pub benchmark: String,
    /// Name of the metric.
    pub name: String,
    /// The unit; empty of a ratio.
    pub unit: String,
    /// True if more is better.
    pub more_is_better: bool,
    /// In the order of time.
    pub points: Vec<SeriesPoint>,
}

/// One result.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesPoint {
    /// Wall clock, RFC 3339.
    pub time: String,
    /// The commit; empty where none is known.
    pub commit: String,
    /// The machine's fingerprint: only results of the same machine can be compared.
    pub machine: String,
    /// The value.
    pub value: f64,
    /// Lower and upper bound.
    pub bounds: Option<[f64; 2]>,
    /// Why it is no whole result.
    pub mark: Option<PastMark>,
}

impl FigureSeries {
    /// `compare, B ÷ A: throughput`
    pub fn title(&self) -> String {
        format!("{}, {}: {}", self.of(), self.benchmark, self.name)
    }

    /// `compare -S (A: as it is. B: jit off.)`
    fn of(&self) -> String {
        match self.subject.as_str() {
            "" => self.study.clone(),
            subject => format!("{} ({subject})", self.study),
        }
    }

    /// The same for people: `Throughput: compare, B ÷ A`. A name that is no longer known stands as it
    /// is.
    fn heading(&self) -> String {
        let compared = ComparedMetric::ALL.into_iter().find(|metric| metric.name() == self.name);
        // Ratios of a comparison have no unit, but one has the name of a metric.
        let what = match (compared, spec::metric(&self.name)) {
            (Some(metric), _) if self.unit.is_empty() => capitalised(metric.words()),
            (_, Some(metric)) => title(metric),
            _ if self.unit.is_empty() => self.name.clone(),
            _ => format!("{}, {}", self.name, self.unit),
        };
        format!("{what}: {}, {}", self.of(), self.benchmark)
    }
}

/// Every series as a chart with a line for each machine, and as a table: one HTML file that needs
/// nothing beside it.
pub fn history(series: &[FigureSeries]) -> String {
    let results: BTreeSet<&str> = series
        .iter()
        .flat_map(|series| series.points.iter().map(|point| point.time.as_str()))
        .collect();
    let page = HistoryPage {
        kind: "history",
        note: "A line for each machine: results of different machines cannot be compared. Bands are the \
               intervals of the results; one round has none."
            .to_owned(),
        title: format!(
            "{} of {}",
            terms::counted(series.len() as u64, "figure"),
            terms::counted(results.len() as u64, "result")
        ),
        curves: (0..series.len()).collect(),
        tables: series.iter().map(table).collect(),
        data: Json::Object(vec![
            ("trials", Json::List(Vec::new())),
            ("percentiles", Json::List(Vec::new())),
            ("curves", Json::list(series, curve)),
        ])
        .to_string(),
    };
    rendered(&page)
}

fn curve(series: &FigureSeries) -> Json {
    let mut machines: Vec<&str> = Vec::new();
    for point in &series.points {
        if !machines.contains(&point.machine.as_str()) {
            machines.push(&point.machine);
        }
    }
    let lines = machines.iter().zip(0..).map(|(machine, colour)| {
        let of = |pick: &dyn Fn(&SeriesPoint) -> f64| {
            Json::series(
                series.points.iter().map(|point| (point.machine == *machine).then(|| pick(point))),
            )
        };
        let bound = |index: usize| {
            move |point: &SeriesPoint| point.bounds.map_or(point.value, |bounds| bounds[index])
        };
        let values = [of(&|point| point.value), of(&bound(0)), of(&bound(1))];
        curve::line(machine, colour, series.points.len(), values)
    });
    let positions = (1..=series.points.len()).map(|position| Some(position as f64));
    Json::Object(vec![
        ("title", Json::text(series.heading())),
        ("unit", Json::text("")),
        ("axis", Json::text("results, in the order of time (UTC)")),
        ("log", Json::Flag(is_log(series))),
        ("x", Json::series(positions)),
        ("names", Json::list(&series.points, |point| Json::text(minute(&point.time)))),
        ("lines", Json::List(lines.collect())),
    ])
}

/// Ratios that differ by a factor are as far from each other above 1 as below.
fn is_log(series: &FigureSeries) -> bool {
    let bounds = series.points.iter().flat_map(|point| {
        point.bounds.unwrap_or([point.value; 2]).into_iter().chain([point.value])
    });
    let (low, high) = bounds
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    series.unit.is_empty() && low > 0.0 && high > LOG_FACTOR * low
}

/// Within this factor, a linear axis looks like a logarithmic one.
const LOG_FACTOR: f64 = 3.0;

/// `2026-11-25 03:09` of a time in RFC 3339.
fn minute(time: &str) -> String {
    time.chars().take(16).map(|one| if one == 'T' { ' ' } else { one }).collect()
}

fn table(series: &FigureSeries) -> Table {
    let better = if series.more_is_better { "more is better" } else { "less is better" };
    let columns = ["Result", "Time", "Commit", "#Value", "#Interval", "Machine"];
    let mut table = Table::new(&series.heading(), better, &columns);
    for (point, position) in series.points.iter().zip(1..) {
        let (value, interval) = match point.bounds {
            Some([low, high]) => number::with_interval(point.value, low, high),
            None => (number::figure(point.value), "one round, no interval".to_owned()),
        };
        let mark = point.mark.map_or(String::new(), |mark| format!(", {}", mark.word()));
        let texts = [format!("{position}{mark}"), point.time.clone(), point.commit.clone()];
        table.row(texts.into_iter().chain([value, interval, point.machine.clone()]));
    }
    table.folded = true;
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, unit: &str) -> FigureSeries {
        let point = SeriesPoint {
            time: "2026-11-25T03:09:33Z".to_owned(),
            commit: String::new(),
            machine: "m".to_owned(),
            value: 13_514.0,
            bounds: None,
            mark: None,
        };
        FigureSeries {
            study: "pgbench".to_owned(),
            subject: String::new(),
            benchmark: "read-only".to_owned(),
            name: name.to_owned(),
            unit: unit.to_owned(),
            more_is_better: true,
            points: vec![point],
        }
    }

    #[test]
    fn figures_have_the_catalogue_s_titles() {
        let check = |name, unit, expected: &str| {
            let heading = series(name, unit).heading();
            assert_eq!(heading, format!("{expected}: pgbench, read-only"));
        };
        check("tps", "1/s", "Transactions a second");
        check("latency_p99_ms", "ms", "Latency p99, ms");
        check("server_cpu_us_per_tx", "µs", "Server CPU per transaction, µs");
        check("context_switches", "1/s", "Context switches, 1/s");
        check("context_switches", "", "Context switches per transaction");
        check("throughput", "", "Throughput");
        check("p99", "", "99th percentile of latency");
        check("of_another_version", "ms", "of_another_version, ms");
    }

    #[test]
    fn results_stand_at_their_dates() {
        let html = history(&[series("tps", "1/s")]);
        assert!(html.contains(r#""names":["2026-11-25 03:09"]"#));
        assert!(html.contains("<td class=\"num\">one round, no interval</td>"));
    }
}
