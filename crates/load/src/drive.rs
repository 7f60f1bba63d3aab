//! The one way to run a load, wherever its lanes are.

use std::{path::Path, time::Instant};

use host::Host;

use crate::{
    LoadControl, LoadError, LoadEvent, LoadOutcome, LoadPlan, generators,
    hosts::{self, OnHostLoss},
    rows, threads,
};

/// The lanes of a load.
#[derive(Clone, Copy)]
pub enum LaneFleet<'a> {
    /// Threads of this process.
    Threads,
    /// Generator processes on this machine.
    Processes {
        /// Their number.
        count: u32,
        /// The program that becomes each of them: with the one argument `generator` it must call
        /// [`generators::serve`].
        program: &'a Path,
    },
    /// One generator on each of these hosts, with clients by the host's weight. A log of transactions
    /// (see [`crate::LogPlan`]) is gathered into files here: `PREFIX.HOST` for the first lane of a host,
    /// and `PREFIX.HOST.N` for its lane N. So are a ledger and a history, into the
    /// directories of [`crate::LedgerPlan`] and [`crate::HistoryPlan`].
    Hosts {
        /// The hosts.
        hosts: &'a [&'a Host],
        /// The consequence when one of them is lost.
        on_loss: OnHostLoss,
    },
}

impl<'a> LaneFleet<'a> {
    /// So many generators on this machine: threads where one is enough, else processes of `program`.
    pub fn here(generators: u32, program: &'a Path) -> LaneFleet<'a> {
        match generators {
            0 | 1 => LaneFleet::Threads,
            count => LaneFleet::Processes { count, program },
        }
    }
}

/// Runs `plan` on `fleet`. `origin` is the beginning of the run: the zero of every moment. `observe`
/// is called on this thread, in order.
///
/// # Errors
/// [`LoadError`] when the load could not begin, [`LoadError::Generator`] when a process dies, and
/// [`LoadError::Host`] when a host is lost before the load begins. What happens to single clients
/// later is in the outcome.
pub fn drive(
    plan: &LoadPlan,
    fleet: LaneFleet<'_>,
    control: &LoadControl,
    origin: Instant,
    observe: &mut dyn FnMut(LoadEvent<'_>),
) -> Result<LoadOutcome, LoadError> {
    if rows::are_to_be_fetched(&plan.workloads) {
        let mut plan = plan.clone();
        rows::fetch_rows(&mut plan.workloads, control)?;
        return drive(&plan, fleet, control, origin, observe);
    }
    match fleet {
        LaneFleet::Threads => threads::run(plan, control, origin, observe),
        LaneFleet::Processes { count, program } => {
            generators::run(plan, count, program, control, origin, observe)
        }
        LaneFleet::Hosts { hosts, on_loss } => {
            hosts::run(plan, hosts, on_loss, control, origin, observe)
        }
    }
}

/// Runs `plan` in this process alone; the same as [`drive`] with [`LaneFleet::Threads`].
pub fn run(
    plan: &LoadPlan,
    control: &LoadControl,
    origin: Instant,
    observe: &mut dyn FnMut(LoadEvent<'_>),
) -> Result<LoadOutcome, LoadError> {
    drive(plan, LaneFleet::Threads, control, origin, observe)
}
