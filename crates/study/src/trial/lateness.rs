//! How late an action of a timeline may be, and the words for one that was later.

use record::TimedAction;

/// The limit of each action, in nanoseconds. `at_ms` are their moments in their order, in milliseconds
/// since the window of `window_ms` opened.
///
/// Its limit is a share of the gap to the nearer of its neighbours: the one before and the one after, or
/// the end of the window where there is none.
pub(crate) fn limits_ns(at_ms: &[u64], window_ms: u64) -> Vec<u64> {
    let limit = |index: usize| {
        let at = at_ms[index];
        // Before the first action lies the beginning of the window.
        let before = index.checked_sub(1).map_or(0, |index| at_ms[index]);
        let after = at_ms.get(index + 1).copied().unwrap_or(window_ms);
        let gap = at.saturating_sub(before).min(after.saturating_sub(at));
        (gap * MS / SHARE).max(LATE_MIN_NS)
    };
    (0..at_ms.len()).map(limit).collect()
}

/// Why a schedule is not the study's: its first late action, and the one that it waited for.
pub(crate) fn late(actions: &[TimedAction]) -> Option<String> {
    let (index, late) = actions.iter().enumerate().find(|(_, action)| action.is_late())?;
    let (by, limit) = (late.late_ns()? as f64 / 1e9, late.limit_ns as f64 / 1e9);
    let mut why =
        format!("late: {} began {by:.2} s after its moment, {limit:.2} s are allowed", late.action);
    let went_on = |one: &&TimedAction| one.ended.is_some_and(|ended| ended > late.planned);
    if let Some(before) = actions[..index].iter().rev().find(went_on) {
        why += &format!("; {} had not ended", before.action);
    }
    Some(why)
}

const MS: u64 = 1_000_000;
/// One part in so many of the gap.
const SHARE: u64 = 20;
/// A thread of a busy machine wakes up in less time.
const LATE_MIN_NS: u64 = 250 * MS;

#[cfg(test)]
mod tests {
    use record::Moment;

    use super::*;

    #[test]
    fn a_limit_is_a_share_of_the_gap_to_the_nearer_neighbour() {
        let check = |at_ms: &[u64], window_ms, expected_ms: &[u64]| {
            let found: Vec<u64> = limits_ns(at_ms, window_ms).iter().map(|ns| ns / MS).collect();
            assert_eq!(found, expected_ms, "{at_ms:?} of {window_ms}");
        };
        check(&[], 10_000, &[]);
        check(&[300], 600, &[250]);
        check(&[30_000], 60_000, &[1_500]);
        check(&[10_000, 20_000], 60_000, &[500, 500]);
        check(&[10_000, 10_000, 55_000], 60_000, &[250, 250, 250]);
        check(&[20_000, 60_000, 62_000], 90_000, &[1_000, 250, 250]);
    }

    #[test]
    fn a_late_action_is_named_with_what_it_waited_for() {
        /// In milliseconds: planned, possible, began, ended.
        type Ms = (u64, u64, u64, u64);
        let action = |(name, (planned, possible, began, ended)): &(&str, Ms)| TimedAction {
            action: (*name).to_owned(),
            planned: Moment(planned * MS),
            possible: Moment(possible * MS),
            began: Some(Moment(began * MS)),
            ended: Some(Moment(ended * MS)),
            limit_ns: 250 * MS,
            skipped: None,
        };
        let check = |actions: &[(&str, Ms)], expected: Option<&str>| {
            let actions: Vec<TimedAction> = actions.iter().map(action).collect();
            assert_eq!(late(&actions).as_deref(), expected);
        };
        check(&[("kill a", (1000, 1000, 1249, 1300))], None);
        check(
            &[("kill a", (1000, 1000, 1251, 1300))],
            Some("late: kill a began 0.25 s after its moment, 0.25 s are allowed"),
        );
        check(
            &[("rejoin a", (1000, 1000, 1000, 9000)), ("kill b", (2000, 2000, 9000, 9001))],
            Some(
                "late: kill b began 7.00 s after its moment, 0.25 s are allowed; rejoin a had not ended",
            ),
        );
        // It is started as soon as it has stopped.
        check(&[("stop a", (1000, 1000, 1000, 9000)), ("start a", (2000, 9000, 9000, 9500))], None);
    }
}
