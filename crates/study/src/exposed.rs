//! When a primary acknowledged alone, by the books of the guards that watched over it.

use std::time::Instant;

use guard::Window;
use lab::Lab;
use record::Moment;
use record::ledger::Exposure;
use spec::{NodeKind, Point};

use crate::clock;
use crate::front;

/// The stretches in which no standby had to confirm a commit.
///
/// # Errors
/// When a guard's books cannot be read.
pub(crate) fn exposures(
    point: &Point,
    lab: Option<&Lab>,
    origin: Instant,
) -> Result<Vec<Exposure>, String> {
    let Some(lab) = lab else { return Ok(Vec::new()) };
    let zero = clock::wall_at(origin);
    let mut exposures = Vec::new();
    let is_guard = |node: &&spec::Node| matches!(node.kind, NodeKind::Guard(_));
    for node in point.topology.nodes.iter().filter(is_guard) {
        let windows = guard::read_windows(&front::guard_state(lab, &node.name))
            .map_err(|error| format!("reading what the guard {} recorded: {error}", node.name))?;
        for window in windows.iter().filter(|window| window.confirmations() == 0) {
            exposures.push(exposure(window, zero)?);
        }
    }
    Ok(exposures)
}

/// A window on the run's clock, which was zero at `zero`.
fn exposure(window: &Window, zero: jiff::Timestamp) -> Result<Exposure, String> {
    let moment = |at: &str| {
        let at: jiff::Timestamp =
            at.parse().map_err(|error| format!("a window's moment {at}: {error}"))?;
        let since = at.as_nanosecond() - zero.as_nanosecond();
        Ok::<_, String>(Moment(u64::try_from(since).unwrap_or(0)))
    };
    let until = window.closed.as_ref().map(|closed| moment(&closed.at)).transpose()?;
    Ok(Exposure { from: moment(&window.opened.at)?, until })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_put_on_the_runs_clock() {
        let line = |event: &str, at: &str| {
            format!(
                "{{\"window\":1,\"event\":\"{event}\",\"at\":\"{at}\",\"asked\":\"s\",\
                 \"in_force\":\"\",\"confirmations\":0,\"confirmed_lsn\":null,\"wal_lsn\":null,\
                 \"timeline\":1,\"why\":\"\"}}\n"
            )
        };
        let opened = line("opened", "2026-11-22T07:00:05.5Z");
        let closed = line("closed", "2026-11-22T07:00:07Z");
        let zero = "2026-11-22T07:00:00Z".parse().unwrap();
        let check = |text: &str, from, until| {
            let windows = guard::windows(text).unwrap();
            let until = Option::map(until, Moment);
            assert_eq!(exposure(&windows[0], zero), Ok(Exposure { from: Moment(from), until }));
        };
        check(&opened, 5_500_000_000, None);
        check(&(opened.clone() + &closed), 5_500_000_000, Some(7_000_000_000));
        let before = line("opened", "2026-11-22T06:59:00Z");
        check(&before, 0, None);
    }
}
