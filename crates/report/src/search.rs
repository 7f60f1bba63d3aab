//! The part of a load's page about a search, `pgrig bench --find-rate` and `--find-clients`.

use crate::json::Json;
use crate::number;
use crate::page::SearchSection;
use crate::view::Table;

/// Meaning of a search's answer, and the reason why the fitted line may disagree with it.
const MEANING: &str = "The answer is an estimate of the load at which half of the windows that \
    nothing else disturbs keep the goal. The line is the rising curve nearest to all dots: disturbed \
    windows lift it, so it may cross the limit at another load.";

/// A search and the windows that it tried.
#[derive(Clone, Debug)]
pub struct SearchReport {
    /// The parameter that was varied.
    pub axis: SearchAxis,
    /// The goal that the server had to keep: `p99 < 10ms`.
    pub goal: String,
    /// The quantile that is drawn: `p99`.
    pub quantile: String,
    /// The limit, in milliseconds.
    pub limit_ms: Option<f64>,
    /// The result, in words.
    pub words: String,
    /// What there is to say beside it: names and texts.
    pub details: Vec<(String, String)>,
    /// The end of the search.
    pub end: SearchEnd,
    /// The load at which latency turns up.
    pub knee: Option<f64>,
    /// Load and milliseconds as they would be without noise, ascending.
    pub fitted: Vec<(f64, f64)>,
    /// Every window, in order.
    pub windows: Vec<SearchWindow>,
    /// The load of the window that the rest of the page is about.
    pub shown: f64,
}

/// The end of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchEnd {
    /// With an answer, and the interval of the boundary.
    Found {
        /// The answer.
        load: f64,
        /// Lower and upper bound.
        interval: (f64, f64),
    },
    /// Every load was tried as often.
    Swept {
        /// The load at which most was done while the goal held.
        best: Option<f64>,
    },
    /// The goal holds at everything that can be sent.
    Everywhere,
    /// No load is known at which it holds.
    Nowhere,
    /// By the user or with aborted clients, before any of that was known.
    Interrupted,
}

/// The parameter that a search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchAxis {
    /// Transactions a second.
    Rate,
    /// Clients.
    Clients,
    /// Connections of a pool.
    PoolSize,
}

impl SearchAxis {
    /// Label below the axis of a chart.
    fn label(self) -> &'static str {
        match self {
            SearchAxis::Rate => "rate, 1/s",
            SearchAxis::Clients => "clients",
            SearchAxis::PoolSize => "pool size",
        }
    }

    /// A load in words.
    fn load(self, load: f64) -> String {
        match self {
            SearchAxis::Rate => format!("{} transactions a second", number::figure(load)),
            SearchAxis::Clients => terms::counted(load as u64, "client"),
            SearchAxis::PoolSize => format!("a pool of {load}"),
        }
    }
}

/// A window of a search.
#[derive(Clone, Debug)]
pub struct SearchWindow {
    /// Load that was tried, in the unit of the axis.
    pub load: f64,
    /// The length.
    pub seconds: f64,
    /// True if it was one of the longer windows that confirm.
    pub confirms: bool,
    /// Transactions a second.
    pub rate: f64,
    /// The quantile; none without a transaction.
    pub ms: Option<f64>,
    /// True if the goal held.
    pub holds: bool,
}

/// A chart over the load.
struct SearchChart<'a> {
    title: String,
    /// Label of the curve through the windows.
    line: String,
    unit: &'static str,
    /// The value of a window.
    value: &'a dyn Fn(&SearchWindow) -> Option<f64>,
    /// The curve, a value for each window that has one, by load.
    fitted: Vec<f64>,
    limit: Option<f64>,
}

impl SearchReport {
    /// The charts: latency over the load; of a sweep also throughput.
    pub(crate) fn curves(&self) -> Vec<Json> {
        let mut windows: Vec<&SearchWindow> = self.windows.iter().collect();
        windows.sort_by(|a, b| a.load.total_cmp(&b.load));
        // The median of each load, a value for each window that has one.
        let medians = |value: &dyn Fn(&SearchWindow) -> Option<f64>| -> Vec<f64> {
            let median = |load: f64| {
                let own = windows.iter().filter(|one| one.load == load);
                let mut values: Vec<f64> = own.filter_map(|one| value(one)).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            };
            let has_value = windows.iter().filter(|one| value(one).is_some());
            has_value.map(|one| median(one.load)).collect()
        };
        // Latency rises with the load, and need not with the size of a pool.
        let (line, fitted) = match self.axis {
            SearchAxis::PoolSize => ("median", medians(&|window| window.ms)),
            SearchAxis::Rate | SearchAxis::Clients => {
                ("fitted", self.fitted.iter().map(|(_, ms)| *ms).collect())
            }
        };
        let latency = SearchChart {
            title: format!("Latency, {}", self.quantile),
            line: format!("{}, {line}", self.quantile),
            unit: "ms",
            value: &|window| window.ms,
            fitted,
            limit: self.limit_ms,
        };
        let throughput = SearchChart {
            title: "Throughput".to_owned(),
            line: "median".to_owned(),
            unit: "transactions/s",
            value: &|window| Some(window.rate),
            fitted: medians(&|window| Some(window.rate)),
            limit: None,
        };
        match self.end {
            SearchEnd::Swept { .. } => {
                [throughput, latency].iter().filter_map(|chart| self.chart(chart)).collect()
            }
            _ => self.chart(&latency).into_iter().collect(),
        }
    }

