//! The actions of a timeline: each done, and its effect proved.

use std::time::Duration;

use lab::guest::{self, StatementOutcome, StatementTarget};
use lab::{Node, Part, ProcessAct, Server, Way, wait_until};
use record::FaultyParty;
use server::message::with_detail as server_words;
use server::{Client, ConnectError, Limits};
use site::{
    MovedBuckets, PowerError, RestorePoint, Service, Site, SiteLink, SiteNode, SiteStation,
    TakenBackup, TakenCut,
};
use spec::{Action, DiskRequest, FailingRequests, ProcessVerb};

use crate::trial::blame;
use crate::trial::held::HeldSnapshots;

/// The proof that an action had its effect.
pub(crate) enum ActionProof {
    /// The change that was seen.
    Seen(String),
    /// The buckets that a rebalancing has moved.
    Moved(MovedBuckets),
    /// The base backup that was taken.
    BackedUp(Box<TakenBackup>),
    /// The moment that servers can be restored to.
    Noted(Box<RestorePoint>),
    /// The power cut, and what it met.
    Cut(TakenCut),
    /// Time that a server took to recover from the death of one of its processes.
    Recovered(Duration),
}

impl ActionProof {
    /// In a mark's words.
    pub(crate) fn words(&self) -> String {
        match self {
            ActionProof::Seen(words) => words.clone(),
            ActionProof::Moved(moved) => moved.words(),
            ActionProof::Cut(taken) => taken.words(),
            ActionProof::BackedUp(backup) => {
                let took = backup.taken.latest - backup.taken.earliest;
                format!("a base backup was taken in {:.1} s", took.as_secs_f64())
            }
            ActionProof::Noted(point) => format!("{} is {}", point.name.0, point.time.0),
            ActionProof::Recovered(took) => {
                format!("it accepted connections again after {:.1} s", took.as_secs_f64())
            }
        }
    }
}

/// What is left of an action that has begun.
pub(crate) enum Work {
    /// Nothing: it had its effect.
    Done(ActionProof),
    /// What takes its time, for a thread of its own: other actions do not wait for it.
    GoesOn(Box<dyn FnOnce() -> Result<ActionProof, ActError> + Send>),
}

impl Work {
    pub(crate) fn goes_on(
        rest: impl FnOnce() -> Result<String, ActError> + Send + 'static,
    ) -> Work {
        Work::GoesOn(Box::new(|| rest().map(ActionProof::Seen)))
    }
}

