//! The state in which a load has left a trial's servers.

use std::error::Error;

use check::TrialFacts;
use load::{LoadControl, LoadOutcome};
use probe::SamplerReadings;
use record::Moment;
use site::{Recovered, Site};
use spec::metrics;

use crate::trial::broke::TrialFailure;
use crate::trial::exposure;
use crate::trial::meter::WindowReadings;
use crate::trial::order::TrialOrder;
use crate::trial::powerless::PowerlessServers;

/// Starts the servers that lost their power, and makes the point's checks.
pub(crate) fn check(
    order: &TrialOrder<'_>,
    site: &mut Site,
    outcome: &LoadOutcome,
    metered: &WindowReadings,
    readings: &SamplerReadings,
    values: &check::QueryValues,
) -> Result<check::CheckOutcome, TrialFailure> {
    let point = order.point;
    order.go_on()?;
    site.heal_disks().map_err(|error| TrialFailure::after(&error))?;
    let recovered =
        site::recover(site, &metered.cuts).map_err(|error| TrialFailure::after(&error))?;
    let idle =
        site::recover(site, &metered.idle_cuts).map_err(|error| TrialFailure::after(&error))?;
    let all_cuts = || recovered.iter().chain(&idle);
    let faults: Vec<Moment> = metered.faults().collect();
    let lost = all_cuts().filter(|one| one.has_lost_all());
    let lost: Vec<String> = lost.map(|one| one.taken.node.clone()).collect();
    let before = TrialFacts {
        point,
        origin: order.origin,
        control: order.control,
        ledger: order.ledger,
        exposed: &[],
        window: outcome.window,
        faults: &faults,
        paused: &metered.paused,
        lost: &lost,
        has_lost_clients: outcome.has_lost_clients(),
        clocks_within_ns: outcome.clocks_within_ns(),
        workloads: &outcome.workloads,
        values,
        deltas: &readings.deltas,
    };
    let (mut exposed, mut unreadable) = (check::CheckOutcome::default(), None);
    let mut checked = check::CheckOutcome::default();
    if all_cuts().all(Recovered::runs) {
        let read = exposure::read(site, order.origin, &metered.ends.deaths, &readings.samples);
        let found = match read {
            Ok(read) => {
                let before = TrialFacts { exposed: &read.stretches, ..before };
                let found = check::all(site, &before).map_err(Why::of);
                found.map(|found| (found, read.outcome))
            }
            Err(error) => Err(Why::of(error)),
        };
        match found {
            Ok(found) => (checked, exposed) = found,
            // That something cannot be read is what a power cut may have done.
            Err(why) if all_cuts().next().is_some() => unreadable = Some(why.0.to_string()),
            Err(why) => return Err(TrialFailure::after(&why)),
        }
    } else if !lost.is_empty() {
        // Only what the clients have kept can be looked at.
        let found = check::ledger(site, &before).and_then(|mut found| {
            found.add(check::history(site, &before)?);
            Ok(found)
        });
        match found {
            Ok(found) => checked = found,
            Err(why) => unreadable = Some(why.to_string()),
        }
    }
    if !recovered.is_empty() && checked.value(&metrics::LEDGER_UNREADABLE, "").is_some_and(is_some)
    {
        // How many rows are lost is not known then; that something is, the figures of the cut say.
        unreadable = Some("a table of the ledger cannot be read".to_owned());
        checked.figures.retain(|figure| !figure.metric.is_about_acknowledged());
    }
    let mut found = match recovered.is_empty() {
        true => check::CheckOutcome::default(),
        false => PowerlessServers { recovered, unreadable }.outcome(&checked),
    };
    found.add(checked);
    order.go_on()?;
    found.add(explore(order, site, &before)?);
    order.go_on()?;
    found.add(check::restore(site, &before).map_err(|error| TrialFailure::after(&error))?);
    order.go_on()?;
    found.add(check::counts(site, &before).map_err(|error| TrialFailure::after(&error))?);
    found.add(exposed);
    Ok(found)
}

/// Looks at the states that a cut at any moment of the load could have left.
fn explore(
    order: &TrialOrder<'_>,
    site: &mut Site,
    before: &TrialFacts<'_>,
) -> Result<check::CheckOutcome, TrialFailure> {
    // The latest that it can have been: no moment of the log is taken for a later one, so that nothing counts as
    // acknowledged before a cut that may have come after it.
    let origin_ns = host::latest_monotonic_ns_at(order.origin);
    let seed = order.planned.seed.wrapping_add(order.planned.number as u64);
    check::explore(site, before, origin_ns, seed).map_err(|error| TrialFailure::after(&error))
}

fn is_some(count: f64) -> bool {
    count > 0.0
}

/// True if nothing is wrong with the servers of a load that the user has interrupted, as far as can be
/// seen at once: they run and answer, and what was acknowledged is there.
pub(crate) fn is_sound(order: &TrialOrder<'_>, site: &mut Site, metered: &WindowReadings) -> bool {
    let is_down = |node: &str| metered.is_down(node);
    // The user's signal has come already; the labs' end bounds what this may take.
    let control = LoadControl::new();
    let before = TrialFacts {
        point: order.point,
        origin: order.origin,
        control: &control,
        ledger: order.ledger,
        exposed: &[],
        window: None,
        faults: &[],
        paused: &metered.paused,
        lost: &[],
        has_lost_clients: false,
        clocks_within_ns: 0,
        workloads: &[],
        values: &Default::default(),
        deltas: &Default::default(),
    };
    // Machines may be cut off, and the end of the labs ends no wait for an answer of theirs. What was not
    // done because the load was over is nobody's fault.
    site.stations.is_empty()
        && metered.failures.iter().all(|failure| failure.fault.is_none())
        && metered.ends.deaths.is_empty()
        && metered.paused.is_empty()
        && site.check_alive(&is_down).is_ok()
        && site.check_answers(&is_down).is_ok()
        && check::ledger(site, &before).is_ok_and(|found| {
            // A load without a ledger has promised no row.
            let is_none = |metric| found.value(metric, "").unwrap_or(0.0) == 0.0;
            is_none(&metrics::LEDGER_ANOMALIES) && is_none(&metrics::LEDGER_UNJUDGED)
        })
}

/// Why a check could not be made, from any room.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Why(#[source] Box<dyn Error + Send + Sync>);

impl Why {
    fn of(error: impl Error + Send + Sync + 'static) -> Why {
        Why(Box::new(error))
    }
}
