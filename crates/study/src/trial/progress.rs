//! From what a load says to what a person wants to see of it: where it is, how fast it is now.

use load::LoadEvent;
use measure::LoadObserver;
use record::{LoadInterval, Moment};
use spec::TrialPoint;
use stats::LatencyHistogram;

use crate::trial::stage::LoadStage;

/// Follows one load, and tells of its stages.
pub(crate) struct LoadProgress<'a> {
    tell: &'a mut dyn FnMut(LoadStage),
    window_ns: u64,
    began: Option<Moment>,
    open: Option<Moment>,
    /// Intervals of the last second, or a bit more.
    recent: Vec<LoadInterval>,
}

impl LoadObserver for LoadProgress<'_> {
    fn observe(&mut self, event: &LoadEvent<'_>) {
        let stage = match event {
            LoadEvent::Connecting { done, of } => {
                Some(LoadStage::Connecting { done: *done, of: *of })
            }
            LoadEvent::LoadBegan { at } => {
                self.began = Some(*at);
                None
            }
            LoadEvent::WindowOpens { at } => {
                self.open = Some(*at);
                None
            }
            LoadEvent::Interval(cells) => self.interval(cells),
            LoadEvent::Generators(_) | LoadEvent::Message(_) => None,
        };
        if let Some(stage) = stage {
            (self.tell)(stage);
        }
    }
}

impl<'a> LoadProgress<'a> {
    pub(crate) fn of(point: &TrialPoint, tell: &'a mut dyn FnMut(LoadStage)) -> LoadProgress<'a> {
        let window_ns = point.window_ms * 1_000_000;
        LoadProgress { tell, window_ns, began: None, open: None, recent: Vec::new() }
    }

    /// An interval is over: one entry a workload. A stage about once a second.
    fn interval(&mut self, cells: &[LoadInterval]) -> Option<LoadStage> {
        self.recent.extend(cells.iter().cloned());
        let (first, last) = (self.recent.first()?, self.recent.last()?);
        let end = last.start.plus_ns(last.length_ns);
        let length_ns = end.since(first.start);
        if length_ns < SECOND_NS {
            return None;
        }
        let recent = std::mem::take(&mut self.recent);
        match self.open {
            Some(open) if end > open => {
                let transactions: u64 = recent.iter().map(|cell| cell.counts.transactions).sum();
                let mut latency = LatencyHistogram::new();
                recent.iter().for_each(|cell| latency.merge(&cell.latency));
                Some(LoadStage::Measuring {
                    seconds: end.since(open).min(self.window_ns) as f64 / 1e9,
                    of_s: self.window_ns as f64 / 1e9,
                    tps: transactions as f64 / (length_ns as f64 / 1e9),
                    p99_ms: latency.quantile_ns(0.99).map(|ns| ns as f64 / 1e6),
                    backlog: cells.iter().map(|cell| cell.backlog).sum(),
                })
            }
            _ => Some(LoadStage::WarmingUp { seconds: end.since(self.began?) as f64 / 1e9 }),
        }
    }
}

const SECOND_NS: u64 = 1_000_000_000;
