//! Exposures that guards have recorded in a trial: the beginning and end of each.

use std::time::Instant;

use check::CheckOutcome;
use guard::{BooksEntry, ExposureWindow};
use jiff::Timestamp;
use record::ledger::UncoveredCommits;
use record::{MarkKind, Moment, Sample, TimelineMark};
use server::SyncStandbysSetting;
use site::Site;
use spec::metrics;

use crate::clock;
use crate::trial::replication;
use measure::NodeDeath;

/// Records of guards.
#[derive(Debug, Default)]
pub(crate) struct GuardRecords {
    /// Each exposure on the timeline, and the figures of each guarded server.
    pub(crate) outcome: CheckOutcome,
    /// Times at which a commit may have been on the primary alone.
    pub(crate) stretches: Vec<UncoveredCommits>,
}

/// Reason why a guard's record cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExposureError {
    #[error(transparent)]
    Site(#[from] site::Error),
    #[error(transparent)]
    Guard(#[from] guard::Error),
    #[error("a window's moment {at}: {source}")]
    Moment {
        /// As it stands there.
        at: String,
        source: jiff::Error,
    },
}

/// Reads the record of every guard of a site, and makes sure that none has given up. `deaths` and
/// `samples` are the trial's.
pub(crate) fn read(
    site: &Site,
    origin: Instant,
    deaths: &[NodeDeath],
    samples: &[Sample],
) -> Result<GuardRecords, ExposureError> {
    let mut exposed = GuardRecords::default();
    for service in &site.fronts {
        let Some(guarding) = service.guarding() else { continue };
        guarding.check_alive()?;
        let windows = guard::read_windows(guarding.state()?)?;
        let zero = match guarding.wall_clock_us()? {
            None => clock::wall_at(origin),
            // Its host's wall clock, asked for just now.
            Some(us) => clock::wall_before(us, origin),
        };
        let ended =
            deaths.iter().rfind(|death| death.node == guarding.to && death.restarted.is_none());
        let until = ended.map_or(clock::now(origin), |death| death.until);
        exposed.add(&guarding.to, &windows, &Clock { zero, until }, samples)?;
    }
    Ok(exposed)
}

/// Settings for reading a guard's record.
struct Clock {
    /// The wall clock's time at which the run's was zero.
    zero: Timestamp,
    /// Time from which there was no primary any more to acknowledge anything: since it died for
    /// good, or now.
    until: Moment,
}

impl GuardRecords {
    fn add(
        &mut self,
        node: &str,
        windows: &[ExposureWindow],
        clock: &Clock,
        samples: &[Sample],
    ) -> Result<(), ExposureError> {
        let moment = |entry: &BooksEntry| moment(&entry.at, clock.zero);
        let (mut length_ns, mut restored_ns) = (0, None);
        for window in windows {
            let from = moment(&window.opened)?;
            let closed = window.closed.as_ref().map(moment).transpose()?;
            let until = closed.unwrap_or(clock.until);
            length_ns += until.since(from);
            if let Some(alone) = window.alone_since() {
                self.stretches.push(UncoveredCommits { from: moment(alone)?, until });
            }
            self.outcome.marks.push(TimelineMark {
                at: from,
                length_ns: until.since(from),
                kind: MarkKind::Exposure,
                node: node.to_owned(),
                text: words(window),
            });
            if let (Some(closed), Ok(SyncStandbysSetting::Sync(asked))) =
                (closed, window.opened.asked.parse())
            {
                let since = replication::caught_up_since(samples, node, &asked, from, closed);
                restored_ns = restored_ns.max(Some(closed.since(since)));
            }
        }
        let changes = windows.iter().map(|window| 1 + window.changes.len()).sum::<usize>();
        let mut figure = |metric, value| self.outcome.set(metric, node, value);
        figure(&metrics::EXPOSURE_WINDOWS, windows.len() as f64);
        figure(&metrics::EXPOSURE_S, length_ns as f64 / 1e9);
        figure(&metrics::GUARD_CHANGES, changes as f64);
        if let Some(ns) = restored_ns {
            figure(&metrics::SYNC_RESTORED_MS, ns as f64 / 1e6);
        }
        Ok(())
    }
}

/// A guard's wall clock on the run's clock, which was zero at `zero`: both run on this machine.
fn moment(at: &str, zero: Timestamp) -> Result<Moment, ExposureError> {
    let parsed = at.parse();
    let at: Timestamp =
        parsed.map_err(|source| ExposureError::Moment { at: at.to_owned(), source })?;
    let since = at.as_nanosecond() - zero.as_nanosecond();
    // What came before the run happened at its beginning.
    Ok(Moment(u64::try_from(since).unwrap_or(0)))
}

fn words(window: &ExposureWindow) -> String {
    let confirmed = match window.confirmations() {
        0 => "commits were on the primary alone".to_owned(),
        1 => "one standby confirmed each commit".to_owned(),
        n => format!("{n} standbys confirmed each commit"),
    };
    format!("exposed: {confirmed}, because {}", window.opened.why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_times_become_moments() {
        let zero: Timestamp = "2026-11-22T07:00:00Z".parse().unwrap();
        let check = |at: &str, expected| assert_eq!(moment(at, zero).unwrap(), Moment(expected));
        check("2026-11-22T07:00:10Z", 10_000_000_000);
        check("2026-11-22T07:00:08.5Z", 8_500_000_000);
        // A guard that goes on from an earlier one's state.
        check("2026-11-22T06:00:00Z", 0);
        assert!(moment("yesterday", zero).is_err());
    }
}