/// Why an action had no effect: the trial does not count then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActError {
    #[error(transparent)]
    Lab(#[from] lab::Error),
    #[error(transparent)]
    Site(#[from] site::Error),
    #[error(transparent)]
    Power(#[from] PowerError),
    #[error(transparent)]
    Console(#[from] ConnectError),
    #[error("{}", server_words(.0))]
    Sql(#[from] postgres::Error),
    #[error("the server is not ours")]
    NotOurs,
    #[error("{0} is no server that pgrig started")]
    NoServer(String),
    #[error("its I/O is not limited")]
    NotLimited,
    #[error("the topology has no link {0}")]
    NoLink(String),
    #[error("{0} is no machine")]
    NoMachine(String),
    #[error("{program} ended {code}: {said}")]
    Command { program: String, code: String, said: String },
    #[error("no process was {verb}")]
    NoProcess {
        /// The past participle of the action, as in "killed".
        verb: &'static str,
    },
    #[error("it does not answer within {seconds} s")]
    NoAnswer { seconds: u64 },
    #[error("it stands still, and would not answer")]
    Paused,
    #[error("no snapshot is held there")]
    NotHeld,
}

impl ActError {
    /// True if there was nothing that the action could be done to.
    pub(crate) fn is_nothing_to_do(&self, action: &Action) -> bool {
        let no_statement =
            matches!(self, ActError::Lab(_)) && matches!(action, Action::KillBackend { .. });
        no_statement
            || matches!(
                self,
                ActError::NoProcess { .. }
                    | ActError::NotLimited
                    | ActError::Paused
                    | ActError::NotHeld
                    | ActError::Power(PowerError::NotRunning | PowerError::NothingToLose(_))
            )
    }

    /// The fault to which it is due that an action had no effect; none where that makes the trial void
    /// and nothing else. `was_down` says that the node had been ended by an earlier action.
    pub(crate) fn fault(&self, action: &Action, was_down: bool) -> Option<FaultyParty> {
        let is_of_server = matches!(
            action,
            Action::Start { .. }
                | Action::Promote { .. }
                | Action::Rejoin { .. }
                | Action::Continue { .. }
                | Action::Heal { .. }
                | Action::KillBackend { .. }
        );
        match self {
            // The study asks for what cannot be done.
            ActError::NotOurs
            | ActError::NoServer(_)
            | ActError::NotLimited
            | ActError::NoLink(_)
            | ActError::NoMachine(_)
            | ActError::Paused
            | ActError::NotHeld
            | ActError::Power(PowerError::NotOurs | PowerError::NothingToLose(_)) => None,
            ActError::NoProcess { .. } | ActError::Power(PowerError::NotRunning) if was_down => {
                None
            }
            // It had ended unasked.
            ActError::NoProcess { .. } | ActError::Power(PowerError::NotRunning) => {
                Some(FaultyParty::Server)
            }
            ActError::NoAnswer { .. } => Some(FaultyParty::Server),
            ActError::Command { .. } | ActError::Console(_) => Some(FaultyParty::Unknown),
            ActError::Lab(_) | ActError::Site(_) | ActError::Sql(_) | ActError::Power(_)
                if is_of_server =>
            {
                Some(FaultyParty::Server)
            }
            ActError::Lab(_) | ActError::Site(_) | ActError::Power(_) => Some(FaultyParty::Unknown),
            ActError::Sql(error) => blame::of_study_sql(error),
        }
    }
}

/// Begins an action. `cut_seed` decides what a power cut takes.
pub(crate) fn act(
    site: &mut Site,
    action: &Action,
    cut_seed: u64,
    held: &HeldSnapshots,
) -> Result<Work, ActError> {
    let name = action.target();
    let seen = match action {
        Action::Rebalance { node, to } => {
            return Ok(Work::Done(ActionProof::Moved(site.rebalance(node, to)?)));
        }
        Action::PowerCut { at, .. } if site.station(name).is_some() => {
            Ok(site::cut_machine(station(site, name)?, cut_seed, *at)?)
        }
        Action::FailDisk { at, fault, .. } if site.station(name).is_some() => {
            station(site, name)?.fail_disk(*at, *fault)?;
            Ok("requests of its disk fail from that one on".to_owned())
        }
        Action::PowerCut { node, at } => {
            return Ok(Work::Done(ActionProof::Cut(site::cut(site, node, cut_seed, *at)?)));
        }
        Action::FailDisk { node, at, fault } => {
            let taken = site::fail_disk(site, node, cut_seed, *at, *fault)?;
            return Ok(Work::Done(ActionProof::Cut(taken)));
        }
        Action::Sql { sql: text, .. } => return sql(site, name, text),
        Action::OfProcess { process, act, .. } => of_process(site, name, process, *act),
        Action::Run { command, .. } => return run(site, name, command),
        Action::CutOff { from, direction, .. } => {
            let peers = site.stations.peers(name, from);
            Ok(station(site, name)?.station.cut(peers, *direction)?)
        }
        Action::Reconnect { .. } => Ok(station(site, name)?.station.heal()?),
        Action::Backup { .. } => {
            let take = site.take_backup_later(name)?;
            let take = || Ok(ActionProof::BackedUp(Box::new(take()?)));
            return Ok(Work::GoesOn(Box::new(take)));
        }
        Action::StepClock { by_us, .. } => {
            server(site, name)?.step_clock(*by_us)?;
            Ok(format!("its clock is stepped by {:.3} s", *by_us as f64 / 1e6))
        }
        Action::RestorePoint { .. } => {
            let note = site.restore_point_later(name)?;
            let note = || Ok(ActionProof::Noted(Box::new(note()?)));
            return Ok(Work::GoesOn(Box::new(note)));
        }
        Action::Checkpoint { .. } => return sql(site, name, "CHECKPOINT"),
        Action::HoldSnapshot { .. } => return held.hold(site, name),
        Action::ReleaseSnapshot { .. } => return held.release(name),
        Action::Stop { mode, .. } => {
            let stop = part(site, name)?.stop_later(*mode);
            return Ok(Work::goes_on(move || Ok(format!("it {}", stop()?))));
        }
        Action::KillBackend { memory_bytes, .. } => {
            let kill = server(site, name)?.kill_backend_later(*memory_bytes, RECOVERY_TIMEOUT);
            return Ok(Work::GoesOn(Box::new(|| Ok(ActionProof::Recovered(kill()?)))));
        }
        Action::Unthrottle { .. } => {
            let (was_limited, was_slow) = (site.throttles.lift(name), site.slow_disks.remove(name));
            if was_slow {
                slow_disk(site, name, None)?;
            }
            match was_limited || was_slow {
                true => Ok("its I/O is not limited any more".to_owned()),
                false => Err(ActError::NotLimited),
            }
        }
        Action::SlowDisk { at, by_us, .. } => {
            slow_disk(site, name, Some((*at, Duration::from_micros(*by_us))))?;
            site.slow_disks.insert(name.to_owned());
            Ok("its disk is slow".to_owned())
        }
        Action::Kill { .. } => some_processes(part(site, name)?.kill9()?, "killed"),
        Action::Pause { .. } => some_processes(part(site, name)?.pause()?, "paused"),
        Action::Continue { .. } => {
            let proof = some_processes(part(site, name)?.resume()?, "resumed")?;
            let way = own_server(site, name).map(|node| node.server.way());
            return Ok(Work::goes_on(move || answers(way).map(|()| proof)));
        }
        Action::Start { .. } => {
            let start = part(site, name)?.start_later();
            let way = own_server(site, name).map(|node| node.server.way());
            return Ok(Work::goes_on(move || {
                start()?;
                answers(way).map(|()| "it runs".to_owned())
            }));
        }
        Action::Rejoin { of, by, .. } => {
            part(site, name)?;
            Ok(site.rejoin(name, of, *by)?)
        }
        Action::Throttle { to, .. } => {
            part(site, name)?;
            site.throttle(name, *to)?;
            Ok("its I/O is limited".to_owned())
        }
        Action::Promote { .. } => {
            let promote = server(site, name)?.promote_later();
            return Ok(Work::goes_on(|| Ok(promote().map(|()| "it takes writes".to_owned())?)));
        }
        Action::Subscribe { .. } => {
            let subscribe = site.subscribe_later(name)?;
            return Ok(Work::goes_on(|| Ok(subscribe()?)));
        }
        Action::Cut { direction, .. } => Ok(link(site, name)?.cut(*direction)?),
        Action::Delay { to_us, .. } => {
            Ok(link(site, name)?.link.delay(Duration::from_micros(*to_us))?)
        }
        Action::Reset { .. } => Ok(link(site, name)?.link.reset()?),
        Action::FailRequests { kind, files, times, fault, .. } => {
            let (kind, times, fault) = (*kind, *times, *fault);
            let failing = FailingRequests { kind, fault, times, files: Vec::new() };
            Ok(site::fail_requests(site, name, files.as_ref(), failing)?)
        }
        Action::HealDisk { .. } => Ok(site::heal_disk(site, name)?),
        Action::Heal { .. } => Ok(link(site, name)?.heal()?),
    };
    seen.map(|seen| Work::Done(ActionProof::Seen(seen)))
}

fn part<'s>(site: &'s mut Site, name: &str) -> Result<&'s mut Part, ActError> {
    site.part(name).ok_or(ActError::NotOurs)
}

fn server<'s>(site: &'s mut Site, name: &str) -> Result<&'s mut Node, ActError> {
    part(site, name)?;
    site.server_mut(name).ok_or_else(|| ActError::NoServer(name.to_owned()))
}

