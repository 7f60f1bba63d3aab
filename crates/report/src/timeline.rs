//! Events and figures of one trial, second by second, on one grid of time for all panels.
//!
//! Second 0 is the moment in which every client was connected and the load began. Long trials are
//! drawn in steps of several seconds: throughput as the mean of a step with its lowest second
//! beside it, latency percentiles as the worst second of a step, so that no stall disappears.
//! Trials of a few seconds have shorter intervals, and are drawn in steps of tenths.
//!
//! Limits: the grid holds what a screen can show; the record keeps every second.

use std::collections::{BTreeMap, BTreeSet};

use record::{MarkKind, Moment, TimelineMark};
use spec::Metric;

use crate::evidence::{ChartedTrial, SECOND_FROM_NS, Samples, Stretch};

mod panels;

pub(crate) use panels::{THROUGHPUT, rank_waits};

/// One trial over time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timeline {
    /// Beginning of the grid, seconds.
    pub(crate) from_s: f64,
    /// Width of one cell, seconds.
    pub(crate) step_s: f64,
    pub(crate) cells: usize,
    /// The window that counts, seconds.
    pub(crate) window_s: Option<(f64, f64)>,
    /// Panels, from top to bottom.
    pub(crate) panels: Vec<Panel>,
    pub(crate) marks: Vec<TimedMark>,
    /// Marks that were left out because there were too many.
    pub(crate) marks_left_out: usize,
}

/// One chart of a timeline.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel {
    /// The name, which also aligns panels between trials.
    pub(crate) title: String,
    /// Unit of the y axis.
    pub(crate) unit: String,
    pub(crate) style: Style,
    /// Width of one of its cells, seconds: readings of a second are drawn as what they are, however
    /// fine the grid of the other panels is.
    pub(crate) step_s: f64,
    pub(crate) series: Vec<Series>,
}

/// Style in which the series of a panel are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Lines from zero.
    Lines,
    /// Lines over a logarithmic y axis.
    LogLines,
    /// Areas on top of each other.
    Stack,
    /// Bars on top of each other: each is a mean of its own, and nothing is known between two.
    Bars,
}

/// One line of a panel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) label: String,
    /// Index into the page's palette.
    pub(crate) colour: usize,
    pub(crate) dashed: bool,
    /// One value a cell.
    pub(crate) values: Vec<Option<f64>>,
}

/// A mark on the grid's clock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimedMark {
    pub(crate) at_s: f64,
    /// Seconds; 0 for an instant.
    pub(crate) length_s: f64,
    pub(crate) kind: MarkKind,
    pub(crate) node: String,
    pub(crate) text: String,
}

impl Timeline {
    /// Number of values that its charts hold.
    pub(crate) fn values(&self) -> usize {
        self.panels.iter().map(|panel| panel.series.len() * self.cells).sum()
    }
}

/// More marks than a reader can look at are no help; faults and phases are kept first.
const MARKS_MAX: usize = 200;

/// Lays everything that was measured in a trial on one grid of at most `cells_max` cells. None
/// when the load never began.
pub(crate) fn timeline(data: &ChartedTrial, cells_max: usize) -> Option<Timeline> {
    let grid = Grid::over(data, cells_max)?;
    let window_s = data.trial.window.map(|w| (grid.seconds(w.open), grid.seconds(w.close)));
    let (marks, marks_left_out) = marks(&data.marks, &grid);
    Some(Timeline {
        from_s: grid.from_s,
        step_s: grid.step_s,
        cells: grid.cells,
        window_s,
        panels: panels::panels(data, &grid),
        marks,
        marks_left_out,
    })
}

/// Steps of trials that are too short for whole seconds.
const SHORT_STEPS_S: [f64; 3] = [0.1, 0.2, 0.5];

/// Cells that such a trial has at most.
const SHORT_CELLS_MAX: f64 = 120.0;

/// The cells that a trial's time is divided into.
struct Grid {
    zero: Moment,
    from_s: f64,
    /// True if an interval is a second, and a percentile of one says something by itself.
    by_seconds: bool,
    step_s: f64,
    cells: usize,
}

impl Grid {
    fn over(data: &ChartedTrial, cells_max: usize) -> Option<Grid> {
        let first = data.stretches.iter().map(|i| i.start).min()?;
        let last = data.stretches.iter().map(|i| i.start.plus_ns(i.length_ns)).max()?;
        let zero = data.trial.window.map_or(first, |window| window.load_began);
        let longest_ns = data.stretches.iter().map(|i| i.length_ns).max()?;
        let (longest_s, by_seconds) = (longest_ns as f64 / 1e9, longest_ns > SECOND_FROM_NS);
        let grid = Grid { zero, from_s: 0.0, by_seconds, step_s: 1.0, cells: 0 };
        let from_s = grid.seconds(first).min(0.0).floor();
        let span_s = (grid.seconds(last) - from_s).max(0.1);
        let short = SHORT_STEPS_S.into_iter().filter(|_| !by_seconds);
        let step_s = short
            .into_iter()
            .find(|step| *step >= longest_s && span_s / step <= SHORT_CELLS_MAX)
            .unwrap_or_else(|| (span_s / cells_max.max(1) as f64).ceil().max(1.0));
        // A remainder of a few milliseconds is not a step.
        let cells = (span_s / step_s - 0.05).ceil().max(1.0) as usize;
        Some(Grid { step_s, cells, from_s, ..grid })
    }

