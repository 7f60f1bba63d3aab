//! Rates in multiples of a capacity become rates: the capacity is searched on the servers of the trial, before its load.

use check::TrialFigure;
use load::{LaneFleet, LoadError, OnLoss};
use measure::PreparedLoad;
use site::Site;
use spec::{CapacitySearch, Pace, TrialPoint, WarmUp, Workload, metrics};

use crate::fleet::StudyHosts;
use crate::trial::broke::TrialFailure;
use crate::trial::order::TrialOrder;
use crate::trial::{blame, load_failure, load_plan};

/// A point whose rates are all in transactions a second.
pub(crate) struct SizedPoint {
    /// The point.
    pub(crate) point: TrialPoint,
    /// The capacities that were found.
    pub(crate) figures: Vec<TrialFigure>,
}

impl SizedPoint {
    /// Searches the capacities that the rates of the trial's point are multiples of, if any are.
    ///
    /// # Errors
    /// If a load cannot be run, or none of its transactions succeeds.
    pub(crate) fn of(order: &TrialOrder<'_>, site: &mut Site) -> Result<SizedPoint, TrialFailure> {
        let mut point = order.point.clone();
        let mut figures = Vec::new();
        let several = point.workloads.len() > 1;
        for workload in &mut point.workloads {
            let Some(search) = workload.capacity else { continue };
            let mut best: Option<(f64, u32)> = None;
            for clients in search.steps() {
                order.go_on()?;
                let tps = throughput(order, site, alone(order.point, workload, search, clients))?;
                if best.is_none_or(|(most, _)| tps > most) {
                    best = Some((tps, clients));
                }
            }
            let Some((tps, clients)) = best.filter(|(tps, _)| *tps > 0.0) else {
                return Err(TrialFailure::server(format_args!(
                    "searching the capacity of {}: no transaction succeeded",
                    workload.name
                )));
            };
            for scope in std::iter::once(workload.name.as_str()).chain((!several).then_some("")) {
                figures.push(TrialFigure::new(&metrics::CAPACITY_TPS, scope, tps));
                let clients = f64::from(clients);
                figures.push(TrialFigure::new(&metrics::CAPACITY_CLIENTS, scope, clients));
            }
            // A workload with a capacity has a rate, which is a multiple of it.
            let times = workload.pace.rate().unwrap_or(1.0);
            workload.pace = workload.pace.at(times * tps);
            workload.is_rate_of_capacity = false;
        }
        Ok(SizedPoint { point, figures })
    }
}

/// The point with one workload alone, in a closed loop of so many clients.
fn alone(
    point: &TrialPoint,
    workload: &Workload,
    search: CapacitySearch,
    clients: u32,
) -> TrialPoint {
    let workload = Workload {
        clients,
        pace: Pace::Closed,
        is_rate_of_capacity: false,
        capacity: None,
        deadline_ms: None,
        retry: None,
        storms_ms: Vec::new(),
        latency_limit_ms: None,
        expects_failures: true,
        ..workload.clone()
    };
    TrialPoint {
        workloads: vec![workload],
        generators: 1,
        warmup: WarmUp::Fixed(search.warmup_ms()),
        window_ms: search.window_ms,
        drain_ms: Some(DRAIN_MS),
        timeline: Vec::new(),
        checks: Vec::new(),
        phases: Vec::new(),
        has_tail: false,
        on_loss: OnLoss::Reconnect,
        ..point.clone()
    }
}

/// An answer that has not come so long after a loop is not waited for, in milliseconds.
const DRAIN_MS: u64 = 5_000;

/// Transactions a second of a point's load.
fn throughput(order: &TrialOrder<'_>, site: &Site, point: TrialPoint) -> Result<f64, TrialFailure> {
    let schema = site.data_node().schema.filter(|_| !site.is_sharded());
    let plan = load_plan::plan(&point, order.planned, &site.conninfos(), schema);
    let hosts = order.fleet.map(StudyHosts::generators);
    let fleet = match (&hosts, order.fleet) {
        (Some(hosts), Some(fleet)) => LaneFleet::Hosts { hosts, on_loss: fleet.on_loss() },
        _ => LaneFleet::here(point.generators, order.generator),
    };
    let load = PreparedLoad::new(&plan, order.origin, Vec::new());
    let measured = load.run(fleet, order.control, &mut []).map_err(|error| match error {
        LoadError::Interrupted { .. } => TrialFailure::Interrupted,
        error => TrialFailure::somehow(
            blame::of_load_error(&error),
            format_args!("searching a capacity: {}", load_failure(&error)),
        ),
    })?;
    let outcome = &measured.outcome;
    let good: u64 = outcome.workloads.iter().map(|one| one.counts.transactions).sum();
    // In a load whose window never opened, nothing succeeded.
    Ok(outcome.window.map_or(0.0, |window| good as f64 / window.seconds()))
}
