//! `pgrig guard`, watching over a primary.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Part, Process, Scratch};
use spec::{GuardNode, TopologyNode};

use crate::error::Error;
use crate::service::{FrontBuilder, Service};

/// A guard at work.
#[derive(Debug)]
pub struct RunningGuard {
    name: String,
    process: Process,
    /// Its state directory, on its host.
    state: PathBuf,
    /// Directory to which the state is copied from a host.
    copy: Option<Scratch>,
    /// The server that it guards.
    pub to: String,
}

pub(super) fn make(
    node: &TopologyNode,
    guard: &GuardNode,
    front: &FrontBuilder<'_>,
) -> Result<Option<Box<dyn Service>>, Error> {
    let Some(to) = (front.way)(&guard.to) else { return Ok(None) };
    let lab = front.labs.of(&node.name)?;
    // A guard that finds the state of another trial's would go on from there.
    let state = lab.directory().join(format!("{}.{}.state", node.name, front.labs.new_number()));
    let (address, grace) = (to.to_string(), format!("{}ms", guard.grace_ms));
    let arguments = ["guard", &address, "--grace", &grace, "--state"].map(str::to_owned);
    let more = [state.display().to_string(), "--no-automatic-failover".to_owned()];
    let arguments = arguments.into_iter().chain(more).collect();
    let process = lab.rig_process(&front.name_in_lab(node), front.rig, arguments)?;
    let copy = match lab.host() {
        None => None,
        Some(_) => Some(Scratch::make()?),
    };
    let (name, to) = (node.name.clone(), guard.to.clone());
    Ok(Some(Box::new(RunningGuard { name, process, state, copy, to })))
}

impl Service for RunningGuard {
    fn name(&self) -> &str {
        &self.name
    }

    fn part(&self) -> Option<&Part> {
        Some(&self.process)
    }

    fn part_mut(&mut self) -> Option<&mut Part> {
        Some(&mut self.process)
    }

    fn conninfo(&self) -> Option<String> {
        None
    }

    /// It leaves a state as soon as it has taken charge.
    fn ready(&self) -> Result<(), Error> {
        let is_in_charge = lab::wait_until(IN_CHARGE_WITHIN, || {
            self.check_alive()?;
            Ok::<_, Error>(::guard::load_state(self.state()?)?.map(drop))
        })?;
        is_in_charge.ok_or_else(|| {
            let (name, log) = (self.process.name().to_owned(), self.process.log_tail());
            Error::GuardNotInCharge { name, seconds: IN_CHARGE_WITHIN.as_secs(), log }
        })
    }

    /// One that has given up is found when its record is read.
    fn is_alive(&self) -> Result<bool, Error> {
        Ok(true)
    }

    fn guarding(&self) -> Option<&RunningGuard> {
        Some(self)
    }
}

impl RunningGuard {
    /// Its state directory, which can be read here. What it writes to it later is not there if it
    /// runs on a host.
    pub fn state(&self) -> Result<&Path, Error> {
        match &self.copy {
            None => Ok(&self.state),
            Some(copy) => {
                self.process.fetch(&self.state, copy.path())?;
                Ok(copy.path())
            }
        }
    }

    /// The wall clock that its record has, in microseconds since 1970; none if it is this machine's.
    pub fn wall_clock_us(&self) -> Result<Option<i64>, Error> {
        Ok(self.process.wall_clock_us()?)
    }

    /// Fails with the end of its log if it has given up.
    pub fn check_alive(&self) -> Result<(), Error> {
        match self.process.exit()? {
            None => Ok(()),
            Some(exit) => {
                let (name, log) = (self.process.name().to_owned(), self.process.log_tail());
                Err(Error::GuardEnded { name, exit, log })
            }
        }
    }
}

/// A connection and a question, on a busy machine.
const IN_CHARGE_WITHIN: Duration = Duration::from_secs(60);
