//! A load by the lanes of this process alone.

use std::{sync::mpsc::channel, thread, time::Instant};

use crate::{
    LoadControl, LoadError, LoadEvent, LoadOutcome, LoadPlan,
    clock::Time,
    conductor::{self, Workers},
    grid::Grid,
    lanes::Lanes,
    partition::Part,
    report::Report,
};

pub(crate) fn run(
    plan: &LoadPlan,
    control: &LoadControl,
    origin: Instant,
    observe: &mut dyn FnMut(LoadEvent<'_>),
) -> Result<LoadOutcome, LoadError> {
    let lanes = Lanes::prepare(plan, &Part::equal(0, 1))?.with_logs(plan)?;
    let (sender, reports) = channel();
    thread::scope(|scope| {
        for lane in 0..lanes.shares.len() {
            let sender = sender.clone();
            let lanes = &lanes;
            let spawned = thread::Builder::new()
                .name(format!("{} {lane}", tail::LOAD_THREAD))
                .spawn_scoped(scope, move || {
                    let report = |report: Report| {
                        // The conductor has gone only if this thread is not waited for any more.
                        let _ = sender.send((lane, report));
                    };
                    lanes.live(plan, lane, &Time::Here(origin), &report);
                });
            if let Err(source) = spawned {
                lanes.publish(&Grid { cancel: 0, abandon: 0, ..Grid::UNDECIDED });
                return Err(LoadError::System { doing: "starting a lane's thread", source });
            }
        }
        drop(sender);
        let threads = Threads { each: [lanes.shares.len()], lanes: &lanes };
        conductor::conduct(plan, &threads, &reports, control, origin, observe)
    })
}

/// The lanes of this process.
struct Threads<'a> {
    each: [usize; 1],
    lanes: &'a Lanes,
}

impl Workers for Threads<'_> {
    fn lanes(&self) -> &[usize] {
        &self.each
    }

    fn publish(&self, grid: &Grid) {
        self.lanes.publish(grid);
    }
}
