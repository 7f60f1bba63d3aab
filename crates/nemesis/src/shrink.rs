//! Smaller schedules than one that breaks a promise.

use std::collections::BTreeSet;

use crate::draw::{GRAIN_MS, rounded};
use crate::schedule::FaultSchedule;
use crate::space::FaultSpace;

/// The way in which a schedule is smaller than another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleReduction {
    /// Faults are left out.
    Dropped,
    /// A fault is not ended any more.
    EndDropped,
    /// A fault lasts for less long.
    Shortened,
    /// Faults come earlier, and so nearer to what is before them.
    Nearer,
}

impl ScheduleReduction {
    /// In one word, or two.
    pub fn name(self) -> &'static str {
        match self {
            ScheduleReduction::Dropped => "dropped",
            ScheduleReduction::EndDropped => "end dropped",
            ScheduleReduction::Shortened => "shortened",
            ScheduleReduction::Nearer => "brought nearer",
        }
    }
}

/// The first schedule that is smaller than this one in one way and was not `seen`: with fewer faults, with fewer ends,
/// shorter, then nearer. None where every such schedule was seen: it is the smallest.
pub(crate) fn next(
    schedule: &FaultSchedule,
    space: &FaultSpace,
    seen: &BTreeSet<FaultSchedule>,
) -> Option<(ScheduleReduction, FaultSchedule)> {
    let dropped = dropped(schedule).into_iter().map(|one| (ScheduleReduction::Dropped, one));
    let open = ends_dropped(schedule).into_iter().map(|one| (ScheduleReduction::EndDropped, one));
    let shorter =
        shortened(schedule, space).into_iter().map(|one| (ScheduleReduction::Shortened, one));
    let nearer = nearer(schedule, space).into_iter().map(|one| (ScheduleReduction::Nearer, one));
    let mut all = dropped.chain(open).chain(shorter).chain(nearer);
    all.find(|(_, one)| !one.steps.is_empty() && one.is_sound(space) && !seen.contains(one))
}

/// Without one half of the faults, where there are four or more; then without a single one.
fn dropped(schedule: &FaultSchedule) -> Vec<FaultSchedule> {
    let steps = &schedule.steps;
    let mut found = Vec::new();
    if steps.len() >= 4 {
        let (first, second) = steps.split_at(steps.len() / 2);
        found.extend([first, second].map(|half| FaultSchedule { steps: half.to_vec() }));
    }
    for index in (0..steps.len()).rev() {
        let mut steps = steps.clone();
        steps.remove(index);
        found.push(FaultSchedule { steps });
    }
    found
}

fn ends_dropped(schedule: &FaultSchedule) -> Vec<FaultSchedule> {
    let ended = schedule.steps.iter().enumerate().filter(|(_, step)| step.for_ms.is_some());
    let without = ended.map(|(index, _)| {
        let mut smaller = schedule.clone();
        smaller.steps[index].for_ms = None;
        smaller
    });
    without.collect()
}

/// Each fault as short as its space allows, or half as long.
fn shortened(schedule: &FaultSchedule, space: &FaultSpace) -> Vec<FaultSchedule> {
    let mut found = Vec::new();
    for (index, step) in schedule.steps.iter().enumerate() {
        let (Some(length), Some((least, _))) = (step.for_ms, space.faults[step.fault].length_ms)
        else {
            continue;
        };
        for shorter in smaller(length, least.max(GRAIN_MS)) {
            let mut smaller = schedule.clone();
            smaller.steps[index].for_ms = Some(shorter);
            found.push(smaller);
        }
    }
    found
}

/// Each fault, with all that come after it, as soon after the one before as its space allows, or half as long after it.
fn nearer(schedule: &FaultSchedule, space: &FaultSpace) -> Vec<FaultSchedule> {
    let mut found = Vec::new();
    for (index, step) in schedule.steps.iter().enumerate() {
        let (before, least) = match index.checked_sub(1) {
            None => (space.first_ms, 0),
            Some(before) => (schedule.steps[before].at_ms, GRAIN_MS),
        };
        for gap in smaller(step.at_ms - before, least) {
            let by = step.at_ms - before - gap;
            let mut smaller = schedule.clone();
            smaller.steps[index..].iter_mut().for_each(|later| later.at_ms -= by);
            found.push(smaller);
        }
    }
    found
}

/// The least value, and the middle between it and what it is; none that is less than [`WORTH_MS`] smaller.
fn smaller(is: u64, least: u64) -> Vec<u64> {
    let middle = rounded(least + is.saturating_sub(least) / 2);
    let mut found = vec![least, middle.max(least)];
    found.dedup();
    found.retain(|value| value + WORTH_MS <= is);
    found
}

/// What is shorter by less than this reads the same, and costs as many trials to find out.
const WORTH_MS: u64 = 500;
