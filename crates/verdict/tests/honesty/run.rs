//! A study run on such a machine: its plan and its attempts, as the runner would have recorded
//! them.

use std::collections::BTreeMap;

use record::{AttemptEnding, FaultyParty, Note, NoteKind, PlannedTrial, Trial};
use spec::{ScheduledTrial, Study, StudyFolder, StudyProfile};

use crate::machine::{Fate, Machine};

/// A study that compares two variants over an axis, with these claims. Each trial begins with
/// restarted servers and a copy of the data, as is the default.
pub(crate) fn study(claims: &str, clients: &str, rounds: u32) -> Study {
    parsed("", claims, clients, rounds)
}

/// The same on one server, which keeps its data and runs on from round to round.
pub(crate) fn study_that_runs_on(claims: &str, clients: &str, rounds: u32) -> Study {
    parsed("[data]\nreset = \"keep\"\n", claims, clients, rounds)
}

fn parsed(data: &str, claims: &str, clients: &str, rounds: u32) -> Study {
    let text = format!(
        "question = \"?\"\n[variants.a]\n[variants.b]\n{data}[workloads.w]\nbuiltin = \"select-only\"\n\
         [scenarios.s]\nrun = [\"w\"]\nover = {{ clients = {clients} }}\n{claims}"
    );
    let files = BTreeMap::from([("study.toml".to_owned(), text)]);
    let folder = StudyFolder { name: "simulated".to_owned(), files, is_private: false };
    let study = Study::parse(&folder, StudyProfile::Quick);
    study.unwrap_or_else(|problems| panic!("{problems:?}")).with_rounds(rounds)
}

/// Every trial of the plan, in its order: 1,000 transactions a second, times `gain` of its point,
/// as the machine lets it.
pub(crate) fn run(study: &Study, machine: &mut Machine, gain: impl Fn(&str) -> f64) -> Vec<Trial> {
    let trials = study.trials(None).into_iter().map(|planned| {
        let tps = 1000.0 * gain(&study.points[planned.point].name.variant);
        let fate = machine.trial();
        // Another figure, disturbed by itself.
        let cpu = 100.0 / machine.factor();
        let figures = |tps| [("tps", tps), ("server_cpu_us_per_tx", cpu)];
        match fate {
            Fate::Runs(factor) => trial(study, &planned, &figures(tps * factor)),
            Fate::Stalls(factor) => {
                let mut stalled = trial(study, &planned, &figures(tps * factor));
                stalled.notes.push(Note::new(NoteKind::Unsteady, "not steady: it stalls"));
                stalled
            }
            Fate::Dies => {
                let mut dead = trial(study, &planned, &[]);
                dead.ending = AttemptEnding::failed(FaultyParty::Server, "the server died");
                dead
            }
        }
    });
    trials.collect()
}

/// The plan as the record has it.
pub(crate) fn plan(study: &Study) -> Vec<PlannedTrial> {
    let trials = study.trials(None);
    let name = |planned: &ScheduledTrial| &study.points[planned.point].name;
    trials.iter().map(|planned| PlannedTrial::new(planned, name(planned))).collect()
}

/// A trial that counts, with these figures.
pub(crate) fn trial(study: &Study, planned: &ScheduledTrial, figures: &[(&str, f64)]) -> Trial {
    let name = &study.points[planned.point].name;
    let figures = figures
        .iter()
        .map(|(name, value)| ((*name).to_owned(), BTreeMap::from([(String::new(), *value)])));
    Trial { metrics: figures.collect(), ..PlannedTrial::new(planned, name).attempt(1) }
}