/// Slows down the disk of a server or of a machine, or heals it.
fn slow_disk(
    site: &mut Site,
    name: &str,
    slow: Option<(DiskRequest, Duration)>,
) -> Result<(), ActError> {
    match site.station(name) {
        Some(machine) => Ok(machine.station.slow_disk(slow)?),
        None => Ok(server(site, name)?.slow_disk(slow)?),
    }
}

fn station<'s>(site: &'s mut Site, name: &str) -> Result<&'s mut SiteStation, ActError> {
    site.station(name).ok_or_else(|| ActError::NoMachine(name.to_owned()))
}

fn of_process(
    site: &mut Site,
    name: &str,
    process: &str,
    act: ProcessVerb,
) -> Result<String, ActError> {
    let (act, verb) = match act {
        ProcessVerb::Stop => (ProcessAct::Stop, "stopped"),
        ProcessVerb::Kill => (ProcessAct::Kill, "killed"),
        ProcessVerb::Pause => (ProcessAct::Pause, "paused"),
        ProcessVerb::Continue => (ProcessAct::Resume, "resumed"),
        ProcessVerb::Start => (ProcessAct::Start, "started"),
    };
    let count = station(site, name)?.station.process(process, act)?;
    some_processes(count, verb).map(|words| format!("{process}: {words}"))
}