    /// Seconds since the load began; negative before.
    fn seconds(&self, at: Moment) -> f64 {
        (at.0 as f64 - self.zero.0 as f64) / 1e9
    }

    /// The same time in cells of a second at least, for what is read once a second.
    fn of_seconds(&self) -> Grid {
        let step_s = self.step_s.max(1.0);
        let cells = (self.cells as f64 * self.step_s / step_s).ceil() as usize;
        Grid { step_s, cells, ..*self }
    }

    /// The cell that a moment falls into.
    fn cell(&self, seconds: f64) -> Option<usize> {
        let cell = ((seconds - self.from_s) / self.step_s).floor();
        (cell >= 0.0 && (cell as usize) < self.cells).then_some(cell as usize)
    }

    /// The intervals of one workload, by the cell in which they began.
    fn intervals<'a>(&self, all: &'a [Stretch], workload: usize) -> Vec<Vec<&'a Stretch>> {
        let mut cells = vec![Vec::new(); self.cells];
        for interval in all.iter().filter(|interval| interval.workload == workload) {
            // The tolerance puts an interval that began a hair early into its own second.
            if let Some(cell) = self.cell(self.seconds(interval.start) + 0.001) {
                cells[cell].push(interval);
            }
        }
        cells
    }

    /// The cells that a reading at this moment speaks of: the one in which most of the second
    /// before it lies, or all within that second.
    fn cells_before(&self, seconds: f64) -> Vec<usize> {
        if self.step_s >= 1.0 {
            return self.cell(seconds - 0.5).into_iter().collect();
        }
        let middle = |cell: &usize| self.from_s + self.step_s * (*cell as f64 + 0.5);
        let before =
            (0..self.cells).filter(|cell| (seconds - 1.0..seconds).contains(&middle(cell)));
        before.collect()
    }

    /// The mean of one metric in each cell, by node and label, and the cells in which its node
    /// was read at all. A reading speaks of the second before it.
    fn readings(&self, samples: &Samples, metric: &Metric) -> Readings {
        let mut readings = Readings { read: BTreeMap::new(), sums: BTreeMap::new() };
        for (key, series) in samples.of(metric) {
            for reading in series {
                for cell in self.cells_before(self.seconds(reading.at)) {
                    let moments = readings.read.entry(key.0.clone()).or_default();
                    moments.entry(cell).or_default().insert(reading.at);
                    let sums = readings.sums.entry(key.clone()).or_default();
                    *sums.entry(cell).or_default() += reading.value;
                }
            }
        }
        readings
    }
}

/// Readings of one metric on a grid.
struct Readings {
    read: BTreeMap<String, BTreeMap<usize, BTreeSet<Moment>>>,
    sums: BTreeMap<(String, String), BTreeMap<usize, f64>>,
}

impl Readings {
    /// Node and label of every series, in order of names.
    fn keys(&self) -> impl Iterator<Item = &(String, String)> {
        self.sums.keys()
    }

    /// The series of a node and label: 0 where the node was read and had none of it, a gap where
    /// nothing was read.
    fn series(&self, key: &(String, String), cells: usize) -> Vec<Option<f64>> {
        let sums = self.sums.get(key);
        let read = self.read.get(&key.0);
        (0..cells)
            .map(|cell| {
                let moments = read?.get(&cell)?.len() as f64;
                // A moment that was read and did not see it counts as one in which it was not there.
                let sum = sums.and_then(|sums| sums.get(&cell)).copied().unwrap_or(0.0);
                Some(sum / moments)
            })
            .collect()
    }
}

fn marks(all: &[TimelineMark], grid: &Grid) -> (Vec<TimedMark>, usize) {
    let end_s = grid.from_s + grid.step_s * grid.cells as f64;
    let mut marks: Vec<TimedMark> = all
        .iter()
        .map(|mark| TimedMark {
            at_s: grid.seconds(mark.at),
            length_s: mark.length_ns as f64 / 1e9,
            kind: mark.kind,
            node: mark.node.clone(),
            text: mark.text.clone(),
        })
        .filter(|mark| mark.at_s + mark.length_s >= grid.from_s && mark.at_s <= end_s)
        .collect();
    let left_out = marks.len().saturating_sub(MARKS_MAX);
    marks.sort_by(|a, b| (a.kind, a.at_s).partial_cmp(&(b.kind, b.at_s)).expect("finite"));
    marks.truncate(MARKS_MAX);
    marks.sort_by(|a, b| a.at_s.partial_cmp(&b.at_s).expect("finite"));
    (marks, left_out)
}
