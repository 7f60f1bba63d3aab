//! What guards have recorded in a trial: from when to when commits were exposed.

use std::path::Path;
use std::time::Instant;

use guard::{Entry, Window};
use jiff::Timestamp;
use record::ledger::Exposure;
use record::{Mark, MarkKind, Moment};

use crate::clock;
use crate::site::Site;

/// What guards have recorded.
#[derive(Debug, Default)]
pub(crate) struct Exposed {
    /// Each exposure on the timeline.
    pub(crate) marks: Vec<Mark>,
    /// When a commit may have been on the primary alone.
    pub(crate) stretches: Vec<Exposure>,
    /// Metric, node, value.
    pub(crate) figures: Vec<(&'static str, String, f64)>,
}

/// Reads the record of every guard of a site, and makes sure that none has given up.
///
/// # Errors
/// A guard that has ended by itself, with the end of its log; a record that cannot be read.
pub(crate) fn read(site: &Site, origin: Instant) -> Result<Exposed, String> {
    let mut exposed = Exposed::default();
    for front in &site.fronts {
        let Some(guarding) = front.guarding() else { continue };
        guarding.check_alive()?;
        exposed.add(&guarding.to, &guarding.state, origin)?;
    }
    Ok(exposed)
}

impl Exposed {
    fn add(&mut self, node: &str, state: &Path, origin: Instant) -> Result<(), String> {
        let windows = guard::read_windows(state).map_err(|error| error.to_string())?;
        let (now, zero) = (clock::now(origin), clock::wall_at(origin));
        let moment = |entry: &Entry| moment(&entry.at, zero);
        let mut length_ns = 0;
        for window in &windows {
            let from = moment(&window.opened)?;
            let until = window.closed.as_ref().map(moment).transpose()?;
            let lasted = until.unwrap_or(now).since(from);
            length_ns += lasted;
            if window.confirmations() == 0 {
                self.stretches.push(Exposure { from, until });
            }
            self.marks.push(Mark {
                at: from,
                length_ns: lasted,
                kind: MarkKind::Exposure,
                node: node.to_owned(),
                text: words(window),
            });
        }
        let changes = windows.iter().map(|window| 1 + window.changes.len()).sum::<usize>();
        let figure = |metric, value| (metric, node.to_owned(), value);
        self.figures.push(figure("exposure_windows", windows.len() as f64));
        self.figures.push(figure("exposure_s", length_ns as f64 / 1e9));
        self.figures.push(figure("guard_changes", changes as f64));
        Ok(())
    }
}

/// A guard's wall clock on the run's clock, which was zero at `zero`: both run on this machine.
fn moment(at: &str, zero: Timestamp) -> Result<Moment, String> {
    let at: Timestamp = at.parse().map_err(|why| format!("a window's moment {at}: {why}"))?;
    let since = at.as_nanosecond() - zero.as_nanosecond();
    Ok(Moment(u64::try_from(since).unwrap_or(0)))
}

fn words(window: &Window) -> String {
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
        let check = |at: &str, expected| assert_eq!(moment(at, zero), Ok(Moment(expected)));
        check("2026-11-22T07:00:10Z", 10_000_000_000);
        check("2026-11-22T07:00:08.5Z", 8_500_000_000);
        // A guard that goes on from an earlier one's state.
        check("2026-11-22T06:00:00Z", 0);
        assert!(moment("yesterday", zero).is_err());
    }
}