fn run(site: &mut Site, name: &str, command: &[String]) -> Result<Work, ActError> {
    let command: Vec<String> = command.iter().map(|word| site.with_names(name, word)).collect();
    let program = command.first().expect("a study's command has a program").clone();
    let run = station(site, name)?.station.run_later(command, Vec::new(), COMMAND_TIMEOUT);
    Ok(Work::goes_on(|| match run()? {
        (Some(0), said) => Ok(last_line(&said).unwrap_or("done").to_owned()),
        (code, said) => {
            let code = code.map_or("by a signal".to_owned(), |code| format!("with {code}"));
            let said = last_line(&said).unwrap_or("it said nothing").to_owned();
            Err(ActError::Command { program, code, said })
        }
    }))
}

fn last_line(said: &str) -> Option<&str> {
    said.lines().rev().map(str::trim).find(|line| !line.is_empty())
}

fn link<'s>(site: &'s mut Site, name: &str) -> Result<&'s mut SiteLink, ActError> {
    site.link(name).ok_or_else(|| ActError::NoLink(name.to_owned()))
}

fn sql(site: &Site, name: &str, sql: &str) -> Result<Work, ActError> {
    let sql = site.with_names(name, sql);
    let pooler = site.services().find(|service| service.name() == name);
    if let Some(console) = pooler.and_then(Service::console) {
        return Ok(Work::goes_on(move || {
            console_of(&console)?.batch_execute(&sql)?;
            Ok("done".to_owned())
        }));
    }
    let connect = site.node(name).ok_or(ActError::NotOurs)?.way();
    let is_outside = matches!(site.node(name).map(|node| &node.server), Some(Server::Target(_)));
    Ok(Work::goes_on(move || {
        let mut client = connect(&Limits::of_administration())?;
        let sent = match is_outside {
            true => guest::send(&sql, &mut StatementTarget::Server(&mut client))?,
            false => client.batch_execute(&sql).map(|()| StatementOutcome::Done)?,
        };
        match sent {
            StatementOutcome::Done => Ok("done".to_owned()),
            StatementOutcome::LeftOut => {
                Ok("left out: the role has no privilege for it".to_owned())
            }
        }
    }))
}

/// A session on the console of a pooler.
fn console_of(console: &str) -> Result<Client, ActError> {
    let conninfo = server::own_conninfo(console).map_err(ConnectError::Conninfo)?;
    Ok(server::connect(&conninfo, &Limits::of_questions())?)
}

fn some_processes(count: usize, verb: &'static str) -> Result<String, ActError> {
    match count {
        0 => Err(ActError::NoProcess { verb }),
        1 => Ok(format!("1 process {verb}")),
        count => Ok(format!("{count} processes {verb}")),
    }
}

/// The server of that name, if it runs as soon as it is started: if a managed one does is for its
/// manager to say.
fn own_server<'s>(site: &'s Site, name: &str) -> Option<&'s SiteNode> {
    site.node(name).filter(|node| !node.is_managed())
}

/// Waits until a server answers, if there is one to ask.
fn answers(way: Option<Way>) -> Result<(), ActError> {
    // Nobody is there to ask.
    let Some(connect) = way else { return Ok(()) };
    let limits = Limits { connect: PATIENCE, answer: Some(PATIENCE), ..Limits::of_questions() };
    let answered = wait_until(ANSWER_TIMEOUT, || {
        let client = connect(&limits).ok();
        Ok::<_, ActError>(client.and_then(|mut client| client.batch_execute("SELECT 1").ok()))
    })?;
    let seconds = ANSWER_TIMEOUT.as_secs();
    answered.ok_or(ActError::NoAnswer { seconds })
}

/// A server that goes on answers in milliseconds, unless the machine is very busy.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two looks whether it answers.
const PATIENCE: Duration = Duration::from_secs(2);
/// A manager's command waits until the cluster has changed.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
/// With its I/O limited, a recovery may take as long as the window, after which no limit is left.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(3600);