    /// The windows as dots, the curve through them, and the limit; none without a value. One load
    /// alone has no lines.
    fn chart(&self, chart: &SearchChart<'_>) -> Option<Json> {
        let value = chart.value;
        let mut windows: Vec<_> =
            self.windows.iter().filter(|window| value(window).is_some()).collect();
        windows.sort_by(|a, b| a.load.total_cmp(&b.load));
        let (first, last) = (windows.first()?.load, windows.last()?.load);
        let mut lines = Vec::new();
        let mut add = |label: String, colour, style: &'static str, values: Vec<Option<f64>>| {
            let is_drawn = match style {
                "dots" => values.iter().any(Option::is_some),
                _ => first < last,
            };
            let line = || {
                Json::Object(vec![
                    ("label", Json::text(label)),
                    ("colour", Json::Exact(colour)),
                    ("dots", Json::Flag(style == "dots")),
                    ("dashed", Json::Flag(style == "dashed")),
                    ("values", Json::series(values)),
                ])
            };
            lines.extend(is_drawn.then(line));
        };
        let dots = |holds: bool| {
            windows.iter().map(|window| value(window).filter(|_| window.holds == holds)).collect()
        };
        add(chart.line.clone(), 0, "line", chart.fitted.iter().copied().map(Some).collect());
        let name = if chart.unit == "ms" { &self.quantile } else { "a window" };
        add(format!("{name}, the goal holds"), 2, "dots", dots(true));
        add(format!("{name}, it does not hold"), 1, "dots", dots(false));
        if let Some(limit) = chart.limit {
            let label = format!("limit {} ms", number::as_written(limit));
            add(label, 3, "dashed", windows.iter().map(|_| Some(limit)).collect());
        }
        let drawn = windows.iter().filter_map(|window| value(window)).chain(chart.limit);
        let (low, high) =
            drawn.fold((f64::MAX, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        Some(Json::Object(vec![
            ("title", Json::text(&*chart.title)),
            ("unit", Json::text(chart.unit)),
            ("axis", Json::text(self.axis.label())),
            ("dots", Json::Flag(true)),
            ("log", Json::Flag(low > 0.0 && high / low > 20.0)),
            ("x", Json::series(windows.iter().map(|window| Some(window.load)))),
            ("lines", Json::List(lines)),
            ("marks", Json::List(self.marks())),
        ]))
    }

    /// The answer with its interval, and the knee, from the left to the right.
    fn marks(&self) -> Vec<Json> {
        let knee = self.knee.map(|knee| (knee, 0.0, "phase", "turns up"));
        let mut marks: Vec<_> = knee.into_iter().collect();
        if let SearchEnd::Found { load, interval: (low, high) } = self.end {
            marks.push((low, high - low, "checkpoint", "90 % interval"));
            marks.push((load, 0.0, "action", "answer"));
        }
        if let SearchEnd::Swept { best: Some(load) } = self.end {
            let text = match self.axis {
                SearchAxis::PoolSize => "smallest that is enough",
                SearchAxis::Rate | SearchAxis::Clients => "most within the goal",
            };
            marks.push((load, 0.0, "action", text));
        }
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

    /// A note on which window the rest of the page is about.
    fn note(&self) -> String {
        let load = self.axis.load(self.shown);
        let which = match self.end {
            SearchEnd::Interrupted => format!("that was interrupted, with {load}"),
            _ => format!("with {load}"),
        };
        format!("The figures above and the sections below are those of the window {which}.")
    }

    pub(crate) fn headline(&self) -> String {
        let goal = &self.goal;
        match self.end {
            SearchEnd::Found { load, .. } => format!("{} keep {goal}", self.axis.load(load)),
            SearchEnd::Swept { .. } => self.words.clone(),
            SearchEnd::Everywhere => format!("every load that can be sent keeps {goal}"),
            SearchEnd::Nowhere => format!("no load is known to keep {goal}"),
            SearchEnd::Interrupted => {
                let held = self.windows.iter().filter(|window| window.holds);
                match held.map(|window| window.load).reduce(f64::max) {
                    Some(load) => format!(
                        "search interrupted; the highest load at which a window kept {goal} is {}",
                        self.axis.load(load)
                    ),
                    None => format!("search interrupted before a window kept {goal}"),
                }
            }
        }
    }

    pub(crate) fn section(&self) -> SearchSection {
        let (words, details, note) = (self.words.clone(), self.details.clone(), self.note());
        let meaning = match self.end {
            SearchEnd::Found { .. } => MEANING,
            _ => "",
        };
        let windows = (!self.windows.is_empty()).then(|| self.table());
        SearchSection { words, details, meaning, note, windows, charts: self.curves().len() }
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
