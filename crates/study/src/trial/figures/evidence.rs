//! Everything that was measured in a trial, and the figures that are made of it.

use load::Outcome;
use probe::Readings;
use record::Window;
use site::warm::WarmingResult;
use spec::Point;

use crate::trial::meter::WindowReadings;

/// Everything that was measured in a trial.
pub(crate) struct Evidence<'a> {
    pub(crate) point: &'a Point,
    pub(crate) outcome: &'a Outcome,
    pub(crate) window: Window,
    pub(crate) readings: &'a Readings,
    pub(crate) metered: &'a WindowReadings,
    pub(crate) warmed: &'a WarmingResult,
    pub(crate) crossings: &'a [site::LinkCrossing],
    /// The host of the server that has the data, if it is on one.
    pub(crate) data_host: Option<&'a str>,
}

pub(super) fn ms(ns: f64) -> f64 {
    ns / 1e6
}
