//! What stands in front of a site's servers for one trial: poolers and guards.
//!
//! They keep no data, so that each trial makes its own and a site of servers is shared by whatever
//! is put in front of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Lab, PoolerConfig, Process};
use os::command::Command;
use spec::{Guard, Node, NodeKind, Pgbouncer, Point, PoolMode};

use crate::error::Error;
use crate::part::Part;
use crate::site::{Site, lab_settings};

/// A pooler or a guard, by its name in the study.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) name: String,
    /// What clients connect to, in keyword form; nobody connects to a guard.
    pub(crate) conninfo: Option<String>,
    program: Program,
}

#[derive(Debug)]
enum Program {
    Pooler(Box<lab::Pooler>),
    Guard(Box<Guarding>),
}

/// A guard at work.
#[derive(Debug)]
pub(crate) struct Guarding {
    process: Process,
    /// Its state directory.
    pub(crate) state: PathBuf,
    /// The server that it guards.
    pub(crate) to: String,
}

impl Site {
    /// Starts what the point has in front of its servers, in place of what another point had.
    /// `rig` is the rig's own program, of which a guard is a command.
    ///
    /// # Errors
    /// A pooler that does not come up, with the end of its log.
    pub(crate) fn put_in_front(
        &mut self,
        point: &Point,
        lab: Option<&Lab>,
        rig: &Path,
    ) -> Result<(), Error> {
        self.fronts.clear();
        let Some(lab) = lab else { return Ok(()) };
        for node in &point.topology.nodes {
            let front = match &node.kind {
                NodeKind::Postgres(_) | NodeKind::Plproxy(_) => continue,
                NodeKind::Pgbouncer(pooler) => self.pooler(node, pooler, lab)?,
                NodeKind::Guard(guard) => self.guard(node, guard, lab, rig)?,
            };
            self.fronts.extend(front);
            if let Some(front) = self.fronts.last_mut() {
                front.part().start()?;
                front.guarding().map_or(Ok(()), Guarding::wait_until_in_charge)?;
            }
        }
        Ok(())
    }

    fn pooler(&self, node: &Node, pooler: &Pgbouncer, lab: &Lab) -> Result<Option<Front>, Error> {
        let Some(to) = self.way(&node.name, &pooler.to) else { return Ok(None) };
        let program = lab::find::pgbouncer(pooler.version.as_deref())?;
        let mut config = PoolerConfig::new(program, to);
        config.pool = pooler.pool;
        config.clients = pooler.clients;
        config.settings = lab_settings(&node.settings);
        if node.by_tcp {
            config.listen = lab::Listen::Loopback;
        }
        config.mode = match pooler.mode {
            PoolMode::Session => lab::PoolMode::Session,
            PoolMode::Transaction => lab::PoolMode::Transaction,
            PoolMode::Statement => lab::PoolMode::Statement,
        };
        let made = lab.pooler(&node.name, config)?;
        let conninfo = crate::outside::keyword_form(&made.endpoint().to_string())?;
        let program = Program::Pooler(Box::new(made));
        Ok(Some(Front { name: node.name.clone(), conninfo: Some(conninfo), program }))
    }

    fn guard(
        &self,
        node: &Node,
        guard: &Guard,
        lab: &Lab,
        rig: &Path,
    ) -> Result<Option<Front>, Error> {
        let Some(to) = self.way(&node.name, &guard.to) else { return Ok(None) };
        let state = lab.directory().join(format!("{}.state", node.name));
        // A guard that finds the state of another trial's would go on from there.
        let _ = std::fs::remove_dir_all(&state);
        let command = Command::new(rig)
            .arg("guard")
            .arg(to.to_string())
            .args(["--grace", &format!("{}ms", guard.grace_ms)])
            .arg("--state")
            .arg(&state)
            .arg("--no-automatic-failover");
        let process = lab.process(&node.name, command)?;
        let guarding = Guarding { process, state, to: guard.to.clone() };
        let program = Program::Guard(Box::new(guarding));
        Ok(Some(Front { name: node.name.clone(), conninfo: None, program }))
    }
}

impl Front {
    pub(crate) fn part(&mut self) -> Part<'_> {
        match &mut self.program {
            Program::Pooler(pooler) => Part::Pooler(pooler),
            Program::Guard(guarding) => Part::Process(&mut guarding.process),
        }
    }

    /// Where others of the lab reach it, if it is a pooler.
    pub(crate) fn route(&self) -> Option<String> {
        match &self.program {
            Program::Pooler(pooler) => Some(pooler.endpoint().to_string()),
            Program::Guard(_) => None,
        }
    }

    /// Where its console is, if it is a pooler.
    pub(crate) fn console(&self) -> Option<String> {
        match &self.program {
            Program::Pooler(pooler) => Some(pooler.console().to_string()),
            Program::Guard(_) => None,
        }
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Option<u32> {
        let pid = match &self.program {
            Program::Pooler(pooler) => pooler.host_pid(),
            Program::Guard(guarding) => guarding.process.host_pid(),
        };
        pid.and_then(|pid| u32::try_from(pid).ok())
    }

    /// What it wrote for people.
    pub(crate) fn log(&self) -> PathBuf {
        match &self.program {
            Program::Pooler(pooler) => pooler.log(),
            Program::Guard(guarding) => guarding.process.log(),
        }
    }

    /// The guard, if it is one.
    pub(crate) fn guarding(&self) -> Option<&Guarding> {
        match &self.program {
            Program::Guard(guarding) => Some(guarding),
            Program::Pooler(_) => None,
        }
    }
}

impl Guarding {
    /// Fails with the end of its log if it has given up.
    pub(crate) fn check_alive(&self) -> Result<(), String> {
        match self.process.exit().map_err(|error| error.to_string())? {
            None => Ok(()),
            Some(exit) => {
                let (name, log) = (self.process.name(), self.process.log_tail());
                Err(format!("the guard {name} {exit}:\n{log}"))
            }
        }
    }

    /// It leaves a state as soon as it has taken charge.
    fn wait_until_in_charge(&self) -> Result<(), Error> {
        let fails = |why| Error::Guard { why };
        let is_in_charge = lab::wait_until(IN_CHARGE_WITHIN, || {
            self.check_alive().map_err(fails)?;
            let state = guard::load_state(&self.state);
            Ok::<_, Error>(state.map_err(|error| fails(error.to_string()))?.map(drop))
        })?;
        is_in_charge.ok_or_else(|| {
            let (name, log) = (self.process.name(), self.process.log_tail());
            let seconds = IN_CHARGE_WITHIN.as_secs();
            fails(format!("the guard {name} is not in charge within {seconds} s:\n{log}"))
        })
    }
}

/// A connection and a question, on a busy machine.
const IN_CHARGE_WITHIN: Duration = Duration::from_secs(60);
