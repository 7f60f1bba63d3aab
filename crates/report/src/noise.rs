//! What others did on the machine while a trial was measured.

use std::collections::BTreeMap;

use record::{Finished, Sample};
use spec::{Metric, metrics};

/// Readings of a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Noise {
    /// CPU that the hypervisor gave to others, mean and largest, in percent.
    pub(crate) steal_pct: Option<(f64, f64)>,
    /// Pressure by resource, mean, in percent.
    pub(crate) pressure_pct: BTreeMap<String, f64>,
    /// Largest number of processes that could run.
    pub(crate) running_max: Option<f64>,
}

/// Reduces a trial's samples to what a sceptic asks for.
pub(crate) fn noise(data: &Finished) -> Noise {
    let Some(window) = data.trial.window else {
        return Noise::default();
    };
    let inside: Vec<&Sample> =
        data.samples.iter().filter(|s| s.at >= window.open && s.at <= window.close).collect();
    let of = |metric: &Metric, label: &str| -> Vec<f64> {
        let readings = inside.iter().filter(|s| s.is_of(metric) && s.label == label);
        readings.map(|sample| sample.value).collect()
    };
    let largest = |values: &[f64]| values.iter().copied().reduce(f64::max);
    let steal = of(&metrics::CPU_STEAL_PCT, "");
    let resources = inside.iter().filter(|sample| sample.is_of(&metrics::PRESSURE_PCT));
    let resources: Vec<&str> = resources.map(|sample| sample.label.as_str()).collect();
    let mut pressure_pct = BTreeMap::new();
    for resource in resources {
        if let Some(mean) = stats::sample::mean(&of(&metrics::PRESSURE_PCT, resource)) {
            pressure_pct.insert(resource.to_owned(), mean);
        }
    }
    Noise {
        steal_pct: stats::sample::mean(&steal).zip(largest(&steal)),
        pressure_pct,
        running_max: largest(&of(&metrics::PROCESSES_RUNNING, "")),
    }
}
