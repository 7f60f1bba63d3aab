//! Resources that others used on the machine while a trial was measured.

use std::collections::BTreeMap;

use spec::{Metric, metrics};

use crate::evidence::ChartedTrial;

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
pub(crate) fn noise(data: &ChartedTrial) -> Noise {
    let Some(window) = data.trial.window else {
        return Noise::default();
    };
    // The values of all nodes with this label.
    let of = |metric: &Metric, label: &str| -> Vec<f64> {
        let readings = data.samples.of(metric).filter(|(key, _)| key.1 == label);
        let readings = readings.flat_map(|(_, readings)| readings);
        let inside = readings.filter(|reading| (window.open..=window.close).contains(&reading.at));
        inside.map(|reading| reading.value).collect()
    };
    let largest = |values: &[f64]| values.iter().copied().reduce(f64::max);
    let steal = of(&metrics::CPU_STEAL_PCT, "");
    let mut pressure_pct = BTreeMap::new();
    for ((_, resource), _) in data.samples.of(&metrics::PRESSURE_PCT) {
        if let Some(mean) = stats::sample::mean(&of(&metrics::PRESSURE_PCT, resource)) {
            pressure_pct.insert(resource.clone(), mean);
        }
    }
    Noise {
        steal_pct: stats::sample::mean(&steal).zip(largest(&steal)),
        pressure_pct,
        running_max: largest(&of(&metrics::PROCESSES_RUNNING, "")),
    }
}
