//! Everything that was measured in a trial, and the figures that are made of it.

use load::LoadOutcome;
use probe::SamplerReadings;
use record::MeasuredWindow;
use site::warm::WarmingResult;
use spec::TrialPoint;

use crate::trial::meter::WindowReadings;

/// Everything that was measured in a trial.
pub(crate) struct Evidence<'a> {
    pub(crate) point: &'a TrialPoint,
    pub(crate) outcome: &'a LoadOutcome,
    pub(crate) window: MeasuredWindow,
    pub(crate) readings: &'a SamplerReadings,
    pub(crate) metered: &'a WindowReadings,
    pub(crate) warmed: &'a WarmingResult,
    pub(crate) crossings: &'a [site::LinkCrossing],
    /// The host of the server that has the data, if it is on one.
    pub(crate) data_host: Option<&'a str>,
}

pub(super) fn ms(ns: f64) -> f64 {
    ns / 1e6
}
