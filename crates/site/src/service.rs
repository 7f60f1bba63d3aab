//! What stands in front of a site's servers for one trial: poolers and guards.
//!
//! They keep no data: each trial makes its own, and trials with different services share a site.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Endpoint, Lab, PoolerConfig, Process};
use os::command::Command;
use spec::{Guard, Node, Pgbouncer};

use crate::error::Error;
use crate::node::lab_settings;
use crate::part::Part;

/// A pooler or a guard, by its name in the study.
#[derive(Debug)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// What clients connect to, in keyword form; none for a guard.
    pub conninfo: Option<String>,
    program: Program,
}

#[derive(Debug)]
enum Program {
    Pooler(Box<lab::Pooler>),
    Guard(Box<Guarding>),
}

/// A guard at work.
#[derive(Debug)]
pub struct Guarding {
    process: Process,
    /// Its state directory.
    pub state: PathBuf,
    /// The server that it guards.
    pub to: String,
}

impl Service {
    /// A pooler of the server at `to`, not yet started.
    ///
    /// # Errors
    /// What the lab says.
    pub(crate) fn pooler(
        node: &Node,
        pooler: &Pgbouncer,
        to: Endpoint,
        lab: &Lab,
    ) -> Result<Service, Error> {
        let program = lab::find::pgbouncer(pooler.version.as_deref())?;
        let mut config = PoolerConfig::new(program, to);
        config.pool = pooler.pool;
        config.clients = pooler.clients;
        config.settings = lab_settings(&node.settings);
        if node.by_tcp {
            config.listen = lab::Listen::Loopback;
        }
        config.mode = pooler.mode;
        let made = lab.pooler(&node.name, config)?;
        let conninfo = server::keyword_form(&made.endpoint().to_string())?;
        let program = Program::Pooler(Box::new(made));
        Ok(Service { name: node.name.clone(), conninfo: Some(conninfo), program })
    }

    /// A guard of the server at `to`, not yet started. `rig` is the rig's own program, of which a
    /// guard is a command.
    ///
    /// # Errors
    /// What the lab says.
    pub(crate) fn guard(
        node: &Node,
        guard: &Guard,
        to: &Endpoint,
        lab: &Lab,
        rig: &Path,
    ) -> Result<Service, Error> {
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
        Ok(Service { name: node.name.clone(), conninfo: None, program })
    }

    /// What runs.
    pub fn part(&mut self) -> Part<'_> {
        match &mut self.program {
            Program::Pooler(pooler) => Part::Pooler(pooler),
            Program::Guard(guarding) => Part::Process(&mut guarding.process),
        }
    }

    /// Where others of the lab reach it, if it is a pooler.
    #[must_use]
    pub fn route(&self) -> Option<String> {
        match &self.program {
            Program::Pooler(pooler) => Some(pooler.endpoint().to_string()),
            Program::Guard(_) => None,
        }
    }

    /// Where its console is, if it is a pooler.
    #[must_use]
    pub fn console(&self) -> Option<String> {
        match &self.program {
            Program::Pooler(pooler) => Some(pooler.console().to_string()),
            Program::Guard(_) => None,
        }
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        let pid = match &self.program {
            Program::Pooler(pooler) => pooler.host_pid(),
            Program::Guard(guarding) => guarding.process.host_pid(),
        };
        pid.and_then(|pid| u32::try_from(pid).ok())
    }

    /// What it wrote for people.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        match &self.program {
            Program::Pooler(pooler) => pooler.log(),
            Program::Guard(guarding) => guarding.process.log(),
        }
    }

    /// The guard, if it is one.
    #[must_use]
    pub fn guarding(&self) -> Option<&Guarding> {
        match &self.program {
            Program::Guard(guarding) => Some(guarding),
            Program::Pooler(_) => None,
        }
    }
}

impl Guarding {
    /// Fails with the end of its log if it has given up.
    ///
    /// # Errors
    /// [`Error::GuardEnded`].
    pub fn check_alive(&self) -> Result<(), Error> {
        match self.process.exit()? {
            None => Ok(()),
            Some(exit) => {
                let (name, log) = (self.process.name().to_owned(), self.process.log_tail());
                Err(Error::GuardEnded { name, exit, log })
            }
        }
    }

    /// It leaves a state as soon as it has taken charge.
    pub(crate) fn wait_until_in_charge(&self) -> Result<(), Error> {
        let is_in_charge = lab::wait_until(IN_CHARGE_WITHIN, || {
            self.check_alive()?;
            Ok::<_, Error>(guard::load_state(&self.state)?.map(drop))
        })?;
        is_in_charge.ok_or_else(|| {
            let (name, log) = (self.process.name().to_owned(), self.process.log_tail());
            Error::GuardNotInCharge { name, seconds: IN_CHARGE_WITHIN.as_secs(), log }
        })
    }
}

/// A connection and a question, on a busy machine.
const IN_CHARGE_WITHIN: Duration = Duration::from_secs(60);
