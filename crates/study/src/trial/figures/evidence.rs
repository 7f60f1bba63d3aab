//! Everything that was measured in a trial, and the figures that are made of it.

use std::collections::{BTreeMap, BTreeSet};

use load::Outcome;
use probe::Readings;
use record::Window;
use site::warm::Warmed;
use spec::{Metric, Point};

use crate::trial::meter::Metered;

/// Metric → scope → value.
pub(crate) type Metrics = BTreeMap<String, BTreeMap<String, f64>>;

/// Everything that was measured in a trial.
pub(crate) struct Evidence<'a> {
    pub(crate) point: &'a Point,
    pub(crate) outcome: &'a Outcome,
    pub(crate) window: Window,
    pub(crate) readings: &'a Readings,
    pub(crate) metered: &'a Metered,
    pub(crate) warmed: &'a Warmed,
    pub(crate) crossings: &'a [site::Crossing],
    /// The host of the server that has the data, if it is on one.
    pub(crate) data_host: Option<&'a str>,
}

/// The figures of a trial.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) metrics: Metrics,
    /// Those that are lower bounds: metric → scopes.
    pub(crate) at_least: BTreeMap<String, BTreeSet<String>>,
}

impl Figures {
    /// Files a value under its metric and scope; one that is not finite is none.
    pub(crate) fn set(&mut self, metric: &Metric, scope: &str, value: f64) {
        if value.is_finite() {
            let scopes = self.metrics.entry(metric.name.to_owned()).or_default();
            scopes.insert(scope.to_owned(), value);
        }
    }

    /// A value of which only a lower bound may be known.
    pub(crate) fn set_bounded(
        &mut self,
        metric: &Metric,
        scope: &str,
        value: f64,
        is_at_least: bool,
    ) {
        self.set(metric, scope, value);
        if is_at_least && value.is_finite() {
            self.at_least.entry(metric.name.to_owned()).or_default().insert(scope.to_owned());
        }
    }
}

pub(super) fn ms(ns: f64) -> f64 {
    ns / 1e6
}
