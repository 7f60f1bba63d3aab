//! Decision if a trial counts, and doubts for its reader.

use load::{LoadEnd, LoadOutcome, OnLoss};
use record::{
    AttemptEnding, FaultyParty, GeneratorCost, Note, NoteKind, TransactionCounts, VoidKind,
};
use spec::StudyProfile;

use crate::trial::blame;
use crate::trial::figures::of_phases;
use crate::trial::lateness;
use crate::trial::load_plan;
use crate::trial::meter::WindowReadings;
use crate::trial::order::TrialOrder;
use measure::Steadiness;

/// Decides if the trial counts. `smoke` proves that every part works: it counts, and notes why its
/// figures may not.
pub(crate) fn ending(
    order: &TrialOrder<'_>,
    outcome: &LoadOutcome,
    metered: &WindowReadings,
    notes: &mut Vec<Note>,
) -> AttemptEnding {
    // Clients may give up where the study breaks what they are connected to.
    let ends_clients = order.point.on_loss == OnLoss::Abort && !metered.ends.deaths.is_empty();
    // A client that says nothing leaves no message.
    let first = notes.first().map_or(String::new(), |note| format!(": {}", note.text));
    let gave_up = format!("every client gave up{first}");
    if matches!(outcome.end, LoadEnd::Aborted | LoadEnd::ExitedOnAbort(_)) && !ends_clients {
        return AttemptEnding::failed(not_study(outcome), gave_up);
    }
    if let Some(failure) = metered.failures.iter().find(|failure| failure.fault.is_some()) {
        return AttemptEnding::failed(
            failure.fault.unwrap_or(FaultyParty::Unknown),
            failure.text.clone(),
        );
    }
    if let Some(failure) = metered.failures.first() {
        return AttemptEnding::void(VoidKind::Action, failure.text.clone());
    }
    if let Some(why) = lateness::late(&metered.actions) {
        return AttemptEnding::void(VoidKind::Late, why);
    }
    if matches!(outcome.end, LoadEnd::Aborted | LoadEnd::ExitedOnAbort(_)) {
        return AttemptEnding::failed(FaultyParty::Unknown, gave_up);
    }
    // One with servers has its own ending (see `trial::run`).
    if let Some((host, why)) = lost(outcome) {
        return AttemptEnding::failed(
            FaultyParty::GeneratorHost,
            format!("host {host} is lost: {why}"),
        );
    }
    let Some(window) = outcome.window else {
        return AttemptEnding::failed(FaultyParty::Unknown, "the window never opened");
    };
    let sum = |count: fn(&TransactionCounts) -> u64| -> u64 {
        outcome.workloads.iter().map(|one| count(&one.counts)).sum()
    };
    let aborted: u64 = outcome.workloads.iter().map(|one| one.counts_total.aborted_clients).sum();
    if aborted > 0 && !ends_clients {
        let clients = order.point.clients();
        let text = format!("{aborted} of {clients} clients gave up{first}");
        return AttemptEnding::failed(not_study(outcome), text);
    }
    let (transactions, failed) =
        (sum(|counts| counts.transactions), sum(TransactionCounts::failed));
    if transactions == 0 && failed > 0 && order.point.timeline.is_empty() {
        let text = format!("every transaction failed: {failed} of {failed}");
        return AttemptEnding::failed(blame::of_load(outcome), text);
    }
    if transactions == 0 {
        // That nothing ended is what was measured: a stall is a result.
        let text = "no transaction ended well inside the window";
        notes.push(Note::new(NoteKind::Unsteady, text));
        return AttemptEnding::Done;
    }
    let interval_ms = load_plan::interval_ms(order.point.window_ms);
    for phase in &order.point.phases {
        let part = of_phases::window_of(window, phase);
        let judged = measure::judge_steadiness(&outcome.intervals, part, interval_ms);
        let (kind, why) = match judged {
            Steadiness::Steady => continue,
            Steadiness::Noted(why) => (NoteKind::Steadiness, why),
            Steadiness::NotSteady(why) => (NoteKind::Steadiness, format!("not steady: {why}")),
        };
        notes.push(Note::new(kind, format!("phase {}: {why}", phase.name)));
    }
    if !order.point.timeline.is_empty() || !order.point.must_be_steady {
        return AttemptEnding::Done;
    }
    let unsteady = match measure::judge_steadiness(&outcome.intervals, window, interval_ms) {
        _ if outcome.steady == Some(false) => Some(STILL_WARMING_UP.to_owned()),
        Steadiness::Steady => None,
        Steadiness::Noted(note) => {
            notes.push(Note::new(NoteKind::Steadiness, note));
            None
        }
        Steadiness::NotSteady(why) => {
            notes.push(Note::new(NoteKind::Unsteady, format!("not steady: {why}")));
            None
        }
    };
    match unsteady {
        Some(why) if order.profile == StudyProfile::Smoke => {
            notes.push(Note::new(NoteKind::Steadiness, format!("not steady: {why}")));
            AttemptEnding::Done
        }
        Some(why) => AttemptEnding::void(VoidKind::NotSteady, format!("not steady: {why}")),
        None => AttemptEnding::Done,
    }
}

/// Party whose fault it is that clients gave up which go on after errors in statements.
fn not_study(outcome: &LoadOutcome) -> FaultyParty {
    match blame::of_load(outcome) {
        FaultyParty::Server => FaultyParty::Server,
        _ => FaultyParty::Unknown,
    }
}

/// The first host that was lost while it generated load, and why.
fn lost(outcome: &LoadOutcome) -> Option<(&str, &str)> {
    outcome.hosts.iter().find_map(|host| Some((host.name.as_str(), host.lost.as_ref()?.1.as_str())))
}

const STILL_WARMING_UP: &str =
    "throughput still rose, or latency fell, when the warm-up's bound was reached";

/// Doubts whether the rig itself may have been the limit.
pub(crate) fn generator_doubts(outcome: &LoadOutcome) -> Vec<String> {
    let generator = &outcome.generator;
    let mut doubts = Vec::new();
    if generator.busy_share_max > GeneratorCost::BUSY_SHARE_MAX {
        let percent = generator.busy_share_max * 100.0;
        doubts.push(format!("the generator's busiest lane was at work {percent:.0} % of the time"));
    }
    if generator.lag_share > GeneratorCost::LAG_SHARE_MAX {
        let percent = generator.lag_share * 100.0;
        doubts.push(format!("the generator's loop lag is {percent:.0} % of what clients waited"));
    }
    if let Some(share) = generator.run_delay_share
        && share > GeneratorCost::RUN_DELAY_SHARE_MAX
    {
        let percent = share * 100.0;
        doubts.push(format!(
            "the generator waited for a CPU for {percent:.0} % of what clients waited"
        ));
    }
    doubts
}
