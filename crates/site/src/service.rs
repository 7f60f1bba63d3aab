//! Services in front of a site's servers for one trial: poolers and guards.
//!
//! They keep no data: each trial makes its own, and trials with different services share a site.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Endpoint, Part, PoolerConfig, PoolerProgram, Process, Scratch};
use spec::{Guard, Node, Pgbouncer};

use crate::error::Error;
use crate::labs::Labs;
use crate::node::lab_settings;

/// A pooler or a guard, by its name in the study.
#[derive(Debug)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Conninfo for clients, in keyword form; none for a guard.
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
    /// Its state directory, on its host.
    state: PathBuf,
    /// Directory to which the state is copied from a host.
    copy: Option<Scratch>,
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
        labs: &Labs,
    ) -> Result<Service, Error> {
        let lab = labs.of(&node.name)?;
        let program = PoolerProgram::Newest(pooler.version.clone());
        let mut config = PoolerConfig::new(program, to);
        config.remote = labs.remote_access(lab);
        config.pool = pooler.pool;
        config.clients = pooler.clients;
        config.settings = lab_settings(&node.settings);
        // Clients of one on a host come by TCP anyway.
        if node.by_tcp && config.remote.is_none() {
            config.listen = lab::Listen::Loopback;
        }
        config.mode = pooler.mode;
        let made = lab.pooler(&name_in_lab(node, labs), config)?;
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
        labs: &Labs,
        rig: &Path,
    ) -> Result<Service, Error> {
        let lab = labs.of(&node.name)?;
        // A guard that finds the state of another trial's would go on from there.
        let state = lab.directory().join(format!("{}.{}.state", node.name, labs.new_number()));
        let (to, grace) = (to.to_string(), format!("{}ms", guard.grace_ms));
        let arguments = ["guard", &to, "--grace", &grace, "--state"].map(str::to_owned);
        let more = [state.display().to_string(), "--no-automatic-failover".to_owned()];
        let arguments = arguments.into_iter().chain(more).collect();
        let process = lab.rig_process(&name_in_lab(node, labs), rig, arguments)?;
        let copy = match lab.host() {
            None => None,
            Some(_) => Some(Scratch::make()?),
        };
        let guarding = Guarding { process, state, copy, to: guard.to.clone() };
        let program = Program::Guard(Box::new(guarding));
        Ok(Service { name: node.name.clone(), conninfo: None, program })
    }

    /// Starts it, and waits until it does its work.
    ///
    /// # Errors
    /// The end of the log of one that does not come up.
    pub(crate) fn start(&mut self) -> Result<(), Error> {
        self.part_mut().start()?;
        self.guarding().map_or(Ok(()), Guarding::wait_until_in_charge)
    }

    /// The name of the host that it is on; none on this machine.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.part().host()
    }

    /// The part of the lab that runs.
    pub fn part_mut(&mut self) -> &mut Part {
        match &mut self.program {
            Program::Pooler(pooler) => pooler,
            Program::Guard(guarding) => &mut guarding.process,
        }
    }

    fn part(&self) -> &Part {
        match &self.program {
            Program::Pooler(pooler) => pooler,
            Program::Guard(guarding) => &guarding.process,
        }
    }

    /// Address at which others of the lab reach it, if it is a pooler.
    #[must_use]
    pub fn route(&self) -> Option<String> {
        match &self.program {
            Program::Pooler(pooler) => Some(pooler.endpoint().to_string()),
            Program::Guard(_) => None,
        }
    }

    /// Address of its console, if it is a pooler.
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
        self.part().host_pid().and_then(|pid| u32::try_from(pid).ok())
    }

    /// Its log for people.
    #[must_use]
    pub fn log_text(&self) -> String {
        self.part().log_text()
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
    /// Its state directory, which can be read here. What it writes to it later is not there if it
    /// runs on a host.
    ///
    /// # Errors
    /// What the host says.
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
    ///
    /// # Errors
    /// What the host says.
    pub fn wall_clock_us(&self) -> Result<Option<i64>, Error> {
        Ok(self.process.wall_clock_us()?)
    }

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
            Ok::<_, Error>(guard::load_state(self.state()?)?.map(drop))
        })?;
        is_in_charge.ok_or_else(|| {
            let (name, log) = (self.process.name().to_owned(), self.process.log_tail());
            Error::GuardNotInCharge { name, seconds: IN_CHARGE_WITHIN.as_secs(), log }
        })
    }
}

/// A connection and a question, on a busy machine.
const IN_CHARGE_WITHIN: Duration = Duration::from_secs(60);

/// One lab holds the services of all sites, two of which may stand at once.
fn name_in_lab(node: &Node, labs: &Labs) -> String {
    format!("{}-{}", node.name, labs.new_number())
}
